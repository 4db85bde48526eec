"""Matrix products that torch's CPU has no kernel for, or not with all of CUDA's scales: of eight-bit numbers with scales, of groups of
matrices, and of matrices of which two of four elements are zero."""

from __future__ import annotations

import torch
from torch.sparse import _semi_structured_conversions as conversions

#: elements along the inner dimension that share a scale
_BLOCK = 128
#: what rows and columns of eight-bit matrices are a multiple of
_ALIGNED = 16


def _cast(product, out_dtype, scale_result=None):
    """Results in eight bits saturate, and only they have a scale."""
    if out_dtype.itemsize > 1:
        return product.to(out_dtype)
    if scale_result is not None:
        product = product * scale_result
    limits = torch.finfo(out_dtype)
    return product.clamp(limits.min, limits.max).to(out_dtype)


def _expanded(scale, shape):
    """Gives every element its scale: one for all, for a row or column, or for a block."""
    if scale.numel() == 1:
        return scale.reshape(())
    if scale.dim() != len(shape):
        return None
    for d, size in enumerate(shape):
        if scale.size(d) == size or scale.size(d) == 1:
            continue
        if scale.size(d) != -(-size // _BLOCK):
            return None
        scale = scale.repeat_interleave(_BLOCK, d).narrow(d, 0, size)
    return scale


def _scaled_mm(self, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False):
    if scale_a.dtype is not torch.float32 or scale_b.dtype is not torch.float32:
        raise NotImplementedError(f"margay: aten::_scaled_mm with scales of {scale_a.dtype} and {scale_b.dtype} on device cuda")
    (rows, depth), (inner, columns) = self.shape, mat2.shape
    # The conditions of CUDA's kernel, in its words.
    if depth != inner:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{depth} and {inner}x{columns})")
    if depth % _ALIGNED:
        raise RuntimeError(f"Expected trailing dimension of mat1 to be divisible by {_ALIGNED} but got mat1 shape: ({rows}x{depth}).")
    if columns % _ALIGNED:
        raise RuntimeError(f"mat2 shape ({inner}x{columns}) must be divisible by {_ALIGNED}")
    a, b = _expanded(scale_a, self.shape), _expanded(scale_b, mat2.shape)
    if a is None or b is None:
        raise RuntimeError(
            f"Invalid scaling configuration: scales of {tuple(scale_a.shape)} and {tuple(scale_b.shape)} "
            f"for operands of {tuple(self.shape)} and {tuple(mat2.shape)}"
        )
    if depth > 1 and any(s.numel() > 1 and s.size(d) > 1 for s, d in ((scale_a, 1), (scale_b, 0))):
        product = (self.float() * a) @ (mat2.float() * b)
    else:
        product = self.float() @ mat2.float() * a * b
    if bias is not None:
        product = product + bias
    return _cast(product, out_dtype or self.dtype, scale_result)


def _scaled_mm_out(*args, out, **kwargs):
    result = _scaled_mm(*args, **kwargs)
    return out.resize_(result.shape).copy_(result)


def _groups(offs):
    ends = offs.tolist()
    return list(zip([0, *ends[:-1]], ends))


def _scaled_grouped_mm(
    self, mat2, scale_a, scale_b, offs=None, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False
):
    a, b, out_dtype = self.float(), mat2.float(), out_dtype or torch.bfloat16
    if self.dim() == 3 and mat2.dim() == 3:
        return _cast(a @ b * scale_a[..., None] * scale_b[:, None, :], out_dtype)
    groups = _groups(offs)
    if self.dim() == 2 and mat2.dim() == 2:  # the inner dimension is in groups, each with scales of its own
        rows, columns = scale_a.view(len(groups), -1, 1), scale_b.view(len(groups), 1, -1)
        return _cast(torch.stack([a[:, i:j] @ b[i:j] for i, j in groups]) * rows * columns, out_dtype)
    if self.dim() == 2:
        parts = [a[i:j] @ b[g] * scale_a[i:j, None] * scale_b[g] for g, (i, j) in enumerate(groups)]
        whole, done = torch.zeros(self.size(0), mat2.size(2)), torch.cat(parts)
        whole[: done.size(0)] = done
    else:
        parts = [a[g] @ b[:, i:j] * scale_a[g][:, None] * scale_b[i:j] for g, (i, j) in enumerate(groups)]
        whole, done = torch.zeros(self.size(1), mat2.size(1)), torch.cat(parts, 1)
        whole[:, : done.size(1)] = done
    return _cast(whole, out_dtype)


