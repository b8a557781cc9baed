"""``ikpca cluster``: kernel spectral clustering of rows."""

from __future__ import annotations

from typing import Annotated, Literal

import ikpca
from ikpca.cli import options as opt
from ikpca.cli.models import read_training_rows, store_encoder
from ikpca.cli.output import check_outputs, reporting


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
    settings = opt.given_options(locals(), ikpca.KernelSpectralClustering)
    from ikpca.cli.files import check_target, write_table
    from ikpca.columns import ColumnOptions

    with reporting(quiet, as_json) as report:
        check_outputs([out, save_model], [rows], force=force)
        check_target(out, ids)
        if eigen_solver in (None, "auto"):
            settings.setdefault("tol", opt.DEFAULT_TOL)
        model = ikpca.KernelSpectralClustering(**settings)
        selected = ColumnOptions(columns, drop, ids, standardize, missing, one_hot)
        table, encoder = read_training_rows(rows, selected)
        with report.progress("Clustering"):
            labels = model.fit_predict(table.rows)
        write_table(out, {"cluster": labels}, table.ids)
        if save_model is not None:
            store_encoder(model, encoder)
            model.save(save_model)
        sizes = [int((labels == label).sum()) for label in range(n_clusters)]
        report.show(
            {
                "input": rows,
                "rows": len(labels),
                "clusters": n_clusters,
                "sizes": sizes,
                "gamma": model.gamma_,
                "eigenvalues": model.eigenvalues_,
                "passes": model.n_iter_,
            },
            f"{len(labels)} rows in {n_clusters} clusters of {', '.join(map(str, sizes))}; "
            f"γ = {model.gamma_:.4g}.",
            wrote=[out] if save_model is None else [out, save_model],
        )
