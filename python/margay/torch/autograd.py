"""Derivatives inside a kernel, where torch's autograd is disabled."""

from __future__ import annotations

import contextlib

import torch


@contextlib.contextmanager
def _recorded():
    """Records operations on CPU tensors for `torch.autograd.grad`."""
    exclude = torch._C._dispatch_tls_local_exclude_set()
    for key in ("AutogradCPU", "AutogradOther", "ADInplaceOrView"):
        exclude = exclude.remove(torch._C._dispatch_key_parse(key))
    include = torch._C._dispatch_tls_local_include_set() | torch._C.DispatchKeySet(torch._C._dispatch_key_parse("ADInplaceOrView"))
    with torch._C._ForceDispatchKeyGuard(include, exclude), torch.inference_mode(False), torch.enable_grad():
        yield


def gradients(compute, inputs, wanted, grad_outs):
    """Returns the derivatives with respect to `inputs` of what `compute` makes of them, given those with respect to its results.

    The derivative of an input is `None` if the input is, or if it is not `wanted`.
    """
    with _recorded():
        leaves = [None if t is None else t.detach().requires_grad_(w) for t, w in zip(inputs, wanted, strict=True)]
        pairs = [(r, g) for r, g in zip(compute(*leaves), grad_outs, strict=True) if r is not None and g is not None]
        asked = [t for t in leaves if t is not None and t.requires_grad]
        found = iter(torch.autograd.grad([r for r, _ in pairs], asked, [g for _, g in pairs], allow_unused=True))
        grads = [next(found) if t is not None and t.requires_grad else None for t in leaves]
    # What the results do not depend on.
    return [torch.zeros_like(t) if g is None and w and t is not None else g for g, w, t in zip(grads, wanted, inputs, strict=True)]
