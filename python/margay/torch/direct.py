"""Large element-wise results, written directly to their destination.

A CPU operator allocates its own result, which is then copied. Element-wise operators also have an `out=` form; with operands of the same
shape, the result has that shape, and the type of the previous result for the same types. So from the second call on, nothing is copied.
"""

from __future__ import annotations

from time import perf_counter_ns

import torch

from margay.torch import account, capture, memory

#: From so many elements on it pays.
LARGE = 1 << 14


def out_form(name: str, op):
    """The `out=` form of an element-wise operator with one result; `None` if there is none."""
    schema = op._schema
    if torch.Tag.pointwise not in op.tags or len(schema.returns) != 1 or str(schema.returns[0].type) != "Tensor":
        return None
    if any(a.alias_info is not None for a in schema.arguments) or not schema.arguments:
        return None
    wanted = [(a.name, str(a.type)) for a in schema.arguments]
    packet = op.overloadpacket
    for overload in packet.overloads():
        candidate = getattr(packet, overload)
        arguments = candidate._schema.arguments
        outs = [a for a in arguments if a.is_out]
        if len(outs) == 1 and outs[0].name == "out" and [(a.name, str(a.type)) for a in arguments if not a.is_out] == wanted:
            return candidate._op
    return None


def writer(name: str, call, out_call):
    """Returns a function that computes an operator on large operands or returns `None`, from the CUDA operands, their aliases and the rest."""
    types: dict[tuple, torch.dtype] = {}
    count = account.counter(name)

    def into(operands, aliases, options, d):
        first = operands[0]
        if not first.is_contiguous() or getattr(capture.STATE.inside, "replays", False):
            return None
        size = first.size()
        key = [torch.get_default_dtype()]
        for operand in operands:
            if isinstance(operand, torch.Tensor):
                if operand.size() != size or not operand.is_contiguous() or operand.get_device() != d:
                    return None
                key.append(operand.dtype)
            else:
                key.append(type(operand))
        for option, value in options.items():
            if not isinstance(value, (int, float, complex)):
                return None
            key.append((option, type(value)))
        key = tuple(key)
        begin = perf_counter_ns()
        dtype = types.get(key)
        try:
            if dtype is None:
                result = call(*aliases, **options)
                types[key] = result.dtype
                result = memory.adopt(result, d, [o for o in operands if isinstance(o, torch.Tensor)])
            else:
                result = torch.empty_strided(size, first.stride(), dtype=dtype, device=torch.device("cuda", d))
                if capture.STATE.special:
                    capture.will_write(result)
                out_call(*aliases, **options, out=memory.dense(result))
        except Exception:
            return None  # the usual way says what is wrong, or does better
        count[0], count[1] = count[0] + 1, count[1] + perf_counter_ns() - begin
        return result

    return into
