"""Matrices of which two of four elements are zero: their products, and what makes such matrices of dense ones.

Their compressed form is CUTLASS's, which torch itself can convert, or an own one in place of cuSPARSELt's, which is opaque.
"""

from __future__ import annotations

import torch
from torch.sparse import _semi_structured_conversions as conversions


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
    compressed = compressed.flatten()  # torch gives it rows, which mean nothing
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


# Matrices of which two of four elements of every row and of every column of a tile of four by four are kept.


def _tiles(dense):
    """The tiles of a matrix, each as 16 elements."""
    rows, columns = dense.shape
    return dense.view(rows // 4, 4, columns // 4, 4).transpose(1, 2).reshape(-1, 16)


def _untiled(tiles, rows, columns):
    return tiles.view(rows // 4, columns // 4, 4, 4).transpose(1, 2).reshape(rows, columns)


def _kept(dense, by_magnitude):
    """Which elements are kept: the largest first, as long as their row and their column of the tile have fewer than two."""
    tiles = _tiles(dense).float()
    order = (tiles.abs() if by_magnitude else tiles).sort(dim=1, descending=True, stable=True).indices
    count, each = tiles.size(0), torch.arange(tiles.size(0))
    kept = torch.zeros(count, 16, dtype=torch.bool)
    in_row, in_column = torch.zeros(count, 4, dtype=torch.int8), torch.zeros(count, 4, dtype=torch.int8)
    for at in order.unbind(1):
        row, column = at // 4, at % 4
        fits = (in_row[each, row] < 2) & (in_column[each, column] < 2)
        kept[each, at] = fits
        in_row[each, row] += fits
        in_column[each, column] += fits
    return _untiled(kept, *dense.shape)


def _packed(dense, kept):
    """CUTLASS's compressed form of the elements kept, of which some may be zero."""
    # Two of four, even if fewer are kept: the others are zero.
    places = torch.sort((~kept).to(torch.int8).view(-1, 4), dim=1, stable=True).indices[:, :2].sort(dim=1).values
    values = torch.where(kept, dense, 0).view(-1, 4).gather(1, places).view(dense.size(0), -1)
    chosen = torch.zeros_like(dense).view(-1, 4).scatter_(1, places, 1).view_as(dense)
    return values, conversions.sparse_semi_structured_from_dense_cutlass(chosen)[1]


def _check_input(name, input):
    if input.dim() != 2 or input.size(0) % 32 or input.size(1) % 32 or input.dtype not in (torch.float16, torch.bfloat16):
        raise RuntimeError(f"margay: aten::{name} of {tuple(input.shape)} {input.dtype} on device cuda")


def _tile(input, algorithm="", use_cutlass=True):
    _check_input("_sparse_semi_structured_tile", input)
    if algorithm not in ("", "largest_values_greedy", "largest_abs_values_greedy"):
        raise NotImplementedError(f"margay: aten::_sparse_semi_structured_tile with the algorithm {algorithm} on device cuda")
    kept = _kept(input, algorithm == "largest_abs_values_greedy")
    masks = _masks(kept)
    if use_cutlass:
        return (*_packed(input, kept), *_packed(input.t().contiguous(), kept.t().contiguous()), masks)
    pruned = torch.where(kept, input, 0)
    none = torch.empty(0, dtype=torch.int16)  # cuSPARSELt has the places in the same tensor
    return _cslt_compress(pruned), none, _cslt_compress(pruned.t().contiguous()), none.clone(), masks


def _masks(kept):
    """A bit for each element, as `_kept_by` takes them."""
    rows, columns = kept.size(0) // 8, kept.size(1) // 8
    tiles = kept.view(rows, 2, 4, columns, 2, 4).permute(0, 3, 1, 4, 2, 5).reshape(rows, columns, 4, 2, 8)
    return (tiles.to(torch.uint8) << torch.arange(8, dtype=torch.uint8)).sum(-1, dtype=torch.uint8)


def _kept_by(masks):
    """Which elements are kept, from a bit for each: in tiles of eight by eight, which are four tiles of four by four."""
    bits = masks[..., None] >> torch.arange(8, dtype=torch.uint8) & 1
    rows, columns = masks.size(0), masks.size(1)
    return bits.view(rows, columns, 2, 2, 4, 4).permute(0, 2, 4, 1, 3, 5).reshape(rows * 8, columns * 8).bool()


def _apply(input, thread_masks):
    _check_input("_sparse_semi_structured_apply", input)
    kept = _kept_by(thread_masks)
    return _packed(input, kept)[0], _packed(input.t().contiguous(), kept.t().contiguous())[0]


def _apply_dense(input, thread_masks):
    _check_input("_sparse_semi_structured_apply_dense", input)
    return torch.where(_kept_by(thread_masks), input, 0)


#: operators on CPU tensors
OURS = {
    "aten::_sparse_semi_structured_mm": _semi_mm,
    "aten::_sparse_semi_structured_addmm": _semi_addmm,
    "aten::_sparse_semi_structured_linear": _semi_linear,
    "aten::_sparse_semi_structured_tile": _tile,
    "aten::_sparse_semi_structured_apply": _apply,
    "aten::_sparse_semi_structured_apply_dense": _apply_dense,
    "aten::_cslt_compress": _cslt_compress,
    "aten::_cslt_sparse_mm": _cslt_mm,
    "aten::_cslt_sparse_mm_search": _cslt_search,
}
