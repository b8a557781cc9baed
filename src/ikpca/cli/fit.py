"""``ikpca fit``: fit a model to a table and save it."""

from __future__ import annotations

import time
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import ikpca
from ikpca.cli.errors import UsageError
from ikpca.cli.models import ESTIMATORS, build, store_encoder
from ikpca.cli.options import (
    PREIMAGES,
    Checkpoint,
    CheckpointEvery,
    Coef0,
    Columns,
    Components,
    Dask,
    Degree,
    Drop,
    Force,
    Gamma,
    Id,
    Json,
    Kernel,
    MaxIter,
    MaxMemory,
    Missing,
    OneHot,
    Quiet,
    Resume,
    Rows,
    Seed,
    Solver,
    Standardize,
    Threads,
    Tol,
    one_of,
)
from ikpca.cli.output import check_outputs, pass_progress, reporting, resume_hint

if TYPE_CHECKING:
    from ikpca.estimators.base import SavedEstimator
    from ikpca.tables import Table

#: Bytes of the blocks of rows that a cluster gets.
_BLOCK_BYTES = 16 * 10**6
#: Options by parameter of the estimators; options that an estimator does not have are rejected.
_FLAGS = {
    "n_components": "--n-components",
    "kernel": "--kernel",
    "gamma": "--gamma",
    "degree": "--degree",
    "coef0": "--coef0",
    "eigen_solver": "--solver",
    "tol": "--tol",
    "max_iter": "--max-iter",
    "preimage": "--preimage",
    "max_memory": "--max-memory",
    "n_jobs": "--threads",
    "checkpoint": "--checkpoint",
}


