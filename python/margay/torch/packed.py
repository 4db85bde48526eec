"""Products with matrices of four-bit integers, in the layout in which CUDA's kernel loads the operands of `mma.m16n8k16`."""

from __future__ import annotations

import functools

import torch

_COLUMNS = 8  # of a tile, the result's
_DEPTH = 16  # of a tile, along the inner dimension
_LANES = 32
# Where an element of a pair of tiles lies in the 32 bits that a lane has of it: the operands of one `mma` that differ only in the lowest bit
# of the inner dimension are 16 bits apart, as one instruction converts them.
_SHIFTS = (0, 16, 4, 20, 8, 24, 12, 28)


@functools.lru_cache(maxsize=8)
def _places(rows, depth, inner):
    """The row and the place along the inner dimension of each element: for each tile of rows, `inner` tiles along the inner dimension, lane,
    pair of these tiles, and element of the eight in 32 bits."""
    lanes = torch.arange(_LANES)
    row = torch.arange(0, rows, _COLUMNS).view(-1, 1, 1, 1, 1) + (lanes // 4).view(1, 1, -1, 1, 1)
    tiles = torch.arange(0, depth, _DEPTH).view(1, -1, 1, inner // 2, 2)[..., :1]
    within = torch.tensor([0, 1, 8, 9, 16, 17, 24, 25])
    column = tiles + (lanes % 4 * 2).view(1, 1, -1, 1, 1) + within
    return row, column


def _check(what, holds):
    if not holds:
        raise RuntimeError(f"margay: {what} on device cuda")


def _pack(self, innerKTiles):
    _check(f"_convert_weight_to_int4pack of {self.dtype} with {self.dim()} dimensions", self.dtype is torch.uint8 and self.dim() == 2)
    _check(f"_convert_weight_to_int4pack with innerKTiles of {innerKTiles}", innerKTiles in (2, 4, 8))
    rows, depth = self.size(0), self.size(1) * 2
    _check(f"_convert_weight_to_int4pack of {rows} rows", rows % _COLUMNS == 0)
    _check(f"_convert_weight_to_int4pack of {depth} columns", depth % (innerKTiles * _DEPTH) == 0)
    # The first of two elements in a byte has its upper half.
    elements = torch.stack([self >> 4, self & 15], 2).view(rows, depth).to(torch.int32)
    row, column = _places(rows, depth, innerKTiles)
    eights = elements[row, column]
    return (eights << torch.tensor(_SHIFTS, dtype=torch.int32)).sum(-1, dtype=torch.int32)


def _unpacked(packed):
    row_tiles, depth_tiles, _, half = packed.shape
    rows, depth = row_tiles * _COLUMNS, depth_tiles * half * 2 * _DEPTH
    row, column = _places(rows, depth, half * 2)
    elements = torch.empty(rows, depth, dtype=torch.int32)
    elements[row, column] = packed[..., None] >> torch.tensor(_SHIFTS, dtype=torch.int32) & 15
    return elements


def _int4_mm(self, mat2, qGroupSize, qScaleAndZeros):
    _check(f"_weight_int4pack_mm of {self.dtype}", self.dtype is torch.bfloat16 and qScaleAndZeros.dtype is torch.bfloat16)
    _check(f"_weight_int4pack_mm with weights of {mat2.dtype}", mat2.dtype is torch.int32 and mat2.dim() == 4)
    elements = _unpacked(mat2)
    _check(f"_weight_int4pack_mm of {self.size(1)} columns", self.size(1) == elements.size(1))
    # One multiplication with an addition, rounded once to the type of the operands.
    scale, zero = (qScaleAndZeros[..., i].t().repeat_interleave(qGroupSize, 1).float() for i in (0, 1))
    weights = ((elements - 8) * scale + zero).to(self.dtype)
    return (self.float() @ weights.float().t()).to(self.dtype)


#: operators on CPU tensors
OURS = {
    "aten::_convert_weight_to_int4pack": _pack,
    "aten::_weight_int4pack_mm": _int4_mm,
}
