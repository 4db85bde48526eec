#!/usr/bin/env python3
"""What the first run costs: each kernel on the reference engine, with an empty cache, and with a warm one, in processes of their own.

usage: bench.py MARGAY [--rounds R] [--only NAME] [--launches N]
Times are those of whole launches with what they wait for (`compile_ns` and all `kernel_ns` of `--stats json`), the least of the rounds, which
are interleaved. `cold` should be at most 1.2 times the better of `reference` and of `warm` plus what the light tier takes to compile,
and never more than `reference` where that takes less than 20 ms. Every engine must leave the same bytes in the buffers. Compile times by PTX
instruction are those of `--engine simd` (light) and `--engine simd-full`, with an empty cache, without loading LLVM; lines are those of LLVM IR as
the light tier's emitter writes it, helpers included.
"""
import argparse, hashlib, json, os, re, resource, shutil, subprocess, sys, tempfile
HERE = os.path.dirname(os.path.abspath(__file__))
PTX = os.path.join(HERE, "kernels.ptx")


class Case:
    def __init__(self, kernel, grid, block, *arguments):
        self.kernel, self.grid, self.block, self.arguments = kernel, grid, block, arguments


# `out` arguments are compared. Sizes are those of small programs: the reference engine takes some milliseconds to some seconds.
CASES = [
    Case("product_f32", "16,16", "16,16", "f32[65536]=rand:1", "f32[65536]=rand:2", "f32[65536]=zeros:out", "256"),
    Case("product_f64", "16,16", "16,16", "f64[65536]=rand:1", "f64[65536]=rand:2", "f64[65536]=zeros:out", "256"),
    Case("product_i32", "8,8", "16,16", "s32[16384]=iota", "s32[16384]=iota", "s32[16384]=zeros:out", "128"),
    Case("reduce", "64", "256", "u32[1048576]=iota", "u32[1]=zeros:out", "1048576"),
    Case("scan", "1024", "256", "u32[1048576]=iota", "u32[1048576]=zeros:out"),
    Case("sort", "256", "256", "u32[131072]=rand:3:out", "u32[131072]=iota:out"),
    Case("groups", "1024", "256", "u32[262144]=rand:4", "u32[7]=zeros:out", "u32[262144]=zeros:out", "262144"),
    Case("tree", "64", "128", "f32[32768]=rand:5", "f32[16384]=rand:6", "f32[16384]=zeros:out", "4096", "0.3"),
    Case("attention", "16", "64", "f32[32768]=rand:7", "f32[32768]=rand:8", "f32[32768]=rand:9", "f32[32768]=zeros:out", "1024", "0.17"),
    Case("large", "256", "128", "u32[32768]=iota", "u32[32768]=zeros:out", "10"),
    Case("scan", "4", "256", "u32[4096]=iota", "u32[4096]=zeros:out"),
    Case("large", "2", "128", "u32[256]=iota", "u32[256]=zeros:out", "1"),
]


def instructions(kernel):
    """PTX instructions in the body of a kernel: statements that are neither directives nor labels."""
    text = open(PTX).read()
    body = re.search(r"\.entry " + kernel + r"\(.*?\)\s*\{(.*?)\n\}", text, re.S)[1]
    lines = (line.strip() for line in body.splitlines())
    return sum(1 for line in lines if line.endswith(";") and not line.startswith((".", "//")))


