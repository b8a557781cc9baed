"""Image files: reading returns what was written."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from ikpca.errors import InvalidInput
from ikpca_papers.applications import image_files, read_image, write_image

IMAGES = {
    "gray": ((5, 4), np.uint8, (".png", ".tif")),
    "color": ((5, 4, 3), np.uint8, (".png", ".tif")),
    "color with alpha": ((5, 4, 4), np.uint8, (".png", ".tif")),
    "gray with alpha": ((5, 4, 2), np.uint8, (".png",)),
    "two bytes": ((5, 4), np.uint16, (".png", ".tif")),
    "floating-point": ((5, 4), np.float32, (".tif",)),
}


@pytest.mark.parametrize(
    ("kind", "suffix"), [(kind, end) for kind, case in IMAGES.items() for end in case[2]]
)
def test_written_pixels_are_read_bit_for_bit(kind, suffix, tmp_path):
    shape, dtype, _ = IMAGES[kind]
    pixels = (np.random.default_rng(0).random(shape) * 255).astype(dtype)
    write_image(tmp_path / f"p{suffix}", pixels)
    result = read_image(tmp_path / f"p{suffix}")
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, pixels)


def test_files_may_be_named_by_strings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pixels = np.arange(20, dtype=np.uint8).reshape(5, 4)
    write_image("p.png", pixels)
    np.testing.assert_array_equal(read_image("p.png"), pixels)
    assert [path.name for path in image_files(".")] == ["p.png"]


def test_jpeg_is_nearly_the_same(tmp_path):
    pixels = np.add.outer(np.arange(32), np.arange(32)).astype(np.uint8) * 4
    write_image(tmp_path / "p.jpg", pixels)
    assert abs(read_image(tmp_path / "p.jpg").astype(int) - pixels).max() <= 4


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "message"),
    [
        ("p.jpg", (5, 4, 4), np.uint8, "alpha"),
        ("p.jpg", (5, 4), np.uint16, "bytes only"),
        ("p.png", (5, 4), np.float32, "floating-point"),
        ("p.tif", (5, 4, 7), np.uint8, "7 channels"),
        ("p.gif", (5, 4), np.uint8, "pass a .png"),
    ],
)
def test_unsupported_pixels_are_rejected(name, shape, dtype, message, tmp_path):
    with pytest.raises(InvalidInput, match=message):
        write_image(tmp_path / name, np.zeros(shape, dtype))
    assert not list(tmp_path.iterdir())


def test_a_palette_becomes_colors_and_turned_images_stand_upright(tmp_path):
    red = np.zeros((4, 6, 3), np.uint8)
    red[..., 0] = 255
    Image.fromarray(red).convert("P").save(tmp_path / "palette.png")
    np.testing.assert_array_equal(read_image(tmp_path / "palette.png"), red)
    turned = Image.Exif()
    turned[274] = 6
    Image.fromarray(red).save(tmp_path / "turned.png", exif=turned)
    assert read_image(tmp_path / "turned.png").shape == (6, 4, 3)
    assert read_image(tmp_path / "turned.png", gray=True).shape == (6, 4)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [("no.png", None, "no such file"), ("bad.png", b"\x89PNG\r\n\x1a\nno image", "not a readable")],
)
def test_invalid_files_are_refused(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        read_image(tmp_path / name)


def test_folders_without_images_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="has no PNG"):
        image_files(tmp_path)
    with pytest.raises(InvalidInput, match="no such folder"):
        image_files(tmp_path / "missing")
