"""Triton on a CPU: the tuning of kernels, by it and by torch's compiler, and machine code.

How long a configuration takes on a CPU says nothing about a GPU, and compiling and timing all configurations is most of the time of a first
run. So Triton takes the first one that runs, and torch's compiler the first one that compiles; `MARGAY_AUTOTUNE=all` has them time all of
them. Benchmark functions that a program passes to `triton.autotune` are used in any case. Benchmarks of either do not fill the memory by
which they empty a GPU's cache.

Machine code: margay compiles none for GPUs, so `kernel.asm["sass"]` is what NVIDIA's assembler, which Triton's package contains, makes of the
kernel's PTX.
"""

from __future__ import annotations

import functools
import os
import sys
import time

_NEVER = float("inf")
_ELEMENT = 4  # bytes: what torch's compiler fills in place of a GPU's cache


def _once(kernel_call, quantiles=None):
    """The time of one call, as `triton.testing.do_bench` returns it."""
    from triton.runtime import driver

    begin = time.perf_counter()
    kernel_call()
    driver.active.get_device_interface().synchronize()
    taken = (time.perf_counter() - begin) * 1e3
    return taken if quantiles is None else [taken] * len(quantiles)


def _has_own_benchmark(tuner) -> bool:
    # Triton puts a function of its own there for these deprecated arguments.
    if tuner.num_warmups is not None or tuner.num_reps is not None or tuner.use_cuda_graph:
        return False
    if hasattr(tuner, "_do_bench"):
        return tuner._do_bench is not None
    from triton.testing import do_bench

    return tuner.do_bench not in (do_bench, _once)  # older releases have the one they use there


def _first_that_runs(autotuner) -> None:
    prune, bench = autotuner.prune_configs, autotuner._bench

    @functools.wraps(prune)
    def prune_configs(self, kwargs):
        self._margay_has_run = False
        return prune(self, kwargs)

    @functools.wraps(bench)
    def _bench(self, *args, config, **meta):
        if _has_own_benchmark(self):
            return bench(self, *args, config=config, **meta)
        if self._margay_has_run:
            return [_NEVER] * 3
        self.__dict__["do_bench"] = _once  # in place of the cached property
        times = bench(self, *args, config=config, **meta)
        self._margay_has_run = times[0] < _NEVER
        return times

    autotuner.prune_configs, autotuner._bench = prune_configs, _bench


def _first_that_compiles(autotuner, none) -> None:
    """Has torch's compiler neither compile nor time the configurations behind the first one without an error. `none` is the type of the error
    that no configuration compiles."""
    precompile = autotuner._precompile_worker

    @functools.wraps(precompile)
    def _precompile_worker(self):
        configs = self.configs
        if not configs or self.compile_results:
            return precompile(self)
        for config in configs[:-1]:
            self.configs = [config]
            try:
                return precompile(self)
            except none:
                continue
        self.configs = configs[-1:]
        return precompile(self)

    @functools.wraps(autotuner.benchmark_all_configs)
    def benchmark_all_configs(self, *args, **kwargs):
        return {launcher: _NEVER if i else 0.0 for i, launcher in enumerate(self.launchers)}

    @functools.wraps(autotuner.coordinate_descent_tuning)
    def coordinate_descent_tuning(self, launcher, *args, **kwargs):
        return launcher

    autotuner._precompile_worker, autotuner.benchmark_all_configs = _precompile_worker, benchmark_all_configs
    autotuner.coordinate_descent_tuning = coordinate_descent_tuning


def _no_cache(self):
    """The buffer that benchmarks fill to empty the L2 cache of a GPU: 256 MiB, which would take longer than most kernels."""
    import torch

    return torch.empty(1, dtype=torch.int, device="cuda")


