"""Narrow floating-point types, which CUDA's kernels accumulate in float32, and operands of several types and devices."""

import pytest
import torch
from torch.nn import functional as F

NARROW = [torch.float16, torch.bfloat16]
ROWS = torch.randint(0, 7, (4000,), generator=torch.Generator().manual_seed(1))

# What sums many elements, or computes places from narrow numbers: function, shapes of its operands.
SUMS = {
    "matrix product": (lambda a, b: a @ b, (9, 700), (700, 5)),
    "batched product": (lambda a, b: a @ b, (2, 9, 300), (2, 300, 5)),
    "linear": (F.linear, (9, 300), (5, 300), (5,)),
    "convolution": (lambda x, w, b: F.conv2d(x, w, b, padding=1), (2, 32, 12, 12), (8, 32, 3, 3), (8,)),
    "depthwise convolution": (lambda x, w: F.conv2d(x, w, groups=16), (4, 16, 20, 20), (16, 1, 5, 5)),
    "transposed convolution": (lambda x, w: F.conv_transpose2d(x, w, stride=2), (2, 16, 10, 10), (16, 8, 3, 3)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (400,), w, b), (300, 400), (400,), (400,)),
    "group_norm": (lambda x, w, b: F.group_norm(x, 4, w, b), (8, 16, 12, 12), (16,), (16,)),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (8, 16, 12, 12), (16,), (16,)),
    "embedding": (lambda w: F.embedding(ROWS.to(w.device), w), (7, 8)),
    "embedding_bag": (lambda w: F.embedding_bag(ROWS.view(4, 1000).to(w.device), w, mode="mean"), (7, 8)),
    "rows": (lambda w: w[ROWS.to(w.device)], (7, 8)),
    "accumulation": (lambda w, x: w.index_put((ROWS.to(w.device),), x, accumulate=True), (7, 8), (4000, 8)),
    "fold": (lambda x: F.fold(x, (14, 14), 5), (2, 50, 100)),
    "pool": (lambda x: F.adaptive_avg_pool3d(x, 2), (2, 3, 12, 12, 12)),
    "samples": (lambda x, grid: F.grid_sample(x, grid, align_corners=False), (2, 3, 20, 20), (2, 9, 9, 2)),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (1, 2, 70, 16), (1, 2, 70, 16), (1, 2, 70, 16)),
}


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", SUMS)
def test_results_are_rounded_once(name, dtype):
    """Forward and backward, within two units in the last place of the largest result of float64."""
    function, *shapes = SUMS[name]
    given = [torch.randn(shape).to(dtype) for shape in shapes]

    def compute(device, kind):
        inputs = [t.to(device, kind).requires_grad_() for t in given]
        out = function(*inputs)
        grad = torch.randn(out.shape, generator=torch.Generator().manual_seed(2)).to(dtype).to(device, kind)
        return [out, *torch.autograd.grad(out, inputs, grad)]

    for actual, exact in zip(compute("cuda", dtype), compute("cpu", torch.float64), strict=True):
        assert actual.dtype is dtype
        error = (actual.cpu().double() - exact).abs().max() / (torch.finfo(dtype).eps * exact.abs().max())
        assert error < 2, f"{error:.1f} units"


@pytest.mark.parametrize("dtype", NARROW)
def test_a_product_is_rounded_once(dtype):
    x = (1 + torch.arange(-40, 40) / 256).to(dtype)
    exact = x.double().prod()
    assert abs(x.cuda().prod().item() - exact) <= torch.finfo(dtype).eps * exact


@pytest.mark.parametrize("dtype", NARROW)
def test_a_batch_normalization_is_rounded_once(dtype):
    x, w, b, mean, var = [torch.rand(shape).to(dtype) for shape in ((8, 4, 90), 4, 4, 4, 4)]
    near = [t.cuda() for t in (mean, var)]
    result = F.batch_norm(x.cuda(), *near, w.cuda(), b.cuda(), training=True)
    far = [t.float() for t in (mean, var)]
    exact = F.batch_norm(x.float(), *far, w.float(), b.float(), training=True)
    assert torch.equal(result.cpu(), exact.to(dtype)) and all(torch.equal(n.cpu(), f.to(dtype)) for n, f in zip(near, far, strict=True))


