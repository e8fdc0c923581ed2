# gangplan. `make` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RUNS := $(VENV)/.runs
PROFILE ?= new
SEED ?= 1
COUNT ?= 2000
KILLS ?= 1000
WHAT ?= all
WORKERS ?= 0

# Without bytecode, every start of Python takes about three times as long.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
STATIC := is-formatted is-linted is-typed is-layered is-documented is-rendered
.PHONY: help demo installed ready test quick check static $(STATIC) format docs update constraints schemas bench bench-all bench-page engines lab lab-up lab-down e2e e2e-matrix linters fidelity node images built reality law fuzz guided crash clean

##@ Every day
help: ## List the targets
	@awk -F ':.*## ' '/^##@/ {printf "%s%s\n", gap, substr($$0, 5); gap = "\n"} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# What running gangplan from this checkout needs; $(READY) has what tests need.
$(RUNS): constraints-run.txt pyproject.toml
	@if test $(READY) -nt constraints.txt; then touch $@; else $(MAKE) --no-print-directory installed; fi

installed:
	@echo "[1/4] $(VENV): $$(grep -c == constraints-run.txt) packages, pinned by hash"
	@"$(PYTHON)" .ci/environment.py run
	@touch $(RUNS)

$(READY): constraints.txt constraints-alone.txt pyproject.toml
	@echo "$(VENV): $$(grep -c == constraints.txt) packages, pinned by hash"
	@"$(PYTHON)" .ci/environment.py all
	@touch $@ $(RUNS)

ready: $(READY) ## Install everything that tests need, and fetch real programs (all may be kept by the machine)
	@$(BIN)/gangplan tools install || true
	@$(BIN)/python -m tests.reality.fetch

demo: $(RUNS) ## Install what running needs, then render and validate the sample workspace
	@echo "[2/4] kustomize and kubeconform"
	@$(BIN)/gangplan tools install || echo "going on with the embedded engines"
	@echo "[3/4] gangplan render: specs/, overlays/ and images/ become rendered/"
	@$(BIN)/gangplan render --format json=/dev/null || $(BIN)/gangplan render
	@echo "[4/4] gangplan validate: everything is checked, offline"
	@$(BIN)/gangplan validate
	@printf '%s\n' '' 'next:' \
	  '  $(BIN)/gangplan plan specs/research/quickstart-cpu.yaml   what a spec of ten lines becomes' \
	  '  $(BIN)/gangplan list specs                                what this sample has' \
	  '  $(BIN)/gangplan explain rdma-fallback                     what a finding above means' \
	  '  $(BIN)/gangplan init ../jobs                              a workspace of your own (docs/first-ten-minutes.md)'

PLAIN := -m "not e2e and not reality"
test: $(READY) ## Run the tests (minutes), those that fail among others once more alone
	@$(BIN)/python .ci/tests.py $(PLAIN)

# The widest tests for their time: all examples, user stories, common faults, and how commands of jobs start.
QUICK := $(addprefix tests/,test_examples.py test_user_stories.py test_five_teams.py test_thirty_faults.py test_messages.py test_source.py test_gitops.py test_sync_model.py plan)
quick: $(READY) ## Lint, and run the tests that find most for their time (less than a minute)
	@$(BIN)/ruff check -q .
	@$(BIN)/python -m pytest -q -n auto $(PLAIN) $(QUICK)

# One part of `make check`: a command, and the message if it fails. With --keep-going, all are printed.
part = $(1) || { echo "make check: $(2)" >&2; exit 1; }

check: $(READY) ## Everything that CI checks
	@$(MAKE) --no-print-directory --keep-going static
	@$(call part,$(MAKE) --no-print-directory test,tests failed; run: $(BIN)/python -m pytest -q --lf -- or make update if only golden files differ and you meant the change)

static: $(STATIC)

is-formatted: $(READY)
	@$(call part,$(BIN)/ruff format --check -q .,the files above are not formatted; run: make format)
is-linted: $(READY)
	@$(call part,$(BIN)/ruff check -q .,lint found problems; run: make format -- and correct by hand what it leaves)
is-typed: $(READY)
	@$(call part,$(BIN)/mypy,types do not fit; correct the lines above and run: $(BIN)/mypy)
is-layered: $(READY)
	@$(call part,$(BIN)/lint-imports --no-cache > $(VENV)/imports.log || { cat $(VENV)/imports.log; false; },an import crosses a layer (pyproject.toml); move the code and run: $(BIN)/lint-imports)
is-documented: $(READY)
	@$(call part,$(BIN)/gangplan docs docs --check,generated pages are stale; run: make docs)
is-rendered: $(READY)
	@$(call part,$(BIN)/gangplan render --check,rendered/ is stale or the sample workspace has errors; run: $(BIN)/gangplan render)

format: $(READY) ## Format the code
	@$(BIN)/ruff format -q .
	@$(BIN)/ruff check -q --fix .

docs: $(READY) ## Write the generated reference pages
	@$(BIN)/gangplan docs docs

update: $(READY) ## Rewrite golden files, reference pages and rendered/ after an intended change
	@$(BIN)/gangplan docs docs
	@$(BIN)/gangplan render
	@$(BIN)/python -m pytest -q -n auto -m "not e2e and not reality" --update

clean: ## Remove the environment and caches of this checkout
	rm -rf $(VENV) .engines .gangplan .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist *.egg-info

