"""Check, explain and run NVIDIA PTX, and whole CUDA programs, without a GPU.

>>> import margay
>>> print(margay.check(text))                         # what ptxas would say, said better
>>> module = margay.Module(text)
>>> module.kernel("saxpy")[8, 128](1000, 2.0, x, y)   # on NumPy arrays, in place

`margay.enable()`, or `margay exec -- python …`, makes PyTorch's, Triton's, CuPy's and Numba's CUDA device work on this machine's
processors.
"""

from margay._check import Abi, Code, Diagnostic, Diagnostics, Edit, Fix, Label, abi, check, codes, explain, fmt
from margay._device import Device, device
from margay._enable import command, enable, is_enabled
from margay._errors import CheckError, Error, Fault, Place, Unsupported
from margay._margay import __version__
from margay._module import Finding, Kernel, Launch, Module, Param, Party, UndefinedWarning, lend

__all__ = [
    "Abi",
    "CheckError",
    "Code",
    "Device",
    "Diagnostic",
    "Diagnostics",
    "Edit",
    "Error",
    "Fault",
    "Finding",
    "Fix",
    "Kernel",
    "Label",
    "Launch",
    "Module",
    "Param",
    "Party",
    "Place",
    "UndefinedWarning",
    "Unsupported",
    "__version__",
    "abi",
    "check",
    "codes",
    "command",
    "device",
    "enable",
    "explain",
    "fmt",
    "is_enabled",
    "lend",
]
