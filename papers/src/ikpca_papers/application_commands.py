"""``ikpca-papers denoise`` and ``ikpca-papers upscale``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ikpca.cli.options import Force, Json, MaxMemory, Quiet, Seed
from ikpca.cli.output import Report, UsageError, check_outputs, reporting

if TYPE_CHECKING:
    from ikpca_papers.applications.image_denoising import Scheme
    from ikpca_papers.applications.super_resolution import SuperResolution

#: Options that a saved model determines have a help panel of their own.
_TrainOption = partial(typer.Option, rich_help_panel="With --train")


def denoise(
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="An image, or joint positions (.npy, .csv).")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="A .png, .jpg or .tif file; for motion a table.")
    ],
    noise: Annotated[
        float | None,
        typer.Option(
            "--noise",
            help="Standard deviation of the noise of an image, in gray levels (0 to 255 for "
            "bytes). Estimated by default, and always for motion.",
        ),
    ] = None,
    scheme: Annotated[
        Literal["groups", "sub-images", "single"],
        typer.Option(
            "--scheme",
            help="Windows of an image with common components: groups of similar windows, "
            "sub-images, or all windows (single).",
        ),
    ] = "groups",
    size: Annotated[int, typer.Option("--size", help="Pixels per side of a window.")] = 9,
    stride: Annotated[
        int, typer.Option("--stride", help="Pixels between windows; smaller is slower.")
    ] = 2,
    n_components: Annotated[
        int | None,
        typer.Option("--n-components", "-n", help="Components for motion; estimated by default."),
    ] = None,
    random_state: Seed = 0,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Remove Gaussian noise from an image or from recorded motion.

    Motion is a table with one row per frame in the order of time and three columns (x, y, z) per
    joint. Positions are denoised relative to the first joint.

    Example: ikpca-papers denoise noisy.png --out clean.png
    """
    from ikpca_papers.applications.image_files import IMAGE_SUFFIXES

    with reporting(quiet, as_json) as report:
        check_outputs([out], [source], force=force)
        if source.suffix.lower() not in IMAGE_SUFFIXES:
            if noise is not None:
                raise UsageError("--noise is for images; the noise of motion is estimated.")
            _denoise_motion(report, source, out, n_components, random_state)
        else:
            if n_components is not None:
                raise UsageError("--n-components is for motion; for images it is automatic.")
            _denoise_image(report, source, out, noise, scheme, size, stride, random_state)


def _denoise_image(
    report: Report,
    source: Path,
    out: Path,
    noise: float | None,
    scheme: Scheme,
    size: int,
    stride: int,
    seed: int,
) -> None:
    import numpy as np

    from ikpca_papers.applications import denoise_image, estimate_noise, read_image, write_image
    from ikpca_papers.applications.image_files import check_image_target

    pixels = read_image(source)
    check_image_target(out, pixels.shape, pixels.dtype)
    # The last of two or four channels is alpha, which has no noise.
    has_alpha = pixels.ndim == 3 and pixels.shape[2] in (2, 4)
    colors = pixels[..., :-1] if has_alpha else pixels
    noise = estimate_noise(colors) if noise is None else noise
    with report.progress("Windows") as advance:
        clean = denoise_image(
            colors, noise=noise, scheme=scheme, size=size, stride=stride, random_state=seed,
            progress=advance,
        )  # fmt: skip
    if has_alpha:
        clean = np.concatenate([clean, pixels[..., -1:]], axis=2)
    write_image(out, clean)
    report.show(
        {"input": source, "kind": "image", "shape": pixels.shape, "noise": noise},
        f"{pixels.shape[1]}×{pixels.shape[0]} pixels, noise of standard deviation {noise:.3g}.",
        wrote=[out],
    )


