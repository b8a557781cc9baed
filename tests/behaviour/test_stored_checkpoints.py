"""A stored checkpoint of every format version goes on; one of the future is refused."""

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


def model(**parameters):
    settings = {"kernel": "rbf", "gamma": 0.5, "eigen_solver": "kha-smd", "random_state": 0}
    return KernelPCA(2, **settings, **parameters)


@pytest.mark.parametrize("version", range(1, FORMAT_VERSION + 1))
def test_a_stored_checkpoint_goes_on(version, tmp_path):
    """After three passes, on another machine: nearly the same bits."""
    path = shutil.copy(STORED / f"checkpoint-v{version}.ikpca", tmp_path / "fit")
    gone_on = model(max_iter=6, checkpoint=path, resume=True).fit(X)
    assert [record.number for record in gone_on.history_] == [1, 2, 3, 4, 5, 6]
    whole = model(max_iter=6).fit(X)
    np.testing.assert_allclose(gone_on.eigenvalues_, whole.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(gone_on.coefficients_, whole.coefficients_, atol=1e-7)


def test_a_checkpoint_of_the_future_is_refused(tmp_path):
    with safe_open(STORED / "checkpoint-v1.ikpca", framework="np") as file:
        manifest = json.loads(file.metadata()["ikpca"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    text = json.dumps({**manifest, "format_version": FORMAT_VERSION + 1})
    digest = hashlib.sha256(text.encode()).hexdigest()
    save_file(arrays, tmp_path / "fit", {"ikpca": text, "sha256": digest})
    with pytest.raises(UnreadableFile, match="install a newer ikpca"):
        model(checkpoint=tmp_path / "fit", resume=True).fit(X)
