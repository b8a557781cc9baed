"""Rules that the linters do not know: sizes, docstrings, who may use scikit-learn's classes."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
from sklearn.utils import all_estimators

import ikpca

SOURCE = Path(ikpca.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
ROOMS = sorted(path for path in SOURCE.iterdir() if any(path.glob("*.py")))
PUBLIC = [name for name in ikpca.__all__ if not name.startswith("__")]
CLASSES = [name for name in PUBLIC if isinstance(getattr(ikpca, name), type)]
#: Who may know estimator classes of scikit-learn: estimators, and what stands above them.
FROM_ESTIMATORS_UP = {
    "estimators", "dask", "applications", "datasets", "loading", "experiments", "figures",
    "reports", "cli",
}  # fmt: skip


def short(path):
    return str(path.relative_to(SOURCE))


def tree(path):
    return ast.parse(path.read_text())


def imports(path):
    """Every imported name as ``module.name``, also inside functions."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_there_are_rooms():
    assert {"kernels", "gram", "gains", "loop", "hebbian", "estimators"} <= {
        room.name for room in ROOMS
    }


@pytest.mark.parametrize("path", FILES, ids=short)
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", FILES, ids=short)
def test_nothing_prints(path):
    calls = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    lines = [
        call.lineno for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"
    ]
    assert not lines


@pytest.mark.parametrize("room", ROOMS, ids=short)
def test_rooms_say_what_they_are_for(room):
    opening = ast.get_docstring(tree(room / "__init__.py"))
    assert opening
    assert opening.splitlines()[0].endswith(".")


@pytest.mark.parametrize("path", FILES, ids=short)
def test_files_say_what_they_are_for(path):
    assert ast.get_docstring(tree(path))


@pytest.mark.parametrize("path", FILES, ids=short)
def test_what_a_file_offers_exists(path):
    """``__all__`` of every module, without a name twice."""
    offered = [
        ast.literal_eval(node.value)
        for node in tree(path).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    ]
    assert len(offered) == 1
    assert len(offered[0]) == len(set(offered[0]))
    module = ".".join(["ikpca", *path.relative_to(SOURCE).with_suffix("").parts])
    try:
        module = importlib.import_module(module.removesuffix(".__init__"))
    except ModuleNotFoundError as absent:
        if absent.name not in ("dask", "distributed"):
            raise
        pytest.skip("Dask is not installed")
    assert all(hasattr(module, name) for name in offered[0])


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_runnable_examples(name):
    text = getattr(ikpca, name).__doc__ or ""
    assert text.strip()
    assert "Examples\n" in text
    assert ">>> " in text.split("Examples\n", maxsplit=1)[1]


@pytest.mark.parametrize(
    "name", [name for name in PUBLIC if isinstance(getattr(ikpca, name), type)]
)
def test_every_parameter_and_fitted_attribute_is_documented(name):
    cls = getattr(ikpca, name)
    body = cls.__doc__.split("Parameters\n")[1].split("Attributes\n")[0]
    documented = {
        part.strip()
        for line in body.splitlines()
        if " : " in line
        for part in line.split(" : ")[0].split(",")
    }
    assert {*cls().get_params()} <= documented
    for method in ("fit", "transform", "inverse_transform", "fit_transform"):
        assert getattr(cls, method).__doc__


@pytest.mark.parametrize("path", FILES, ids=short)
def test_estimator_classes_of_scikit_learn_stay_in_estimators(path):
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    classes = {cls.__name__ for _, cls in all_estimators()} | {"BaseEstimator"}
    found = [
        name
        for name in imports(path)
        if name.startswith("sklearn") and name.rsplit(".", maxsplit=1)[-1] in classes
    ]
    assert not found or room in FROM_ESTIMATORS_UP | {"__init__"}
