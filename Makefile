# Every target sets up the virtual environment and installs what it needs by itself.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
READY := $(VENV)/.ready
# What runs the experiments, without the tools of those who work on the library.
RUNS := $(VENV)/.runs
TARGETS := run demo test test-all coverage lint docs audit package faults bench bench-full clean

.PHONY: $(TARGETS) help

help:
	@echo "make run    reproduce the papers' experiments, small: tables, figures and one page"
	@echo "make demo   fit the Hebbian family on scikit-learn's digits: table and convergence plot"
	@echo "make test   the tests to run before every commit; make test-all: also the slow ones"
	@echo "make coverage  lines of the library that make test runs"
	@echo "make lint   ruff, mypy, import-linter"
	@echo "make faults kills, damaged files, random calls, full disks: the long form, with figures"
	@echo "make audit  known vulnerabilities of what is installed; skipped where nobody can be asked"
	@echo "make package  wheel and sdist: built, looked into, tried in an empty environment"
	@echo "make docs   build the site into build/docs/html: no warnings, no network, links checked"
	@echo "make bench  speed as ratios within one run; make bench-full: the large form, MNIST from IKPCA_DATA"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ikpca needs Python 3.11 or newer; run make with PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(READY): pyproject.toml papers/pyproject.toml | $(BIN)/python
	$(INSTALL) --editable '.[dev]' --editable ./papers
	@touch $@ $(RUNS)

$(RUNS): pyproject.toml papers/pyproject.toml | $(BIN)/python
	$(INSTALL) --editable . --editable ./papers
	@touch $@

run: $(RUNS)
	$(BIN)/ikpca-papers reproduce --quick --out results/reproduce

demo: $(RUNS)
	$(BIN)/ikpca-papers demo --out results/demo

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow"

test-all: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile

coverage: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow" --cov --cov-report=term-missing:skip-covered

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

faults: $(READY)
	$(BIN)/python -m tests.faults --out results/faults

audit: $(READY)
	$(BIN)/python .ci/audit.py

package: $(READY)
	$(BIN)/python .ci/package.py

docs: $(READY)
	rm -rf docs/reference/generated build/docs/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/docs/doctrees docs build/docs/html
	$(BIN)/python docs/check_links.py build/docs/html

bench: $(READY)
	$(BIN)/python benchmarks/foundation.py --out results/bench
	$(BIN)/python benchmarks/scale.py --rows 5000 --out results/bench
	$(BIN)/python benchmarks/growth.py --sizes 2500 5000 10000 --product-rows 8192 --out results/bench
	$(BIN)/python benchmarks/preimages.py --out results/bench
	$(BIN)/python benchmarks/reduced_sets.py --out results/bench

bench-full: $(READY)
	$(BIN)/python benchmarks/foundation.py --out results/bench-full
	$(BIN)/python benchmarks/scale.py --rows 20000 --full --out results/bench-full
	$(BIN)/python benchmarks/growth.py --out results/bench-full

clean:
	rm -rf $(VENV) results build dist docs/gallery docs/reference/generated docs/sg_execution_times.rst .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage
