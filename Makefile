# Two commands on a fresh machine, nothing between: `make quickstart` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?= -n 2 --dist loadfile
INSTALL := $(PYTHON) .ci/make_environment.py $(VENV)

.PHONY: help quickstart test bench horovod studies sample pictures lint examples clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.installed-run: pyproject.toml constraints.txt .ci/make_environment.py
	$(INSTALL) run

$(VENV)/.installed-dev: pyproject.toml constraints.txt .ci/make_environment.py
	$(INSTALL) dev

quickstart: $(VENV)/.installed-run  ## environment, data, a real small sweep under mpirun, table and plots
	$(BIN)/harness data make mnist --origin digits
	$(BIN)/harness data make cifar10 --origin photos
	$(BIN)/harness run configs/sweeps/quickstart.yml $(if $(FRESH),--fresh)

test: $(VENV)/.installed-dev horovod  ## everything the tests need, Horovod too, then all tests
	tests/sites/install-debian-packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest $(PYTEST_ARGS)

horovod: $(VENV)/.installed-dev  ## build Horovod against the installed frameworks (wheel kept in ~/.cache)
	$(PYTHON) .ci/horovod/build.py $(VENV)

STUDIES := nus_cpu_cores nus_encoding nus_keras_workers nus_storage alcf_threads_prefetch alcf_horovod_scaling \
	dell_pipeline_order dell_scaling afrl_batch_interval aws_workers aws_out_of_band echoing mission

studies: $(VENV)/.installed-dev horovod  ## every study's sweep at smoke scale, with tables and plots (about 20 minutes)
	for name in $(STUDIES); do $(BIN)/harness run configs/sweeps/$$name.yml --scale smoke --make-data || exit; done

SAMPLES := pipeline_clock cores_workers threads_prefetch batch_repetition storage ranks

sample: $(VENV)/.installed-dev  ## measure results/sample anew (about 15 minutes; leave the machine alone meanwhile)
	rm -rf $(addprefix results/sample/,$(SAMPLES) cores_workers-again)
	for name in $(SAMPLES); do $(BIN)/python -m harness run results/sample/sweeps/$$name.yml \
	  --cluster results/sample/machine.yml --results results/sample --make-data --no-report $(SAMPLE_ARGS) || exit; done
	$(BIN)/python -m harness run results/sample/sweeps/cores_workers.yml --campaign cores_workers-again \
	  --cluster results/sample/machine.yml --results results/sample --only "cpu_cores == 2" --no-report
	$(BIN)/pytest -q tests/notebooks

pictures: $(VENV)/.installed-dev  ## draw docs/images anew from results/sample
	$(BIN)/python docs/pictures.py

bench: $(VENV)/.installed-dev  ## benchmarks against peers and limits, an hour on an idle machine; ONLY=plan,collect QUICK=1
	tests/sites/install-debian-packages
	$(BIN)/python benchmarks/run.py $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

lint: $(VENV)/.installed-dev  ## style and types only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

examples: $(VENV)/.installed-run  ## render jobscripts/examples anew; review the difference before committing
	$(BIN)/harness render --examples

clean:  ## remove the environment and caches; results stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache *.egg-info
