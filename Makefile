# Everything runs in an environment this file makes; nothing has to be installed by hand.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
WORKERS ?= auto

.PHONY: demo test test-slow test-gpu test-anndata test-browser test-notebook frontend lint types package papers docs docs-fast docs-versions linkcheck \
  pictures bench bench-quick bench-check clean

demo: $(READY)
	$(BIN)/python examples/demo.py

# Workers keep neighboring tests, which share fitted models. Without stored bytecode, every process
# that a test starts would compile the package again.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test: $(READY)
	$(PYTEST) -m "not slow" $(ARGS)

test-slow: $(READY)
	$(PYTEST) -m slow $(ARGS)

# What needs AnnData and scanpy, which do not take the newest pandas.
ANNDATA := .venv-anndata
DOCS := .venv-docs
SITE := import sysconfig; print(sysconfig.get_path("purelib"))

test-anndata: $(ANNDATA)/.ready
	PYTHONDONTWRITEBYTECODE= $(ANNDATA)/bin/python -m pytest -m "not slow" \
	  -k "tl or annotated or anndata or h5ad or zarr" tests/tl tests/io \
	  tests/cli/test_commands.py tests/cli/test_outputs.py tests/contract/test_array_likes.py $(ARGS)

# An environment with one more extra, which finds all other packages in that of the tests.
define with_extra
	$(PYTHON) -m venv $(@D)
	echo "import site; site.addsitedir('$$($(BIN)/python -c '$(SITE)')')" > \
	  "$$($(@D)/bin/python -c '$(SITE)')/of_the_other_tests.pth"
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check "manifoldry[$(1)]"
	touch $@
endef

$(ANNDATA)/.ready: $(READY)
	$(call with_extra,test-anndata)

# On a machine with an NVIDIA GPU; where there is none, this fails. CUDA is the extra for its driver.
# With PY=python3 the tests run in that environment, which has the packages, and nothing is installed.
CUDA ?= cuda13
GPU  := .venv-gpu
PY   ?= $(GPU)/bin/python

test-gpu: $(if $(filter $(GPU)/%,$(PY)),$(GPU)/.ready)
	PYTHONDONTWRITEBYTECODE= PYTHONPATH=src MANIFOLDRY_NEED_GPU=1 $(PY) -m pytest -m "not slow" \
	  -k "not emulated" tests/device tests/contract/test_devices.py $(ARGS)

$(GPU)/.ready: $(READY)
	$(call with_extra,$(CUDA))

# The explorer in a browser: the Chromium of the system, such as Debian's package chromium.
BROWSER := .venv-browser

test-browser: $(BROWSER)/.ready
	PYTHONDONTWRITEBYTECODE= $(BROWSER)/bin/python -m pytest -n $(WORKERS) -m "not slow" \
	  tests/browser $(ARGS)

$(BROWSER)/.ready: $(READY)
	$(call with_extra,test-browser)

# The same inside Jupyter and marimo, which are large; by hand.
NOTEBOOK := .venv-notebook

test-notebook: $(NOTEBOOK)/.ready
	PYTHONDONTWRITEBYTECODE= $(NOTEBOOK)/bin/python -m pytest -m slow tests/browser/test_notebooks.py $(ARGS)

$(NOTEBOOK)/.ready: $(READY)
	$(call with_extra,test-notebook)

# The page of the explorer, from frontend into the package. Needs Node.js and npm.
frontend: frontend/node_modules/.package-lock.json
	cd frontend && npm run build

frontend/node_modules/.package-lock.json: frontend/package-lock.json
	cd frontend && npm ci
	touch $@

$(DOCS)/.ready: $(READY)
	$(call with_extra,docs)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

types: $(READY)
	$(BIN)/mypy

package: $(READY)
	.ci/package.sh $(BIN)/python

papers: $(READY)
	for run in papers/*/run.py; do $(BIN)/python $$run || exit 1; done

# The site, in build/docs. Every example of the gallery runs whose data are on this machine.
SPHINX := $(DOCS)/bin/python -m sphinx -W --keep-going -q -d build/doctrees

docs: $(DOCS)/.ready
	$(SPHINX) -b html docs build/docs $(ARGS)
	@echo "The site is at build/docs/index.html"

docs-fast: $(DOCS)/.ready
	GALLERY=fast $(SPHINX) -b html docs build/docs $(ARGS)

# One folder per released version and the present one, with a switch between them, in build/site.
docs-versions: $(DOCS)/.ready
	$(DOCS)/bin/python docs/versions.py build/site $(ARGS)

# External links; needs the network.
linkcheck: $(DOCS)/.ready
	GALLERY=fast $(SPHINX) -b linkcheck docs build/linkcheck $(ARGS)

# The still pictures of the pages, stored in docs/images. That of other packages' maps needs them:
# python docs/pictures/coming_maps.py in an environment with openTSNE and umap-learn. Those of the
# explorer need a browser: .venv-browser/bin/python docs/pictures/explorer.py after make test-browser.
pictures: $(READY)
	for script in $(filter-out %/coming_maps.py %/explorer.py,$(wildcard docs/pictures/*.py)); do \
	  $(BIN)/python $$script || exit 1; done

# Peers get environments of their own under benchmarks/.envs; see docs/benchmarks.md.
bench: $(READY)
	$(BIN)/python -m benchmarks $(ARGS)

bench-quick: $(READY)
	$(BIN)/python -m benchmarks --quick $(ARGS)

bench-check: $(READY)
	$(BIN)/python -m benchmarks --quick --check $(ARGS)

# CONSTRAINTS names a file of pinned versions; .ci/run uses it for the lowest supported ones.
$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("manifoldry needs Python 3.11 or newer: make PYTHON=/path/to/python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(CONSTRAINTS),-c $(CONSTRAINTS)) -e ".[dev]"
	touch $(READY)

clean:
	rm -rf .venv .venv-* benchmarks/.envs build dist demo demo.png docs/gallery docs/api .pytest_cache .mypy_cache .ruff_cache
