"""Check, explain and run NVIDIA PTX, and run CUDA programs, without a GPU.

>>> import margay
>>> print(margay.check(text))                         # checks like ptxas
>>> module = margay.Module(text)
>>> module.kernel("saxpy")[8, 128](1000, 2.0, x, y)   # uses NumPy arrays in place

`margay.enable()`, or `margay exec -- python …`, provides a CUDA device to PyTorch, Triton, CuPy and Numba, which runs on this machine's
processors.
"""

# Names are imported when they are first used: whoever wants `enable()` in each of many processes does not pay for the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from margay._check import (
        Abi as Abi,
        Code as Code,
        Diagnostic as Diagnostic,
        Diagnostics as Diagnostics,
        Edit as Edit,
        Fix as Fix,
        Label as Label,
        abi as abi,
        check as check,
        codes as codes,
        explain as explain,
        fmt as fmt,
    )
    from margay._device import Device as Device, device as device
    from margay._enable import command as command, enable as enable, is_enabled as is_enabled
    from margay._errors import (
        CheckError as CheckError,
        Error as Error,
        Fault as Fault,
        Place as Place,
        Unsupported as Unsupported,
    )
    from margay._margay import __version__ as __version__
    from margay._module import (
        Finding as Finding,
        Kernel as Kernel,
        Launch as Launch,
        Module as Module,
        Param as Param,
        Party as Party,
        UndefinedWarning as UndefinedWarning,
        lend as lend,
    )

_WHERE = {
    "_check": "Abi Code Diagnostic Diagnostics Edit Fix Label abi check codes explain fmt",
    "_device": "Device device",
    "_enable": "command enable is_enabled",
    "_errors": "CheckError Error Fault Place Unsupported",
    "_margay": "__version__",
    "_module": "Finding Kernel Launch Module Param Party UndefinedWarning lend",
}
_HOME = {name: module for module, names in _WHERE.items() for name in names.split()}
__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'margay' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"margay.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
