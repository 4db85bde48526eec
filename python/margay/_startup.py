"""What runs at the start of a Python process that margay has enabled: `margay.pth` imports it when `MARGAY_PYTHON` is set.

It must cost next to nothing, so it imports nothing but what the interpreter has loaded already.
"""

from __future__ import annotations

import sys

# Called after the import of a module of that name: the module that has the function `install`.
_AFTER = {"torch": "margay.torch"}


class _Finder:
    """Finds modules of `_AFTER` as the other finders do, and adds a step behind their execution."""

    def find_spec(self, name, path=None, target=None):
        wanted = _AFTER.get(name)
        if wanted is None:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
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


def hook() -> None:
    """Has `install()` called for the modules of `_AFTER`: now for those that are imported, else after their import."""
    if _FINDER in sys.meta_path:
        return
    sys.meta_path.insert(0, _FINDER)
    for name, wanted in _AFTER.items():
        if name in sys.modules:
            _install(wanted)
