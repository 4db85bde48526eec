"""The kernels that are measured: how each is launched, and when its results count as right."""
import array, os
HERE = os.path.dirname(os.path.abspath(__file__))
BUFFER, NULL = object(), "0"


class Case:
    """`name` is that of natural.c, and of the kernel in the PTX and the OpenCL C unless `kernel` says another. `arguments` are those of
    the kernel: a BUFFER is written by natural.c. `repeats` launches are what one call in C does. `goal` is the ratio of margay over C
    that is asked for. Results may differ by `tolerance` (relative), and a part `strays` of them entirely."""

    def __init__(self, label, name, grid, block, arguments, kernel=None, repeats=1, goal=None, tolerance=1e-5, strays=0.0, ptx=None, shared=0, opencl=True):
        self.label, self.name, self.kernel, self.grid, self.block, self.arguments = label, name, kernel or name, grid, block, arguments
        self.repeats, self.goal, self.tolerance, self.strays, self.shared, self.opencl = repeats, goal, tolerance, strays, shared, opencl
        self.ptx = os.path.join(HERE, ptx or "kernels.ptx")

    def files(self, folder, out):
        """Arguments with the files of a folder for buffers; those that the kernel changes are written under names that begin with `out`."""
        for index, argument in enumerate(self.arguments):
            path = os.path.join(folder, f"{index}.npy")
            changed = os.path.exists(os.path.join(folder, f"want{index}.npy"))
            yield argument if argument is not BUFFER else path + (f":{os.path.join(folder, f'{out}{index}.npy')}" if changed else "")

    def wrong(self, folder, out):
        """What differs from natural.c's results; None if nothing does."""
        for index in range(len(self.arguments)):
            want = os.path.join(folder, f"want{index}.npy")
            if os.path.exists(want):
                why = difference(read(want), read(os.path.join(folder, f"{out}{index}.npy")), self)
                if why:
                    return f"argument {index}: {why}"
        return None


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    body = 10 + int.from_bytes(data[8:10], "little")
    kind = {b"<f4": "f", b"<i4": "i", b"<u4": "I", b"|u1": "B"}[data[data.index(b"'descr'"):].split(b"'")[3]]
    return array.array(kind, data[body:])


def difference(want, got, case):
    if want == got:
        return None
    far = lambda a, b: not abs(a - b) <= case.tolerance * max(abs(a), abs(b), 1e-3)
    bad = [i for i, (a, b) in enumerate(zip(want, got)) if a != b and far(a, b)]
    if len(want) == len(got) and len(bad) <= case.strays * len(want):
        return None
    first = bad[0] if bad else min(len(want), len(got))
    return f"{len(bad)} of {len(want)} differ, the first at {first}: {got[first]} instead of {want[first]}"


B = BUFFER
CASES = [
    Case("saxpy (memory)", "saxpy", "16384", "256", ["2.0", B, B, str(1 << 22)], goal=0.95),
    Case("saxpy (L2)", "saxpy_l2", "128", "256", ["2.0", B, B, str(1 << 15)], kernel="saxpy", repeats=16, goal=1.2),
    Case("sgemm", "sgemm", "16,16", "16,16", [B, B, B, "256"], goal=1.0),
    Case("n-body", "nbody", "8", "256", [B, B, "2048"], goal=0.13, tolerance=1e-3),
    # A pixel at the edge takes more or fewer steps by how products and sums are fused.
    Case("mandelbrot", "mandelbrot", "16,24", "32,16", [B, "512", "384", "256"], goal=0.1, strays=0.01),
    Case("reduction", "reduce", "4096", "256", [B, B], goal=1.8),
    Case("histogram, shared", "hist_shared", "64", "256", [B, B, str(1 << 22)], goal=1.5),
    Case("histogram, global", "hist_global", "64", "256", [B, B, str(1 << 22)], goal=4.0),
    Case("stencil", "stencil", "64,256", "32,8", [B, B, "2048", "2048"], goal=1.1),
    Case("struct by value", "struct_call", "256", "256", [B, "65536"], goal=0.08),
    Case("divergent fib", "fib_divergent", "64", "256", [B, "16384"], goal=1.5, opencl=False),
    Case("scan", "scan", "4096", "256", [B, B], goal=2.0),
    Case("bitonic sort", "bitonic", "256", "256", [B], goal=0.8),
    Case("transpose", "transpose", "64,64", "32,8", [B, B, "2048"], goal=0.6),
    Case("Black-Scholes", "black_scholes", "4096", "256", [B, B, B, B, str(1 << 20)], goal=0.25, tolerance=1e-3),
    Case("softmax (Triton)", "softmax", "1024", "128", [B, B, "1024", NULL, NULL], goal=0.25, ptx="../triton/softmax.ptx", shared=16, opencl=False),
    Case("matmul f16 (Triton)", "matmul", "4,4", "128", [B, B, B, "256", "256", NULL, NULL], goal=2.0, ptx="../triton/matmul.ptx", shared=16384, opencl=False),
]