def _assembled(text: bytes, output: str) -> None:
    """Writes the machine code of a module of PTX, which NVIDIA's assembler compiles."""
    import re
    import subprocess
    import tempfile

    import triton

    target = re.search(rb"^\s*\.target\s+(sm_\w+)", text, re.MULTILINE)
    if target is None:
        raise ValueError("margay: this is neither machine code nor a module of PTX")
    tools = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin")
    # The newer of the two, of which newer releases of Triton contain only one, assembles for older architectures too.
    found = [tool for name in ("ptxas-blackwell", "ptxas") if os.path.exists(tool := os.path.join(tools, name))]
    if not found:
        raise FileNotFoundError(f"margay: machine code needs NVIDIA's assembler, which is not in {tools}")
    with tempfile.NamedTemporaryFile(suffix=".ptx") as source:
        source.write(text.split(b"\0", 1)[0])
        source.flush()
        subprocess.run([found[0], f"-arch={target[1].decode()}", "-o", output, source.name], check=True)


def _assemble_first(disasm) -> None:
    """Has Triton's disassembler compile what margay passes on as machine code, which is PTX."""
    extract = disasm.extract

    @functools.wraps(extract)
    def assembled(path, fun):
        import tempfile

        with open(path, "rb") as file:
            image = file.read()
        if image.startswith(b"\x7fELF"):
            return extract(path, fun)
        with tempfile.NamedTemporaryFile(suffix=".cubin") as code:
            _assembled(image, code.name)
            return extract(code.name, fun)

    disasm.extract = assembled


def _as_newest_known(names) -> None:
    """Has releases of Triton that know no CUDA as new as margay's assembler treat it as the newest that all of them know.

    `names` are those of the back end's module, which these releases keep out of `sys.modules`.
    """
    version_of = names["ptx_get_version"]

    @functools.wraps(version_of)
    def ptx_get_version(cuda_version):
        try:
            return version_of(cuda_version)
        except RuntimeError:
            return version_of("12.4")

    ptx_get_version._margay = True
    names["ptx_get_version"] = ptx_get_version


def install() -> None:
    """Changes Triton's modules, as far as they are imported."""
    module = sys.modules.get("triton.runtime.autotuner")
    autotuner = getattr(module, "Autotuner", None)
    if hasattr(autotuner, "_bench") and hasattr(autotuner, "prune_configs") and not hasattr(autotuner, "_margay_has_run"):
        autotuner._margay_has_run = False
        if os.environ.get("MARGAY_AUTOTUNE") != "all":
            _first_that_runs(autotuner)
    compiler = sys.modules.get("torch._inductor.runtime.triton_heuristics")
    autotuner = getattr(compiler, "CachingAutotuner", None)
    parts = ("_precompile_worker", "benchmark_all_configs", "coordinate_descent_tuning")
    if all(hasattr(autotuner, part) for part in parts) and not hasattr(autotuner._precompile_worker, "__wrapped__"):
        if hasattr(compiler, "NoTritonConfigsError") and os.environ.get("MARGAY_AUTOTUNE") != "all":
            _first_that_compiles(autotuner, compiler.NoTritonConfigsError)
    disasm = sys.modules.get("triton.tools.disasm")
    if hasattr(disasm, "extract") and not hasattr(disasm.extract, "__wrapped__"):
        _assemble_first(disasm)
    backend = getattr(sys.modules.get("triton.backends"), "backends", {}).get("nvidia")
    names = getattr(getattr(getattr(backend, "compiler", None), "make_llir", None), "__globals__", {})
    if "ptx_get_version" in names and not hasattr(names["ptx_get_version"], "_margay"):
        _as_newest_known(names)
    driver = getattr(sys.modules.get("triton.backends.nvidia.driver"), "CudaDriver", None)
    if hasattr(driver, "get_empty_cache_for_benchmark"):
        driver.get_empty_cache_for_benchmark = _no_cache
    benchmarker = getattr(sys.modules.get("torch._inductor.runtime.benchmarking"), "InductorBenchmarker", None)
    if hasattr(benchmarker, "L2_cache_size"):
        benchmarker.L2_cache_size = _ELEMENT
        benchmarker.get_device_cache_size = lambda self, device_type=None: _ELEMENT
