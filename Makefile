# Everything a newcomer needs: make train, make test. Variables: see `make help`.

PYTHON ?= python3
TASK ?= jumper.tripod
NUM_ENVS ?=
MAX_ITERATIONS ?=
ARGS ?=
PLAY_ARGS ?=

# Relative on purpose: the path of this folder may contain spaces.
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed

TRAIN_FLAGS := $(if $(NUM_ENVS),--num_envs $(NUM_ENVS)) \
  $(if $(MAX_ITERATIONS),--max_iterations $(MAX_ITERATIONS))

.PHONY: help install train test browser check format clean
.DEFAULT_GOAL := help

help:
	@echo "make train    install; train TASK=$(TASK); replay it with the measurement on"
	@echo "make test     install; run every test"
	@echo "make browser  install a driver; run the tests that need Chromium"
	@echo "make check    formatter, linter, types, tests"
	@echo "make format   format the code"
	@echo "make clean    remove .venv and caches (logs/ stays)"
	@echo
	@echo "variables of make train: TASK=jumper.flat NUM_ENVS=64 MAX_ITERATIONS=100"
	@echo "  ARGS='--seed 1' for more flags of the training, PLAY_ARGS='--num_envs 16' of the replay"
	@echo "PYTHON=python3.12 chooses the interpreter that .venv is made with"
	@echo
	@echo "then, with .venv/bin/python: scripts/train.py, scripts/play.py, scripts/export.py and"
	@echo "-m mjrl verify, each with --help; see README.md"

install: $(STAMP)

$(PY):
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(not (3, 11) <= v < (3, 14))' || \
	  { echo "mjrl needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is not one of them;" \
	    "choose another: make PYTHON=python3.12 ..." >&2; exit 1; }
	@rm -rf $(VENV)
	@echo "creating $(VENV) with $$($(PYTHON) --version)"
	@if $(PYTHON) -c 'import ensurepip' 2>/dev/null; then \
	  $(PYTHON) -m venv $(VENV); \
	elif $(PYTHON) -m venv --without-pip $(VENV) && \
	  $(PYTHON) -m pip --python $(PY) install -qq pip; then :; \
	else \
	  rm -rf $(VENV); \
	  v=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  echo "$(PYTHON) can neither make a virtual environment nor install into one;" \
	    "on Debian and Ubuntu: apt install python$$v-venv" >&2; \
	  exit 1; \
	fi

$(STAMP): pyproject.toml constraints.txt | $(PY)
	@echo "installing mjrl and what it needs into $(VENV) (minutes, the first time)"
	@$(PY) -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

train: $(STAMP)
	@echo "training $(TASK)"
	@$(PY) scripts/train.py --task $(TASK) --headless $(TRAIN_FLAGS) $(ARGS)
	@echo "replaying the newest checkpoint of $(TASK), measured"
	@$(PY) scripts/play.py --task $(TASK) --headless --measure $(PLAY_ARGS)

test: $(STAMP)
	@echo "running every test"
	@$(PY) -m pytest

browser: $(STAMP)
	@$(PY) -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev,browser]'
	@echo "running the tests in a browser"
	@$(PY) -m pytest -m browser

check: $(STAMP)
	@echo "formatter"
	@$(PY) -m ruff format --quiet --check .
	@echo "linter"
	@$(PY) -m ruff check --quiet .
	@echo "types"
	@$(PY) -m pyright
	@echo "tests"
	@$(PY) -m pytest

format: $(STAMP)
	@$(PY) -m ruff format --quiet .
	@$(PY) -m ruff check --quiet --fix --select I .

clean:
	@echo "removing $(VENV) and caches; logs/ stays"
	@rm -rf $(VENV) build dist src/mjrl.egg-info .pytest_cache .ruff_cache
	@find src tests scripts benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
