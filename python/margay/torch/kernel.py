"""Kernels for the `cuda` device, built from torch's kernels for the `cpu` device.

For every operator, a Python function is generated from its schema. It makes aliases of the CUDA arguments, calls the operator on them, and
turns the results into CUDA tensors:

    aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor

    def kernel(a0, a1, **more):
        with disable():
            if graphs: return record(name, alone(), (a0, a1), {**more})
            d = a0.get_device()
            ...
            r = call(dense(a0), dense(a1), **more)
            return adopt(r, d, (a0, a1))

Arguments that are written to (`Tensor(a!)`) are returned themselves. The dispatcher omits arguments with default values, so the
function does too. All is in one function, because calls of Python functions are much of what a small operator costs.
"""

from __future__ import annotations

import functools
import types
from functools import partial
from time import perf_counter_ns

import torch

from margay.torch import account, capture, direct, driver, memory, mixed, narrow, random, refused, sparse, wide

_TENSOR = ("Tensor", "Optional[Tensor]")
_TENSORS = ("List[Tensor]", "List[Optional[Tensor]]", "Optional[List[Tensor]]", "Optional[List[Optional[Tensor]]]", "List[List[Tensor]]")
_DEVICE = ("Device", "Optional[Device]")
_GENERATOR = ("Generator", "Optional[Generator]")


def schema_of(name: str):
    """Returns the schema of an operator by its full name, such as `aten::add.Tensor`."""
    base, _, overload = name.partition(".")
    return torch._C._get_schema(base, overload)


def overload_of(name: str):
    """Returns the operator in `torch.ops` by its full name."""
    base, _, overload = name.partition(".")
    space, _, base = base.partition("::")
    return getattr(getattr(getattr(torch.ops, space), base), overload or "default")


class _Argument:
    """What the code generator needs to know of an argument."""

    def __init__(self, index, argument):
        kind = str(argument.type)
        self.name = argument.name
        self.kwarg_only = argument.kwarg_only
        self.variable = f"a{index}"
        self.single = kind in _TENSOR
        self.many = kind in _TENSORS
        self.optional = kind == "Optional[Tensor]"
        self.device = kind in _DEVICE
        self.generator = kind in _GENERATOR
        self.has_default = argument.has_default_value()
        self.default = argument.default_value if self.has_default else None
        alias = argument.alias_info
        self.written = alias is not None and alias.is_write
        self.sets = frozenset(alias.before_set) if alias is not None else frozenset()
        self.out = argument.is_out

    @property
    def named(self):
        return self.single or self.many or self.device or self.generator


