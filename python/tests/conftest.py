"""What the tests share: a module with kernels of every kind of argument, written by hand."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

# A folder of that name is found where there is no package: it has no file.
HAS_TORCH = getattr(importlib.util.find_spec("torch"), "origin", None) is not None
collect_ignore = [] if HAS_TORCH else ["torch"]


def pytest_report_header():
    return None if HAS_TORCH else "torch is not installed: tests/torch is left out"


HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"

SAXPY = HEADER + """
.visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y) {
    .reg .pred %out;
    .reg .b32 %i, %n, %t;
    .reg .f32 %a, %u, %v;
    .reg .b64 %x, %y, %o;
    mov.u32 %i, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mov.u32 %t, %tid.x;
    mad.lo.u32 %i, %i, %n, %t;
    ld.param.u32 %n, [n];
    setp.ge.u32 %out, %i, %n;
    @%out ret;
    ld.param.f32 %a, [a];
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    mul.wide.u32 %o, %i, 4;
    add.u64 %x, %x, %o;
    add.u64 %y, %y, %o;
    ld.global.f32 %u, [%x];
    ld.global.f32 %v, [%y];
    fma.rn.f32 %v, %a, %u, %v;
    st.global.f32 [%y], %v;
    ret;
}
"""


@pytest.fixture
def saxpy() -> str:
    """`y[i] = a * x[i] + y[i]` for `i < n`."""
    return SAXPY


@pytest.fixture
def python(tmp_path):
    """Runs a Python program in a process of its own; what it printed. `before` are words of a command in front of it."""

    def run(text, *arguments, before=(), env=None, check=True):
        path = tmp_path / "program.py"
        path.write_text(text)
        done = subprocess.run(
            [*before, sys.executable, str(path), *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **(env or {})},
            timeout=600,
        )
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout
        return done

    return run


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Compiled code of the tests stays with them."""
    monkeypatch.setenv("MARGAY_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository, where the tests lie in one."""
    return Path(__file__).resolve().parents[2]
