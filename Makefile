# `make help` lists what there is. Everything sets itself up first, and does so only once.
SHELL := bash
PY := .venv/bin/python
PYTEST := $(PY) -m pytest
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint unit integration demo-short docs lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 22

setup: ## .venv from the locks, and the system packages (libnuma1, chromium)
	@scripts/setup.sh

demo: setup ## train a small model to use a tool; ends with the reward curve and the report's path
	.venv/bin/verl-tool run examples/calculator/job.yaml

test: setup ## lint, unit, integration and a short training run, each timed
	@scripts/stages.sh lint unit integration demo-short

lint: setup ## ruff, mypy --strict, import directions: what pre-commit runs
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports

unit: setup ## tests of seconds, no model and no cluster
	$(PYTEST) tests/unit

integration: setup ## tests with the real trainer, engine, tool server and browser
	$(PYTEST) tests/integration --ignore tests/integration/demo

demo-short: setup ## the demo in short form: the reward has to rise
	$(PYTEST) tests/integration/demo

docs: setup ## docs/reference from the code
	$(PY) scripts/docs.py

lock: setup ## requirements/*.txt from pyproject.toml; UPGRADE=1 moves versions
	scripts/lock.sh $(if $(UPGRADE),--upgrade)

clean: ## removes .venv and caches; runs stay
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
