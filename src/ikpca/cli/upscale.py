"""``ikpca upscale``: a picture enlarged by what sharp pictures are like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ikpca.cli.failures import Mistake
from ikpca.cli.options import Json, MaxMemory, Quiet, Seed, one_of

if TYPE_CHECKING:
    from ikpca.cli.report import Report

__all__ = ["upscale"]

_ENLARGEMENTS = ("nearest", "bilinear", "bicubic")
#: What a model has settled for good.
_PANEL = "With --train"


def upscale(
    picture: Annotated[Path, typer.Argument(help="The picture to enlarge: .png, .jpg, .tif.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The picture to write.")],
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="A model that --save-model wrote.")
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option("--train", "-t", help="Folder of sharp pictures to learn from."),
    ] = None,
    factor: Annotated[
        int | None,
        typer.Option(
            "--factor",
            "-f",
            help="How many times larger per side.",
            show_default="4",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    patch: Annotated[
        int,
        typer.Option(
            "--patch",
            help="Pixels per side of a window; 0: whole pictures.",
            rich_help_panel=_PANEL,
        ),
    ] = 14,
    n_components: Annotated[
        int,
        typer.Option("--n-components", "-n", help="Components of windows.", rich_help_panel=_PANEL),
    ] = 300,
    n_patches: Annotated[
        int,
        typer.Option("--n-patches", help="Windows to learn from, at most.", rich_help_panel=_PANEL),
    ] = 7000,
    enlargement: Annotated[
        str,
        typer.Option(
            "--enlargement",
            help=f"What windows are before the projection: {', '.join(_ENLARGEMENTS)}.",
            rich_help_panel=_PANEL,
            **one_of(_ENLARGEMENTS),
        ),
    ] = "bicubic",
    consistent: Annotated[
        bool,
        typer.Option(
            "--consistent/--no-consistent",
            help="Whether the result, shrunk again, is exactly the picture given.",
            rich_help_panel=_PANEL,
        ),
    ] = True,
    save_model: Annotated[
        Path | None,
        typer.Option(
            "--save-model", help="Also write what was learned to a file.", rich_help_panel=_PANEL
        ),
    ] = None,
    random_state: Seed = 0,
    max_memory: MaxMemory = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Enlarge a picture by what windows of sharp pictures are like.

    Example: ikpca upscale small.png --train sharp/ --factor 4 --out large.png
    """
    from ikpca.cli.report import Report
    from ikpca.datasets import read_picture
    from ikpca.datasets.pictures import check_picture_target

    if (model is None) == (train is None):
        raise Mistake("pass either --model or --train.")
    if model is not None and factor is not None:
        raise Mistake("--factor belongs to --train; a model has its own.")
    with Report(quiet, as_json) as report:
        pixels = read_picture(picture)
        check_picture_target(out, pixels.shape, pixels.dtype)
        if model is None:
            settings = {
                "factor": 4 if factor is None else factor,
                "patch": patch or None,
                "n_components": n_components,
                "n_patches": n_patches,
                "enlargement": enlargement,
                "consistent": consistent,
                "random_state": random_state,
                "max_memory": max_memory,
            }
            fitted = _trained(report, train, settings, save_model)
        else:
            fitted = _opened(model)
        large = _enlarged(report, fitted, pixels, out)
        report.show(
            {
                "input": str(picture),
                "factor": fitted.factor,
                "shape": large,
                "gamma": fitted.gamma_,
                "patches": fitted.n_patches_,
            },
            f"{pixels.shape[1]}×{pixels.shape[0]} to {large[1]}×{large[0]} pixels; learned from "
            f"{fitted.n_patches_} windows, γ = {fitted.gamma_:.4g}.",
            wrote=[out] if save_model is None else [out, save_model],
        )


def _trained(
    report: Report, folder: Path | None, settings: dict[str, Any], save_model: Path | None
) -> Any:
    from ikpca.applications import Hyperresolution
    from ikpca.cli.waiting import bar
    from ikpca.datasets import picture_files, read_picture
    from ikpca.datasets.pictures import in_units_of_white
    from ikpca.errors import InvalidInput
    from ikpca.storage import check_place

    if folder is None or not folder.is_dir():
        raise InvalidInput(f"{folder}: there is no such folder; name one of sharp pictures.")
    if save_model is not None:
        check_place(save_model)
    fitted = Hyperresolution(**settings)
    sharp = [in_units_of_white(read_picture(file, grey=True)) for file in picture_files(folder)]
    with bar("Learning", shown=report.shows_progress):
        fitted.fit(sharp)
    if save_model is not None:
        fitted.save(save_model)
    return fitted


def _opened(path: Path) -> Any:
    import ikpca
    from ikpca.errors import InvalidInput

    fitted = ikpca.load(path)
    if type(fitted).__name__ != "Hyperresolution":
        raise InvalidInput(
            f"{path}: is a {type(fitted).__name__}, which enlarges nothing; pass a model that "
            "'ikpca upscale --save-model' wrote."
        )
    return fitted


def _enlarged(report: Report, fitted: Any, pixels: Any, out: Path) -> tuple[int, ...]:
    """Every channel by itself, as what is learned is grey."""
    import numpy as np

    from ikpca.cli.waiting import bar
    from ikpca.datasets import PictureForm, write_picture
    from ikpca.datasets.pictures import in_units_of_white, white_of

    scaled = in_units_of_white(pixels)
    with bar("Enlarging", shown=report.shows_progress):
        if scaled.ndim == 2:
            large = fitted.transform(scaled)
        else:
            large = np.stack(fitted.transform(list(np.moveaxis(scaled, 2, 0))), axis=2)
    form = PictureForm(large.shape, white_of(pixels.dtype), scaled=True)
    write_picture(out, form.pixels(large))
    return tuple(large.shape)
