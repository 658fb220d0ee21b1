# Everything a person types. `make` alone lists it.

PYTHON ?= python3
PORT ?= 8765
JOBS ?= 3
LONG_JOBS ?= 4
SEED ?= $(shell date +%s)
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := bot ingestion storage
SOURCES := $(PACKAGES) tests tools deploy
IN_CI := $(if $(REQUIRE_ENGINES),--require-engines)
REQUIRED := $(if $(REQUIRE_ENGINES),--require)
EVENLY := nice -n 19
# What the program does behind everything else would wait for all other tests; at the last place nobody is behind anybody.

export PYTHONDONTWRITEBYTECODE :=
# Where an image sets it, each of the many programs that tests start would compile everything again.

.DEFAULT_GOAL := help
.PHONY: help install demo free-port test test-all coverage wheel pictures mutate soak soak-kills soak-hostile bench-ingest bench-ask bench-events bench-read bench-diff eval weaviate lint format types collect lock docs audit release clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

install: $(VENV)/.installed $(if $(SHARES),$(VENV)/.sharing) $(if $(TRACES),$(VENV)/.traced) ## make .venv and .venv/bin/footnote; SHARES=1: also for S3, SFTP, SMB, WebDAV; TRACES=1: also OpenTelemetry
	@:

demo: free-port install ## try it: [DOCS=folder] [WEAVIATE_URL=embedded|http://...] [PORT=8765]
	@$(if $(filter embedded,$(WEAVIATE_URL)),deploy/weaviate.sh >/dev/null)
	@exec $(BIN)/footnote demo $(if $(DOCS),--docs "$(DOCS)") --port "$(PORT)" --weaviate "$(WEAVIATE_URL)"

free-port: # asked before an installation that takes minutes
	@! command -v "$(PYTHON)" >/dev/null || "$(PYTHON)" -c 'import socket; socket.create_server(("127.0.0.1", $(PORT)))' 2>/dev/null || \
		{ echo "port $(PORT) is already in use: stop what listens there, or choose another: make demo PORT=$$(($(PORT) + 1))"; exit 2; }

wheel: install ## build dist/footnote_bot-*, wheel and sdist, the model inside; pip and pipx install them anywhere
	@$(BIN)/python deploy/fetch_data.py
	@$(BIN)/python deploy/make_wheel.py

test: $(VENV)/.developing ## run every check and the tests, or some: TESTS="folder -k words"
	@$(BIN)/python tests/fetch.py $(REQUIRED)
	@$(if $(TESTS),,$(MAKE) --no-print-directory -j2 lint types collect)
	@$(EVENLY) $(BIN)/python tests/isolated.py $(BIN)/pytest $(if $(TESTS),,-n $(JOBS) --durations=15) $(IN_CI) $(TESTS)

test-all: $(VENV)/.developing ## also random kills, hostile files, many examples, by chance: [SEED=number]
	@echo "SEED=$(SEED)"
	@$(BIN)/python tests/fetch.py --all $(REQUIRED)
	@$(MAKE) --no-print-directory -j2 lint types collect
	@$(EVENLY) $(BIN)/python tests/isolated.py $(BIN)/pytest -n $(LONG_JOBS) --durations=15 --all --seed $(SEED) $(IN_CI)

