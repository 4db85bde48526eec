"""C functions of loaded libraries, replaced by Python functions: each becomes a jump to a callback."""

from __future__ import annotations

import atexit
import ctypes
import functools
import mmap
import platform

__all__ = ["is_possible", "replace"]

_JUMP = b"\xff\x25\x00\x00\x00\x00"  # jmp [rip]: to the address that follows
_RETURN = b"\xb8%b\xc3"  # mov eax, …; ret
_kept: list = []  # functions that C calls live as long as the process
_replaced: dict[int, int] = {}


def is_possible() -> bool:
    """Whether this processor is one whose jumps are known here."""
    return platform.machine() == "x86_64"


def replace(function: object, callback: object, afterwards: int) -> None:
    """Has calls of a library's function reach a callback, which is an instance of a `ctypes` function type.

    When the interpreter exits, callbacks end, but libraries and objects may still make calls, to free what they have. The function then
    does nothing and returns the status `afterwards`.
    """
    if not _replaced:
        atexit.register(_leave)
    code = ctypes.cast(function, ctypes.c_void_p).value
    _kept.append(callback)
    _replaced[code] = afterwards
    _overwrite(code, _JUMP + ctypes.cast(callback, ctypes.c_void_p).value.to_bytes(8, "little"))


def _leave() -> None:
    for code, status in _replaced.items():
        _overwrite(code, _RETURN % status.to_bytes(4, "little"))


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return libc


def _overwrite(code: int, instructions: bytes) -> None:
    """Overwrites the beginning of a function."""
    libc = _libc()
    begin = code & -mmap.PAGESIZE
    size = -(-(code + len(instructions) - begin) // mmap.PAGESIZE) * mmap.PAGESIZE
    if libc.mprotect(begin, size, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    ctypes.memmove(code, instructions, len(instructions))
    libc.mprotect(begin, size, mmap.PROT_READ | mmap.PROT_EXEC)
