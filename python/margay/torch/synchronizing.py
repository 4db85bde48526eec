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
    "aten::unique_consecutive",
    "aten::unique_dim",
    "aten::unique_dim_consecutive",
}
#: operators that need the values of masks, and copies of indices that are not on the device
_INDEXED = {"aten::index.Tensor", "aten::index.Tensor_out", "aten::_unsafe_index.Tensor"}
_INDEXED_PUT = {"aten::index_put_", "aten::_index_put_impl_"}
_MASKS = (torch.bool, torch.uint8)
_mode = torch._C._cuda_get_sync_debug_mode
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


def _alert_of_repetition(repeats, *, output_size=None) -> None:
    if output_size is None:
        _alert()


def _alert_of_index(self, indices, *rest, **options) -> None:
    if _mode() and any(i is not None and (i.dtype in _MASKS or not i.is_cuda) for i in indices):
        _alert()


def _alert_of_index_put(self, indices, values, accumulate=False, *rest) -> None:
    # One number for the places of one mask is `masked_fill_`.
    given = [i for i in indices if i is not None]
    fills = len(given) == 1 and given[0].dtype in _MASKS and values.numel() == 1 and not values.is_cuda and not accumulate
    if not fills:
        _alert_of_index(self, indices)


def alert_of(name: str):
    """What alerts before an operator runs, or `None` if its CUDA kernel does not wait."""
    if name == "aten::repeat_interleave.Tensor":
        return _alert_of_repetition
    if name in _INDEXED:
        return _alert_of_index
    if name in _INDEXED_PUT:
        return _alert_of_index_put
    if name == "aten::copy_":
        return _alert_of_copy
    return _alert if name in _NAMES else None
