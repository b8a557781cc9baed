# Every target sets up the virtual environment and installs its requirements.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
READY := $(VENV)/.ready
# Requirements of the experiments, without the development tools.
RUNS := $(VENV)/.runs
# Tests with the lowest declared versions, which need an old Python.
OLDEST := .venv-oldest
OLDEST_PYTHON ?= python3.11
OLDEST_TESTS ?= $(addprefix tests/,kernels gram preimages reduced_sets solvers streams estimators dask model_files)
TARGETS := run test test-all coverage test-oldest lint docs audit package faults statistics bench bench-full clean

.PHONY: $(TARGETS) help

help:
	@echo "make run    run the papers' experiments at reduced size: tables, figures and a report"
	@echo "make test   run the tests, without the slow ones; make test-all: all tests"
	@echo "make coverage  report the lines of the library that make test runs"
	@echo "make test-oldest  run a part of the tests with the lowest declared versions of all dependencies"
	@echo "make lint   ruff, mypy, import-linter, yamllint, spelling and wording"
	@echo "make faults long tests with killed processes, damaged files, random calls and full disks"
	@echo "make statistics  measure the false alarm rates of NoveltyDetector: table of realized and nominal rates"
	@echo "make audit  check installed packages for known vulnerabilities; skipped without network access"
	@echo "make package  build and inspect wheel and sdist, and test them in an empty environment"
	@echo "make docs   build the site in build/docs/html without network access; check links"
	@echo "make bench  measure speed as ratios within one run; make bench-full: larger data, MNIST from IKPCA_DATA"

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

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow"

test-all: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile

$(OLDEST)/.ready: pyproject.toml .ci/oldest.py
	$(OLDEST_PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python .ci/oldest.py > $(OLDEST)/pins.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -r $(OLDEST)/pins.txt
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

test-oldest: $(OLDEST)/.ready
	OMP_NUM_THREADS=1 NUMBA_CACHE_DIR=$(OLDEST)/numba $(OLDEST)/bin/python -m pytest -n auto --dist loadfile $(OLDEST_TESTS)

coverage: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow" --cov --cov-report=term-missing:skip-covered

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell src papers/src papers/README.md docs README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md
	$(BIN)/yamllint --strict .github

faults: $(READY)
	$(BIN)/python -m tests.faults --out results/faults

statistics: $(READY)
	$(BIN)/python -m tests.statistics

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
	$(BIN)/python benchmarks/frontier.py --out results/bench
	$(BIN)/python benchmarks/growth.py --sizes 2500 5000 10000 --product-rows 8192 --out results/bench
	$(BIN)/python benchmarks/preimages.py --out results/bench
	$(BIN)/python benchmarks/reduced_sets.py --out results/bench

bench-full: $(READY)
	$(BIN)/python benchmarks/foundation.py --out results/bench-full
	$(BIN)/python benchmarks/frontier.py --rows 20000 --sets pictures varying table million --out results/bench-full
	$(BIN)/python benchmarks/growth.py --out results/bench-full

clean:
	rm -rf $(VENV) $(OLDEST) results build dist docs/gallery docs/reference/generated docs/sg_execution_times.rst .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
