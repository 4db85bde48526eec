"""The memory of arguments: NumPy arrays, objects with the buffer protocol, and what other libraries call device memory,
which is memory of this process if margay is the device."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any

__all__ = ["Memory", "is_scalar", "memory_of"]


@dataclass
class Memory:
    """Bytes that a kernel may use in place while `owner` is alive."""

    address: int
    size: int
    readonly: bool
    owner: Any


def is_scalar(value: Any) -> bool:
    """Whether a value is a number, even if it also has a buffer, like NumPy scalars."""
    if isinstance(value, (bool, int, float)):
        return True
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.generic):
        return value.dtype.kind in "biuf"
    return isinstance(value, ctypes._SimpleCData)


def memory_of(value: Any) -> Memory:
    """Returns the memory of an array. Raises `TypeError` if it has none, and `ValueError` if its layout is not supported."""
    kind = type(value)
    if kind.__module__.split(".")[0] == "torch" and hasattr(value, "data_ptr"):
        if not value.is_contiguous():
            raise ValueError(_SCATTERED.format("tensor", ".contiguous()"))
        return Memory(value.data_ptr(), value.numel() * value.element_size(), False, value)
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None:
        interface = getattr(value, "__array_interface__", None)
    if interface is not None:
        return _of_interface(value, interface)
    try:
        return _of_buffer(value)
    except TypeError:
        pass
    if hasattr(value, "__dlpack__"):
        return _of_dlpack(value)
    raise TypeError(
        f"a {kind.__name__} is not an array: it has neither a buffer nor `__cuda_array_interface__`, `__array_interface__` or `__dlpack__`"
    )


_SCATTERED = "the {} is not contiguous; pass {}"


def _contiguous(shape: tuple[int, ...], strides: Any, size: int) -> bool:
    """Whether elements of `size` bytes fill their memory without gaps, in C's or Fortran's order."""
    if strides is None or 0 in shape:
        return True
    pairs = [(n, stride) for n, stride in zip(shape, strides) if n != 1]
    for order in (reversed(pairs), pairs):
        expected = size
        for n, stride in order:
            if stride != expected:
                break
            expected *= n
        else:
            return True
    return False


def _product(numbers: Any) -> int:
    result = 1
    for n in numbers:
        result *= n
    return result


def _of_interface(value: Any, interface: dict[str, Any]) -> Memory:
    typestr = interface["typestr"]
    if typestr[1] == "O":
        raise TypeError("the array holds Python objects, which kernels cannot use")
    size, shape = int(typestr[2:]), tuple(interface["shape"])
    if typestr[1] == "U":
        size *= 4
    if not _contiguous(shape, interface.get("strides"), size):
        raise ValueError(_SCATTERED.format("array", "`numpy.ascontiguousarray(...)` of it"))
    data = interface.get("data")
    if data is None:
        return _of_buffer(value)
    address, readonly = data
    return Memory(address, size * _product(shape), bool(readonly), value)


class _PyBuffer(ctypes.Structure):
    """`Py_buffer` of the stable interface (PEP 688's C side, in it since 3.11)."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_SIMPLE = 0  # PyBUF_SIMPLE: one run of bytes


def _of_buffer(value: Any) -> Memory:
    view = memoryview(value)
    if not view.c_contiguous and not view.f_contiguous:
        raise ValueError(_SCATTERED.format("buffer", "a copy of it"))
    api = ctypes.pythonapi
    buffer = _PyBuffer()
    # The view keeps the memory where it is, also after the short look at its address.
    flat = view if view.c_contiguous else view.obj
    if api.PyObject_GetBuffer(ctypes.py_object(flat), ctypes.byref(buffer), 0x58 if flat is not view else _SIMPLE) != 0:
        raise TypeError(f"a {type(value).__name__} provides no buffer")
    address, size, readonly = buffer.buf or 0, buffer.len, bool(view.readonly)
    api.PyBuffer_Release(ctypes.byref(buffer))
    return Memory(address, size, readonly, view)


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


# DLPack's kinds of memory that this process can reach: the host's, CUDA's, CUDA's pinned and managed.
_REACHABLE = (1, 2, 3, 13)
_READ_ONLY = 1


def _of_dlpack(value: Any) -> Memory:
    try:
        capsule = value.__dlpack__(max_version=(1, 0))
    except TypeError:  # older than DLPack 1.0
        capsule = value.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.restype, is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
    flags = 0
    if is_valid(capsule, b"dltensor_versioned"):
        whole = _Versioned.from_address(pointer(capsule, b"dltensor_versioned"))
        tensor, flags = whole.tensor, whole.flags
    else:
        tensor = _DLTensor.from_address(pointer(capsule, b"dltensor"))
    if tensor.device_type not in _REACHABLE:
        raise TypeError(f"the array is on a device of DLPack type {tensor.device_type}, which margay cannot access")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    if not _contiguous(shape, strides, 1):
        raise ValueError(_SCATTERED.format("array", "a contiguous copy of it"))
    size = _product(shape) * ((tensor.bits * tensor.lanes + 7) // 8)
    # Whoever holds the capsule unused holds the memory.
    return Memory((tensor.data or 0) + tensor.byte_offset, size, bool(flags & _READ_ONLY), (value, capsule))
