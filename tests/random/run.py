#!/usr/bin/env python3
"""Compiles random CUDA C++ programs (generate.py) with nvcc and clang, runs them under `margay exec` on every engine, and compares
what they print with the same text compiled for the host.

    run.py MARGAY TOOLKIT [--from SEED] [--count N] [--keep FOLDER]

TOOLKIT is a folder with NVIDIA's `bin`, `include` and `lib`. Exits with 1 if a result is wrong; the programs concerned are kept."""

import argparse
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

from generate import Program

HERE = pathlib.Path(__file__).resolve().parent
ENGINES = ["reference", "simd", "tiered"]


def complete_clang():
    """Clang, if what links its CUDA programs is there too (on Debian in the package clang-tools-22)."""
    for suffix in ("-22", ""):
        clang = shutil.which(f"clang++{suffix}")
        if clang and shutil.which(f"clang-linker-wrapper{suffix}"):
            return clang
    return None


def compilers(seed, toolkit, folder):
    """The command lines of two compilers at random settings: (name, arguments)."""
    pick = random.Random(seed)
    arch = pick.choice([75, 80, 86, 90, 100])
    nvcc = [toolkit / "bin/nvcc", "-w", "--fmad=false", f"-gencode=arch=compute_{arch},code=compute_{arch}", f"-L{toolkit}/lib"]
    nvcc += pick.choice([[], [], ["-G"], ["-Xcicc", "-O1"], ["-rdc=true"]])
    yield f"nvcc compute_{arch} {' '.join(nvcc[5:])}", nvcc
    clang = complete_clang()
    if clang:
        # Clang's headers want one of cuRAND's, which the programs do not use.
        (folder / "stub").mkdir(exist_ok=True)
        (folder / "stub/curand_mtgp32_kernel.h").touch()
        level = pick.choice(["-O0", "-O1", "-O2", "-O3"])
        target = pick.choice([75, 80, 90])
        runtime = next(toolkit.glob("lib/libcudart.so.*"))
        yield f"clang {level} sm_{target}", [
            *(clang, "-w", level, "-ffp-contract=off", f"--cuda-path={toolkit}"),
            *(f"--cuda-gpu-arch=sm_{target}", f"--cuda-include-ptx=sm_{target}"),
            *("-isystem", folder / "stub", "-Xlinker", runtime),
        ]


def run(seed, arguments, toolkit, folder):
    """What is wrong with the program of a seed: sentences."""
    source = folder / f"{seed}.cu"
    source.write_text(Program(seed).whole())
    host = folder / f"{seed}.host"
    cc = shutil.which("clang++-22") or shutil.which("clang++") or "g++"
    subprocess.run(
        [cc, "-w", "-DHOST", "-O1", "-fwrapv", "-ffp-contract=off", f"-I{HERE}", "-x", "c++", source, "-o", host], check=True
    )
    try:
        expected = subprocess.run([host], capture_output=True, text=True, check=True, timeout=20).stdout
    except subprocess.TimeoutExpired:
        return [f"seed {seed}: the program does not end on the host"]
    wrong = []
    for name, command in compilers(seed, toolkit, folder):
        program = folder / f"{seed}.{pathlib.Path(command[0]).name}"
        built = subprocess.run([*command, source, "-o", program], capture_output=True, text=True)
        if built.returncode:
            wrong.append(f"seed {seed}: {name}: {(built.stdout + built.stderr).strip().splitlines()[:1]}")
            continue
        for engine in ENGINES:
            environment = dict(os.environ, MARGAY_CACHE_DIR=str(folder / "cache"))
            try:
                done = subprocess.run(
                    [arguments.margay, "exec", "--engine", engine, "--", program], capture_output=True, text=True, timeout=120, env=environment
                )
            except subprocess.TimeoutExpired:
                wrong.append(f"seed {seed}: {name}: {engine}: does not end")
                continue
            if done.stdout != expected or done.returncode:
                first = next((i for i, pair in enumerate(zip(done.stdout.split(), expected.split())) if pair[0] != pair[1]), None)
                wrong.append(f"seed {seed}: {name}: {engine}: word {first} differs (exit code {done.returncode}) {done.stderr.strip()[:300]}")
        program.unlink()
    if not wrong:
        source.unlink()
    host.unlink()
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("margay", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("toolkit", type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the programs (default: a new one)")
    arguments = parser.parse_args()
    folder = arguments.keep or pathlib.Path(tempfile.mkdtemp(prefix="margay-random-"))
    folder.mkdir(parents=True, exist_ok=True)
    if not complete_clang():
        print("only nvcc is used: there is no clang++ with clang-linker-wrapper")
    failed = 0
    for seed in range(arguments.first, arguments.first + arguments.count):
        wrong = run(seed, arguments, arguments.toolkit, folder)
        failed += bool(wrong)
        for sentence in wrong:
            print(sentence, flush=True)
    print(f"{arguments.count - failed} of {arguments.count} programs are right" + (f"; the others are in {folder}" if failed else ""))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
