# Every target sets up what it needs: a virtual environment in $(VENV), filled from constraints.txt.
# Targets can be repeated and interrupted. An installation that was cut short is started afresh.
#
#   make verify PYTHON=/opt/python/bin/python3.11 VENV=/tmp/venv
#   make test PIP_FLAGS='--extra-index-url URL'   # for instance an index of CPU-only torch builds

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV ?= .venv
WORKERS ?= 2
BUDGET ?= 60s
SEED ?= 0
PIP_FLAGS ?=

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
UNFINISHED := $(VENV)/.installing

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help setup verify report test fast lint bench docs picture example clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(STAMP) ## install everything into $(VENV); the other targets do it by themselves

verify: $(STAMP) ## check the models, their agreement, the kernel and the library against them
	$(BIN)/forebay verify --budget $(BUDGET) --seed $(SEED) --save build/verify.json

report: $(STAMP) ## render what `make verify` found as build/report.html and build/report.json
	$(BIN)/forebay report build/verify.json --html build/report.html --json build/report.json

test: $(STAMP) ## run every test
	$(BIN)/python -m pytest -n $(WORKERS)

fast: lint ## ruff, mypy and the quick tests, in under two minutes
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

lint: $(STAMP) ## ruff and mypy over all rooms
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: $(STAMP) ## measure speed as ratios against other buffers, all in one run; build/bench.json and charts
	$(BIN)/python -m benchmarks --json build/bench.json --charts build/charts

docs: $(STAMP) ## build the site into site/, warnings being errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

picture: $(STAMP) ## draw docs/assets/*.svg anew from the Python model
	$(BIN)/python docs/tools/draw_state_machine.py

example: $(STAMP) ## train on CartPole in threads, processes and TorchRL's collectors; kill a run and resume it
	$(BIN)/python examples/cartpole.py --plot build/cartpole.png
	$(BIN)/python examples/cartpole.py --processes --kill-actor --plot build/cartpole-processes.png
	$(BIN)/python examples/torchrl_multiasync.py --kill-actor
	$(BIN)/python examples/resume.py

clean: ## remove what the tools leave behind, the virtual environment included
	rm -rf $(VENV) site build dist .hypothesis .mypy_cache .ruff_cache .pytest_cache .crosshair

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "forebay needs Python 3.11 or later; name one with make PYTHON=/path/to/python3.11" >&2; \
	  exit 2; }
	@mkdir -p $(VENV); \
	if [ -e $(UNFINISHED) ]; then \
	  find $(VENV) -mindepth 1 ! -path $(UNFINISHED) -delete; \
	fi; \
	touch $(UNFINISHED)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP_FLAGS) -c constraints.txt hatchling editables
	$(BIN)/python -m pip install $(PIP_FLAGS) -c constraints.txt --no-build-isolation -e '.[dev]'
	@rm -f $(UNFINISHED)
	@touch $@
