"""PyTorch's `cuda` device on margay: torch's own CPU kernels on the same memory, and margay for kernels that people write."""

__all__ = ["install"]


def install() -> None:
    """Serves the operators of torch's `cuda` device. Called once after `import torch`, by `margay.enable()` and `margay exec`."""
