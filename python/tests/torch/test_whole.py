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


A, B = torch.linspace(-2, 2, 24).reshape(2, 3, 4), torch.linspace(-1, 3, 24).reshape(2, 3, 4).sin()
SIGNS, CLASSES = torch.tensor([[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]]), torch.tensor([[0, 1, 2, 0], [2, 2, 1, 0]])
#: what one call computes unless a derivative is asked for
UNDERIVED = {
    "_pad_circular": lambda a, b, signs, classes: functional.pad(a, (1, 2), "circular"),
    "combinations": lambda a, b, signs, classes: torch.combinations(a[0, 0]),
    "corrcoef": lambda a, b, signs, classes: torch.corrcoef(a[0] * b[0]),
    "cosine_embedding_loss": lambda a, b, signs, classes: functional.cosine_embedding_loss(a[0], b[0], signs[0]),
    "cosine_similarity": lambda a, b, signs, classes: functional.cosine_similarity(a, b),
    "cov": lambda a, b, signs, classes: torch.cov(a[0] * b[0]),
    "cross_entropy_loss": lambda a, b, signs, classes: functional.cross_entropy(a, classes, label_smoothing=0.1),
    "cumulative_trapezoid.dx": lambda a, b, signs, classes: torch.cumulative_trapezoid(a, dx=2.0),
    "hinge_embedding_loss": lambda a, b, signs, classes: functional.hinge_embedding_loss(a[..., 0], signs),
    "instance_norm": lambda a, b, signs, classes: functional.instance_norm(a, weight=b[0, :, 0], bias=b[1, :, 0]),
    "kl_div": lambda a, b, signs, classes: functional.kl_div(a, b, reduction="sum"),
    "l1_loss": lambda a, b, signs, classes: functional.l1_loss(a, b),
    "margin_ranking_loss": lambda a, b, signs, classes: functional.margin_ranking_loss(a[..., 0], b[..., 0], signs),
    "nanmean": lambda a, b, signs, classes: a.log().nanmean(),
    "nanquantile.scalar": lambda a, b, signs, classes: a.log().nanquantile(0.3),
    "pairwise_distance": lambda a, b, signs, classes: functional.pairwise_distance(a, b),
    "poisson_nll_loss": lambda a, b, signs, classes: functional.poisson_nll_loss(a, b),
    "quantile.scalar": lambda a, b, signs, classes: a.quantile(0.3, 1),
    "trapezoid.x": lambda a, b, signs, classes: torch.trapezoid(a, b),
    "triplet_margin_loss": lambda a, b, signs, classes: functional.triplet_margin_loss(a[0], b[0], a[1]),
}


@pytest.mark.parametrize("name", UNDERIVED)
def test_one_call_computes_it_unless_a_derivative_is_asked_for(name):
    call, operands = UNDERIVED[name], (A, B, SIGNS, CLASSES)
    on_device = [t.cuda() for t in operands]
    account.reset()
    result = call(*on_device)
    assert account.operators().keys() - {"aten::log", "aten::mul.Tensor"} == {f"aten::{name}"}
    expected = call(*operands)
    torch.testing.assert_close(result.cpu(), expected, rtol=0, atol=0, equal_nan=True)
    with torch.inference_mode():
        torch.testing.assert_close(call(*[t.cuda() for t in operands]).cpu(), expected, rtol=0, atol=0, equal_nan=True)
    leaves = [t.cuda().requires_grad_() for t in (A, B)], [t.clone().requires_grad_() for t in (A, B)]
    for (a, b), rest in zip(leaves, (on_device[2:], operands[2:]), strict=True):
        call(a, b, *rest).sum().backward()
    for ours, theirs in zip(*leaves, strict=True):
        if theirs.grad is not None:
            torch.testing.assert_close(ours.grad.cpu(), theirs.grad, equal_nan=True)


def test_transformations_see_the_parts():
    a, b = A.cuda(), B.cuda()
    expected = functional.cosine_similarity(A, B, 2)
    with warnings.catch_warnings(action="error"):
        found = torch.vmap(lambda a, b: functional.cosine_similarity(a, b, 1))(a, b)
    torch.testing.assert_close(found.cpu(), expected)
    _, tangent = torch.func.jvp(lambda a: functional.cosine_similarity(a, b, 2), (a,), (torch.ones_like(a),))
    _, on_cpu = torch.func.jvp(lambda a: functional.cosine_similarity(a, B, 2), (A,), (torch.ones_like(A),))
    torch.testing.assert_close(tangent.cpu(), on_cpu)
    gradient = torch.func.grad(lambda a: functional.cosine_similarity(a, b, 2).sum())(a)
    torch.testing.assert_close(gradient.cpu(), torch.func.grad(lambda a: functional.cosine_similarity(a, B, 2).sum())(A))
    compiled = torch.compile(lambda a, b: functional.cosine_similarity(a, b, 2), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(a, b).cpu(), expected)


def test_a_graph_that_computes_it_in_parts_undoes_what_capture_wrote():
    x, mean, var = A.cuda(), torch.zeros(3, device="cuda"), torch.ones(3, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = functional.instance_norm(x, mean, var)
    assert not mean.any() and bool((var == 1).all())
    graph.replay()
    on_cpu, on_cpu_var = torch.zeros(3), torch.ones(3)
    torch.testing.assert_close(result.cpu(), functional.instance_norm(A, on_cpu, on_cpu_var))
    torch.testing.assert_close(mean.cpu(), on_cpu)


def test_narrow_types_are_rounded_part_by_part():
    a, b = A.cuda().half(), B.cuda().half()
    account.reset()
    functional.cosine_similarity(a, b)
    assert "aten::cosine_similarity" not in account.operators()


FIRST = """
import margay
margay.enable()
import torch
from margay.torch import account
from torch._subclasses import FakeTensorMode
similarity, a, b = torch.nn.functional.cosine_similarity, torch.ones(2, 3, device="cuda"), torch.ones(2, 3, device="cuda")
"""
TRANSFORMED = {
    "fake": "with FakeTensorMode(allow_non_fake_inputs=True): similarity(a, b)",
    "grad": "torch.func.grad(lambda a: similarity(a, b).sum())(a)",
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_one_call_computes_it_after_a_process_has_begun_with_a_transformation(python, name):
    computed = python(f"{FIRST}{TRANSFORMED[name]}\naccount.reset()\nsimilarity(a, b)\nprint(*account.operators())")
    assert computed.strip() == "aten::cosine_similarity"