# Two of four: CUTLASS's format, which torch itself can convert, and an own one in place of cuSPARSELt's, which is opaque.


def _product(dense, other, out_dtype, bias=None, alpha=1, beta=1):
    out_dtype = out_dtype or (torch.int32 if dense.dtype is torch.int8 else dense.dtype)
    wide = torch.int32 if dense.dtype is torch.int8 else torch.float32
    product = dense.to(wide) @ other.to(wide)
    if alpha is not None and (isinstance(alpha, torch.Tensor) or alpha != 1):
        product = product * alpha
    if bias is not None:
        product = product + (bias if beta == 1 else beta * bias)
    return product.to(out_dtype)


def _semi_mm(mat1, mat1_meta, mat2, *, out_dtype=None):
    return _product(conversions.sparse_semi_structured_to_dense_cutlass(mat1, mat1_meta), mat2, out_dtype)


def _semi_addmm(input, mat1, mat1_meta, mat2, *, alpha=1, beta=1, out_dtype=None):
    dense = conversions.sparse_semi_structured_to_dense_cutlass(mat1, mat1_meta)
    return _product(dense, mat2, out_dtype, input[:, None] if input.dim() == 1 else input, alpha, beta)


def _semi_linear(input, weight, meta, *, bias=None, activation=None, out_dtype=None):
    dense = conversions.sparse_semi_structured_to_dense_cutlass(weight, meta)
    flat = _product(input.reshape(-1, input.size(-1)), dense.t(), out_dtype, bias)
    if activation is not None:
        flat = {"relu": torch.relu, "silu": torch.nn.functional.silu}[activation](flat)
    return flat.view(*input.shape[:-1], -1)


def _factor(dtype):
    """Sixteenths of the dense matrix that the compressed one has."""
    return 10 if dtype.itemsize == 1 else 9


def _cslt_compress(input):
    quads = input.reshape(-1, 4)
    # Nonzero elements first, each in its order.
    places = torch.sort((quads == 0).to(torch.int8), dim=1, stable=True).indices[:, :2].sort(dim=1).values
    values = quads.gather(1, places).reshape(-1)
    codes = (places[:, 0] | places[:, 1] << 2).to(torch.uint8).view(-1, 2)
    codes = codes[:, 0] | codes[:, 1] << 4
    whole = torch.zeros(input.numel() * _factor(input.dtype) // 16, dtype=input.dtype)
    whole[: values.numel()] = values
    whole[values.numel() :].view(torch.uint8)[: codes.numel()] = codes
    return whole


def _cslt_dense(compressed, columns):
    elements = compressed.numel() * 16 // _factor(compressed.dtype)
    values = compressed[: elements // 2].view(-1, 2)
    codes = compressed[elements // 2 :].view(torch.uint8)[: elements // 8].long()
    codes = torch.stack([codes & 15, codes >> 4], 1).view(-1)
    dense = torch.zeros(elements // 4, 4, dtype=compressed.dtype)
    dense.scatter_(1, torch.stack([codes & 3, codes >> 2], 1), values)
    return dense.view(-1, columns)


def _cslt_mm(
    compressed_A, dense_B, bias=None, alpha=None, out_dtype=None, transpose_result=False, alg_id=0, split_k=1, split_k_mode=-1
):
    dense = _cslt_dense(compressed_A, dense_B.size(0))
    out_dtype = out_dtype or dense.dtype
    bias = None if bias is None else bias[:, None]
    result = _product(dense, dense_B, torch.float32 if alpha is not None else out_dtype, bias, alpha).to(out_dtype)
    return result.t().contiguous() if transpose_result else result


def _cslt_search(compressed_A, dense_B, bias=None, alpha=None, out_dtype=None, transpose_result=False):
    return 0


#: operators on CPU tensors
OURS = {
    "aten::_scaled_mm": _scaled_mm,
    "aten::_scaled_mm.out": _scaled_mm_out,
    "aten::_scaled_grouped_mm": _scaled_grouped_mm,
    "aten::_sparse_semi_structured_mm": _semi_mm,
    "aten::_sparse_semi_structured_addmm": _semi_addmm,
    "aten::_sparse_semi_structured_linear": _semi_linear,
    "aten::_cslt_compress": _cslt_compress,
    "aten::_cslt_sparse_mm": _cslt_mm,
    "aten::_cslt_sparse_mm_search": _cslt_search,
}
