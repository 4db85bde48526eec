"""Types for which CUDA has no kernel of an operator although the CPU has: they are refused in the words of CUDA's."""

from __future__ import annotations

import torch

_NARROW = (torch.float16, torch.bfloat16)
_WHOLE = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_COMPLEX = (torch.complex32, torch.complex64, torch.complex128)
_ONLY_FLOATING = (*_WHOLE, *_COMPLEX)

#: the name that CUDA's kernel goes by -> the types that it refuses, and the operators that it computes
_KERNELS = {
    "addmm_cuda": ((*_WHOLE, torch.complex32), "mm addmm addmm_ addbmm addbmm_"),
    "baddbmm_cuda": ((*_WHOLE, torch.complex32), "bmm baddbmm baddbmm_"),
    "addmv_impl_cuda": ((*_WHOLE, torch.complex32), "mv addmv addmv_"),
    "dot": ((*_WHOLE, torch.complex32), "dot"),
    "vdot": ((torch.complex32,), "vdot"),
    "avg_pool2d_out_cuda_frame": (_ONLY_FLOATING, "avg_pool2d"),
    "avg_pool3d_out_cuda": (_ONLY_FLOATING, "avg_pool3d"),
    "max_pool2d_with_indices_out_cuda_frame": (_ONLY_FLOATING, "max_pool2d_with_indices"),
    "max_pool3d_with_indices_out_frame": (_ONLY_FLOATING, "max_pool3d_with_indices"),
    "adaptive_avg_pool2d_cuda": (_ONLY_FLOATING, "_adaptive_avg_pool2d adaptive_avg_pool2d"),
    "adaptive_avg_pool3d_cuda": (_ONLY_FLOATING, "_adaptive_avg_pool3d adaptive_avg_pool3d"),
    "adaptive_max_pool2d_cuda": (_ONLY_FLOATING, "adaptive_max_pool2d"),
    "adaptive_max_pool3d_cuda": (_ONLY_FLOATING, "adaptive_max_pool3d"),
    "upsample_bilinear2d_out_frame": (_ONLY_FLOATING, "upsample_bilinear2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa"),
    "upsample_bicubic2d_out_frame": (_ONLY_FLOATING, "upsample_bicubic2d"),
    "cdist_cuda": (_NARROW, "_cdist_forward"),
    "pdist_cuda": (_NARROW, "_pdist_forward"),
    "ctc_loss_cuda": (_NARROW, "_ctc_loss"),
    "igamma_cuda": (_NARROW, "igamma igamma_"),
    "igammac_cuda": (_NARROW, "igammac igammac_"),
    "histc": ((*_NARROW, torch.bool), "histc"),
    "searchsorted_out_cuda": ((torch.bool,), "searchsorted bucketize"),
}
_SPECIAL = """
    airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v
    chebyshev_polynomial_w erfcx hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p log_ndtr
    modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 ndtri scaled_modified_bessel_k0 scaled_modified_bessel_k1
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w
    spherical_bessel_j0 zeta
"""
_BASES = {f"aten::{base}": (name, frozenset(types)) for name, (types, bases) in _KERNELS.items() for base in bases.split()}
_BASES |= {f"aten::special_{name}": (f"{name}_cuda", frozenset(_NARROW)) for name in _SPECIAL.split()}
_BASES["aten::vdot"] = "vdot", frozenset((*_WHOLE, torch.complex32))
#: element by element, kernels are chosen before their elements are counted
_EVEN_EMPTY = frozenset(name for name in _BASES if name.startswith(("aten::special_", "aten::igamma")))
_CONVOLUTIONS = frozenset(("aten::convolution", "aten::convolution_overrideable", "aten::cudnn_convolution", "aten::cudnn_convolution_transpose"))

#: operators that torch composes of products of matrices
PRODUCTS = frozenset(f"aten::{name}" for name in "bilinear _trilinear linalg_matrix_power matrix_power tensordot".split())

_NAMES = {torch.bool: "Bool", torch.uint8: "Byte", torch.int8: "Char", torch.int16: "Short", torch.int32: "Int", torch.int64: "Long"}
_NAMES |= {torch.float16: "Half", torch.bfloat16: "BFloat16"}
_NAMES |= {torch.complex32: "ComplexHalf", torch.complex64: "ComplexFloat", torch.complex128: "ComplexDouble"}


def types_of(name: str):
    """The types of the first tensor that CUDA's kernel of an operator refuses."""
    base = name.partition(".")[0]
    return frozenset(_WHOLE) if base in _CONVOLUTIONS else _BASES.get(base, ("", frozenset()))[1]


def refuse(name: str, tensors) -> None:
    """Raises CUDA's error for tensors the first of which has such a type, except where its kernel has nothing to do, or converts it."""
    dtype, base = tensors[0].dtype, name.partition(".")[0]
    if base not in _EVEN_EMPTY and any(t is not None and t.numel() == 0 for t in tensors):
        return
    if dtype in _NARROW and any(t.dtype is not dtype and t.dtype.is_floating_point for t in tensors if t is not None):
        return
    if base in _CONVOLUTIONS:
        if torch.backends.cudnn.enabled:
            raise RuntimeError(f"getCudnnDataTypeFromScalarType() not supported for {_NAMES[dtype]}")
        raise NotImplementedError(f"\"slow_conv2d_cuda\" not implemented for '{_NAMES[dtype]}'")
    kernel = _BASES[base][0]
    if kernel == "vdot" and not dtype.is_complex:
        kernel = "dot"
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{_NAMES[dtype]}'")


def _check_reduction(self, dim, index, source, reduce=None, **options) -> None:
    """CUDA's kernels reduce complex numbers and truth values by sums only."""
    reduce = options.get("reduce", reduce)
    if reduce not in ("sum", "add") and (self.dtype is torch.bool or self.dtype.is_complex) and index.numel():
        kernel = "cuda_scatter_gather_base_kernel_func" if isinstance(source, torch.Tensor) else "cuda_scatter_fill_base_kernel_reduce_multiply"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{_NAMES[self.dtype]}'")


def check_of(name: str):
    """What checks the types of a call of an operator first; `None` if nothing has to."""
    base, _, overload = name.removeprefix("aten::").partition(".")
    reduces = base in ("scatter_reduce", "scatter_reduce_") or (base in ("scatter", "scatter_") and "reduce" in overload)
    return _check_reduction if reduces else None
