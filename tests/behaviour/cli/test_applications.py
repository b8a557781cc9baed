"""``denoise``, ``upscale`` and ``cluster`` do on files what the library does on arrays."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
image = pytest.importorskip("PIL.Image")

from ikpca import KernelSpectralClustering, load  # noqa: E402
from ikpca.applications import (  # noqa: E402
    SuperResolution,
    denoise_image,
    denoise_motion,
)
from ikpca.tables import read_table, write_table  # noqa: E402
from tests.behaviour.cli.saying import fails, succeeds  # noqa: E402


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
def test_a_picture_is_denoised(name):
    pixels = noisy(waves(40, 48))
    image.fromarray(pixels).save("noisy.png")
    said = succeeds("denoise", "noisy.png", "--out", name, "--json")
    np.testing.assert_array_equal(image.open(name), denoise_image(pixels))
    assert said["noise"] == pytest.approx(12, rel=0.2)
    assert said["shape"] == [40, 48]


def test_options_of_a_picture():
    pixels = noisy(waves(40, 48))
    image.fromarray(pixels).save("noisy.png")
    succeeds(
        "denoise", "noisy.png", "-o", "clean.png", "--noise", 20, "--scheme", "single", "--size", 6,
        "--stride", 3, "--seed", 4, "-q",
    )  # fmt: skip
    wanted = denoise_image(pixels, noise=20, scheme="single", size=6, stride=3, random_state=4)
    np.testing.assert_array_equal(image.open("clean.png"), wanted)


def test_alpha_is_left_as_it_is():
    pixels = noisy(waves(40, 48, channels=4))
    image.fromarray(pixels).save("noisy.png")
    succeeds("denoise", "noisy.png", "-o", "clean.png", "-q")
    found = np.asarray(image.open("clean.png"))
    np.testing.assert_array_equal(found[..., 3], pixels[..., 3])
    np.testing.assert_array_equal(found[..., :3], denoise_image(pixels[..., :3]))
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
    write_table(name, positions.reshape(60, -1), columns if name.endswith("csv") else None)
    wanted = denoise_motion(positions - root, random_state=0) + root
    said = succeeds("denoise", name, "--out", f"clean-{name}", "--json")
    table = read_table(f"clean-{name}")
    np.testing.assert_allclose(table.rows, wanted.reshape(60, -1), rtol=1e-12)
    assert table.names == (tuple(columns) if name.endswith("csv") else None)
    assert (said["frames"], said["joints"]) == (60, 5)
    assert said["wrote"] == [f"clean-{name}"]


def test_motion_has_three_columns_per_joint():
    np.save("rows.npy", np.random.default_rng(0).normal(size=(20, 4)))
    assert "has 4 columns" in fails("denoise", "rows.npy", "-o", "clean.npy")


def test_options_of_the_other_kind_are_refused():
    np.save("walk.npy", recording(20).reshape(20, -1))
    image.fromarray(waves(20, 20)).save("picture.png")
    assert "--noise" in fails("denoise", "walk.npy", "-o", "c.npy", "--noise", 1, code=2)
    assert "--n-components" in fails("denoise", "picture.png", "-o", "c.png", "-n", 3, code=2)
    assert "'groups'" in fails("denoise", "picture.png", "-o", "c.png", "--scheme", "group", code=2)


TRAINING = ("--factor", 2, "--patch", 8, "--n-components", 10, "--n-patches", 200)


@pytest.fixture
def sharp(tmp_path):
    folder = tmp_path / "sharp"
    folder.mkdir()
    pictures = [waves(40, 48), np.flipud(waves(48, 40))]
    for number, picture in enumerate(pictures):
        image.fromarray(picture).save(folder / f"{number}.png")
    return pictures


def learned(pictures):
    settings = {"n_components": 10, "n_patches": 200, "random_state": 0}
    model = SuperResolution(2, 8, enlargement="bicubic", consistent=True, **settings)
    return model.fit([picture / 255 for picture in pictures])


def as_bytes(pixels):
    return np.clip(np.rint(255 * pixels), 0, 255).astype(np.uint8)


def test_a_picture_is_enlarged_and_what_was_learned_can_be_kept(sharp):
    small = waves(20, 24)
    image.fromarray(small).save("small.png")
    said = succeeds(
        "upscale", "small.png", "--train", "sharp", *TRAINING, "-o", "large.png",
        "--save-model", "up.ikpca", "--json",
    )  # fmt: skip
    wanted = as_bytes(learned(sharp).transform(small / 255))
    np.testing.assert_array_equal(image.open("large.png"), wanted)
    assert said["shape"] == [40, 48]
    assert said["wrote"] == ["large.png", "up.ikpca"]
    succeeds("upscale", "small.png", "--model", "up.ikpca", "-o", "again.png", "-q")
    np.testing.assert_array_equal(image.open("again.png"), wanted)


def test_channels_of_a_color_picture_are_enlarged_one_by_one(sharp):
    small = waves(20, 24, channels=3) // np.array([1, 2, 3], dtype=np.uint8)
    image.fromarray(small).save("small.png")
    succeeds("upscale", "small.png", "-t", "sharp", *TRAINING, "-o", "large.png", "-q")
    model = learned(sharp)
    found = np.asarray(image.open("large.png"))
    for channel in range(3):
        wanted = as_bytes(model.transform(small[..., channel] / 255))
        np.testing.assert_array_equal(found[..., channel], wanted)


def test_upscale_needs_one_source_of_knowledge(sharp):
    image.fromarray(waves(20, 24)).save("small.png")
    arguments = ("upscale", "small.png", "-o", "large.png")
    assert "--train" in fails(*arguments, code=2)
    assert "--train" in fails(*arguments, "-t", "sharp", "-m", "up.ikpca", code=2)
    assert "--factor" in fails(*arguments, "-m", "up.ikpca", "-f", 2, code=2)
    assert "no such folder" in fails(*arguments, "-t", "nowhere")
    assert "--factor=0" in fails(*arguments, "-t", "sharp", "--factor", 0, code=2)


@pytest.mark.parametrize("out", ["labels.csv", "labels.npy"])
def test_clusters(out):
    rng = np.random.default_rng(2)
    rows = np.vstack([rng.normal(center, 0.2, size=(20, 3)) for center in (0, 3, 6)])
    np.save("rows.npy", rows)
    said = succeeds(
        "cluster", "rows.npy", "--clusters", 3, "--out", out, "--gamma", 0.5, "--seed", 1,
        "--normalize", "none", "--save-model", "c.ikpca", "--json",
    )  # fmt: skip
    model = KernelSpectralClustering(3, gamma=0.5, normalize=None, random_state=1).fit(rows)
    table = read_table(out)
    np.testing.assert_array_equal(table.rows[:, 0], model.labels_)
    assert table.names == (("cluster",) if out.endswith("csv") else None)
    assert said["sizes"] == [20, 20, 20]
    np.testing.assert_array_equal(load("c.ikpca").labels_, model.labels_)


def test_more_clusters_than_rows():
    np.save("rows.npy", np.random.default_rng(0).normal(size=(5, 2)))
    assert "--clusters=9" in fails("cluster", "rows.npy", "-c", 9, "-o", "l.csv", code=2)
