"""Operators on float16 and bfloat16 that are rounded as CUDA's kernels do: most are computed in float32 and rounded once.

The CPU's kernels round intermediate results to the narrow type (sums over thousands of rows, coordinates of samples), or need many times
as long as in float32 where the processor has no instructions for the narrow type (matrix products, convolutions).
"""

from __future__ import annotations

import torch

NARROW = (torch.float16, torch.bfloat16)

_NAMES = """
    mm bmm addmm addmm_ baddbmm baddbmm_ addbmm addbmm_ _addmm_activation dot vdot _grouped_mm
    convolution convolution_backward convolution_overrideable convolution_backward_overrideable
    cudnn_convolution cudnn_convolution_transpose cudnn_convolution_relu cudnn_convolution_add_relu _conv_depthwise2d conv_depthwise3d
    _cudnn_rnn _cudnn_rnn_backward
    native_layer_norm native_layer_norm_backward native_group_norm native_group_norm_backward
    native_batch_norm_backward batch_norm_backward cudnn_batch_norm_backward
    embedding_dense_backward _embedding_bag _embedding_bag_forward_only _embedding_bag_backward _embedding_bag_dense_backward
    prod cumprod segment_reduce _segment_reduce_backward nll_loss_forward nll_loss2d_forward linalg_matrix_exp
    col2im grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward
    adaptive_avg_pool3d _adaptive_avg_pool3d adaptive_avg_pool3d_backward _adaptive_avg_pool3d_backward
    _adaptive_avg_pool2d_backward glu_backward softplus softplus_backward
"""
_OPERATORS = frozenset(f"aten::{name}" for name in _NAMES.split())
# With `accumulate=True`: its place among the arguments, behind tensor, indices and values.
_ACCUMULATING = frozenset(f"aten::{name}" for name in "_index_put_impl_ _index_put_impl index_put_ index_put _unsafe_index_put".split())

#: results that CUDA's kernels yield in float32 for narrow operands: means and inverse deviations
STATISTICS = {
    "aten::native_layer_norm": (1, 2),
    "aten::native_batch_norm": (1, 2),
    "aten::_native_batch_norm_legit": (1, 2),
    "aten::_native_batch_norm_legit.no_stats": (1, 2),
    "aten::_batch_norm_with_update": (1, 2),
    "aten::cudnn_batch_norm": (1, 2),
}
# The places of statistics among the arguments of their backward passes.
_GIVEN = {
    "aten::native_layer_norm_backward": (3, 4),
    "aten::native_batch_norm_backward": (3, 4, 5, 6),
    "aten::batch_norm_backward": (3, 4, 5, 6),
    "aten::cudnn_batch_norm_backward": (3, 4, 5, 6),
}
# Operators whose CUDA kernels read all operands in the type of the first; the CPU's accept float32 beside a narrow first.
_ALIKE = frozenset(("aten::native_layer_norm", "aten::native_group_norm"))
_C_NAMES = {torch.float16: "Half", torch.bfloat16: "BFloat16", torch.float32: "Float", torch.float64: "Double"}


def _sigmoid_backward(grad_output, output):
    return grad_output * (1 - output) * output


def _tanh_backward(grad_output, output):
    return grad_output * (1 - output * output)


#: operators whose CUDA kernels compute in the narrow type, and so round at every step, while the CPU's round once
_STEPWISE = {"aten::sigmoid_backward": _sigmoid_backward, "aten::tanh_backward": _tanh_backward}


def _stepwise(steps, call):
    def compute(*args, **options):
        if any(value.dtype not in NARROW for value in args):
            return call(*args, **options)
        result = steps(*args)
        for out in options.values():
            return out.resize_(result.size()).copy_(result)
        return result

    return compute


def other_type(dtype, args):
    """The type of a floating-point tensor among the arguments that is not of the given type; `None` if there is none."""
    for value in args:
        if isinstance(value, torch.Tensor):
            if value.dtype is not dtype and value.dtype.is_floating_point:
                return value.dtype
        elif isinstance(value, (list, tuple)) and value and (found := other_type(dtype, value)) is not None:
            return found
    return None


def covers(name: str) -> bool:
    """Whether an operator is among those that are computed in float32 or by steps."""
    base = name.partition(".")[0]
    return base in _OPERATORS or base in _ACCUMULATING or base in _STEPWISE


def rounded_once(name: str, call):
    """Returns `call`, which computes an operator on CPU tensors, or a function that computes it in float32, or by steps, for narrow operands."""
    from margay.torch import narrow

    base = name.partition(".")[0]
    if base in _STEPWISE:
        return _stepwise(_STEPWISE[base], call)
    accumulating = base in _ACCUMULATING
    if not covers(name):
        return _with_statistics(call, STATISTICS[name]) if name in STATISTICS else call
    kept, given, alike = STATISTICS.get(name, ()), _GIVEN.get(base, ()), base in _ALIKE
    plain = not accumulating and _is_plain(name)

    def compute(*args, **kwargs):
        dtype = args[0].dtype
        if dtype not in NARROW or (accumulating and not (len(args) > 3 and args[3])):
            return call(*args, **kwargs)
        if plain and not kwargs and (wide := _copies(dtype, args, given)) is not None:
            try:
                result = call(*wide)
            except Exception:
                return call(*args)  # the error of what the program wrote
            if isinstance(result, torch.Tensor):
                return result.to(dtype)
            return _rounded(dtype, result, kept)
        typed = [value for i, value in enumerate(args) if i not in given] if given else args
        if (other := other_type(dtype, typed)) is not None or other_type(dtype, kwargs.values()) is not None:
            if alike and other is not None:
                raise RuntimeError(f"expected scalar type {_C_NAMES[dtype]} but found {_C_NAMES.get(other, other)}")
            return call(*args, **kwargs)
        if any(isinstance(value, torch.dtype) and value is not dtype for value in (*args, *kwargs.values())):
            return call(*args, **kwargs)  # a result of another type
        done = narrow.widened(name, call, args, kwargs, kept)
        return call(*args, **kwargs) if done is None else done[0]

    return compute


def _is_plain(name):
    """Whether an operator writes to none of its arguments, takes no lists of tensors, and yields tensors."""
    from margay.torch import kernel

    schema = kernel.schema_of(name)
    if any(a.alias_info is not None or "List[Tensor]" in str(a.type) or "List[Optional[Tensor]]" in str(a.type) for a in schema.arguments):
        return False
    return all(str(returned.type) == "Tensor" for returned in schema.returns)


def _copies(dtype, args, given):
    """The arguments with float32 for the narrow type; `None` if another type is among them."""
    wide = []
    for i, value in enumerate(args):
        if isinstance(value, torch.Tensor):
            if value.dtype is dtype:
                value = value.float()
            elif value.dtype.is_floating_point and i not in given:
                return None
        elif isinstance(value, torch.dtype):
            return None
        wide.append(value)
    return wide


def _rounded(dtype, results, kept):
    """The results, those in float32 in the narrow type unless they are to be kept."""
    return [r if r is None or r.dtype is not torch.float32 or i in kept else r.to(dtype) for i, r in enumerate(results)]


def _with_statistics(call, places):
    def compute(*args, **kwargs):
        results = call(*args, **kwargs)
        return tuple(r.float() if i in places and r.dtype in NARROW else r for i, r in enumerate(results))

    return compute
