"""Checkpoints of other format versions are refused."""

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

STORED = Path(__file__).resolve().parents[1] / "files" / "checkpoint-v1.ikpca"
X = np.sin(np.outer(np.arange(1, 41), np.arange(1, 5)))


def resume(path):
    settings = {"kernel": "rbf", "gamma": 0.5, "eigen_solver": "kha-smd", "random_state": 0}
    return KernelPCA(2, **settings, max_iter=6, checkpoint=path, resume=True).fit(X)


def test_a_checkpoint_of_a_development_version_is_refused(tmp_path):
    path = shutil.copy(STORED, tmp_path / "fit")
    with pytest.raises(UnreadableFile, match=r"before 0\.1; fit the model again"):
        resume(path)


def test_a_checkpoint_of_the_future_is_refused(tmp_path):
    with safe_open(STORED, framework="np") as file:
        manifest = json.loads(file.metadata()["ikpca"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    text = json.dumps({**manifest, "format_version": FORMAT_VERSION + 1})
    digest = hashlib.sha256(text.encode()).hexdigest()
    save_file(arrays, tmp_path / "fit", {"ikpca": text, "sha256": digest})
    with pytest.raises(UnreadableFile, match="install a newer ikpca"):
        resume(tmp_path / "fit")
