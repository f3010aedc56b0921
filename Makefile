# Two commands do all their own set-up: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROGRAMS := rackscope-access rackscope-cached rackscope-keeper rackscope-synthetic
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_QUIET = 1
# Without bytecode each process of the tests compiles again what it imports, and each worker all tests.
unexport PYTHONDONTWRITEBYTECODE

# How long the long suite takes, the word that says where it begins, and how long each target is fuzzed.
MINUTES := 120
START :=
SECONDS := 60

.PHONY: run test test-long build check format clean fetch fuzz

run: build
	$(BIN)/rackscope calibrate --quick --if-missing
	$(BIN)/rackscope run cache ycsb-b --duration 4s --budget 24s

# Everything that ten minutes are enough for, from fixed seeds.
test: build fetch
	$(BIN)/python tools/rust_tests.py
	$(BIN)/python -m pytest -q -n 4 --dist worksteal -m "not long and not alone"
	$(BIN)/python -m pytest -q -m "alone and not long" tests/test_*studies*.py

# What takes longer, from new seeds, in MINUTES: fuzzing, model checking, simulations, full-length studies, repetition.
test-long: build fetch
	$(BIN)/python tools/test_long.py --minutes $(MINUTES) --start "$(START)"

build: $(VENV)/.ready
	cargo build --release --workspace --exclude native --exclude fuzz --bins
	mkdir -p python/rackscope/bin
	for program in $(PROGRAMS); do install -m 755 $${CARGO_TARGET_DIR:-target}/release/$$program python/rackscope/bin/ && strip --strip-debug python/rackscope/bin/$$program; done
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet

# The real servers that tests run against, and the clients that test ours.
fetch: build
	$(BIN)/rackscope get memcached redis libmemcached-tools fio

# Every parser, given bytes that are made up to reach more and more of it: see docs/testing.md.
fuzz:
	fuzz/run $(SECONDS)

# Format, lint and types.
check: $(VENV)/.ready
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff format --check python tests benches tools
	$(BIN)/ruff check python tests benches tools
	$(BIN)/mypy

format: $(VENV)/.ready
	cargo fmt --all
	$(BIN)/ruff format python tests benches tools
	$(BIN)/ruff check --fix python tests benches tools

$(VENV)/.ready: pyproject.toml
	sh tools/make-venv $(PYTHON) $(VENV)
	touch $@

clean:
	rm -rf target $(VENV) python/rackscope/bin python/rackscope/_native*.so
