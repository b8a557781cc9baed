"""``ikpca cluster``: kernel spectral clustering of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ikpca.cli.models import DEFAULT_TOL, check_output, store_encoder, write_rows
from ikpca.cli.options import (
    Coef0,
    Columns,
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
    Rows,
    Seed,
    Solver,
    Standardize,
    Threads,
    Tol,
    one_of,
)
from ikpca.cli.output import check_outputs, reporting

_NORMALIZE = one_of(("njw", "none"))
_OPTIONS = (
    "gamma", "degree", "coef0", "kernel", "eigen_solver", "tol", "max_iter", "max_memory", "n_jobs",
)  # fmt: skip


def cluster(
    rows: Rows,
    n_clusters: Annotated[int, typer.Option("--clusters", "-c", min=1, help="Number of clusters.")],
    out: Annotated[
        str, typer.Option("--out", "-o", help="Labels from 0: .npy, .npz, .parquet or .csv.")
    ],
    n_components: Annotated[
        int | None,
        typer.Option("--n-components", "-n", help="Components.", show_default="number of clusters"),
    ] = None,
    normalize: Annotated[
        str,
        typer.Option("--normalize", help="njw: Ng, Jordan and Weiss; none.", **_NORMALIZE),
    ] = "njw",
    kernel: Kernel = "rbf",
    gamma: Gamma = "scale",
    degree: Degree = None,
    coef0: Coef0 = None,
    eigen_solver: Solver = None,
    tol: Tol = None,
    max_iter: MaxIter = None,
    random_state: Seed = 0,
    max_memory: MaxMemory = None,
    n_jobs: Threads = None,
    columns: Columns = None,
    drop: Drop = None,
    ids: Id = None,
    standardize: Standardize = False,
    missing: Missing = "error",
    one_hot: OneHot = False,
    save_model: Annotated[
        Path | None, typer.Option("--save-model", help="Also write the model to a file.")
    ] = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Cluster rows by their kernel components.

    Example: ikpca cluster digits.npy --clusters 10 --gamma median --out labels.csv
    """
    settings = {
        name: value for name, value in locals().items() if name in _OPTIONS and value is not None
    }
    from ikpca import KernelSpectralClustering
    from ikpca.columns import ColumnOptions

    with reporting(quiet, as_json) as report:
        check_outputs([out, save_model], [rows], force=force)
        check_output(out, ids)
        if eigen_solver in (None, "auto"):
            settings.setdefault("tol", DEFAULT_TOL)
        if settings["gamma"] == "columns":
            settings["gamma"] = None
        model: Any = KernelSpectralClustering(
            n_clusters,
            n_components=n_components,
            normalize=None if normalize == "none" else "njw",
            random_state=random_state,
            **settings,
        )
        selected = ColumnOptions(columns, drop, ids, standardize, missing, one_hot)
        table, encoder = selected.read(rows)
        with report.progress("Clustering"):
            labels = model.fit_predict(table.rows)
        write_rows(out, labels[:, None], ["cluster"], table.ids)
        if save_model is not None:
            store_encoder(model, encoder)
            model.save(save_model)
        sizes = [int((labels == label).sum()) for label in range(n_clusters)]
        document = {"input": rows, "rows": len(labels), "clusters": n_clusters, "sizes": sizes}
        attributes = {"eigenvalues": model.eigenvalues_, "passes": model.n_iter_}
        report.show(
            {**document, "gamma": model.gamma_, **attributes},
            f"{len(labels)} rows in {n_clusters} clusters of {', '.join(map(str, sizes))}; "
            f"γ = {model.gamma_:.4g}.",
            wrote=[out] if save_model is None else [out, save_model],
        )
