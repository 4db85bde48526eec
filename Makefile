# margay's commands. `make demo` and `make test` install what they miss through the system's packages, and say so.

SHELL := /bin/bash
CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
# The SIMD engine needs LLVM 22; everything else builds and works without it.
LLVM := $(shell command -v llvm-config-22 2>/dev/null)
WORKSPACE = --workspace $(if $(LLVM),--features margay/simd,--exclude margay-llvm)

.PHONY: help demo test lint bench setup release full-test \
        oracle oracle-cases oracle-abi oracle-isa golden clean-oracle

help:
	@echo "make demo          build, then check, explain and run the examples, with verified results"
	@echo "make test          build and run all tests"
	@echo "make full-test     the same, with the long versions of the random tests"
	@echo "make lint          rustfmt and clippy"
	@echo "make bench         benchmarks"
	@echo "make oracle-cases  compare verdicts on functions and parameters with NVIDIA's ptxas"
	@echo "make oracle-abi    compare the sm ABI with what ptxas compiles"
	@echo "make oracle-isa    compare verdicts on generated instructions with ptxas"
	@echo "make golden        record results of the case files on a GPU, where there is one"

setup:
	@scripts/setup.sh

release: setup
	$(CARGO) build --release -p margay $$(command -v llvm-config-22 >/dev/null && echo --features simd)

demo: release
	@examples/demo.sh $(TARGET)/release/margay

test: setup
	$(CARGO) test $(WORKSPACE)
	$(CARGO) build -p margay
	@examples/demo.sh $(TARGET)/debug/margay >/dev/null && echo "the demo's results are right"

full-test: setup
	MARGAY_MUTATIONS=10000 $(CARGO) test --release $(WORKSPACE)

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(WORKSPACE) --all-targets -- -D warnings

bench: release
	$(CARGO) bench $(WORKSPACE)

# NVIDIA's compiler from its own packages, in a folder that git ignores. It needs no GPU.
oracle: .oracle/ready

.oracle/ready:
	@scripts/oracle.sh .oracle
	@touch $@

oracle-cases: oracle release
	@scripts/oracle-run.sh cases

oracle-abi: oracle release
	@scripts/oracle-run.sh abi

oracle-isa: oracle release
	@scripts/oracle-run.sh isa

golden: release
	@scripts/oracle-run.sh golden

clean-oracle:
	rm -rf .oracle
