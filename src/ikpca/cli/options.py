"""Options shared by several commands."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

# Repeated here, as importing the library would make the help slow; a test compares them.
KernelName = Literal["linear", "poly", "rbf", "sigmoid", "cosine", "laplacian", "precomputed"]
SolverName = Literal[
    "auto", "dense", "krylov", "nystrom", "arpack", "randomized", "kha", "kha/t", "kha/et",
    "kha-smd",
]  # fmt: skip
PreimageName = Literal["auto", "fixed-point", "gradient", "mds", "neighbors", "ridge"]
#: Help panel of the options for columns.
_TABLES = "Columns of tables"


def given_parameters(options: Mapping[str, Any], *estimators: type) -> dict[str, Any]:
    """Return the options that were given and that are parameters of one of the estimators.

    Numbers and "none" may be given for parameters that also take words.
    """
    names = {name for estimator in estimators for name in signature(estimator).parameters}
    given = {name: value for name, value in options.items() if name in names and value is not None}
    return {
        name: parse_number(value) if name in ("n_components", "gamma", "normalize") else value
        for name, value in given.items()
    }


def parse_number(text: Any) -> Any:
    """Return a number, None for "none", and other words as they are."""
    if text == "none":
        return None
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


def option(text: str, *names: str, default: str = "", panel: str = "", **settings: Any) -> Any:
    """Return an option, by default with the name of the parameter."""
    if default:
        settings["show_default"] = default
    return typer.Option(*names, help=text, rich_help_panel=panel or None, **settings)


Rows: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="Rows: .csv, .tsv, .txt (also .gz), .xlsx:sheet, .parquet, .npy, .npz:member, or - "
        "for CSV from standard input.",
    ),
]
Model: TypeAlias = Annotated[Path, typer.Argument(help="A model file that 'ikpca fit' wrote.")]
ModelOut: TypeAlias = Annotated[Path, option("The model file to write.", "--out", "-o")]
SaveModel: TypeAlias = Annotated[Path | None, option("Also write the model to a file.")]
TableOut: TypeAlias = Annotated[
    str,
    option(
        "Results: .csv, .tsv (also .gz), .xlsx, .parquet, .npy, .npz, or - for standard output.",
        "--out",
        "-o",
    ),
]
_COLUMNS = (
    "Columns of a table to use, by default all: names and patterns such as 'x*', separated by "
    "commas; without names, numbers from 1."
)
Columns: TypeAlias = Annotated[str | None, option(_COLUMNS, panel=_TABLES)]
Drop: TypeAlias = Annotated[str | None, option("Columns to leave out.", panel=_TABLES)]
_ID = (
    "Columns that identify rows, which are copied to tables of results; by default the index that "
    "pandas writes."
)
Id: TypeAlias = Annotated[str | None, option(_ID, "--id", panel=_TABLES)]
_STANDARDIZE = "Give columns of numbers mean 0 and standard deviation 1."
Standardize: TypeAlias = Annotated[bool, option(_STANDARDIZE, "--standardize", panel=_TABLES)]
_MISSING = "Empty cells: error, drop their rows, or median (of text the most frequent)."
Missing: TypeAlias = Annotated[Literal["error", "drop", "median"], option(_MISSING, panel=_TABLES)]
_ONE_HOT = "Replace a text column by a column of zeros and ones for each of its values."
OneHot: TypeAlias = Annotated[bool, option(_ONE_HOT, "--one-hot", panel=_TABLES)]
Json: TypeAlias = Annotated[bool, option("Print one JSON document instead of tables.", "--json")]
_FORCE = "Overwrite existing output files; inputs are never overwritten."
Force: TypeAlias = Annotated[bool, option(_FORCE, "--force")]
_QUIET = "No tables, bars or warnings; errors remain."
Quiet: TypeAlias = Annotated[bool, option(_QUIET, "--quiet", "-q")]
Seed: TypeAlias = Annotated[
    int, option("Seed of random numbers.", min=0, max=2**32 - 1, metavar="<int>")
]
_MEMORY = "Memory budget such as 2GB; by default a quarter of all memory."
MaxMemory: TypeAlias = Annotated[str | None, option(_MEMORY)]
_THREADS = "Number of threads; by default the number of processors."
Threads: TypeAlias = Annotated[int | None, option(_THREADS)]
_COMPONENTS = "Number of components, a fraction of the variance such as 0.95, or none for all."
Components: TypeAlias = Annotated[
    str | None, option(_COMPONENTS, "--n-components", "-n", default="16", metavar="NUMBER|none")
]
Kernel: TypeAlias = Annotated[
    KernelName | None, option("Kernel function.", "--kernel", "-k", default="rbf")
]
_GAMMA = (
    "γ of rbf, poly, sigmoid and laplacian. scale: 1/(columns · variance); median: from the median "
    "distance between rows; none: 1/columns."
)
Gamma: TypeAlias = Annotated[
    str | None, option(_GAMMA, default="scale", metavar="NUMBER|scale|median|none")
]
Degree: TypeAlias = Annotated[float | None, option("Degree of poly.", default="3")]
Coef0: TypeAlias = Annotated[float | None, option("Constant of poly and sigmoid.", default="1")]
Solver: TypeAlias = Annotated[
    SolverName | None, option("Eigensolver.", "--eigen-solver", "-s", default="auto")
]
_TOL = "Tolerance of ‖K'v − λv‖/λ₁; 0 is machine precision."
Tol: TypeAlias = Annotated[float | None, option(_TOL, default="0.001 with the solver auto, else 0")]
_MAX_ITER = "Maximum number of passes over the kernel matrix."
MaxIter: TypeAlias = Annotated[int | None, option(_MAX_ITER)]


def flag(parameter: str) -> str:
    """Return the option of a parameter of an estimator."""
    return f"--{parameter.replace('_', '-')}"
