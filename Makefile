# Two commands do all their own set-up: `make run` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROGRAMS := rackscope-access rackscope-cached rackscope-keeper rackscope-synthetic
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_QUIET = 1

# How long each target is fuzzed.
SECONDS := 60

.PHONY: run test build check format clean fetch fuzz

run: build
	$(BIN)/rackscope calibrate --quick --if-missing
	$(BIN)/rackscope run cache ycsb-b --duration 4s --budget 24s

test: build fetch
	$(BIN)/python tools/with_memcached.py cargo test --workspace --exclude native --quiet
	RUSTFLAGS="--cfg loom" cargo test -p mica --lib --release --quiet --target-dir target/loom models
	fuzz/run $(SECONDS)
	$(BIN)/python -m pytest -q

build: $(VENV)/.ready
	cargo build --release --workspace --exclude native --bins
	mkdir -p python/rackscope/bin
	for program in $(PROGRAMS); do install -m 755 $${CARGO_TARGET_DIR:-target}/release/$$program python/rackscope/bin/; done
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --quiet

# The real servers that tests run against, and the clients that test ours.
fetch: build
	$(BIN)/rackscope get memcached redis libmemcached-tools

# Every parser, given bytes that are made up to reach more and more of it: see docs/fuzzing.md.
fuzz:
	fuzz/run $(SECONDS)

# Format, lint and types.
check: $(VENV)/.ready
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	$(BIN)/ruff format --check python tests benches
	$(BIN)/ruff check python tests benches
	$(BIN)/mypy

format: $(VENV)/.ready
	cargo fmt --all
	$(BIN)/ruff format python tests benches
	$(BIN)/ruff check --fix python tests benches

$(VENV)/.ready: pyproject.toml
	sh tools/make-venv $(PYTHON) $(VENV)
	touch $@

clean:
	rm -rf target $(VENV) python/rackscope/bin python/rackscope/_native*.so
