"""PyTorch's `cuda` device on margay: torch's CPU kernels compute its operators on the same memory; margay runs all other kernels."""

from __future__ import annotations

__all__ = ["install", "summary"]

_installed = False


def is_installed() -> bool:
    """Whether the operators of torch's `cuda` device are margay's."""
    return _installed


def install() -> None:
    """Implements the operators of torch's `cuda` device. `margay.enable()` and `margay exec` call it once after `import torch`.

    Does nothing if torch was built without CUDA, or if the CUDA driver of the process is not margay's.
    """
    global _installed
    import torch

    from margay.torch import driver

    if _installed or torch.version.cuda is None or not driver.is_margay():
        return
    _installed = True
    from margay.torch import account, blas, bounds, capture, distributed, ending, engine, extension, operators, parallel, profiling, shims

    operators.register()
    capture.install()
    bounds.install()
    profiling.install()
    distributed.install()
    extension.install()
    parallel.install()
    engine.install()
    account.install()
    ending.install()
    shims.install()
    blas.install()
    torch.cuda._sleep = driver.sleep
    driver.library().margayReplaced(b"libtorch_cuda")


def summary() -> str:
    """Returns tables of the operators that torch's CPU kernels computed and the kernels that margay ran, with their counts and times.

    Running kernels are not included; `torch.cuda.synchronize()` waits for them. With `MARGAY_TORCH_SUMMARY=1`, a process writes
    the tables to standard error when it exits.
    """
    from margay.torch import account

    return account.text()
