"""`pytest --margay`: runs tests of CUDA programs without a GPU.

* `--margay`, or `margay = true` in pytest's configuration: CUDA libraries use margay. For this, pytest restarts itself before
  it collects tests, so that CuPy and Numba work too; workers of pytest-xdist inherit it.
* `--margay-device=h100`: the GPU that programs see.
* `--margay-check=races,memory`: tests fail for findings of the sanitizer; `all` selects all checks.
* The marker `gpu_only`: the test needs a real GPU and is skipped under margay.
* The fixture `margay_device`: a device for `margay.Module`, selected by `--margay-device`; it also works without `--margay`.

A test whose kernel faults fails even if it never checks for errors, and its output has a section with the report. A fault makes a
GPU's context unusable; here it fails one test, and the next one gets a usable context.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

# Reports of the session by kind, counted for the summary.
_COUNTS = pytest.StashKey[dict[str, int]]()
_READER = pytest.StashKey["_Reader"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("margay", "CUDA without a GPU")
    group.addoption("--margay", action="store_true", default=False, help="run CUDA programs on margay, without a GPU")
    group.addoption("--margay-device", metavar="GPU", help="the GPU that programs see: h100, t4, …")
    group.addoption(
        "--margay-check", metavar="WHAT", help="fail tests for findings of the sanitizer: memory, races, init, sync, api, or all"
    )
    parser.addini("margay", "run CUDA programs on margay, without a GPU", type="bool", default=False)


def _wanted(config: pytest.Config) -> bool:
    options = config.known_args_namespace
    return bool(options.margay or options.margay_check or config.getini("margay"))


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before any `conftest.py` imports a CUDA library."""
    if not _wanted(early_config):
        return
    from margay import _enable

    options = early_config.known_args_namespace
    if not _enable._is_redirected() and _enable._why_not_again() is None:
        # What pytest has caught of standard output is to reach the terminal, and the new process to begin with a real one.
        capture = early_config.pluginmanager.getplugin("capturemanager")
        if capture is not None:
            capture.stop_global_capturing()
        _enable.enable(options.margay_device, checks=options.margay_check, restart=True)
    _enable.enable(options.margay_device, checks=options.margay_check)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu_only: the test needs a real GPU and is skipped under margay")
    config.stash[_COUNTS] = {"fault": 0, "finding": 0, "tests": 0}
    if _wanted(config):
        config.stash[_READER] = _Reader()


def pytest_unconfigure(config: pytest.Config) -> None:
    reader = config.stash.get(_READER, None)
    if reader is not None:
        reader.close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not _wanted(config):
        return
    skip = pytest.mark.skip(reason="requires a real GPU")
    for item in items:
        if "gpu_only" in item.keywords:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def margay_device(pytestconfig: pytest.Config) -> Any:
    """A `margay.Device`, selected by `--margay-device`."""
    import margay

    return margay.device(pytestconfig.getoption("--margay-device"))


class _Reader:
    """Reads the reports of margay's driver about this process."""

    def __init__(self) -> None:
        handle, self._path = tempfile.mkstemp(prefix="margay-pytest-")
        os.close(handle)
        self._at = 0
        # The driver looks at these when it has something to say.
        os.environ["MARGAY_REPORTS"] = self._path
        os.environ["MARGAY_FORGIVE"] = "1"
        # The plugin shows the reports with their test.
        os.environ.setdefault("MARGAY_LOG", "quiet")

    def take(self) -> list[tuple[str, str]]:
        """Returns the kind and text of each report since the last call."""
        _settle()
        try:
            with open(self._path, "rb") as file:
                file.seek(self._at)
                data = file.read()
        except FileNotFoundError:
            return []
        # Whole reports: ASCII's separators stand behind each kind and each text.
        whole = data[: data.rfind(b"\x1e") + 1]
        self._at += len(whole)
        records = whole.decode("utf-8", "replace").split("\x1e")[:-1]
        return [(kind, text.rstrip()) for kind, _, text in (record.partition("\x1f") for record in records)]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path)


def _settle() -> None:
    """Makes the context report pending errors, so that they do not reach the next test."""
    from margay import _enable

    if not _enable._mapped("libcuda.so") and not _enable._mapped("libcuda.so.1"):
        return
    driver = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    if driver.cuCtxGetCurrent(ctypes.byref(context)) == 0 and context.value:
        driver.cuCtxSynchronize()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    reader = item.config.stash.get(_READER, None)
    faults: list[tuple[str, str]] = []
    if reader is not None:
        if call.when == "setup":
            item.config.stash[_COUNTS]["tests"] += 1
        faults += reader.take()
    if not faults:
        return
    for kind, text in faults:
        report.sections.append((f"margay: {kind}", text))
    bad = [(kind, text) for kind, text in faults if kind in ("fault", "finding")]
    counts = item.config.stash[_COUNTS]
    for kind, _ in bad:
        counts[kind] += 1
    # Counts reach the controller of pytest-xdist with the report.
    report.user_properties.append(("margay", [kind for kind, _ in bad]))
    if bad and report.passed:
        report.outcome = "failed"
        first = bad[0][1].split("\n", 1)[0].removeprefix("error: ")
        report.longrepr = f"margay: {'a kernel failed' if bad[0][0] == 'fault' else 'a kernel has errors'}: {first}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """On the pytest-xdist controller: adds the counts of a worker."""
    if _controller is None or not hasattr(report, "node"):
        return
    counts = _controller.stash[_COUNTS]
    counts["tests"] += report.when == "setup"
    for name, kinds in report.user_properties:
        if name == "margay" and isinstance(kinds, list):
            for kind in kinds:
                counts[kind] += 1


_controller: pytest.Config | None = None


def pytest_sessionstart(session: pytest.Session) -> None:
    global _controller
    if session.config.pluginmanager.hasplugin("dsession"):
        _controller = session.config


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if not _wanted(config):
        return
    counts = config.stash[_COUNTS]
    device = config.getoption("--margay-device") or os.environ.get("MARGAY_DEVICE") or "its own device"
    checks = config.getoption("--margay-check") or os.environ.get("MARGAY_CHECK")

    def number(n: int, what: str) -> str:
        return f"{n} {what}{'' if n == 1 else 's'}"

    line = f"margay: {number(counts['tests'], 'test')} on {device}, {number(counts['fault'], 'fault')}"
    if checks:
        line += f", {number(counts['finding'], 'finding')} of {checks}"
    terminalreporter.write_line(line)
