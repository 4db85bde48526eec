"""Matrix products that torch's CPU does not have, against products of dense matrices in single precision."""

import re

import pytest
import torch
from torch.sparse import SparseSemiStructuredTensor, to_sparse_semi_structured

FP8 = torch.float8_e4m3fn


def eight_bit(*shape):
    return torch.randn(*shape).to(FP8)


def close(actual, expected):
    torch.testing.assert_close(actual.cpu().float(), expected.float(), rtol=1e-2, atol=1e-1)


@pytest.mark.parametrize("rows, columns", [((1,), (1,)), ((48, 1), (1, 32)), ((48, 2), (2, 32)), ((48, 2), (2, 1))])
def test_products_of_eight_bits_take_scales(rows, columns):
    a, b, bias = eight_bit(48, 256), eight_bit(32, 256).t(), torch.randn(32).bfloat16()
    scale_a, scale_b = torch.rand(rows) + 0.5, torch.rand(columns) + 0.5

    def whole(scale, shape):
        if scale.numel() == 1:
            return scale
        for d in (0, 1):
            scale = scale.repeat_interleave(shape[d] // scale.size(d), d)
        return scale

    expected = (a.float() * whole(scale_a, a.shape)) @ (b.float() * whole(scale_b, b.shape))
    arguments = [t.cuda() for t in (a, b, scale_a, scale_b)]
    close(torch._scaled_mm(*arguments, out_dtype=torch.bfloat16), expected)
    close(torch._scaled_mm(*arguments, out_dtype=torch.bfloat16, bias=bias.cuda()), expected + bias)
    with pytest.raises(RuntimeError, match="Bias is not supported when out_dtype is set to Float32"):
        torch._scaled_mm(*arguments, out_dtype=torch.float32, bias=bias.cuda())


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (3, 5), (0, 2, 2)])
def test_triangular_factors_without_pivots(shape):
    a = torch.randn(shape, dtype=torch.float64) + 3 * torch.eye(*shape[-2:], dtype=torch.float64)
    p, lower, upper = torch.linalg.lu(a.cuda(), pivot=False)
    assert p.numel() == 0 and torch.equal(lower.tril(), lower) and torch.equal(upper.triu(), upper)
    torch.testing.assert_close((lower @ upper).cpu(), a)
    factors, pivots = torch.linalg.lu_factor(a.cuda(), pivot=False)
    assert pivots.dtype is torch.int32 and pivots.shape == (*shape[:-2], min(shape[-2:]))
    if shape == (3, 3):
        assert pivots.tolist() == [1, 2, 3]
        torch.testing.assert_close(torch.linalg.lu_solve(factors, pivots, a.cuda()).cpu(), torch.eye(3, dtype=torch.float64))
        assert torch.autograd.gradcheck(lambda x: torch.linalg.lu(x, pivot=False)[1:], a.cuda().requires_grad_())
        assert torch.linalg.lu_factor_ex(torch.diag(torch.tensor([1.0, 0, 2])).cuda(), pivot=False).info.item() == 2


def test_activations_of_products():
    bias, a, b = torch.randn(5), torch.randn(3, 4), torch.randn(4, 5)
    product, given = torch.addmm(bias, a, b), [t.cuda() for t in (bias, a, b)]
    torch.testing.assert_close(torch._addmm_activation(*given).cpu(), product.relu())
    curve = torch.nn.functional.gelu(product, approximate="tanh")
    torch.testing.assert_close(torch._addmm_activation(*given, use_gelu=True).cpu(), curve)
    out = torch.empty(0, device="cuda")
    torch._addmm_activation(*given, use_gelu=True, out=out)
    torch.testing.assert_close(out.cpu(), curve)
    half = torch._addmm_activation(*[t.half() for t in given], use_gelu=True)
    torch.testing.assert_close(half.cpu(), curve.half(), rtol=5e-3, atol=5e-3)


def test_cuda_has_one_solver_of_least_squares():
    a, b = torch.randn(4, 2, device="cuda"), torch.randn(4, 1, device="cuda")
    expected = torch.linalg.lstsq(a.cpu(), b.cpu()).solution
    for driver in (None, "gels"):
        torch.testing.assert_close(torch.linalg.lstsq(a, b, driver=driver).solution.cpu(), expected)
    with pytest.raises(RuntimeError, match="`driver` other than `gels` is not supported on CUDA"):
        torch.linalg.lstsq(a, b, driver="gelsy")


def test_products_over_no_elements_are_zero():
    a, b, scale = torch.empty(16, 0, device="cuda").to(FP8), torch.empty(32, 0, device="cuda").to(FP8), torch.tensor(float("inf"), device="cuda")
    assert torch.equal(torch._scaled_mm(a, b.t(), scale, scale, out_dtype=torch.bfloat16).cpu(), torch.zeros(16, 32, dtype=torch.bfloat16))


