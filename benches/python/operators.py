#!/usr/bin/env python3
"""What each operator of torch's database (`op_db`) costs on `cuda` more than on `cpu`, in an environment that has torch and the wheel:

    margay exec -- python benches/python/operators.py [--grad] [--ops add,sum] [--out results.jsonl] [--limit 30]

For the first two samples of float32 whose tensors are small: the least time of 50 calls on `cuda` less that on `cpu`, and the number of
operators of the device `cuda` in a call. With `--grad`: a call and its backward pass, on one thread; otherwise torch also wakes its
thread for the device, once for each backward pass. Lists what costs more than `--limit` microseconds.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

import margay.torch
from margay.torch import account

CALLS, ROUNDS = 50, 3
SMALL = 4096  # elements
SAMPLES = 2
LONG = 0.005  # seconds on the CPU, from which a few microseconds are lost among the differences between two runs


def moved(value, device):
    """The arguments on a device, with gradients where they had them."""

    def move(x):
        if isinstance(x, torch.Tensor):
            return x.detach().to(device, copy=True).requires_grad_(x.requires_grad)
        if isinstance(x, torch.device):
            return torch.device(device)
        return device if isinstance(x, str) and x == "cpu" else x

    return tree_map(move, value)


def call_of(op, sample, device, grad):
    """A function that calls an operator, and computes its derivative if it has one; `None` if one is wanted and there is none."""
    first, args, kwargs = moved((sample.input, sample.args, sample.kwargs), device)
    leaves = [t for t in tree_leaves((first, args, kwargs)) if isinstance(t, torch.Tensor) and t.requires_grad]

    def outputs_of(result):
        if sample.output_process_fn_grad is not None:
            result = sample.output_process_fn_grad(result)
        return [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]

    if not grad:
        return lambda: op(first, *args, **kwargs)
    outputs = outputs_of(op(first, *args, **kwargs))
    if not outputs or not leaves:
        return None
    seeds = [torch.ones_like(t) for t in outputs]

    def both():
        torch.autograd.backward(outputs_of(op(first, *args, **kwargs)), seeds)
        for leaf in leaves:
            leaf.grad = None

    return both


def least(call, long=False):
    found = float("inf")
    for _ in range(5 if long else CALLS):
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()  # on both devices, so it cancels out
        found = min(found, time.perf_counter() - begin)
    return found


def cost(op, sample, grad):
    """Microseconds on the CPU and more on the device, and the operators of the device in a call."""
    calls = [call_of(op, sample, device, grad) for device in ("cpu", "cuda")]
    if None in calls:
        return None
    for call in calls:
        for _ in range(2):
            call()
    account.reset()
    calls[1]()
    inside = {name: number for name, (number, _) in account.operators().items()}
    long = least(calls[0], True) > LONG
    times = [[least(call, long) for call in calls] for _ in range(ROUNDS)]
    cpu, cuda = map(min, zip(*times, strict=True))
    return {"cpu": round(cpu * 1e6, 1), "more": round((cuda - cpu) * 1e6, 1), "inside": inside}


def late(signum, frame):
    raise TimeoutError


def measure(op, grad):
    rows = []
    samples = op.sample_inputs("cpu", torch.float32, requires_grad=grad)
    for sample in samples:
        tensors = [t for t in tree_leaves((sample.input, sample.args, sample.kwargs)) if isinstance(t, torch.Tensor)]
        if any(t.numel() > SMALL for t in tensors):
            continue
        try:
            row = cost(op, sample, grad)
        except TimeoutError:
            raise
        except Exception as error:
            row = {"error": f"{type(error).__name__}: {error}"[:200]}
        if row is not None:
            rows.append(row)
        if len(rows) == SAMPLES:
            break
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grad", action="store_true")
    parser.add_argument("--ops", default="")
    parser.add_argument("--out")
    parser.add_argument("--limit", type=float, default=30)
    options = parser.parse_args()
    margay.torch.install()
    torch.set_num_threads(1)
    torch.autograd.set_multithreading_enabled(False)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, late)
    out = open(options.out, "w") if options.out else None
    rows = []
    for op in op_db:
        if options.ops and op.name not in options.ops.split(",") or torch.float32 not in op.supported_dtypes("cpu"):
            continue
        if options.grad and not (op.supports_autograd and torch.float32 in op.supported_backward_dtypes("cpu")):
            continue
        signal.alarm(60)
        try:
            found = measure(op, options.grad)
        except Exception as error:
            found = [{"error": f"{type(error).__name__}: {error}"[:200]}]
        signal.alarm(0)
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        for row in found:
            rows.append({"op": name, **row})
            if out:
                print(json.dumps(rows[-1]), file=out, flush=True)
    report(rows, options.limit)


def report(rows, limit):
    worst = {}
    for row in rows:
        if "more" in row and row["more"] >= worst.get(row["op"], {"more": -1e9})["more"]:
            worst[row["op"]] = row
    above = sorted((row for row in worst.values() if row["more"] > limit), key=lambda row: -row["more"])
    costs = sorted(row["more"] for row in worst.values())
    middle = costs[len(costs) // 2] if costs else 0
    print(f"{len(worst)} operators; half cost at most {middle:.0f} us more than on the CPU; {len(above)} more than {limit:.0f} us:")
    for row in above:
        inside = ", ".join(f"{number} {name}" if number > 1 else name for name, number in row["inside"].items())
        print(f"{row['more']:8.1f} us over {row['cpu']:8.1f}  {row['op']}: {sum(row['inside'].values())} operators: {inside}")


if __name__ == "__main__":
    main()
