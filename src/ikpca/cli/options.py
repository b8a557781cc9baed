"""Options shared by several commands."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

# Repeated here, as importing the library would make the help slow; a test compares them.
KERNELS = ("linear", "poly", "rbf", "sigmoid", "cosine", "laplacian", "precomputed")
SOLVERS = (
    "auto", "dense", "krylov", "nystrom", "arpack", "randomized", "kha", "kha/t", "kha/et",
    "kha-smd",
)  # fmt: skip
#: Help panel of the options for columns.
_TABLES = "Columns of tables"
PREIMAGES = ("auto", "fixed-point", "gradient", "mds", "neighbors", "ridge")


def one_of(choices: Sequence[str]) -> dict[str, Any]:
    """Return settings of an option with choices: validation, suggestions, completion."""

    def check(value: str | None) -> str | None:
        if value is None or value in choices:
            return value
        near = difflib.get_close_matches(value.lower(), choices, n=1, cutoff=0.4)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise typer.BadParameter(
            f"{value!r} is unknown.{meant} Choose one of {', '.join(choices)}."
        )

    def complete(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return {"callback": check, "autocompletion": complete}


def _number_or(words: Collection[str], number: Callable[[str], Any], rule: str) -> dict[str, Any]:
    """Return settings of an option that takes a number or one of some words."""

    def parse(text: str) -> Any:
        # Defaults are not parsed.
        if not isinstance(text, str) or text in words:
            return text
        try:
            return number(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r}: {rule}.") from None

    return {"parser": parse, "metavar": "NUMBER|WORD"}


def _count_or_fraction(text: str) -> int | float:
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


COUNT_OR_FRACTION = _number_or((), _count_or_fraction, "must be a number or a fraction")
Rows: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="Rows: .npy, .npz:member, .csv, .tsv or .parquet.",
    ),
]
Model: TypeAlias = Annotated[Path, typer.Argument(help="A model file that 'ikpca fit' wrote.")]
Columns: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--columns",
        help="Columns of a table to use, by default all: names, patterns such as 'x*' and ranges "
        "such as a:d, separated by commas; without names, numbers from 1.",
        rich_help_panel=_TABLES,
    ),
]
Drop: TypeAlias = Annotated[
    str | None,
    typer.Option("--drop", help="Columns to leave out.", rich_help_panel=_TABLES),
]
Id: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Columns that identify rows; they are copied to .csv and .parquet output.",
        rich_help_panel=_TABLES,
    ),
]
Standardize: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--standardize",
        help="Give columns of numbers mean 0 and standard deviation 1.",
        rich_help_panel=_TABLES,
    ),
]
Missing: TypeAlias = Annotated[
    str,
    typer.Option(
        "--missing",
        help="Empty cells: error, drop their rows, or median (of text the most frequent).",
        rich_help_panel=_TABLES,
        **one_of(("error", "drop", "median")),
    ),
]
OneHot: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--one-hot",
        help="Replace a text column by a column of zeros and ones for each of its values.",
        rich_help_panel=_TABLES,
    ),
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of tables.")
]
Force: TypeAlias = Annotated[
    bool,
    typer.Option("--force", help="Overwrite existing output files; inputs are never overwritten."),
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="No tables, bars or warnings; errors remain.")
]
Seed: TypeAlias = Annotated[
    int,
    typer.Option("--seed", min=0, max=2**32 - 1, metavar="<int>", help="Seed of random numbers."),
]
MaxMemory: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--max-memory", help="Memory budget such as 2GB; by default a quarter of all memory."
    ),
]
Dask: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS|local",
        help="Fit on a Dask cluster: the address of its scheduler, or local for one worker process "
        "per processor of this machine.",
    ),
]
Threads: TypeAlias = Annotated[
    int | None,
    typer.Option("--threads", help="Number of threads; by default the number of processors."),
]
Checkpoint: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="Checkpoint file, from which an interrupted fit can be resumed.",
    ),
]
CheckpointEvery: TypeAlias = Annotated[
    Any,
    typer.Option(
        "--checkpoint-every",
        help="Interval in passes, or a time such as 30s, 5min or 1h.",
        **_number_or({}, lambda text: int(text) if text.isdecimal() else text, "not an interval"),
    ),
]
Resume: TypeAlias = Annotated[
    bool,
    typer.Option("--resume", help="Resume from the checkpoint if it exists; bit-exact."),
]
Components: TypeAlias = Annotated[
    Any,
    typer.Option(
        "--n-components",
        "-n",
        help="Number of components, a fraction of the variance such as 0.95, or all.",
        show_default="16",
        **_number_or(("all",), _count_or_fraction, "must be a number, a fraction or 'all'"),
    ),
]
Kernel: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        "-k",
        help=f"One of {', '.join(KERNELS)}.",
        show_default="rbf",
        **one_of(KERNELS),
    ),
]
Gamma: TypeAlias = Annotated[
    Any,
    typer.Option(
        "--gamma",
        help="γ of rbf, poly, sigmoid and laplacian. scale: 1/(columns · variance); median: from "
        "the median distance between rows; columns: 1/columns.",
        show_default="scale",
        **_number_or(
            ("scale", "median", "columns"), float, "must be a number, scale, median or columns"
        ),
    ),
]
Degree: TypeAlias = Annotated[
    float | None, typer.Option("--degree", help="Degree of poly.", show_default="3")
]
Coef0: TypeAlias = Annotated[
    float | None, typer.Option("--coef0", help="Constant of poly and sigmoid.", show_default="1")
]
Solver: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--solver",
        "-s",
        help=f"One of {', '.join(SOLVERS)}.",
        show_default="auto",
        **one_of(SOLVERS),
    ),
]
Tol: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--tol",
        help="Tolerance of ‖K'v − λv‖/λ₁; 0 is machine precision.",
        show_default="0.001 with the solver auto, else 0",
    ),
]
MaxIter: TypeAlias = Annotated[
    int | None, typer.Option("--max-iter", help="Maximum number of passes over the kernel matrix.")
]
