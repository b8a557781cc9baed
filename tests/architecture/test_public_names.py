"""Public names exist, are documented and have runnable examples."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import ikpca

PUBLIC = [name for name in ikpca.__all__ if not name.startswith("__")]
CLASSES = [name for name in PUBLIC if isinstance(getattr(ikpca, name), type)]
PACKAGES = [module.name for module in pkgutil.iter_modules(ikpca.__path__)]


@pytest.mark.parametrize("package", PACKAGES)
def test_exported_names_exist(package):
    if package == "dask":
        pytest.importorskip("distributed")
    module = importlib.import_module(f"ikpca.{package}")
    exported = getattr(module, "__all__", [])
    assert len(exported) == len(set(exported))
    assert all(hasattr(module, name) for name in exported)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_have_runnable_examples(name):
    text = getattr(ikpca, name).__doc__
    assert ">>> " in text.split("Examples\n", maxsplit=1)[1]


@pytest.mark.parametrize("name", CLASSES)
def test_every_parameter_is_documented(name):
    cls = getattr(ikpca, name)
    body = cls.__doc__.split("Parameters\n")[1].split("Attributes\n")[0]
    documented = {
        part.strip()
        for line in body.splitlines()
        if " : " in line
        for part in line.split(" : ")[0].split(",")
    }
    assert {*inspect.signature(cls).parameters} <= documented
