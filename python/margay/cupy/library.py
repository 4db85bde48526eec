"""What the replaced libraries share: C signatures, memory as NumPy arrays, streams, errors."""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
import sys
from collections.abc import Callable, Iterable

import numpy

from margay import _checks, _replace

_KINDS = {
    "i": ctypes.c_int,
    "l": ctypes.c_longlong,
    "p": ctypes.c_void_p,
    "z": ctypes.c_size_t,
    "b": ctypes.c_byte,
    "f": ctypes.c_float,
    "d": ctypes.c_double,
}
# CUBLAS_STATUS_INTERNAL_ERROR, CUFFT_INTERNAL_ERROR, CURAND_STATUS_INTERNAL_ERROR, CUSOLVER_ and CUSPARSE_STATUS_INTERNAL_ERROR. A name
# stands before its beginnings.
_FAILED = {"cublasLt": 14, "cublas": 14, "cufft": 5, "curand": 999, "cusolver": 7, "cusparse": 7}
# What needs no handle and no device tells of the library that is installed.
_KEPT = ("GetProperty", "Version", "GetErrorName", "GetErrorString", "GetStatusName", "GetStatusString")
_PT_LOAD, _PT_DYNAMIC, _DT_STRTAB, _DT_STRSZ = 1, 2, 5, 10
_CHECKS_WRITES = _checks.wanted("init")


_linked: dict[str, ctypes.CDLL] = {}


class Refused(Exception):
    """A call that is answered by a status of the library."""

    def __init__(self, status: int):
        super().__init__(status)
        self.status = status


@functools.cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def is_margay() -> bool:
    """Whether the CUDA driver of this process is margay's: then device pointers are addresses of the host."""
    uuid = ctypes.create_string_buffer(16)
    try:
        cuda = _driver()
    except OSError:
        return False
    return cuda.cuInit(0) == 0 and cuda.cuDeviceGetUuid(uuid, 0) == 0 and uuid.raw.startswith(b"margay-")


def wait(stream: int) -> bool:
    """Waits for the work on a stream. A stream that records a graph cannot be waited for: the answer is no."""
    return _driver().cuStreamSynchronize(ctypes.c_void_p(stream)) == 0


def array(address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: numpy.dtype) -> numpy.ndarray:
    """Memory as an array that is written in place. Strides are in elements, and none is negative."""
    dtype = numpy.dtype(dtype)
    if 0 in shape:
        return numpy.empty(shape, dtype)
    count = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    size = count * dtype.itemsize
    check(address, size)
    memory = (ctypes.c_char * size).from_address(address)
    return numpy.ndarray(shape, dtype, memory, 0, tuple(step * dtype.itemsize for step in strides))


def addresses(place: int, count: int) -> list[int]:
    """The addresses in an array, such as those of the matrices of a batch."""
    return array(place, (count,), (1,), numpy.uint64).tolist()


def check(address: int, size: int) -> None:
    """Raises an error for memory that is not in one allocation of the device."""
    begin, length = ctypes.c_uint64(), ctypes.c_size_t()
    status = _driver().cuMemGetAddressRange_v2(ctypes.byref(begin), ctypes.byref(length), ctypes.c_uint64(address or 0))
    if status != 0 or address + size > begin.value + length.value:
        raise ValueError(f"{size} bytes at {address or 0:#x} are not in an allocation of the device")


def written(values: numpy.ndarray) -> None:
    """Tells margay's sanitizer of uninitialized memory that an array has been written."""
    if _CHECKS_WRITES and values.size:
        last = sum((n - 1) * step for n, step in zip(values.shape, values.strides, strict=True))
        _driver().margayNoteWrite(ctypes.c_uint64(values.ctypes.data), ctypes.c_uint64(last + values.itemsize))


def put(address: int, kind, value) -> None:
    """Writes one C value, a handle or a scalar result, to the host or the device."""
    kind.from_address(address).value = value


def _library(name: str) -> str:
    """The library of a function."""
    return next(library for library in _FAILED if name.startswith(library))


def announce(libraries: Iterable[str]) -> None:
    """Has margay's driver not say that calls of the libraries fail."""
    for name in libraries:
        _driver().margayReplaced(name.encode())


def version(library: str) -> tuple[int, int, int]:
    """The version of a replaced library."""
    parts = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    for i, part in enumerate(parts):
        getattr(_linked[library], library + "GetProperty")(i, ctypes.byref(part))
    return tuple(part.value for part in parts)


def serve(path: str, functions: dict[str, tuple[str, Callable]], rest: tuple[str, Callable]) -> None:
    """Replaces all functions of a library that a file is linked with: by name their parameters' kinds and what computes them, or `rest`."""
    library = _library(next(iter(functions)))
    linked = _linked[library] = ctypes.CDLL(path)
    for name in sorted(_exported(library)):
        function = getattr(linked, name, None)
        if function is not None and (name in functions or not name.endswith(_KEPT)):
            kinds, compute = functions.get(name, rest)
            _replace.replace(function, _callback(name, kinds, compute), 0 if "Destroy" in name else _FAILED[library])


def _exported(library: str) -> list[str]:
    """The names of a loaded library's functions."""
    with open("/proc/self/maps") as maps:
        path = next(line[line.find("/") :].rstrip() for line in maps if f"/lib{library}.so" in line)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
        names = _dynamic_names(image)
    # Among them are those that it imports, perhaps of a library whose name is longer.
    found = [name.decode() for name in names if name.startswith(library.encode())]
    return [name for name in found if _library(name) == library]


def _dynamic_names(image: mmap.mmap) -> list[bytes]:
    """The strings of an ELF file's dynamic symbols (System V ABI, "Program Header" and "Dynamic Section")."""
    (start,), (size, count) = struct.unpack_from("<Q", image, 32), struct.unpack_from("<HH", image, 54)
    segments = [struct.unpack_from("<IIQQQQ", image, start + i * size) for i in range(count)]
    (begin, length) = next((offset, length) for kind, _, offset, _, _, length in segments if kind == _PT_DYNAMIC)
    tags = dict(struct.iter_unpack("<qQ", image[begin : begin + length]))
    strings = tags[_DT_STRTAB]
    place = next(offset + strings - at for kind, _, offset, at, _, length in segments if kind == _PT_LOAD and at <= strings < at + length)
    return image[place : place + tags[_DT_STRSZ]].split(b"\0")


def _callback(name, kinds, compute):
    failed = _FAILED[_library(name)]

    def call(*arguments):
        try:
            return compute(*arguments) or 0
        except Refused as refused:
            return refused.status
        except BaseException as error:
            sys.stderr.write(f"margay: {name}: {type(error).__name__}: {error}\n")
            return failed

    return ctypes.CFUNCTYPE(ctypes.c_int, *(_KINDS[kind] for kind in kinds))(call)
