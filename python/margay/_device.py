"""Devices: margay's own, and those that resemble a given GPU."""

from __future__ import annotations

import os
import threading
from typing import Any

from margay import _margay

__all__ = ["Device", "device"]


class Device:
    """A device on which modules run. It has its own threads; after a fork, the child process creates its own device from the same
    description."""

    def __init__(self, spec: str | None = None, *, threads: int | None = None) -> None:
        self._arguments = (spec, threads)
        self._lock = threading.Lock()
        self._made: tuple[int, _margay.Device] | None = None
        self._lent: list[Any] = []
        self._native  # raises the errors of the description

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
        """The number of streaming multiprocessors; for margay's own device, the number of host threads."""
        return self._native.multiprocessors

    @property
    def memory(self) -> int | None:
        """The memory size in bytes, if the description gives it."""
        return self._native.memory

    @property
    def shared_per_block(self) -> int:
        """The maximum shared memory per block in bytes."""
        return self._native.shared_per_block

    @property
    def threads(self) -> int:
        """The number of host threads that run blocks."""
        return self._native.threads

    @property
    def engines(self) -> list[str]:
        """The names of the engines, the default first."""
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
    """Returns a device that resembles a GPU, by name (`"h100"`, `"t4"`), by properties
    (`"name=My GPU,capability=8.6,sms=16,memory=8G"`), or both (`"h100,memory=8G"`). Without arguments, returns the default device:
    the one that `MARGAY_DEVICE` describes, otherwise margay's own. `threads` is the number of host threads that run blocks; by default
    one per processor."""
    global _DEFAULT
    if spec is not None or threads is not None:
        return Device(spec, threads=threads)
    with _GUARD:
        if _DEFAULT is None:
            _DEFAULT = Device()
        return _DEFAULT
