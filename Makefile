# Thin on purpose: each verb is one line. Settings: ARGS=... is handed to the tool behind the verb.
VENV := .venv
PY := $(VENV)/bin/python
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

SEED := $(or $(SEED),$(shell date +%s))

.PHONY: help setup demo test lint check fuzz format images schema golden pictures docs bench proof lock wheel release audit clean

help: ## list the verbs
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(VENV)/.ready ## make .venv with everything for development (finds Python 3.13)

$(VENV)/.ready: requirements/dev.lock pyproject.toml
	@tools/venv $(VENV)

demo: setup ## start examples/02-pallas as processes and call it; ARGS=--once ends by itself
	@$(PY) tools/demo.py $(ARGS)

test: setup ## run all tests; sets up Docker and the base image where it may
	@tools/test $(ARGS)

lint: setup ## format, lint, types, import arrows, agreement of the locks
	ruff format --check . && ruff check . && mypy && lint-imports && tools/lock --check

check: lint ## lint and the quick tests: a minute or two; those of the chart where helm is installed
	$(PY) -m pytest -q -n auto --dist loadfile --timeout 300 -m "not docker and not slow and not cluster and not browser and not prometheus$(if $(shell command -v helm),, and not helm)$(if $(shell command -v valkey-server),, and not valkey)$(if $(shell bash -c '. tools/lib.sh; loads_extensions $(PY) && echo yes'),, and not sqlite)" $(ARGS)

fuzz: setup ## draw hostile input for half an hour; SEED=N draws the same once more
	@echo "seed $(SEED): make fuzz SEED=$(SEED) draws the same"
	PALLAS_TEST_EXAMPLES=fuzz $(PY) -m pytest -q -n auto -m fuzz --hypothesis-seed=$(SEED) $(ARGS)

format: setup ## rewrite the code in the house format
	ruff format . && ruff check --fix .

images: setup ## build pallas-agent and pallas-registry, tagged with the version
	@tools/images

schema: setup ## rewrite schema/ and the chart's schema, values and reference from the models
	$(PY) -m pytest -q tests/generator/test_schema.py tests/generator/targets/test_values.py tests/agent_runtime/engine/test_engine_table.py --rewrite

golden: setup ## rewrite tests/golden, deploy/compose and the messages in tests/invalid
	$(PY) -m pytest -q tests/generator/test_golden.py tests/generator/test_invalid.py --rewrite

pictures: setup ## take the pictures in docs/pictures anew, of fleets that run
	@tools/chromium
	@$(PY) tools/pictures.py $(ARGS)
	@$(PY) tools/recordings.py

docs: setup ## build the site of the documentation into dist/docs
	@tools/docs

bench: setup ## run the benchmarks, each beside its peer, on a quiet machine; ARGS=NAME picks
	@tools/bench $(ARGS)

proof: setup ## put the kit to the proof, for hours, and write docs/proof.md; PART=load does a part, ARGS=--resume the rest
	@$(PY) -m proof $(PART) $(ARGS)

lock: setup ## resolve requirements/*.lock; ARGS=--upgrade takes the newest of everything
	@tools/lock $(ARGS)

wheel: setup ## build the wheel into dist/
	uv build --wheel --no-build-isolation --out-dir dist

release: setup ## make all files of a release in dist/: wheel, images, chart, SBOMs, provenance, checksums
	@tools/release $(ARGS)

audit: setup ## look all locks up for known vulnerabilities; needs the advisory service, and fails without it
	@$(PY) -m tools.supply_chain.audit

clean: ## remove what the other verbs made here
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache
