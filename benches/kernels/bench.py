#!/usr/bin/env python3
"""Times the kernels of cases.py on margay beside natural.c, and beside the OpenCL runtimes that are installed, interleaved in one run.

usage: bench.py MARGAY [--rounds R] [--only NAME] [--engine simd-full|simd|reference] [--threads N] [--cc clang-22] [--write FOLDER]
Every contender gets the same data, and its results must be those of C. A ratio is one least (or median) time over another; C and
OpenCL have one core. `--write` leaves results.md and results.svg in a folder.
OpenCL's platforms are found by the system's loader, and in .opencl, where `make bench-opencl` puts them.
"""
import argparse, json, math, os, shutil, subprocess, sys, tempfile
from cases import CASES
from picture import picture
HERE = os.path.dirname(os.path.abspath(__file__))
OPENCL, FETCHED = os.path.join(HERE, "../opencl/run.py"), os.path.join(HERE, "../../.opencl")
# A part of the platform's name, and what people call it.
PLATFORMS = {"Portable Computing Language": "PoCL", "Intel": "Intel OpenCL"}


class Failed(Exception):
    pass


def call(command, **how):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **how)
    if done.returncode:
        raise Failed(((done.stderr or done.stdout).strip().splitlines() or ["no reason given"])[0])
    return done.stdout.strip()


class C:
    def __init__(self, binary):
        self.name, self.binary = "C", binary

    def time(self, case, folder, rounds):
        least, median = map(float, call([self.binary, case.name, str(rounds)]).split())
        return least / case.repeats, median / case.repeats, 0


class Margay:
    def __init__(self, binary, engine, threads):
        self.name, self.binary, self.engine, self.threads = "margay", binary, engine, threads

    def run(self, case, arguments, rounds):
        command = [self.binary, "run", case.ptx, "--kernel", case.kernel, "--grid", case.grid, "--block", case.block, "--shared", str(case.shared)]
        command += ["--engine", self.engine, "--threads", str(self.threads), "--repeat", str(rounds), "--stats", "json"]
        return json.loads(call(command + [a for argument in arguments for a in ("--arg", argument)]).splitlines()[-1])

    def check(self, case, folder):
        self.run(case, case.files(folder, "margay"), 1)
        return case.wrong(folder, "margay")

    def time(self, case, folder, rounds):
        files = [a.partition(":")[0] for a in case.files(folder, "")]
        found = self.run(case, files, rounds)
        return found["kernel_ns_min"], found["kernel_ns_median"], found["compile_ns"]


class OpenCL:
    def __init__(self, platform):
        self.name, self.platform = PLATFORMS[platform], platform

    @staticmethod
    def environment():
        """One thread, and the runtimes that were fetched."""
        env = dict(os.environ, POCL_MAX_PTHREAD_COUNT="1", CL_CONFIG_CPU_TBB_NUM_WORKERS="1")
        if os.path.isdir(FETCHED):
            env.update(OCL_ICD_VENDORS=os.path.join(FETCHED, "vendors"))
            env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [os.path.join(FETCHED, "lib"), os.environ.get("LD_LIBRARY_PATH")]))
        return env

    @staticmethod
    def platforms():
        try:
            names = call([sys.executable, OPENCL, "--list"], env=OpenCL.environment()).splitlines()
        except Failed:
            names = []
        for part, name in PLATFORMS.items():
            if any(part in n for n in names):
                yield OpenCL(part)
            else:
                print(f"{name} is not installed: it is left out")

    def run(self, case, arguments, rounds):
        one_core = lambda: os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        command = [sys.executable, OPENCL, self.platform, case.kernel, case.grid, case.block, str(rounds), *arguments]
        return json.loads(call(command, env=self.environment(), preexec_fn=one_core).splitlines()[-1])

    def check(self, case, folder):
        self.run(case, case.files(folder, self.name), 1)
        return case.wrong(folder, self.name)

    def time(self, case, folder, rounds):
        files = [a.partition(":")[0] for a in case.files(folder, "")]
        found = self.run(case, files, rounds)
        return found["kernel_ns_min"], found["kernel_ns_median"], found["build_ns"]


def measure(case, c, others, rounds):
    """By contender: least and median nanoseconds of a launch, and of making the code; or why not."""
    with tempfile.TemporaryDirectory() as folder:
        call([c.binary, case.name, "files", folder])
        found, racing = {c.name: []}, [c]
        for other in others:
            if not case.opencl and isinstance(other, OpenCL):
                continue
            try:
                wrong = other.check(case, folder)
                if wrong:
                    raise Failed(f"wrong results: {wrong}")
                found[other.name] = []
                racing.append(other)
            except (Failed, subprocess.TimeoutExpired) as why:
                found[other.name] = str(why)
        for _ in range(2):  # interleaved: all of them, and all of them again
            for one in racing:
                found[one.name].append(one.time(case, folder, rounds))
    least = lambda times: tuple(min(t[i] for t in times) for i in range(3))
    return {name: times if isinstance(times, str) else least(times) for name, times in found.items()}


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(results, names):
    """Lines of cells: times in milliseconds, then ratios as least (median)."""
    yield ["kernel", "C, ms", "margay, ms", "margay / C", "goal"] + [f"{n} / margay" for n in names] + ["compile, ms"]
    ratios = {}
    for case, found in results:
        c, margay = found["C"], found["margay"]
        if isinstance(margay, str):
            yield [case.label, f"{c[0] / 1e6:.3f}", margay]
            continue

        def ratio(key, a, b):
            ratios.setdefault(key, []).append(a[0] / b[0])
            return f"{a[0] / b[0]:.2f} ({a[1] / b[1]:.2f})"

        def over(name):
            other = found.get(name)
            return "" if other is None else "failed" if isinstance(other, str) else ratio(name, other, margay)
        goal = "" if case.goal is None else f"{case.goal}" + ("" if margay[0] / c[0] <= case.goal else ", missed")
        yield [case.label, f"{c[0] / 1e6:.3f}", f"{margay[0] / 1e6:.3f}", ratio("margay", margay, c), goal, *map(over, names), f"{margay[2] / 1e6:.0f}"]
    geometric = lambda key: f"{mean(ratios[key]):.2f}" if key in ratios else ""
    yield ["geometric mean", "", "", geometric("margay"), "", *map(geometric, names), ""]


def processor():
    """The host's processor: figures depend on its vectors and caches."""
    lines = open("/proc/cpuinfo").read().splitlines() if os.path.exists("/proc/cpuinfo") else []
    about = dict(reversed([[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]))
    wide = "with" if "avx512f" in about.get("flags", "") else "without"
    return f"{about.get('model name', 'unknown processor')}, family {about.get('cpu family', '?')}, {wide} AVX-512"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("margay"), ap.add_argument("--rounds", type=int, default=9), ap.add_argument("--only", default="")
    ap.add_argument("--engine", default="simd-full"), ap.add_argument("--threads", type=int, default=1), ap.add_argument("--cc"), ap.add_argument("--write")
    a = ap.parse_args()
    cc = a.cc or next((c for c in ("clang-22", "clang", "gcc", "cc") if shutil.which(c)), None)
    if not cc:
        sys.exit("no C compiler found")
    with tempfile.TemporaryDirectory() as tmp:
        binary = os.path.join(tmp, "natural")
        subprocess.run([cc, "-O3", "-march=native", os.path.join(HERE, "natural.c"), "-o", binary, "-lm"], check=True)
        opencl = list(OpenCL.platforms())
        head = (f"{processor()}. Natural C by {cc} -O3 -march=native; margay's {a.engine} engine, {a.threads} thread(s); one core for all others. "
                f"Ratios of least times of {2 * a.rounds} rounds, of medians in brackets.")
        print(head)
        results, names = [], [o.name for o in opencl]
        for case in CASES:
            if a.only in case.label or a.only == case.name:
                found = measure(case, C(binary), [Margay(a.margay, a.engine, a.threads), *opencl], a.rounds)
                results.append((case, found))
                for name, why in found.items():
                    if isinstance(why, str):
                        print(f"{case.label}: {name}: {why}")
                print("  ".join(f"{cell:>18}" for cell in list(table(results[-1:], names))[1]), flush=True)
    rows = list(table(results, names))
    print("\n" + "\n".join("  ".join(f"{cell:>18}" for cell in row) for row in (rows[0], rows[-1])))
    if a.write:
        with open(os.path.join(a.write, "results.md"), "w") as f:
            mark = lambda row: "| " + " | ".join(row + [""] * (len(rows[0]) - len(row))) + " |\n"
            f.write(head + "\n\n" + mark(rows[0]) + "|---" * len(rows[0]) + "|\n" + "".join(map(mark, rows[1:])))
        with open(os.path.join(a.write, "results.svg"), "w") as f:
            f.write(picture(results, ["margay", *names]))


if __name__ == "__main__":
    main()