def test_statistics_are_wide():
    x = torch.randn(6, 8, device="cuda", dtype=torch.bfloat16)
    assert [t.dtype for t in torch.native_layer_norm(x, (8,), None, None, 1e-5)] == [torch.bfloat16, torch.float32, torch.float32]
    results = torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
    assert [t.dtype for t in results] == [torch.bfloat16, torch.float32, torch.float32]


@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax])
def test_softmax_of_float16_into_float32(function):
    x = torch.randn(3, 40).half()
    leaf = x.cuda().requires_grad_()
    out = function(leaf, -1, dtype=torch.float32)
    assert out.dtype is torch.float32
    torch.testing.assert_close(out.cpu(), function(x.float(), -1))
    (out * out).sum().backward()
    wide = x.float().requires_grad_()
    function(wide, -1).square().sum().backward()
    torch.testing.assert_close(leaf.grad.cpu(), wide.grad.half(), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_transforms(dtype):
    if dtype is torch.bfloat16 and not hasattr(torch, "bcomplex32"):
        pytest.skip("this release of torch has no such numbers")
    x = torch.randn(4, 16).to(dtype)
    spectrum = torch.fft.rfft(x.cuda())
    assert spectrum.is_complex() and spectrum.element_size() == 4
    torch.testing.assert_close(torch.fft.irfft(spectrum).cpu(), x, rtol=2e-2, atol=2e-2)


def test_out_arguments_of_narrow_products():
    a = torch.randn(3, 5, device="cuda").half()
    empty, exact = a.new_empty(0), a.new_empty(3, 3)
    columns, where = a.new_empty(3, 3).t(), exact.data_ptr()
    for out in (empty, exact, columns):
        assert torch.mm(a, a.t(), out=out) is out and torch.equal(out, a @ a.t())
    assert exact.data_ptr() == where and columns.stride() == (1, 3)
    assert a.prod(dtype=torch.float32).dtype is torch.float32


def ones(*shape, dtype=torch.float32, device="cuda"):
    return torch.ones(*shape, dtype=dtype, device=device)


NEAR, FAR = torch.tensor([0, 1], device="cuda"), torch.tensor([0, 1])
HALF = torch.float16
MISTAKES = {
    "mm": (lambda: ones(2, 2, dtype=HALF) @ ones(2, 2), "expected mat1 and mat2 to have the same dtype"),
    "bmm": (lambda: torch.bmm(ones(1, 2, 2, dtype=HALF), ones(1, 2, 2)), "expected scalar type Half but found Float"),
    "linear": (lambda: F.linear(ones(2, 2, dtype=HALF), ones(2, 2), ones(2)), "same dtype"),
    "convolution": (lambda: F.conv1d(ones(1, 2, 4, dtype=HALF), ones(3, 2, 1)), "Input type .*Half.* and weight type .*Float.* should be the same"),
    "layer_norm": (lambda: F.layer_norm(ones(2, 2, dtype=HALF), (2,), ones(2)), "expected scalar type Half but found Float"),
    "index_put": (lambda: ones(3, dtype=HALF).index_put_((NEAR,), ones(2)), "source and destination dtypes match"),
    "scatter": (lambda: ones(3, dtype=HALF).scatter_(0, NEAR, ones(2)), "Expected self.dtype to be equal to src.dtype"),
    "inverse": (lambda: torch.linalg.inv(ones(2, 2, dtype=HALF)), "Low precision dtypes not supported"),
    "singular values": (lambda: torch.linalg.svd(ones(2, 2, dtype=HALF)), "_cuda. not implemented for 'Half'"),
    "a transform of half": (lambda: torch.fft.fft(ones(2, 12, dtype=HALF)), "powers of two when computing in half precision"),
    "a transform to real numbers": (lambda: torch.fft.irfft(ones(9, dtype=torch.complex32), n=12), "powers of two when computing in half precision"),
    "weights elsewhere": (
        lambda: F.conv1d(ones(1, 2, 4), ones(3, 2, 1, device="cpu")),
        r"Input type \(torch.cuda.FloatTensor\) and weight type \(torch.FloatTensor\) should be the same",
    ),
    "recurrent weights elsewhere": (lambda: torch.nn.LSTM(2, 2)(ones(1, 1, 2)), "parameter tensors are not at the same device"),
    "indices elsewhere": (lambda: ones(3, device="cpu")[NEAR], "indices should be either on cpu or on the same device as the indexed tensor"),
    "values elsewhere": (lambda: ones(3).index_put_((FAR,), ones(2, device="cpu")), "Expected all tensors to be on the same device"),
    # A CPU tensor without dimensions is a scalar to element-wise operators only, and no place for results.
    "an index elsewhere": (lambda: ones(3).index_select(0, FAR[0]), "Expected all tensors to be on the same device"),
    "a matrix elsewhere": (lambda: torch.addmm(ones((), device="cpu"), ones(2, 2), ones(2, 2)), "Expected all tensors to be on the same device"),
    "a result elsewhere": (lambda: torch.add(ones(()), 1, out=ones((), device="cpu")), "Expected all tensors to be on the same device"),
    "a changed operand elsewhere": (lambda: ones((), device="cpu").add_(ones(())), "Expected all tensors to be on the same device"),
}


def whole(*shape):
    return ones(*shape, dtype=torch.int64)


# What CUDA has no kernels for, and the CPU does.
MISTAKES |= {
    "a product of integers": (lambda: whole(2, 2) @ whole(2, 2), "^.addmm_cuda. not implemented for 'Long'"),
    "products of integers": (lambda: torch.bmm(whole(1, 2, 2), whole(1, 2, 2)), "^.baddbmm_cuda. not implemented for 'Long'"),
    "a power of a matrix of integers": (lambda: torch.linalg.matrix_power(whole(2, 2), 2), "^.addmm_cuda. not implemented for 'Long'"),
    "an inner product of integers": (lambda: whole(2).dot(whole(2)), "^.dot. not implemented for 'Long'"),
    "a convolution of integers": (lambda: F.conv1d(whole(1, 2, 4), whole(3, 2, 1)), r"^getCudnnDataTypeFromScalarType\(\) not supported for Long"),
    "averages of integers": (lambda: F.avg_pool2d(whole(1, 2, 2), 2), "^.avg_pool2d_out_cuda_frame. not implemented for 'Long'"),
    "maxima of integers": (lambda: F.max_pool2d(whole(1, 2, 2), 2), "^.max_pool2d_with_indices_out_cuda_frame. not implemented for 'Long'"),
    "a narrow gamma function": (lambda: torch.igamma(ones(2, dtype=HALF), ones(2, dtype=HALF)), "^.igamma_cuda. not implemented for 'Half'"),
    "a narrow Bessel function": (lambda: torch.special.bessel_j0(ones(2, dtype=HALF)), "^.bessel_j0_cuda. not implemented for 'Half'"),
    "products of scattered complex numbers": (
        lambda: ones(2, dtype=torch.cfloat).scatter_reduce(0, NEAR, ones(2, dtype=torch.cfloat), "prod"),
        "^.cuda_scatter_gather_base_kernel_func. not implemented for 'ComplexFloat'",
    ),
    "a histogram of narrow numbers": (lambda: torch.histc(ones(2, dtype=HALF)), "^.histc. not implemented for 'Half'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_with_types_and_devices(name):
    call, words = MISTAKES[name]
    with pytest.raises(RuntimeError, match=words):
        call()


def test_scalars_on_the_cpu_are_operands():
    x, two = torch.arange(3.0, device="cuda"), torch.tensor(2.0)
    for result in (x * two, two * x, torch.lerp(x, 3 * x, two / 4), torch.where(x < 5, x + x, two), torch._foreach_mul([x], two)[0]):
        assert result.is_cuda and result.tolist() == [0, 2, 4]
    far = torch.zeros(2)
    assert far.fill_(x[2]).tolist() == [2, 2]
    far[0] = x[1]
    assert far.tolist() == [1, 2]


def test_absolute_values_and_traces_of_truth_values():
    x = torch.tensor([[True, False], [True, True]], device="cuda")
    for result in (x.abs(), x.clone().abs_(), torch.abs(x, out=torch.empty(0, dtype=torch.bool, device="cuda"))):
        assert result.dtype is torch.bool and torch.equal(result, x)
    assert x.trace().item() == 2 and x.trace().dtype is torch.int64


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_scattered_eight_bit_numbers(dtype):
    x, at, values = ones(4).to(dtype), torch.tensor([2, 0], device="cuda"), torch.tensor([-4.0, 0.5], device="cuda").to(dtype)
    assert x.scatter(0, at, values).float().tolist() == [0.5, 1, -4, 1]
    assert x.scatter(0, at, -1.5).float().tolist() == [-1.5, 1, -1.5, 1]
    assert torch.scatter(x, 0, at, values, out=torch.empty(0, dtype=dtype, device="cuda")).float().tolist() == [0.5, 1, -4, 1]
    x.scatter_(0, at, values)
    assert x.dtype is dtype and x.float().tolist() == [0.5, 1, -4, 1]


@pytest.mark.parametrize("dtype", [torch.complex32, torch.complex64, torch.complex128])
def test_sums_of_complex_numbers_without_nan(dtype):
    nan = float("nan")
    x = torch.tensor([[1 + 2j, complex(nan, 0), 3], [complex(0, nan), 4j, 2]]).to(dtype).cuda()
    assert x.nansum().dtype is dtype and x.nansum().item() == 6 + 6j
    assert x.nansum(0).tolist() == [1 + 2j, 4j, 5]
    assert torch.nansum(x, 1, keepdim=True).tolist() == [[4 + 2j], [2 + 4j]]
    assert torch.nanmean(x, 1).tolist() == [2 + 1j, 1 + 2j] and torch.nanmean(x).item() == 1.5 + 1.5j


@pytest.mark.skipif(not hasattr(torch, "bcomplex32"), reason="this release of torch has no complex type for it")
def test_derivatives_of_transforms_of_bfloat16():
    x = torch.tensor([[1.0, -2, 3, 0.5]], device="cuda", dtype=torch.bfloat16, requires_grad=True)
    torch.fft.ifft(x).abs()[0, 0].backward()
    assert x.grad.dtype is torch.bfloat16 and x.grad.tolist() == [[0.25] * 4]


def test_lists_may_be_of_tensors_of_several_devices():
    def tensors():
        return [torch.tensor([1.0, -2.0], device="cuda"), torch.tensor([-3.0]), torch.tensor([4.0, -5.0], device="cuda")]

    changed = tensors()
    torch._foreach_abs_(changed)
    for result in (torch._foreach_abs(tensors()), changed, torch._foreach_mul([t.sign() for t in tensors()], tensors())):
        assert [t.tolist() for t in result] == [[1, 2], [3], [4, 5]]
        assert [t.device.type for t in result] == ["cuda", "cpu", "cuda"]
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch._foreach_mul(tensors(), [ones(2)] * 3)


def test_numbers_are_copied():
    x = torch.zeros(3, device="cuda")
    assert x.copy_(2).tolist() == [2, 2, 2]
    assert x.int().copy_(True).tolist() == [1, 1, 1]
    with torch.inference_mode():
        assert x.copy_(0.5).tolist() == [0.5] * 3


@pytest.mark.parametrize("dtype", NARROW)
def test_derivatives_of_tanh_and_sigmoid_are_rounded_at_every_step(dtype):
    """CUDA's kernels compute them in the narrow type (BinaryMiscBackwardOpsKernels.cu)."""
    grad, y = torch.linspace(-3, 3, 500).to(dtype), torch.linspace(-1, 1, 500).to(dtype)

    def rounded(exact):
        return exact.to(dtype).double()

    g, x = grad.double(), y.double()
    tanh = rounded(g * rounded(1 - rounded(x * x)))
    sigmoid = rounded(rounded(g * rounded(1 - x)) * x)
    for op, expected in ((torch.ops.aten.tanh_backward, tanh), (torch.ops.aten.sigmoid_backward, sigmoid)):
        assert torch.equal(op(grad.cuda(), y.cuda()).cpu().double(), expected)
        out = torch.empty(500, dtype=dtype, device="cuda")
        assert op.grad_input(grad.cuda(), y.cuda(), grad_input=out) is out and torch.equal(out.cpu().double(), expected)


def test_a_number_that_does_not_fit_the_type_loses_its_upper_bits():
    x = torch.tensor([-1, 5, 70000], dtype=torch.int32, device="cuda")
    assert (x & 0xFFFF0000).tolist() == [-65536, 0, 65536]
    assert (x & 0xFFFF0000).dtype is torch.int32 and (x[0] & 0xFFFF0000).dtype is torch.int32
