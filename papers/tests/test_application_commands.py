"""``denoise`` and ``upscale`` on files equal the applications on arrays."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from ikpca.cli.files import read_table, write_table
from ikpca_papers.applications import SuperResolution, denoise_image, denoise_motion
from papers.tests.command_line import fails, succeeds


def waves(height, width, channels=None):
    """Bytes of a smooth pattern."""
    gray = np.add.outer(np.sin(np.arange(height) / 5), np.cos(np.arange(width) / 4))
    pixels = np.rint(255 * (gray + 2) / 4).astype(np.uint8)
    return pixels if channels is None else np.stack([pixels] * channels, axis=2)


def noisy(pixels):
    noise = np.random.default_rng(0).normal(scale=12, size=pixels.shape)
    return np.clip(np.rint(pixels + noise), 0, 255).astype(np.uint8)


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["clean.png", "clean.tif"])
def test_image_is_denoised(name):
    pixels = noisy(waves(40, 48))
    Image.fromarray(pixels).save("noisy.png")
    summary = succeeds("denoise", "noisy.png", "--out", name, "--json")
    np.testing.assert_array_equal(Image.open(name), denoise_image(pixels))
    assert summary["noise"] == pytest.approx(12, rel=0.2)
    assert summary["shape"] == [40, 48]


def test_options_for_images():
    pixels = noisy(waves(40, 48))
    Image.fromarray(pixels).save("noisy.png")
    succeeds(
        "denoise", "noisy.png", "-o", "clean.png", "--noise", 20, "--scheme", "single", "--size", 6,
        "--stride", 3, "--random-state", 4, "-q",
    )  # fmt: skip
    expected = denoise_image(pixels, noise=20, scheme="single", size=6, stride=3, random_state=4)
    np.testing.assert_array_equal(Image.open("clean.png"), expected)


def test_alpha_is_unchanged():
    pixels = noisy(waves(40, 48, channels=4))
    Image.fromarray(pixels).save("noisy.png")
    succeeds("denoise", "noisy.png", "-o", "clean.png", "-q")
    result = np.asarray(Image.open("clean.png"))
    np.testing.assert_array_equal(result[..., 3], pixels[..., 3])
    np.testing.assert_array_equal(result[..., :3], denoise_image(pixels[..., :3]))
    assert "alpha" in fails("denoise", "noisy.png", "-o", "clean.jpg")


def recording(frames=60, joints=5):
    """Joint positions of a smooth periodic motion with noise, whose root moves along z."""
    rng = np.random.default_rng(0)
    phases = rng.uniform(0, 2 * np.pi, size=(joints, 3))
    positions = 0.3 * np.sin(np.arange(frames)[:, None, None] / 8 + phases)
    positions += [0, 0, 0.01] * np.arange(frames)[:, None, None]
    return positions + rng.normal(scale=0.03, size=positions.shape)


@pytest.mark.parametrize("name", ["walk.npy", "walk.csv"])
def test_motion_is_denoised_where_it_was(name):
    positions = recording()
    root = positions[:, :1]
    columns = [f"{joint}_{axis}" for joint in range(5) for axis in "xyz"]
    write_table(name, dict(zip(columns, positions.reshape(60, -1).T, strict=True)))
    expected = denoise_motion(positions - root, random_state=0) + root
    summary = succeeds("denoise", name, "--out", f"clean-{name}", "--json")
    table = read_table(f"clean-{name}")
    np.testing.assert_allclose(table.rows, expected.reshape(60, -1), rtol=1e-12)
    assert (table.n_columns is None) == name.endswith("csv")
    assert (summary["frames"], summary["joints"]) == (60, 5)
    assert summary["wrote"] == [f"clean-{name}"]


def test_motion_has_three_columns_per_joint():
    np.save("rows.npy", np.random.default_rng(0).normal(size=(20, 4)))
    assert "has 4 columns" in fails("denoise", "rows.npy", "-o", "clean.npy")


def test_options_for_other_data_are_rejected():
    np.save("walk.npy", recording(20).reshape(20, -1))
    Image.fromarray(waves(20, 20)).save("image.png")
    assert "--noise" in fails("denoise", "walk.npy", "-o", "c.npy", "--noise", 1, code=2)
    assert "--n-components" in fails("denoise", "image.png", "-o", "c.png", "-n", 3, code=2)
    assert "'groups'" in fails("denoise", "image.png", "-o", "c.png", "--scheme", "group", code=2)


TRAINING = ("--factor", 2, "--patch", 8, "--n-components", 10, "--n-patches", 200)


@pytest.fixture
def sharp(tmp_path):
    folder = tmp_path / "sharp"
    folder.mkdir()
    images = [waves(40, 48), np.flipud(waves(48, 40))]
    for number, pixels in enumerate(images):
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return images


def learned(images):
    settings = {"n_components": 10, "n_patches": 200, "random_state": 0}
    model = SuperResolution(2, 8, enlargement="bicubic", consistent=True, **settings)
    return model.fit([image / 255 for image in images])


def as_bytes(pixels):
    return np.clip(np.rint(255 * pixels), 0, 255).astype(np.uint8)


def test_image_is_enlarged_and_model_saved(sharp):
    small = waves(20, 24)
    Image.fromarray(small).save("small.png")
    summary = succeeds(
        "upscale", "small.png", "--train", "sharp", *TRAINING, "-o", "large.png",
        "--save-model", "up.ikpca", "--json",
    )  # fmt: skip
    expected = as_bytes(learned(sharp).transform(small / 255))
    np.testing.assert_array_equal(Image.open("large.png"), expected)
    assert summary["shape"] == [40, 48]
    assert summary["wrote"] == ["large.png", "up.ikpca"]
    succeeds("upscale", "small.png", "--model", "up.ikpca", "-o", "again.png", "-q")
    np.testing.assert_array_equal(Image.open("again.png"), expected)


def test_channels_of_a_color_image_are_enlarged_one_by_one(sharp):
    small = waves(20, 24, channels=3) // np.array([1, 2, 3], dtype=np.uint8)
    Image.fromarray(small).save("small.png")
    succeeds("upscale", "small.png", "-t", "sharp", *TRAINING, "-o", "large.png", "-q")
    model = learned(sharp)
    result = np.asarray(Image.open("large.png"))
    for channel in range(3):
        expected = as_bytes(model.transform(small[..., channel] / 255))
        np.testing.assert_array_equal(result[..., channel], expected)


def test_upscale_needs_training_images_or_a_model(sharp):
    Image.fromarray(waves(20, 24)).save("small.png")
    arguments = ("upscale", "small.png", "-o", "large.png")
    assert "--train" in fails(*arguments, code=2)
    assert "--train" in fails(*arguments, "-t", "sharp", "-m", "up.ikpca", code=2)
    assert "--factor" in fails(*arguments, "-m", "up.ikpca", "-f", 2, code=2)
    assert "no such folder" in fails(*arguments, "-t", "nowhere")
    assert "--factor=0" in fails(*arguments, "-t", "sharp", "--factor", 0, code=2)


def test_files_are_never_overwritten_without_force(sharp):
    Image.fromarray(waves(20, 24)).save("small.png")
    Image.fromarray(waves(20, 24)).save("old.png")
    np.save("walk.npy", recording(20).reshape(20, -1))
    upscale = ("upscale", "small.png", "-t", "sharp", "-o")
    for command in (("denoise", "small.png", "-o"), upscale):
        assert "is an input" in fails(*command, "small.png", "--force", code=2)
        assert "exists already" in fails(*command, "old.png", code=2)
    assert "is an input" in fails(*upscale, "sharp/0.png", "--force", code=2)
    assert "is an input" in fails("denoise", "walk.npy", "-o", "walk.npy", "--force", code=2)
    assert "two outputs" in fails(*upscale, "new.png", "--save-model", "new.png", code=2)
