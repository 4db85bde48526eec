"""Layers with special kernels on CUDA only (cuDNN's and fused ones), implemented with the operators that the CPU uses for them."""

from __future__ import annotations

import torch

from margay.torch import driver, memory, narrow

_aten = torch.ops.aten
_native_batch_norm = _aten.native_batch_norm.default._op
_observe = _aten._fused_moving_avg_obs_fq_helper.default._op


def _convolution(self, weight, padding, stride, dilation, groups, benchmark, deterministic, allow_tf32):
    return _aten.convolution.default(self, weight, None, stride, padding, dilation, False, [0] * len(padding), groups)


def _convolution_out(self, weight, padding, stride, dilation, groups, benchmark, deterministic, allow_tf32, *, out):
    return out.copy_(_convolution(self, weight, padding, stride, dilation, groups, benchmark, deterministic, allow_tf32))


def _convolution_transpose(self, weight, padding, output_padding, stride, dilation, groups, benchmark, deterministic, allow_tf32):
    return _aten.convolution.default(self, weight, None, stride, padding, dilation, True, output_padding, groups)


def _convolution_relu(self, weight, bias, stride, padding, dilation, groups):
    return _aten.convolution.default(self, weight, bias, stride, padding, dilation, False, [0] * len(padding), groups).relu_()


def _convolution_add_relu(self, weight, z, alpha, bias, stride, padding, dilation, groups):
    result = _aten.convolution.default(self, weight, bias, stride, padding, dilation, False, [0] * len(padding), groups)
    return result.add_(z, alpha=1 if alpha is None else alpha).relu_()


def _depthwise(self, weight, kernel_size, bias, stride, padding, dilation):
    return _aten.convolution.default(self, weight, bias, stride, padding, dilation, False, [0] * len(padding), self.size(1))


def _depthwise_out(self, weight, kernel_size, bias, stride, padding, dilation, *, out):
    result = _depthwise(self, weight, kernel_size, bias, stride, padding, dilation)
    return out.resize_(result.shape).copy_(result)


@memory.on_device()
def _batch_norm(device, input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon):
    result = _native_batch_norm(input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon)
    # cuDNN would reserve memory for the derivative.
    return (*result, memory.new((0,), (1,), torch.uint8, device))


def _batch_norm_backward(input, grad_output, weight, running_mean, running_var, save_mean, save_var, epsilon, reserve):
    mask = [True, True, True]
    return _aten.native_batch_norm_backward.default(grad_output, input, weight, running_mean, running_var, save_mean, save_var, True, epsilon, mask)


def _channels(input):
    """The dimensions over which a per-channel statistic is computed, and the shape in which it broadcasts to the input."""
    over = [d for d in range(input.dim()) if d != 1]
    return over, [1, -1] + [1] * (input.dim() - 2)


def _wide(tensor):
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def _stats(input, eps):
    over, _ = _channels(input)
    wide = _wide(input)
    return wide.mean(over), (wide.var(over, unbiased=False) + eps).rsqrt()


def _elemt(input, weight, bias, mean, invstd, eps):
    _, shape = _channels(input)
    result = (_wide(input) - mean.view(shape)) * invstd.view(shape)
    if weight is not None:
        result = result * weight.view(shape)
    if bias is not None:
        result = result + bias.view(shape)
    return result.to(input.dtype)


def _elemt_out(input, weight, bias, mean, invstd, eps, *, out):
    return out.copy_(_elemt(input, weight, bias, mean, invstd, eps))


def _gather(input, mean, invstd, running_mean, running_var, momentum, eps, counts):
    counts = counts.to(mean.dtype).view(-1, 1)
    total = counts.sum()
    whole = (mean * counts).sum(0) / total
    squares = ((invstd.reciprocal().square() - eps + (mean - whole).square()) * counts).sum(0)
    if running_mean is not None:
        running_mean.lerp_(whole.to(running_mean.dtype), momentum)
    if running_var is not None:
        running_var.lerp_((squares / (total - 1)).to(running_var.dtype), momentum)
    return whole, (squares / total + eps).rsqrt()


def _gather_stats(input, mean, invstd, running_mean, running_var, momentum, eps, count):
    counts = torch.full((mean.size(0),), count, dtype=mean.dtype)
    return _gather(input, mean, invstd, running_mean, running_var, momentum, eps, counts)


def _backward_reduce(grad_out, input, mean, invstd, weight, input_g, weight_g, bias_g):
    over, shape = _channels(input)
    grad = _wide(grad_out)
    sum_dy = grad.sum(over)
    sum_dy_xmu = (grad * (_wide(input) - mean.view(shape))).sum(over)
    grad_weight, grad_bias = sum_dy_xmu * invstd, sum_dy
    if weight is not None:
        grad_weight, grad_bias = grad_weight.to(weight.dtype), grad_bias.to(weight.dtype)
    return sum_dy, sum_dy_xmu, grad_weight if weight_g else None, grad_bias if bias_g else None


