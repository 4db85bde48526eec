"""cuBLAS and cuBLASLt for code that calls them itself: with the handle of torch, `torch.cuda.current_blas_handle()`, and extensions.

They contain only machine code. As for CuPy, NumPy computes the calls on the same memory; torch's own operators make none. Replacing the
library's functions takes some milliseconds, so it waits for the first use.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import torch


@functools.cache
def serve() -> bool:
    """Replaces cuBLAS's functions once; false if that is not possible here, for example without NumPy."""
    from margay import _replace

    try:
        from margay.cupy import blas, blas_lt, library
    except ImportError:
        return False
    if not _replace.is_possible():
        return False
    library.announce(("libcublas", "libcublasLt"))
    for part in (blas, blas_lt):
        library.serve(str(Path(torch.__file__).parent / "lib/libtorch_cuda.so"), part.functions(), part.REST)
    return True


def _serving(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        serve()
        return function(*args, **kwargs)

    return call


def install() -> None:
    """Serves cuBLAS once a program asks for its handle, or loads an extension that it has compiled; at once for bitsandbytes, whose library
    is an extension. Called after the import of torch, of `torch.utils.cpp_extension` and of bitsandbytes' library."""
    import margay.torch

    if margay.torch.is_installed():
        if "bitsandbytes.cextension" in sys.modules:
            serve()
        _serve_before(torch.cuda, "current_blas_handle")
        _serve_before(sys.modules.get("torch.utils.cpp_extension"), "_import_module_from_library")


def _serve_before(module, name) -> None:
    function = getattr(module, name, None)
    if function is not None and not hasattr(function, "__wrapped__"):
        setattr(module, name, _serving(function))
