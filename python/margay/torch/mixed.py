"""Tensors of several devices in one operator: the cases that CUDA kernels accept, and torch's usual error for the rest."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import torch

# Indices, which CUDA kernels take from the CPU.
_INDICES = {"aten::index.Tensor", "aten::index.Tensor_out", "aten::_index_put_impl_", "aten::index_put_", "aten::_unsafe_index.Tensor"}
# Arguments that they take from the CPU although they have dimensions, because they are read on the host.
_HOST = {
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
# Operators that write to a CPU tensor what they read of a CUDA tensor.
_FILLS = {"aten::copy_", "aten::_copy_from", "aten::fill_.Tensor", "aten::_foreach_copy_"}


class ForeignTensor(RuntimeError):
    """An operator has got a tensor of another device."""


@functools.cache
def _checked() -> frozenset[str]:
    """The operators whose CUDA kernels take no scalar from the CPU: the code that torch generates around them compares all devices.

    Torch declares the others in a file that it carries; where a release lacks it, scalars are accepted.
    """
    path = Path(torch.__file__).parent.parent / "torchgen/packaged/ATen/native/native_functions.yaml"
    try:
        text = path.read_text()
    except OSError:
        return frozenset()
    found = set()
    for entry in re.split(r"^- func: ", text, flags=re.MULTILINE)[1:]:
        has_kernel = "structured_delegate:" in entry or re.search(r"^ +[\w, ]*\bCUDA\b[\w, ]*: ", entry, re.MULTILINE)
        if has_kernel and "device_check: NoCheck" not in entry:
            found.add("aten::" + entry.partition("(")[0])
    return frozenset(found)


def foreign(name: str, tensor, d: int, in_list=False, written=False):
    """Handles a tensor that is not on the operator's device `d`, if CUDA's kernel would accept it, to read or to write it."""
    if tensor.device.type == "cpu":
        if name in _HOST or name.startswith("c10d::") or (written and name in _FILLS):
            return tensor
        if in_list and name in _INDICES:
            return tensor
        # A CPU tensor without dimensions is a scalar; one that is undefined or empty of storage says nothing.
        if tensor.dim() == 0 and not written and name not in _checked():
            return tensor
    elif tensor.is_cuda and name in ("aten::copy_", "aten::_copy_from"):
        from margay.torch import driver, memory

        driver.synchronize(tensor.get_device())  # what its own device's stream still computes
        return memory.alias(tensor)
    raise ForeignTensor(
        f"Expected all tensors to be on the same device, but found at least two devices, cuda:{d} and {tensor.device}! "
        f"(when checking arguments of {name})"
    )


def check_index(self, *rest, **options) -> None:
    """Raises torch's error for a CPU tensor with indices on a CUDA device."""
    if not self.is_cuda:
        raise RuntimeError(f"indices should be either on {self.device} or on the same device as the indexed tensor ({self.device})")


def check_convolution(input, weight, bias=None, *rest, **options) -> None:
    """Raises torch's errors for operands of different devices and types."""
    for what, other in (("weight", weight), ("bias", bias)):
        if other is not None and (other.dtype is not input.dtype or other.is_cuda is not input.is_cuda):
            raise RuntimeError(f"Input type ({input.type()}) and {what} type ({other.type()}) should be the same")


def tensor_by_tensor(name: str, computed):
    """A `_foreach_` operator, which takes tensors of several devices one by one."""
    from margay.torch import kernel

    one_by_one = functools.partial(kernel.overload_of(name)._op_dk, torch._C.DispatchKey.CompositeExplicitAutograd)

    def run(*args, **kwargs):
        try:
            return computed(*args, **kwargs)
        except ForeignTensor:
            return one_by_one(*args, **kwargs)

    return run


#: operator -> what checks its operands first
CHECKS = {
    "aten::index.Tensor": check_index,
    "aten::index.Tensor_out": check_index,
    "aten::_index_put_impl_": check_index,
    "aten::index_put_": check_index,
    "aten::_unsafe_index.Tensor": check_index,
    "aten::convolution": check_convolution,
}
