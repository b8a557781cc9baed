"""``ikpca denoise``: a picture or recorded motion without its noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ikpca.cli.failures import Mistake
from ikpca.cli.options import Asf, Json, Quiet, Seed, one_of

if TYPE_CHECKING:
    from ikpca.cli.report import Report

__all__ = ["denoise"]

_SCHEMES = ("groups", "sub-images", "single")


def denoise(
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="A picture (.png, .jpg, .tif), .amc or .bvh.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="For a picture .png, .jpg or .tif; for motion .amc (with an .asf beside it), or "
            "joint positions as .npy or .csv.",
        ),
    ],
    noise: Annotated[
        float | None,
        typer.Option(
            "--noise",
            help="Standard deviation of a picture's noise, of 255 grey levels for bytes; without "
            "it, it is estimated. For motion it always is.",
        ),
    ] = None,
    scheme: Annotated[
        str,
        typer.Option(
            "--scheme",
            help="Which windows of a picture share components: groups of similar ones, those of "
            "sub-images, or all (single).",
            **one_of(_SCHEMES),
        ),
    ] = "groups",
    size: Annotated[int, typer.Option("--size", help="Pixels per side of a window.")] = 9,
    stride: Annotated[
        int, typer.Option("--stride", help="Pixels from a window to the next; less is slower.")
    ] = 2,
    n_components: Annotated[
        int | None,
        typer.Option(
            "--n-components", "-n", help="Components of motion; without it, chosen by its noise."
        ),
    ] = None,
    random_state: Seed = 0,
    asf: Asf = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Remove Gaussian noise from a picture or from recorded motion.

    Example: ikpca denoise noisy.png --out clean.png
    """
    from ikpca.cli.report import Report
    from ikpca.datasets.motion_files import MOTION_SUFFIXES

    with Report(quiet, as_json) as report:
        if source.suffix.lower() in MOTION_SUFFIXES:
            if noise is not None:
                raise Mistake("--noise is for pictures; that of motion is estimated.")
            _motion(report, source, out, n_components, random_state, asf)
        else:
            if n_components is not None:
                raise Mistake("--n-components is for motion; pictures choose theirs.")
            settings = {"noise": noise, "scheme": scheme, "size": size, "stride": stride}
            _picture(report, source, out, {**settings, "random_state": random_state})


def _picture(report: Report, source: Path, out: Path, settings: dict[str, Any]) -> None:
    import numpy as np

    from ikpca.applications import denoise_image, estimate_noise
    from ikpca.cli.waiting import bar
    from ikpca.datasets import read_picture, write_picture
    from ikpca.datasets.pictures import check_picture_target

    pixels = read_picture(source)
    check_picture_target(out, pixels.shape, pixels.dtype)
    # Of two or four channels the last is alpha, which has no noise.
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    colours = pixels[..., : channels - 1] if channels in (2, 4) else pixels
    level = settings["noise"]
    if level is None:
        level = settings["noise"] = float(estimate_noise(colours.astype(np.float64)))
    with bar("Windows", shown=report.shows_progress) as move:
        clean = denoise_image(colours, **settings, progress=move)
    if channels in (2, 4):
        clean = np.concatenate([clean, pixels[..., channels - 1 :]], axis=2)
    write_picture(out, clean)
    report.show(
        {"input": str(source), "kind": "picture", "shape": pixels.shape, "noise": level},
        f"{pixels.shape[1]}×{pixels.shape[0]} pixels, noise of standard deviation {level:.3g}.",
        wrote=[out],
    )


def _motion(
    report: Report, source: Path, out: Path, number: int | None, seed: int, asf: Path | None
) -> None:
    from ikpca.applications import denoise_motion, motion_settings
    from ikpca.cli.waiting import bar
    from ikpca.datasets import (
        as_rows,
        body_centred,
        check_target,
        read_motion,
        write_table,
        written_files,
    )
    from ikpca.datasets.motion_files import motion_names

    motion = read_motion(source, asf)
    check_target(out, motion)
    centred = body_centred(motion).positions
    with bar("Denoising", shown=report.shows_progress):
        settings = motion_settings(centred, random_state=seed)
        chosen = settings.n_components if number is None else number
        clean = denoise_motion(
            centred, gamma=settings.gamma, n_components=chosen, random_state=seed
        )
    # The body is denoised about its root, and then put back to where it was.
    placed = motion.with_positions(clean + motion.positions[:, :1])
    write_table(out, as_rows(placed), motion_names(placed), placed)
    report.show(
        {
            "input": str(source),
            "kind": "motion",
            "frames": motion.n_frames,
            "joints": len(motion.skeleton.names),
            "gamma": settings.gamma,
            "n_components": chosen,
        },
        f"{motion.n_frames} frames of {len(motion.skeleton.names)} joints; {chosen} components.",
        wrote=written_files(out),
    )
