"""Devices: margay's own, and those that are like a GPU that somebody describes."""

from __future__ import annotations

import os
import threading
from typing import Any

from margay import _margay

__all__ = ["Device", "device"]


class Device:
    """A device on which modules run. It has threads of its own; a child process after a fork makes its own of the same description."""

    def __init__(self, spec: str | None = None, *, threads: int | None = None) -> None:
        self._arguments = (spec, threads)
        self._lock = threading.Lock()
        self._made: tuple[int, _margay.Device] | None = None
        self._lent: list[Any] = []
        self._native  # a wrong description is said here

    @property
    def _native(self) -> _margay.Device:
        made = self._made
        if made is None or made[0] != os.getpid():
            # After a fork nobody can tell who held the lock.
            if made is not None:
                self._lock = threading.Lock()
            with self._lock:
                if self._made is None or self._made[0] != os.getpid():
                    self._made = (os.getpid(), _margay.Device(*self._arguments))
                made = self._made
        return made[1]

    @property
    def name(self) -> str:
        """The name that programs see."""
        return self._native.name

    @property
    def capability(self) -> tuple[int, int]:
        """Major and minor number of the compute capability."""
        return self._native.capability

    @property
    def multiprocessors(self) -> int:
        """Streaming multiprocessors; of margay's own device, threads of the host."""
        return self._native.multiprocessors

    @property
    def memory(self) -> int | None:
        """Bytes of memory, where the description says so."""
        return self._native.memory

    @property
    def shared_per_block(self) -> int:
        """Bytes of shared memory that one block may have."""
        return self._native.shared_per_block

    @property
    def threads(self) -> int:
        """Threads of the host that run blocks."""
        return self._native.threads

    @property
    def engines(self) -> list[str]:
        """Names of the engines, the default one first."""
        return self._native.engines

    def __repr__(self) -> str:
        major, minor = self.capability
        return f"<margay.Device {self.name!r}, compute capability {major}.{minor}, {self.threads} threads>"

    def __reduce__(self) -> Any:
        return _of, self._arguments


def _of(spec: str | None, threads: int | None) -> Device:
    return Device(spec, threads=threads)


_DEFAULT: Device | None = None
_GUARD = threading.Lock()


def device(spec: str | None = None, *, threads: int | None = None) -> Device:
    """A device like a GPU by name (`"h100"`, `"t4"`), by single values (`"name=My GPU,capability=8.6,sms=16,memory=8G"`), or both
    (`"h100,memory=8G"`). Without arguments, the one that modules run on by default: what `MARGAY_DEVICE` describes, or margay's
    own. `threads` are threads of the host that run blocks; by default one a processor."""
    global _DEFAULT
    if spec is not None or threads is not None:
        return Device(spec, threads=threads)
    with _GUARD:
        if _DEFAULT is None:
            _DEFAULT = Device()
        return _DEFAULT
