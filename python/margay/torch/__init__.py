"""PyTorch's `cuda` device on margay: torch's own CPU kernels on the same memory, and margay for kernels that people write."""

from __future__ import annotations

__all__ = ["install", "summary"]

_installed = False


def install() -> None:
    """Serves the operators of torch's `cuda` device. Called once after `import torch`, by `margay.enable()` and `margay exec`."""
    global _installed
    if _installed:
        return
    _installed = True
    from margay.torch import account, capture, distributed, extension, operators, profiling

    operators.register()
    capture.install()
    profiling.install()
    distributed.install()
    extension.install()
    account.install()


def summary() -> str:
    """Which operators torch's CPU kernels computed and which kernels margay ran, with times."""
    from margay.torch import account

    return account.text()
