"""What makes this process, and those that it starts, find margay where they look for CUDA."""

from __future__ import annotations

from margay import _startup

__all__ = ["enable"]


def enable() -> None:
    """Makes CUDA libraries that are imported from now on find margay. Calling it again does nothing."""
    _startup.hook()
