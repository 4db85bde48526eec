"""Check, explain and run NVIDIA PTX, and whole CUDA programs, without a GPU."""

from margay._enable import enable
from margay._margay import __version__

__all__ = ["__version__", "enable"]