class Process:
    """One process; what it took, and a number for what it left."""

    def __init__(self, margay, case, engine, cache, launches):
        with tempfile.TemporaryDirectory() as folder:
            arguments, outs = [], []
            for i, argument in enumerate(case.arguments):
                if argument.endswith(":out"):
                    outs.append(os.path.join(folder, f"{i}.npy"))
                    argument = argument[:-3] + outs[-1]
                arguments += ["--arg", argument]
            command = [margay, "run", PTX, "--kernel", case.kernel, "--grid", case.grid, "--block", case.block, "--engine", engine]
            command += ["--stats", "json", "--repeat", str(launches)] + arguments
            used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) * 1e3
            before = used()
            done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, MARGAY_CACHE_DIR=cache))
            self.cpu = used() - before
            if done.returncode:
                sys.exit(f"{case.kernel} on {engine}: {done.stderr.strip()}")
            self.left = hashlib.sha256(b"".join(open(out, "rb").read() for out in outs)).hexdigest()
        self.stats = json.loads(done.stdout.splitlines()[-1])
        # What a launch waits for does not include check and lowering, which are the same for all.
        steps = self.stats["compile_steps_ns"]
        self.waited = sum(steps.values()) / 1e6
        self.time = self.waited + self.stats["kernel_ns_median"] * self.stats["launches"] / 1e6
        parts = {**self.stats["background_steps_ns"]}
        for step, time in steps.items():
            parts[step] = parts.get(step, 0) + time
        self.compiled = sum(time for step, time in parts.items() if step not in ("look up", "link", "load LLVM", "store", "prepare")) / 1e6


def lines(margay, case):
    """Lines of LLVM IR that the light tier's emitter writes for a kernel, without declarations, labels and braces."""
    command = [margay, "ir", PTX, "--kernel", case.kernel, "--stage", "llvm", "--tier", "light", "--block", case.block]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return sum(1 for line in text.splitlines() if line.startswith("  "))


def least(processes, value):
    return min(map(value, processes))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("margay")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only")
    parser.add_argument("--launches", type=int, default=1, help="launches of each process")
    options = parser.parse_args()
    margay = os.path.abspath(options.margay)
    print(f"{'kernel':14}{'grid':>8}{'reference':>11}{'cold':>9}{'warm':>9}{'light':>9}{'full':>9}   cold/best  cpu cold/ref   ms an instruction: light, full; lines of the light tier")
    worst = 0
    for case in CASES:
        if options.only and options.only != case.kernel:
            continue
        runs = {name: [] for name in ("reference", "cold", "warm", "simd", "simd-full")}
        scratch = tempfile.mkdtemp()
        for number in range(options.rounds):
            def process(name, engine, cache):
                runs[name].append(Process(margay, case, engine, os.path.join(scratch, cache), options.launches))
            process("reference", "reference", "none")
            process("cold", "tiered", f"cold{number}")
            process("simd", "simd", f"light{number}")
            process("simd-full", "simd-full", f"full{number}")
            process("warm", "tiered", f"light{number}")
        shutil.rmtree(scratch)
        left = {p.left for all in runs.values() for p in all}
        if len(left) != 1:
            sys.exit(f"{case.kernel}: engines leave different bytes")
        time = {name: least(all, lambda p: p.time) for name, all in runs.items()}
        light, full = (least(runs[name], lambda p: p.compiled if name == "simd-full" else p.waited) for name in ("simd", "simd-full"))
        count = instructions(case.kernel)
        # With `--engine simd` the full tier may have begun in the background: only what the launch waited for is the light tier's.
        each = [least(runs["simd"], lambda p: sum(p.stats["compile_steps_ns"].get(s, 0) for s in ("emit", "parse", "optimize", "generate")) / 1e6) / count, full / count]
        best = min(time["reference"], time["warm"] + light)
        ratio = time["cold"] / best
        worst = max(worst, ratio)
        cpu = least(runs["cold"], lambda p: p.cpu) / least(runs["reference"], lambda p: p.cpu)
        print(f"{case.kernel:14}{case.grid:>8}{time['reference']:9.1f}ms{time['cold']:7.1f}ms{time['warm']:7.1f}ms{light:7.1f}ms{full:7.1f}ms"
              f"{ratio:12.2f}{cpu:14.2f}   {count} instructions: {each[0]:.2f}, {each[1]:.2f}; {lines(margay, case) / count:.1f}")
    print(f"the largest ratio of cold to the best: {worst:.2f}")


main()
