"""Runs torch's own operator database on device `cuda` against `cpu`.

    margay exec -- python python/tools/op_db.py --out results.jsonl [--ops add,sum] [--dtypes float32,int64] [--grad] [--part 0/4]
    python python/tools/op_db.py --report results.jsonl

For every operator and type: torch's sample inputs, the operator on `cpu`, and the operator on `cuda` with copies of the same inputs and
the same seed. One line of JSON for each operator and type. An operator that ends the process is noted as crashed and the run goes on.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import signal
import subprocess
import sys
import time

# Operators that take their arguments behind the first on the CPU, whatever the device of the first is.
ARGUMENTS_ON_CPU = ("tensor_split",)
# Operators some of whose samples name no device and have no tensors.
DEFAULT_DEVICE = ("arange", "linspace", "logspace")
# Operators whose samples cannot be compared, or that take their operands where CUDA's own do not.
UNDEFINED = {
    **dict.fromkeys(
        ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"), "what they yield is not defined"
    ),
    **dict.fromkeys(
        (
            "jiterator_unary",
            "jiterator_binary",
            "jiterator_4inputs_with_extra_args",
            "jiterator_binary_return_by_ref",
            "jiterator_2inputs_2outputs",
        ),
        "for CUDA only: tests/torch/test_device.py",
    ),
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu": "the CPU's by name",
    **dict.fromkeys(("native_batch_norm", "_native_batch_norm_legit"), "CUDA's yields the running statistics: tests/torch/test_device.py"),
    **dict.fromkeys(("histogram", "histogramdd", "sparse.mm"), "torch has no such operator for CUDA"),
}
LIMIT = 120  # seconds for the samples of one operator and type


def compare(torch, a, b, path="result"):
    """How two results differ: `None`, `close`, or words."""
    if isinstance(a, torch.Tensor):
        if not isinstance(b, torch.Tensor):
            return f"{path}: {type(b).__name__} instead of a tensor"
        if b.device.type != "cuda" and a.device.type == "cpu" and a.numel() and a.dim():
            return f"{path}: on {b.device}"
        if a.dtype == torch.complex32:
            a = a.to(torch.complex64)
            b = b.to(torch.complex64) if b.dtype == torch.complex32 else b
        if a.dtype != b.dtype or a.shape != b.shape or a.layout != b.layout:
            return f"{path}: {b.dtype} {tuple(b.shape)} {b.layout} instead of {a.dtype} {tuple(a.shape)} {a.layout}"
        a, b = a.detach().cpu(), b.detach().cpu()
        if a.layout != torch.strided:
            a, b = a.to_dense(), b.to_dense()
        if a.is_quantized:
            a, b = a.int_repr(), b.int_repr()
        if torch.equal(a.resolve_conj(), b.resolve_conj()):
            return None
        if a.dtype.is_floating_point or a.dtype.is_complex:
            if ((a == b) | ((a != a) & (b != b))).all():
                return None
            if torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True):
                return "close"
        return f"{path}: values differ"
    if isinstance(a, (list, tuple)):
        if not isinstance(b, (list, tuple)) or len(a) != len(b):
            return f"{path}: another number of results"
        found = [compare(torch, x, y, f"{path}[{i}]") for i, (x, y) in enumerate(zip(a, b, strict=True))]
        wrong = [f for f in found if f not in (None, "close")]
        return wrong[0] if wrong else ("close" if "close" in found else None)
    if isinstance(a, float) and a != a and b != b:
        return None
    return None if a == b else f"{path}: {b!r} instead of {a!r}"


def run_operator(torch, op, dtype, options):
    """Runs all samples: (status, number of samples, words)."""
    from torch.utils._pytree import tree_map

    def moved(value):
        def move(x):
            if isinstance(x, torch.Tensor):
                y = copied(x.detach(), "cuda") if x.device.type == "cpu" else x
                return y.requires_grad_(x.requires_grad) if x.requires_grad else y
            if isinstance(x, torch.device):
                return torch.device("cuda") if x.type == "cpu" else x
            return "cuda" if x == "cpu" else x

        return tree_map(move, value)

    def copied(x, device):
        """A copy on a device, of all the storage that a view lies in: `as_strided` reaches beyond the view."""
        if x.layout is torch.strided and not x.is_quantized and not x.is_nested and not x.is_conj() and not x.is_neg():
            count = x.untyped_storage().nbytes() // x.itemsize
            if count != x.numel() and not x.untyped_storage().nbytes() % x.itemsize:
                whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage(), 0, (count,), (1,))
                return whole.to(device, copy=True).as_strided(x.size(), x.stride(), x.storage_offset())
        return x.to(device, copy=True)

    def fresh(value):
        return tree_map(lambda x: copied(x.detach(), x.device).requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x, value)

    if op.name in UNDEFINED:
        return "skipped", 0, UNDEFINED[op.name]
    grad = options.grad
    needs_grad = grad and op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    if grad and not needs_grad:
        return "skipped", 0, "no gradient"
    count, worst = 0, None
    try:
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=needs_grad))
    except Exception as error:
        return "skipped", 0, f"no samples: {error}"[:200]
    step = max(1, -(-len(samples) // options.samples)) if options.samples else 1
    for sample in samples[::step]:
        given = (sample.input, sample.args, sample.kwargs)
        gpu = (moved(sample.input), sample.args, sample.kwargs) if op.name in ARGUMENTS_ON_CPU else moved(given)

        def call(values):
            torch.manual_seed(17)
            result = op(values[0], *values[1], **values[2])
            if sample.output_process_fn_grad is not None and needs_grad:
                result = sample.output_process_fn_grad(result)
            if not needs_grad:
                return result
            leaves = [t for t in torch.utils._pytree.tree_leaves(values) if isinstance(t, torch.Tensor) and t.requires_grad]
            outputs = [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
            if not leaves or not outputs:
                return result
            seeds = [torch.ones_like(t) for t in outputs]
            return list(torch.autograd.grad(outputs, leaves, seeds, allow_unused=True))

        try:
            expected = call(fresh(given) if not needs_grad else given)
        except Exception:
            continue  # not even the CPU does it
        count += 1
        try:
            with torch.device("cuda") if op.name in DEFAULT_DEVICE else contextlib.nullcontext():
                actual = call(gpu)
        except Exception as error:
            return "error", count, f"{type(error).__name__}: {error}"[:600]
        how = compare(torch, expected, actual)
        if how not in (None, "close"):
            return "different", count, how
        worst = worst or how
    if count == 0:
        return "skipped", 0, "no sample runs on the CPU"
    return ("close" if worst else "equal"), count, ""


def label_of(op, name, grad):
    """How an operator and a type are called in the results."""
    variant = f".{op.variant_test_name}" if op.variant_test_name else ""
    return f"{op.name}{variant}:{name}{':grad' if grad else ''}"


def worker(options):
    """Runs what has no result yet. The process may end in the middle of it."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db

    import margay.torch

    margay.torch.install()
    torch.set_num_threads(1)
    done, _ = read(options.out)
    part, parts = map(int, options.part.split("/"))
    chosen = [op for op in op_db if not options.ops or op.name in options.ops.split(",")]

    def late(signum, frame):
        raise TimeoutError(f"more than {LIMIT} s")

    signal.signal(signal.SIGALRM, late)
    with open(options.out, "a") as out:
        for op in chosen[part::parts]:
            for name in options.dtypes.split(","):
                dtype = getattr(torch, name)
                label = label_of(op, name, options.grad)
                if label in done or dtype not in op.supported_dtypes("cpu"):
                    continue
                print(json.dumps({"begin": label}), file=out, flush=True)
                begin = time.time()
                signal.alarm(LIMIT)
                try:
                    status, samples, words = run_operator(torch, op, dtype, options)
                except Exception as error:
                    status, samples, words = "error", 0, f"{type(error).__name__}: {error}"[:600]
                signal.alarm(0)
                row = {"op": label, "status": status, "samples": samples, "words": words, "seconds": round(time.time() - begin, 2)}
                print(json.dumps(row), file=out, flush=True)


