#!/usr/bin/env python3
"""Times the kernels of kernels.ptx on the SIMD engine beside natural.c, interleaved in one run, and prints the ratios.

usage: bench.py MARGAY [--rounds R] [--only NAME] [--engine simd|reference] [--threads N] [--cc clang-22]
A ratio is margay's least kernel time over C's least time on one core; below 1 margay is faster.
"""
import argparse, json, os, shutil, subprocess, sys, tempfile
HERE = os.path.dirname(os.path.abspath(__file__))
F, I = "f32[{}]=rand:{}", "i32[{}]=rand:{}"
# name: (C's name, kernel, grid, block, arguments, launches that one C call stands for, target of the ratio)
CASES = {
    "saxpy (memory)": ("saxpy", "saxpy", "16384", "256", ["2.0", F.format(1 << 22, 1), F.format(1 << 22, 2), str(1 << 22)], 1, 1.0),
    "saxpy (L2)": ("saxpy_l2", "saxpy", "128", "256", ["2.0", F.format(1 << 15, 1), F.format(1 << 15, 2), str(1 << 15)], 16, 1.5),
    "sgemm": ("sgemm", "sgemm", "16,16", "16,16", [F.format(1 << 16, 1), F.format(1 << 16, 2), F.format(1 << 16, 3), "256"], 1, 1.3),
    "n-body": ("nbody", "nbody", "8", "256", [F.format(8192, 1), F.format(6144, 2), "2048"], 1, 1.1),
    "mandelbrot": ("mandelbrot", "mandelbrot", "16,24", "32,16", [f"i32[{512 * 384}]=zeros", "512", "384", "256"], 1, 0.2),
    "reduction": ("reduce", "reduce", "4096", "256", [F.format(1 << 20, 1), F.format(4096, 2)], 1, 3.0),
    "histogram, shared": ("hist_shared", "hist_shared", "64", "256", [f"u8[{1 << 22}]=rand:1", "u32[256]=zeros", str(1 << 22)], 1, 2.5),
    "histogram, global": ("hist_global", "hist_global", "64", "256", [f"u8[{1 << 22}]=rand:1", "u32[256]=zeros", str(1 << 22)], 1, 10.0),
    "stencil": ("stencil", "stencil", "64,256", "32,8", [F.format(1 << 22, 1), F.format(1 << 22, 2), "2048", "2048"], 1, 1.6),
    "struct by value": ("struct_call", "struct_call", "256", "256", ["f32[65536]=zeros", "65536"], 1, 0.4),
    "divergent fib": ("fib_divergent", "fib_divergent", "64", "256", ["i32[16384]=zeros", "16384"], 1, 2.5),
    "scan": ("scan", "scan", "4096", "256", [I.format(1 << 20, 1), "i32[1048576]=zeros"], 1, None),
    "bitonic sort": ("bitonic", "bitonic", "256", "256", [I.format(1 << 17, 1)], 1, None),
    "transpose": ("transpose", "transpose", "64,64", "32,8", [F.format(1 << 22, 1), F.format(1 << 22, 2), "2048"], 1, None),
    "Black-Scholes": ("black_scholes", "black_scholes", "4096", "256", [F.format(1 << 20, s) for s in (1, 2, 3, 4)] + [str(1 << 20)], 1, None),
}


def natural(binary, name, rounds):
    least, median = subprocess.run([binary, name, str(rounds)], capture_output=True, text=True, check=True).stdout.split()
    return float(least), float(median)


def margay(binary, case, engine, threads, rounds):
    _, kernel, grid, block, args, _, _ = case
    command = [binary, "run", os.path.join(HERE, "kernels.ptx"), "--kernel", kernel, "--grid", grid, "--block", block, "--engine", engine]
    command += ["--threads", str(threads), "--repeat", str(rounds), "--stats", "json"]
    for a in args:
        command += ["--arg", a]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[0])
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("margay"), ap.add_argument("--rounds", type=int, default=9), ap.add_argument("--only", default="")
    ap.add_argument("--engine", default="simd"), ap.add_argument("--threads", type=int, default=1), ap.add_argument("--cc")
    a = ap.parse_args()
    cc = a.cc or next((c for c in ("clang-22", "clang", "gcc", "cc") if shutil.which(c)), None)
    if not cc:
        sys.exit("no C compiler found")
    with tempfile.TemporaryDirectory() as tmp:
        binary = os.path.join(tmp, "natural")
        subprocess.run([cc, "-O3", "-march=native", os.path.join(HERE, "natural.c"), "-o", binary, "-lm"], check=True)
        print(f"natural C by {cc} -O3 -march=native, one core; {a.engine} engine, {a.threads} thread(s); least of {2 * a.rounds} rounds, milliseconds")
        print(f"{'kernel':20} {'C':>9} {'margay':>9} {'ratio':>7} {'median':>7} {'goal':>5}  {'compile':>8}")
        product, count = 1.0, 0
        for label, case in CASES.items():
            if a.only not in label and a.only != case[0]:
                continue
            c, m = [], []
            try:
                for _ in range(2):  # interleaved: C, margay, C, margay
                    c.append(natural(binary, case[0], a.rounds))
                    m.append(margay(a.margay, case, a.engine, a.threads, a.rounds))
            except RuntimeError as why:
                print(f"{label:20} {why}")
                continue
            least_c, least_m = min(x[0] for x in c), min(x["kernel_ns_min"] for x in m) * case[5]
            median_c, median_m = min(x[1] for x in c), min(x["kernel_ns_median"] for x in m) * case[5]
            ratio, goal = least_m / least_c, case[6]
            product, count = product * ratio, count + 1
            mark = "" if goal is None or ratio <= goal else "  missed"
            print(f"{label:20} {least_c / 1e6:9.3f} {least_m / 1e6:9.3f} {ratio:7.2f} {median_m / median_c:7.2f} {goal or '':>5}  "
                  f"{m[0]['compile_ns'] / 1e6:6.1f} ms{mark}", flush=True)
        if count:
            print(f"geometric mean of {count} ratios: {product ** (1 / count):.2f}")


if __name__ == "__main__":
    main()
