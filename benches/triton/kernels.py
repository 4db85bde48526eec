#!/usr/bin/env python3
"""Triton kernels that are measured; writes softmax.ptx and matmul.ptx beside this file.

usage: pip install triton && python3 kernels.py
The launch needs: softmax: one CTA a row, matmul: M/64 x N/64 CTAs, 128 threads each, and the dynamic shared memory that is
printed. Parameters beyond those written here are Triton's own scratch pointers: null.
"""
import os
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(out, rows, n, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(rows + row * n + columns, mask=columns < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out + row * n + columns, e / tl.sum(e, 0), mask=columns < n)


@triton.jit
def matmul(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + depth)[None, :])
        y = tl.load(b + (k + depth)[:, None] * N + columns[None, :])
        sums += tl.dot(x, y)
    tl.store(c + rows[:, None] * N + columns[None, :], sums)


KERNELS = [
    (softmax, dict(out="*fp32", rows="*fp32", n="i32"), dict(BLOCK=1024)),
    (matmul, dict(a="*fp16", b="*fp16", c="*fp32", N="i32", K="i32"), dict(BM=64, BN=64, BK=32)),
]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    for fn, signature, constants in KERNELS:
        signature = dict(signature, **{name: "constexpr" for name in constants})
        source = ASTSource(fn=fn, signature=signature, constexprs=constants)
        compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32), options=dict(num_warps=4))
        # Lines of debug information name files of whoever ran this.
        lines = compiled.asm["ptx"].split("\t.section\t.debug_")[0].splitlines()
        lines = [l for l in lines if not l.lstrip().startswith((".loc", ".file")) and l.strip()]
        with open(os.path.join(here, fn.__name__ + ".ptx"), "w") as f:
            f.write(f"// By Triton {triton.__version__} from kernels.py, for sm_80.\n" + "\n".join(lines) + "\n")
        print(f"{fn.__name__}: {compiled.metadata.shared} bytes of dynamic shared memory")


if __name__ == "__main__":
    main()