def source(schema, tags=(), dense=True, direct=False, raw=None, alone=False, refuses=False):
    """Returns the source of an operator's kernel, and the values of its names in addition to those of this file.

    `raw` is what `memory.on_device` notes of the function that computes the operator. With `alone`: the kernel that a graph records. With
    `refuses`: CUDA's kernel takes not all types that the CPU's does.
    """
    arguments = [_Argument(i, a) for i, a in enumerate(schema.arguments)]
    positional = [a for a in arguments if not a.kwarg_only]
    last = max((i for i, a in enumerate(positional) if a.named), default=-1)
    leading, options = positional[: last + 1], [a for a in arguments if a.kwarg_only and a.named]
    values = {}
    parameters = []
    for a in leading:
        if a.has_default:
            values[f"default_{a.variable}"] = a.default
            parameters.append(f"{a.variable}=default_{a.variable}")
        else:
            parameters.append(a.variable)
    # What else there may be, which carries no tensor, goes through as it is.
    rest = ["*rest"] if len(leading) < len(positional) else []
    more = ["**more"] if any(a.kwarg_only and not a.named for a in arguments) else []
    parameters += rest or ["*"] if options else rest
    # Keyword arguments arrive by name.
    for a in options:
        values[f"default_{a.variable}"] = a.default
        parameters.append(f"{a.name}=default_{a.variable}" if a.has_default else a.name)
    parameters += more
    lines = [f"def kernel({', '.join(parameters)}):"]
    lines += [f"    {a.variable} = {a.name}" for a in options]
    passed = "".join(f"{v}, " for v in [a.variable for a in leading] + rest)
    named = ", ".join([f"'{a.name}': {a.variable}" for a in options] + more)
    lines.append("    with disable():")
    if not alone:
        lines.append(f"        if graphs: return record(name, alone(), ({passed}), {{{named}}})")

    tensors = [a for a in leading + options if a.single]
    lists = [a for a in leading + options if a.many]
    devices = [a for a in leading + options if a.device]
    generators = [a for a in leading + options if a.generator]
    body = []
    # Which device: that of the first CUDA tensor.
    names = ", ".join([a.variable for a in tensors] + [f"*flat({a.variable})" for a in lists])
    wanted = devices[0].variable if devices else "None"
    if tensors:
        first = tensors[0].variable
        body.append("try:")
        body.append(f"    d = {first}.get_device()")
        body.append("except AttributeError:  # a number, or nothing")
        body.append("    d = -1")
        body.append("own = d >= 0")
        body.append(f"if d < 0: d = device_of(({names},), {wanted})")
        if refuses:
            operands = "".join(f"{a.variable}, " for a in tensors if not a.out)
            body.append(f"if own and {first}.dtype in refused: refuse(name, [t for t in ({operands}) if t is None or isinstance(t, Tensor)])")
    else:
        body.append(f"d = device_of(({names}{',' if names else ''}), {wanted})")
    body.append("synchronize(d)")
    for i, a in enumerate(tensors):
        v, how = a.variable, f"{'exact' if a.out else 'take_written' if a.written else 'take'}(name, {a.variable}, d)"
        if dense and not a.out:
            # Mostly, the device is that of the first tensor, so this one is on it.
            there = "own" if i == 0 else f"isinstance({v}, Tensor) and {v}.get_device() == d"
            how = f"dense({v}) if {there} else {how}"
            if i > 0:  # also of those that are not optional: torch passes undefined tensors
                how = f"None if {v} is None else {how}"
        if raw and a.name in raw:
            how = v
        body.append(f"{_passed(a)} = {how}")
    for a in lists:
        v, x = a.variable, a.variable.replace("a", "x")
        how = f"exact_list(name, {v}, d)" if a.out else f"list_of(name, {v}, d{', True' if a.written else ''})"
        body.append(f"{x} = {how}")
    if direct and leading and leading[0].single and not options:
        operands = "".join(f"{a.variable}, " for a in leading)
        aliases = "".join(f"{_passed(a)}, " for a in leading)
        body.append(f"if isinstance(a0, Tensor) and a0.numel() >= LARGE{' and not rest' if rest else ''}:")
        body.append(f"    r = into(({operands}), ({aliases}), {'more' if more else '{}'}, d)")
        body.append("    if r is not None: return r")
    if generators:
        body.append(f"g = shadow({generators[0].variable}, d)")
    implicit = not generators and torch.Tag.nondeterministic_seeded in tags
    body.append("begin = clock()")
    body.append("try:")
    bound = "call" if raw is None else "partial(call, d)"
    given = [_passed(a) for a in leading] + rest
    words = [f"{a.name}={_passed(a)}" for a in options] + more
    plain = f"r = call({', '.join(([] if raw is None else ['d']) + given + words)})"
    if implicit:
        # Attention draws numbers only for dropout.
        chance = next((i for i, a in enumerate(positional) if a.name == "dropout_p"), -1) - len(leading)
        if chance >= 0:
            body.append(f"    if {'(rest[{0}] if len(rest) > {0} else False)'.format(chance)}:")
            body += ["        with seeded(d):", f"            {plain}", "    else:", f"        {plain}"]
        else:
            body += ["    with seeded(d):", f"        {plain}"]
    else:
        body.append(f"    {plain}")
    outs = [a for a in arguments if a.out]
    body.append("except Exception as error:")
    named = ", ".join([f"'{a.name}': {_passed(a)}" for a in options] + more)
    attempt = f"again(name, {bound}, error, ({''.join(g + ', ' for g in given)}), {{{named}}}"
    if outs:
        grown = "".join(f"{_passed(a)}, " for a in outs)
        body.append(f"    r, ({grown}) = {attempt}, {tuple(a.name for a in outs)!r})")
    else:
        body.append(f"    r = {attempt})")
    body.append("count[1] += clock() - begin; count[0] += 1")
    if generators:
        body.append(f"advance({generators[0].variable}, d, g)")
    if not dense:
        body += [f"write_back({a.variable}, {_passed(a)})" for a in tensors if a.written]
        outs = []
    body += _returns(schema, arguments, outs, tensors, lists)
    lines += ["        " + line for line in body]
    return "\n".join(lines) + "\n", values


