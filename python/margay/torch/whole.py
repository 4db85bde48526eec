"""Operators that torch composes of several others on every device, and that one call computes here.

Each operator of the `cuda` device costs some 10 microseconds more than on the CPU, so a composition of ten would cost 100. Below autograd,
the composition is the same for CPU tensors. Operators that allocate large results only to fill them are not here: they would copy them.
"""

_NAMES = """
    _euclidean_dist _safe_softmax _trilinear _unsafe_masked_index _unsafe_masked_index_put_accumulate
    affine_grid_generator allclose binary_cross_entropy_with_logits block_diag count_nonzero dist huber_loss_backward
    linalg_pinv.atol_rtol_tensor logsumexp mvlgamma pixel_shuffle pixel_unshuffle rot90 smooth_l1_loss_backward
    soft_margin_loss soft_margin_loss_backward
"""
NAMES = frozenset(f"aten::{name}" for name in _NAMES.split())

# Torch composes these above autograd, where a kernel of their own hides the parts from it: their results have no derivative.
ABOVE_AUTOGRAD = frozenset({"aten::isclose", "aten::isfinite"})
