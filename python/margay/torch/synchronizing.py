"""`torch.cuda.set_sync_debug_mode`: the operators whose CUDA kernels wait for the device, because the host needs a value or a copy."""

from __future__ import annotations

import warnings

import torch

_NAMES = {
    "aten::_local_scalar_dense",
    "aten::_unique2",
    "aten::allclose",
    "aten::bincount",
    "aten::equal",
    "aten::masked_select",
    "aten::masked_select.out",
    "aten::nonzero",
    "aten::nonzero.out",
    "aten::repeat_interleave.Tensor",
    "aten::unique_consecutive",
    "aten::unique_dim",
    "aten::unique_dim_consecutive",
}
_WORDS = "called a synchronizing CUDA operation"


def _alert(*args, **kwargs) -> None:
    mode = torch.cuda.get_sync_debug_mode()
    if mode == 1:
        warnings.warn(_WORDS, stacklevel=3)
    elif mode == 2:
        raise RuntimeError(_WORDS)


def _alert_of_copy(self, src, non_blocking=False) -> None:
    # A number takes no copy.
    if self.is_cuda != getattr(src, "is_cuda", self.is_cuda) and not non_blocking:
        _alert()


def alert_of(name: str):
    """What alerts before an operator runs, or `None` if its CUDA kernel does not wait."""
    if name == "aten::copy_":
        return _alert_of_copy
    return _alert if name in _NAMES else None