def test_scales_of_no_operand_are_refused():
    with pytest.raises(RuntimeError, match="Invalid scaling configuration"):
        torch._scaled_mm(eight_bit(16, 32).cuda(), eight_bit(16, 32).cuda().t(), torch.ones(7, 1).cuda(), torch.ones(1, 16).cuda())


def test_eight_bit_results_saturate():
    big = torch.full((16, 32), 448.0).to(FP8).cuda()
    one = torch.ones(1, device="cuda")
    assert torch._scaled_mm(big, big.t(), one, one, out_dtype=FP8).float().max() == 448


@pytest.mark.skipif(not hasattr(torch, "_scaled_grouped_mm"), reason="this release of torch lacks it")
def test_groups_of_rows_meet_matrices_of_their_own():
    a, b, ends = eight_bit(64, 32), eight_bit(3, 16, 32), torch.tensor([16, 48, 64], dtype=torch.int32)
    scale_a, scale_b = torch.rand(64), torch.rand(3, 16)
    result = torch._scaled_grouped_mm(
        a.cuda(), b.cuda().transpose(-2, -1), scale_a.cuda(), scale_b.cuda(), ends.cuda(), out_dtype=torch.bfloat16
    )
    group = torch.repeat_interleave(torch.arange(3), torch.tensor([16, 32, 16]))
    expected = torch.stack([(a[i].float() * scale_a[i]) @ (b[g].float() * scale_b[g][:, None]).t() for i, g in enumerate(group)])
    close(result, expected)


