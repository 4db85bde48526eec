# margay's targets. `make demo` and `make test` install missing system packages, and report it.

SHELL := /bin/bash
CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
# The newest installed LLVM. Only the SIMD engine needs it; everything else builds and works without it.
LLVM = $(shell scripts/llvm.sh)
FEATURES = --no-default-features $(if $(LLVM),--features llvm$(LLVM))
WORKSPACE = --workspace $(if $(LLVM),,--exclude margay-llvm) $(FEATURES)
MARGAY = -p margay $(FEATURES)

.PHONY: help demo test lint bench setup release full-test attack fuzz variants instructions litmus \
        miri asan tsan bench-opencl oracle oracle-programs oracle-abi oracle-cases oracle-isa oracle-fold oracle-mutants oracle-cub oracle-random \
        golden ulp wheel test-python bench-python lint-python

help:
	@echo "make demo          build, then check, explain and run the examples and verify the results"
	@echo "make test          build and run all tests"
	@echo "make full-test     the same, with the long versions of the randomized tests"
	@echo "make litmus        run thousands of litmus tests of the memory consistency model; LITMUS=n sets the number"
	@echo "make attack        run hostile modules on both engines; SEEDS=20000 FROM=0 for more than a thousand"
	@echo "make fuzz          run randomly damaged and hostile modules for TIME=600 seconds"
	@echo "make variants      run random variations of valid modules on both engines for TIME=600 seconds; FILES=folders sets the modules"
	@echo "make instructions  run kernels of random instructions on both engines for TIME=600 seconds; OPCODES=... selects instructions"
	@echo "make lint          run rustfmt, clippy and rustdoc"
	@echo "make lint-python   run rustfmt and clippy on the native part of the Python package; part of make lint"
	@echo "make miri          run the device memory tests under Miri; needs a nightly toolchain with Miri"
	@echo "make asan          run the driver library's tests under AddressSanitizer; needs a nightly toolchain"
	@echo "make tsan          the same under ThreadSanitizer; needs a nightly toolchain with rust-src"
	@echo "make bench         run the benchmarks, compared with plain C and the installed OpenCL runtimes"
	@echo "make bench-opencl  run the same kernels, and download Intel's OpenCL runtime for the comparison"
	@echo "make oracle        install ptxas, nvcc and the disassemblers in .oracle, for the comparisons below"
	@echo "make oracle-programs  build programs with an unmodified nvcc and the runtimes of CUDA 13, 12 and 11, and run them"
	@echo "make oracle-abi    compare the sm ABI with the code that ptxas generates"
	@echo "make oracle-cases  compare the checker with ptxas on random modules with functions"
	@echo "make oracle-isa    compare the checker with ptxas on generated instructions, LIMIT=24 mnemonics of each form; shows its progress"
	@echo "make oracle-fold   compare the results of instructions on constants with ptxas's constant folding"
	@echo "make oracle-cub    run every device-wide algorithm of CUB on random data under margay exec, RUNS=n times each"
	@echo "make oracle-random compare random CUDA programs with the same text compiled for the host, RUNS=n of them"
	@echo "make ulp           measure the largest error of every approximate instruction over all single-precision numbers"
	@echo "make oracle-mutants  compare the checker with ptxas on modules with one random error each"
	@echo "make wheel         build the Python wheel, with the command, the libraries and LLVM, in target/wheel"
	@echo "make test-python   install the wheel into a clean environment and run python/tests; TESTS=... selects tests, PACKAGES=... adds packages"
	@echo "make bench-python  measure the Python package: sizes, import, a first kernel, a launch"
	@echo "make golden        run the cases on a GPU and record the results in tests/golden"

setup:
	@scripts/setup.sh

release: setup
	@[ -x $(TARGET)/release/margay ] || echo "building margay: takes three to five minutes on two cores the first time"
	$(CARGO) build --release $(MARGAY) -p margay-cuda -p margay-cudart -p margay-cudart12 -p margay-cudart11 -p margay-redirect -p margay-nvml

