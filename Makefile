# Two commands to begin with:  make demo   make test
# They need Python 3.11 or newer and make; a C++ compiler makes things faster but is not required.

PYTHON ?= python3
JOBS ?= 2

VENV := .venv
REFERENCE := .venv-reference
SANITIZE := .venv-sanitize
BIN := $(VENV)/bin
PIP := -m pip install -qq --disable-pip-version-check --no-input
RECORDS := build/conformance
# The areas of the specification that are complete and must stay so.
COMPLETE := A,B,C,D,E,F,G,H,I,J,K,L,M,N,O,P,Q,R,S,T,U,V,W,X,Y,Z,AA,AB,AC,AD
NATIVE_SOURCES := $(shell find native -type f)
SOURCES := $(shell find src -name '*.py') $(NATIVE_SOURCES)

# Matplotlib keeps a list of fonts; here, not in the user's home.
export MPLCONFIGDIR := $(CURDIR)/build/matplotlib

# Tests start the program hundreds of times: compiled once, a module is not compiled by each of them.
unexport PYTHONDONTWRITEBYTECODE

# The workers of a test run share the cores, so each keeps its matrix products on one.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help install demo studio studio-screenshots check test test-browser test-peers test-reference test-pythons test-selection test-kernels test-arm kernels mutants sanitize reliability bench lint format conformance docs clean fresh

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(VENV)/installed  ## Create .venv and install chainrule in it

demo: $(VENV)/installed  ## Train a small language model on text that needs no download (about two minutes)
	@$(BIN)/chainrule demo

studio: $(VENV)/installed-studio  ## Open a page that shows runs, tokens and every gradient
	@$(BIN)/chainrule studio

studio-screenshots: $(VENV)/installed $(VENV)/installed-studio  ## Take the pictures of the Studio in docs/images; ALL=1: every view, themes and widths
	@$(BIN)/python -m tools.screenshots $(if $(ALL),--all)

# What most mistakes trip over. `make test` and `make lint` are the whole.
QUICK_TESTS := tests/battery tests/scalar tests/autograd tests/nn tests/optim tests/models tests/test_docs.py \
  tests/test_conventions.py tests/test_mirror.py tests/test_imports.py

check: $(VENV)/installed-lint  ## In a minute: ruff, every gradient, the docs' examples, tests of scalar, autograd, nn, optim, models
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(PYTEST) $(QUICK_TESTS)

test: $(VENV)/installed  ## Run every test that needs no other framework and no browser
	@$(PYTEST) --ignore=tests/peers --ignore=tests/web/browser --conformance=$(RECORDS)/tests.json

test-browser: $(VENV)/installed  ## Click through the Studio in a real browser (Debian's chromium; skipped without it)
	@$(PYTEST) tests/web/browser

test-peers: $(VENV)/installed-peers  ## Compare with PyTorch (installs torch)
	@$(PYTEST) tests/peers --conformance=$(RECORDS)/peers.json

test-reference: $(REFERENCE)/installed  ## Run the battery on an install without the C++ kernels
	@$(REFERENCE)/bin/python -c "from chainrule import native; assert not native.available()"
	@OPENBLAS_NUM_THREADS=1 $(REFERENCE)/bin/python -m pytest -q -n $(JOBS) tests/battery tests/test_package.py

# VERSION: what environments are named after. With the kernels, if there is a compiler: building them takes less time than doing without.
VERSION := -c 'import sys; print("%d.%d" % sys.version_info[:2])'
test-pythons: $(VENV)/installed  ## Run a quick selection of the tests on each other Python that is found
	@found=$$($(BIN)/python tools/pythons.py); \
	[ -n "$$found" ] || echo "No other Python from 3.11 on is installed: only $$($(BIN)/python --version) was tried"; \
	for python in $$found; do \
	  $(MAKE) --no-print-directory PYTHON=$$python VENV=$(VENV)-$$($$python $(VERSION)) test-selection || exit 1; \
	done

# What differs between versions of Python: its own texts, its messages, files and processes, NumPy's releases.
test-selection: kernels
	@$(PYTEST) tests/battery tests/test_docs.py tests/text tests/models tests/runs/test_families.py

# A build without the kernels is no error for a user; where there is a compiler it would hide one.
kernels: $(VENV)/installed
	@[ "$$CHAINRULE_NATIVE" = OFF ] || ! command -v $(CXX) > /dev/null || \
	  $(BIN)/python -c "from chainrule import native; assert native.available(), native.why_missing()"

# Every kernel beside plain loops in double precision, in C++: on this CPU's instruction sets, and on those of others.
# $(call kernel_tests,FOLDER,SETTINGS of CMake,PREFIX of the program). With --plant each check is given a wrong number,
# and must notice it.
define kernel_tests
@mkdir -p build
@{ cmake -S native -B build/$(1) -DCHAINRULE_TESTS=ON $(2) && cmake --build build/$(1) --parallel $(JOBS); } \
  > build/$(1).log 2>&1 || { cat build/$(1).log; exit 1; }
