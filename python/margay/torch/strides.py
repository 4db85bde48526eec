"""Operators whose CUDA kernels lay their results out otherwise than the CPU's: code of `torch.compile` relies on it, and checks it.

What torch says of a `meta` tensor's result holds for CUDA.
"""

from __future__ import annotations

import torch
from torch.utils._pytree import tree_map_only

_aten = torch.ops.aten


def _described(tensor):
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta")


def _laid_out(result, told):
    if not isinstance(result, torch.Tensor) or result.size() != told.size() or result.stride() == told.stride():
        return result
    return torch.empty_strided(result.size(), told.stride(), dtype=result.dtype).copy_(result)


def _as_told(op, when=lambda *arguments: True):
    """Computes an operator; `when` tells by its arguments whether the layouts may differ."""

    def compute(*args, **kwargs):
        result = op(*args, **kwargs)
        if not when(*args):
            return result
        try:
            told = op(*tree_map_only(torch.Tensor, _described, args), **kwargs)
        except NotImplementedError:  # older releases say nothing
            return result
        if isinstance(result, torch.Tensor):
            return _laid_out(result, told)
        return tuple(_laid_out(*pair) for pair in zip(result, told, strict=True))

    return compute


def _of_several(self, dims, *rest):
    return len(dims) > 1


def _max_unpool2d(self, indices, output_size):
    """CUDA's result lies in rows, whatever the memory format of the input."""
    return _aten.max_unpool2d.default(self, indices, output_size).contiguous()


#: operators on CPU tensors
OURS = {
    "aten::_fft_c2c": _as_told(_aten._fft_c2c.default, _of_several),
    "aten::_fft_c2r": _as_told(_aten._fft_c2r.default, _of_several),
    "aten::_fft_r2c": _as_told(_aten._fft_r2c.default, _of_several),
    "aten::linalg_eig": _as_told(_aten.linalg_eig.default),
    "aten::max_unpool2d": _max_unpool2d,
}
if hasattr(_aten, "nonzero_static"):
    OURS["aten::nonzero_static"] = _as_told(_aten.nonzero_static.default)
