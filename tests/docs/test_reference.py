"""Every name in the reference has described parameters and a complete example."""

from __future__ import annotations

import inspect
from enum import Enum
from importlib.util import find_spec

import pytest

pytest.importorskip("matplotlib").use("Agg")

from tests.docs.reference_names import (  # noqa: E402
    described,
    listed_names,
    listed_values,
    open_names,
    resolved,
    sections_of,
)

pytestmark = pytest.mark.slow

#: Figures of whole experiments have no short example; other tests draw them.
LONG = {
    "ikpca_papers.figures.draw",
    "ikpca_papers.figures.tracking",
}
#: Pages of modules that need an extra.
EXTRAS = {"ikpca.dask": "distributed"}
ABSENT = tuple(module for module, package in EXTRAS.items() if find_spec(package) is None)

LISTED = {
    name: inspect.unwrap(value) if callable(value := resolved(*parts)) else value
    for name, parts in listed_names().items()
    if not name.startswith(ABSENT)
}
CLASSES = {
    name: value
    for name, value in LISTED.items()
    if inspect.isclass(value) and value.__module__.startswith("ikpca")
}
FUNCTIONS = {name: value for name, value in LISTED.items() if inspect.isfunction(value)}
WITH_PAGES = CLASSES | FUNCTIONS
#: Readers do not call protocols, outcomes or errors.
CALLED = FUNCTIONS | {
    name: value
    for name, value in CLASSES.items()
    if not (getattr(value, "_is_protocol", False) or issubclass(value, (Enum, Exception)))
}
RETURNING = {
    name: value
    for name, value in FUNCTIONS.items()
    if inspect.signature(value).return_annotation != "None"
}


def by_name(values):
    return pytest.mark.parametrize("value", values.values(), ids=list(values))


def test_every_other_name_has_a_value():
    assert {name for name in LISTED if name not in WITH_PAGES} <= {*listed_values()}


@by_name({name: value for name, value in WITH_PAGES.items() if name not in LONG})
def test_every_name_has_an_example(value):
    assert ">>>" in "".join(sections_of(value).get("Examples", ""))


@by_name(WITH_PAGES)
def test_examples_import_what_they_use(value):
    members = vars(value).values() if inspect.isclass(value) else ()
    for documented in [value, *filter(inspect.isfunction, members)]:
        assert not open_names(documented)


@by_name(CALLED)
def test_every_parameter_is_described(value):
    assert described(value) == set(inspect.signature(value).parameters)


@by_name(RETURNING)
def test_every_function_describes_its_result(value):
    assert {"Returns", "Yields"} & set(sections_of(value))


@pytest.mark.parametrize("name", listed_values())
def test_values_are_those_of_the_code(name):
    assert LISTED[name] == listed_values()[name]


def test_the_checks_detect_gaps():
    """The checks detect a missing import and a parameter without description."""

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
