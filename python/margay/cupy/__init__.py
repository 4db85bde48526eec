"""CuPy's calls of cuBLAS, cuFFT, cuRAND, cuSOLVER and cuSPARSE, computed by NumPy on the same memory.

Those libraries contain only machine code of GPUs, which margay cannot run. A device pointer of margay is a host address, so NumPy can read
and write the arrays where they are. A call waits for the work on its stream and is complete when it returns.
"""

from __future__ import annotations

import sys

__all__ = ["install"]

_done = set()


def install() -> None:
    """Serves the libraries of those CuPy modules that are imported, if the CUDA driver of this process is margay's."""
    from margay import _checks, _replace
    from margay.cupy import blas, fft, library, random, solver, sparse

    if not _replace.is_possible() or not library.is_margay():
        return
    library.announce(("libcublas", "libcublasLt", "libcufft", "libcurand", "libcusolver", "libcusparse"))
    parts = {
        "cupy_backends.cuda.libs.cublas": blas,
        "cupy_backends.cuda.libs.curand": random,
        "cupy_backends.cuda.libs.cusolver": solver,
        "cupy_backends.cuda.libs.cusparse": sparse,
        "cupy.cuda.cufft": fft,
    }
    for module, part in parts.items():
        if module in sys.modules and module not in _done:
            _done.add(module)
            library.serve(sys.modules[module].__file__, part.functions(), part.REST)
    cupy = sys.modules.get("cupy")
    if hasattr(cupy, "_default_memory_pool") and "cupy" not in _done:
        _done.add("cupy")
        if _checks.wanted("memory", "init"):
            # CuPy's pool cuts arrays out of larger allocations: accesses beyond an array would land in them.
            cupy.cuda.set_allocator(None)
