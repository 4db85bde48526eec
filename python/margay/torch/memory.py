"""Views of the same memory as a `cpu` tensor and as a `cuda` tensor.

A device pointer of margay is a host address. So a CPU tensor over the memory of a CUDA tensor is a view, at the right offset, into one
storage that spans the address space: creating it needs no allocation, and two of them that share memory share a storage, as torch's
overlap checks require. Such an alias owns nothing: it is valid while the CUDA tensor is alive.
"""

from __future__ import annotations

import ctypes
import functools
import warnings

import torch

from margay import _checks
from margay.torch import capture

_strided = torch.strided
_START = 4096
_SPAN = 2**47  # the user half of the address space
_CPU = torch.device("cpu")
_space = torch._C._construct_storage_from_data_pointer(_START, _CPU, _SPAN)
_SMALL = 1 << 15  # up to so many bytes, one `memmove` is cheaper than an operator
#: `torch.empty_strided` on torch's current device, in half the time
_empty = torch._C._dynamo.guards._empty_strided_cuda
_current_device = torch._C._cuda_getDevice
_memset = ctypes.memset
#: The address space as bytes, from `_START` on: assigning a slice to another is `memmove`, in half the time of a call of it.
_bytes = memoryview((ctypes.c_char * _SPAN).from_address(_START)).cast("B")
_capturing = capture.STATE


#: `as_strided` of a tensor, which takes tuples, without torch's dispatcher: in a fifth of the time
_view = torch._C._dynamo.guards._reinterpret_tensor


class _Spaces(dict):
    """dtype -> (the address space as elements of that type, log2 of the element's size)."""

    def __missing__(self, dtype):
        with torch._C._AutoDispatchBelowAutograd(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a type is experimental, the user hears from torch
            whole = torch.empty(0, dtype=dtype, device=_CPU).set_(_space, 0, (1,), (1,))
        space = self[dtype] = (whole, dtype.itemsize.bit_length() - 1)
        return space


_spaces = _Spaces()


def alias(tensor):
    """Returns the memory of a CUDA tensor as a CPU tensor of the same sizes and strides."""
    if tensor.layout is not torch.strided:
        from margay.torch import sparse

        return sparse.alias(tensor)
    if tensor.is_quantized or tensor.is_nested:
        from margay.torch import other_layouts

        return other_layouts.alias(tensor)
    space, shift = _spaces[tensor.dtype]
    offset = tensor.data_ptr() - _START
    if offset & ((1 << shift) - 1):
        raise RuntimeError(f"margay: a tensor of {tensor.dtype} is at {tensor.data_ptr():#x}, which is not a multiple of its element size")
    # Without elements there need be no memory.
    result = _view(space, tuple(tensor.size()), tensor.stride(), offset >> shift if offset > 0 else 0)
    if tensor.is_conj():
        result = torch._conj(result)
    if tensor.is_neg():
        result = torch._neg_view(result)
    return result


def whole_storage(tensor):
    """All of a CUDA tensor's storage as a CPU tensor of one dimension, in a storage of that size."""
    storage = tensor.untyped_storage()
    view = torch._C._construct_storage_from_data_pointer(storage.data_ptr(), _CPU, storage.nbytes())
    count = storage.nbytes() // tensor.element_size()
    return torch.empty(0, dtype=tensor.dtype, device=_CPU).set_(view, 0, (count,), (1,))


def write_back(tensor, result) -> None:
    """Writes the changes of an alias back to its CUDA tensor, if that is not dense."""
    if tensor.layout is not torch.strided:
        from margay.torch import sparse

        sparse.write_back(tensor, result)
    elif tensor.is_quantized or tensor.is_nested:
        from margay.torch import other_layouts

        other_layouts.write_back(tensor, result)


def dense(tensor):
    """`alias` of a tensor of the dispatch key `CUDA`: strided, and negated or conjugated at most where it is complex."""
    space, shift = _spaces[tensor.dtype]
    offset = tensor.data_ptr() - _START
    if offset <= 0 or offset & ((1 << shift) - 1) or tensor.is_conj() or tensor.is_neg():
        return alias(tensor)
    return _view(space, tuple(tensor.size()), tensor.stride(), offset >> shift)


def exact(tensor):
    """Like `alias`, in a storage that ends where the tensor's ends: an operator that resizes it past that fails."""
    if tensor.layout is not torch.strided:
        return alias(tensor)
    if tensor.numel() == 0:  # it may grow
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=_CPU)
    storage = tensor.untyped_storage()
    view = torch._C._construct_storage_from_data_pointer(storage.data_ptr(), _CPU, storage.nbytes())
    return torch.empty(0, dtype=tensor.dtype, device=_CPU).set_(view, tensor.storage_offset(), tensor.size(), tensor.stride())