##@ Upkeep and figures
constraints: $(READY) ## Pin the newest allowed packages by hash (needs uv)
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --all-extras pyproject.toml -o constraints.txt
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --extra build -c constraints.txt pyproject.toml -o constraints-run.txt

schemas: $(READY) ## Generate the schemas again from their pinned sources (development only)
	@$(BIN)/python validate/apiserver/schemas/build.py

bench: $(READY) ## Measure speed and memory in less than four minutes, next to other programs where present
	@$(BIN)/python -m benchmarks

bench-all: $(READY) ## Measure all, to 10 000 specs on 10 clusters (an hour), and write docs/performance.md
	@$(BIN)/python -m benchmarks --all --json benchmarks/results.json
	@$(BIN)/python -m benchmarks --page

bench-page: $(READY) ## Write docs/performance.md from benchmarks/results.json; warn when that is of older sources
	@$(BIN)/python -m benchmarks --page

##@ With real programs
# Their packages need other versions than gangplan's, so each has an environment of its own.
engines: ## Install Kubeflow Pipelines, Airflow and Groovy, which read what is written for them (700 MB)
	@for engine in kfp airflow; do \
	  test -x .engines/$$engine/bin/python || "$(PYTHON)" -m venv .engines/$$engine; \
	  .engines/$$engine/bin/python -m pip install --quiet --disable-pip-version-check -r tests/pipelines/engines/$$engine.txt || exit 1; \
	done
	@mvn --quiet dependency:copy -Dartifact=org.apache.groovy:groovy:4.0.28 -DoutputDirectory=.engines -Dmdep.stripVersion=true

lab: $(READY) ## Build the lab: a real control plane from Go modules (about ten minutes, once; PROFILE=all for every version)
	@$(BIN)/python -m tests.lab build --profile $(PROFILE)

lab-up: $(READY) ## Start a lab for yourself (PROFILE=new|middle|old|broken)
	@$(BIN)/python -m tests.lab up --profile $(PROFILE)

lab-down: $(READY) ## End it
	@$(BIN)/python -m tests.lab down --profile $(PROFILE)

# WORKERS=2: one process runs the tests with the control plane, mostly waiting; the other one all others.
e2e: $(READY) ## Apply, admit, run and sync the sample workspace for real (profile new); MPIs on up to 40 hosts
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadscope -m e2e --durations=20

node: $(READY) ## Join a real kubelet to the lab and record what it says of pods that fail (root, cgroups, Debian's containerd)
	@GANGPLAN_KUBELET=1 $(BIN)/python -m pytest -q -rs -n 0 -m e2e tests/e2e/test_kubelet.py

e2e-matrix: e2e ## The same, and then what depends on versions for every other profile
	@for profile in middle old broken; do echo "profile $$profile"; \
	  GANGPLAN_LAB_PROFILE=$$profile $(BIN)/python -m pytest -q -m e2e --durations=3 tests/e2e || failed=1; done; \
	exit $${failed:-0}

linters: $(READY) ## Hold CI recipes and sync manifests to programs of others: actionlint, gitlab-ci-local, ... (needs npm, Go)
	@$(BIN)/python -m tests.linters || echo "make linters: what could not be had is named above; its tests are skipped" >&2
	@GANGPLAN_LINTERS=1 $(BIN)/python -m pytest -q -n $$(getconf _NPROCESSORS_ONLN) --durations=5 tests/linters

fidelity: $(READY) ## Ask gangplan and the control plane the same questions (SEED, COUNT, WHAT)
	@$(BIN)/python -m tests.e2e.fidelity --seed $(SEED) --count $(COUNT) --what $(WHAT)

images: ## Build the images (buildah or podman; UBI=, CUDA=, INTEL=, PYTHON=: bases by digest)
	images/build.sh

built: $(READY) ## Build images/mpich on Debian and start it as pods do (root, buildah, debootstrap; minutes, 2 GB)
	@GANGPLAN_BUILT=$${GANGPLAN_BUILT:-$(CURDIR)/.gangplan/built} $(BIN)/python -m pytest -q -rs -n 0 tests/reality/test_built_image.py

reality: $(READY) ## Run the launch scripts with every real MPI and shell, on up to 40 hosts (minutes)
	@$(BIN)/python -m pytest -q -n auto --durations=8 -m "not e2e" tests/reality tests/launch

fuzz: $(READY) ## Try random texts, workspaces, programs and kills (WHAT=all|yaml|kill|..., COUNT, SEED)
	@$(BIN)/python -m tests.fuzz $(WHAT) $(COUNT) $(SEED)

guided: $(READY) ## Try texts that coverage guides to new branches (WHAT=yaml|quantities|..., COUNT, SEED; x86-64 Linux)
	@$(BIN)/python -m pip install --quiet --no-deps --require-hashes --upgrade --target .gangplan/guided -r tests/fuzz/guided.txt
	@PYTHONPATH=.gangplan/guided $(BIN)/python -m tests.fuzz.guided $(WHAT) $(COUNT) $(SEED)

# A case of the campaign `kill` has three kills, and counts as 200 texts.
crash: $(READY) ## Kill commands at KILLS random moments, and see that no file is lost or half-written (SEED)
	@$(BIN)/python -m tests.fuzz kill $$((($(KILLS) + 2) / 3 * 200)) $(SEED)

law: $(READY) ## Hold random command lines to what real MPIs start (SEED, COUNT)
	@GANGPLAN_LAW_COUNT=$(COUNT) GANGPLAN_LAW_SEED=$(SEED) $(BIN)/python -m pytest -q tests/reality/test_law.py