def _passed(a):
    if a.single or a.many:
        return a.variable.replace("a", "x")
    if a.device:
        return "cpu"
    if a.generator:
        return "g"
    return a.variable


def _returns(schema, arguments, outs, tensors, lists):
    """Returns the lines that turn the CPU operator's result `r` into CUDA tensors."""
    owners = [a.variable for a in tensors if not a.out] + [f"*flat({a.variable})" for a in lists if not a.out]
    owners = "(" + "".join(f"{o}, " for o in owners) + ")"
    lines = []
    if len(schema.returns) > 1:
        lines.append(f"owners = {owners}")
        owners = "owners"
    for a in outs:
        how = "finish_out_list" if a.many else "finish_out"
        lines.append(f"{how}({a.variable}, {a.variable.replace('a', 'x')})")
    if not schema.returns:
        return [*lines, "return None"]
    values = []
    for i, returned in enumerate(schema.returns):
        kind = str(returned.type)
        part = "r" if len(schema.returns) == 1 else f"r[{i}]"
        alias = returned.alias_info
        same = None
        if alias is not None and alias.is_write:
            same = next((a for a in arguments if a.written and a.sets & frozenset(alias.before_set)), None)
        if same is not None:
            values.append(same.variable)
        elif kind == "Tensor":
            values.append(f"adopt({part}, d, {owners})")
        elif kind in _TENSOR:
            values.append(f"None if {part} is None else adopt({part}, d, {owners})")
        elif kind in _TENSORS:
            values.append(f"adopt_list({part}, d, {owners})")
        else:
            values.append(part)
    return [*lines, "return " + ", ".join(values)]


def device_of(tensors, wanted):
    """Returns the index of the CUDA device on which an operator runs."""
    for tensor in tensors:
        if getattr(tensor, "is_cuda", False):
            return tensor.get_device()
    if wanted is not None and wanted.index is not None:
        return wanted.index
    return torch.cuda.current_device()


def dense_list(name, tensors, d, written=False):
    """`list_of` for the dispatch key `CUDA`, whose lists contain dense tensors only."""
    try:
        return [memory.dense(t) if t.get_device() == d else take_any(name, t, d, True, written) for t in tensors]
    except (AttributeError, TypeError):  # no list, or something else than a tensor in it
        return list_of(name, tensors, d, written)


def list_of(name, tensors, d, written=False):
    if tensors is None:
        return None
    return [
        t if t is None else list_of(name, t, d, written) if isinstance(t, list) else take_any(name, t, d, True, written) for t in tensors
    ]


def flat(values):
    """The tensors of a list, and of lists in it."""
    for value in values or ():
        if isinstance(value, list):
            yield from flat(value)
        else:
            yield value


def adopt_list(results, d, owners):
    return [adopt_list(r, d, owners) if isinstance(r, list) else memory.adopt(r, d, owners) for r in results]


def exact_list(name, tensors, d):
    return [exact(name, t, d) for t in tensors]


def exact(name, tensor, d):
    return memory.exact(tensor) if tensor.get_device() == d else mixed.foreign(name, tensor, d, written=True)


def take(name, tensor, d):
    """Returns what an operator on device `d` receives for an argument: an alias of a tensor; numbers and `None` unchanged."""
    try:
        if tensor.get_device() == d:
            return memory.dense(tensor)
    except AttributeError:
        return tensor
    return mixed.foreign(name, tensor, d)


def take_written(name, tensor, d):
    """`take` of an argument that the operator changes."""
    return take_any(name, tensor, d, written=True)


def take_written_alone(name, tensor, d):
    if isinstance(tensor, torch.Tensor) and tensor.layout is not torch.strided and tensor.get_device() == d:
        return sparse.writable(tensor)
    return take_alone(name, tensor, d, written=True)


