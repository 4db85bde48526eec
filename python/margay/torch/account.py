"""What ran: operators on torch's CPU kernels, and kernels on margay, which its driver counts."""

from __future__ import annotations

import atexit
import ctypes
import os
import sys

#: operator -> [calls, nanoseconds]
_counters: dict[str, list] = {}


def counter(name: str) -> list:
    """Where the kernel of an operator counts its calls and their nanoseconds."""
    return _counters.setdefault(name, [0, 0])


def reset() -> None:
    """Forgets what ran so far."""
    for count in _counters.values():
        count[:] = [0, 0]


def operators() -> dict[str, tuple[int, float]]:
    """The operators that torch's CPU kernels computed: how often, and in how many seconds."""
    return {name: (calls, time * 1e-9) for name, (calls, time) in _counters.items() if calls}


def kernels() -> dict[str, tuple[int, float, float]]:
    """The kernels that margay ran since torch was imported: how often, in how many seconds, and those that compiling took.

    Launches that still go on are not among them.
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
    """Two tables of what ran, what took longest first."""
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
    """Has kernels counted, and writes the tables to standard error when the process ends if `MARGAY_TORCH_SUMMARY` asks for it."""
    from margay.torch import driver

    count = getattr(driver.library(), "margayCountKernels", None)
    if count is not None:
        count()
    if os.environ.get("MARGAY_TORCH_SUMMARY", "0") not in ("", "0"):
        atexit.register(lambda: sys.stderr.write(text()))
