"""Quantized and nested tensors."""

from __future__ import annotations

import ctypes

import torch

from margay.torch import memory


def _quantized(tensor, device, part):
    """A quantized tensor like this one on another device; `part` moves scales and zero points."""
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        new = torch._empty_affine_quantized(
            tensor.size(), scale=tensor.q_scale(), zero_point=tensor.q_zero_point(), dtype=tensor.dtype, device=device
        )
    else:
        new = torch._empty_per_channel_affine_quantized(
            tensor.size(),
            scales=part(tensor.q_per_channel_scales()),
            zero_points=part(tensor.q_per_channel_zero_points()),
            axis=tensor.q_per_channel_axis(),
            dtype=tensor.dtype,
            device=device,
        )
    if not tensor.is_contiguous():
        new = new.as_strided(tensor.size(), tensor.stride())
    bytes_ = tensor.numel() * tensor.element_size()
    if bytes_:
        ctypes.memmove(new.data_ptr(), tensor.data_ptr(), bytes_)
        if new.is_cuda:
            memory.note_written(new.data_ptr(), bytes_)
    return new


def _nested(tensor, change):
    length = tensor.untyped_storage().nbytes() // tensor.element_size()
    buffer = change(tensor, length)
    sizes, strides, offsets = tensor._nested_tensor_size(), tensor._nested_tensor_strides(), tensor._nested_tensor_storage_offsets()
    return torch._nested_view_from_buffer(buffer, sizes, strides, offsets)


def alias(tensor):
    """A quantized or nested CUDA tensor as a CPU tensor: the first a copy, the second on the same memory."""
    if tensor.is_quantized:
        return _quantized(tensor, "cpu", memory.alias)
    return _nested(tensor, lambda t, n: memory.whole_storage(t))


def adopt(result, device):
    """A quantized or nested CPU tensor as a CUDA tensor."""
    if result.is_quantized:
        return _quantized(result, torch.device("cuda", device) if isinstance(device, int) else device, lambda t: memory.adopt(t, device))

    def copied(tensor, length):
        return memory.copy_out(torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage(), 0, (length,), (1,)), device)

    return _nested(result, copied)


def write_back(tensor, result) -> None:
    """Writes the changes of a copy back to its quantized CUDA tensor."""
    if tensor.is_quantized:
        ctypes.memmove(tensor.data_ptr(), result.data_ptr(), tensor.numel() * tensor.element_size())
