"""Direct calls to margay's driver library, which are cheaper than calls through torch."""

from __future__ import annotations

import ctypes

import torch

from margay.torch import capture

_library = None


def library():
    """margay's `libcuda.so.1`, which torch has loaded."""
    global _library
    if _library is None:
        _library = ctypes.CDLL("libcuda.so.1")
    return _library


def is_margay() -> bool:
    """Whether the CUDA driver of this process is margay's: then device pointers are addresses of the host."""
    uuid = ctypes.create_string_buffer(16)
    try:
        cuda = library()
    except OSError:
        return False
    return cuda.cuInit(0) == 0 and cuda.cuDeviceGetUuid(uuid, 0) == 0 and uuid.raw.startswith(b"margay-")


def _wait(stream: int) -> int:
    """`cuStreamSynchronize`, which takes the place of this function at the first call."""
    global _wait
    _wait = library().cuStreamSynchronize
    _wait.argtypes = [ctypes.c_void_p]
    return _wait(stream)


# Every operator looks at these.
_stream = torch._C._cuda_getCurrentRawStream
_state, _graphs, _thread = capture.STATE, capture.STATE.graphs, capture.STATE.inside


def synchronize(device: int) -> None:
    """Waits for the work on torch's current stream of the device, because operators run on the caller's thread.

    A capturing stream has no work to wait for, and a graph node would wait for itself.
    """
    if _graphs and torch._C._cuda_isCurrentStreamCapturing() or _state.special and getattr(_thread, "replays", False):
        return
    if _wait(_stream(device)) != 0:
        torch.cuda.current_stream(device).synchronize()  # torch raises its usual error
    if _state.error is not None:
        capture.raise_error()


_CYCLES_OF_A_MICROSECOND = 1500  # about the clock of a GPU


def sleep(cycles: int) -> None:
    """`torch.cuda._sleep`, which is a kernel in torch: keeps torch's current stream busy for a while."""
    torch.cuda.init()
    stream = torch._C._cuda_getCurrentRawStream(torch.cuda.current_device())
    microseconds = min(int(cycles) // _CYCLES_OF_A_MICROSECOND, 2**32 - 1)
    # The C library's own function, so that the stream needs no lock of the interpreter.
    status = library().cuLaunchHostFunc(ctypes.c_void_p(stream), ctypes.CDLL(None).usleep, ctypes.c_void_p(microseconds))
    if status != 0:
        raise RuntimeError(f"torch.cuda._sleep: cuLaunchHostFunc returned {status}")
