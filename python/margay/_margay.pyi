"""The native half of the package."""

__version__: str
