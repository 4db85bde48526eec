"""`torch.distributed` with the backend `nccl`, in processes of its own."""

import socket

import pytest
import torch
import torch.distributed as dist
from torch import nn


def collectives(rank, size, port):
    import margay.torch

    margay.torch.install()
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    assert dist.get_backend() == "nccl"
    total = sum(range(1, size + 1))
    x = torch.full((3,), rank + 1.0, device="cuda")
    dist.all_reduce(x)
    assert x.is_cuda and x.tolist() == [total] * 3
    work = dist.all_reduce(x, op=dist.ReduceOp.MAX, async_op=True)
    work.wait()
    assert work.is_completed() and x.tolist() == [total] * 3
    parts = [torch.empty(2, device="cuda") for _ in range(size)]
    dist.all_gather(parts, torch.full((2,), float(rank), device="cuda"))
    assert [p.tolist() for p in parts] == [[float(r)] * 2 for r in range(size)]
    share = torch.empty(2, device="cuda")
    dist.reduce_scatter_tensor(share, torch.arange(2.0 * size, device="cuda"))
    assert share.tolist() == [size * 2.0 * rank, size * (2.0 * rank + 1)]
    # In the order of memory, whatever the shapes are.
    row = torch.empty(1, 2 * size, device="cuda")
    dist.all_gather_into_tensor(row, torch.tensor([[rank], [rank + 0.5]], device="cuda"))
    assert row.tolist() == [[r + half for r in range(size) for half in (0, 0.5)]]
    share = torch.empty(2, 1, device="cuda")
    dist.reduce_scatter_tensor(share, torch.arange(2.0 * size, device="cuda").view(1, -1))
    assert share.tolist() == [[size * 2.0 * rank], [size * (2.0 * rank + 1)]]
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(size)]
    if size > 1:
        y = torch.full((2,), 7.0, device="cuda") if rank == 0 else torch.zeros(2, device="cuda")
        dist.send(y, 1) if rank == 0 else dist.recv(y, 0) if rank == 1 else None
        assert rank > 1 or y.tolist() == [7, 7]
    torch.manual_seed(0)
    for views in (False, True):
        net = nn.parallel.DistributedDataParallel(nn.Linear(4, 2).cuda(), device_ids=[0], gradient_as_bucket_view=views)
        net(torch.full((3, 4), float(rank), device="cuda")).sum().backward()
        grad = net.module.weight.grad
        assert grad.is_cuda and grad.flatten().tolist() == [3 * sum(range(size)) / size] * 8
    # Statistics over the batches of all processes, as over one batch.
    batches = torch.arange(size * 12.0).view(size, 3, 2, 2)
    whole = nn.BatchNorm1d(2)(batches.flatten(0, 1))
    parted = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm(2).cuda(), device_ids=[0])(batches[rank].cuda())
    torch.testing.assert_close(parted.cpu(), whole[3 * rank : 3 * rank + 3], rtol=1e-4, atol=1e-5)
    parted.square().sum().backward()
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.parametrize("size", [1, 2])
def test_collectives_and_data_parallel_training(size):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(collectives, (size, port), nprocs=size)


TWO_DEVICES = """
import torch
from torch.nn.parallel import comm

assert torch.cuda.device_count() == 2
net = torch.nn.Linear(4, 2)
x = torch.arange(32.0).reshape(8, 4)
expected = torch.autograd.grad(net(x).square().sum(), list(net.parameters()))
spread = torch.nn.DataParallel(net.cuda())
spread(x.cuda()).square().sum().backward()
for p, e in zip(net.parameters(), expected, strict=True):
    torch.testing.assert_close(p.grad.cpu(), e)
a = torch.ones(3, device="cuda:0")
assert [t.get_device() for t in comm.broadcast(a, [0, 1])] == [0, 1]
assert comm.reduce_add([a, a.to("cuda:1")]).tolist() == [2] * 3
out = torch.zeros(3, device="cuda:1")
comm.broadcast(a, out=[out])
assert out.tolist() == [1] * 3
print("right")
"""


def test_one_process_uses_two_devices(python):
    assert python(TWO_DEVICES, env={"MARGAY_DEVICE": "count=2"}).endswith("right\n")
