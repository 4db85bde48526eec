"""`torch.compile` with kernels that Triton makes and margay runs."""

import copy

import pytest
import torch
from test_training import convnet, mlp, transformer
from torch.nn import functional as F

pytest.importorskip("triton")


def test_fused_kernels_forward_and_backward():
    def function(a, b):
        return F.gelu(a @ b + 1).sum(-1).softmax(0)

    a, b = (torch.randn(24, 24, device="cuda", requires_grad=True) for _ in range(2))
    expected, actual = function(a, b), torch.compile(function)(a, b)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)
    grad = torch.randn_like(expected)
    for x, y in zip(torch.autograd.grad(actual, (a, b), grad), torch.autograd.grad(expected, (a, b), grad), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("make", [mlp, convnet, transformer])
def test_training_compiled(make):
    net, x = make()
    net, x = net.cuda(), x.cuda()
    y = torch.randint(0, 10, (x.shape[0],), device="cuda")
    found = []
    for module in (copy.deepcopy(net), torch.compile(net)):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        found.append(losses)
    assert found[1] == pytest.approx(found[0], rel=1e-4)
