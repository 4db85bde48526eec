"""Matrix products that torch's CPU has no kernel for, or not with all of CUDA's scales: of eight-bit and four-bit numbers with
scales, and of groups of matrices."""

from __future__ import annotations

import torch

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


#: the type of scales -> the elements along the inner dimension that share one
_OF_BLOCKS = {getattr(torch, "float8_e8m0fnu", None): 32, torch.float8_e4m3fn: 16}  # older releases lack the first
#: the values of `float4_e2m1fn`
_FOUR_BITS = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def _unpacked(matrix, scales, size, swizzled):
    """A matrix whose rows have a scale for each `size` elements.

    As CUDA's tensor cores take them, scales lie in tiles of 128 rows and four columns, and a tile has those of rows 32 apart side by side.
    """
    if matrix.dtype is getattr(torch, "float4_e2m1fn_x2", None):
        pairs = matrix.view(torch.uint8)  # the first of two is the lower half
        elements = _FOUR_BITS[torch.stack([pairs & 15, pairs >> 4], -1).flatten(-2).long()]
    else:
        elements = matrix.float()
    rows, columns = elements.size(0), -(-elements.size(1) // size)
    scales = scales.float()
    if swizzled:
        down, across = -(-rows // 128), -(-columns // 4)
        if scales.numel() != down * across * 512:
            raise RuntimeError(f"Invalid scaling configuration: {scales.numel()} scales for {rows} rows of {columns} blocks")
        tiles = scales.reshape(down, across, 32, 4, 4).permute(0, 3, 2, 1, 4)
        scales = tiles.reshape(down * 128, across * 4)[:rows, :columns]
    return elements * scales.reshape(rows, columns).repeat_interleave(size, 1)[:, : elements.size(1)]


def _scaled_mm(self, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False):
    if scale_a.dtype is scale_b.dtype and scale_a.dtype in _OF_BLOCKS:
        size = _OF_BLOCKS[scale_a.dtype]
        product = _unpacked(self, scale_a, size, True) @ _unpacked(mat2.t(), scale_b, size, True).t()
        return _cast(product if bias is None else product + bias, out_dtype or torch.bfloat16)
    if scale_a.dtype is not torch.float32 or scale_b.dtype is not torch.float32:
        raise NotImplementedError(f"margay: aten::_scaled_mm with scales of {scale_a.dtype} and {scale_b.dtype} on device cuda")
    (rows, depth), (inner, columns) = self.shape, mat2.shape
    # The conditions of CUDA's kernel, in its words.
    if bias is not None and out_dtype is torch.float32:
        raise RuntimeError("Bias is not supported when out_dtype is set to Float32")
    if depth != inner:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{depth} and {inner}x{columns})")
    if depth % _ALIGNED:
        raise RuntimeError(f"Expected trailing dimension of mat1 to be divisible by {_ALIGNED} but got mat1 shape: ({rows}x{depth}).")
    if columns % _ALIGNED:
        raise RuntimeError(f"mat2 shape ({inner}x{columns}) must be divisible by {_ALIGNED}")
    if depth == 0:  # CUDA's kernel then looks at neither scales nor bias
        return torch.zeros(rows, columns, dtype=out_dtype or self.dtype)
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


# torch's second interface, which names the recipe of the scales.

# Older releases lack it.
_RECIPES = {r.value: name for name, r in getattr(getattr(torch.nn.functional, "ScalingType", None), "__members__", {}).items()}
_BLOCK_SIZES = {"BlockWise1x32": 32, "BlockWise1x16": 16}


def _with_recipe(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b):
    """The product in single precision."""
    size = _BLOCK_SIZES.get(_RECIPES[recipe_a[0]])
    if size is None:
        return _scaled_mm(self, mat2, scale_a[0], scale_b[0], out_dtype=torch.float32)
    if recipe_a[0] != recipe_b[0]:
        raise RuntimeError(f"Invalid scaling configuration: {_RECIPES[recipe_a[0]]} and {_RECIPES[recipe_b[0]]}")
    product = _unpacked(self, scale_a[0], size, any(swizzle_a[:1])) @ _unpacked(mat2.t(), scale_b[0], size, any(swizzle_b[:1])).t()
    for further in (*scale_a[1:], *scale_b[1:]):  # one for all elements
        product = product * further
    return product


def _scaled_mm_v2(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype, contraction_dim=(), use_fast_accum=False):
    product = _with_recipe(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b)
    return _cast(product if bias is None else product + bias, out_dtype or torch.bfloat16)


def _scaled_addmm(
    self, mat1, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, contraction_dim=(), *, beta=1, alpha=1, use_fast_accum=False
):
    product = alpha * _with_recipe(mat1, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b)
    return (product if beta == 0 else product + beta * self).to(self.dtype)  # `self` may be NaN where it does not count


def _scaled_addmm_(self, *args, **kwargs):
    return self.copy_(_scaled_addmm(self, *args, **kwargs))


def _scaled_grouped_mm_v2(
    self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, offs=None, bias=None, out_dtype=None, *rest, **more
):
    # Over which dimensions, and how fast, changes nothing here.
    if (name := _RECIPES[recipe_a[0]]) != "RowWise":
        raise NotImplementedError(f"margay: aten::_scaled_grouped_mm_v2 with scales of {name} on device cuda")
    return _scaled_grouped_mm(self, mat2, scale_a[0], scale_b[0], offs, bias, None, out_dtype)


def _out(compute):
    def write(*args, out, **kwargs):
        result = compute(*args, **kwargs)
        return out.resize_(result.shape).copy_(result)

    return write


#: operators on CPU tensors
OURS = {
    "aten::_scaled_mm": _scaled_mm,
    "aten::_scaled_mm.out": _out(_scaled_mm),
    "aten::_scaled_grouped_mm": _scaled_grouped_mm,
    "aten::_scaled_mm_v2": _scaled_mm_v2,
    "aten::_scaled_mm_v2.out": _out(_scaled_mm_v2),
    "aten::_scaled_addmm": _scaled_addmm,
    "aten::_scaled_addmm_": _scaled_addmm_,
    "aten::_scaled_addmm.out": _out(_scaled_addmm),
    "aten::_scaled_grouped_mm_v2": _scaled_grouped_mm_v2,
    "aten::_scaled_grouped_mm_v2.out": _out(_scaled_grouped_mm_v2),
}
