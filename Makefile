# Needs only make and Python >= 3.11; `make test PYTHON=python3.12` picks another Python, ARGS="-k graph" is passed on.
# Kept to what GNU make 3.81 knows.

PYTHON ?= python3
ARGS ?=
EXTRAS ?= dev

BIN := .venv/bin
# The stamps carry a checksum of the folder: in a copied checkout .venv would still run the original's code.
HERE := $(shell pwd -P | cksum | cut -d ' ' -f 1)
CREATED := .venv/created-$(HERE)
INSTALLED := .venv/installed-$(HERE)

# One pytest worker a core, so one BLAS thread a worker.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 VECLIB_MAXIMUM_THREADS=1 \
	$(BIN)/pytest -n auto --maxprocesses 8 --dist worksteal

NEEDS := error: carbo needs Python 3.11 or newer with venv;
ANOTHER := Name another with PYTHON=, as in: make test PYTHON=python3.12

.PHONY: help demo test slow lint format bench-speed clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(INSTALLED) ## a short optimisation, start to finish
	@$(BIN)/python -m carbo demo $(ARGS)

test: $(INSTALLED) ## the tests, without the slow ones
	@$(PYTEST) $(ARGS)

slow: $(INSTALLED) ## the slow tests
	@$(PYTEST) -m slow $(ARGS)

lint: $(INSTALLED) ## ruff check, ruff format --check, mypy
	@$(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy

format: $(INSTALLED) ## sort the imports and format, in place
	@$(BIN)/ruff check --select I --fix && $(BIN)/ruff format

bench-speed: $(INSTALLED) ## seconds a suggestion
	@$(BIN)/python -m lab speed $(ARGS)

clean: ## remove .venv, caches and builds
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

$(CREATED):
	@command -v "$(PYTHON)" >/dev/null \
		|| { echo "$(NEEDS) there is no $(PYTHON). $(ANOTHER)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(NEEDS) $(PYTHON) is `"$(PYTHON)" -V 2>&1`. $(ANOTHER)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "$(NEEDS) $(PYTHON) has no venv (Debian, Ubuntu: apt install python3-venv). $(ANOTHER)" >&2; exit 1; }
	@"$(PYTHON)" -m venv --clear .venv
	@touch $@

$(INSTALLED): $(CREATED) pyproject.toml
	@echo "installing carbo and its tools into .venv (a minute, once)" >&2
	@$(BIN)/python -m pip install --disable-pip-version-check -q -e '.[$(EXTRAS)]' >.venv/install.log 2>&1 \
		|| { cat .venv/install.log >&2; echo "error: the installation failed, see above" >&2; exit 1; }
	@touch $@
