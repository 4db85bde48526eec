"""torch's profiler without CUPTI, which belongs to NVIDIA's driver: it records only host activity."""

from __future__ import annotations

import warnings

from torch.autograd import profiler

_said = False


def _without_cuda(function):
    def call(config, activities, *args, **kwargs):
        global _said
        kept = {a for a in activities if a is not profiler.ProfilerActivity.CUDA}
        if len(kept) < len(activities) and not _said:
            _said = True
            warnings.warn("margay: the profiler records only host activity; for kernel times, use `MARGAY_STATS=1`", stacklevel=2)
        return function(config, kept, *args, **kwargs)

    return call


def install() -> None:
    """Removes CUDA activities from the profiler's configuration."""
    for name in ("_prepare_profiler", "_enable_profiler"):
        if hasattr(profiler, name):
            setattr(profiler, name, _without_cuda(getattr(profiler, name)))
