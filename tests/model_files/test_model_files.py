"""Saved models load bit for bit; damaged and forged files are refused."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pickle
import tracemalloc
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import psutil
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

import ikpca
from ikpca import (
    HebbianPCA,
    IncrementalKernelPCA,
    KernelPCA,
    KernelSpectralClustering,
    NoveltyDetector,
    OnlineKernelPCA,
    compress,
)
from ikpca.errors import InvalidInput, UnreadableFile, UnwritableFile
from ikpca.model_files import digests_of
from ikpca.preimages import FixedPoint
from ikpca.solvers import KHA, InverseTime
from tests.sameness import same

X = load_digits().data[:120] / 16
STORED = Path(__file__).parent.parent / "files"


def product(x, y):
    return float(x @ y)


def fitted(**parameters):
    return KernelPCA(4, random_state=0, **parameters).fit(X)


MODELS = {
    "dense": lambda: fitted(kernel="rbf", gamma=0.05),
    "columns in memory": lambda: fitted(kernel="poly", degree=2, eigen_solver="dense"),
    "hebbian": lambda: fitted(kernel="rbf", eigen_solver="kha-smd", max_iter=3),
    "krylov": lambda: fitted(kernel="laplacian", eigen_solver="krylov", gamma="median"),
    "gain object": lambda: fitted(
        eigen_solver=KHA(gain=0.05 * InverseTime(), rayleigh_ritz=False), max_iter=2
    ),
    "pre-image object": lambda: fitted(kernel="rbf", preimage=FixedPoint(tol=1e-3)),
    "ridge": lambda: fitted(kernel="sigmoid", gamma=0.01, fit_inverse_transform=True, whiten=True),
    "initial array": lambda: fitted(eigen_solver=KHA("kha", init=np.eye(4, len(X))), max_iter=1),
    "float32": lambda: KernelPCA(3, kernel="cosine").fit(X.astype(np.float32)),
    "sparse matrix": lambda: KernelPCA(3, kernel="rbf").fit(sparse.csr_matrix(X)),
    "sparse array": lambda: KernelPCA(3, kernel="rbf").fit(sparse.csr_array(X)),
    "precomputed": lambda: KernelPCA(3, kernel="precomputed").fit(X @ X.T),
    "column names": lambda: KernelPCA(3).fit(pd.DataFrame(X).add_prefix("pixel")),
    "output container": lambda: fitted().set_output(transform="pandas"),
    "from scikit-learn": lambda: KernelPCA.from_sklearn(fitted(kernel="rbf").to_sklearn()),
    "random state": lambda: KernelPCA(3, random_state=np.random.RandomState(3)).fit(X),
    "stream": lambda: IncrementalKernelPCA(3, kernel="rbf").partial_fit(X[:70]).partial_fit(X[70:]),
    "stream, all kept": lambda: IncrementalKernelPCA(kernel="poly", max_basis_rows=None).fit(X),
    "stream of pre-images": lambda: IncrementalKernelPCA(
        3, kernel="rbf", basis="preimages", max_basis_rows=30
    ).fit(X),
    "stream of float32": lambda: IncrementalKernelPCA(3, kernel="rbf", max_basis_rows=40).fit(
        X.astype(np.float32)
    ),
    "online": lambda: OnlineKernelPCA(3, kernel="rbf", random_state=0).fit(X),
    "online, from points": lambda: OnlineKernelPCA(
        2,
        kernel="rbf",
        rule=KHA("kha/t", gain=0.1, init=np.random.default_rng(0).normal(size=(9, X.shape[1]))),
        random_state=0,
    ).partial_fit(X),
    "online, one row": lambda: OnlineKernelPCA(2, random_state=0).partial_fit(X[:1]),
    "compressed": lambda: compress(fitted(kernel="rbf"), 40),
    "GHA": lambda: HebbianPCA(3, random_state=0, max_iter=3).fit(X),
    "GHA of a stream": lambda: HebbianPCA(3, random_state=0).partial_fit(X),
    "detector": lambda: NoveltyDetector(3, random_state=0).fit(X),
    "detector, sparse": lambda: NoveltyDetector(3, random_state=0).fit(sparse.csr_array(X)),
    "detector, landmarks": lambda: NoveltyDetector(3, eigen_solver="nystrom", random_state=0).fit(
        X
    ),
    "detector of a stream": lambda: NoveltyDetector(3, random_state=0).fit(X).partial_fit(X + 1),
    "clusters": lambda: KernelSpectralClustering(3, random_state=0).fit(X),
}


@pytest.mark.parametrize("name", MODELS)
def test_loaded_model_equals_saved_model(name, tmp_path):
    model = MODELS[name]()
    model.save(tmp_path / "model.ikpca")
    again = ikpca.load(tmp_path / "model.ikpca")
    same(model, again)
    same(pickle.loads(pickle.dumps(model)), again)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_joblib_restores_the_model(name, tmp_path):
    model = MODELS[name]()
    joblib.dump(model, tmp_path / "model.joblib")
    same(joblib.load(tmp_path / "model.joblib"), model)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_skops_restores_the_model(name, tmp_path):
    model = MODELS[name]()
    skops = pytest.importorskip("skops.io", reason="skops is not installed: pip install skops")
    skops.dump(model, tmp_path / "model.skops")
    types = skops.get_untrusted_types(file=tmp_path / "model.skops")
    # Whoever loads it has to trust classes of ours, and what rows may be kept in; nothing else.
    assert all(kind.startswith(("ikpca.", "scipy.sparse.")) for kind in types)
    same(skops.load(tmp_path / "model.skops", trusted=types), model)


def test_file_is_closed_after_reading(tmp_path):
    """Windows replaces no file that is open or memory-mapped."""
    fitted().save(tmp_path / "model")
    model, process = ikpca.load(tmp_path / "model"), psutil.Process()
    # Not available on macOS.
    maps = process.memory_maps() if hasattr(process, "memory_maps") else []
    assert not [each for each in (*process.open_files(), *maps) if str(tmp_path) in each.path]
    model.save(tmp_path / "model")


@pytest.mark.parametrize("name", ["compressed", "stream of pre-images"])
def test_reduced_model_stores_no_training_rows(name, tmp_path):
    """However many there were."""
    MODELS[name]().save(tmp_path / "model")
    with safe_open(tmp_path / "model", framework="np") as file:
        shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    tables = [shape for shape in shapes if len(shape) == 2 and shape[1] == X.shape[1]]
    assert tables
    assert all(shape[0] <= 40 for shape in tables)


def test_loaded_model_transforms(tmp_path):
    model = fitted(kernel="rbf", gamma=0.05)
    model.save(tmp_path / "model")
    again = ikpca.load(tmp_path / "model")
    new = load_digits().data[200:240] / 16
    assert (again.transform(new) == model.transform(new)).all()
    assert (again.reconstruct(new) == model.reconstruct(new)).all()
    assert again.fit(X).outcome_ is model.outcome_


def test_rows_are_stored_once(tmp_path):
    model = fitted(kernel="rbf")
    model.save(tmp_path / "model")
    assert model.X_fit_ is model._subspace.basis
    # Rows, and three arrays of one row per component, once each.
    assert (tmp_path / "model").stat().st_size < 2 * X.nbytes
    again = ikpca.load(tmp_path / "model")
    assert again.X_fit_ is again._subspace.basis


def test_a_model_of_a_development_version_is_refused():
    with pytest.raises(UnreadableFile, match=r"before 0\.1; fit the model again and save it"):
        ikpca.load(STORED / "model-v1.ikpca")


def test_not_fitted():
    with pytest.raises(NotFittedError):
        KernelPCA().save("nowhere")


def test_functions_are_refused_before_anything_is_written(tmp_path):
    model = KernelPCA(2, kernel=product).fit(X[:20])
    with pytest.raises(InvalidInput, match=r"KernelPCA.kernel is a function"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [1j, object(), {1, 2}, np.zeros(2, complex), np.array([None])])
def test_values_that_files_cannot_store(value, tmp_path):
    model = fitted()
    model.extra_ = value
    with pytest.raises(InvalidInput, match=r"KernelPCA\.extra_"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InvalidInput, match="does not exist"):
        ikpca.load(tmp_path / "nothing")
    with pytest.raises(UnreadableFile, match="folder"):
        ikpca.load(tmp_path)
    with pytest.raises(InvalidInput, match="folder"):
        fitted().save(tmp_path)
    with pytest.raises(UnwritableFile, match="untouched"):
        fitted().save(tmp_path / "no" / "such" / "folder")


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_full_disk_leaves_the_old_file(failing, tmp_path, monkeypatch):
    path = tmp_path / "model"
    fitted(kernel="rbf").save(path)
    before = path.read_bytes()

    def fail(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises(UnwritableFile, match="No space left"):
        fitted(kernel="linear").save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    fitted().save(path)
    before = path.read_bytes()

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fitted(kernel="rbf").save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_truncated_files_are_rejected(tmp_path):
    path = tmp_path / "model"
    KernelPCA(1, kernel="rbf").fit(X[:5, 2:4]).save(path)
    whole = path.read_bytes()
    for length in {0, 1, 7, 8, 9, *range(0, len(whole), 97), len(whole) - 1}:
        path.write_bytes(whole[:length])
        with pytest.raises(UnreadableFile):
            ikpca.load(path)


def test_changed_bytes_are_detected_or_harmless(tmp_path):
    path = tmp_path / "model"
    model = KernelPCA(1, kernel="rbf").fit(X[:5, 2:4])
    model.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    noticed = 0
    for place in rng.choice(len(whole), 400, replace=False):
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            same(ikpca.load(path), model)
        except UnreadableFile:
            noticed += 1
    assert noticed >= 390


def rewritten(source, target, change, more_arrays=None):
    """Write the file with another manifest and valid checksums."""
    import hashlib

    with safe_open(source, framework="np") as file:
        manifest = json.loads(file.metadata()["ikpca"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if more_arrays:
        arrays |= more_arrays
        manifest["digests"] = digests_of(arrays)
    change(manifest)
    text = json.dumps(manifest)
    digest = hashlib.sha256(text.encode()).hexdigest()
    save_file(arrays, target, {"ikpca": text, "sha256": digest})


def set_content(content):
    return lambda manifest: manifest.update(content=content)


def nested(depth):
    tree = None
    for _ in range(depth):
        tree = [tree]
    return tree


FORGED = {
    "future": (lambda manifest: manifest.update(format_version=99), "newer ikpca"),
    "no version": (lambda manifest: manifest.pop("format_version"), "no format version"),
    "kind": (lambda manifest: manifest.update(kind="checkpoint"), "it is a checkpoint"),
    "more fields": (lambda manifest: manifest.update(extra=1), "unexpected fields"),
    "other class": (set_content({"object": ["Popen", {"args": "true"}]}), "'Popen' is not"),
    "module": (set_content({"model": ["os.system", {}, {}]}), "not a class"),
    "no model": (set_content([1, 2]), "not contain a model"),
    "kernel as model": (
        set_content({"model": ["kernels.Gaussian", {}, {}]}),
        "not contain a model",
    ),
    "state of a kernel": (
        set_content({"model": ["kernels.Gaussian", {}, {"_x": 1}]}),
        "not an attribute",
    ),
    "parameter": (set_content({"model": ["estimators.KernelPCA", {"x": 1}, {}]}), "has no 'x'"),
    "attribute": (
        set_content({"model": ["estimators.KernelPCA", {}, {"__class__": 1}]}),
        "not an attribute",
    ),
    "method": (
        set_content({"model": ["estimators.KernelPCA", {}, {"fit": 1}]}),
        "not an attribute",
    ),
    "tag": (set_content({"eval": "1"}), "tag 'eval'"),
    "two tags": (set_content({"tuple": [], "dict": []}), "no single tag"),
    "array": (set_content({"array": "array99"}), "no array"),
    "depth": (set_content(nested(600)), "nested too deeply"),
    "gamma": (set_content({"object": ["kernels.Gaussian", {"gama": 1}]}), "has no 'gama'"),
}


def test_forged_manifests_are_rejected(tmp_path, subtests):
    fitted().save(tmp_path / "model")
    for name, (change, message) in FORGED.items():
        rewritten(tmp_path / "model", tmp_path / "forged", change)
        with subtests.test(name), pytest.raises(UnreadableFile, match=message):
            ikpca.load(tmp_path / "forged")


WIDE = 20_000_000


def set_state(*path, **values):
    """Replace values of fitted attributes of a model or a nested one."""

    def change(manifest):
        content = manifest["content"]
        for name in path:
            content = content["model"][2][name]
        kind = "model" if "model" in content else "object"
        content[kind][-1].update(values)

    return change


def as_wide_rows(manifest):
    """CSR rows with the number of columns that the model states."""
    text = json.dumps(manifest).replace('"n_features_in_": 64', f'"n_features_in_": {WIDE}')
    manifest.update(json.loads(text.replace("[120, 64]", f"[120, {WIDE}]")))


LARGE = {"large": np.zeros((4000, 1)), "no rows": np.zeros((0, WIDE))}
NO_ROWS = {"array": "no rows"}
#: Values whose use would take much more memory than the file has.
OVERSIZED = {
    **{f"width of {name}": (name, set_state(n_features_in_=WIDE))
       for name in ("dense", "sparse array", "GHA", "stream", "online", "compressed", "detector",
                    "detector of a stream")},
    "rows without entries": ("dense", lambda manifest: [
        set_state(n_features_in_=WIDE)(manifest),
        set_state("_subspace", basis=NO_ROWS)(manifest),
    ]),
    "scale": ("dense", set_state(_scale={"array": "large"})),
    "mean": ("GHA", set_state(mean_={"array": "large"})),
    "factor": ("detector", set_state("_residual", coefficients={"array": "large"})),
    "text": ("dense", set_state(
        feature_names_in_={"strings": [["x" * 8000] + [""] * 999, [1000]]}
    )),
}  # fmt: skip


def peak_of_loading(path):
    """Return the peak memory of reading a file."""
    tracemalloc.start()
    try:
        with contextlib.suppress(UnreadableFile):
            ikpca.load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("case", OVERSIZED)
def test_forged_sizes_are_refused_before_memory_is_allocated(case, tmp_path):
    name, change = OVERSIZED[case]
    MODELS[name]().save(tmp_path / "model")
    rewritten(tmp_path / "model", tmp_path / "forged", change, LARGE)
    with pytest.raises(UnreadableFile):
        ikpca.load(tmp_path / "forged")
    # Numbers and text are read several times.
    assert peak_of_loading(tmp_path / "forged") < 8 * (tmp_path / "forged").stat().st_size


@pytest.mark.parametrize("name", ["sparse array", "detector, sparse"])
def test_sparse_rows_may_be_wider_than_the_file(name, tmp_path):
    MODELS[name]().save(tmp_path / "model")
    rewritten(tmp_path / "model", tmp_path / "wide", as_wide_rows)
    size = (tmp_path / "wide").stat().st_size
    assert ikpca.load(tmp_path / "wide").n_features_in_ == WIDE
    assert peak_of_loading(tmp_path / "wide") < 8 * size


def test_text_of_very_different_lengths_is_restored(tmp_path):
    model = fitted()
    model.texts_ = np.array(["x" * 8000] + [""] * 999)
    model.save(tmp_path / "model")
    assert peak_of_loading(tmp_path / "model") < model.texts_.nbytes / 4
    assert (ikpca.load(tmp_path / "model").texts_ == model.texts_).all()


INCONSISTENT = {
    "calibration_errors_": 7,
    "offset_": "x",
    "model_": 3,
    "_correction": "x",
    "feature_names_in_": {"strings": [["a"], [1]]},
}


@pytest.mark.parametrize("name", ["detector", "detector of a stream"])
def test_a_detector_whose_parts_do_not_fit_together_is_refused(name, tmp_path, subtests):
    MODELS[name]().save(tmp_path / "model")
    for attribute, value in INCONSISTENT.items():
        rewritten(tmp_path / "model", tmp_path / "forged", set_state(**{attribute: value}))
        with subtests.test(attribute), pytest.raises(UnreadableFile, match="not consistent"):
            ikpca.load(tmp_path / "forged")


def test_rewritten_manifest_without_changes_loads(tmp_path):
    """A rewritten file is valid, so that forgeries are rejected for their content."""
    fitted().save(tmp_path / "model")
    rewritten(tmp_path / "model", tmp_path / "copy", lambda manifest: None)
    same(ikpca.load(tmp_path / "copy"), ikpca.load(tmp_path / "model"))


def test_oversized_header_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "model"
    with path.open("wb") as file:
        file.write((65 * 2**20).to_bytes(8, "little"))
        file.truncate(70 * 2**20)
    with pytest.raises(UnreadableFile, match="claims"):
        ikpca.load(path)


def test_other_safetensors_files_are_rejected(tmp_path):
    save_file({"a": np.zeros(3)}, tmp_path / "other")
    with pytest.raises(UnreadableFile, match="no manifest"):
        ikpca.load(tmp_path / "other")
