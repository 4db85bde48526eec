"""CUDA graphs of operators.

While a stream captures, an operator becomes a host node of the graph that computes it on the same memory, in its place among the
kernels that Triton or an extension launches. It also runs once at capture, to determine the sizes of its results; its writes are then
undone, because capture computes nothing.
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

    def rest(self, threads):
        """Stops threads at their next operator."""
        self.resting = frozenset(threads)
        self.graphs.insert(0, None)


STATE = _State()
_nodes: dict[int, object] = {}
_numbers = itertools.count(1)


class CaptureError(RuntimeError):
    """An operator cannot be part of a CUDA graph."""


def _run(number):
    STATE.inside.replays = True
    try:
        with torch._C.DisableTorchFunction(), torch.no_grad():
            _nodes[number]()
    except BaseException as error:
        sys.stderr.write(f"margay: a node of a CUDA graph failed: {error}\n")
        STATE.error = error
    finally:
        STATE.inside.replays = False


_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_callback = _CALLBACK(_run)

# What reads the device's memory on the host cannot be captured.
_FORBIDDEN = {"aten::_local_scalar_dense", "aten::equal", "aten::nonzero", "aten::masked_select", "aten::is_set_to"}


def record(name, kernel, schema, args, kwargs):
    """Runs an operator, and makes it a graph node if the current stream is capturing."""
    from margay.torch import driver, kernel as kernels, memory

    if threading.get_ident() in STATE.resting:
        driver.library().margayRest()
    if not torch._C._cuda_isCurrentStreamCapturing() or getattr(STATE.inside, "now", False):
        return kernel(*args, **kwargs)
    op = kernels.overload_of(name)
    if name in _FORBIDDEN or torch.Tag.data_dependent_output in op.tags or torch.Tag.dynamic_output_shape in op.tags:
        raise CaptureError(
            f"CUDA error: operation not permitted when stream is capturing: {name} needs the values of its operands at capture"
        )
    if _waits(name, args, kwargs):
        raise CaptureError(
            "CUDA error: operation not permitted when stream is capturing: a copy between the host and the device waits for the stream"
        )
    written = _written(schema, args, kwargs)
    saved = [(memory.alias(t), memory.alias(t).clone()) for t in written if t.is_cuda]
    STATE.inside.now = True
    try:
        result = kernel(*args, **kwargs)
    finally:
        STATE.inside.now = False
    for place, content in saved:
        place.copy_(content)
    results = [t for t in _tensors(result) if not any(t is w for w in written)]
    node = _node(name, kernel, args, kwargs, results)
    number = next(_numbers)
    _nodes[number] = node
    STATE.graphs[-1]._margay_nodes.append(number)
    stream = torch._C._cuda_getCurrentRawStream(torch.cuda.current_device())
    status = driver.library().cuLaunchHostFunc(ctypes.c_void_p(stream), _callback, ctypes.c_void_p(number))
    if status != 0:
        raise CaptureError(f"{name} cannot be captured: cuLaunchHostFunc returned {status}")
    return result


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
            source = memory.alias(tensor)
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
    begin, end, reset = class_.capture_begin, class_.capture_end, class_.reset

    def capture_begin(self, *args, **kwargs):
        result = begin(self, *args, **kwargs)
        self._margay_nodes = []
        STATE.graphs.append(self)
        return result

    def capture_end(self, *args, **kwargs):
        if self in STATE.graphs:
            STATE.graphs.remove(self)
        return end(self, *args, **kwargs)

    def reset_graph(self, *args, **kwargs):
        for number in getattr(self, "_margay_nodes", ()):
            _nodes.pop(number, None)
        return reset(self, *args, **kwargs)

    class_.capture_begin, class_.capture_end, class_.reset = capture_begin, capture_end, reset_graph
