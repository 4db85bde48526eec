"""The exit of a process that uses torch's `cuda` device.

Before Python 3.14, a thread that requests the interpreter lock during finalization is ended by `pthread_exit`. If the thread is inside
C++ functions that must not throw, such as torch's and those of the autograd engine, unwinding through them aborts the process
("terminate called without an active exception"). On a GPU, C++ threads rarely need the interpreter; here operators are Python functions,
and a thread of gloo may drop the last reference to a tensor of Python. So before finalization, the nodes of launched graphs complete,
daemon threads of the program stop at their next operator, as they would in Python 3.14, and all other threads come to rest.
"""

from __future__ import annotations

import atexit
import ctypes
import threading

from margay.torch import capture, driver

# How long daemon threads may take to come to rest, and how long C++ threads, in milliseconds.
_DAEMONS = 200
_OTHERS = 2000


def _end() -> None:
    library = driver.library()
    wait = getattr(library, "margayAwaitThreads", None)
    if wait is None:
        return  # the driver of an older `margay exec`
    capture.finish()
    own = threading.get_ident()
    daemons = [thread for thread in threading.enumerate() if thread.daemon and thread.ident not in (own, None)]
    if daemons:
        capture.STATE.rest({thread.ident for thread in daemons})
        wait(_DAEMONS, None, ctypes.c_size_t(0), None)
    numbers = [thread.native_id for thread in daemons if thread.native_id is not None]
    wait(_OTHERS, (ctypes.c_uint32 * len(numbers))(*numbers), ctypes.c_size_t(len(numbers)), None)


def install() -> None:
    """Registers the function; handlers that the program registers later run before it."""
    atexit.register(_end)
