"""Operators whose results on CUDA have other sizes or lie otherwise in memory than on the CPU: code of `torch.compile` relies on it, and
checks it.

What torch says of a `meta` tensor's result holds for CUDA, except where its shape functions follow a decomposition that CUDA's kernel does not
(`poisson`, `rrelu_with_noise`, derivatives of losses and of `glu`: these lie in rows, as on the CPU).
"""

from __future__ import annotations

import torch
from torch._prims_common import suggest_memory_format
from torch.utils._pytree import tree_map_only

from margay.torch import narrow

_aten = torch.ops.aten
_KNOWN = 1024  # layouts that are kept for an operator


def _described(tensor):
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="meta")


def _laid_out(result, stride):
    if stride is None or result.stride() == stride:
        return result
    return torch.empty_strided(result.size(), stride, dtype=result.dtype).copy_(result)


def _told(op, args, kwargs, results):
    """The strides that torch tells of each result, `None` where they are not to be followed; `None` for all if it tells nothing."""
    try:
        told = op(*tree_map_only(torch.Tensor, _described, args), **kwargs)
    except NotImplementedError:  # older releases
        return None
    told = (told,) if isinstance(told, torch.Tensor) else told
    return [t.stride() if isinstance(r, torch.Tensor) and r.size() == t.size() else None for r, t in zip(results, told, strict=True)]


def _frozen(value):
    if isinstance(value, torch.Tensor):
        return value.size(), value.stride(), value.dtype
    return tuple(value) if isinstance(value, list) else value


def _as_told(op, when=lambda *arguments: True):
    """Computes an operator; `when` tells by its arguments whether the layouts may differ."""
    # What torch's shape functions tell depends on nothing else, and they are slower than the operators.
    known: dict[tuple, list | None] = {}

    def compute(*args, **kwargs):
        result = op._op(*args, **kwargs)
        if not when(*args):
            return result
        results = (result,) if isinstance(result, torch.Tensor) else result
        key = (*map(_frozen, args), *[(name, _frozen(value)) for name, value in kwargs.items()])
        if key not in known:
            if len(known) >= _KNOWN:
                known.clear()
            known[key] = _told(op, args, kwargs, results)
        strides = known[key]
        if strides is None:
            return result
        if isinstance(result, torch.Tensor):
            return _laid_out(result, strides[0])
        return tuple(_laid_out(*pair) for pair in zip(results, strides, strict=True))

    return compute


def _of_several(self, dims, *rest):
    return len(dims) > 1


_PRECISIONS = {torch.float16: "half", torch.complex32: "half", torch.bfloat16: "bfloat16", getattr(torch, "bcomplex32", None): "bfloat16"}


def _as_cufft(compute, to_real=False):
    """Computes a transform; of narrow types, cuFFT takes powers of two only."""

    def checked(self, dim, normalization, last, **out):
        precision = _PRECISIONS.get(self.dtype)
        if precision is not None:
            sizes = [self.size(d) for d in dim]
            if to_real:  # `last` is the size of the result
                sizes[-1:] = [last]
            if any(size & (size - 1) for size in sizes):
                raise narrow.RefusedByCUDA(
                    f"cuFFT only supports dimensions whose sizes are powers of two when computing in {precision} precision, "
                    f"but got a signal size of{sizes}"
                )
        return compute(self, dim, normalization, last, **out)

    return checked


def _in_rows(op):
    """Computes an operator whose result on CUDA lies in rows, whatever the memory format of the input."""
    call = op._op

    def compute(*args):
        return call(*args).contiguous()

    return compute


def _like(result, input):
    """The result, laid out as CUDA's `empty_like` of the input."""
    if result.stride() == input.stride() or (input.is_contiguous() and result.is_contiguous()):
        return result
    wanted = torch.empty_like(input)
    return result if result.stride() == wanted.stride() else wanted.copy_(result)


def _dropout_backward(grad_output, mask, scale):
    result = _aten.native_dropout_backward.default(grad_output, mask, scale)
    return result.contiguous(memory_format=suggest_memory_format(grad_output))


def _rounded_once(op, input, weight, bias, running_mean, running_var, *rest):
    """Batch normalization in float32, which the CPU's kernel rounds at every step for parameters of narrow types."""
    values = [value if value is None or value.dtype is torch.float32 else value.float() for value in (input, weight, bias, running_mean, running_var)]
    result, *statistics = op(*values, *rest)
    for given, wide in ((running_mean, values[3]), (running_var, values[4])):
        if given is not wide:
            given.copy_(wide)
    return result.to(input.dtype), *statistics