@$(3) build/$(1)/tests/kernel_tests && $(3) build/$(1)/tests/kernel_tests --plant
endef

test-kernels:  ## Run the kernels' C++ tests on every instruction set of this CPU (needs CMake and a C++ compiler)
	$(call kernel_tests,$@)

ARM := aarch64-linux-gnu
test-arm:  ## Run the same tests compiled for 64-bit ARM, emulated (Debian: g++-aarch64-linux-gnu, qemu-user)
	@for tool in $(ARM)-g++ qemu-aarch64; do command -v $$tool > /dev/null || { \
	  echo "test-arm: $$tool is missing (Debian: apt install g++-aarch64-linux-gnu qemu-user)"; exit 2; }; done
	$(call kernel_tests,$@,-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
	  -DCMAKE_CXX_COMPILER=$(ARM)-g++,qemu-aarch64 -L /usr/$(ARM))

mutants: $(VENV)/installed  ## Which mistakes would no test notice? Tries 60 in each of four rooms (an hour)
	@$(BIN)/python -m tools.mutate ops optim generate train

# The kernels compiled with checks of every access, on the inputs of their tests; the pool with checks for races.
sanitize: $(SANITIZE)/installed  ## Run the kernels under AddressSanitizer and UBSan, and under ThreadSanitizer
	@mkdir -p build
	@$(CXX) -std=c++17 -O1 -g -fsanitize=thread -Inative native/tests/pool.cpp native/runtime/pool.cpp native/runtime/memory.cpp \
	  -o build/pool-test -pthread && build/pool-test
	$(call kernel_tests,sanitize-threads,-DCHAINRULE_SANITIZE=thread)
	@LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
	  $(SANITIZE)/bin/python -m pytest -q -n $(JOBS) -p no:cacheprovider tests/kernels tests/battery tests/text \
	  tests/models/test_compiled.py -k 'not memory'  # limits on memory leave the sanitizer no room, and it has its own store

reliability: $(VENV)/installed-data  ## Kill, damage, fuzz and misuse the program thousands of times (half an hour; QUICK=1: a minute)
	@$(BIN)/python -m benchmarks.reliability $(if $(QUICK),--quick)

bench: $(VENV)/installed-peers  ## Race with PyTorch and others and write README's speed table (half an hour; ONLY=decode: one part)
	@$(BIN)/python -m benchmarks $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

lint: $(VENV)/installed-lint  ## Check style, types and the direction of imports
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/mypy --strict docs/start/gated.py
	@$(BIN)/lint-imports --no-logo --no-cache

format: $(VENV)/installed-lint  ## Format the sources
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

conformance: $(VENV)/installed  ## Print which of the 520 requirements the tests settle
	@$(BIN)/python -m tests.conformance.report $(RECORDS)/tests.json > /dev/null 2>&1 || $(MAKE) --no-print-directory test || true
	@$(BIN)/python -m tests.conformance.report --require $(COMPLETE) $(RECORDS)/tests.json $(RECORDS)/peers.json

docs: $(VENV)/installed-docs  ## Build the documentation in docs/_build
	@$(BIN)/sphinx-build -q -W -b html docs docs/_build
	@echo "docs/_build/index.html"

clean:  ## Remove what was built
	rm -rf build dist docs/_build .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

fresh: clean  ## Remove the environments as well
	rm -rf $(VENV) $(VENV)-3.* $(REFERENCE) $(SANITIZE)

# An editable install: changes of Python files need no new one, changes of C++ files do.
$(VENV)/installed: $(VENV)/created pyproject.toml $(NATIVE_SOURCES)
	@echo "Installing chainrule and what it needs into $(VENV) (a minute or two the first time)"
	@$(BIN)/python $(PIP) -e '.[test,plots]'
	@$(BIN)/python -c "from chainrule import native; print('C++ kernels:', native.isa() or 'none, ' + native.why_missing())"
	@touch $@

$(VENV)/installed-%: $(VENV)/installed
	@echo "Installing chainrule[$*]"
	@$(BIN)/python $(PIP) 'chainrule[$*]'
	@touch $@

# The real thing, not editable: what a user gets from a machine without a compiler.
$(REFERENCE)/installed: $(REFERENCE)/created pyproject.toml $(SOURCES)
	@echo "Installing chainrule without the C++ kernels into $(REFERENCE)"
	@CHAINRULE_NATIVE=OFF $(REFERENCE)/bin/python $(PIP) '.[test]'
	@touch $@

$(SANITIZE)/installed: $(SANITIZE)/created pyproject.toml $(SOURCES)
	@echo "Installing chainrule with sanitizers into $(SANITIZE)"
	@$(SANITIZE)/bin/python $(PIP) '.[test]' -C cmake.define.CHAINRULE_SANITIZE=address,undefined
	@touch $@

%/created:
	@$(PYTHON) -c "import sys; v = sys.version.split()[0]; sys.version_info >= (3, 11) or sys.exit( \
	  f'{sys.executable} is Python {v}, chainrule needs 3.11 or newer (try: make PYTHON=python3.12 ...)')"
	@echo "Creating $* with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $*
	@touch $@