def alone(tensor):
    """Like `alias`, at the start of a storage of its own: CPU kernels that add sparse tensors to a dense one count its offset twice."""
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested or tensor.numel() == 0:
        return alias(tensor)
    extent = 1 + sum((n - 1) * step for n, step in zip(tensor.size(), tensor.stride(), strict=True))
    view = torch._C._construct_storage_from_data_pointer(tensor.data_ptr(), _CPU, extent * tensor.element_size())
    result = torch.empty(0, dtype=tensor.dtype, device=_CPU).set_(view, 0, tensor.size(), tensor.stride())
    if tensor.is_conj():
        result = torch._conj(result)
    if tensor.is_neg():
        result = torch._neg_view(result)
    return result


def is_alias(tensor) -> bool:
    """Whether a CPU tensor is a view of memory that a CUDA tensor owns."""
    return tensor.untyped_storage().data_ptr() == _START


#: real types -> log2 of the element's size
_REAL = {
    dtype: dtype.itemsize.bit_length() - 1
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64)
}


def adopt(result, device, arguments=()):
    """Returns a CPU operator's result as a CUDA tensor: a view of the argument whose memory it shares, or a copy."""
    if result is None or result.is_cuda:
        return result
    # What most results are: small, and tensors of their own.
    shift = _REAL.get(dtype := result.dtype)
    if shift is not None and not _capturing.special and device == _current_device() and result.layout is _strided and not result.is_nested:
        count = result.numel() << shift
        if count <= _SMALL and result.is_contiguous() and not result.is_neg() and not (result.storage_offset() and is_alias(result)):
            copied = _empty(tuple(result.size()), result.stride(), dtype)
            if count:
                to, at = copied.data_ptr() - _START, result.data_ptr() - _START
                _bytes[to : to + count] = _bytes[at : at + count]
            return copied
    return _adopt(result, device, arguments)


def _adopt(result, device, arguments):
    if result.layout is not torch.strided:
        from margay.torch import sparse

        return sparse.adopt(result, device)
    if result.is_quantized or result.is_nested:
        from margay.torch import other_layouts

        return other_layouts.adopt(result, device)
    if result.is_conj() or result.is_neg():
        result = result.resolve_conj().resolve_neg()
    # An alias lies far into its storage.
    if result.storage_offset() and is_alias(result):
        if (owner := _owner(result, arguments)) is not None:
            return owner
    return copy_out(result, device)


def on_device(*raw):
    """Marks a function that computes an operator: it gets the index of the device as its first argument, and may return CUDA tensors.

    The arguments named `raw` remain CUDA tensors.
    """

    def mark(compute):
        compute.raw = frozenset(raw)
        return compute

    return mark


def new(size, stride, dtype, device):
    """A CUDA tensor for a result of an operator. In a node of a graph: a CPU tensor, since a host function may not allocate CUDA memory."""
    special = _capturing.special
    if special and getattr(_capturing.inside, "replays", False):
        return torch.empty_strided(size, stride, dtype=dtype, device=_CPU)
    if device == _current_device():
        result = _empty(size, stride, dtype)
    else:
        result = torch.empty_strided(size, stride, dtype=dtype, device=device)
    if special:
        capture.will_write(result)
    return result


def zeros(size, stride, dtype, device):
    """`new`, filled with zeros; the strides leave no gaps."""
    result = new(size, stride, dtype, device)
    if count := result.numel():
        _memset(result.data_ptr(), 0, count * dtype.itemsize)
    return result


