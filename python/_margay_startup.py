"""What runs at the start of a Python process under margay: `margay.pth` imports it where the environment says `MARGAY_PYTHON=1`, as
`margay exec` and `margay.enable()` do for the processes that they start.

A `.pth` file, and not `sitecustomize`, of which a Python has only one, and which others may have taken. It costs every other process of
the environment one look at a variable. This module stands outside of the package, so that it costs processes under margay next to
nothing either: the package is imported when torch is.

PYTEST_DONT_REWRITE: pytest would warn that it cannot rewrite the assertions of a module that is imported before it.
"""

from __future__ import annotations

import os
import sys

# Called after the import of a module: the part of margay that has a function `install`.
_AFTER = {
    "torch": "margay.torch",
    "torch._inductor.runtime.benchmarking": "margay._triton",
    "torch._inductor.runtime.triton_heuristics": "margay._triton",
    "torch.utils.cpp_extension": "margay.torch.blas",
    "bitsandbytes.cextension": "margay.torch.blas",
    "cuda.bindings._internal.runtime": "margay._bindings",
    "cuda.bindings._internal.runtime_ptds": "margay._bindings",
    "cuda.bindings._bindings.cyruntime": "margay._bindings",
    "cuda.bindings._bindings.cyruntime_ptds": "margay._bindings",
    "cupy": "margay.cupy",
    "cupy_backends": "margay.cupy",
    "cupy_backends.cuda.libs.cublas": "margay.cupy",
    "cupy_backends.cuda.libs.curand": "margay.cupy",
    "cupy_backends.cuda.libs.cusolver": "margay.cupy",
    "cupy_backends.cuda.libs.cusparse": "margay.cupy",
    "cupy.cuda.cufft": "margay.cupy",
    "jax_plugins.xla_cuda12": "margay._jax",
    "jax_plugins.xla_cuda13": "margay._jax",
    "triton.backends": "margay._triton",
    "triton.backends.nvidia.driver": "margay._triton",
    "triton.runtime.autotuner": "margay._triton",
    "triton.tools.disasm": "margay._triton",
}
# Called before the import of a module: what `margay.enable()` has to say about it.
_before = {}


class _Finder:
    """Finds modules as the other finders do, and adds a step before or behind their execution."""

    def find_spec(self, name, path=None, target=None):
        act = _before.get(name)
        if act is not None:
            act(name)
        wanted = _AFTER.get(name)
        if wanted is None:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, wanted)
                return spec
        return None


class _Loader:
    """The real loader, and `install()` of margay's part behind it."""

    def __init__(self, real, wanted):
        self._real = real
        self._wanted = wanted

    def __getattr__(self, name):
        return getattr(self._real, name)

    def create_module(self, spec):
        return self._real.create_module(spec)

    def exec_module(self, module):
        # The module keeps its real loader: code that looks for data files beside it asks the loader.
        module.__spec__.loader = module.__loader__ = self._real
        self._real.exec_module(module)
        _install(self._wanted)


def _install(name):
    import importlib

    importlib.import_module(name).install()


_FINDER = _Finder()


def begin() -> None:
    """Has `install()` called for the modules of `_AFTER`: now for those that are imported, else after their import."""
    if _FINDER in sys.meta_path:
        return
    sys.meta_path.insert(0, _FINDER)
    if not {word.strip() for word in os.environ.get("MARGAY_CHECK", "").split(",")}.isdisjoint(("races", "all", "undefined")):
        # Triton has all lanes of a warp store the sum that they share. If the first addition is fused with a multiplication, each lane rounds
        # its sum in another way, and one store writes different values to one place.
        os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "0")
    for name, wanted in _AFTER.items():
        if name in sys.modules:
            _install(wanted)


def before(names: tuple[str, ...], act: object) -> None:
    """Has a function called before the import of modules."""
    begin()
    for name in names:
        _before[name] = act
