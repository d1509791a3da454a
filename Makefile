# Everything runs from .venv; `make setup` makes it and does nothing while pyproject.toml and the lock stay the same.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.kerf-setup
LOCK := requirements/requirements.txt
COMPILE := UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url
HELM := v3.22.0
# What helm's own releases are built with: without a cluster it takes this version for the cluster's, else 1.20.
HELM_SERVER := -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=36
KARPENTER := v1.14.0
UV := VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/uv
SPREAD := -n auto --dist worksteal
# One test by itself: make test PYTEST_ARGS='tests/unit/test_x.py::test_y'
PYTEST_ARGS ?= -m 'not slow' $(SPREAD)

# Without bytecode each process of the tests compiles all of them again (15 s), and each command all of kerf (1 s). So setup
# keeps kerf's: where the environment forbids to write it, commands still find it.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: test-all test-browser pictures dst fuzz helm reference reference-e2e reference-scenarios policy crds schemas golden bench conformance controlplane test-controlplane help setup test lint types contracts check format demo lock sbom clean

help: ## List the targets
	@grep -hE '^[a-z][a-z0-9-]*:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-17s %s\n", $$1, $$2}'

setup: $(STAMP) ## Make .venv with everything that kerf, its demo and its tests need

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "kerf needs Python 3.11 or newer; say which with: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "setup 1/3: making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "setup 2/3: installing pip and uv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip uv

$(STAMP): pyproject.toml $(LOCK) | $(BIN)/uv
	@echo "setup 3/3: installing kerf and the locked packages"
	@$(UV) pip install --require-hashes -r $(LOCK)
	@$(UV) pip install --no-deps --no-build-isolation -e .
	@$(UV) pip check --quiet || { echo 'pyproject.toml and $(LOCK) disagree: run make lock' >&2; exit 1; }
	@$(BIN)/python -m compileall -q -j 0 adapters engine kerf projections replay && $(BIN)/kerf --help >/dev/null
	@touch $@

test: setup ## Run the tests of every area that are not marked slow (four minutes on two cores)
	$(BIN)/python -m pytest --ignore=tests/controlplane --ignore=tests/browser $(PYTEST_ARGS)

# `make -o test test-all` runs only what `make test` leaves out.
test-all: test ## Run the slow tests too: all but those on a control plane
	$(BIN)/python -m pytest --ignore=tests/controlplane --ignore=tests/browser -m slow $(SPREAD)

controlplane: ## Build etcd, kube-apiserver, kube-scheduler, kube-controller-manager and kwok (Go 1.26, ten minutes)
	@tests/controlplane/build/build.sh

# With KUBEBUILDER_ASSETS set, the binaries in that folder are used.
test-browser: setup ## Run the tests of the explorer in a real browser (Debian's chromium)
	$(BIN)/python -m pytest tests/browser

pictures: setup ## Make the pictures of the explorer in docs/pictures again, in a real browser
	PICTURES=docs/pictures $(BIN)/python -m pytest tests/browser/test_pictures.py

test-controlplane: setup $(if $(KUBEBUILDER_ASSETS),,controlplane) ## Run the tests on a real control plane
	$(BIN)/python -m pytest $(or $(CONTROLPLANE_TESTS),tests/controlplane)

# Of its published module; E2E_ARGS='--focus Drift --clusters 3 --suite performance'.
reference-e2e: setup $(if $(KUBEBUILDER_ASSETS),,controlplane) ## Run Karpenter's own end-to-end suite against kerf on a real control plane (Go 1.26, two hours)
	$(BIN)/python -m tests.controlplane.reference $(E2E_ARGS)

dst: setup ## Simulate random clusters under faults and check the invariants (SEEDS=n, FIRST=n; SEED=n for one)
	$(BIN)/python -m tests.dst $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),100) --first $(or $(FIRST),0))

fuzz: setup ## Give each decoder hostile input for MINUTES (10); TARGETS='"golden lines" plans' for some
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),10) $(TARGETS)

helm: ## Build helm from its published module into the cache, for the tests of the charts
	@GOBIN="$${XDG_CACHE_HOME:-$$HOME/.cache}/kerf/bin" CGO_ENABLED=0 go install -trimpath -ldflags '-s -w $(HELM_SERVER)' helm.sh/helm/v3/cmd/helm@$(HELM)

reference: ## Build Karpenter's controller for KWOK and its scheduling benchmark, to be measured beside kerf (Go 1.26, minutes)
	@benchmarks/build_karpenter.sh $(KARPENTER)

# Of tests/conformance/reference; then: python -m tests.conformance.heldout --seeds 300 --out FOLDER
reference-scenarios: ## Build the program that decides scenarios with Karpenter's own code (Go 1.26, minutes)
	@tests/conformance/reference/build.sh

lint: setup ## Check style, formatting and the length of the last commit's subject
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@git log -1 --format=%s 2>/dev/null | $(BIN)/python -c 'import sys; subject = sys.stdin.readline().rstrip(); \
		sys.exit(f"The subject of the last commit has {len(subject)} characters, 72 at most: {subject}" if len(subject) > 72 else 0)'

types: setup ## Check the types
	$(BIN)/mypy

contracts: setup ## Check which house imports which
	$(BIN)/lint-imports --no-logo

check: test lint types contracts ## All of the four above

format: setup ## Repair style and formatting
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

conformance: setup ## Compare with Karpenter's results family by family, where the large set of scenarios is present
	$(BIN)/python -m pytest tests/conformance -s -q

bench: setup ## Measure: each benchmark prints its figures as JSON with the machine's baseline beside them
	$(BIN)/python benchmarks/records/record.py --json
	$(BIN)/python benchmarks/records/fold.py --json
	$(BIN)/python benchmarks/scheduling.py --pods 1000 --shape plain-ec2 --json
	$(BIN)/python benchmarks/memory.py --json
	$(BIN)/python benchmarks/startup.py --json
	$(BIN)/python benchmarks/disruption.py scale-in pass --budget 10% --json

golden: setup ## Simulate the golden records' scenes again (CASES="a b" for some): look at the difference
	$(BIN)/python tests/golden/remake.py $(CASES)
	PYTHONPATH=. $(BIN)/python -m tests.records.make unreleased

policy: setup ## Write deploy/iam/control.json into the CloudFormation template
	$(BIN)/python deploy/make_cloudformation.py

crds: setup ## Write deploy/crds from the declaration of the API
	$(BIN)/python deploy/make_crds.py

schemas: setup ## Write Kubernetes' published schemas, cut to what `kerf validate` checks
	$(BIN)/python deploy/make_schemas.py

demo: setup ## Run the demonstration: kerf on a simulated cluster and a mock of AWS
	$(BIN)/kerf demo $(DEMO_ARGS)

# The image has the packages of production.txt; build.txt makes its wheel. Both are parts of the lock.
lock: $(BIN)/uv ## Resolve the dependencies again and write the locks
	@$(COMPILE) --all-extras --group dev $(LOCK_FLAGS) -o $(LOCK) pyproject.toml
	@$(COMPILE) --extra postgres --extra ui -c $(LOCK) -o requirements/production.txt pyproject.toml
	@echo hatchling | $(COMPILE) -c $(LOCK) -o requirements/build.txt -

sbom: setup ## Write dist/kerf.cdx.json: what is in the image (CycloneDX)
	@mkdir -p dist
	$(BIN)/python deploy/make_sbom.py > dist/kerf.cdx.json

clean: ## Remove .venv, caches and what was built
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find engine adapters projections replay kerf tests -name __pycache__ -type d -prune -exec rm -rf {} +
