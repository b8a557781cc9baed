"""A checkpoint of another format is rejected and kept."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from ikpca import KernelPCA
from ikpca.errors import UnreadableFile
from ikpca.model_files import FORMAT_VERSION

STORED = Path(__file__).resolve().parents[1] / "files"
X = np.sin(np.outer(np.arange(1, 41), np.arange(1, 5)))


def model(path):
    settings = {"kernel": "rbf", "gamma": 0.5, "eigen_solver": "kha-smd", "random_state": 0}
    return KernelPCA(2, max_iter=1, checkpoint=path, **settings)


def test_a_checkpoint_of_an_earlier_version_is_refused(tmp_path):
    path = Path(shutil.copy(STORED / "checkpoint-v1.ikpca", tmp_path / "fit"))
    before = path.read_bytes()
    with pytest.raises(UnreadableFile, match=r"before 0\.1; fit the model again"):
        model(path).fit(X)
    assert path.read_bytes() == before


def test_a_checkpoint_of_a_later_version_is_refused(tmp_path):
    path = tmp_path / "fit"
    model(path).fit(X)
    with safe_open(path, framework="np") as file:
        manifest = json.loads(file.metadata()["ikpca"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    text = json.dumps({**manifest, "format_version": FORMAT_VERSION + 1})
    digest = hashlib.sha256(text.encode()).hexdigest()
    save_file(arrays, path, {"ikpca": text, "sha256": digest})
    before = path.read_bytes()
    with pytest.raises(UnreadableFile, match="install a newer ikpca"):
        model(path).fit(X)
    assert path.read_bytes() == before