def emptied(name, tensor, d):
    """`exact` for kernels of layouts that are not dense."""
    if tensor.layout is not torch.strided and tensor.get_device() == d:
        return sparse.emptied(tensor)
    return take_alone(name, tensor, d, written=True)


def _extent(tensor):
    """The extent of a tensor from its first to its last element, in elements."""
    return 1 + sum((n - 1) * step for n, step in zip(tensor.size(), tensor.stride(), strict=True)) if tensor.numel() else 0


def finish_out(out, result):
    """Copies the sizes and elements of an alias to its `out=` argument."""
    if result.data_ptr() != out.data_ptr() or out.numel() == 0:
        out.resize_(result.size())
        driver.synchronize(out.get_device())  # torch enqueues a copy of the elements that it had
        capture.will_write(out)
        if out.stride() != result.stride() and _extent(result) == result.numel():
            out.as_strided_(result.size(), result.stride())
        if out.numel():
            memory.alias(out).copy_(result)
    elif result.size() != out.size() or result.stride() != out.stride():
        out.as_strided_(result.size(), result.stride(), result.storage_offset())


def finish_out_list(outs, results):
    for out, result in zip(outs, results, strict=True):
        finish_out(out, result)


def take_alone(name, tensor, d, written=False):
    """`take` for kernels of layouts that are not dense."""
    if isinstance(tensor, torch.Tensor) and tensor.get_device() == d:
        return memory.alone(tensor)
    return take_any(name, tensor, d, written=written)


def take_any(name, tensor, d, in_list=False, written=False):
    """`take` for tensors in lists."""
    try:
        if tensor.get_device() == d:
            return memory.alias(tensor)
    except AttributeError:
        return tensor
    return mixed.foreign(name, tensor, d, in_list, written)


def build(name: str, call=None, dense=True, alone=False):
    """Returns the kernel of an operator. `call` computes it on CPU tensors; by default, torch's own kernel does.

    With `dense` false: the kernel for sparse, quantized or nested tensors. With `alone`: the kernel that a graph records.
    """
    op = overload_of(name)
    schema = op._schema
    out_call = direct.out_form(name, op) if dense and call is None and not wide.covers(name) else None
    text, values = source(schema, op.tags, dense, out_call is not None, getattr(call, "raw", None), alone, dense and bool(refused.types_of(name)))
    if out_call is not None:
        values |= {"LARGE": direct.LARGE, "into": direct.writer(name, op._op, out_call)}
    count = account.counter(name)
    values |= {
        "name": name,
        "disable": torch._C.DisableTorchFunction,
        "graphs": capture.STATE.graphs,
        "record": capture.record,
        "alone": functools.cache(lambda: build(name, call, dense, alone=True)),
        "Tensor": torch.Tensor,
        "refused": refused.types_of(name),
        "refuse": refused.refuse,
        "call": wide.rounded_once(name, call or op._op),
        "cpu": torch.device("cpu"),
        "clock": perf_counter_ns,
        "partial": partial,
        "count": count,
        "take": take if dense else take_alone,
        "take_written": take_written if dense else take_written_alone,
        "dense": memory.dense,
        "exact": exact if dense else emptied,
        "write_back": memory.write_back,
        "flat": flat,
        "adopt_list": adopt_list,
        "exact_list": exact_list,
        "adopt": memory.adopt,
        "list_of": dense_list if dense else list_of,
        "device_of": device_of,
        "synchronize": driver.synchronize,
        "again": narrow.again,
        "shadow": random.shadow,
        "advance": random.advance,
        "seeded": random.seeded,
        "finish_out": finish_out,
        "finish_out_list": finish_out_list,
    }
    exec(compile(text, f"<margay kernel of {name}>", "exec"), values)
    return values["kernel"]


def _begin(*args, **kwargs):
    return first(args, kwargs)  # noqa: F821 of the function's own globals


def lazy(name: str, call=None, dense=True):
    """Returns a kernel that is built on its first call."""

    def first(args, kwargs):
        kernel = build(name, call, dense)
        names.update(kernel.__globals__)
        run.__defaults__, run.__kwdefaults__, run.__code__ = kernel.__defaults__, kernel.__kwdefaults__, kernel.__code__
        return run(*args, **kwargs)

    names = {"first": first}
    run = types.FunctionType(_begin.__code__, names)
    return run
