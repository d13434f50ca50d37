# Each target sets up what it needs: a virtual environment of its own in .venv, nothing outside this folder.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: demo test bench lint format clean sanitize

demo: .venv/installed
	$(BIN)/slimsvm demo --force

test: .venv/installed-dev lint
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --dist worksteal

lint: .venv/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: .venv/installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: .venv/installed-bench
	$(BIN)/python -m benchmarks

# The compiled core and exported C under the sanitizers of addresses and undefined behaviour: an error ends the run.
sanitize: .venv/installed-dev
	$(BIN)/python -m tools.sanitize

clean:
	rm -rf .venv build .pytest_cache .mypy_cache .ruff_cache .hypothesis results

# What builds packages without isolation: this one by meson, micromlgen (a rival in `make bench`) by setuptools.
.venv/bin/meson:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet meson-python Cython ninja setuptools wheel

# An editable install: Python changes are seen at once, the compiled part is rebuilt on import.
.venv/installed: .venv/bin/meson pyproject.toml
	$(BIN)/pip install --quiet --no-build-isolation --editable .
	touch $@

.venv/installed-%: .venv/installed
	$(BIN)/pip install --quiet --no-build-isolation --editable ".[$*]"
	touch $@
