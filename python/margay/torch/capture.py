"""CUDA graphs of operators.

While a stream captures, an operator becomes a host node of the graph that computes it on the same memory, in its place among the
kernels that Triton or an extension launches. It also runs once at capture, to determine the sizes of its results and to give the operators
behind it operands that they accept, such as indices. What it writes is undone when the capture ends, because capture computes nothing: its
results may lie where memory was freed whose contents a replay still needs.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading

import torch


class _State:
    """The graphs being captured."""

    def __init__(self):
        self.graphs = []  # those under capture, the last begun last; operators call `record` if it is not empty
        # `replays`: this thread executes a graph node; everything before it has run, and its stream waits for it. `now`: it records one.
        self.inside = threading.local()
        self.resting = frozenset()  # threads that stop at their next operator
        self.error = None  # of a node of a graph that failed, until an operator raises it
        self.undo = None  # while an operator is recorded: what to undo when the capture ends
        # Threads that execute a graph node, and operators that are recorded: results then do not simply get memory of their own.
        self.special = 0

    def rest(self, threads):
        """Stops threads at their next operator."""
        self.resting = frozenset(threads)
        self.graphs.insert(0, None)


STATE = _State()


class _Undo:
    """The memory that a capture has written, with its contents before."""

    def __init__(self):
        self.saved = []
        self.seen = set()

    def save(self, tensor) -> None:
        """Notes the contents of a CUDA tensor that is about to be written."""
        from margay.torch import memory

        if tensor.layout is torch.strided:
            key = tensor.data_ptr(), tensor.size(), tensor.stride(), tensor.dtype
            if key in self.seen:
                return
            self.seen.add(key)
        place = memory.alias(tensor)
        self.saved.append((place, place.clone()))

    def restore(self) -> None:
        # What overlaps was saved before it was written by the later ones.
        for place, content in reversed(self.saved):
            place.copy_(content)
        self.saved.clear()
        self.seen.clear()


_nodes: dict[int, object] = {}
_numbers = itertools.count(1)


def raise_error() -> None:
    """Raises the error of a node of a graph that has failed, as CUDA reports errors of kernels: where the host waits for them."""
    error, STATE.error = STATE.error, None
    raise CaptureError(f"CUDA error: a node of a CUDA graph failed: {error}") from error


def will_write(tensor) -> None:
    """Notes the contents of a CUDA tensor that an operator is about to write, if this thread records one."""
    if STATE.undo is not None and getattr(STATE.inside, "now", False):
        STATE.undo.save(tensor)


class CaptureError(RuntimeError):
    """An operator cannot be part of a CUDA graph."""


def _run(number):
    STATE.inside.replays = True
    STATE.special += 1
    try:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            _nodes[number]()
    except BaseException as error:
        sys.stderr.write(f"margay: a node of a CUDA graph failed: {error}\n")  # the program may end before it waits for the graph
        STATE.error = error
    finally:
        STATE.inside.replays = False
        STATE.special -= 1


_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_callback = _CALLBACK(_run)

# What reads the device's memory on the host cannot be captured.
_FORBIDDEN = {"aten::_local_scalar_dense", "aten::equal", "aten::nonzero", "aten::masked_select", "aten::is_set_to"}


def record(name, kernel, args, kwargs):
    """Runs an operator, and makes it a graph node if the current stream is capturing."""
    from margay.torch import driver, kernel as kernels

    if threading.get_ident() in STATE.resting:
        driver.library().margayRest()
    if not torch._C._cuda_isCurrentStreamCapturing() or getattr(STATE.inside, "now", False):
        return kernel(*args, **kwargs)
    op = kernels.overload_of(name)
    if _needs_values(name, op, args, kwargs):
        raise CaptureError(
            f"CUDA error: operation not permitted when stream is capturing: {name} needs the values of its operands at capture"
        )
    if _waits(name, args, kwargs):
        raise CaptureError(
            "CUDA error: operation not permitted when stream is capturing: a copy between the host and the device waits for the stream"
        )
    written = _written(op._schema, args, kwargs)
    undo = STATE.graphs[-1]._margay_undo
    for tensor in written:
        if tensor.is_cuda:
            undo.save(tensor)
    STATE.inside.now, STATE.undo = True, undo
    STATE.special += 1
    try:
        result = kernel(*args, **kwargs)
    finally:
        STATE.inside.now, STATE.undo = False, None
        STATE.special -= 1
    results = [t for t in _tensors(result) if not any(t is w for w in written)]
    node = _node(name, kernel, args, kwargs, results)
    graph = STATE.graphs[-1]
    if torch.Tag.nondeterministic_seeded in op.tags or any(a.name == "generator" for a in op._schema.arguments):
        graph._margay_draws = True
    number = next(_numbers)
    graph._margay_nodes.append(number)
    _enqueue(number, node, name)
    return result


def _enqueue(number, node, name) -> None:
    """Has torch's current stream call a node."""
    from margay.torch import driver

    _nodes[number] = node
    stream = torch._C._cuda_getCurrentRawStream(torch.cuda.current_device())
    status = driver.library().cuLaunchHostFunc(ctypes.c_void_p(stream), _callback, ctypes.c_void_p(number))
    if status != 0:
        raise CaptureError(f"{name} cannot be captured: cuLaunchHostFunc returned {status}")