coverage: $(VENV)/.developing ## run the tests, or TESTS, and print what lines of the product they reach; fails below the floor of pyproject.toml
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 12))' || { echo "lines are counted by Python 3.12 or newer: make clean coverage PYTHON=python3.12"; exit 2; }
	@$(BIN)/python tests/fetch.py $(REQUIRED)
	@rm -rf build/coverage && mkdir -p build/coverage
	@$(EVENLY) $(BIN)/python tests/isolated.py $(BIN)/coverage run -m pytest $(if $(TESTS),,-n $(JOBS) --durations=15) $(IN_CI) $(TESTS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

pictures: $(VENV)/.developing ## take the README's pictures anew: answers in both chats' doubles, a cited page
	@$(BIN)/python tests/fetch.py
	@PICTURES=docs/pictures $(BIN)/python tests/isolated.py $(BIN)/pytest --all tests/journeys/chats/test_readme_pictures.py

mutate: $(VENV)/.developing ## put known faults into copies of the code, and show that nearby tests catch each [ONLY=words]
	@$(EVENLY) $(BIN)/python tests/isolated.py $(BIN)/python -m tools.mutations.mutate --only "$(ONLY)"

soak-kills: $(VENV)/.developing ## kill it [KILLS=2000] times on every engine; Ctrl-C, and it goes on next time
	@$(BIN)/python tests/fetch.py
	@PYTHONPATH=tests $(EVENLY) $(BIN)/python tests/isolated.py $(BIN)/python -m tools.soak.soak_kills --kills $(or $(KILLS),2000) $(ROUND)

soak: $(VENV)/.developing ## let everything go wrong at once, [MINUTES=30] on every engine; Ctrl-C, and it goes on next time
	@$(BIN)/python tests/fetch.py
	@PYTHONPATH=tests $(EVENLY) $(BIN)/python tests/isolated.py $(BIN)/python -m tools.soak.soak --minutes $(or $(MINUTES),30) $(ROUND)

soak-hostile: $(VENV)/.developing ## drop [FILES=10000] hostile files on it; Ctrl-C, and it goes on next time
	@PYTHONPATH=tests $(BIN)/python tests/isolated.py $(BIN)/python -m tools.hostile.soak_hostile --files $(or $(FILES),10000) $(ROUND)

bench-ingest: $(VENV)/.developing ## measure ingestion beside the bare libraries [QUICK=1] [ROWS=scan,read,...] [WEAVIATE_URL=embedded]
	@PYTHONPATH=tests $(BIN)/python -m tools.bench.bench_ingest $(if $(QUICK),--quick) --rows "$(ROWS)"

bench-ask: $(VENV)/.developing ## measure questions without a model beside a bare query [QUICK=1] [ROWS=embedded,weaviate,growth,web,viewer,store]
	@PYTHONPATH=tests $(BIN)/python -m tools.bench.bench_ask $(if $(QUICK),--quick) --rows "$(ROWS)"

bench-events: $(VENV)/.developing ## send events of Slack and Teams to it at a steady rate [RATE=100] [SECONDS=60]
	@PYTHONPATH=tests $(BIN)/python tests/isolated.py $(BIN)/python -m tools.bench.bench_events $(if $(RATE),--rate $(RATE)) $(if $(SECONDS),--seconds $(SECONDS))

bench-read: $(VENV)/.developing ## measure reading against labels made by people: CORPUS=folder [SHOW=ours]
	@$(if $(CORPUS),,echo "say where the labelled PDFs are: make bench-read CORPUS=folder" && exit 2)
	@PYTHONPATH=tests $(BIN)/python -m tools.bench.bench_read "$(CORPUS)" $(if $(SHOW),--show "$(SHOW)")

bench-diff: $(VENV)/.developing ## compare reading with two other readers, pages and tokens that differ, with pictures: CORPUS=folder [SHOW=1]
	@$(if $(CORPUS),,echo "say where the PDFs are: make bench-diff CORPUS=folder" && exit 2)
	@PYTHONPATH=tests $(BIN)/python -m tools.differential.compare_readers "$(CORPUS)" $(if $(SHOW),--show)

eval: $(VENV)/.developing ## measure answers against labelled questions: CORPUS=folder [HALF=] [ENGINE=] [CHANNELS=] [MODEL=URL] [EACH=] [QUESTIONS=file] [WORST=10] [SHOW=30]
	@$(if $(CORPUS),,echo "say where the collections are: make eval CORPUS=folder" && exit 2)
	@PYTHONPATH=tests $(BIN)/python -m tools.evaluation.evaluate "$(CORPUS)" $(if $(HALF),--half "$(HALF)") \
		$(if $(ENGINE),--engine "$(ENGINE)") $(if $(CHANNELS),--channels "$(CHANNELS)") \
		$(if $(MODEL),--model "$(MODEL)") $(if $(EACH),--each "$(EACH)") \
		$(if $(QUESTIONS),--questions "$(QUESTIONS)") --worst $(or $(WORST),0) --show $(or $(SHOW),0)

release: ## check, build dist/ with checksums and tag the version of pyproject.toml; uploads nothing
	@CHECKS="$(or $(CHECKS),test)" deploy/release.sh

weaviate: ## build the Weaviate server that WEAVIATE_URL=embedded runs (3 minutes, once)
	@deploy/weaviate.sh

lint: $(VENV)/.developing ## check format and style
	@$(BIN)/ruff format --quiet --check $(SOURCES) || { echo "make format would change these files"; exit 1; }
	@$(BIN)/ruff check --quiet $(SOURCES)

format: $(VENV)/.developing ## format the code, write deploy/env.example, slack-manifest.json, docs/commands.md, licences.md, settings.md again
	@$(BIN)/ruff check --quiet --fix-only $(SOURCES)
	@$(BIN)/ruff format --quiet $(SOURCES)
	@$(BIN)/footnote settings > deploy/env.example
	@$(BIN)/footnote manifest slack > deploy/slack-manifest.json
	@$(BIN)/python deploy/make_licences.py
	@$(BIN)/python deploy/docs/make_references.py

types: $(VENV)/.developing ## check types, strictly
	@$(BIN)/mypy --no-error-summary

docs: $(VENV)/.developing ## build the documentation's site into build/site, refusing warnings
	@$(BIN)/mkdocs build --strict

collect: $(VENV)/.developing # Compiles the tests once, beside mypy; else each test process compiles all of them: 9 s each.
	@$(BIN)/pytest --collect-only -qq >$(VENV)/collected.txt || { cat $(VENV)/collected.txt; exit 1; }

lock: ## choose the newest allowed versions and lock them with hashes (needs uv)
	@deploy/lock.sh

audit: $(VENV)/.developing ## look every locked package up among known holes, write build/sbom.json: [OSV=url of a mirror] [IF_REACHABLE=1]
	@$(BIN)/python deploy/audit.py $(if $(OSV),--osv "$(OSV)") $(if $(IF_REACHABLE),--if-reachable)

clean: ## remove .venv and caches; keeps .footnote and the engines
	@rm -rf $(VENV) dist storage/data .mypy_cache .ruff_cache .hypothesis *.egg-info
	@find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: requirements.txt pyproject.toml deploy/install.sh deploy/fetch_data.py deploy/data.txt
	@PYTHON="$(PYTHON)" deploy/install.sh requirements.txt
	@touch $@

$(VENV)/.sharing: $(VENV)/.installed requirements-shares.txt
	@PYTHON="$(PYTHON)" deploy/install.sh requirements-shares.txt
	@touch $@

$(VENV)/.traced: $(VENV)/.installed requirements-otel.txt
	@PYTHON="$(PYTHON)" deploy/install.sh requirements-otel.txt
	@touch $@

$(VENV)/.developing: $(VENV)/.installed requirements-dev.txt
	@PYTHON="$(PYTHON)" deploy/install.sh requirements-dev.txt
	@touch $@