def _move(to, at, count) -> None:
    _bytes[to - _START : to - _START + count] = _bytes[at - _START : at - _START + count]


def laid_out(result, device, stride):
    """`copy_out` of a CPU tensor that is no alias, with the strides given, which leave no gaps."""
    dtype = result.dtype
    copied = new(tuple(result.size()), stride, dtype, device)
    count = result.nbytes
    if 0 < count <= _SMALL and stride == result.stride():
        _move(copied.data_ptr(), result.data_ptr(), count)
    elif count:
        dense(copied).copy_(result)
    return copied


def copy_out(result, device):
    """A new CUDA tensor with the sizes, strides and elements of a dense CPU tensor.

    In a node of a graph: the CPU tensor, which the node copies to its result's place.
    """
    if _capturing.special and getattr(_capturing.inside, "replays", False):
        return result
    size, stride, dtype = tuple(result.size()), result.stride(), result.dtype
    copied = new(size, stride, dtype, device)
    space, shift = _spaces[dtype]
    count = result.numel() << shift
    # Elements that fill their storage lie in the new one in the same order.
    if count <= _SMALL and (result.is_contiguous() or _fills(result, copied, count)):
        if count:
            to, at = copied.data_ptr() - _START, result.data_ptr() - _START
            _bytes[to : to + count] = _bytes[at : at + count]
        return copied
    start = (copied.data_ptr() - _START) >> shift
    if 0 in stride:
        # Expanded: every element that exists is copied once.
        size = tuple(1 if step == 0 else n for n, step in zip(size, stride, strict=True))
        result = result.as_strided(size, stride)
    if result.numel():
        _view(space, size, stride, start).copy_(result)
    return copied


def _fills(result, new, count):
    """Whether the elements of both tensors, which have the same strides, take all of their storages."""
    return result.storage_offset() == 0 and result.untyped_storage().nbytes() == count == new.untyped_storage().nbytes()


def note_written(address, count) -> None:
    """Tells margay's sanitizer that `count` bytes of device memory are written by other means than CUDA, if it looks for memory that is not."""
    if _CHECKS_WRITES and count:
        from margay.torch import driver

        driver.library().margayNoteWrite(ctypes.c_uint64(address), ctypes.c_uint64(count))


def _note_tensor(tensor) -> None:
    if tensor.layout is torch.strided and not tensor.is_quantized and not tensor.is_nested and tensor.numel():
        last = sum((n - 1) * step for n, step in zip(tensor.size(), tensor.stride(), strict=True))
        note_written(tensor.data_ptr(), (last + 1) * tensor.element_size())


def _noting(make, of_result=False):
    """`make` that notes the memory of its argument, which its result makes writable, or of its result, which it has written."""

    @functools.wraps(make)
    def noted(tensor, *arguments):
        result = make(tensor, *arguments)
        _note_tensor(result if of_result else tensor)
        return result

    return noted


# `--check init`: of what CPU operators write, margay sees nothing. What they only read counts as written from then on, too.
_CHECKS_WRITES = _checks.wanted("init")
if _CHECKS_WRITES:
    alias, dense, exact, alone, whole_storage = map(_noting, (alias, dense, exact, alone, whole_storage))
    copy_out, zeros, laid_out = (_noting(f, of_result=True) for f in (copy_out, zeros, laid_out))
    _REAL.clear()  # all results go by `copy_out`


def _owner(result, arguments):
    """The argument, or its view, that contains the memory of a result."""
    at = result.data_ptr()
    for argument in arguments:
        if argument is None or argument.layout is not torch.strided or argument.dtype != result.dtype:
            continue
        if argument.data_ptr() == at and argument.size() == result.size() and argument.stride() == result.stride():
            return argument
        storage = argument.untyped_storage()
        begin = storage.data_ptr()
        if begin <= at < begin + storage.nbytes():
            offset = (at - begin) >> _spaces[result.dtype][1]
            return argument.as_strided(result.size(), result.stride(), offset)
    return None
