"""Triton kernels of our own: what people write who write kernels."""

import triton
import triton.language as tl


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


@triton.jit
def softmax_kernel(x, out, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * stride + at, inside, other=-float("inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * stride + at, powers / tl.sum(powers, 0), inside)


@triton.jit
def matmul_kernel(a, b, c, m, n, k, am, ak, bk, bn, cm, cn, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        at = start + inner
        left = tl.load(a + rows[:, None] * am + at[None, :] * ak, (rows[:, None] < m) & (at[None, :] < k), other=0.0)
        right = tl.load(b + at[:, None] * bk + columns[None, :] * bn, (at[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + rows[:, None] * cm + columns[None, :] * cn, total, (rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    kept = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(kept, tl.load(x + at, inside) / (1 - p), 0.0), inside)


@triton.jit
def layer_norm_kernel(x, weight, bias, out, mean, rstd, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, inside, other=0.0).to(tl.float32)
    average = tl.sum(values, 0) / columns
    centered = tl.where(inside, values - average, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centered * centered, 0) / columns + eps)
    tl.store(mean + row, average)
    tl.store(rstd + row, scale)
    w, b = tl.load(weight + at, inside).to(tl.float32), tl.load(bias + at, inside).to(tl.float32)
    tl.store(out + row * columns + at, centered * scale * w + b, inside)


@triton.jit
def layer_norm_backward_kernel(x, weight, grad, mean, rstd, grad_x, grad_w, grad_b, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    dy = tl.load(grad + row * columns + at, inside, other=0.0).to(tl.float32)
    scale = tl.load(rstd + row)
    normal = (tl.load(x + row * columns + at, inside, other=0.0).to(tl.float32) - tl.load(mean + row)) * scale
    normal = tl.where(inside, normal, 0.0)
    wdy = dy * tl.load(weight + at, inside, other=0.0).to(tl.float32)
    c1, c2 = tl.sum(normal * wdy, 0) / columns, tl.sum(wdy, 0) / columns
    tl.store(grad_x + row * columns + at, (wdy - (normal * c1 + c2)) * scale, inside)
    tl.atomic_add(grad_w + at, dy * normal, inside)
    tl.atomic_add(grad_b + at, dy, inside)


@triton.jit
def attention_kernel(q, k, v, out, lse, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr):
    start = tl.program_id(0) * M
    base = tl.program_id(1).to(tl.int64) * n * D
    rows, inner = start + tl.arange(0, M), tl.arange(0, D)
    queries = tl.load(q + base + rows[:, None] * D + inner[None, :], rows[:, None] < n, other=0.0)
    best = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    result = tl.zeros((M, D), tl.float32)
    end = tl.minimum(start + M, n) if CAUSAL else n
    for begin in range(0, end, N):
        columns = begin + tl.arange(0, N)
        keys = tl.load(k + base + columns[None, :] * D + inner[:, None], columns[None, :] < n, other=0.0)
        scores = tl.dot(queries, keys, input_precision="ieee") * scale
        seen = columns[None, :] < n
        if CAUSAL:
            seen = seen & (rows[:, None] >= columns[None, :])
        scores = tl.where(seen, scores, -float("inf"))
        highest = tl.maximum(best, tl.max(scores, 1))
        powers = tl.exp(scores - highest[:, None])
        shrink = tl.exp(best - highest)
        total = total * shrink + tl.sum(powers, 1)
        values = tl.load(v + base + columns[:, None] * D + inner[None, :], columns[:, None] < n, other=0.0)
        result = result * shrink[:, None] + tl.dot(powers.to(values.dtype), values, input_precision="ieee")
        best = highest
    tl.store(out + base + rows[:, None] * D + inner[None, :], result / total[:, None], rows[:, None] < n)
    tl.store(lse + tl.program_id(1) * n + rows, best + tl.log(total), rows < n)


@triton.jit
def attention_backward_kernel(
    q, k, v, grad, lse, delta, grad_q, grad_k, grad_v, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr
):
    start = tl.program_id(0) * N
    head = tl.program_id(1)
    base = head.to(tl.int64) * n * D
    columns, inner = start + tl.arange(0, N), tl.arange(0, D)
    inside = columns[:, None] < n
    keys = tl.load(k + base + columns[:, None] * D + inner[None, :], inside, other=0.0)
    values = tl.load(v + base + columns[:, None] * D + inner[None, :], inside, other=0.0)
    dk, dv = tl.zeros((N, D), tl.float32), tl.zeros((N, D), tl.float32)
    first = (start // M) * M if CAUSAL else 0
    for begin in range(first, n, M):
        rows = begin + tl.arange(0, M)
        here = rows[:, None] < n
        queries = tl.load(q + base + rows[:, None] * D + inner[None, :], here, other=0.0)
        dout = tl.load(grad + base + rows[:, None] * D + inner[None, :], here, other=0.0)
        sums = tl.load(lse + head * n + rows, rows < n, other=0.0)
        scores = tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale
        seen = here & (columns[None, :] < n)
        if CAUSAL:
            seen = seen & (rows[:, None] >= columns[None, :])
        powers = tl.where(seen, tl.exp(scores - sums[:, None]), 0.0)
        dv += tl.dot(tl.trans(powers).to(dout.dtype), dout, input_precision="ieee")
        dp = tl.dot(dout, tl.trans(values), input_precision="ieee")
        ds = powers * (dp - tl.load(delta + head * n + rows, rows < n, other=0.0)[:, None]) * scale
        dk += tl.dot(tl.trans(ds).to(queries.dtype), queries, input_precision="ieee")
        dq = tl.dot(ds.to(keys.dtype), keys, input_precision="ieee")
        tl.atomic_add(grad_q + base + rows[:, None] * D + inner[None, :], dq, here)
    tl.store(grad_k + base + columns[:, None] * D + inner[None, :], dk, inside)
    tl.store(grad_v + base + columns[:, None] * D + inner[None, :], dv, inside)


@triton.jit
def grouped_matmul_kernel(addresses, sizes, groups, PROGRAMS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Products of several pairs of row-major matrices of float32; `addresses` holds a, b, c and `sizes` m, n, k of each."""
    tile = tl.program_id(0)
    before = 0
    for group in range(groups):
        m, n, k = tl.load(sizes + group * 3), tl.load(sizes + group * 3 + 1), tl.load(sizes + group * 3 + 2)
        across = tl.cdiv(n, N)
        tiles = tl.cdiv(m, M) * across
        while tile >= before and tile < before + tiles:
            a = tl.load(addresses + group * 3).to(tl.pointer_type(tl.float32))
            b = tl.load(addresses + group * 3 + 1).to(tl.pointer_type(tl.float32))
            c = tl.load(addresses + group * 3 + 2).to(tl.pointer_type(tl.float32))
            rows = (tile - before) // across * M + tl.arange(0, M)
            columns = (tile - before) % across * N + tl.arange(0, N)
            total = tl.zeros((M, N), tl.float32)
            for start in range(0, k, K):
                at = start + tl.arange(0, K)
                left = tl.load(a + rows[:, None] * k + at[None, :], (rows[:, None] < m) & (at[None, :] < k), other=0.0)
                right = tl.load(b + at[:, None] * n + columns[None, :], (at[:, None] < k) & (columns[None, :] < n), other=0.0)
                total = tl.dot(left, right, total, input_precision="ieee")
            tl.store(c + rows[:, None] * n + columns[None, :], total, (rows[:, None] < m) & (columns[None, :] < n))
            tile += PROGRAMS
        before += tiles
