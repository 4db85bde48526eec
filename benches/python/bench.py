#!/usr/bin/env python3
"""bench.py WHEEL: what margay's Python package costs, in an environment that has the wheel: sizes, `import margay`, a first kernel with an
empty and with a warm cache, and a launch. Times are medians over fresh processes. Where torch and Triton are installed too: the first
operator on the device `cuda`, the first Triton kernel, and what an operator costs more than on the CPU, as the least of a few processes."""

import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import zipfile

RUNS = 9
KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y) {
    .reg .pred %out; .reg .b32 %i, %n, %t; .reg .f32 %a, %u, %v; .reg .b64 %x, %y, %o;
    mov.u32 %i, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %i, %n, %t;
    ld.param.u32 %n, [n]; setp.ge.u32 %out, %i, %n; @%out ret;
    ld.param.f32 %a, [a]; ld.param.u64 %x, [x]; ld.param.u64 %y, [y];
    mul.wide.u32 %o, %i, 4; add.u64 %x, %x, %o; add.u64 %y, %y, %o;
    ld.global.f32 %u, [%x]; ld.global.f32 %v, [%y]; fma.rn.f32 %v, %a, %u, %v; st.global.f32 [%y], %v; ret;
}
"""
BEGIN = "import time; t = time.perf_counter()\nimport margay\n"
ALL = BEGIN + "for name in margay.__all__: getattr(margay, name)\n"
END = "\nprint(time.perf_counter() - t)"
FIRST = (
    f"import margay, array, time\nmargay.Module, margay._margay\nx, y = array.array('f', [1] * 1000), array.array('f', [1] * 1000)\nt = time.perf_counter()\n"
    f"k = margay.Module({KERNEL!r}, engine=ENGINE).kernel()\nk[8, 128](1000, 2.0, x, y)" + END
)
LAUNCH = (
    f"import margay, array, time\nmargay.Module, margay._margay\nx, y = array.array('f', [1] * 1000), array.array('f', [1] * 1000)\n"
    f"k = margay.Module({KERNEL!r}, engine='simd').kernel()\nk[8, 128](1000, 0.0, x, y)\nt = time.perf_counter()\n"
    "for _ in range(1000): k[8, 128](1000, 0.0, x, y)\nprint((time.perf_counter() - t) / 1000)"
)

TORCH = "import margay, time\nmargay.enable()\nimport torch\n"
TORCH_FIRST = TORCH + "t = time.perf_counter()\n(torch.arange(8., device='cuda') + 1).tolist()" + END
# The least of many rounds, since other processes disturb some.
TORCH_OVERHEAD = TORCH + """
F = torch.nn.functional
def least(compute):
    found = []
    for _ in range(200):
        t = time.perf_counter()
        for _ in range(50): compute()
        found.append((time.perf_counter() - t) / 50)
    return min(found)
def on(device):
    x, rows, weight = torch.ones(16, device=device), torch.ones(8, 8, device=device), torch.ones(8, device=device)
    image, filters = torch.ones(1, 3, 8, 8, device=device), torch.ones(4, 3, 3, 3, device=device)
    mean, classes = torch.ones(3, device=device), torch.zeros(8, dtype=torch.long, device=device)
    heads = torch.ones(1, 2, 8, 8, device=device)
    q = torch.ones(1, 2, 8, 8, device=device, requires_grad=True)
    attended, total = F.scaled_dot_product_attention(q, q, q), rows.clone().requires_grad_().relu()
    ones, more = torch.ones_like(attended), torch.ones_like(total)
    return {
        'add': lambda: x.add(1), 'mm': lambda: rows @ rows, 'layer_norm': lambda: F.layer_norm(rows, (8,), weight, weight),
        'conv2d': lambda: F.conv2d(image, filters), 'batch_norm': lambda: F.batch_norm(image, mean, mean, mean, mean, True),
        'dropout': lambda: F.dropout(rows), 'cross_entropy': lambda: F.cross_entropy(rows, classes),
        'attention': lambda: F.scaled_dot_product_attention(heads, heads, heads),
        # Called directly: once for each `backward()`, torch also wakes its thread for the device.
        'relu backward': lambda: total.grad_fn(more),
        'attention backward': lambda: attended.grad_fn(ones),
    }
torch.set_num_threads(1)
print(*(least(a) - least(b) for a, b in zip(on('cuda').values(), on('cpu').values())))
"""
OPERATORS = "add", "mm", "layer_norm", "conv2d", "batch_norm", "dropout", "cross_entropy", "attention", "relu backward", "attention backward"
TRITON = (
    TORCH + "import triton, triton.language as tl\n@triton.jit\ndef scale(x, n, B: tl.constexpr):\n    i = tl.program_id(0) * B + tl.arange(0, B)\n"
    "    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)\nx = torch.ones(1000, device='cuda')\n"
    "t = time.perf_counter()\nscale[(8,)](x, 1000, B=128)\nassert x.sum().item() == 2000" + END
)


def times(program, cache, clear=False, runs=RUNS):
    """Milliseconds that each of some fresh processes prints as seconds: one number, or a tuple of them."""
    found = []
    for _ in range(runs):
        if clear:
            for entry in os.scandir(cache):
                os.unlink(entry.path) if entry.is_file() else subprocess.run(["rm", "-rf", entry.path], check=True)
        # Triton reads the source of a kernel from its file.
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(program)
            file.flush()
            caches = {"MARGAY_CACHE_DIR": cache, "TRITON_CACHE_DIR": os.path.join(cache, "triton")}
            done = subprocess.run([sys.executable, file.name], env={**os.environ, **caches}, capture_output=True, text=True, check=True)
        printed = tuple(float(word) * 1e3 for word in done.stdout.split())
        found.append(printed if len(printed) > 1 else printed[0])
    return found


def median(program, cache, clear=False):
    return statistics.median(times(program, cache, clear))


def least(program, cache, clear=False):
    found = times(program, cache, clear, runs=3)
    return tuple(map(min, zip(*found))) if isinstance(found[0], tuple) else min(found)


def main():
    if len(sys.argv) > 1:
        wheel = sys.argv[1]
        installed = sum(info.file_size for info in zipfile.ZipFile(wheel).infolist())
        print(f"wheel: {os.path.getsize(wheel) / 1e6:.1f} MB, installed {installed / 1e6:.1f} MB")
    with tempfile.TemporaryDirectory() as cache:
        median(BEGIN + END, cache)
        print(f"import margay: {median(BEGIN + END, cache):.1f} ms, with every name of it {median(ALL + END, cache):.0f} ms")
        for engine in ("tiered", "simd"):
            program = FIRST.replace("ENGINE", repr(engine))
            cold = median(program, cache, clear=True)
            print(f"first kernel, engine {engine}: {cold:.1f} ms with an empty cache, {median(program, cache):.1f} ms with a warm one")
        print(f"a launch: {median(LAUNCH, cache) * 1e3:.0f} us")
        if importlib.util.find_spec("torch"):
            costs = least(TORCH_OVERHEAD, cache)
            print(f"torch: first operator {least(TORCH_FIRST, cache):.0f} ms")
            words = ", ".join(f"{name} {cost * 1e3:.1f} us" for name, cost in zip(OPERATORS, costs, strict=True))
            print(f"over the same operator of the CPU: {words}")
        if importlib.util.find_spec("torch") and importlib.util.find_spec("triton"):
            cold = least(TRITON, cache, clear=True)
            print(f"first Triton kernel: {cold:.0f} ms with empty caches, {least(TRITON, cache):.0f} ms with warm ones")


main()