def _denoise_motion(report: Report, source: Path, out: Path, number: int | None, seed: int) -> None:
    import numpy as np

    from ikpca.cli.files import read_table, write_table
    from ikpca.errors import InvalidInput
    from ikpca_papers.applications import denoise_motion, motion_settings

    table = read_table(source)
    frames, columns = table.rows.shape
    if columns % 3:
        raise InvalidInput(
            f"{source}: has {columns} columns: motion needs three per joint; pass x, y and z."
        )
    positions = np.asarray(table.rows, dtype=np.float64).reshape(frames, -1, 3)
    root = positions[:, :1]
    with report.progress("Denoising"):
        gamma, chosen = motion_settings(positions - root, random_state=seed)
        chosen = chosen if number is None else number
        clean = denoise_motion(
            positions - root, gamma=gamma, n_components=chosen, random_state=seed
        )
    cells = dict(zip(table.names, (clean + root).reshape(frames, columns).T, strict=True))
    write_table(out, cells, names=table.n_columns is None)
    document = {"input": source, "kind": "motion", "frames": frames, "joints": columns // 3}
    report.show(
        {**document, "gamma": gamma, "n_components": chosen},
        f"{frames} frames of {columns // 3} joints; {chosen} components.",
        wrote=[out],
    )


def upscale(
    image: Annotated[Path, typer.Argument(help="The image to enlarge: .png, .jpg, .tif.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The image to write.")],
    model: Annotated[
        Path | None, typer.Option("--model", "-m", help="A model that --save-model wrote.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option("--train", "-t", help="Folder of sharp images to learn from.")
    ] = None,
    factor: Annotated[
        int | None,
        _TrainOption("--factor", "-f", help="Magnification per side.", show_default="4"),
    ] = None,
    patch: Annotated[
        int, _TrainOption("--patch", help="Pixels per side of a window; 0: complete images.")
    ] = 14,
    n_components: Annotated[
        int, _TrainOption("--n-components", "-n", help="Number of components.")
    ] = 300,
    n_patches: Annotated[
        int, _TrainOption("--n-patches", help="Maximum number of training windows.")
    ] = 7000,
    consistent: Annotated[
        bool,
        _TrainOption(
            "--consistent/--no-consistent",
            help="Correct the result so that shrinking it restores the image.",
        ),
    ] = True,
    save_model: Annotated[
        Path | None, _TrainOption("--save-model", help="Also write the model to a file.")
    ] = None,
    random_state: Seed = 0,
    max_memory: MaxMemory = None,
    force: Force = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Enlarge an image by super-resolution learned from sharp images.

    Channels are enlarged one by one.

    Example: ikpca-papers upscale small.png --train sharp/ --factor 4 --out large.png
    """
    import numpy as np

    from ikpca_papers.applications import SuperResolution, image_files, read_image, write_image
    from ikpca_papers.applications.image_files import (
        check_image_target,
        from_unit_range,
        to_unit_range,
    )

    if (model is None) == (train is None):
        raise UsageError("pass either --model or --train.")
    if model is not None and factor is not None:
        raise UsageError("--factor belongs to --train; a model has its own.")
    with reporting(quiet, as_json) as report:
        check_outputs([out, save_model], [image, model, train], force=force)
        pixels = read_image(image)
        check_image_target(out, pixels.shape, pixels.dtype)
        fitted: SuperResolution
        if train is not None:
            fitted = SuperResolution(
                4 if factor is None else factor,
                patch or None,
                n_components=n_components,
                n_patches=n_patches,
                enlargement="bicubic",
                consistent=consistent,
                max_memory=max_memory,
                random_state=random_state,
            )
            sharp = [to_unit_range(read_image(file, gray=True)) for file in image_files(train)]
            with report.progress("Learning"):
                fitted.fit(sharp)
        elif model is not None:
            fitted = SuperResolution.load(model)
        if save_model is not None:
            fitted.save(save_model)
        channels = to_unit_range(np.atleast_3d(pixels))
        with report.progress("Enlarging"):
            large = np.stack(fitted.transform(list(np.moveaxis(channels, 2, 0))), axis=2)
        shape = (*large.shape[:2], *pixels.shape[2:])
        write_image(out, from_unit_range(large.reshape(shape), pixels.dtype))
        patches, gamma = fitted.n_patches_, fitted.gamma_
        document = {"input": image, "factor": fitted.factor, "shape": shape}
        report.show(
            {**document, "gamma": gamma, "patches": patches},
            f"{pixels.shape[1]}×{pixels.shape[0]} to {shape[1]}×{shape[0]} pixels; learned from "
            f"{patches} windows, γ = {gamma:.4g}.",
            wrote=[out] if save_model is None else [out, save_model],
        )
