# gangplan. `make` lists what can be made.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PROFILE ?= new
SEED ?= 1
COUNT ?= 2000
WHAT ?= all

# Without bytecode every start of Python takes about three times as long.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check format docs update constraints schemas bench lab lab-up lab-down e2e e2e-matrix fidelity reality law clean

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(READY): constraints.txt constraints-alone.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "gangplan needs Python 3.11 or later; set PYTHON=python3.12"; exit 3; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing packages (pinned by hash)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r constraints-alone.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## Set everything up, then render and validate the sample workspace
	@$(BIN)/gangplan tools install || echo "going on with the embedded engines"
	@$(BIN)/gangplan tools list
	@$(BIN)/gangplan render
	@$(BIN)/gangplan validate
	@$(BIN)/gangplan plan specs/research/quickstart-cpu.yaml

# One worker more than there are cores: tests that wait for a grace period or a port leave theirs idle.
test: $(READY) ## Run the tests (about four minutes)
	@$(BIN)/python -m pytest -q -n $$(($$(getconf _NPROCESSORS_ONLN) + 1)) -m "not e2e and not reality"

# One part of `make check`: a command, and what to say when it fails.
part = $(1) || { echo "make check: $(2)" >&2; exit 1; }

check: $(READY) ## Everything that CI checks
	@$(call part,$(BIN)/ruff format --check -q .,the files above are not formatted; run: make format)
	@$(call part,$(BIN)/ruff check -q .,lint found problems; run: make format -- and correct by hand what it leaves)
	@$(call part,$(BIN)/mypy,types do not fit; correct the lines above and run: $(BIN)/mypy)
	@$(call part,$(BIN)/lint-imports --no-cache > $(VENV)/imports.log || { cat $(VENV)/imports.log; false; },an import crosses a layer (pyproject.toml); move the code and run: $(BIN)/lint-imports)
	@$(call part,$(BIN)/gangplan docs docs --check,generated pages are stale; run: make docs)
	@$(call part,$(BIN)/gangplan render --check,rendered/ is stale or the sample workspace has errors; run: $(BIN)/gangplan render)
	@$(call part,$(MAKE) --no-print-directory test,tests failed; run: $(BIN)/python -m pytest -q --lf -- or make update if only golden files differ and you meant the change)

format: $(READY) ## Format the code
	@$(BIN)/ruff format -q .
	@$(BIN)/ruff check -q --fix .

docs: $(READY) ## Write the generated reference pages
	@$(BIN)/gangplan docs docs

update: $(READY) ## Rewrite golden files, reference pages and rendered/ after an intended change
	@$(BIN)/gangplan docs docs
	@$(BIN)/gangplan render
	@$(BIN)/python -m pytest -q -n auto -m "not e2e and not reality" --update

constraints: $(READY) ## Pin the newest allowed packages by hash (needs uv)
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --all-extras pyproject.toml -o constraints.txt

schemas: $(READY) ## Generate the schemas anew from their pinned sources (development only)
	@$(BIN)/python validate/apiserver/schemas/build.py

bench: $(READY) ## Measure speed and memory, beside kustomize and the bare limit
	@$(BIN)/python -m benchmarks

clean: ## Remove the environment and caches of this checkout
	rm -rf $(VENV) .gangplan .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist *.egg-info

lab: $(READY) ## Build the lab: a real control plane from Go modules (about ten minutes, once)
	@$(BIN)/python -m tests.lab build

lab-up: $(READY) ## Start a lab for yourself (PROFILE=new|middle|old|broken)
	@$(BIN)/python -m tests.lab up --profile $(PROFILE)

lab-down: $(READY) ## End it
	@$(BIN)/python -m tests.lab down --profile $(PROFILE)

e2e: $(READY) ## Apply, admit, run and sync the sample workspace for real (profile new); MPIs on up to 40 hosts
	@$(BIN)/python -m pytest -q -m e2e --durations=8 tests/lab tests/e2e tests/reality

e2e-matrix: $(READY) ## The same for every profile
	@for profile in new middle old broken; do echo "profile $$profile"; \
	  GANGPLAN_LAB_PROFILE=$$profile $(BIN)/python -m pytest -q -m e2e --durations=3 tests/e2e || exit 1; done

fidelity: $(READY) ## Ask gangplan and the control plane the same questions (SEED, COUNT, WHAT)
	@$(BIN)/python -m tests.e2e.fidelity --seed $(SEED) --count $(COUNT) --what $(WHAT)

reality: $(READY) ## Run the launch scripts with real MPIs on up to 40 hosts (minutes)
	@$(BIN)/python -m pytest -q -n auto --durations=8 tests/reality

law: $(READY) ## Hold random command lines to what real MPIs start (SEED, COUNT)
	@GANGPLAN_LAW_COUNT=$(COUNT) GANGPLAN_LAW_SEED=$(SEED) $(BIN)/python -m pytest -q tests/reality/test_law.py
