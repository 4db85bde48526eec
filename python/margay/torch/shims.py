"""Operators that compiled models call by C functions, not through torch's dispatcher.

What AOTInductor compiles, and `torch.compile` with `cpp_wrapper`, calls functions such as `aoti_torch_cuda_mm_out`, which run torch's own
CUDA kernels. Their declarations come with torch. Each function becomes a jump to one of ours, which calls the operator through the
dispatcher, where margay's kernel is.
"""

from __future__ import annotations

import ctypes
import functools
import re
import sys
from pathlib import Path

import torch

from margay import _replace

_DECLARED = re.compile(r"AOTITorchError (aoti_torch_cuda_(\w+))\((.*)\);")
_VALUES = {"double": ctypes.c_double, "int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32}


def _operators() -> dict[str, torch._ops.OpOverload]:
    """The operators by the part of a function's name that stands for them: `mm_out` for `aten::mm.out`."""
    from margay.torch import kernel

    found = {}
    for full in torch._C._dispatch_get_all_op_names():
        if full.startswith("aten::"):
            found[full[len("aten::") :].replace(".", "_")] = full
    return {short: lambda full=full: kernel.overload_of(full) for short, full in found.items()}


def _capsule(address: int):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, None, None)


def _address(capsule) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, None)


@functools.cache
def _library(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(torch.__file__).parent / f"lib/lib{name}.so"))


def _tensor(handle: int) -> torch.Tensor:
    """The tensor of a handle that its owner keeps."""
    again = ctypes.c_void_p()
    if _library("torch_cpu").aoti_torch_new_tensor_handle(ctypes.c_void_p(handle), ctypes.byref(again)) != 0:
        raise RuntimeError("margay: a compiled model passed an invalid tensor")
    return torch._C._aoti.alloc_tensor_by_stealing_from_void_ptr(_capsule(again.value))


def _generator(handle):
    if handle:
        raise NotImplementedError("a generator that a compiled model brings is not supported")


def _at(address: int, kind):
    return kind.from_address(address).value


def _reader(kind: str, length: bool, device: bool):
    """The C types of a parameter, and a function that makes a Python value of its words: an array, a device, an optional or plain value."""
    base, stars = kind.replace("const ", "").rstrip("*"), kind.count("*")
    handle = base == "AtenTensorHandle"
    if base == "AtenGeneratorHandle":
        return [ctypes.c_void_p], _generator
    if base == "char":
        text = lambda p: ctypes.c_char_p(p).value.decode()
        return [ctypes.c_void_p], (text if stars == 1 else lambda p: None if not p else text(_at(p, ctypes.c_void_p)))
    value = ctypes.c_void_p if handle else _VALUES[base]
    make = _tensor if handle else (lambda v: v)
    if device:
        place = lambda kind, index: torch.device("cuda", index) if kind == 1 else torch.device("cpu")
        if stars:
            return [ctypes.c_void_p, ctypes.c_int32], lambda p, i: place(_at(p, ctypes.c_int32), i) if p else None
        return [ctypes.c_int32, ctypes.c_int32], place
    if length:
        words = ctypes.c_void_p, ctypes.c_int64
        read = lambda p, n: [_at(p + i * ctypes.sizeof(value), value) for i in range(n)]
        if handle:
            optional = lambda h: None if not h else make(_at(h, ctypes.c_void_p))
            return words, (lambda p, n: [make(h) for h in read(p, n)]) if stars == 1 else lambda p, n: [optional(h) for h in read(p, n)]
        return words, (read if stars == 1 else lambda p, n: read(_at(p, ctypes.c_void_p), n) if p else None)
    if stars:
        return [ctypes.c_void_p], lambda p: None if not p else make(_at(p, value))
    return [value], make


def _write(place: int, kind: str, result) -> None:
    base = kind.rstrip("*")
    if base == "AtenTensorHandle":
        handle = 0 if result is None else _address(torch._C._aoti.unsafe_alloc_void_ptr_from_tensor(result))
        ctypes.c_void_p.from_address(place).value = handle
    else:
        _VALUES[base].from_address(place).value = result


def _served(name: str, op, declared: list[tuple[str, str]]):
    """A C function with these parameters that calls an operator; `None` if the parameters are not the operator's."""
    wanted = {a.name: a for a in op._schema.arguments}
    kinds, readers, outs = [], [], []
    skip = False
    for i, (kind, parameter) in enumerate(declared):
        if skip:
            skip = False
            continue
        following = declared[i + 1][1] if i + 1 < len(declared) else ""
        length, device = following == parameter + "_len_", following == parameter + "_index_"
        if parameter in wanted:
            words, read = _reader(kind, length, device)
            readers.append((wanted[parameter], len(kinds), len(words), read))
            kinds += words
            skip = length or device
        elif re.fullmatch(r"ret\d+", parameter):
            outs.append((len(kinds), kind))
            kinds.append(ctypes.c_void_p)
        else:
            return None
    if len(readers) != len(wanted):
        return None

    def call(*words):
        try:
            positional, named = {}, {}
            for argument, at, count, read in readers:
                (named if argument.kwarg_only else positional)[argument.name] = read(*words[at : at + count])
            ordered = [positional[a.name] for a in op._schema.arguments if a.name in positional]
            with torch._C._AutoDispatchBelowAutograd():
                results = op(*ordered, **named)
            results = results if isinstance(results, (tuple, list)) else (results,)
            for (at, kind), result in zip(outs, results):
                if words[at]:
                    _write(words[at], kind, result)
            return 0
        except BaseException as error:
            sys.stderr.write(f"margay: {name}: {error}\n")
            return 1

    return ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(call)


def serve() -> int:
    """Replaces the functions of this process's torch, and returns their number."""
    header = Path(torch.__file__).parent / "include/torch/csrc/inductor/aoti_torch/generated/c_shim_cuda.h"
    if not _replace.is_possible() or not header.is_file():
        return 0
    exports, operators, count = _library("torch_cuda"), _operators(), 0
    declared = {match[2]: match for match in _DECLARED.finditer(header.read_text())}
    for short, match in declared.items():
        # `name_v2` has the parameters that the operator has now; those of `name` are older.
        find = operators.get(short) or operators.get(re.sub(r"_v\d+$", "", short))
        code = getattr(exports, match[1], None)
        if find is None or code is None:
            continue
        parameters = [tuple(p.strip().rsplit(" ", 1)) for p in match[3].split(",")]
        function = _served(match[1], find(), parameters)
        if function is not None:
            _replace.replace(code, function, 1)
            count += 1
    return count


_served_at_all = False


def _begin() -> None:
    global _served_at_all
    if not _served_at_all:
        _served_at_all = True
        serve()


def install() -> None:
    """Serves the functions once a compiled model is loaded or called for the first time."""
    module = getattr(torch._C, "_aoti", None)

    def loading(original):
        class Loading(original):
            def __init__(self, *args, **kwargs):
                _begin()
                super().__init__(*args, **kwargs)

        Loading.__name__ = Loading.__qualname__ = original.__name__
        return Loading

    def calling(original):
        def call(*args, **kwargs):
            _begin()
            return original(*args, **kwargs)

        return call

    for name, change in {
        "AOTIModelPackageLoader": loading,
        "AOTIModelContainerRunnerCuda": loading,
        "unsafe_alloc_void_ptrs_from_tensors": calling,
    }.items():
        if hasattr(module, name):
            setattr(module, name, change(getattr(module, name)))
