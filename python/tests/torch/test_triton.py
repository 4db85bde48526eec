"""Triton kernels on torch tensors of device `cuda`, against torch."""

import os

import pytest
import torch

triton = pytest.importorskip("triton")

import kernels  # noqa: E402

TYPES = [torch.float32, torch.bfloat16]


def close(actual, expected, dtype=torch.float32):
    if dtype is torch.float32:
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    else:
        torch.testing.assert_close(actual, expected, rtol=2e-2, atol=4e-2)


def test_add():
    x, y = torch.randn(2, 1003, device="cuda")
    out = torch.empty_like(x)
    kernels.add_kernel[(triton.cdiv(1003, 256),)](x, y, out, 1003, BLOCK=256)
    assert torch.equal(out, x + y)


@pytest.mark.parametrize("dtype", TYPES)
def test_softmax(dtype):
    x = torch.randn(37, 200, device="cuda", dtype=dtype)
    out = torch.empty_like(x)
    kernels.softmax_kernel[(37,)](x, out, 200, x.stride(0), BLOCK=256)
    close(out, x.softmax(-1), dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_matmul(dtype):
    a, b = torch.randn(70, 50, device="cuda", dtype=dtype), torch.randn(50, 90, device="cuda", dtype=dtype)
    c = torch.empty(70, 90, device="cuda", dtype=dtype)
    kernels.matmul_kernel[(5, 3)](a, b, c, 70, 90, 50, *a.stride(), *b.stride(), *c.stride(), M=16, N=32, K=16)
    torch.testing.assert_close(c, a @ b, rtol=2e-2 if dtype is not torch.float32 else 1e-4, atol=6e-2 if dtype is not torch.float32 else 1e-4)


def test_dropout_keeps_the_share_that_it_should_and_repeats_itself():
    x = torch.ones(10000, device="cuda")
    first, second, other = (torch.empty_like(x) for _ in range(3))
    for out, seed in ((first, 5), (second, 5), (other, 6)):
        kernels.dropout_kernel[(10,)](x, out, 10000, 0.25, seed, BLOCK=1024)
    assert torch.equal(first, second) and not torch.equal(first, other)
    assert 0.73 < (first != 0).float().mean().item() < 0.77
    assert first.unique().tolist() == [0.0, pytest.approx(4 / 3)]


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        out, (rows, columns) = torch.empty_like(x), x.shape
        mean, rstd = torch.empty(2, rows, device=x.device)
        kernels.layer_norm_kernel[(rows,)](x, weight, bias, out, mean, rstd, columns, eps, BLOCK=triton.next_power_of_2(columns))
        ctx.save_for_backward(x, weight, mean, rstd)
        return out

    @staticmethod
    def backward(ctx, grad):
        x, weight, mean, rstd = ctx.saved_tensors
        rows, columns = x.shape
        grad_x = torch.empty_like(x)
        grad_w, grad_b = torch.zeros(2, columns, device=x.device)
        block = triton.next_power_of_2(columns)
        kernels.layer_norm_backward_kernel[(rows,)](x, weight, grad.contiguous(), mean, rstd, grad_x, grad_w, grad_b, columns, BLOCK=block)
        return grad_x, grad_w.to(weight.dtype), grad_b.to(weight.dtype), None


@pytest.mark.parametrize("dtype", TYPES)
def test_layer_norm(dtype):
    x = torch.randn(20, 100, device="cuda", dtype=dtype, requires_grad=True)
    weight = torch.rand(100, device="cuda", dtype=dtype, requires_grad=True)
    bias = torch.rand(100, device="cuda", dtype=dtype, requires_grad=True)
    grad = torch.randn_like(x)
    out = LayerNorm.apply(x, weight, bias, 1e-5)
    grads = torch.autograd.grad(out, (x, weight, bias), grad)
    expected = torch.nn.functional.layer_norm(x, (100,), weight, bias, 1e-5)
    wanted = torch.autograd.grad(expected, (x, weight, bias), grad)
    close(out, expected, dtype)
    for actual, value in zip(grads, wanted, strict=True):
        close(actual, value, dtype) if dtype is torch.float32 else torch.testing.assert_close(actual, value, rtol=3e-2, atol=1e-1)


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal):
        batch, heads, n, d = q.shape
        out, lse = torch.empty_like(q), torch.empty(batch, heads, n, device=q.device)
        kernels.attention_kernel[(triton.cdiv(n, 16), batch * heads)](q, k, v, out, lse, n, d**-0.5, M=16, N=16, D=d, CAUSAL=causal)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.causal = causal
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v, out, lse = ctx.saved_tensors
        batch, heads, n, d = q.shape
        grad = grad.contiguous()
        delta = (grad.float() * out.float()).sum(-1)
        dq, dk, dv = (torch.zeros(t.shape, device=t.device) for t in (q, k, v))
        grid = (triton.cdiv(n, 16), batch * heads)
        kernels.attention_backward_kernel[grid](q, k, v, grad, lse, delta, dq, dk, dv, n, d**-0.5, M=16, N=16, D=d, CAUSAL=ctx.causal)
        return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), None


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("causal", [False, True])
def test_attention(dtype, causal):
    q, k, v = (torch.randn(2, 2, 40, 16, device="cuda", dtype=dtype, requires_grad=True) for _ in range(3))
    grad = torch.randn_like(q)
    out = Attention.apply(q, k, v, causal)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    close(out, expected, dtype)
    grads = torch.autograd.grad(out, (q, k, v), grad)
    for actual, value in zip(grads, torch.autograd.grad(expected, (q, k, v), grad), strict=True):
        close(actual, value, dtype)


