"""Derivatives in one call: of operators that torch composes of many, or whose derivative it does.

Each operator of the `cuda` device costs some 10 microseconds more than on the CPU, in a backward pass twice that. Where both passes call
many, one call computes the operator on aliases of its operands, and records it for autograd as for tensors of the CPU. A node of the graph
of the CUDA tensors stands for all of that. Its backward pass is one call, too.
"""

from __future__ import annotations

from time import perf_counter_ns

import torch
from torch.autograd.graph import Variable

from margay.torch import driver, memory, whole

_engine, _Leaf = Variable._execution_engine, torch._C._functions.AccumulateGrad
_grad_enabled, _set_grad_enabled = torch.is_grad_enabled, torch._C._set_grad_enabled
_keep_graph = torch._C._autograd._get_current_graph_task_keep_graph
# Older releases do not tell the hooks of saved tensors, so the parts are recorded as if there were some.
_hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda ignore_is_tracing: True)
_hooks_enabled = torch._C._autograd._saved_tensors_hooks_is_enabled
_anomaly, _transforms = torch.is_anomaly_enabled, torch._C._are_functorch_transforms_active
Tensor = torch.Tensor


class _InParts(Exception):
    """The parts have to compute an operator after all."""


def records_parts() -> bool:
    """Whether somebody looks at the parts of what autograd records, or at what they save."""
    return _anomaly() or _transforms() or not _hooks_enabled() or _hooks(True) is not None


def call(*arguments):
    """`Node.apply`, without what it does for transformations of functions."""
    return _apply(*arguments)


class Node(torch.autograd.Function):
    """An operator and its derivative. Torch shows the node as `NodeBackward`."""

    @staticmethod
    def forward(ctx, call, composed, count, options, *args):
        d, aliases, saved = -1, [], []
        for value in args:
            if isinstance(value, Tensor):
                if d < 0:
                    d = value.get_device()
                    driver.synchronize(d)
                elif value.get_device() != d:
                    raise _InParts  # which raise torch's error
                saved.append(value)
                value = memory.dense(value).requires_grad_() if value.requires_grad else memory.dense(value)
            aliases.append(value)
        begin = perf_counter_ns()
        _set_grad_enabled(True)
        try:
            found = call(*aliases, **options)
        finally:
            _set_grad_enabled(False)
        count[0], count[1] = count[0] + 1, count[1] + perf_counter_ns() - begin
        single = isinstance(found, Tensor)
        outputs = (found,) if single else tuple(found)
        for output in outputs:
            if output.storage_offset() and memory.is_alias(output):
                raise _InParts  # a view of an operand
        results = [memory.adopt(output, d) for output in outputs]
        constant = [r for r, output in zip(results, outputs, strict=True) if not output.requires_grad]
        if len(constant) == len(results):
            raise _InParts  # nothing depends on what a derivative is asked for
        if constant:
            ctx.mark_non_differentiable(*constant)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*saved, *results)
        ctx.state = d, aliases, outputs, [t._version for t in saved], composed, options
        return results[0] if single else tuple(results)

    @staticmethod
    def backward(ctx, *grads):
        d, aliases, outputs, _, _, _ = ctx.state
        if _grad_enabled() or not all(g is None or whole.is_plain(g) for g in grads):
            return (None, None, None, None, *_in_parts(ctx, grads))
        driver.synchronize(d)
        try:
            ctx.saved_tensors  # noqa: B018 raises if one of them was modified
        except RuntimeError:
            _note_modified(ctx)
        pairs = [(o, memory.dense(g)) for o, g in zip(outputs, grads, strict=True) if g is not None and o.requires_grad]
        if not pairs:
            return (None,) * len(ctx.needs_input_grad)
        found = _gradients(outputs, pairs, [x for x, wanted in zip(aliases, ctx.needs_input_grad[4:], strict=True) if wanted])
        owners = [g for g in grads if g is not None]
        return (None, None, None, None, *[memory.adopt(next(found), d, owners) if w else None for w in ctx.needs_input_grad[4:]])


def _gradients(outputs, pairs, asked):
    """The derivatives of what is asked for by the CPU's graph, given those of results."""
    if len(outputs) == 1 and outputs[0].output_nr == 0:
        node = outputs[0].grad_fn
        edges = node.next_functions
        # Mostly, the graph is one node, whose function needs no engine, which is slower. Unless the backward pass is for certain tensors only
        # (`torch.autograd.grad`): then the function computes nothing for others, to which ours belong.
        if all(edge is None or type(edge) is _Leaf for edge, _ in edges) and not node._input_metadata[1:]:
            grads = node(pairs[0][1])
            grads = (grads,) if isinstance(grads, Tensor) or grads is None else grads
            by_leaf: dict[int, Tensor] = {}
            for (edge, _), grad in zip(edges, grads, strict=True):
                if edge is not None and grad is not None:
                    variable, leaf = edge.variable, id(edge.variable)
                    if grad.size() != variable.size():  # a derivative of a broadcast operand, which the engine would sum
                        grad = grad.sum_to_size(variable.size())
                    by_leaf[leaf] = by_leaf[leaf] + grad if leaf in by_leaf else grad
            if by_leaf:
                return iter([by_leaf.get(id(x)) for x in asked])
    results, grads = zip(*pairs, strict=True)
    return iter(_engine.run_backward(results, grads, _keep_graph(), False, tuple(asked), allow_unreachable=True, accumulate_grad=False))


_apply = super(torch.autograd.Function, Node).apply


def _note_modified(ctx) -> None:
    """Has the CPU's graph refuse what it saved if it was modified since, as the CUDA tensors' graph would."""
    _, aliases, outputs, versions, *_ = ctx.state
    places = [x for x in aliases if isinstance(x, Tensor)]
    # Of results, torch notes the version before it returns them.
    for saved, place, version in zip(ctx._raw_saved_tensors, (*places, *outputs), (*versions, *[0] * len(outputs)), strict=True):
        if saved.data._version != version:
            torch._C._increment_version([place.detach()])


def _in_parts(ctx, grads):
    """The derivatives by way of the parts, for what the CPU's graph cannot: derivatives of derivatives, and batches of them."""
    _, aliases, *_, composed, options = ctx.state
    saved, create = iter(ctx.saved_tensors), _grad_enabled()
    with torch.enable_grad():
        # Views, since one operand may have been computed of another.
        args = [x.view_as(x) if isinstance(a, Tensor) and (x := next(saved)) is not None else a for a in aliases]
        results = composed(*args, **options)
    results = (results,) if isinstance(results, Tensor) else results
    pairs = [(r, g) for r, g in zip(results, grads, strict=True) if g is not None and r.requires_grad]
    asked = [a for a, wanted in zip(args, ctx.needs_input_grad[4:], strict=True) if wanted]
    found = iter(torch.autograd.grad([r for r, _ in pairs], asked, [g for _, g in pairs], create_graph=create, allow_unused=True))
    return [next(found) if wanted else None for wanted in ctx.needs_input_grad[4:]]
