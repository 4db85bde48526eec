"""Makes this process and its child processes find margay where they look for CUDA.

Variables like `LD_PRELOAD` are read when a process starts, so a running process cannot be set up like under `margay exec`. Two ways remain:

* **Loading first.** The dynamic linker identifies a library by its name: if `libcuda.so.1`, `libcudart.so.13`, `.12` and `.11.0`, and
  `libnvidia-ml.so.1` are in the process, every later request for them gets these. This is enough for PyTorch, for Triton, for NVML's
  bindings, and for extensions that nvcc links with the shared runtime, without a restart.
* **Restarting.** CuPy, and `cuda.core`, on which Numba's CUDA package is built, include a CUDA runtime in their own libraries and request
  machine code from NVRTC and nvJitLink. They need margay's auditing library, which must be loaded when the process starts. So the
  interpreter restarts itself (`os.execve`) with the same arguments when such a package is imported; code that ran
  before runs again. Under `margay exec`, and in child processes of an enabled one, the library is already loaded.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading

import _margay_startup
from margay import _margay

__all__ = ["command", "enable", "is_enabled"]

# Packages for which loading first is not enough.
_NEED_RESTART = ("cupy", "cupy_backends", "cuda.core", "numba.cuda", "numba_cuda")
# Packages that load CUDA's libraries when they are imported, and by what to know that they have been.
_LOADED_BY = ("torch", "cupy", "numba.cuda", "cuda.bindings", "triton")
_REDIRECT = "libmargay_redirect.so"
# Those that programs ask for by name. The driver comes behind the runtimes, which look for it when they are called.
_LIBRARIES = ("libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcuda.so.1", "libnvidia-ml.so.1")

_lock = threading.RLock()
_enabled = False
_handles: list[ctypes.CDLL] = []


def command() -> str:
    """Returns the path of this package's `margay` command."""
    import shutil
    import site
    import sysconfig

    name = "margay"
    places = [
        sysconfig.get_path("scripts"),
        os.path.dirname(sys.executable),
        os.path.join(site.getuserbase(), "bin") if site.ENABLE_USER_SITE else None,
        os.path.join(os.path.dirname(os.path.dirname(__file__)), "bin"),  # after `pip install --target`
    ]
    for place in places:
        if place and os.access(os.path.join(place, name), os.X_OK):
            return os.path.join(place, name)
    found = shutil.which(name)
    if found is None:
        raise RuntimeError(f"the command `margay` is neither in Python's scripts folder ({places[0]}) nor in PATH")
    return found


def _mapped(name: str) -> bool:
    with open("/proc/self/maps") as maps:
        return any(line.rstrip().endswith("/" + name) for line in maps)


def _is_redirected() -> bool:
    """Whether margay's auditing library was loaded when this process started."""
    return _mapped(_REDIRECT)


def is_enabled() -> bool:
    """Whether CUDA libraries in this process use margay: after `enable()`, or under `margay exec`."""
    return _enabled or _is_redirected()


def enable(
    device: str | None = None,
    *,
    restart: bool | None = None,
    engine: str | None = None,
    checks: str | None = None,
    stats: bool = False,
) -> None:
    """Makes CUDA libraries use margay: those that this process imports from now on, and those of its child processes.

    Call it before importing `torch`, `cupy`, `numba.cuda` or `triton`. Further calls do nothing. `margay exec -- python …` has the
    same effect without a change to the program, and so has `pytest --margay` for tests.

    PyTorch and Triton work in the running process. CuPy and Numba require a process that was started for margay: with `restart=None`, the
    interpreter restarts itself with the same arguments when the program imports one of them; `restart=True` restarts it
    at once, and `restart=False` never. If it cannot restart (in a notebook, at a prompt, or while other threads run), importing
    them raises a `RuntimeError` with instructions.

    `device` is the GPU that programs see (`"h100"`, see `margay.device`), `engine` runs their kernels, `checks` reports their
    errors (`"races,memory"`), `stats` prints statistics at exit.
    """
    global _enabled
    with _lock:
        for variable, value in (("MARGAY_DEVICE", device), ("MARGAY_ENGINE", engine), ("MARGAY_CHECK", checks)):
            if value is not None:
                os.environ[variable] = value
        if stats:
            os.environ["MARGAY_STATS"] = "1"
        if _enabled:
            return
        if _is_redirected():
            # `margay exec` or a restart has done everything else.
            _margay_startup.begin()
            _enabled = True
            return
        late = [name for name in _LOADED_BY if name in sys.modules]
        if late and _mapped_foreign():
            raise RuntimeError(
                f"`{late[0]}` was imported before margay.enable() and has loaded NVIDIA's libraries: call it first, or start the "
                "program with `margay exec -- python …`"
            )
        folder, environment = _margay.programs(command())
        os.environ.update(environment)
        if restart:
            _restart("margay.enable(restart=True)")
        for name in _LIBRARIES:
            _handles.append(ctypes.CDLL(os.path.join(folder, name), mode=ctypes.RTLD_GLOBAL))
        _margay_startup.begin()
        if restart is None:
            _margay_startup.before(_NEED_RESTART, lambda name: _restart(f"`import {name}`"))
        _enabled = True


def _mapped_foreign() -> bool:
    """Whether a CUDA driver or runtime other than margay's is loaded."""
    with open("/proc/self/maps") as maps:
        paths = {line[line.find("/") :].rstrip() for line in maps if "/" in line}
    names = {os.path.basename(path) for path in paths}
    return any(name.startswith(("libcuda.so", "libcudart.so", "libcudart-")) for name in names)


def _why_not_again() -> str | None:
    """Why this interpreter cannot restart itself; `None` if it can."""
    if "ipykernel" in sys.modules or "google.colab" in sys.modules:
        return "a notebook kernel would lose its state"
    arguments = sys.orig_argv[1:]
    if sys.flags.interactive or hasattr(sys, "ps1") or not arguments or arguments[-1] == "-":
        return "the program comes from a prompt or from standard input"
    if threading.active_count() > 1:
        return "other threads run"
    if os.environ.get("MARGAY_RESTARTED") == str(os.getpid()):
        return "it was already restarted, but the dynamic linker ignored LD_AUDIT"
    return None


def _restart(wanted_by: str) -> None:
    """Restarts the interpreter; returns only with an error."""
    why = _why_not_again()
    if why is not None:
        raise RuntimeError(
            f"{wanted_by} requires a process that was started for margay, and this process cannot restart: {why}. Start it with "
            "`margay exec -- …`: a notebook, for example, with `margay exec -- jupyter lab`"
        )
    os.environ["MARGAY_RESTARTED"] = str(os.getpid())
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ)
