"""What ran on torch's CPU kernels. What ran on margay, its driver tells."""

from __future__ import annotations

import atexit
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


def text() -> str:
    """A table of what ran, what took longest first."""
    rows = sorted(operators().items(), key=lambda row: -row[1][1])
    calls, time = sum(r[1][0] for r in rows), sum(r[1][1] for r in rows)
    lines = [f"margay: {len(rows)} operators of device cuda ran on torch's CPU kernels: {calls} calls, {time * 1e3:.1f} ms"]
    lines += [f"  {seconds * 1e3:10.2f} ms {number:8d}  {name}" for name, (number, seconds) in rows]
    return "\n".join(lines) + "\n"


def install() -> None:
    """Writes the table to standard error when the process ends, if `MARGAY_TORCH_SUMMARY` asks for it, and has kernels told too."""
    if os.environ.get("MARGAY_TORCH_SUMMARY", "0") not in ("", "0"):
        os.environ.setdefault("MARGAY_STATS", "1")
        atexit.register(lambda: sys.stderr.write(text()))
