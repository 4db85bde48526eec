"""What CUDA's kernels take and the CPU's do not: types, computed on one that holds the same bits or values, and factors without pivots."""

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


def _factors(self):
    """The triangular factors of matrices in one, without exchanges of rows, and the first place on the diagonal with a zero."""
    result = self.clone()
    small = min(self.shape[-2:])
    for k in range(small):
        below = result[..., k + 1 :, k]
        below /= result[..., k, k, None]
        result[..., k + 1 :, k + 1 :] -= below[..., None] * result[..., k, None, k + 1 :]
    zeros = result.diagonal(dim1=-2, dim2=-1) == 0
    return result, (torch.arange(1, small + 1, dtype=torch.int32) * zeros).amax(-1).int() if small else torch.zeros(self.shape[:-2], dtype=torch.int32)


def _filled(results, kwargs, names):
    """The results in their `out=` arguments, if there are any."""
    return [kwargs[n].resize_(r.shape).copy_(r) if n in kwargs else r for n, r in zip(names, results, strict=True)]


def _lu_factor(call, args, kwargs):
    if kwargs.get("pivot", True):
        return None
    factors, info = _factors(args[0])
    if kwargs.get("check_errors", False):
        torch._linalg_check_errors(info, "torch.linalg.lu_factor_ex", is_matrix=args[0].dim() == 2)
    pivots = torch.arange(1, min(args[0].shape[-2:]) + 1, dtype=torch.int32).expand(*args[0].shape[:-2], -1).contiguous()
    return (_filled([factors, pivots, info], kwargs, ("LU", "pivots", "info")),)


def _checked_lu_factor(call, args, kwargs):
    if kwargs.get("pivot", True):
        return None
    ((factors, pivots, info),) = _lu_factor(call, args, kwargs)
    torch._linalg_check_errors(info, "torch.linalg.lu_factor", is_matrix=args[0].dim() == 2)
    return ([factors, pivots],)


def _lu(call, args, kwargs):
    if kwargs.get("pivot", True):
        return None
    factors, _ = _factors(args[0])
    rows, columns = factors.shape[-2:]
    lower = factors[..., : min(rows, columns)].tril(-1)
    lower.diagonal(dim1=-2, dim2=-1).fill_(1)
    upper = factors[..., : min(rows, columns), :].triu()
    return (_filled([factors.new_empty(0), lower, upper], kwargs, ("P", "L", "U")),)


_OTHERWISE = {
    "abs": _on_bytes,
    "abs_": _on_bytes,
    "linalg_lu": _lu,
    "linalg_lu_factor": _checked_lu_factor,
    "linalg_lu_factor_ex": _lu_factor,
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