@pytest.mark.parametrize("cutlass", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int8])
def test_two_of_four(cutlass, dtype, monkeypatch):
    monkeypatch.setattr(SparseSemiStructuredTensor, "_FORCE_CUTLASS", cutlass)
    # Every pair of places, and groups with fewer elements.
    pairs = torch.tensor([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 1, 0], [0, 0, 0, 0]])
    mask = pairs[torch.randint(0, 8, (128 * 128 // 4,))].view(128, 128)
    dense = (torch.randint(-5, 6, (128, 128)) * mask).to(dtype)
    other = torch.randint(-1, 2, (64, 128)).to(dtype).t()
    sparse = to_sparse_semi_structured(dense.cuda())
    product = (dense.float() @ other.float()).to(torch.int32 if dtype is torch.int8 and cutlass else dtype)
    assert torch.equal(torch.mm(sparse, other.cuda()).cpu(), product)
    assert torch.equal(sparse.to_dense().cpu(), dense)
    if dtype is not torch.int8:
        bias = torch.randint(-3, 4, (128,)).to(dtype)
        linear = torch.nn.functional.linear(other.t().cuda(), sparse, bias.cuda())
        assert torch.equal(linear.cpu(), torch.nn.functional.linear(other.t().float(), dense.float(), bias.float()).to(dtype))


@pytest.mark.parametrize(("depth", "columns", "words"), [(41, 32, "divisible by 16 but got mat1 shape: (4x41)"), (32, 9, "(32x9) must be divisible")])
def test_scaled_products_need_multiples_of_sixteen(depth, columns, words):
    a = torch.ones(4, depth, device="cuda").to(torch.float8_e4m3fn)
    b = torch.ones(columns, depth, device="cuda").to(torch.float8_e4m3fn).t()
    scale = torch.ones((), device="cuda")
    with pytest.raises(RuntimeError, match=re.escape(words)):
        torch._scaled_mm(a, b, scale, scale, out_dtype=torch.bfloat16)


@pytest.mark.parametrize("inner", [2, 4, 8])
def test_products_with_packed_integers_of_four_bits(inner):
    torch.manual_seed(0)
    elements = torch.randint(0, 16, (24, 256), dtype=torch.int32)
    scales = torch.rand(2, 24, 2).bfloat16()
    x = torch.randn(5, 256).bfloat16()
    packed = torch._convert_weight_to_int4pack((elements[:, ::2] << 4 | elements[:, 1::2]).to(torch.uint8).cuda(), inner)
    assert packed.shape == (3, 256 // 16 // inner, 32, inner // 2) and packed.dtype is torch.int32
    # The B operand of `mma.m16n8k16`: lane 5 has row 1 of the tile and four elements along the inner dimension, for each of two tiles.
    eight = elements[8 + 1, [2, 10, 18, 26, 3, 11, 19, 27]].tolist()
    assert packed[1, 0, 5, 0].item() & 0xFFFFFFFF == sum(e << 4 * i for i, e in enumerate(eight))
    result = torch._weight_int4pack_mm(x.cuda(), packed, 128, scales.cuda()).cpu()
    scale, zero = (scales[..., i].t().repeat_interleave(128, 1).float() for i in (0, 1))
    weights = ((elements - 8) * scale + zero).bfloat16().float()
    torch.testing.assert_close(result, (x.float() @ weights.t()).bfloat16(), rtol=1e-2, atol=1e-2)


def in_tiles(scales):
    """Scales of blocks as tensor cores take them: in tiles of 128 rows and four columns, with those of rows 32 apart side by side."""
    down, across = scales.size(0) // 128, scales.size(1) // 4
    return scales.view(down, 4, 32, across, 4).permute(0, 3, 2, 1, 4).flatten()


@pytest.mark.skipif(not hasattr(torch, "float8_e8m0fnu"), reason="this release of torch lacks it")
def test_scales_of_blocks_of_32():
    a, b = eight_bit(128, 256), eight_bit(256, 256)
    of_a, of_b = (2.0 ** torch.randint(-3, 4, (n, 8)) for n in (128, 256))
    expected = (a.float() * of_a.repeat_interleave(32, 1)) @ (b.float() * of_b.repeat_interleave(32, 1)).t()
    scales = [in_tiles(s).to(torch.float8_e8m0fnu).cuda() for s in (of_a, of_b)]
    close(torch._scaled_mm(a.cuda(), b.cuda().t(), *scales, out_dtype=torch.float32), expected)


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="this release of torch lacks it")
def test_four_bit_numbers_with_scales_of_blocks_of_16():
    values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
    a, b = (torch.randint(0, 16, (128, 64)) for _ in range(2))
    of_a, of_b = (torch.randint(1, 5, (128, 4)).float() for _ in range(2))
    expected = (values[a] * of_a.repeat_interleave(16, 1)) @ (values[b] * of_b.repeat_interleave(16, 1)).t()
    a, b = ((m[:, ::2] | m[:, 1::2] << 4).to(torch.uint8).cuda().view(torch.float4_e2m1fn_x2) for m in (a, b))
    scales = [in_tiles(s).to(FP8).cuda() for s in (of_a, of_b)]
    close(torch._scaled_mm(a, b.t(), *scales, out_dtype=torch.float32), expected)


@pytest.mark.skipif(not hasattr(torch.nn.functional, "scaled_grouped_mm"), reason="this release of torch names no recipes")
def test_recipes_of_scales():
    F, rows = torch.nn.functional, torch.nn.functional.ScalingType.RowWise
    a, b = eight_bit(48, 32), eight_bit(32, 32)
    of_a, of_b = torch.rand(48, 1), torch.rand(1, 32)
    expected = (a.float() * of_a) @ (b.float() * of_b)
    columns = b.t().contiguous().cuda().t()
    close(F.scaled_mm(a.cuda(), columns, of_a.cuda(), rows, of_b.cuda(), rows), expected)
    ends = torch.tensor([16, 48], dtype=torch.int32)
    groups = torch.stack([columns, columns]) if columns.is_contiguous() else torch.stack([columns.t(), columns.t()]).transpose(1, 2)
    scales = of_b.repeat(2, 1).cuda()
    close(F.scaled_grouped_mm(a.cuda(), groups, of_a.flatten().cuda(), rows, scales, rows, offs=ends.cuda()), expected)


def test_the_largest_elements_of_tiles_are_kept():
    x = torch.randn(64, 128).half()
    x[0] = 0
    packed, meta, packed_t, meta_t, masks = torch._sparse_semi_structured_tile(x.cuda())
    other = (torch.rand(x.shape) + 0.5).half()
    kept = torch._sparse_semi_structured_apply_dense(other.cuda(), masks).cpu()
    for matrix in (kept, kept.t().contiguous()):
        assert ((matrix != 0).view(matrix.size(0), -1, 4).sum(2) <= 2).all()
    # The largest element of a tile is kept.
    tiles = x.view(16, 4, 32, 4).transpose(1, 2).reshape(-1, 16)
    first = (kept != 0).view(16, 4, 32, 4).transpose(1, 2).reshape(-1, 16).gather(1, tiles.argmax(1, keepdim=True))
    assert first.all()
    again = torch._sparse_semi_structured_apply(x.cuda(), masks)
    assert torch.equal(again[0], packed) and torch.equal(again[1], packed_t)
    # Other values in the same places have the same indices.
    part, part_t = torch._sparse_semi_structured_apply(other.cuda(), masks)
    close(torch._sparse_semi_structured_mm(part, meta, x.t().cuda()), kept.float() @ x.t().float())
    close(torch._sparse_semi_structured_mm(part_t, meta_t, x.cuda()), kept.t().float() @ x.float())


@pytest.mark.parametrize("backend", ["cutlass", "cusparselt"])
def test_pruned_weights(backend):
    from torch.sparse import SparseSemiStructuredTensorCUSPARSELT, SparseSemiStructuredTensorCUTLASS

    kind = SparseSemiStructuredTensorCUTLASS if backend == "cutlass" else SparseSemiStructuredTensorCUSPARSELT
    a = torch.randn(128, 128).half()
    pruned = kind.prune_dense_static_sort(a.cuda())
    dense = pruned.to_dense().cpu()
    assert ((dense == 0) | (dense == a)).all() and (dense != 0).sum() > 0.4 * a.numel()
    close(pruned @ a.cuda(), dense.float() @ a.float())
