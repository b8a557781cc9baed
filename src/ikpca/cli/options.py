"""Options shared by several commands."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

# Written out, since importing the library to list them would make the help slow; a test compares.
KERNELS = ("linear", "poly", "rbf", "sigmoid", "cosine", "laplacian", "precomputed")
SOLVERS = (
    "auto", "dense", "krylov", "arpack", "randomized", "kha", "kha/t", "kha/et", "kha-smd",
)  # fmt: skip
PREIMAGES = ("auto", "fixed-point", "gradient", "mds", "neighbours", "ridge")


def one_of(choices: Sequence[str]) -> dict[str, Any]:
    """Settings of an option that takes one of some words: checked, suggested, completed."""

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


def _number_or(words: dict[str, Any], number: Callable[[str], Any], rule: str) -> dict[str, Any]:
    """Settings of an option that takes a number or a word that stands for something."""

    def parse(text: str) -> Any:
        # A default comes as it is.
        if not isinstance(text, str):
            return text
        if text in words:
            return words[text]
        try:
            return number(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r}: {rule}.") from None

    return {"parser": parse, "metavar": "NUMBER|WORD"}


def _count_or_share(text: str) -> int | float:
    return int(text) if text.lstrip("+-").isdecimal() else float(text)


Rows: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="INPUT",
        help="Rows: .npy, .npz:member, .csv, .parquet, .png, .jpg, .tif, a folder of pictures, "
        ".amc or .bvh.",
    ),
]
Json: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print one JSON document instead of tables.")
]
Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="No tables, bars or warnings; errors remain.")
]
Seed: TypeAlias = Annotated[
    int,
    typer.Option(
        "--seed",
        min=0,
        max=2**32 - 1,
        metavar="<int>",
        help="Of everything that is drawn at random.",
    ),
]
MaxMemory: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--max-memory", help="Such as 500MB or 2GB; without it, a quarter of the machine's memory."
    ),
]
Dask: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS|local",
        help="Fit on a Dask cluster: the address of its scheduler, or local for a worker process "
        "on each processor here.",
    ),
]
Threads: TypeAlias = Annotated[
    int | None,
    typer.Option("--threads", help="Threads; without it, as many as the machine has processors."),
]
Checkpoint: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="File that says, now and then, where the fit is. Ctrl-C and a kill lose no more than "
        "what came after.",
    ),
]
CheckpointEvery: TypeAlias = Annotated[
    Any,
    typer.Option(
        "--checkpoint-every",
        help="Passes (batches of a stream), or a time such as 30s, 5min or 1h.",
        show_default="by the estimator",
        **_number_or({}, lambda text: int(text) if text.isdecimal() else text, "is no interval"),
    ),
]
Resume: TypeAlias = Annotated[
    bool,
    typer.Option("--resume", help="Go on from the checkpoint, if there is one, to the same bits."),
]
Grey: TypeAlias = Annotated[
    bool, typer.Option("--grey", help="Turn pictures in colour into grey ones.")
]
Scale: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--scale/--no-scale", help="Whether pixels of pictures are divided by the value of white."
    ),
]
Components: TypeAlias = Annotated[
    Any,
    typer.Option(
        "--n-components",
        "-n",
        help="How many components; 0.95 asks for that share of the variance; all for all.",
        show_default="16",
        **_number_or({"all": "all"}, _count_or_share, "is no number, no share and not 'all'"),
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
            {"scale": "scale", "median": "median", "columns": "columns"},
            float,
            "is no number, and neither scale, median nor columns",
        ),
    ),
]
Degree: TypeAlias = Annotated[
    float | None, typer.Option("--degree", help="Of poly.", show_default="3")
]
Coef0: TypeAlias = Annotated[
    float | None, typer.Option("--coef0", help="Added in poly and sigmoid.", show_default="1")
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
    typer.Option("--tol", help="Residual to stop at, ‖K'v − λv‖/λ₁; 0 is machine precision."),
]
MaxIter: TypeAlias = Annotated[
    int | None, typer.Option("--max-iter", help="Passes over the kernel matrix, at most.")
]
