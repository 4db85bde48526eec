"""Operators that torch composes of others: one call computes each, with the CPU's results and torch's errors."""

import warnings

import pytest
import torch
from torch.nn import functional

from margay.torch import account

X = torch.linspace(-2, 2, 12).reshape(3, 4)
Y = X.flip(0).sigmoid()

CALLS = {
    "logsumexp": lambda x, y: x.logsumexp(1),
    "allclose": lambda x, y: torch.allclose(x, y),
    "binary_cross_entropy_with_logits": lambda x, y: functional.binary_cross_entropy_with_logits(x, y),
    "soft_margin_loss": lambda x, y: functional.soft_margin_loss(x, y),
    "mvlgamma": lambda x, y: torch.mvlgamma(y, 1),
    "block_diag": lambda x, y: torch.block_diag(x, y),
    "isclose": lambda x, y: torch.isclose(x, y, rtol=0.5, equal_nan=True),
    "isfinite": lambda x, y: torch.isfinite(y / x.floor()),
    "pixel_shuffle": lambda x, y: functional.pixel_shuffle(x.reshape(4, 3, 1), 2),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_call_computes_it(name):
    x, y = X.cuda(), Y.cuda()
    account.reset()
    result = CALLS[name](x, y)
    inside = {"isfinite": {"aten::floor", "aten::div.Tensor"}}
    assert account.operators().keys() - inside.get(name, set()) == {f"aten::{name}"}
    expected = CALLS[name](X, Y)
    assert result == expected if name == "allclose" else torch.equal(result.cpu(), expected)


@pytest.mark.parametrize("name", ["logsumexp", "binary_cross_entropy_with_logits", "soft_margin_loss"])
def test_it_has_its_derivative(name):
    x, on_cpu = X.cuda().requires_grad_(), X.clone().requires_grad_()
    CALLS[name](x, Y.cuda()).sum().backward()
    CALLS[name](on_cpu, Y).sum().backward()
    assert torch.equal(x.grad.cpu(), on_cpu.grad)


@pytest.mark.parametrize("name", ["isclose", "isfinite"])
def test_predicates_need_no_derivative(name):
    x, expected = X.cuda().requires_grad_(), CALLS[name](X, Y)
    result = CALLS[name](x, Y.cuda())
    assert not result.requires_grad and torch.equal(result.cpu(), expected)
    with warnings.catch_warnings(action="error"):  # a loop over the batch would say so
        assert torch.equal(torch.vmap(CALLS[name])(X.cuda(), Y.cuda()).cpu(), expected)
    compiled = torch.compile(CALLS[name], backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(x, Y.cuda()).cpu(), expected)
    with torch.inference_mode():
        assert torch.equal(CALLS[name](X.cuda(), Y.cuda()).cpu(), expected)


def test_operands_on_different_devices_are_an_error():
    with pytest.raises(RuntimeError, match="same device"):
        functional.binary_cross_entropy_with_logits(X.cuda(), Y)
    with pytest.raises(RuntimeError, match="same device"):
        torch.allclose(X, X.cuda())


def test_what_waits_for_the_device_says_so():
    x = X.cuda()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="synchronizing"):
            torch.allclose(x, x)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    with pytest.raises(RuntimeError, match="not permitted when stream is capturing"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.allclose(x, x)
    assert torch.allclose(x, x)
