"""Operators on types that CUDA's kernels take and the CPU's do not, computed on a type that holds the same bits or values."""

from __future__ import annotations

import torch

_aten = torch.ops.aten
_NAMES = "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz"
#: what has the bits of a byte
_BYTES = (torch.bool, *[getattr(torch, name) for name in _NAMES.split()])


def _on_bytes(call, args, kwargs):
    """Moves bytes, which an absolute value does with truth values."""
    kind = args[0].dtype
    if kind not in _BYTES:
        return None

    def bits(value):
        if isinstance(value, torch.Tensor):
            return value.view(torch.uint8) if value.dtype is kind else value
        return value

    values = [bits(value) for value in args]
    if len(args) > 3 and isinstance(args[3], (bool, int, float)):  # what is scattered
        values[3] = torch.tensor(args[3]).to(kind).view(torch.uint8).item()
    result = call(*values, **{name: bits(value) for name, value in kwargs.items()}).view(kind)
    out = kwargs.get("out")
    if out is not None and out.size() != result.size():
        out.resize_(result.size()).copy_(result)
    return (result if out is None else out,)


def _trace(call, args, kwargs):
    return (call(args[0].long()),) if args[0].dtype is torch.bool else None


def _without_nan(self):
    """A complex tensor with zeros for what is no number, and where numbers are."""
    numbers = self.isnan().logical_not_()
    return torch.where(numbers, self, 0), numbers


def _nansum(call, args, kwargs):
    self, dim, keepdim = (*args, None, False)[:3] if len(args) < 3 else args
    if not self.is_complex():
        return None
    kept, _ = _without_nan(_wide(self))
    result = _aten.sum.dim_IntList(kept, dim, keepdim, dtype=kwargs.get("dtype")).to(kwargs.get("dtype") or self.dtype)
    out = kwargs.get("out")
    return (result if out is None else out.resize_(result.size()).copy_(result),)


def _nanmean(call, args, kwargs):
    self, dim, keepdim = (*args, None, False)[:3] if len(args) < 3 else args
    if not self.is_complex():
        return None
    kept, numbers = _without_nan(_wide(self))
    total = _aten.sum.dim_IntList(kept, dim, keepdim)
    return ((total / _aten.sum.dim_IntList(numbers, dim, keepdim)).to(kwargs.get("dtype") or self.dtype),)


def _wide(self):
    return self if self.dtype in (torch.complex64, torch.complex128) else self.to(torch.complex64)


_OTHERWISE = {
    "abs": _on_bytes,
    "abs_": _on_bytes,
    "nanmean": _nanmean,
    "nansum": _nansum,
    "scatter": _on_bytes,
    "scatter_": _on_bytes,
    "trace": _trace,
}


def attempt(name, call, args, kwargs):
    """The result of an operator whose CPU kernel refused its operands, in a tuple; `None` if CUDA's kernel refuses them as well."""
    base, _, overload = name.removeprefix("aten::").partition(".")
    otherwise = None if overload.startswith(("reduce", "value_reduce")) else _OTHERWISE.get(base)
    return None if otherwise is None else otherwise(call, args, kwargs)
