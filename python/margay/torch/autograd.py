"""Derivatives inside a kernel, where torch's autograd is disabled."""

from __future__ import annotations

import contextlib

import torch


@contextlib.contextmanager
def differentiable():
    """Records operations on CPU tensors for `torch.autograd.grad`."""
    exclude = torch._C._dispatch_tls_local_exclude_set()
    for key in ("AutogradCPU", "AutogradOther", "ADInplaceOrView"):
        exclude = exclude.remove(torch._C._dispatch_key_parse(key))
    include = torch._C._dispatch_tls_local_include_set() | torch._C.DispatchKeySet(torch._C._dispatch_key_parse("ADInplaceOrView"))
    with torch._C._ForceDispatchKeyGuard(include, exclude), torch.inference_mode(False), torch.enable_grad():
        yield
