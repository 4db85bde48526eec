"""A second attempt if torch's CPU kernel rejects types that CUDA's accepts: narrow types are computed in wider ones."""

from __future__ import annotations

import re

import torch

from margay.torch import beyond

_REFUSED = re.compile(
    r"not implemented for '(\w+)'|not supported for|not support|expected scalar type|unsupported (data)?type|"
    r"only .*(float|dtype)|does(n't| not) support|dtype|Unsupported|floating-point or complex",
    re.IGNORECASE,
)
# Operands of different types, which CUDA's kernels reject too.
_MISMATCH = re.compile(r"same (scalar type|dtype)|dtypes match|to be equal to|expected scalar type \w+ but found", re.IGNORECASE)
# LAPACK's operators: CUDA's libraries lack narrow types for them too.
_LAPACK = re.compile(r"aten::_?(linalg_(?!vector_norm|cross|matrix_exp)|cholesky|lu_|qr|geqrf|ormqr|orgqr|triangular_solve|lstsq)")

# Words of the CPU's kernels -> those of CUDA's.
_WORDS = {
    '_cpu" not implemented for': '_cuda" not implemented for',
    "expected m1 and m2 to have": "expected mat1 and mat2 to have",
}

_COMPLEX = {torch.float16: torch.complex32, torch.bfloat16: getattr(torch, "bcomplex32", torch.complex32)}
_WIDER = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
    torch.complex32: torch.complex64,
    _COMPLEX[torch.bfloat16]: torch.complex64,
}
_REAL = {_COMPLEX[torch.bfloat16]: torch.bfloat16, torch.complex32: torch.float16}
# Where the CPU wants floating-point numbers and CUDA takes integers.
_INTEGERS = {torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool}
_OVER_INTEGERS = {"aten::histc", "aten::histc.out", "aten::_histc"}


class RefusedByCUDA(RuntimeError):
    """What CUDA's kernel refuses, and torch's CPU kernel might compute."""


def again(name, call, error, args, kwargs, outs=()):
    """Returns the result of an operator whose CPU kernel raised `error`, or raises that error with the operator's name.

    With `outs`, the names of output arguments: also the tensors that replaced them.
    """
    message = str(error)
    if outs and "not resizable" in message:
        kwargs = dict(kwargs)
        for out in outs:
            old = kwargs[out]
            grown = lambda t: torch.empty(0, dtype=t.dtype)  # noqa: E731
            kwargs[out] = [grown(t) for t in old] if isinstance(old, (list, tuple)) else grown(old)
        try:
            return call(*args, **kwargs), tuple(kwargs[out] for out in outs)
        except Exception as second:
            error, message = second, str(second)
    if "Unable to cast" in message and (numbers := _as_tensors(name, args)) is not None:
        return _called(name, call, numbers, kwargs, outs)
    refused = isinstance(error, RuntimeError) and not isinstance(error, RefusedByCUDA)
    if refused and (done := beyond.attempt(name, call, args, kwargs)) is not None:
        return (done[0], tuple(kwargs[out] for out in outs)) if outs else done[0]
    if refused and _REFUSED.search(message) and not _by_cuda_too(name, message, args, kwargs):
        done = widened(name, call, args, kwargs)
        if done is not None:
            return (done[0], tuple(kwargs[out] for out in outs)) if outs else done[0]
    raise _for_cuda(name, error)


def _for_cuda(name, error):
    """The error with the words of CUDA's kernel where they are known, and a note."""
    words = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    for cpu, cuda in _WORDS.items():
        if cpu in words:
            error.args = (words.replace(cpu, cuda), *error.args[1:])
    if hasattr(error, "add_note"):
        error.add_note(f"margay: torch's CPU kernel computed {name} for the device cuda")
    return error


def _by_cuda_too(name, message, args, kwargs):
    """Whether CUDA's kernel rejects the operands as well."""
    if _LAPACK.match(name):
        return True
    if not _MISMATCH.search(message):
        return False
    types = set()

    def note(values):
        for value in values:
            if isinstance(value, torch.Tensor):
                types.add(value.dtype)
            elif isinstance(value, (list, tuple)):
                note(value)

    note(args)
    note(kwargs.values())
    return sum(t.is_floating_point or t.is_complex for t in types) > 1


def _called(name, call, args, kwargs, outs):
    try:
        result = call(*args, **kwargs)
    except Exception as error:
        return again(name, call, error, args, kwargs, outs)
    return (result, tuple(kwargs[out] for out in outs)) if outs else result


def _as_tensors(name, args):
    """The arguments with tensors instead of the numbers that the dispatcher unwrapped; `None` if there are none."""
    from margay.torch import kernel

    schema = kernel.schema_of(name)
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    changed = list(args)
    for i, (argument, value) in enumerate(zip(schema.arguments, args, strict=False)):
        if "Tensor" in str(argument.type) and isinstance(value, (int, float, complex)):
            kind = torch.result_type(tensors[0], value) if tensors else None
            try:
                changed[i] = torch.tensor(value, dtype=kind)
            except (RuntimeError, OverflowError):  # it does not fit: the operator takes the bits that do
                changed[i] = torch.tensor(value).to(kind)
    return changed if any(a is not b for a, b in zip(changed, args, strict=True)) else None


def widened(name, call, args, kwargs, kept=()):
    """The operator on wide copies: its result with the narrow type, in a tuple; or `None` if nothing can be widened.

    Of a tuple of results, those at the places `kept` stay wide.
    """
    copies = []  # (the narrow tensor, its wide copy)
    narrow = None

    def widen(value):
        nonlocal narrow
        if isinstance(value, torch.Tensor):
            wide = _WIDER.get(value.dtype)
            if wide is None and name in _OVER_INTEGERS and value.dtype in _INTEGERS:
                wide = torch.float64
            if wide is None:
                return value
            narrow = narrow or value.dtype
            # Of the narrow type, there may be no kernel that conjugates.
            copies.append((value, value.conj().to(wide).conj_physical() if value.is_conj() else value.to(wide)))
            return copies[-1][1]
        if isinstance(value, (list, tuple)):
            return type(value)(widen(v) for v in value)
        if isinstance(value, torch.dtype) and value in _WIDER:
            narrow = narrow or value
            return _WIDER[value]
        return value

    wide_args = [widen(a) for a in args]
    wide_kwargs = {k: widen(v) for k, v in kwargs.items()}
    if narrow is None:
        return None
    try:
        result = call(*wide_args, **wide_kwargs)
    except Exception:
        return None
    _write_back(name, args, kwargs, copies)
    real = _REAL.get(narrow, narrow)
    narrower = {_WIDER.get(narrow, torch.float64): narrow}
    if real in _COMPLEX:
        narrower = {torch.float32: real, torch.complex64: _COMPLEX[real]}

    def back(value):
        if isinstance(value, torch.Tensor):
            return value.to(narrower[value.dtype]) if value.dtype in narrower else value
        if isinstance(value, (list, tuple)):
            return [back(v) for v in value]
        return value

    if isinstance(result, (list, tuple)):
        return ([value if i in kept else back(value) for i, value in enumerate(result)],)
    return (back(result),)


def _write_back(name, args, kwargs, copies):
    """Writes the wide copies of arguments that the operator has changed back to them."""
    from margay.torch import kernel

    for i, argument in enumerate(kernel.schema_of(name).arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = kwargs.get(argument.name, args[i] if i < len(args) else None)
        for tensor in value if isinstance(value, (list, tuple)) else [value]:
            for old, wide in copies:
                if old is tensor:
                    if old.size() != wide.size():
                        old.resize_(wide.size())
                    old.copy_(wide)
