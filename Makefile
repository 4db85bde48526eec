# margay's commands. `make demo` and `make test` install what they miss through the system's packages, and say so.

SHELL := /bin/bash
CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
# The newest LLVM that the system has; the SIMD engine needs one, everything else builds and works without it.
LLVM = $(shell scripts/llvm.sh)
FEATURES = --no-default-features $(if $(LLVM),--features llvm$(LLVM))
WORKSPACE = --workspace $(if $(LLVM),,--exclude margay-llvm) $(FEATURES)
MARGAY = -p margay $(FEATURES)

.PHONY: help demo test lint bench setup release full-test attack fuzz litmus \
        miri asan tsan bench-opencl oracle oracle-programs oracle-abi oracle-cases oracle-isa oracle-fold oracle-mutants oracle-cub \
        golden ulp wheel test-python bench-python lint-python

help:
	@echo "make demo          build, then check, explain and run the examples, with verified results"
	@echo "make test          build and run all tests"
	@echo "make full-test     the same, with the long versions of the random tests"
	@echo "make litmus        thousands of litmus tests of the memory consistency model; LITMUS=n says how many"
	@echo "make attack        hostile modules against both engines; SEEDS=20000 FROM=0 for more than a thousand"
	@echo "make fuzz          random damage to modules, and hostile ones, for TIME=600 seconds"
	@echo "make lint          rustfmt and clippy"
	@echo "make miri          device memory's tests under Miri, which needs a nightly toolchain that has it"
	@echo "make asan          the driver library's tests under AddressSanitizer, which needs a nightly toolchain"
	@echo "make tsan          the same under ThreadSanitizer, which needs the nightly toolchain's rust-src too"
	@echo "make bench         benchmarks, beside natural C and the OpenCL runtimes that the system has"
	@echo "make bench-opencl  the same kernels, with Intel's OpenCL runtime fetched for it"
	@echo "make oracle-programs  build programs with nvcc as it is, and with CUDA 12's and 11's runtimes, and run them"
	@echo "make oracle-abi    compare the sm ABI with what ptxas compiles"
	@echo "make oracle-cases  compare verdicts on random modules about functions with ptxas"
	@echo "make oracle-isa    compare verdicts on generated instructions with ptxas"
	@echo "make oracle-fold   compare instructions on constants with what ptxas folds them to"
	@echo "make oracle-cub    every device-wide algorithm of CUB on random data, RUNS=n times each, under margay exec"
	@echo "make ulp           the largest error of every approximate instruction over all single-precision numbers"
	@echo "make oracle-mutants  compare verdicts on modules with single random faults with ptxas"
	@echo "make wheel         the Python package as a wheel, with the command, the libraries and LLVM, in target/wheel"
	@echo "make test-python   install the wheel into an empty environment and run python/tests there; TESTS=... runs some"
	@echo "make bench-python  what the Python package costs: sizes, import, a first kernel, a launch"
	@echo "make golden        run the cases on the GPU and record what it computes in tests/golden"

setup:
	@scripts/setup.sh

release: setup
	@[ -x $(TARGET)/release/margay ] || echo "building margay: three to five minutes on two cores, the first time"
	$(CARGO) build --release $(MARGAY) -p margay-cuda -p margay-cudart -p margay-cudart12 -p margay-cudart11 -p margay-redirect

demo: release
	@examples/demo.sh $(TARGET)/release/margay

