"""Operators that torch composes of several others on every device, and that one call computes here.

Each operator of the `cuda` device costs some 10 microseconds more than on the CPU, so a composition of ten would cost 100. Below autograd,
the composition is the same for CPU tensors. Operators that allocate large results only to fill them are not here: they would copy them.
"""

from __future__ import annotations

import functools

import torch
from torch.autograd import forward_ad

from margay.torch import capture

_NAMES = """
    _euclidean_dist _safe_softmax _trilinear _unsafe_masked_index _unsafe_masked_index_put_accumulate
    affine_grid_generator allclose binary_cross_entropy_with_logits block_diag count_nonzero dist huber_loss_backward
    linalg_pinv.atol_rtol_tensor logsumexp mvlgamma pixel_shuffle pixel_unshuffle rot90 smooth_l1_loss_backward
    soft_margin_loss soft_margin_loss_backward
"""
NAMES = frozenset(f"aten::{name}" for name in _NAMES.split())

# Torch composes these above autograd, where a kernel of their own hides the parts from it: their results have no derivative.
ABOVE_AUTOGRAD = frozenset({"aten::isclose", "aten::isfinite"})

_WITHOUT_DERIVATIVE = """
    _pad_circular combinations corrcoef cosine_embedding_loss cosine_similarity cov cross_entropy_loss cumulative_trapezoid.dx
    cumulative_trapezoid.x hinge_embedding_loss instance_norm kl_div l1_loss linalg_vander logdet margin_ranking_loss nanmean
    nanquantile.scalar pairwise_distance poisson_nll_loss quantile.scalar trapezoid.dx trapezoid.x triplet_margin_loss
"""
#: Torch composes these above autograd, too. One call computes them where nobody asks for a derivative.
WITHOUT_DERIVATIVE = frozenset(f"aten::{name}" for name in _WITHOUT_DERIVATIVE.split())

_EXACT = (torch.float32, torch.float64)
_keys, _modes = torch._C._dispatch_keys, torch._C._len_torch_dispatch_stack
_records, _must_be_deterministic = torch.is_grad_enabled, torch._C._get_deterministic_algorithms


@functools.cache
def _plain_keys(device: int) -> int:
    """The dispatch keys of a tensor that is no subclass, wrapped by no transformation, and of no special layout."""
    return _keys(torch.empty(0, device=f"cuda:{device}")).raw_repr()


def _is_plain(tensor, records: bool) -> bool:
    """Whether an operator on this tensor and others like it is the same in one call as in parts.

    Derivatives need the parts, as do narrow types, some of whose operators are rounded otherwise than on the CPU.
    """
    if records and tensor.requires_grad:
        return False
    device = tensor.get_device()
    if device < 0 or _keys(tensor).raw_repr() != _plain_keys(device):
        return False
    dtype = tensor.dtype
    return dtype in _EXACT or not (dtype.is_floating_point or dtype.is_complex)


def unless_derived(name: str, computed):
    """Returns what stands above autograd for an operator of `WITHOUT_DERIVATIVE`: `computed`, its kernel, or the composition.

    The composition tells graphs what it writes (running statistics), and alerts where determinism is asked for.
    """
    from margay.torch import kernel

    composed = functools.partial(kernel.overload_of(name)._op_dk, torch._C.DispatchKey.CompositeImplicitAutograd)
    below = torch._C._AutoDispatchBelowAutograd

    def choose(*args, **kwargs):
        records = _records()
        for value in args:  # no keyword of theirs is a tensor
            if isinstance(value, torch.Tensor) and not _is_plain(value, records):
                return composed(*args, **kwargs)
        if _modes() or capture.STATE.graphs or forward_ad._current_level >= 0 or _must_be_deterministic():
            return composed(*args, **kwargs)
        with below():
            return computed(*args, **kwargs)

    return choose
