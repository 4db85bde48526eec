"""`torch.distributed` with the backend `nccl`, implemented by gloo.

The collectives of a process group are operators (`c10d::allreduce_`), so those on CUDA tensors are served as all others are: by the CPU's
on the same memory. Collectives have completed when they return; sends and receives continue in the background, because others may wait
for them. The group still reports its backend as `nccl`.
"""

from __future__ import annotations

from time import perf_counter_ns

import torch

from margay.torch import account, driver, memory


# NCCL takes what these gather or scatter in the order of memory; gloo takes it by the first dimension.
_FLAT = (
    "c10d::_allgather_base_",
    "c10d::_reduce_scatter_base_",
    "c10d::allgather_into_tensor_coalesced_",
    "c10d::reduce_scatter_tensor_coalesced_",
)
_POINT_TO_POINT = ("c10d::send", "c10d::recv_", "c10d::recv_any_source_")


def collective(name: str):
    """The kernel of an operator of `c10d` for CUDA tensors."""
    op, count = None, account.counter(name)

    def run(*args, **kwargs):
        nonlocal op
        if op is None:
            from margay.torch import kernel

            op = kernel.overload_of(name)._op
        with torch._C.DisableTorchFunction():
            owners = {}

            def lend(value):
                if isinstance(value, torch.Tensor) and value.is_cuda:
                    driver.synchronize(value.get_device())
                    if value.layout is torch.strided:
                        # Others keep the alias and make views of it, so it has the storage's own bounds; it keeps the tensor alive.
                        alias = memory.exact(value)
                        if name in _FLAT and value.is_contiguous():
                            alias = alias.view(-1)
                        alias._margay_owner = value
                    else:
                        alias = memory.alias(value)
                    owners[id(alias)] = value
                    return alias
                return [lend(v) for v in value] if isinstance(value, (list, tuple)) else value

            lent = [lend(a) for a in args], {k: lend(v) for k, v in kwargs.items()}
            begin = perf_counter_ns()
            result = op(*lent[0], **lent[1])

            def give_back(value):
                if isinstance(value, torch.Tensor):
                    return owners[id(value)] if id(value) in owners else memory.adopt(value, torch.cuda.current_device())
                return [give_back(v) for v in value] if isinstance(value, list) else value

            parts = [give_back(v) for v in result] if isinstance(result, tuple) else [give_back(result)]
            if name not in _POINT_TO_POINT:
                parts = [_ended(v, parts) if hasattr(v, "get_future") or type(v).__name__ == "ScriptObject" else v for v in parts]
            count[0], count[1] = count[0] + 1, count[1] + perf_counter_ns() - begin
        return tuple(parts) if isinstance(result, tuple) else parts[0]

    return run


def _ended(work, parts):
    """A completed collective whose results are the CUDA tensors."""
    from torch._C._distributed_c10d import Work, _create_work_from_future

    work = Work.unbox(work) if not isinstance(work, Work) else work
    work.wait()
    future = torch.futures.Future()
    tensors = parts[0] if isinstance(parts[0], list) else [p for p in parts if isinstance(p, torch.Tensor)]
    future.set_result(tensors)
    return _create_work_from_future(future).boxed()


def _creator(distributed):
    def create(opts, backend_options=None):
        backend = distributed._create_gloo_process_group(opts, None)
        if opts.process_group is not None:
            opts.process_group._register_backend(torch.device("cpu"), distributed.ProcessGroup.BackendType.GLOO, backend)
        return backend

    return create


def _patch(distributed) -> None:
    backend = distributed.Backend
    plugins = getattr(backend, "_plugins", {})
    ensure = getattr(backend, "_ensure_backend_registered", None)
    if ensure is not None and hasattr(distributed, "_create_gloo_process_group"):
        ensure("nccl")
        plugins["NCCL"] = plugins["NCCL"]._replace(creator_fn=_creator(distributed))
        return

    # Releases that make the group themselves.
    gloo = distributed.ProcessGroupGloo
    nccl = distributed.ProcessGroupNCCL

    class Gloo(gloo):
        """gloo with the constructor of NCCL's group."""

        Options = nccl.Options

        def __init__(self, store, rank, size, options=None, *args, **kwargs):
            timeout = getattr(options, "_timeout", None)
            super().__init__(store, rank, size, *([timeout] if timeout is not None else []))

    distributed.ProcessGroupNCCL = Gloo
    register = distributed.ProcessGroup._register_backend

    def register_both(self, device, kind, made):
        register(self, device, kind, made)
        if isinstance(made, Gloo):
            register(self, torch.device("cpu"), distributed.ProcessGroup.BackendType.GLOO, made)

    distributed.ProcessGroup._register_backend = register_both


def install() -> None:
    """Makes `init_process_group("nccl")` work on one machine."""
    if not torch.distributed.is_available():
        return
    from torch.distributed import distributed_c10d

    if distributed_c10d.is_gloo_available() and distributed_c10d.is_nccl_available():
        _patch(distributed_c10d)
