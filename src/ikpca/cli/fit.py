"""Commands that fit models: ``fit`` and ``cluster``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import ikpca
from ikpca.cli import options as opt
from ikpca.cli.models import read_training_rows, store_encoder
from ikpca.cli.output import UsageError, check_outputs, reporting

if TYPE_CHECKING:
    from ikpca.kernels import Floats

#: Tolerance of the solver "auto", which landmarks reach for a million rows.
_DEFAULT_TOL = 1e-3
#: Bytes of the blocks of rows that a cluster gets.
_BLOCK_BYTES = 16 * 10**6


class _FitOptions(opt.SolverOptions, total=False):
    n_components: Annotated[
        str,
        opt.option(
            "Number of components, a fraction of the variance such as 0.95, or none for all.",
            "--n-components",
            "-n",
            default="16",
            metavar="NUMBER|none",
        ),
    ]
    preimage: Annotated[opt.PreimageName, opt.option("Method of 'ikpca inverse'.", default="auto")]


class _ClusterOptions(opt.SolverOptions, total=False):
    n_components: Annotated[
        int, opt.option("Components.", "--n-components", "-n", default="number of clusters")
    ]
    normalize: Annotated[
        Literal["njw", "none"], opt.option("njw: Ng, Jordan and Weiss.", default="njw")
    ]


def fit(
    rows: opt.Rows,
    out: opt.ModelOut,
    parameters: _FitOptions,
    columns: opt.ColumnOptions,
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
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Compute the kernel principal components of rows and write a model file.

    Defaults: 16 components, a Gaussian kernel (rbf), γ from the variance of the rows.

    Example: ikpca fit faces.npy --out faces.ikpca -n 32 --gamma median
    """
    defaults = {"n_components": "16", "kernel": "rbf", "gamma": "scale"}
    settings = opt.parse_settings(defaults | parameters)
    if settings.get("eigen_solver", "auto") == "auto":
        settings.setdefault("tol", _DEFAULT_TOL)
    with reporting(quiet, as_json) as report:
        if checkpoint is not None:
            interval = opt.parse_number(every)
            settings["checkpoint"] = ikpca.Checkpoint(checkpoint, interval, resume)
        elif resume:
            raise UsageError("--resume needs a checkpoint; pass --checkpoint with its path.")
        outputs, inputs = ([out], [rows, checkpoint]) if resume else ([out, checkpoint], [rows])
        check_outputs(outputs, inputs, force=force)
        table, encoder = read_training_rows(rows, **columns)
        # Rows of a file have no other owner.
        model = ikpca.KernelPCA(**settings, copy_X=False)
        start = time.perf_counter()
        with report.progress("Fitting"):
            if dask is None:
                model.fit(table.rows)
            else:
                model = _fit_on_cluster(model, table.rows, dask)
        seconds = time.perf_counter() - start
        store_encoder(model, encoder)
        # The checkpoint and the rows belong to this fit, not to the model.
        model.set_params(copy_X=True, checkpoint=None)
        model.save(out)
        last_pass = model.history_[-1] if model.history_ else None
        n_rows, n_columns = table.rows.shape
        document = {
            "input": rows,
            "rows": n_rows,
            "columns": n_columns,
            "gamma": model.gamma_,
            "eigenvalues": model.eigenvalues_,
            "explained_variance_ratio": model.explained_variance_ratio_,
            "residuals": None if last_pass is None else last_pass.residuals,
            "passes": model.n_iter_,
            "outcome": model.outcome_.name,
            "ended": model.outcome_.value,
            "entries": None if last_pass is None else last_pass.entries,
            "seconds": seconds,
        }
        passes = f"{model.n_iter_} passes" if model.n_iter_ != 1 else "1 pass"
        report.show(
            document,
            _components(document),
            f"{n_rows} rows × {n_columns} columns; γ = {model.gamma_:.4g}; {passes}; "
            f"{seconds:.2f} s.\nOutcome: {model.outcome_.value}",
            wrote=[out],
        )


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


def _components(document: dict[str, Any]) -> str:
    """Return a line for each component."""
    import pandas

    ratios = document["explained_variance_ratio"]
    columns = {
        "eigenvalue": document["eigenvalues"], "explained": ratios, "cumulative": ratios.cumsum(),
    }  # fmt: skip
    if document["residuals"] is not None:
        columns["residual"] = document["residuals"]
    formats = {"eigenvalue": "{:.6g}", "residual": "{:.1e}"}
    formatters = {name: formats.get(name, "{:.2%}").format for name in columns}
    # Columns may be shorter than others.
    frame = pandas.DataFrame({name: pandas.Series(values) for name, values in columns.items()})
    frame.index += 1
    return str(frame.to_string(formatters=formatters))


def cluster(
    rows: opt.Rows,
    n_clusters: Annotated[int, opt.option("Number of clusters.", "--n-clusters", "-c", min=1)],
    out: opt.TableOut,
    parameters: _ClusterOptions,
    columns: opt.ColumnOptions,
    save_model: opt.SaveModel = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Cluster rows by their kernel components; labels count from 0.

    Example: ikpca cluster digits.npy --n-clusters 10 --gamma median --out labels.csv
    """
    settings = opt.parse_settings(parameters)
    if settings.get("eigen_solver", "auto") == "auto":
        settings.setdefault("tol", _DEFAULT_TOL)
    from ikpca.cli.files import check_target, write_table

    with reporting(quiet, as_json) as report:
        check_outputs([out, save_model], [rows], force=force)
        check_target(out, columns.get("ids"))
        model = ikpca.KernelSpectralClustering(n_clusters, **settings)
        table, encoder = read_training_rows(rows, **columns)
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