def _seed_replay() -> None:
    """Has the nodes of a graph that is about to be replayed draw the next numbers of the device's generator."""
    from margay.torch import random

    seed, number = random.draw_seed(torch.cuda.current_device()), next(_numbers)

    def begin():
        del _nodes[number]
        random.seed_replay(seed)

    _enqueue(number, begin, "a graph")


def _needs_values(name, op, args, kwargs) -> bool:
    """Whether the sizes or the value of an operator's result depend on the values of its operands."""
    if name == "aten::index.Tensor":  # only masks have as many indices as elements that are true
        return any(t is not None and t.dtype in (torch.bool, torch.uint8) for t in args[1])
    if name == "aten::repeat_interleave.Tensor" and kwargs.get("output_size") is not None:
        return False
    return name in _FORBIDDEN or torch.Tag.data_dependent_output in op.tags or torch.Tag.dynamic_output_shape in op.tags


def _waits(name, args, kwargs) -> bool:
    """Whether an operator is a copy between the host and the device that returns when it is done."""
    if name != "aten::copy_" or args[0].is_cuda == args[1].is_cuda:
        return False
    return not (args[2] if len(args) > 2 else kwargs.get("non_blocking", False))


def _node(name, kernel, args, kwargs, results):
    """Returns a function that replays an operator on the same memory, even if its owner has changed."""
    from margay.torch import memory

    inputs = _map(args, _weak), {k: _map(v, _weak) for k, v in kwargs.items()}
    outputs = [memory.alias(t) for t in results]

    def replay():
        revived.clear()
        fresh = kernel(*_map(inputs[0], _revive), **{k: _map(v, _revive) for k, v in inputs[1].items()})
        given = [t for t in _tensors(fresh) if not any(t is w for w in revived)]
        for place, tensor in zip(outputs, given, strict=True):
            source = memory.alias(tensor) if tensor.is_cuda else tensor
            if source.data_ptr() != place.data_ptr():
                place.copy_(source)
        revived.clear()

    revived = []

    def _revive(value):
        if isinstance(value, _Weak):
            tensor = value.tensor()
            revived.append(tensor)
            return tensor
        return value

    return replay


def finish() -> None:
    """Waits until the nodes of all launched graphs have run."""
    from margay.torch import driver

    if _nodes and not torch.cuda._is_in_bad_fork():
        # Unlike torch's function, this does not raise the error of a kernel.
        for device in range(torch.cuda.device_count()):
            with torch.cuda.device(device):
                driver.library().cuCtxSynchronize()


class _Weak:
    """A non-owning reference to the memory of a CUDA tensor."""

    def __init__(self, tensor):
        self.data = tensor.data_ptr() - tensor.storage_offset() * tensor.itemsize
        self.bytes = tensor.untyped_storage().nbytes()
        self.shape = tensor.size(), tensor.stride(), tensor.storage_offset()
        self.dtype, self.device = tensor.dtype, tensor.device

    def tensor(self):
        storage = torch._C._construct_storage_from_data_pointer(self.data, self.device, self.bytes)
        return torch.empty(0, dtype=self.dtype, device=self.device).set_(storage, self.shape[2], self.shape[0], self.shape[1])


def _weak(value):
    return _Weak(value) if isinstance(value, torch.Tensor) and value.is_cuda and value.layout is torch.strided else value


def _map(value, change):
    if isinstance(value, (list, tuple)):
        return type(value)(_map(v, change) for v in value)
    return change(value)


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _tensors(v)]
    return []


def _written(schema, args, kwargs):
    found = []
    for i, argument in enumerate(schema.arguments):
        alias = argument.alias_info
        if alias is not None and alias.is_write:
            found += _tensors(kwargs.get(argument.name, args[i] if i < len(args) else None))
    return found


def install() -> None:
    """Tracks the capture of graphs."""
    from torch.cuda import graphs

    class_ = graphs.CUDAGraph
    begin, end, reset, replay = class_.capture_begin, class_.capture_end, class_.reset, class_.replay

    def capture_begin(self, *args, **kwargs):
        result = begin(self, *args, **kwargs)
        self._margay_nodes, self._margay_undo = [], _Undo()
        STATE.graphs.append(self)
        return result

    def capture_end(self, *args, **kwargs):
        if self in STATE.graphs:
            STATE.graphs.remove(self)
            self._margay_undo.restore()
        return end(self, *args, **kwargs)

    def replay_graph(self):
        if getattr(self, "_margay_draws", False):
            _seed_replay()
        return replay(self)

    def reset_graph(self, *args, **kwargs):
        for number in getattr(self, "_margay_nodes", ()):
            _nodes.pop(number, None)
        return reset(self, *args, **kwargs)

    class_.capture_begin, class_.capture_end, class_.reset, class_.replay = capture_begin, capture_end, reset_graph, replay_graph
