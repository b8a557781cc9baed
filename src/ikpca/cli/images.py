"""``ikpca denoise`` and ``ikpca upscale``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ikpca.cli.errors import UsageError
from ikpca.cli.options import Json, MaxMemory, Quiet, Seed, one_of

if TYPE_CHECKING:
    from ikpca.cli.output import Report

_SCHEMES = ("groups", "sub-images", "single")
_ENLARGEMENTS = ("nearest", "bilinear", "bicubic")
#: Help panel of the options that a saved model determines.
_PANEL = "With --train"


def denoise(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="INPUT", help="A picture (.png, .jpg, .tif), or joint positions (.npy, .csv)."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="For a picture .png, .jpg or .tif; for joint positions .npy, .csv or .parquet.",
        ),
    ],
    noise: Annotated[
        float | None,
        typer.Option(
            "--noise",
            help="Standard deviation of the noise of a picture, in grey levels (0 to 255 for "
            "bytes). Estimated by default, and always for motion.",
        ),
    ] = None,
    scheme: Annotated[
        str,
        typer.Option(
            "--scheme",
            help="Windows of a picture with common components: groups of similar windows, "
            "sub-images, or all windows (single).",
            **one_of(_SCHEMES),
        ),
    ] = "groups",
    size: Annotated[int, typer.Option("--size", help="Pixels per side of a window.")] = 9,
    stride: Annotated[
        int, typer.Option("--stride", help="Pixels between windows; smaller is slower.")
    ] = 2,
    n_components: Annotated[
        int | None,
        typer.Option(
            "--n-components", "-n", help="Number of components for motion; estimated by default."
        ),
    ] = None,
    random_state: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Remove Gaussian noise from a picture or from recorded motion.

    Motion is a table with one row per frame in the order of time and three columns (x, y, z) per
    joint. Positions are denoised relative to the first joint.

    Example: ikpca denoise noisy.png --out clean.png
    """
    from ikpca.cli.output import Report
    from ikpca.tables.pictures import PICTURE_SUFFIXES

    with Report(quiet, as_json) as report:
        if source.suffix.lower() not in PICTURE_SUFFIXES:
            if noise is not None:
                raise UsageError("--noise is for pictures; the noise of motion is estimated.")
            _motion(report, source, out, n_components, random_state)
        else:
            if n_components is not None:
                raise UsageError("--n-components is for motion; for pictures it is automatic.")
            settings = {"noise": noise, "scheme": scheme, "size": size, "stride": stride}
            _picture(report, source, out, {**settings, "random_state": random_state})


def _picture(report: Report, source: Path, out: Path, settings: dict[str, Any]) -> None:
    import numpy as np

    from ikpca.applications import denoise_image, estimate_noise
    from ikpca.cli.output import progress_bar
    from ikpca.tables import read_picture, write_picture
    from ikpca.tables.pictures import check_picture_target

    pixels = read_picture(source)
    check_picture_target(out, pixels.shape, pixels.dtype)
    # The last of two or four channels is alpha, which has no noise.
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    colors = pixels[..., : channels - 1] if channels in (2, 4) else pixels
    level = settings["noise"]
    if level is None:
        level = settings["noise"] = float(estimate_noise(colors.astype(np.float64)))
    with progress_bar("Windows", shown=report.shows_progress) as advance:
        clean = denoise_image(colors, **settings, progress=advance)
    if channels in (2, 4):
        clean = np.concatenate([clean, pixels[..., channels - 1 :]], axis=2)
    write_picture(out, clean)
    report.show(
        {"input": str(source), "kind": "picture", "shape": pixels.shape, "noise": level},
        f"{pixels.shape[1]}×{pixels.shape[0]} pixels, noise of standard deviation {level:.3g}.",
        wrote=[out],
    )