def _batch_norm_of(op):
    """Batch normalization, which on CUDA yields the statistics that it used also if they are the running ones; on the CPU then nothing."""

    def compute(input, weight, bias, running_mean, running_var, training, momentum, eps, **out):
        if input.dtype.itemsize < 4 and not out:
            results = _rounded_once(op, input, weight, bias, running_mean, running_var, training, momentum, eps)
        else:
            results = op(input, weight, bias, running_mean, running_var, training, momentum, eps, **out)
        if not out:
            results = (_like(results[0], input), *results[1:])
        if training:
            return results
        wide = torch.float32 if input.dtype.itemsize < 4 else input.dtype
        used = running_mean.to(wide, copy=True), (running_var.to(wide) + eps).rsqrt_()
        if not out:
            return (results[0], *used)
        for place, values in zip(results[1:], used, strict=True):
            place.resize_(values.size()).copy_(values)
        return results

    return compute


def _batch_norm_backward(grad_out, input, *rest):
    grad_input, *others = _aten.native_batch_norm_backward.default(grad_out, input, *rest)
    return None if grad_input is None else _like(grad_input, input), *others


def _log_sigmoid(self):
    """CUDA's kernel keeps no exponentials for the derivative."""
    result, exponentials = _aten.log_sigmoid_forward.default(self)
    return _like(result, self), exponentials.new_empty(0)


def _log_sigmoid_out(self, *, output, buffer):
    _aten.log_sigmoid_forward.output(self, output=output, buffer=self.new_empty(0))
    return output, buffer


def _log_sigmoid_backward(grad_output, self, buffer, **out):
    if buffer.size() != self.size():
        buffer = _aten.log_sigmoid_forward.default(self)[1]
    if out:
        return _aten.log_sigmoid_backward.grad_input(grad_output, self, buffer, **out)
    return _aten.log_sigmoid_backward.default(grad_output, self, buffer)


_IN_ROWS = """
    channel_shuffle max_unpool2d pixel_shuffle roll
    reflection_pad2d reflection_pad2d_backward reflection_pad3d reflection_pad3d_backward
    replication_pad2d replication_pad2d_backward replication_pad3d replication_pad3d_backward
"""

#: operators on CPU tensors
OURS = {
    "aten::_fft_c2c": _as_cufft(_as_told(_aten._fft_c2c.default, _of_several)),
    "aten::_fft_c2r": _as_cufft(_as_told(_aten._fft_c2r.default, _of_several), to_real=True),
    "aten::_fft_r2c": _as_cufft(_as_told(_aten._fft_r2c.default, _of_several)),
    "aten::linalg_eig": _as_told(_aten.linalg_eig.default),
    "aten::log_sigmoid_backward": _log_sigmoid_backward,
    "aten::log_sigmoid_backward.grad_input": _log_sigmoid_backward,
    "aten::log_sigmoid_forward": _log_sigmoid,
    "aten::log_sigmoid_forward.output": _log_sigmoid_out,
    "aten::native_dropout_backward": _dropout_backward,
    "aten::native_batch_norm": _batch_norm_of(_aten.native_batch_norm.default),
    "aten::native_batch_norm.out": _batch_norm_of(_aten.native_batch_norm.out),
    "aten::native_batch_norm_backward": _batch_norm_backward,
    "aten::_native_batch_norm_legit": _batch_norm_of(_aten._native_batch_norm_legit.default),
    "aten::_native_batch_norm_legit.out": _batch_norm_of(_aten._native_batch_norm_legit.out),
}
for _name in _IN_ROWS.split():
    OURS[f"aten::{_name}"] = _in_rows(getattr(_aten, _name).default)
if hasattr(_aten, "nonzero_static"):
    OURS["aten::nonzero_static"] = _as_told(_aten.nonzero_static.default)
for _name in "fft2 fftn hfft2 hfftn ifft2 ifftn ihfft2 ihfftn irfft2 irfftn rfft2 rfftn".split():
    OURS[f"aten::fft_{_name}"] = _as_told(getattr(_aten, f"fft_{_name}").default)
