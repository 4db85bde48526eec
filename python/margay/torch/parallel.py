"""Several devices in one process: replaces NCCL by copies.

NCCL's kernels are machine code only, so it would wait for them forever. `DataParallel` and `torch.cuda.comm` depend on it.
"""

from __future__ import annotations

import torch


def _on(tensor, device):
    return tensor if tensor.is_cuda and tensor.get_device() == device else tensor.to(torch.device("cuda", device), non_blocking=True)


def _broadcast(tensor, devices):
    return [_on(tensor, device) for device in devices]


def _broadcast_out(tensor, outs):
    for out in outs:
        out.copy_(tensor, non_blocking=True)
    return outs


def _broadcast_coalesced(tensors, devices, buffer_size):
    return [[_on(tensor, device) for tensor in tensors] for device in devices]


def install() -> None:
    """Replaces NCCL by copies."""
    from torch.cuda import nccl

    nccl.is_available = lambda tensors: False
    torch._C._broadcast = _broadcast
    torch._C._broadcast_out = _broadcast_out
    torch._C._broadcast_coalesced = _broadcast_coalesced
