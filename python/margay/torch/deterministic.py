"""`torch.use_deterministic_algorithms`: the operators whose CUDA kernels alert, although the CPU's that compute them are deterministic.

The list is that of torch's documentation of the function, the names are those in its messages.
"""

from __future__ import annotations

import warnings

import torch

_NAMES = {
    "_adaptive_avg_pool2d_backward": "adaptive_avg_pool2d_backward_cuda",
    "_adaptive_avg_pool3d_backward": "adaptive_avg_pool3d_backward_cuda",
    "adaptive_max_pool2d_backward": "adaptive_max_pool2d_backward_cuda",
    "avg_pool3d_backward": "avg_pool3d_backward_cuda",
    "fractional_max_pool2d_backward": "fractional_max_pool2d_backward_cuda",
    "fractional_max_pool3d_backward": "fractional_max_pool3d_backward_cuda",
    "max_unpool2d": "max_unpooling2d_forward_out",
    "max_unpool3d": "max_unpooling3d_forward_out",
    "upsample_linear1d_backward": "upsample_linear1d_backward_out_cuda",
    "upsample_bicubic2d_backward": "upsample_bicubic2d_backward_out_cuda",
    "upsample_trilinear3d_backward": "upsample_trilinear3d_backward_out_cuda",
    "reflection_pad1d_backward": "reflection_pad1d_backward_out_cuda",
    "reflection_pad3d_backward": "reflection_pad3d_backward_out_cuda",
    "nll_loss2d_forward": "nll_loss2d_forward_out_cuda_template",
    "_ctc_loss_backward": "ctc_loss_backward_gpu",
    "put_": "put_",
    "histc": "_histc_cuda",
    "median": "median CUDA with indices output",
    "nanmedian": "median CUDA with indices output",
    "grid_sampler_2d_backward": "grid_sampler_2d_backward_cuda",
    "grid_sampler_3d_backward": "grid_sampler_3d_backward_cuda",
}
# `median` without a dimension yields no indices.
_WITH_DIMENSION = ("median", "nanmedian")


def alert_of(name: str):
    """What alerts before an operator runs if the program has asked for determinism; `None` if its CUDA kernel is deterministic."""
    base, _, overload = name.removeprefix("aten::").partition(".")
    caller = _NAMES.get(base)
    if caller is None or (base in _WITH_DIMENSION and not overload.startswith("dim")):
        return None

    def alert(*args, **kwargs):
        if not torch.are_deterministic_algorithms_enabled():
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