# Each binary runs under a script that notes what its tests took; the ten slowest are named at the end.
HOST = $(shell rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
TIMES = $(abspath $(TARGET))/test-times

test: setup
	@mkdir -p $(TARGET) && rm -f $(TIMES)
	MARGAY_TEST_TIMES=$(TIMES) CARGO_TARGET_$(HOST)_RUNNER=$(CURDIR)/scripts/timed.sh $(CARGO) test $(WORKSPACE)
	@echo "the ten slowest tests, in seconds:" && sort -rn $(TIMES) | head -10
	$(CARGO) build $(MARGAY)
	@examples/demo.sh $(TARGET)/debug/margay >/dev/null && echo "the demo's results are right"

full-test: setup
	MARGAY_MUTATIONS=10000 MARGAY_KERNELS=400 MARGAY_COMMUNICATE=400 $(CARGO) test --release $(WORKSPACE)

# Some hours with the preset number on two cores.
litmus: setup
	MARGAY_LITMUS=$(or $(LITMUS),3000) MARGAY_LITMUS_LAUNCHES=8 $(CARGO) test --release -p margay-harness $(FEATURES) --test litmus -- --nocapture

# Modules that do what no program may, each in a child process on both engines.
SEEDS ?= 1000
FROM ?= 0
attack: setup
	$(CARGO) run --release -q -p margay-harness $(FEATURES) --bin attack -- --seeds $(SEEDS) --from $(FROM)

# Half of the time for libFuzzer's targets where cargo-fuzz and a nightly compiler are there, else all of it for the harness's loop.
TIME ?= 600
fuzz: setup
	@CARGO="$(CARGO)" scripts/fuzz.sh $(TIME) $(FEATURES)

lint: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(WORKSPACE) --all-targets -- -D warnings

# The Python package's native half stands outside of the workspace.
lint-python: setup
	cd crates/doors/python && $(CARGO) fmt --check && \
		PYO3_NO_PYTHON=1 CARGO_TARGET_DIR=$(abspath $(TARGET)) $(CARGO) clippy --release $(FEATURES) -- -D warnings

# A wheel without the SIMD engine would be of little use: it needs LLVM's archives, which its packages for developers have.
wheel: release
	@CARGO="$(CARGO)" scripts/wheel.sh $(TARGET)

# In the environment that `python3` belongs to, which must have the wheel.
bench-python:
	python3 benches/python/bench.py $(wildcard $(TARGET)/wheel/*.whl)

test-python: wheel
	@scripts/test-python.sh $(TARGET) $(TESTS)

# Accesses of different size to the same bytes lie outside Rust's model (mem/raw.rs says why they are there): Miri does without its
# emulation of weak memory, which cannot follow them. Addresses of device memory are numbers, hence permissive provenance.
miri:
	MIRIFLAGS="-Zmiri-permissive-provenance -Zmiri-disable-isolation -Zmiri-disable-weak-memory-emulation" \
		$(CARGO) +nightly miri test -p margay-exec --lib -- mem::

# Sanitizers over the driver library's tests, in a nightly compiler (`rustup toolchain install nightly --component rust-src`). Code that
# LLVM makes at run time is not instrumented. What the library keeps until the process ends is no leak. ThreadSanitizer cannot follow
# fibers, so warps that wait for each other run on the reference engine there. The programs' runtime is LLVM's, as the compiler's is.
SANITIZED = CC=$(shell command -v clang-22 || command -v clang || echo cc) CFLAGS="-fsanitize=$(1)" RUSTFLAGS="-Zsanitizer=$(1)" $(CARGO) +nightly test $(2) --target $(shell rustc -vV | sed -n 's/host: //p') \
	--target-dir $(TARGET)/$(1) -p margay-cuda $(FEATURES)
asan:
	ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0 $(call SANITIZED,address,)

tsan:
	TSAN_OPTIONS=halt_on_error=0:second_deadlock_stack=1 MARGAY_TEST_ENGINES=reference $(call SANITIZED,thread,-Zbuild-std)

bench: release
	$(CARGO) bench $(MARGAY) --bench frontend
	python3 benches/kernels/bench.py $(TARGET)/release/margay
	python3 benches/calls/bench.py $(TARGET)/release/margay
	python3 benches/cold/bench.py $(TARGET)/release/margay

# Intel's OpenCL runtime from its own packages, in a folder that git ignores.
bench-opencl: release .opencl/ready
	python3 benches/kernels/bench.py $(TARGET)/release/margay --write benches/kernels

.opencl/ready:
	@scripts/opencl.sh .opencl
	@touch $@

# NVIDIA's compiler from its own packages, in a folder that git ignores. It needs no GPU.
oracle: .oracle/ready

.oracle/ready:
	@scripts/oracle.sh .oracle
	@touch $@

# Programs of our own, built by NVIDIA's compiler as its users do, with the runtimes of CUDA 13, 12 and 11. It needs no GPU.
oracle-programs: release
	@scripts/programs.sh $(TARGET)/release/margay .oracle

oracle-abi: oracle
	MARGAY_PTXAS=$(CURDIR)/.oracle/bin $(CARGO) run --release -q -p margay-oracle --bin oracle-abi -- --count 1000

oracle-cases: oracle
	MARGAY_PTXAS=$(CURDIR)/.oracle/bin $(CARGO) run --release -q -p margay-oracle --bin oracle-cases -- --count 4000

oracle-isa: oracle
	MARGAY_PTXAS=$(CURDIR)/.oracle/bin/ptxas $(CARGO) run --release -q -p margay-isa --example oracle

oracle-fold: oracle
	MARGAY_PTXAS=$(CURDIR)/.oracle/bin $(CARGO) run --release -q -p margay-oracle --bin oracle-fold -- --rounds 8

# A quarter of an hour on one core.
ulp:
	$(CARGO) run --release -q -p margay-exec --example ulp

oracle-mutants: oracle
	MARGAY_PTXAS=$(CURDIR)/.oracle/bin $(CARGO) run --release -q -p margay-oracle --bin oracle-mutants -- --count 2000 tests/mutants tests/run
	MARGAY_PTXAS=$(CURDIR)/.oracle/bin $(CARGO) run --release -q -p margay-oracle --bin oracle-mutants -- --declarations --count 2000 tests/mutants tests/run

oracle-cub: oracle release
	scripts/cub.sh .oracle $(TARGET)/release/margay $(or $(RUNS),500)

# Ends with a message where there is no driver or no GPU.
golden:
	$(CARGO) run --release -q -p margay-golden
