"""Findings of margay's sanitizer in programs with torch, each in a process of its own."""

import os
import subprocess
import sys

import pytest

import margay

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

KERNELS = """
import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, inside) + tl.load(y + i, inside), inside)


def total(x, y):
    out = torch.empty_like(x)
    add[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out.sum().item()
"""


def check(tmp_path, program, what="init"):
    """Runs a program behind the kernels, and returns its exit code and what it and margay wrote."""
    script = tmp_path / "program.py"
    script.write_text(KERNELS + program)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MARGAY")}
    # Triton would reuse the code of another test's file, with its lines.
    environment["TRITON_CACHE_DIR"] = str(tmp_path / "triton")
    command = [margay.command(), "exec", "--check", what, "--", sys.executable, str(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_what_cpu_operators_write_is_initialized(tmp_path):
    code, out, err = check(
        tmp_path,
        """
x = torch.arange(1000, device="cuda", dtype=torch.float32)
y = torch.empty(1000, device="cuda").fill_(2)
y[10:20] = torch.ones(10)
print(total(x, y))
print(total(x.view(10, 100).t().contiguous().flatten(), torch.zeros_like(x).cumsum(0)))
z = torch.eye(40, device="cuda")
z[:, 3] += 1
print(total(z.flatten(), (z @ z).flatten()))
""",
    )
    assert code == 0, err
    assert "no findings in 3 checked launches" in err
    # 499500 + 990 * 2 + 10; the first sum again; 80, and of the square, which has 3 more in its column 3 than the identity, 40 + 3 * 40.
    assert [float(line) for line in out.split()] == [501490.0, 499500.0, 80.0 + 160.0]


def test_what_nobody_writes_is_reported(tmp_path):
    code, _, err = check(tmp_path, 'total(torch.empty(1 << 22, device="cuda"), torch.ones(1 << 22, device="cuda"))\n')
    assert code == 1, err
    assert "uninitialized: reads" in err and "program.py:" in err and "in `add`" in err


def test_sums_of_products_have_no_races(tmp_path):
    """The lanes of a warp store one sum, if Triton does not fuse its first addition with the products."""
    program = """
@triton.jit
def norm(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(x + i, i < n, other=0.0)
    tl.store(out, tl.sum(row * row, 0))


x, out = torch.rand(100, device="cuda"), torch.empty(1, device="cuda")
norm[(1,)](x, out, 100, BLOCK=128)
torch.testing.assert_close(out.cpu(), (x * x).sum().view(1).cpu())
"""
    code, _, err = check(tmp_path, program, "races")
    assert code == 0 and "no findings in 1 checked launch" in err, err


UNMASKED = """
@triton.jit
def unmasked(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + 1)


x = torch.zeros(1000, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x + 1
    y = (y * 2) + 1
graph.replay()
assert y.sum().item() == 3000
unmasked[(8,)](torch.zeros(1024, device="cuda"), torch.empty(COUNT, device="cuda"), BLOCK=128)
torch.cuda.synchronize()
"""


def test_an_access_beyond_a_tensor_is_found(tmp_path):
    """torch's allocator would have room for 1024 elements where the tensor has 1000."""
    code, _, err = check(tmp_path, UNMASKED.replace("COUNT", "1024"), "memory")
    assert code == 0, err
    code, _, err = check(tmp_path, UNMASKED.replace("COUNT", "1000"), "memory")
    assert code != 0 and "out of bounds: write of 4 bytes" in err, err
    assert "0 bytes after the end of the allocation of 4000 bytes" in err and "program.py:" in err, err


def test_what_a_tensor_left_is_not_initialized(tmp_path):
    program = """
x = torch.ones(1000, device="cuda")
del x
total(torch.empty(1000, device="cuda"), torch.ones(1000, device="cuda"))
"""
    code, _, err = check(tmp_path, program)
    assert code == 1 and "uninitialized: reads" in err and "in `add`" in err, err


TESTS = """
import torch
import triton
import triton.language as tl


@triton.jit
def unmasked(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)


def test_beyond():
    unmasked[(1,)](torch.zeros(100, device="cuda"), BLOCK=128)


def test_inside():
    x = torch.zeros(128, device="cuda")
    unmasked[(1,)](x, BLOCK=128)
    assert x.sum().item() == 128
"""


def test_the_plugin_fails_the_test_and_goes_on(pytester):
    """Tensors are freed before a call reports the fault, and torch cannot handle errors of freeing."""
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("--margay", "--margay-check=memory", "-p", "no:cacheprovider")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*0 bytes after the end of the allocation of 400 bytes*"])


def test_a_fault_is_an_exception_while_tensors_are_freed(tmp_path):
    """Tensors free their memory in destructors, where an exception would end the process."""
    program = """
@triton.jit
def unmasked(x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) + 1)


def launch():
    x, y = torch.zeros(1000, device="cuda"), torch.zeros(10, device="cuda")
    unmasked[(8,)](x, BLOCK=128)
    del x
    return y


y = launch()
for _ in range(2):
    try:
        y.sum().item()
    except RuntimeError as error:
        print(str(error).splitlines()[0])
del y
"""
    for what in ("memory", "undefined"):  # the former name of `all`
        code, out, err = check(tmp_path, program, what)
        assert code == 1 and "out of bounds: read of " in err and "terminate" not in err, err
        assert out == "CUDA error: an illegal memory access was encountered\n" * 2
