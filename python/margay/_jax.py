"""JAX's CUDA plugin, which cannot run on margay: XLA compiles to machine code, and calls NVIDIA's libraries of kernels.

JAX imports its plugins, calls their function `initialize`, and uses the CPU if none registers a device.
"""

from __future__ import annotations

import sys

__all__ = ["install"]


def install() -> None:
    """Replaces the plugin's initialization by a message."""
    for name in ("jax_plugins.xla_cuda12", "jax_plugins.xla_cuda13"):
        if name in sys.modules:
            sys.modules[name].initialize = _refuse


def _refuse() -> None:
    sys.stderr.write(
        "margay: JAX has no `cuda` device here: its CUDA plugin runs machine code and NVIDIA's libraries, which need NVIDIA's driver; "
        "it uses the CPU, and JAX_PLATFORMS=cpu asks for that without this message\n"
    )
