# The tasks of this repository. GNU make 3.81 or newer; `make` alone lists them.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.stamp
ROWS := simulation exhaustive linearizability wishes faults flaky end_to_end operations contract dashboard adversary provider browser sandbox cli store api
SEEDS := 200000

# Each process of a test run would rewrite the assertions of every plugin again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help assets demo test check bench soak fmt docs cover constraints

help: ## list the tasks
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1	\2/p' Makefile | expand -t 16

# One line that says what to install is worth more than pip's traceback. Most of what pip would
# compile is never imported; Python compiles the rest when it is.
$(STAMP): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null 2>&1 || \
	  { echo "$(PYTHON) is not on PATH: install Python 3.11 or newer, or give one by make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is older than 3.11: install Python 3.11 or newer, or give one by make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv module: install it (Debian, Ubuntu: apt-get install python3-venv)"; exit 1; }
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	  $(BIN)/python -m pip install --quiet --no-compile -e '.[dev]'
	@touch $@

assets: ## fetch what tests compare with (GitHub's descriptions) and load (axe-core)
	@$(PYTHON) .ci/assets.py

demo: $(STAMP) ## run the service against its own stand-in for GitHub
	@$(BIN)/headgate demo $(ARGS)

test: $(STAMP) assets ## run every test, house rules included
	$(BIN)/python -m pytest -n auto --dist worksteal

check: $(STAMP) ## lint, format, types, import rules, dependencies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .

bench: $(STAMP) ## measure; ONLY=name picks one, SCALE=n makes the input larger
	ONLY='$(ONLY)' SCALE='$(SCALE)' $(BIN)/python -m tests.bench

soak: $(STAMP) ## run long, on each database; ROWS=folder of tests (simulation, faults, mutants …), SEEDS=n
	HEADGATE_SIM_SEEDS='$(SEEDS)' HEADGATE_EXHAUSTIVE=long HEADGATE_WISHES=2000 \
	  HEADGATE_NOISE_TESTS=2000000 HEADGATE_FAULTS=long HEADGATE_MUTANTS=1 HEADGATE_SOAK=1 \
	  $(BIN)/python -m pytest -n auto --dist worksteal -q --timeout 0 $(addprefix tests/,$(ROWS))

fmt: $(STAMP) ## format, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP) ## write the pages that come from code: endpoints, settings, state charts
	$(BIN)/python -m pytest -n 0 -q tests/docs/test_api_page.py tests/docs/test_settings.py tests/docs/test_state_charts.py --update-golden

cover: $(STAMP) assets ## which branches the tests reach: 95 % of all, every one of the engine
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=
	$(BIN)/coverage report --include='service/mergequeue/engine/*' --fail-under=100
	$(BIN)/coverage report --fail-under=95

constraints: ## write constraints.txt anew: the newest versions that fit together
	$(PYTHON) -m venv --clear .cache/constraints
	.cache/constraints/bin/python -m pip install --quiet '.[dev]'
	.cache/constraints/bin/python -m pip freeze --exclude headgate --exclude pip --exclude setuptools \
	  | tr 'A-Z_' 'a-z-' | LC_ALL=C sort > .cache/constraints.txt
	mv .cache/constraints.txt constraints.txt
	rm -rf .cache/constraints