demo: release
	@examples/demo.sh $(TARGET)/release/margay

# A script records the time of each test; the ten slowest are listed at the end.
HOST = $(shell rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
TIMES = $(abspath $(TARGET))/test-times

test: setup
	@mkdir -p $(TARGET) && rm -f $(TIMES)
	MARGAY_TEST_TIMES=$(TIMES) CARGO_TARGET_$(HOST)_RUNNER=$(CURDIR)/scripts/timed.sh $(CARGO) test $(WORKSPACE)
	@# Hosts with AVX-512 also run the code of those without.
	[ -z "$(LLVM)" ] || ! grep -qw avx512vl /proc/cpuinfo || MARGAY_CPU=x86-64-v3 MARGAY_TEST_ENGINE="simd simd-full" MARGAY_TEST_ABI=ptx $(CARGO) test $(WORKSPACE) --test cases
	@echo "the ten slowest tests, in seconds:" && sort -rn $(TIMES) | head -10
	@# The tests of the command have built it.
	@examples/demo.sh $(TARGET)/debug/margay >/dev/null && echo "the demo's results are correct"

full-test: setup
	MARGAY_MUTATIONS=10000 MARGAY_KERNELS=400 MARGAY_COMMUNICATE=400 MARGAY_RACES=20000 $(CARGO) test --release $(WORKSPACE)

# Takes some hours on two cores with the default number.
litmus: setup
	MARGAY_LITMUS=$(or $(LITMUS),3000) MARGAY_LITMUS_LAUNCHES=8 $(CARGO) test --release -p margay-harness $(FEATURES) --test litmus -- --nocapture

# Hostile modules, each in a child process, on both engines.
SEEDS ?= 1000
FROM ?= 0
attack: setup
	$(CARGO) run --release -q -p margay-harness $(FEATURES) --bin attack -- --seeds $(SEEDS) --from $(FROM)

# If cargo-fuzz and a nightly compiler are installed, half the time goes to the libFuzzer targets; otherwise all of it goes to the harness.
TIME ?= 600
fuzz: setup
	@CARGO="$(CARGO)" scripts/fuzz.sh $(TIME) $(FEATURES)

# Variations of modules that pass the check must end alike on both engines.
FILES ?=
variants: setup
	$(CARGO) run --release -q -p margay-harness $(FEATURES) --bin fuzz -- --seconds $(TIME) --variants $(abspath $(FILES))

# Kernels of random instructions, with operands of every kind, must end alike on both engines.
OPCODES ?=
instructions: setup
	$(CARGO) run --release -q -p margay-harness $(FEATURES) --bin fuzz -- --seconds $(TIME) --instructions $(OPCODES)

lint: setup lint-python
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(WORKSPACE) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" $(CARGO) doc --no-deps --document-private-items $(WORKSPACE)

# The native part of the Python package is outside the workspace.
lint-python: setup
	cd crates/doors/python && $(CARGO) fmt --check && \
		PYO3_NO_PYTHON=1 CARGO_TARGET_DIR=$(abspath $(TARGET)) $(CARGO) clippy $(FEATURES) -- -D warnings

# The wheel includes the SIMD engine, so it needs LLVM's static libraries, which LLVM's development packages contain.
wheel: release
	@CARGO="$(CARGO)" scripts/wheel.sh $(TARGET)

# Runs in the environment of `python3`, which must have the wheel installed.
bench-python:
	python3 benches/python/bench.py $(wildcard $(TARGET)/wheel/*.whl)

test-python: wheel
	@scripts/test-python.sh $(TARGET) $(TESTS)

# Mixed-size accesses to the same bytes are outside Rust's memory model (mem/raw explains why they occur), so Miri's weak memory
# emulation, which does not support them, is off. Device addresses are integers, hence permissive provenance. The lists of crossbeam, on
# which Rayon stands, pass under tree borrows only, and Rayon's threads outlive the tests.
miri:
	MIRIFLAGS="-Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-disable-isolation -Zmiri-disable-weak-memory-emulation -Zmiri-ignore-leaks" \
		sh -c '$(CARGO) +nightly miri test -p margay-exec --lib -- mem:: && $(CARGO) +nightly miri test -p margay-runtime --lib'

# Sanitizers for the driver library's tests, with a nightly compiler (`rustup toolchain install nightly --component rust-src`). Code that
# LLVM generates at run time is not instrumented. Leak detection is off because the library keeps memory until the process exits.
# ThreadSanitizer does not support fibers, so the tests run on the reference engine. The C code uses LLVM's sanitizer runtime, like rustc.
SANITIZED = CC=$(shell command -v clang-22 || command -v clang || echo cc) CFLAGS="-fsanitize=$(1)" RUSTFLAGS="-Zsanitizer=$(1)" $(CARGO) +nightly test $(2) --target $(shell rustc -vV | sed -n 's/host: //p') \
	--target-dir $(TARGET)/$(1) -p margay-cuda $(FEATURES)
asan:
	ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0 $(call SANITIZED,address,)

tsan:
	TSAN_OPTIONS=halt_on_error=0:second_deadlock_stack=1 MARGAY_TEST_ENGINE=reference $(call SANITIZED,thread,-Zbuild-std)

bench: release
	$(CARGO) bench $(MARGAY) --bench frontend
	python3 benches/kernels/bench.py $(TARGET)/release/margay
	python3 benches/calls/bench.py $(TARGET)/release/margay
	python3 benches/cold/bench.py $(TARGET)/release/margay
	python3 benches/checker/bench.py $(TARGET)/release/margay

# Intel's OpenCL runtime from its packages, in a folder that git ignores.
bench-opencl: release .opencl/ready
	python3 benches/kernels/bench.py $(TARGET)/release/margay --write benches/kernels

.opencl/ready:
	@scripts/opencl.sh .opencl
	@touch $@

# NVIDIA's compiler from its packages, in a folder that git ignores. Needs no GPU.
oracle: .oracle/ready

.oracle/ready:
	@scripts/oracle.sh .oracle
	@touch $@

# Our own programs, built by an unmodified nvcc with the runtimes of CUDA 13, 12 and 11. Needs no GPU.
oracle-programs: release
	@scripts/programs.sh $(TARGET)/release/margay .oracle

oracle-abi: oracle
	MARGAY_PTXAS=$(CURDIR)/.oracle/bin $(CARGO) run --release -q -p margay-oracle --bin oracle-abi -- --count 1000

oracle-cases: oracle
	MARGAY_PTXAS=$(CURDIR)/.oracle/bin $(CARGO) run --release -q -p margay-oracle --bin oracle-cases -- --count 4000

oracle-isa: oracle
	MARGAY_PTXAS=$(CURDIR)/.oracle/bin/ptxas $(CARGO) run --release -q -p margay-isa --example oracle -- --limit $(or $(LIMIT),24)

oracle-fold: oracle
	MARGAY_PTXAS=$(CURDIR)/.oracle/bin $(CARGO) run --release -q -p margay-oracle --bin oracle-fold -- --rounds 8

# Takes a quarter of an hour on one core.
ulp:
	$(CARGO) run --release -q -p margay-exec --example ulp

oracle-mutants: oracle
	MARGAY_PTXAS=$(CURDIR)/.oracle/bin $(CARGO) run --release -q -p margay-oracle --bin oracle-mutants -- --count 2000 tests/mutants tests/run
	MARGAY_PTXAS=$(CURDIR)/.oracle/bin $(CARGO) run --release -q -p margay-oracle --bin oracle-mutants -- --declarations --count 2000 tests/mutants tests/run

oracle-cub: oracle release
	scripts/cub.sh .oracle $(TARGET)/release/margay $(or $(RUNS),500)

oracle-random: release
	@scripts/random.sh $(TARGET)/release/margay .oracle $(or $(RUNS),100)

# Exits with a message if there is no driver or no GPU.
golden:
	$(CARGO) run --release -q -p margay-golden
