#!/usr/bin/env python3
"""What checks cost: launches without checks and with them, on both engines, as ratios to compiled code without checks in the same run.

usage: bench.py MARGAY [--rounds R] [--only NAME]
A launch's time is the processor time of a process with several launches, less that of a process with one, by the number of launches more; the
least of the rounds, which are interleaved. All use one host thread, as checked launches do. `bytes` is the shadow memory of `--check races` on compiled code for each byte of the kernel's buffers: the difference of
the processes' peaks. A finding in these kernels is a bug.
"""
import argparse, os, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
PTX = os.path.join(HERE, "kernels.ptx")
M = 1 << 20


class Case:
    def __init__(self, kernel, grid, block, *arguments):
        self.kernel, self.grid, self.block, self.arguments = kernel, grid, block, arguments

    def bytes(self):
        """Size of the buffers: their elements have 4 bytes."""
        counts = [a.split("[")[1].split("]")[0] for a in self.arguments if "[" in a]
        return sum(4 * int(n) for n in counts)


CASES = [
    Case("tiled", "8,8", "32,32", "f32[65536]=rand:1", "f32[65536]=rand:2", "f32[65536]=zeros", "256"),
    Case("histogram", "64", "256", f"u32[{M}]=rand:1", "u32[256]=zeros", str(M)),
    Case("reduction", "256", "256", f"f32[{M}]=rand:1", "f32[256]=zeros", str(M)),
    Case("scan", "1024", "256", "s32[262144]=iota", "s32[262144]=zeros", "262144"),
    Case("stencil", "32,128", "32,8", f"f32[{M}]=rand:1", f"f32[{M}]=zeros", "1024", "1024"),
    Case("warpsum", "256", "256", f"f32[{M}]=rand:1", "f32[1]=zeros", str(M)),
    Case("paths", "16,16", "16,16", "s32[65536]=iota", "256", "0"),
    Case("invert", "4096", "256", f"u32[{M // 4}]=rand:1", str(M)),
    Case("particles", "1024", "256", f"f32[{M + M // 2}]=rand:1", str(M // 4), "0.1"),
    Case("permute", "1024", "256", f"u32[{M // 4}]=iota", f"u32[{M // 4}]=zeros", str(M // 4)),
    Case("radix", "1024", "256", f"u32[{M // 4}]=iota", f"u32[{M // 4}]=zeros", str(M // 4)),
    Case("increments", "1024", "256", f"u32[{M // 4}]=iota", str(M // 4)),
    Case("sparse", "256", "256", f"u32[{M}]=rand:1", f"f32[{M // 8}]=zeros", str(M // 16)),
    Case("counts", "64", "256", f"u32[{M}]=rand:1", "u32[256]=zeros", str(M)),
    Case("places", "1024", "256", f"u32[{M // 4}]=rand:1", "u32[256]=zeros", f"u32[{M // 4}]=zeros", str(M // 4)),
    Case("compact", "1024", "256", f"u32[{M // 4}]=rand:1", f"u32[{M // 4}]=zeros", "u32[1]=zeros", str(M // 4)),
    Case("insert", "256", "256", f"u32[{M // 16}]=rand:1", f"u32[{M // 8}]=zeros", str(M // 16)),
]

# Name, engine, checks, launches.
WAYS = [
    ("simd", "simd-full", None, 200),
    ("sync", "simd-full", "sync", 100),
    ("memory", "simd-full", "memory", 100),
    ("races", "simd-full", "races", 30),
    ("reference", "reference", None, 4),
    ("ref. races", "reference", "races", 3),
    ("ref. all", "reference", "all", 2),
]


def run(margay, case, engine, checks, launches):
    """Processor time in milliseconds and peak of the memory in bytes of a process."""
    command = [margay, "run", PTX, "--kernel", case.kernel, "--grid", case.grid, "--block", case.block]
    command += ["--engine", engine, "--threads", "1", "--repeat", str(launches)]
    command += ["--check", checks] if checks else []
    for argument in case.arguments:
        command += ["--arg", argument]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command)}: {errors}")
    return (usage.ru_utime + usage.ru_stime) * 1e3, usage.ru_maxrss * 1024


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("margay")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--only")
    options = options.parse_args()
    print(f"{'':10} {'simd':>9} " + " ".join(f"{name:>18}" for name, *_ in WAYS[1:]) + f" {'bytes':>6}")
    for case in CASES:
        if options.only not in (None, case.kernel):
            continue
        best, peaks = {}, {}
        for turn in range(options.rounds + 1):
            for name, engine, checks, more in WAYS:
                for launches in (1, 1 + more):
                    time, peak = run(options.margay, case, engine, checks, launches)
                    # The first turn compiles.
                    if turn > 0:
                        best[name, launches] = min(time, best.get((name, launches), time))
                        peaks[name] = min(peak, peaks.get(name, peak))
        times = {name: max(best[name, 1 + more] - best[name, 1], 0.01) / more for name, _, _, more in WAYS}
        plain = times["simd"]
        cells = (f"{times[name]:9.2f} ms {times[name] / plain:5.1f}x" for name, *_ in WAYS[1:])
        shadow = (peaks["races"] - peaks["simd"]) / case.bytes()
        print(f"{case.kernel:10} {plain:6.2f} ms " + " ".join(cells) + f" {shadow:6.1f}", flush=True)


main()
