#!/usr/bin/env python3
"""bench.py WHEEL: what margay's Python package costs, in an environment that has the wheel: sizes, `import margay`, a first kernel with an
empty and with a warm cache, and a launch. Times are medians over fresh processes."""

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


def median(program, cache, clear=False):
    times = []
    for _ in range(RUNS):
        if clear:
            for entry in os.scandir(cache):
                os.unlink(entry.path) if entry.is_file() else subprocess.run(["rm", "-rf", entry.path], check=True)
        done = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "MARGAY_CACHE_DIR": cache}, capture_output=True, text=True, check=True
        )
        times.append(float(done.stdout))
    return statistics.median(times) * 1e3


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


main()
