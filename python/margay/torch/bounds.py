"""`--check memory` and `init`: every tensor of device `cuda` has an allocation of its own.

torch's allocator takes 2 MiB and more from the driver at once and cuts tensors out of them. An access beyond a tensor would land in that
memory, or in another tensor, and a new tensor would hold what another one left. While a CUDA graph is captured, the allocator is on: what the
graph allocates lives in its pool.

Tensors then free their memory in destructors, where an exception of torch's ends the process. So freeing succeeds after a kernel's fault, too,
and the next operator raises.
"""

from __future__ import annotations

import functools

import torch

from margay import _checks
from margay.torch import driver


def install() -> None:
    """Turns torch's allocator off if margay checks accesses to memory; does nothing in releases that cannot."""
    turn = getattr(torch._C, "_cuda_cudaCachingAllocator_enable", None)
    if turn is None or not _checks.wanted("memory", "init"):
        return
    if hasattr(driver.library(), "margayFreeAfterFaults"):  # the driver of an older `margay exec` lacks it
        driver.library().margayFreeAfterFaults()
    from torch.cuda import graphs

    class_ = graphs.CUDAGraph
    begin, end = class_.capture_begin, class_.capture_end

    @functools.wraps(begin)
    def capture_begin(self, *args, **kwargs):
        turn(True)
        try:
            return begin(self, *args, **kwargs)
        except BaseException:
            turn(False)
            raise

    @functools.wraps(end)
    def capture_end(self, *args, **kwargs):
        try:
            return end(self, *args, **kwargs)
        finally:
            turn(False)

    class_.capture_begin, class_.capture_end = capture_begin, capture_end
    torch.cuda._lazy_call(lambda: turn(False))