def read(path):
    """The rows of a file, and the label of an operator that began and did not end."""
    rows, begun = {}, None
    if os.path.exists(path):
        for line in open(path):
            row = json.loads(line)
            if "begin" in row:
                begun = row["begin"]
            else:
                rows[row["op"]] = row
                begun = None
    return rows, begun


def report(path):
    rows, _ = read(path)
    count = collections.Counter(row["status"] for row in rows.values())
    ran = sum(n for status, n in count.items() if status != "skipped")
    good = count["equal"] + count["close"]
    print(f"{len(rows)} operators and types, {ran} ran: {count['equal']} equal, {count['close']} close, {good / max(ran, 1):.1%}; {dict(count)}")
    for label, row in sorted(rows.items()):
        if row["status"] not in ("equal", "close", "skipped"):
            print(f"{label}: {row['status']}: {row['words']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out")
    parser.add_argument("--ops", default="")
    parser.add_argument("--dtypes", default="float32,int64")
    parser.add_argument("--grad", action="store_true")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--report")
    parser.add_argument("--samples", type=int, default=0, help="at most so many for an operator and type")
    parser.add_argument("--worker", action="store_true")
    options = parser.parse_args()
    if options.report:
        return report(options.report)
    if options.worker:
        return worker(options)
    while subprocess.run([sys.executable, *sys.argv, "--worker"], check=False).returncode != 0:
        _, begun = read(options.out)
        if begun is None:
            sys.exit("the run ended before an operator began")
        row = {"op": begun, "status": "crashed", "samples": 0, "words": "the process ended", "seconds": 0}
        with open(options.out, "a") as out:
            print(json.dumps(row), file=out)
    report(options.out)


if __name__ == "__main__":
    main()