def test_grouped_matmul():
    shapes = [(20, 33, 40), (16, 16, 16), (50, 17, 8)]
    pairs = [(torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")) for m, n, k in shapes]
    results = [torch.empty(m, n, device="cuda") for m, n, _ in shapes]
    addresses = torch.tensor([t.data_ptr() for (a, b), c in zip(pairs, results, strict=True) for t in (a, b, c)], device="cuda")
    sizes = torch.tensor(shapes, dtype=torch.int32, device="cuda")
    kernels.grouped_matmul_kernel[(3,)](addresses, sizes, len(shapes), PROGRAMS=3, M=16, N=16, K=16)
    for (a, b), c in zip(pairs, results, strict=True):
        close(c, a @ b)


def test_autotuning_and_benchmarks_measure_time():
    x, y = torch.randn(2, 1000, device="cuda")
    out = torch.empty_like(x)
    kernel = triton.autotune([triton.Config({"BLOCK": b}) for b in (128, 256)], key=["n"])(kernels.add_kernel)
    kernel[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, y, out, 1000)
    assert torch.equal(out, x + y)
    assert triton.testing.do_bench(lambda: x + y, warmup=1, rep=2) > 0


FAULT = """
import margay
margay.enable()
import time, torch, triton, triton.language as tl

@triton.jit
def stray(x):
    tl.store(x + tl.arange(0, 32) * 1000000007, 1.0)

stray[(1,)](torch.zeros(32, device="cuda"))
time.sleep(SECONDS)  # the fault happens in a thread of margay's, or in the call that waits
try:
    torch.cuda.synchronize()
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize(("seconds", "forgiving"), [(0, ""), (0.5, ""), (0, "1")])
def test_the_exception_of_a_fault_contains_its_report(python, seconds, forgiving):
    """torch reads the driver's error logs since 2.15."""
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 15):
        pytest.skip("torch does not read the driver's logs")
    # What `pytest --margay` and `margay exec` set is not for this process.
    environment = {"MARGAY_LOG": "quiet", "MARGAY_REPORTS": "", "MARGAY_FORGIVE": forgiving, "MARGAY_FAULT_EXIT": ""}
    words = python(FAULT.replace("SECONDS", str(seconds)), env=environment)
    assert "out of bounds" in words and "program.py:8" in words and "in `stray`" in words, words


AUTOTUNED = """
import margay
margay.enable()
import torch, triton, triton.language as tl

asked = []
CONFIGS = [triton.Config({"BLOCK": n}, pre_hook=lambda arguments: asked.append(arguments["BLOCK"])) for n in (32, 64, 128)]

@triton.autotune(configs=CONFIGS, key=["n"], reset_to_zero=["total"])
@triton.jit
def add_up(x, total, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK > 32)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total, tl.sum(tl.load(x + at, at < n, 0), 0))

x, total = torch.ones(1000, device="cuda"), torch.zeros(1, device="cuda")
for n in (1000, 500):
    total.zero_()
    add_up[lambda options: (triton.cdiv(n, options["BLOCK"]),)](x, total, n)
    print(total.item(), end=" ")
print(*sorted(set(asked)), triton.testing.do_bench(lambda: None) >= 0)
"""


@pytest.mark.parametrize(("which", "blocks"), [("first", "32 64"), ("all", "32 64 128")])
def test_autotuning_takes_the_first_configuration_that_runs(python, which, blocks):
    words = python(AUTOTUNED, env={"MARGAY_AUTOTUNE": which}).split()
    assert words == ["1000.0", "500.0", *blocks.split(), "True"], words


def test_machine_code_is_that_of_nvidias_assembler():
    x = torch.ones(100, device="cuda")
    compiled = kernels.add_kernel[(1,)](x, x, torch.empty_like(x), 100, BLOCK=128)
    if not os.path.exists(os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin", "cuobjdump")):
        pytest.skip("this release of Triton has no disassembler")
    code = compiled.asm["sass"]
    assert "LDG" in code and "FADD" in code and "STG" in code, code
