"""Every page of the reference says what a reader needs, and its example can be copied."""

from __future__ import annotations

import inspect
from enum import Enum
from typing import Any

import pytest

pytest.importorskip("matplotlib").use("Agg")

from tests.reference_names import (  # noqa: E402
    described,
    listed_names,
    listed_values,
    open_names,
    resolved,
    sections_of,
)

LISTED = listed_names()
#: Of results of experiments, which have no short form; tests of their own draw them.
LONG = {"ikpca.figures.demo_convergence", "ikpca.figures.draw", "ikpca.figures.tracking"}
EXTRAS = {"ikpca.dask": "distributed", "ikpca.applications.river": "river"}


@pytest.fixture(params=sorted(LISTED))
def name(request):
    return request.param


@pytest.fixture
def value(name) -> Any:
    """A class or a function; types and tuples of names have no docstring."""
    for module, package in EXTRAS.items():
        if name.startswith(module):
            pytest.importorskip(package)
    found = resolved(*LISTED[name])
    if not (inspect.isfunction(found) or (inspect.isclass(found) and "ikpca" in found.__module__)):
        assert name in listed_values() or name.endswith((".Floats", ".Rows"))
        found = None
    return found


def methods_of(value: Any) -> list[Any]:
    if not inspect.isclass(value):
        return []
    members = (member for key, member in vars(value).items() if not key.startswith("_"))
    return [member for member in members if inspect.isfunction(member)]


def test_it_has_a_summary_and_an_example(name, value):
    if value is None:
        return
    summary = sections_of(value)[""]
    assert summary[0].endswith("."), f"{name}: the summary is one sentence on one line"
    assert name in LONG or ">>>" in "".join(sections_of(value).get("Examples", ""))


def test_its_examples_can_be_copied(name, value):
    for described_thing in [value, *methods_of(value)]:
        left = open_names(described_thing)
        assert not left, f"{name}: the example does not import {sorted(left)}"


def test_every_parameter_is_described(name, value):
    is_port = getattr(value, "_is_protocol", False)
    if value is None or is_port or (inspect.isclass(value) and issubclass(value, (Enum, Exception))):
        return
    taken = set(inspect.signature(value).parameters)
    assert described(value) == taken, f"{name}: {sorted(described(value) ^ taken)}"


def test_functions_say_what_they_return(name, value):
    if inspect.isfunction(value) and inspect.signature(value).return_annotation != "None":
        assert {"Returns", "Yields"} & set(sections_of(value)), name


def test_values_are_those_of_the_code():
    values = listed_values()
    assert len(values) >= 4
    for name, shown in values.items():
        assert resolved(*LISTED[name]) == shown, name


def test_what_the_checks_find():
    """They would see an example that imports too little, and a parameter that nobody describes."""

    def poor(first, second):
        """Do.

        Parameters
        ----------
        first : int

        Examples
        --------
        >>> poor(np.ones(1), 2)
        """

    assert open_names(poor) == {"poor", "np"}
    assert described(poor) == {"first"}
