"""Accounting: operators on torch's CPU kernels, and kernels on margay, which its driver counts."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys

#: operator -> [calls, nanoseconds]
_counters: dict[str, list] = {}


def counter(name: str) -> list:
    """Returns the counters of an operator's kernel: its calls and their nanoseconds."""
    return _counters.setdefault(name, [0, 0])


def reset() -> None:
    """Resets all counters."""
    for count in _counters.values():
        count[:] = [0, 0]


def operators() -> dict[str, tuple[int, float]]:
    """Returns the operators that torch's CPU kernels computed, with their calls and seconds."""
    return {name: (calls, time * 1e-9) for name, (calls, time) in _counters.items() if calls}


def kernels() -> dict[str, tuple[int, float, float]]:
    """Returns the kernels that margay has run since torch was imported, with their launches, seconds and compile seconds.

    Running launches are not included.
    """
    from margay.torch import driver

    tell = getattr(driver.library(), "margayKernels", None)
    if tell is None:
        return {}  # the driver of an older `margay exec`
    size = ctypes.c_size_t()
    tell(None, ctypes.c_size_t(0), ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value + 4096)  # a kernel of another thread may end in between
    if tell(buffer, ctypes.c_size_t(len(buffer)), ctypes.byref(size)) != 0:
        return {}
    found = {}
    for line in buffer.value.decode(errors="replace").splitlines():
        times, nanoseconds, compiling, _, name = line.split("\t", 4)
        found[name] = int(times), int(nanoseconds) * 1e-9, int(compiling) * 1e-9
    return found


def text() -> str:
    """Returns two tables of operators and kernels, the slowest first."""
    rows = sorted(operators().items(), key=lambda row: -row[1][1])
    calls, time = sum(r[1][0] for r in rows), sum(r[1][1] for r in rows)
    lines = [f"margay: {len(rows)} operators of device cuda ran on torch's CPU kernels: {calls} calls, {time * 1e3:.1f} ms"]
    lines += [f"  {seconds * 1e3:10.2f} ms {number:8d}  {name}" for name, (number, seconds) in rows]
    ran = sorted(kernels().items(), key=lambda row: -row[1][1])
    calls, time, compiling = (sum(r[1][i] for r in ran) for i in range(3))
    lines.append(f"margay: {len(ran)} kernels ran on margay: {calls} launches, {time * 1e3:.1f} ms, compiled in {compiling * 1e3:.1f} ms")
    lines += [f"  {seconds * 1e3:10.2f} ms {number:8d}  {name}" for name, (number, seconds, _) in ran]
    return "\n".join(lines) + "\n"


def install() -> None:
    """Starts counting kernels, and writes the tables to standard error at exit if `MARGAY_TORCH_SUMMARY` is set."""
    from margay.torch import driver

    count = getattr(driver.library(), "margayCountKernels", None)
    if count is not None:
        count()
    if os.environ.get("MARGAY_TORCH_SUMMARY", "0") not in ("", "0"):
        atexit.register(lambda: sys.stderr.write(text()))
