"""Backward passes on the thread that asks for them.

Torch has a thread for each CUDA device, because that is how it keeps them all busy. Here, all devices are this host, so handing a pass over
to another thread only costs time: 15 to 40 microseconds, and a second pool of threads of the CPU's kernels.
"""

from __future__ import annotations

import torch
from torch.autograd.graph import Variable

_threads, _set_threads = torch._C._is_multithreading_enabled, torch._C._set_multithreading_enabled


class _Engine(torch._C._ImperativeEngine):
    """Torch's engine."""

    def run_backward(self, *args, **kwargs):
        if not _threads():
            return _run(self, *args, **kwargs)
        _set_threads(False)
        try:
            return _run(self, *args, **kwargs)
        finally:
            _set_threads(True)


_run = torch._C._ImperativeEngine.run_backward


def install() -> None:
    """Replaces torch's engine. With several devices, a node may wait for one of another device, which needs the threads."""
    if torch.cuda.device_count() == 1 and type(Variable._execution_engine) is torch._C._ImperativeEngine:
        Variable._execution_engine = _Engine()
