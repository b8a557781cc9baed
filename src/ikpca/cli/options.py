"""Options shared by several commands."""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypedDict, get_type_hints, is_typeddict

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


def with_groups(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of its groups; a group is the options that were given."""
    parameters, groups = list[Parameter](), dict[str, list[str]]()
    for name, parameter in signature(function, eval_str=True).parameters.items():
        if not is_typeddict(parameter.annotation):
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        hints = get_type_hints(parameter.annotation, include_extras=True)
        groups[name] = [*hints]
        for key, hint in hints.items():
            parameters.append(Parameter(key, Parameter.KEYWORD_ONLY, default=None, annotation=hint))

    def command(**values: Any) -> None:
        for group, names in groups.items():
            options = [(name, values.pop(name)) for name in names]
            values[group] = {
                name: value for name, value in options if value is not None and value is not False
            }
        function(**values)

    command.__name__, command.__doc__ = function.__name__, function.__doc__
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return command


def parse_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as parameters of an estimator, by default with a fixed seed.

    Numbers and "none" may be given for parameters that also take words.
    """
    words = ("n_components", "gamma", "normalize")
    return {"random_state": 0} | {
        name: parse_number(value) if name in words else value for name, value in options.items()
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
_ID = (
    "Columns that identify rows, which are copied to tables of results; by default the index that "
    "pandas writes."
)
Id: TypeAlias = Annotated[str | None, option(_ID, "--id", panel=_TABLES)]
Json: TypeAlias = Annotated[bool, option("Print one JSON document instead of tables.", "--json")]
_FORCE = "Overwrite existing output files; inputs are never overwritten."
Force: TypeAlias = Annotated[bool, option(_FORCE, "--force")]
_QUIET = "No tables, bars or warnings; errors remain."
Quiet: TypeAlias = Annotated[bool, option(_QUIET, "--quiet", "-q")]
Seed: TypeAlias = Annotated[
    int, option("Seed of random numbers.", min=0, max=2**32 - 1, metavar="<int>", default="0")
]
_MEMORY = "Memory budget such as 2GB; by default a quarter of all memory."
MaxMemory: TypeAlias = Annotated[str | None, option(_MEMORY)]
_COLUMNS = (
    "Columns of a table to use, by default all: names and patterns such as 'x*', separated by "
    "commas; without names, numbers from 1."
)
_STANDARDIZE = "Give columns of numbers mean 0 and standard deviation 1."
_MISSING = "Empty cells: error, drop their rows, or median (of text the most frequent)."
_ONE_HOT = "Replace a text column by a column of zeros and ones for each of its values."
_GAMMA = (
    "γ of rbf, poly, sigmoid and laplacian. scale: 1/(columns · variance); median: from the median "
    "distance between rows; none: 1/columns."
)
_THREADS = "Number of threads; by default the number of processors."
_TOL = "Tolerance of ‖K'v − λv‖/λ₁; 0 is machine precision."
_MAX_ITER = "Maximum number of passes over the kernel matrix."


class ColumnOptions(TypedDict, total=False):
    """Options of a fit for the columns of a table."""

    columns: Annotated[str, option(_COLUMNS, panel=_TABLES)]
    drop: Annotated[str, option("Columns to leave out.", panel=_TABLES)]
    ids: Id
    standardize: Annotated[bool, option(_STANDARDIZE, "--standardize", panel=_TABLES)]
    missing: Annotated[
        Literal["error", "drop", "median"], option(_MISSING, default="error", panel=_TABLES)
    ]
    one_hot: Annotated[bool, option(_ONE_HOT, "--one-hot", panel=_TABLES)]


class KernelOptions(TypedDict, total=False):
    """Parameters of all estimators that the commands fit."""

    kernel: Annotated[KernelName, option("Kernel function.", "--kernel", "-k", default="rbf")]
    gamma: Annotated[str, option(_GAMMA, default="scale", metavar="NUMBER|scale|median|none")]
    random_state: Seed
    max_memory: MaxMemory
    n_jobs: Annotated[int, option(_THREADS)]


class SolverOptions(KernelOptions, total=False):
    """Parameters of estimators that have a solver."""

    degree: Annotated[float, option("Degree of poly.", default="3")]
    coef0: Annotated[float, option("Constant of poly and sigmoid.", default="1")]
    eigen_solver: Annotated[
        SolverName, option("Eigensolver.", "--eigen-solver", "-s", default="auto")
    ]
    tol: Annotated[float, option(_TOL, default="0.001 with the solver auto, else 0")]
    max_iter: Annotated[int, option(_MAX_ITER)]