def _backward_elemt(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count):
    _, shape = _channels(input)
    total = count.sum().to(mean.dtype)
    mean_dy, mean_dy_xmu = (sum_dy / total).view(shape), (sum_dy_xmu / total).view(shape)
    scale = invstd if weight is None else invstd * weight
    slope = invstd.square().view(shape) * mean_dy_xmu
    result = (_wide(grad_out) - mean_dy - (_wide(input) - mean.view(shape)) * slope) * scale.view(shape)
    return result.to(input.dtype)


_LEAST = torch.finfo(torch.float32).eps / 2


def _fused_dropout(self, p, generator=None):
    mask = torch.empty_like(self, dtype=torch.float32).bernoulli_(p, generator=generator)
    return self * mask.to(self.dtype) / p, mask.to(torch.uint8)


@memory.on_device()
def _native_dropout(device, input, p, train):
    """The CPU's operator, except that narrow results are rounded once, as CUDA's are, and contiguous ones written where they belong."""
    if not (train is None or train) or not input.numel():
        return _aten.native_dropout.default(input, p, train)
    if input.is_contiguous():
        size, stride = tuple(input.size()), input.stride()
        result, mask = memory.new(size, stride, input.dtype, device), memory.new(size, stride, torch.bool, device)
        product, kept = memory.dense(result), memory.dense(mask)
    else:
        result, mask = product, kept = torch.empty_like(input), torch.empty_like(input, dtype=torch.bool)
    kept.bernoulli_(1 - p)
    torch.mul(input, kept, out=product).mul_(0.0 if p == 1 else 1 / (1 - p))
    return result, mask


def _exponential(self, lambd=1, *, generator=None):
    """Where the CPU rounds the smallest numbers of float16 to zero, CUDA's kernel yields the smallest that it has in float32."""
    _aten.exponential_.default(self, lambd, generator=generator)
    if self.dtype is torch.float16 and lambd <= 1:
        self.masked_fill_(self == 0, _LEAST / lambd)
    return self


def _masked_scale(self, mask, scale):
    return self * mask * scale


@memory.on_device("running_min", "running_max", "scale", "zero_point")
def _observed_fake_quant(device, self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point, constant, low, high, axis, *rest):
    if rest and rest[0] and running_min.numel() == 0:
        # Per row, the first call gives the statistics their sizes, which it could not give to aliases.
        rows = self.size(0)
        running_min.resize_(rows).fill_(float("inf"))
        running_max.resize_(rows).fill_(float("-inf"))
        scale.resize_(rows)
        zero_point.resize_(rows)
        driver.synchronize(device)  # torch enqueues copies of the elements that they had
    state = [memory.alias(t) for t in (running_min, running_max, scale, zero_point)]
    return _observe(self, observer_on, fake_quant_on, *state, constant, low, high, axis, *rest)


def _rms_norm_backward(grad_out, input, normalized_shape, rstd, weight, output_mask):
    over = list(range(input.dim() - len(normalized_shape), input.dim()))
    batch = list(range(input.dim() - len(normalized_shape)))
    x, grad = _wide(input), _wide(grad_out)
    normal = x * rstd
    scaled = grad if weight is None else grad * weight
    grad_input = (scaled - normal * (scaled * normal).mean(over, keepdim=True)) * rstd if output_mask[0] else None
    grad_weight = grad * normal if weight is not None and output_mask[1] else None
    if grad_weight is not None and batch:
        grad_weight = grad_weight.sum(batch)
    return (
        None if grad_input is None else grad_input.to(input.dtype),
        None if grad_weight is None else grad_weight.to(weight.dtype),
    )


def _grid_sampler(self, grid):
    return _aten.grid_sampler_2d(self, grid, 0, 0, True)


def _grid_sampler_backward(self, grid, grad_output):
    return _aten.grid_sampler_2d_backward(grad_output, self, grid, 0, 0, True, [True, True])


def _affine_grid(theta, N, C, H, W):
    return _aten.affine_grid_generator(theta, [N, C, H, W], True)


def _affine_grid_backward(grad, N, C, H, W):
    return _aten.affine_grid_generator_backward(grad, [N, C, H, W], True)


def _typed(product):
    """A matrix product whose operands are narrow and whose result has the given type."""

    def compute(*args, **kwargs):
        *operands, out_dtype = args
        out = kwargs.pop("out", None)
        result = product(*(t.to(out_dtype) for t in operands), **kwargs)
        return result if out is None else out.copy_(result)

    return compute


def _addmm_activation(self, mat1, mat2, *, beta=1, alpha=1, use_gelu=False, out=None):
    """CUDA's kernel approximates GELU by a hyperbolic tangent (cuBLASLt's epilogue)."""
    product = torch.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    result = torch.nn.functional.gelu(product, approximate="tanh") if use_gelu else product.relu_()
    return result if out is None else out.resize_(result.shape).copy_(result)


