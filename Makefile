# The tasks of this repository. GNU make 3.81 or newer; `make` alone lists them.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.stamp
SUPPLY := .cache/supply
DIST := dist
INSTALL := -m pip install --quiet --no-compile --disable-pip-version-check
# Only files whose hash is on the list, which is whole: nothing is resolved, and nothing is built
# here, which would fetch what is on no list.
LOCKED := --no-deps --require-hashes --only-binary :all:
ROWS := audit age wording hostile simulation whole_service exhaustive linearizability wishes faults flaky end_to_end operations contract dashboard adversary provider browser sandbox recorded cli store api bench plugins
SEEDS := 200000
FACES := $(shell date +%F)

# Each process of a test run would rewrite the assertions of every plugin again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help assets demo test check bench soak fmt docs site cover audit actions package sbom requirements

help: ## list the tasks
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1	\2/p' Makefile | expand -t 16

# One line that says what to install is worth more than pip's traceback. Most of what pip would
# compile is never imported; Python compiles the rest when it is.
$(STAMP): pyproject.toml requirements/dev.txt
	@command -v $(PYTHON) >/dev/null 2>&1 || \
	  { echo "$(PYTHON) is not on PATH: install Python 3.11 or newer, or give one by make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is older than 3.11: install Python 3.11 or newer, or give one by make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) has no venv module: install it (Debian, Ubuntu: apt-get install python3-venv)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python $(INSTALL) $(LOCKED) -r requirements/dev.txt
	$(BIN)/python $(INSTALL) --no-deps --no-build-isolation -e .
	@$(BIN)/python -m pip check --disable-pip-version-check
	@touch $@

$(SUPPLY)/.stamp: requirements/supply.txt
	$(PYTHON) -m venv --clear $(SUPPLY)
	$(SUPPLY)/bin/python $(INSTALL) $(LOCKED) -r requirements/supply.txt
	@touch $@

assets: ## fetch what tests compare with (GitHub's descriptions) and load (axe-core)
	@$(PYTHON) .ci/assets.py

demo: $(STAMP) ## run the service against its own stand-in for GitHub
	@$(BIN)/headgate demo $(ARGS)

test: $(STAMP) assets ## run every test, house rules included
	$(BIN)/python -m pytest -n auto

check: $(STAMP) ## lint, format, types, import rules, dependencies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .

bench: $(STAMP) ## measure; ONLY=name picks one, SCALE=n makes the input larger
	ONLY='$(ONLY)' SCALE='$(SCALE)' $(BIN)/python -m tests.bench

soak: $(STAMP) ## run long, on each database; ROWS=folder of tests (simulation, faults …) or audit, SEEDS=n
	HEADGATE_FACE_SEED='$(FACES)' HEADGATE_SIM_SEEDS='$(SEEDS)' HEADGATE_HOSTILE_SEEDS=100000 HEADGATE_WHOLE_SEEDS=100000 HEADGATE_EXHAUSTIVE=long HEADGATE_WISHES=2000 \
	  HEADGATE_NOISE_TESTS=2000000 HEADGATE_FAULTS=long HEADGATE_MUTANTS=1 HEADGATE_SOAK=1 \
	  $(BIN)/python -m pytest -n auto -q --timeout 0 $(addprefix tests/,$(filter-out audit,$(ROWS)))
	$(if $(filter audit,$(ROWS)),@$(MAKE) --no-print-directory audit)

fmt: $(STAMP) ## format, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP) ## write the pages that come from code: endpoints, settings, state charts, facts, reasons, log events, faults, board, alerts, the stand-in
	$(BIN)/python -m pytest -n 0 -q tests/docs/test_api_page.py tests/docs/test_settings.py tests/docs/test_state_charts.py tests/docs/test_provenance_page.py tests/docs/test_reasons_page.py tests/docs/test_log_events.py tests/docs/test_fault_table.py tests/deploy/test_monitoring.py tests/recorded/test_stand_in.py --update-golden

site: $(STAMP) ## build the documentation as a site with search, in .cache/site; a broken link fails
	@$(BIN)/python -m sphinx -W --keep-going -q -b html -c docs -d .cache/site-pages . .cache/site

cover: $(STAMP) assets ## which branches the tests reach: 95 % of all, every one of the engine
	$(BIN)/python -m pytest -n auto --cov --cov-report=
	$(BIN)/coverage report --include='service/mergequeue/engine/*' --fail-under=100
	$(BIN)/coverage report --fail-under=95

# A list of what was found is written only if every advisory could be read.
audit: $(SUPPLY)/.stamp ## look for known weaknesses in the pinned packages; fails where it cannot look
	@rm -f .cache/audit.json
	@$(SUPPLY)/bin/pip-audit --progress-spinner off --disable-pip --require-hashes \
	  -r requirements/dev.txt --format json --output .cache/audit.json || \
	  { test -s .cache/audit.json && cat .cache/audit.json || \
	    echo "NOT AUDITED: the database of advisories could not be read. Run this where it can be reached."; exit 1; }

# Each with the program that it runs: a folder that any repository can carry.
actions: ## copy the actions into dist/action, to be put into a repository of your own
	@rm -rf $(DIST)/action && mkdir -p $(DIST) && cp -r action $(DIST)/action
	@for each in $(DIST)/action/*; do \
	  mkdir -p $$each/bot/uploader && cp LICENSE $$each && cp bot/__init__.py $$each/bot && \
	  cp bot/uploader/*.py $$each/bot/uploader || exit 1; done

package: $(STAMP) actions ## build the wheel, the source distribution and the actions into dist/
	@rm -f $(DIST)/headgate-* && $(BIN)/python -m hatchling build -d $(DIST)

sbom: package $(SUPPLY)/.stamp ## write sbom.json: everything that an installed build contains (CycloneDX)
	@rm -rf .cache/build && $(PYTHON) -m venv .cache/build/venv
	@.cache/build/venv/bin/python $(INSTALL) $(LOCKED) -r requirements/run.txt
	@.cache/build/venv/bin/python $(INSTALL) --no-deps $(DIST)/headgate-*.whl
	@.cache/build/venv/bin/python -m pip uninstall --quiet --yes setuptools pip
	@sed "s/^dynamic = .*/version = \"$$($(BIN)/python -m hatchling version)\"/" pyproject.toml > .cache/build/pyproject.toml
	@$(SUPPLY)/bin/cyclonedx-py environment --output-reproducible --pyproject .cache/build/pyproject.toml \
	  --mc-type application --output-file sbom.json .cache/build/venv

LOCK = $(SUPPLY)/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
  --generate-hashes --no-header --no-annotate --upgrade

requirements: $(SUPPLY)/.stamp ## write requirements/ anew: the newest versions that fit together, with hashes
	$(LOCK) pyproject.toml --extra dev --extra tracing -o requirements/dev.txt
	$(LOCK) pyproject.toml --extra tracing --group build -c requirements/dev.txt -o requirements/run.txt
	$(LOCK) --group supply -o requirements/supply.txt
	$(LOCK) --group deploy -o requirements/deploy.txt