def fit(
    rows: Rows,
    out: Annotated[Path, typer.Option("--out", "-o", help="The model file to write.")],
    estimator: Annotated[
        str,
        typer.Option(
            "--estimator", help=f"One of {', '.join(ESTIMATORS)}.", **one_of(tuple(ESTIMATORS))
        ),
    ] = "kernel-pca",
    n_components: Components = None,
    kernel: Kernel = None,
    gamma: Gamma = None,
    degree: Degree = None,
    coef0: Coef0 = None,
    eigen_solver: Solver = None,
    tol: Tol = None,
    max_iter: MaxIter = None,
    preimage: Annotated[
        str | None,
        typer.Option(
            "--preimage",
            help=f"Method of 'ikpca inverse': {', '.join(PREIMAGES)}.",
            show_default="auto",
            **one_of(PREIMAGES),
        ),
    ] = None,
    random_state: Seed = 0,
    max_memory: MaxMemory = None,
    n_jobs: Threads = None,
    checkpoint: Checkpoint = None,
    every: CheckpointEvery = 1,
    resume: Resume = False,
    dask: Dask = None,
    columns: Columns = None,
    drop: Drop = None,
    ids: Id = None,
    standardize: Standardize = False,
    missing: Missing = "error",
    one_hot: OneHot = False,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute the kernel principal components of rows and write a model file.

    Defaults: 16 components, a Gaussian kernel (rbf), γ from the variance of the rows.

    Example: ikpca fit faces.npy --out faces.ikpca -n 32 --gamma median
    """
    given = locals()
    # Imported here to keep the help fast.
    from ikpca.columns import ColumnOptions

    with reporting(quiet, as_json) as report:
        model = build(estimator, {name: given[name] for name in _FLAGS}, _FLAGS)
        # Rows of a file have no other owner.
        copying = {"copy_X": True} if hasattr(model, "copy_X") else {}
        model.set_params(random_state=random_state, **dict.fromkeys(copying, False))
        if checkpoint is not None:
            model.set_params(checkpoint=ikpca.Checkpoint(checkpoint, every, resume))
        elif resume:
            raise UsageError("--resume needs a checkpoint; pass --checkpoint with its path.")
        outputs, inputs = ([out], [rows, checkpoint]) if resume else ([out, checkpoint], [rows])
        check_outputs(outputs, inputs, force=force)
        selected = ColumnOptions(columns, drop, ids, standardize, missing, one_hot)
        table, encoder = selected.read(rows)
        start = time.perf_counter()
        with resume_hint(checkpoint, resume=resume):
            model = fit_model(model, table.rows, dask, shown=not quiet)
        seconds = time.perf_counter() - start
        store_encoder(model, encoder)
        # The checkpoint and the rows belong to this fit, not to the model.
        model.set_params(**copying)
        if checkpoint is not None:
            model.set_params(checkpoint=None)
        model.save(out)
        document = _document(model, table, seconds)
        report.show(
            {"input": rows, "estimator": estimator, **document},
            _components_table(document),
            _costs(document),
            wrote=[out],
        )


def fit_model(model: SavedEstimator, rows: Any, dask: str | None, *, shown: bool) -> Any:
    """Fit a model; ``dask`` is an address, "local", or None for this process."""
    if dask is None:
        with pass_progress(model, "Passes", shown=shown):
            return model.fit(rows)
    try:
        from dask.array import from_array

        from ikpca.dask import connect, to_dask
    except ImportError:
        raise UsageError("--dask needs the package dask; run: pip install 'ikpca[dask]'.") from None
    remote = to_dask(model)
    with connect(dask) as client:
        remote.set_params(client=client)
        with pass_progress(remote, "Passes", shown=shown):
            n_rows = max(1, _BLOCK_BYTES // max(1, rows[:1].nbytes))
            remote.fit(from_array(rows, chunks=(n_rows, -1)))
        return remote.to_local()


def _document(model: SavedEstimator, table: Table, seconds: float) -> dict[str, Any]:
    history = getattr(model, "history_", None) or [None]
    last, outcome = history[-1], getattr(model, "outcome_", None)
    return {
        "rows": len(table.rows),
        "columns": table.rows.shape[1],
        "gamma": getattr(model, "gamma_", None),
        "eigenvalues": getattr(model, "eigenvalues_", getattr(model, "explained_variance_", None)),
        "explained_variance_ratio": getattr(model, "explained_variance_ratio_", None),
        "residuals": None if last is None else last.residuals,
        "passes": getattr(model, "n_iter_", None),
        "outcome": None if outcome is None else outcome.name,
        "ended": None if outcome is None else outcome.value,
        "entries": None if last is None else last.entries,
        "seconds": seconds,
    }


def _components_table(document: dict[str, Any]) -> Any:
    from rich import box
    from rich.table import Table as Printed

    printed = Printed(box=box.SIMPLE_HEAD, padding=0, pad_edge=False)
    for head in ("component", "eigenvalue", "explained", "together", "residual"):
        printed.add_column(head, justify="right")
    shares, residuals = document["explained_variance_ratio"], document["residuals"]
    columns = [
        [f"{value:.6g}" for value in document["eigenvalues"]],
        [f"{share:.2%}" for share in ([] if shares is None else shares)],
        [f"{share:.2%}" for share in accumulate([] if shares is None else shares)],
        [f"{residual:.1e}" for residual in ([] if residuals is None else residuals)],
    ]
    for number, cells in enumerate(zip_longest(*columns, fillvalue="–"), start=1):
        printed.add_row(str(number), *cells)
    return printed


def _costs(document: dict[str, Any]) -> str:
    """Return a summary of the cost and the outcome of the fit."""
    parts = [f"{document['rows']} rows × {document['columns']} columns"]
    if document["gamma"] is not None:
        parts.append(f"γ = {document['gamma']:.4g}")
    if document["passes"] is not None:
        parts.append(f"{document['passes']} passes" if document["passes"] != 1 else "1 pass")
    if document["entries"] is not None:
        share = document["entries"] / document["rows"] ** 2
        parts.append(f"{document['entries'] / 1e6:.1f} M entries of K ({share:.2f} l²)")
    parts.append(f"{document['seconds']:.2f} s")
    ended = f"\nEnded: {document['ended']}" if document["ended"] else ""
    return "; ".join(parts) + "." + ended
