"""Tensors of several devices in one operator: the cases that CUDA kernels accept, and torch's usual error for the rest."""

from __future__ import annotations

import torch

# Arguments that CUDA kernels take from the CPU although they have dimensions: indices, and what is read on the host.
_HOST = {
    "aten::index.Tensor",
    "aten::index.Tensor_out",
    "aten::_index_put_impl_",
    "aten::index_put_",
    "aten::_unsafe_index.Tensor",
    "aten::_cudnn_rnn",
    "aten::_cudnn_rnn_backward",
    "aten::_ctc_loss.Tensor",
    "aten::_ctc_loss_backward.Tensor",
    "aten::copy_",
    "aten::_copy_from",
    "aten::_copy_from_and_resize",
    "aten::_histogramdd_bin_edges",
    "aten::segment_reduce",
    "aten::set_.source_Tensor",
}


def foreign(name: str, tensor, d: int):
    """Handles a tensor that is not on the operator's device `d`, if CUDA's kernel would accept it."""
    if tensor.device.type == "cpu":
        # A CPU tensor without dimensions is a scalar; one that is undefined or empty of storage says nothing.
        if tensor.dim() == 0 or name in _HOST or name.startswith("c10d::"):
            return tensor
    elif tensor.is_cuda and name in ("aten::copy_", "aten::_copy_from"):
        from margay.torch import driver, memory

        driver.synchronize(tensor.get_device())  # what its own device's stream still computes
        return memory.alias(tensor)
    raise RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, cuda:{d} and {tensor.device}! "
        f"(when checking arguments of {name})"
    )