def _lstsq(self, b, rcond=None, *, driver=None):
    if driver not in (None, "gels"):
        raise narrow.RefusedByCUDA("torch.linalg.lstsq: parameter `driver` other than `gels` is not supported on CUDA")
    return _aten.linalg_lstsq.default(self, b, rcond, driver=driver)


def _softmax_of(op):
    """`softmax(x, dtype=torch.float32)` of float16, which is one kernel on CUDA only."""

    def compute(self, dim, half_to_float, **out):
        return op(self.float() if half_to_float else self, dim, False, **out)

    return compute


def _softmax_backward_of(op):
    def compute(grad_output, output, dim, input_dtype, **out):
        if input_dtype is output.dtype:
            return op(grad_output, output, dim, input_dtype, **out)
        result = op(grad_output, output, dim, output.dtype).to(input_dtype)
        for place in out.values():
            return place.resize_(result.shape).copy_(result)
        return result

    return compute


def _svd_of(op):
    """`torch.linalg.svd(x, driver=…)`, whose drivers are cuSOLVER's, which leave V's adjoint in rows. Compiled code relies on that."""

    def compute(A, full_matrices=False, compute_uv=True, *, driver=None, **out):
        if driver not in (None, "gesvd", "gesvdj", "gesvda"):
            raise RuntimeError(f"torch.linalg.svd: unknown svd driver {driver}, expected one of gesvd, gesvdj, gesvda")
        u, s, v = op(A, full_matrices, compute_uv, **out)
        return u, s, v if out else v.contiguous()

    return compute


#: operators on CPU tensors
OURS = {
    # In less time than by way of `torch.ops`.
    "aten::convolution": torch._C._VariableFunctions.convolution,
    "aten::cudnn_convolution": _convolution,
    "aten::cudnn_convolution.out": _convolution_out,
    "aten::cudnn_convolution_transpose": _convolution_transpose,
    "aten::cudnn_convolution_relu": _convolution_relu,
    "aten::cudnn_convolution_add_relu": _convolution_add_relu,
    "aten::_conv_depthwise2d": _depthwise,
    "aten::_conv_depthwise2d.out": _depthwise_out,
    "aten::conv_depthwise3d": _depthwise,
    "aten::cudnn_batch_norm": _batch_norm,
    "aten::cudnn_batch_norm_backward": _batch_norm_backward,
    "aten::batch_norm_stats": _stats,
    "aten::batch_norm_elemt": _elemt,
    "aten::batch_norm_elemt.out": _elemt_out,
    "aten::batch_norm_gather_stats": _gather_stats,
    "aten::batch_norm_gather_stats_with_counts": _gather,
    "aten::batch_norm_backward_reduce": _backward_reduce,
    "aten::batch_norm_backward_elemt": _backward_elemt,
    "aten::_fused_moving_avg_obs_fq_helper": _observed_fake_quant,
    "aten::_fused_dropout": _fused_dropout,
    "aten::exponential_": _exponential,
    "aten::native_dropout": _native_dropout,
    "aten::_masked_scale": _masked_scale,
    "aten::_fused_rms_norm_backward": _rms_norm_backward,
    "aten::cudnn_grid_sampler": _grid_sampler,
    "aten::cudnn_grid_sampler_backward": _grid_sampler_backward,
    "aten::cudnn_affine_grid_generator": _affine_grid,
    "aten::cudnn_affine_grid_generator_backward": _affine_grid_backward,
    "aten::_softmax": _softmax_of(_aten._softmax.default),
    "aten::_softmax.out": _softmax_of(_aten._softmax.out),
    "aten::_log_softmax": _softmax_of(_aten._log_softmax.default),
    "aten::_log_softmax.out": _softmax_of(_aten._log_softmax.out),
    "aten::_softmax_backward_data": _softmax_backward_of(_aten._softmax_backward_data),
    "aten::_softmax_backward_data.out": _softmax_backward_of(_aten._softmax_backward_data),
    "aten::_log_softmax_backward_data": _softmax_backward_of(_aten._log_softmax_backward_data),
    "aten::_log_softmax_backward_data.out": _softmax_backward_of(_aten._log_softmax_backward_data),
    "aten::_addmm_activation": _addmm_activation,
    "aten::_addmm_activation.out": _addmm_activation,
    "aten::linalg_lstsq": _lstsq,
    "aten::_linalg_svd": _svd_of(_aten._linalg_svd.default),
    "aten::_linalg_svd.U": _svd_of(_aten._linalg_svd.U),
    "aten::mm.dtype": _typed(_aten.mm),
    "aten::mm.dtype_out": _typed(_aten.mm),
    "aten::bmm.dtype": _typed(_aten.bmm),
    "aten::bmm.dtype_out": _typed(_aten.bmm),
    "aten::addmm.dtype": _typed(_aten.addmm),
    "aten::addmm.dtype_out": _typed(_aten.addmm),
    "aten::baddbmm.dtype": _typed(_aten.baddbmm),
    "aten::baddbmm.dtype_out": _typed(_aten.baddbmm),
}
