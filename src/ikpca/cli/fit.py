"""Commands that fit models: ``fit`` and ``cluster``."""

from __future__ import annotations

import time
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import ikpca
from ikpca.cli import options as opt
from ikpca.cli.models import read_training_rows, store_encoder
from ikpca.cli.output import UsageError, check_outputs, reporting

if TYPE_CHECKING:
    from ikpca.estimators.base import SavedEstimator
    from ikpca.kernels import Floats

#: Classes in ikpca by their names on the command line.
ESTIMATORS = {
    "kernel-pca": "KernelPCA",
    "hebbian-pca": "HebbianPCA",
    "incremental": "IncrementalKernelPCA",
    "online": "OnlineKernelPCA",
}
#: Defaults of the command line for parameters that the estimator has.
_DEFAULTS = {"n_components": 16, "kernel": "rbf", "gamma": "scale"}
#: Tolerance of the solver "auto", which landmarks reach for a million rows.
_DEFAULT_TOL = 1e-3
#: Bytes of the blocks of rows that a cluster gets.
_BLOCK_BYTES = 16 * 10**6


def fit(
    rows: opt.Rows,
    out: opt.ModelOut,
    estimator: Annotated[
        Literal["kernel-pca", "hebbian-pca", "incremental", "online"], opt.option("Estimator.")
    ] = "kernel-pca",
    n_components: opt.Components = None,
    kernel: opt.Kernel = None,
    gamma: opt.Gamma = None,
    degree: opt.Degree = None,
    coef0: opt.Coef0 = None,
    eigen_solver: opt.Solver = None,
    tol: opt.Tol = None,
    max_iter: opt.MaxIter = None,
    preimage: Annotated[
        opt.PreimageName | None, opt.option("Method of 'ikpca inverse'.", default="auto")
    ] = None,
    random_state: opt.Seed = 0,
    max_memory: opt.MaxMemory = None,
    n_jobs: opt.Threads = None,
    checkpoint: Annotated[
        Path | None, opt.option("Checkpoint file, from which an interrupted fit can be resumed.")
    ] = None,
    every: Annotated[
        str,
        opt.option("Interval in passes, or a time such as 30s, 5min or 1h.", "--checkpoint-every"),
    ] = "1",
    resume: Annotated[
        bool, opt.option("Resume from the checkpoint if it exists; bit-exact.", "--resume")
    ] = False,
    dask: Annotated[
        str | None,
        opt.option(
            "Fit on a Dask cluster: the address of its scheduler, or local for one worker process "
            "per processor of this machine.",
            metavar="ADDRESS|local",
        ),
    ] = None,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    ids: opt.Id = None,
    standardize: opt.Standardize = False,
    missing: opt.Missing = "error",
    one_hot: opt.OneHot = False,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Compute the kernel principal components of rows and write a model file.

    Defaults: 16 components, a Gaussian kernel (rbf), γ from the variance of the rows.

    Example: ikpca fit faces.npy --out faces.ikpca -n 32 --gamma median
    """
    options = locals()
    with reporting(quiet, as_json) as report:
        model = _make_model(estimator, options)
        if dask is not None and estimator != "kernel-pca":
            raise UsageError(f"--dask has no effect for --estimator {estimator}; leave it out.")
        # Rows of a file have no other owner.
        copying = {"copy_X": True} if hasattr(model, "copy_X") else {}
        model.set_params(**dict.fromkeys(copying, False))
        if checkpoint is not None:
            interval = opt.parse_number(every)
            model.set_params(checkpoint=ikpca.Checkpoint(checkpoint, interval, resume))
        elif resume:
            raise UsageError("--resume needs a checkpoint; pass --checkpoint with its path.")
        outputs, inputs = ([out], [rows, checkpoint]) if resume else ([out, checkpoint], [rows])
        check_outputs(outputs, inputs, force=force)
        table, encoder = read_training_rows(rows, columns, drop, ids, standardize, missing, one_hot)
        start = time.perf_counter()
        with report.progress("Fitting"):
            if dask is None:
                model.fit(table.rows)
            else:
                model = _fit_on_cluster(model, table.rows, dask)
        seconds = time.perf_counter() - start
        store_encoder(model, encoder)
        # The checkpoint and the rows belong to this fit, not to the model.
        model.set_params(**copying)
        if checkpoint is not None:
            model.set_params(checkpoint=None)
        model.save(out)
        n_rows, n_columns = table.rows.shape
        document = {
            "input": rows, "estimator": estimator, "rows": n_rows, "columns": n_columns,
            **_results(model), "seconds": seconds,
        }  # fmt: skip
        report.show(document, _components(document), _costs(document), wrote=[out])


def _make_model(name: str, options: dict[str, Any]) -> Any:
    """Return an unfitted estimator; raise an error for options that it does not have."""
    kinds = {name: getattr(ikpca, kind) for name, kind in ESTIMATORS.items()}
    parameters = signature(kinds[name]).parameters
    given = opt.given_parameters(options, *kinds.values())
    for key in given:
        if key not in parameters:
            raise UsageError(f"{opt.flag(key)} has no effect for --estimator {name}; leave it out.")
    defaults: dict[str, Any] = dict(_DEFAULTS)
    if name == "kernel-pca" and given.get("eigen_solver", "auto") == "auto":
        defaults["tol"] = _DEFAULT_TOL
    return kinds[name](**{key: defaults[key] for key in defaults if key in parameters} | given)


def _fit_on_cluster(model: ikpca.KernelPCA, rows: Floats, address: str) -> ikpca.KernelPCA:
    """Return a model that was fitted on a Dask cluster."""
    try:
        from dask.array import from_array

        from ikpca.dask import KernelPCA, connect
    except ImportError:
        raise UsageError("--dask needs the package dask; run: pip install 'ikpca[dask]'.") from None
    with connect(address) as client:
        remote = KernelPCA(client=client, **model.get_params(deep=False))
        n_rows = max(1, _BLOCK_BYTES // max(1, rows[:1].nbytes))
        remote.fit(from_array(rows, chunks=(n_rows, -1)))
        return remote.to_local()


def _results(model: SavedEstimator) -> dict[str, Any]:
    """Return attributes of a fitted model, None for those that it does not have."""
    last_pass = (getattr(model, "history_", None) or [None])[-1]
    outcome = getattr(model, "outcome_", None)
    return {
        "gamma": getattr(model, "gamma_", None),
        "eigenvalues": getattr(model, "eigenvalues_", getattr(model, "explained_variance_", None)),
        "explained_variance_ratio": getattr(model, "explained_variance_ratio_", None),
        "residuals": getattr(last_pass, "residuals", None),
        "passes": getattr(model, "n_iter_", None),
        "outcome": getattr(outcome, "name", None),
        "ended": getattr(outcome, "value", None),
        "entries": getattr(last_pass, "entries", None),
    }


def _components(document: dict[str, Any]) -> str:
    """Return a line for each component."""
    import pandas

    columns = {"eigenvalue": document["eigenvalues"]}
    ratios, residuals = document["explained_variance_ratio"], document["residuals"]
    if ratios is not None:
        columns |= {"explained": ratios, "cumulative": ratios.cumsum()}
    if residuals is not None:
        columns["residual"] = residuals
    formats = {"eigenvalue": "{:.6g}", "residual": "{:.1e}"}
    formatters = {name: formats.get(name, "{:.2%}").format for name in columns}
    # Columns may be shorter than others.
    frame = pandas.DataFrame({name: pandas.Series(values) for name, values in columns.items()})
    frame.index += 1
    return str(frame.to_string(formatters=formatters))


def _costs(document: dict[str, Any]) -> str:
    """Return a summary of the cost and the outcome of the fit."""
    parts = [f"{document['rows']} rows × {document['columns']} columns"]
    if document["gamma"] is not None:
        parts.append(f"γ = {document['gamma']:.4g}")
    if document["passes"] is not None:
        parts.append(f"{document['passes']} passes" if document["passes"] != 1 else "1 pass")
    parts.append(f"{document['seconds']:.2f} s")
    outcome = f"\nOutcome: {document['ended']}" if document["ended"] else ""
    return "; ".join(parts) + "." + outcome


def cluster(
    rows: opt.Rows,
    n_clusters: Annotated[int, opt.option("Number of clusters.", "--n-clusters", "-c", min=1)],
    out: opt.TableOut,
    n_components: Annotated[
        int | None,
        opt.option("Components.", "--n-components", "-n", default="number of clusters"),
    ] = None,
    normalize: Annotated[Literal["njw", "none"], opt.option("njw: Ng, Jordan and Weiss.")] = "njw",
    kernel: opt.Kernel = "rbf",
    gamma: opt.Gamma = "scale",
    degree: opt.Degree = None,
    coef0: opt.Coef0 = None,
    eigen_solver: opt.Solver = None,
    tol: opt.Tol = None,
    max_iter: opt.MaxIter = None,
    random_state: opt.Seed = 0,
    max_memory: opt.MaxMemory = None,
    n_jobs: opt.Threads = None,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    ids: opt.Id = None,
    standardize: opt.Standardize = False,
    missing: opt.Missing = "error",
    one_hot: opt.OneHot = False,
    save_model: opt.SaveModel = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Cluster rows by their kernel components; labels count from 0.

    Example: ikpca cluster digits.npy --n-clusters 10 --gamma median --out labels.csv
    """
    settings = opt.given_parameters(locals(), ikpca.KernelSpectralClustering)
    from ikpca.cli.files import check_target, write_table

    with reporting(quiet, as_json) as report:
        check_outputs([out, save_model], [rows], force=force)
        check_target(out, ids)
        if eigen_solver in (None, "auto"):
            settings.setdefault("tol", _DEFAULT_TOL)
        model = ikpca.KernelSpectralClustering(**settings)
        table, encoder = read_training_rows(rows, columns, drop, ids, standardize, missing, one_hot)
        with report.progress("Clustering"):
            labels = model.fit_predict(table.rows)
        write_table(out, {"cluster": labels}, table.ids)
        if save_model is not None:
            store_encoder(model, encoder)
            model.save(save_model)
        sizes = [int((labels == label).sum()) for label in range(n_clusters)]
        document = {
            "input": rows, "rows": len(labels), "clusters": n_clusters, "sizes": sizes,
            "gamma": model.gamma_, "eigenvalues": model.eigenvalues_, "passes": model.n_iter_,
        }  # fmt: skip
        report.show(
            document,
            f"{len(labels)} rows in {n_clusters} clusters of {', '.join(map(str, sizes))}; "
            f"γ = {model.gamma_:.4g}.",
            wrote=[out] if save_model is None else [out, save_model],
        )
