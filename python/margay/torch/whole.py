"""Operators that torch composes of several others on every device, and that one call computes here.

Each operator of the `cuda` device costs some 10 microseconds more than on the CPU, so a composition of ten would cost 100. Below autograd,
the composition is the same for CPU tensors. Operators that allocate large results only to fill them are not here: they would copy them.
"""

from __future__ import annotations

import functools
import operator

import torch
from torch.autograd import forward_ad

from margay.torch import capture, refused

_NAMES = """
    _euclidean_dist _safe_softmax _trilinear _unsafe_masked_index _unsafe_masked_index_put_accumulate
    abs affine_grid_generator allclose binary_cross_entropy_with_logits block_diag count_nonzero deg2rad dist huber_loss_backward
    isinf kthvalue linalg_lstsq linalg_pinv.atol_rtol_tensor logical_and logical_not logical_or logical_xor logsumexp median.dim mvlgamma
    nanmedian.dim pixel_shuffle pixel_unshuffle rad2deg rot90 smooth_l1_loss_backward soft_margin_loss soft_margin_loss_backward
"""
NAMES = frozenset(f"aten::{name}" for name in _NAMES.split())

# Torch composes these above autograd, where a kernel of their own hides the parts from it: their results have no derivative.
ABOVE_AUTOGRAD = frozenset({"aten::isclose", "aten::isfinite"})

_DERIVED = """
    aminmax atan2 clamp.Tensor clamp_max.Tensor clamp_min.Tensor dist fmax fmin index_reduce linalg_eig linalg_householder_product linalg_lu
    linalg_lu_factor_ex linalg_lu_solve linalg_matrix_sqrth linalg_pinv.atol_rtol_tensor linalg_polar logaddexp logaddexp2 logcumsumexp max
    median min nanmedian ormqr pow.Tensor_Tensor renorm scatter_reduce.two sinc special_bessel_j1 special_i1 special_i1e
    special_modified_bessel_i1 special_xlog1py std.correction std_mean.correction
"""
#: Torch composes the derivatives of these of many operators.
DERIVED = frozenset(f"aten::{name}" for name in _DERIVED.split())

_COMPOSED = """
    _pad_circular bilinear combinations corrcoef cosine_embedding_loss cosine_similarity cov cross_entropy_loss cumulative_trapezoid.dx
    cumulative_trapezoid.x diff fft_fft fft_fft2 fft_fftn fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_ihfft2
    fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn float_power.Tensor_Scalar float_power.Tensor_Tensor gradient.array
    gradient.scalararray gradient.scalarint gradient.scalarrayarray gradient.scalarrayint hinge_embedding_loss instance_norm inverse kl_div
    l1_loss linalg_cholesky linalg_cond linalg_cond.p_str linalg_det linalg_eigvals linalg_inv linalg_ldl_factor linalg_lu_factor
    linalg_matrix_norm linalg_matrix_norm.str_ord linalg_matrix_power linalg_matrix_rank linalg_matrix_rank.atol_rtol_float
    linalg_matrix_rank.atol_rtol_tensor linalg_matrix_rank.tol_tensor linalg_norm linalg_norm.ord_str linalg_pinv linalg_pinv.atol_rtol_float
    linalg_pinv.rcond_tensor linalg_slogdet linalg_solve linalg_solve_ex linalg_tensorinv linalg_tensorsolve linalg_vander logdet lu_solve
    margin_ranking_loss matrix_power nanmean nanquantile.scalar nuclear_norm nuclear_norm.dim pairwise_distance pinverse poisson_nll_loss
    quantile.scalar special_ndtr stft stft.center take_along_dim tensordot trapezoid.dx trapezoid.x trapz.dx trapz.x triplet_margin_loss
"""
#: Torch composes these above autograd, too. Where a derivative is asked for, a node has it (`derived`), except in:
COMPOSED = frozenset(f"aten::{name}" for name in _COMPOSED.split())

_DERIVED_IN_PARTS = """
    bilinear cross_entropy_loss diff fft_fft fft_hfft fft_ifft fft_ihfft fft_irfft fft_rfft instance_norm inverse l1_loss linalg_det
    linalg_inv linalg_matrix_norm linalg_matrix_norm.str_ord linalg_matrix_power linalg_norm linalg_norm.ord_str linalg_slogdet linalg_solve
    linalg_solve_ex linalg_tensorinv linalg_tensorsolve linalg_vander matrix_power nuclear_norm nuclear_norm.dim pairwise_distance tensordot
"""
#: Those of them with derivatives in few parts, which cost less than a node, and what may change an operand.
DERIVED_IN_PARTS = frozenset(f"aten::{name}" for name in _DERIVED_IN_PARTS.split())

_EXACT = (torch.float32, torch.float64, torch.complex64, torch.complex128)
#: types for which nothing else than the keys of a call is to be looked at
_SIMPLE = frozenset((torch.float32, torch.float64, torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64))
_keys, _modes = torch._C._dispatch_keys, torch._C._len_torch_dispatch_stack
_records, _must_be_deterministic = torch.is_grad_enabled, torch._C._get_deterministic_algorithms
_autocast, _alerts = torch.is_autocast_enabled, torch._C._cuda_get_sync_debug_mode

_KEYS = (
    torch._C.DispatchKey.CUDA,
    torch._C.DispatchKey.ADInplaceOrView,
    torch._C.DispatchKey.AutogradCUDA,
    torch._C.DispatchKey.AutocastCUDA,
)
#: The dispatch keys of a tensor that is no subclass, wrapped by no transformation, and of no special layout. Not those of a new tensor: the
#: first operator may run under a mode or a transformation, which wrap it.
_PLAIN_KEYS = functools.reduce(operator.or_, map(torch._C.DispatchKeySet, _KEYS)).raw_repr()
_CALL_KEYS = functools.reduce(operator.or_, map(torch._C.DispatchKeySet, (torch._C.DispatchKey.CUDA, torch._C.DispatchKey.AutogradCUDA)))
#: The keys of a call whose tensors all have these, under no mode and no transformation.
_PLAIN_CALLS = frozenset({_CALL_KEYS.raw_repr(), (_CALL_KEYS | torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)).raw_repr()})
#: Beyond so many elements of an operand, the derivative is computed in parts: their cost does not show, but what the CPU's graph saves does.
_LARGE = 1 << 16


def is_plain(tensor) -> bool:
    """Whether an operator on this tensor and others like it is the same in one call as in parts.

    Narrow types need the parts: some of their operators are rounded otherwise than on the CPU.
    """
    if _keys(tensor).raw_repr() != _PLAIN_KEYS:
        return False
    dtype = tensor.dtype
    return dtype in _EXACT or not (dtype.is_floating_point or dtype.is_complex)


def above_autograd(name: str, computed, call=None):
    """Returns what stands above autograd for an operator: its CUDA kernel `computed`, a node that has its derivative, or its parts.

    The composition tells graphs what it writes (running statistics), and alerts where determinism is asked for.
    """
    from margay.torch import account, derived, kernel

    overload = kernel.overload_of(name)
    if torch._C._dispatch_has_kernel_for_dispatch_key(name, "Autograd"):
        in_parts = torch.library.get_kernel(overload, "AutogradCUDA").call_boxed
    else:

        def in_parts(keys, *args, **kwargs):
            return overload._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)

    below, count, differentiable = torch._C._AutoDispatchBelowAutograd, account.counter(name), name not in DERIVED_IN_PARTS
    op, listed = call or overload._op, [str(r.type) for r in overload._schema.returns] == ["List[Tensor]"]

    def choose(keys, *args, **kwargs):
        if keys.raw_repr() not in _PLAIN_CALLS:
            return in_parts(keys, *args, **kwargs)
        records, asked = _records(), False
        for value in args:
            if isinstance(value, torch.Tensor):
                if value.dtype not in simple and (product or not is_plain(value)):
                    return in_parts(keys, *args, **kwargs)
                if records and value.requires_grad:
                    if value.numel() > _LARGE:
                        return in_parts(keys, *args, **kwargs)
                    asked = True
        # Tolerances. A node takes no tensors as keywords.
        keywords = kwargs and [value for value in kwargs.values() if isinstance(value, torch.Tensor)]
        if keywords and (asked or not all(map(is_plain, keywords))):
            return in_parts(keys, *args, **kwargs)
        if _modes() or graphs or forward_ad._current_level >= 0 or _must_be_deterministic() or _autocast("cuda") or _alerts():
            return in_parts(keys, *args, **kwargs)
        if not asked:
            with below():
                return computed(*args, **kwargs)
        if not differentiable or derived.records_parts():
            return in_parts(keys, *args, **kwargs)
        try:
            with disable():
                results = derived.call(op, functools.partial(in_parts, keys), count, kwargs, *args)
                return list(results) if listed else results
        except Exception:
            return in_parts(keys, *args, **kwargs)  # which say what is wrong, or do better

    product = name in refused.PRODUCTS
    simple = (torch.float32, torch.float64) if product else _SIMPLE
    disable, graphs = torch._C.DisableTorchFunction, capture.STATE.graphs
    return choose
