"""`torch.use_deterministic_algorithms`: the operators whose CUDA kernels alert, although the CPU's that compute them are deterministic.

The list is that of the CUDA kernels that call `alertNotDeterministic`, with the names that they pass: those in torch's messages.
"""

from __future__ import annotations

import warnings

import torch

_NAMES = {
    "_adaptive_avg_pool2d_backward": "adaptive_avg_pool2d_backward_cuda",
    "_adaptive_avg_pool3d_backward": "adaptive_avg_pool3d_backward_cuda",
    "_ctc_loss_backward": "ctc_loss_backward_gpu",
    "_histc": "_histc_cuda with floating point input",
    "_upsample_bicubic2d_aa_backward": "upsample_bicubic2d_aa_backward_out_cuda",
    "_upsample_bilinear2d_aa_backward": "upsample_bilinear2d_aa_backward_out_cuda",
    "adaptive_max_pool2d_backward": "adaptive_max_pool2d_backward_cuda",
    "avg_pool3d_backward": "avg_pool3d_backward_cuda",
    "bincount": "_bincount_cuda",
    "cudnn_grid_sampler_backward": "cudnn_grid_sampler_backward",
    "_embedding_bag_backward": "embedding_bag_backward_cuda_max",
    "fractional_max_pool2d_backward": "fractional_max_pool2d_backward_cuda",
    "fractional_max_pool3d_backward": "fractional_max_pool3d_backward_cuda",
    "grid_sampler_2d_backward": "grid_sampler_2d_backward_cuda",
    "grid_sampler_3d_backward": "grid_sampler_3d_backward_cuda",
    "histc": "_histc_cuda with floating point input",
    "index_reduce": "index_reduce_cuda",
    "index_reduce_": "index_reduce_cuda",
    "max_pool3d_with_indices_backward": "max_pool3d_with_indices_backward_cuda",
    "max_unpool2d": "max_unpooling2d_forward_out",
    "max_unpool3d": "max_unpooling3d_forward_out",
    "median": "median CUDA with indices output",
    "nanmedian": "median CUDA with indices output",
    "nll_loss2d_forward": "nll_loss2d_forward_out_cuda_template",
    "put_": "put_",
    "reflection_pad1d_backward": "reflection_pad1d_backward_out_cuda",
    "reflection_pad3d_backward": "reflection_pad3d_backward_out_cuda",
    "replication_pad1d_backward": "replication_pad1d_backward_cuda",
    "replication_pad2d_backward": "replication_pad2d_backward_cuda",
    "replication_pad3d_backward": "replication_pad3d_backward_cuda",
    "scatter": "scatter_reduce_cuda_kernel",
    "scatter_": "scatter_reduce_cuda_kernel",
    "scatter_reduce": "scatter_reduce_cuda_prod_",
    "scatter_reduce_": "scatter_reduce_cuda_prod_",
    "upsample_bicubic2d_backward": "upsample_bicubic2d_backward_out_cuda",
    "upsample_bilinear2d_backward": "upsample_bilinear2d_backward_out_cuda",
    "upsample_linear1d_backward": "upsample_linear1d_backward_out_cuda",
    "upsample_trilinear3d_backward": "upsample_trilinear3d_backward_out_cuda",
}
# Those of which only some overloads alert: how their names begin.
_OVERLOADS = {"median": "dim", "nanmedian": "dim", "scatter": "reduce", "scatter_": "reduce"}
_MAX = 2  # the mode of an embedding bag


def _has_weights(self, weights=None, minlength=0, **out):
    return weights is not None


def _is_floating(self, *rest, **options):
    return self.is_floating_point()


def _takes_maxima(grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode, *rest, **options):
    return mode == _MAX


def _multiplies(self, dim, index, src, reduce, **options):
    """Products; sums and means take a deterministic way, and extremes do not depend on the order."""
    return reduce in ("multiply", "prod")


#: operator -> whether a call of it alerts, for those that do not always
_CONDITIONS = {
    "bincount": _has_weights,
    "_embedding_bag_backward": _takes_maxima,
    "histc": _is_floating,
    "_histc": _is_floating,
    **dict.fromkeys(("scatter", "scatter_", "scatter_reduce", "scatter_reduce_"), _multiplies),
}


def alert_of(name: str):
    """What alerts before an operator runs if the program has asked for determinism; `None` if its CUDA kernel is deterministic."""
    base, _, overload = name.removeprefix("aten::").partition(".")
    caller, condition = _NAMES.get(base), _CONDITIONS.get(base)
    if caller is None or not overload.startswith(_OVERLOADS.get(base, "")):
        return None

    def alert(*args, **kwargs):
        if not torch.are_deterministic_algorithms_enabled() or (condition is not None and not condition(*args, **kwargs)):
            return
        if torch.is_deterministic_algorithms_warn_only_enabled():
            setting = "'torch.use_deterministic_algorithms(True, warn_only=True)'. You can file an issue"
            warnings.warn(_words(caller, setting), stacklevel=3)
        else:
            setting = (
                "'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for this operation, or you can use the "
                "'warn_only=True' option, if that's acceptable for your application. You can also file an issue"
            )
            raise RuntimeError(_words(caller, setting))

    return alert


def _words(caller, setting):
    return (
        f"{caller} does not have a deterministic implementation, but you set {setting} at https://github.com/pytorch/pytorch/issues "
        "to help us prioritize adding deterministic support for this operation."
    )
