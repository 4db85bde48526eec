"""NVIDIA's Python bindings of the CUDA runtime API (`cuda.bindings.runtime`) on margay's runtime.

They hold NVIDIA's runtime without the names of its functions, so margay's auditing library cannot lead them elsewhere. But Cython modules
offer C functions to each other by name, in capsules that the importing module looks up when it is imported
(https://cython.readthedocs.io, "Sharing Declarations Between Cython Modules"). `cuda.bindings.cyruntime` takes the runtime's functions so
from `cuda.bindings._internal.runtime` (`cuda.bindings._bindings.cyruntime` before release 13). Between the two, the capsules are replaced by capsules of margay's functions of the same name
and signature.
"""

from __future__ import annotations

import ctypes
import os
import sys

__all__ = ["install"]

# The modules that hold a runtime, and what its variants with a default stream per thread are called.
_MODULES = {
    "cuda.bindings._internal.runtime": "",
    "cuda.bindings._internal.runtime_ptds": "_ptsz",
    "cuda.bindings._bindings.cyruntime": "",
    "cuda.bindings._bindings.cyruntime_ptds": "_ptsz",
}


def install() -> None:
    """Replaces the functions of those modules that are imported."""
    for name, variant in _MODULES.items():
        module = sys.modules.get(name)
        offered = getattr(module, "__pyx_capi__", None)
        runtime = _runtime() if offered else None
        if runtime is not None:
            _replace(offered, runtime, variant)
            _tell(module.__file__)


def _tell(path: str) -> None:
    """Has margay's driver say nothing of the runtime in a file, which is not called any more."""
    try:
        replaced = ctypes.CDLL("libcuda.so.1").margayReplaced
    except (OSError, AttributeError):
        return  # the driver of an older `margay exec`
    replaced(os.path.realpath(path).encode())


def _runtime() -> ctypes.CDLL | None:
    """Margay's runtime of the bindings' version of CUDA, which the process has loaded; `None` outside of margay."""
    from cuda.bindings import __version__

    name = {"13": "libcudart.so.13", "12": "libcudart.so.12"}.get(__version__.split(".")[0])
    if name is None:
        return None
    try:
        # Only what is there: without margay, this might be NVIDIA's.
        return ctypes.CDLL(name, mode=ctypes.DEFAULT_MODE | 4)  # RTLD_NOLOAD
    except OSError:
        return None


def _replace(offered: dict[str, object], runtime: ctypes.CDLL, variant: str) -> None:
    api = ctypes.pythonapi
    # An own function object each: others may have given the shared ones other types.
    name_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyCapsule_GetName", api))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(("PyCapsule_New", api))
    for name, capsule in list(offered.items()):
        if not name.startswith("_cuda"):
            continue
        function = _find(runtime, name[1:], variant)
        if function is not None:
            # The signature, which is the capsule's name, stays where it is: in the module's constants.
            offered[name] = make(ctypes.cast(function, ctypes.c_void_p), name_of(capsule), None)


def _find(runtime: ctypes.CDLL, name: str, variant: str) -> object | None:
    variants = [name + variant, name + variant.replace("sz", "ds")] if variant else []
    for candidate in [*variants, name]:
        try:
            return runtime[candidate]
        except AttributeError:
            continue
    return None
