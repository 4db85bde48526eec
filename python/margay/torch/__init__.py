"""PyTorch's `cuda` device on margay: torch's own CPU kernels on the same memory, and margay for kernels that people write."""

from __future__ import annotations

__all__ = ["install", "summary"]

_installed = False


def install() -> None:
    """Serves the operators of torch's `cuda` device. Called once after `import torch`, by `margay.enable()` and `margay exec`.

    It does nothing where torch is built without CUDA, or where the CUDA driver of the process is not margay's.
    """
    global _installed
    import torch

    from margay.torch import driver

    if _installed or torch.version.cuda is None or not driver.is_margay():
        return
    _installed = True
    from margay.torch import account, capture, distributed, ending, extension, operators, parallel, profiling

    operators.register()
    capture.install()
    profiling.install()
    distributed.install()
    extension.install()
    parallel.install()
    account.install()
    ending.install()
    torch.cuda._sleep = driver.sleep


def summary() -> str:
    """Which operators torch's CPU kernels have computed so far and which kernels margay has run, how often and in what time, as tables.

    Kernels that still run are not among them: `torch.cuda.synchronize()` waits for them. With `MARGAY_TORCH_SUMMARY=1` a process writes
    the tables to standard error when it ends.
    """
    from margay.torch import account

    return account.text()
