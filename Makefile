# Each target sets up what it needs: a virtual environment of its own in .venv, nothing outside this folder.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: demo test test-oldest test-newest coverage docs fuzz targets bench reproduce reproduce-long lint format sanitize wheels audit clean

demo: .venv/installed
	$(BIN)/slimsvm demo --force

# Types are checked while the tests run.
test: .venv/installed-dev lint
	$(BIN)/mypy & OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --dist worksteal && wait $$!

# Lines of src/ that no test runs; lines that only other processes run count as such.
coverage: .venv/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --dist worksteal --cov=slimsvm --cov-report=term-missing:skip-covered

# Every exporter, precision, kernel, goal, preparation of rows and target that is installed: hours. Lines are kept in the
# file, and a run that was stopped goes on; SHARE=0.1 takes a tenth of the cases by chance.
SHARE ?= 1
targets: .venv/installed-dev
	mkdir -p results
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.products results/targets.jsonl --share $(SHARE) --table docs/results/targets.md

# Ten minutes for each reader of files; findings are kept in fuzz-findings/.
fuzz: .venv/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.fuzz slim json libsvm-model libsvm csv npz checkpoint rows --seconds 600

lint: .venv/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

format: .venv/installed-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The pages in build/docs, every example run; warnings are errors.
docs: .venv/installed-docs
	$(BIN)/sphinx-build -W --keep-going -q -d build/docs-cache docs build/docs
	@echo "build/docs/index.html"

# The experiments of the papers on the data in SLIMSVM_DATA: rows, figures and a page in docs/results/. A run that was stopped goes on.
reproduce: .venv/installed-bench
	$(BIN)/python -m benchmarks.reproduce

# Those that take hours or LIBSVM's time: a GPU helps with Forest.
reproduce-long: .venv/installed-bench
	$(BIN)/python -m benchmarks.reproduce optimally_sparse_covtype wall_clock

bench: .venv/installed-bench
	$(BIN)/python -m benchmarks

# The wheel of this machine in dist/, audited, and the tests with it in an empty environment of each Python in PYTHONS.
PYTHONS ?= $(PYTHON)
wheels: .venv/installed-release
	$(BIN)/python -m tools.wheels $(PYTHONS)

# The tests with the oldest versions of the dependencies that pyproject.toml declares, and with the newest that there are.
# Old versions may use what newer ones of others deprecate: no error there.
test-oldest: .venv-oldest/installed
	OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -W default::DeprecationWarning --numprocesses auto --dist worksteal

test-newest: .venv-newest/installed
	OMP_NUM_THREADS=1 .venv-newest/bin/python -m pytest --numprocesses auto --dist worksteal

# Known vulnerabilities in the newest versions of what users install.
audit: .venv/installed-release
	$(BIN)/pip-audit --progress-spinner off .

# The compiled core and exported C under the sanitizers of addresses and undefined behaviour: an error ends the run.
sanitize: .venv/installed-dev
	$(BIN)/python -m tools.sanitize

clean:
	rm -rf docs/start docs/recipes docs/api/generated docs/api/examples docs/sg_execution_times.rst
	rm -rf .venv .venv-oldest .venv-newest dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis results

# What builds packages without isolation: this one by meson, micromlgen (a rival in `make bench`) by setuptools.
.venv/bin/meson:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet meson-python Cython ninja setuptools wheel

# An editable install: Python changes are seen at once, the compiled part is rebuilt on import.
.venv/installed: .venv/bin/meson pyproject.toml
	$(BIN)/pip install --quiet --no-build-isolation --editable .
	touch $@

# The dependency group of that name in pyproject.toml, with the extras it stands on.
EXTRAS_dev := [dask,onnx,parquet,plots]
EXTRAS_docs := [plots]
EXTRAS_bench := [onnx,plots]
.venv/installed-%: .venv/installed
	$(BIN)/pip install --quiet --no-build-isolation --editable ".$(EXTRAS_$*)" --group $*
	touch $@

.venv-oldest/installed: .venv/installed pyproject.toml
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(BIN)/python -m tools.floors > $(@D)/floors.txt
	$(@D)/bin/pip install --quiet --upgrade "pip>=25.1"
	$(@D)/bin/pip install --quiet --constraint $(@D)/floors.txt . --group test
	touch $@

.venv-newest/installed: pyproject.toml
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet --upgrade "pip>=25.1"
	$(@D)/bin/pip install --quiet --upgrade --upgrade-strategy eager . --group test
	touch $@
