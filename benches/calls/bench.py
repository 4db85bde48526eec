#!/usr/bin/env python3
"""Nanoseconds of a thread's call: direct, a struct by value, recursion, through a pointer; for each ABI and engine, beside C.

usage: bench.py MARGAY [--count N] [--rounds R] [--cc clang-22]
One warp makes the calls; the C functions are kept from being inlined. Results must equal C's.
"""
import argparse, json, os, shutil, subprocess, sys, tempfile
HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ["direct", "structure", "recursion", "indirect"]
# (engine, ABI, calls of a thread as a part of --count)
WAYS = [("simd", abi, 1) for abi in ("simd", "ptx", "sm", "sysv", "legacy")] + [("reference", abi, 16) for abi in ("ptx", "sm", "sysv", "simd", "legacy")]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("margay"), ap.add_argument("--count", type=int, default=1 << 17), ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--cc")
    a = ap.parse_args()
    cc = a.cc or next((c for c in ("clang-22", "clang", "gcc", "cc") if shutil.which(c)), None)
    if not cc:
        sys.exit("no C compiler found")
    with tempfile.TemporaryDirectory() as tmp:
        binary = os.path.join(tmp, "calls")
        subprocess.run([cc, "-O3", "-march=native", os.path.join(HERE, "calls.c"), "-o", binary], check=True)
        c_run = lambda kind, count: subprocess.run([binary, kind, str(count)], capture_output=True, text=True, check=True).stdout.splitlines()
        print(f"ns for one call of one thread (32 threads of a warp call at once), least of {a.rounds} rounds; C by {cc} -O3, not inlined")
        print(f"{'engine, ABI':18}" + "".join(f"{k:>12}" for k in KINDS))
        print(f"{'C':18}" + "".join(f"{float(c_run(k, a.count)[1]):12.2f}" for k in KINDS))
        for engine, abi, part in WAYS:
            count, cells = a.count // part, []
            for kind in KINDS:
                out = os.path.join(tmp, "out.npy")
                command = [a.margay, "run", os.path.join(HERE, "calls.ptx"), "--kernel", kind, "--block", "32", "--engine", engine, "--abi", abi,
                           "--arg", f"u32[32]=zeros:{out}", "--arg", str(count), "--threads", "1", "--repeat", str(a.rounds), "--stats", "json"]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    why = (done.stderr or done.stdout).strip().splitlines()[0]
                    cells.append("no plan" if "E0" in why or "ABI" in why else "failed")
                    continue
                with open(out, "rb") as f:
                    values = memoryview(f.read()[-128:]).cast("I").tolist()
                if values != [int(v) for v in c_run(kind, count)[0].split()]:
                    sys.exit(f"{kind} under {engine}, {abi}: the results differ from C's")
                ns = json.loads(done.stdout.strip().splitlines()[-1])["kernel_ns_min"]
                cells.append(f"{ns / 32 / count:.2f}")
            print(f"{engine + ', ' + abi:18}" + "".join(f"{c:>12}" for c in cells), flush=True)


if __name__ == "__main__":
    main()
