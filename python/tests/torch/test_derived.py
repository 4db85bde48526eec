"""Derivatives in one call: they are the CPU's, and what looks at the parts of an operator finds them."""

import pytest
import torch
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from margay.torch import account

A, B = torch.linspace(-2, 2, 9).reshape(3, 3).sin() + 3 * torch.eye(3), torch.linspace(1, 3, 9).reshape(3, 3).sin() + 2
CALLS = {
    "pow.Tensor_Tensor": lambda a, b: b**a,
    "clamp.Tensor": lambda a, b: a.clamp(b - 1, b),
    "fmax": lambda a, b: torch.fmax(a, b[0]),
    "nanmean": lambda a, b: a.nanmean(1),
    "linalg_lu": lambda a, b: torch.linalg.lu(a)[2],
    "linalg_cholesky": lambda a, b: torch.linalg.cholesky(a + a.mT),
    "pinverse": lambda a, b: a.pinverse(),
    "cosine_similarity": lambda a, b: functional.cosine_similarity(a, b),
    "poisson_nll_loss": lambda a, b: functional.poisson_nll_loss(a, b, full=True),
    "gradient.scalarint": lambda a, b: torch.gradient(a, dim=0)[0],
    "fft_fft2": lambda a, b: torch.fft.fft2(a).abs(),
    "take_along_dim": lambda a, b: a.take_along_dim(b.argsort(1), 1),
    "max": lambda a, b: a.max(),
}
#: what the calls above do besides, and what autograd does with several derivatives of one tensor
OUTSIDE = """
    abs abs.out add.Tensor add_.Tensor argsort argsort.stable copy_ mul.Tensor neg sgn sort.stable sub.Tensor zero_
""".split()


def leaves(device):
    return [t.clone().to(device).requires_grad_() for t in (A, B)]


def compare(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a.cpu(), b)


# Older releases record the parts, since they do not tell what `derived` has to know.
@pytest.mark.skipif(not hasattr(torch._C._autograd, "_top_saved_tensors_default_hooks"), reason="this release of torch tells no hooks")
@pytest.mark.parametrize("name", CALLS)
def test_one_call_computes_each_pass(name):
    call, given, on_cpu = CALLS[name], leaves("cuda"), leaves("cpu")
    seed = torch.ones_like(call(*on_cpu))
    call(*given).backward(seed.cuda())  # has the operators outside of it set up
    given, seed_on_device = leaves("cuda"), seed.cuda()
    account.reset()
    found = torch.autograd.grad(call(*given), given, seed_on_device, allow_unused=True)
    assert account.operators().keys() - {f"aten::{name}" for name in OUTSIDE} == {f"aten::{name}"}
    compare(found, torch.autograd.grad(call(*on_cpu), on_cpu, seed, allow_unused=True))


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_of_derivatives(name):
    def twice(device):
        given = leaves(device)
        result = CALLS[name](*given)
        first = torch.autograd.grad(result.square().sum(), given, create_graph=True, allow_unused=True)
        return torch.autograd.grad(sum(g.sin().sum() for g in first if g is not None), given, allow_unused=True)

    compare(twice("cuda"), twice("cpu"))


def test_a_batch_of_gradients():
    def batch(device):
        given = leaves(device)
        result = CALLS["poisson_nll_loss"](*given).expand(3, 3)
        return torch.autograd.grad(result, given, torch.eye(9).reshape(9, 3, 3).to(device), is_grads_batched=True)

    compare(batch("cuda"), batch("cpu"))


def test_an_operand_that_was_modified_is_refused_if_it_was_saved():
    a, b = leaves("cuda")
    x, y = a * 1, b * 1
    power = y**x
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        power.sum().backward()


def test_an_operand_that_was_modified_is_no_error_if_it_was_not_saved():
    def derivatives(device):
        a, b = leaves(device)
        x = a * 1
        loss = functional.kl_div(x, b.detach())  # whose derivative by `x` needs the target only
        x.zero_()
        return torch.autograd.grad(loss, a)

    compare(derivatives("cuda"), derivatives("cpu"))


def test_a_result_that_was_modified_is_refused_if_it_was_saved():
    a, _ = leaves("cuda")
    factor = torch.linalg.cholesky(a + a.mT)
    factor.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        factor.sum().backward()


def test_a_second_backward_pass_needs_the_graph():
    for name in ("pow.Tensor_Tensor", "cosine_similarity"):
        given = leaves("cuda")
        result = CALLS[name](*given).sum()
        result.backward(retain_graph=True)
        first = [t.grad.clone() for t in given]
        result.backward()
        compare([t.grad for t in given], [2 * g.cpu() for g in first])
        with pytest.raises(RuntimeError, match="second time"):
            result.backward()


def test_hooks_of_saved_tensors_and_checkpoints_find_the_parts():
    saved = []
    a, b = leaves("cuda")
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        CALLS["cosine_similarity"](a, b)
    assert saved and all(t.is_cuda for t in saved)
    given, on_cpu = leaves("cuda"), leaves("cpu")
    checkpoint(CALLS["poisson_nll_loss"], *given, use_reentrant=False).backward()
    CALLS["poisson_nll_loss"](*on_cpu).backward()
    compare([t.grad for t in given], [t.grad for t in on_cpu])


def test_autocast_reaches_the_parts():
    x = A.cuda()
    with torch.autocast("cuda"):
        assert torch.cov(x).dtype == (x @ x).dtype == torch.float16


def test_keywords_may_be_tensors():
    def derivative(device):
        a, b = leaves(device)
        tolerance = torch.tensor(1e-3, device=device)
        found = torch.linalg.pinv(a, rtol=tolerance)
        assert torch.linalg.matrix_rank(a, rtol=tolerance).item() == 3
        return [found.detach(), *torch.autograd.grad(found.sum(), a)]

    ours, theirs = derivative("cuda"), derivative("cpu")
    for mine, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.cpu(), expected)


def test_errors_are_torchs():
    a, _ = leaves("cuda")
    with pytest.raises(torch.linalg.LinAlgError, match="positive-definite"):
        torch.linalg.cholesky(a * 0)
    with pytest.raises(RuntimeError, match="must match the size|broadcast"):
        torch.fmax(a, torch.ones(2, device="cuda", requires_grad=True))


TWO_DEVICES = """
import torch
a, b = torch.ones(3, device="cuda:0", requires_grad=True), torch.ones(3, device="cuda:1")
try:
    torch.fmax(a, b)
except RuntimeError as error:
    print(error)
"""


def test_operands_on_two_devices_are_an_error(python):
    assert "same device" in python(TWO_DEVICES, env={"MARGAY_DEVICE": "count=2"})


def test_waiting_for_the_device_is_noticed():
    a, _ = leaves("cuda")
    torch.cuda.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="synchronizing"):
            torch.linalg.inv(a)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_results_of_transforms_lie_as_on_cuda():
    x = A.cuda()
    for call in (torch.fft.fft2, torch.fft.rfft2):
        told = call(torch.empty(3, 3, device="meta"))
        assert call(x).stride() == told.stride()