def _motion(report: Report, source: Path, out: Path, number: int | None, seed: int) -> None:
    import numpy as np

    from ikpca.applications import denoise_motion, motion_settings
    from ikpca.cli.output import progress_bar
    from ikpca.errors import InvalidInput
    from ikpca.tables import check_target, read_table, write_table

    table = read_table(source)
    frames, columns = table.rows.shape
    if columns % 3:
        raise InvalidInput(
            f"{source}: has {columns} columns: motion needs three per joint; pass x, y and z."
        )
    check_target(out)
    positions = np.asarray(table.rows, dtype=np.float64).reshape(frames, -1, 3)
    root = positions[:, :1]
    with progress_bar("Denoising", shown=report.shows_progress):
        settings = motion_settings(positions - root, random_state=seed)
        chosen = settings.n_components if number is None else number
        clean = denoise_motion(
            positions - root, gamma=settings.gamma, n_components=chosen, random_state=seed
        )
    write_table(out, (clean + root).reshape(frames, columns), table.names)
    joints = columns // 3
    report.show(
        {
            "input": str(source),
            "kind": "motion",
            "frames": frames,
            "joints": joints,
            "gamma": settings.gamma,
            "n_components": chosen,
        },
        f"{frames} frames of {joints} joints; {chosen} components.",
        wrote=[out],
    )


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
            help="Magnification per side.",
            show_default="4",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    patch: Annotated[
        int,
        typer.Option(
            "--patch",
            help="Pixels per side of a window; 0: complete pictures.",
            rich_help_panel=_PANEL,
        ),
    ] = 14,
    n_components: Annotated[
        int,
        typer.Option("--n-components", "-n", help="Number of components.", rich_help_panel=_PANEL),
    ] = 300,
    n_patches: Annotated[
        int,
        typer.Option(
            "--n-patches", help="Maximum number of training windows.", rich_help_panel=_PANEL
        ),
    ] = 7000,
    enlargement: Annotated[
        str,
        typer.Option(
            "--enlargement",
            help=f"Interpolation before the projection: {', '.join(_ENLARGEMENTS)}.",
            rich_help_panel=_PANEL,
            **one_of(_ENLARGEMENTS),
        ),
    ] = "bicubic",
    consistent: Annotated[
        bool,
        typer.Option(
            "--consistent/--no-consistent",
            help="Correct the result so that shrinking it restores the picture.",
            rich_help_panel=_PANEL,
        ),
    ] = True,
    save_model: Annotated[
        Path | None,
        typer.Option(
            "--save-model", help="Also write the model to a file.", rich_help_panel=_PANEL
        ),
    ] = None,
    random_state: Seed = 0,
    max_memory: MaxMemory = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Enlarge a picture by super-resolution learned from sharp pictures.

    Example: ikpca upscale small.png --train sharp/ --factor 4 --out large.png
    """
    from ikpca.cli.output import Report
    from ikpca.tables import read_picture
    from ikpca.tables.pictures import check_picture_target

    if (model is None) == (train is None):
        raise UsageError("pass either --model or --train.")
    if model is not None and factor is not None:
        raise UsageError("--factor belongs to --train; a model has its own.")
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
            fitted = _train_model(report, train, settings, save_model)
        else:
            fitted = _load_model(model)
        large = _enlarge_picture(report, fitted, pixels, out)
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


def _train_model(
    report: Report, folder: Path | None, settings: dict[str, Any], save_model: Path | None
) -> Any:
    from ikpca.applications import Hyperresolution
    from ikpca.cli.output import progress_bar
    from ikpca.errors import InvalidInput
    from ikpca.model_files import check_writable
    from ikpca.tables import picture_files, read_picture
    from ikpca.tables.pictures import to_unit_range

    if folder is None or not folder.is_dir():
        raise InvalidInput(f"{folder}: no such folder; pass a folder of sharp pictures.")
    if save_model is not None:
        check_writable(save_model)
    fitted = Hyperresolution(**settings)
    sharp = [to_unit_range(read_picture(file, grey=True)) for file in picture_files(folder)]
    with progress_bar("Learning", shown=report.shows_progress):
        fitted.fit(sharp)
    if save_model is not None:
        fitted.save(save_model)
    return fitted


def _load_model(path: Path) -> Any:
    import ikpca
    from ikpca.errors import InvalidInput

    fitted = ikpca.load(path)
    if type(fitted).__name__ != "Hyperresolution":
        raise InvalidInput(
            f"{path}: is a {type(fitted).__name__}, not a Hyperresolution; pass a model that "
            "'ikpca upscale --save-model' wrote."
        )
    return fitted


def _enlarge_picture(report: Report, fitted: Any, pixels: Any, out: Path) -> tuple[int, ...]:
    """Enlarge every channel separately, as the model is grey, and write the picture."""
    import numpy as np

    from ikpca.cli.output import progress_bar
    from ikpca.tables import PictureFormat, write_picture
    from ikpca.tables.numeric import white_value
    from ikpca.tables.pictures import to_unit_range

    scaled = to_unit_range(pixels)
    with progress_bar("Enlarging", shown=report.shows_progress):
        if scaled.ndim == 2:
            large = fitted.transform(scaled)
        else:
            large = np.stack(fitted.transform(list(np.moveaxis(scaled, 2, 0))), axis=2)
    form = PictureFormat(large.shape, white_value(pixels.dtype), scaled=True)
    write_picture(out, form.pixels(large))
    return tuple(large.shape)
