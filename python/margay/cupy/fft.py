"""cuFFT: the functions that CuPy calls (cuFFT documentation, "cuFFT API Reference"). Transforms are not scaled."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy

from margay.cupy.library import Refused, array, put, wait, written

_INVALID_PLAN, _INVALID_TYPE, _EXEC_FAILED, _NOT_SUPPORTED = 1, 3, 6, 16
_FORWARD = -1
# `cufftType`: the types of a transform's input and output.
_TYPES = {
    0x29: (numpy.complex64, numpy.complex64), 0x2A: (numpy.float32, numpy.complex64), 0x2C: (numpy.complex64, numpy.float32),
    0x69: (numpy.complex128, numpy.complex128), 0x6A: (numpy.float64, numpy.complex128), 0x6C: (numpy.complex128, numpy.float64),
}  # fmt: skip
# `cudaDataType_t`
_DATA = {0: numpy.float32, 1: numpy.float64, 4: numpy.complex64, 5: numpy.complex128}


@dataclass
class _Side:
    """Where the input or the output of a transform is. Without `embedded`, the arrays are dense."""

    dtype: type
    embedded: list[int] | None
    step: int
    distance: int

    def view(self, address: int, sizes: list[int], batch: int, padded: bool) -> numpy.ndarray:
        if self.embedded is None:
            dense = list(sizes)
            if padded:  # real numbers in the place of the complex results
                dense[-1] = 2 * (sizes[-1] // 2 + 1)
            strides = [1]
            for size in reversed(dense):
                strides.insert(0, strides[0] * size)
        else:
            strides = [self.step]
            for size in reversed(self.embedded[1:]):
                strides.insert(0, strides[0] * size)
            strides.insert(0, self.distance)
        return array(address, (batch, *sizes), tuple(strides), self.dtype)


class _Plan:
    def __init__(self):
        self.stream, self.sizes, self.batch = 0, None, 0
        self.input = self.output = None

    def set(self, sizes, batch, source, result, work):
        self.sizes, self.batch, self.input, self.output = sizes, batch, source, result
        if work:
            put(work, ctypes.c_size_t, 0)

    def run(self, source: int, result: int, forward: bool) -> None:
        if self.sizes is None:
            raise Refused(_INVALID_PLAN)
        if not wait(self.stream):
            raise Refused(_EXEC_FAILED)
        half = [*self.sizes[:-1], self.sizes[-1] // 2 + 1]
        real_in, real_out = (numpy.dtype(side.dtype).kind == "f" for side in (self.input, self.output))
        in_place = source == result
        values = self.input.view(source, half if real_out else self.sizes, self.batch, in_place and real_in)
        out = self.output.view(result, half if real_in else self.sizes, self.batch, in_place and real_out)
        axes = range(1, len(self.sizes) + 1)
        if real_in:
            transformed = numpy.fft.rfftn(values, axes=axes)
        elif real_out:
            transformed = numpy.fft.irfftn(values, s=self.sizes, axes=axes, norm="forward")
        elif forward:
            transformed = numpy.fft.fftn(values, axes=axes)
        else:
            transformed = numpy.fft.ifftn(values, axes=axes, norm="forward")
        out[...] = transformed
        written(out)


_plans: dict[int, _Plan] = {}


def _of(plan: int) -> _Plan:
    if plan not in _plans:
        raise Refused(_INVALID_PLAN)
    return _plans[plan]


def _create(place):
    number = max(_plans, default=0) + 1
    _plans[number] = _Plan()
    put(place, ctypes.c_int, number)


def _destroy(plan):
    _of(plan)
    del _plans[plan]


def _set_stream(plan, stream):
    _of(plan).stream = stream or 0


def _types(kind):
    if kind not in _TYPES:
        raise Refused(_INVALID_TYPE)
    return _TYPES[kind]


def _make_1d(plan, size, kind, batch, work):
    source, result = _types(kind)
    _of(plan).set([size], batch, _Side(source, None, 1, 0), _Side(result, None, 1, 0), work)


def _read(address, count, kind):
    return list((kind * count).from_address(address)) if address else None


def _make_many(plan, rank, sizes, inembed, istride, idist, onembed, ostride, odist, kind, batch, work):
    source, result = _types(kind)
    inside, outside = (_read(embedded, rank, ctypes.c_int) for embedded in (inembed, onembed))
    places = _Side(source, inside, istride, idist), _Side(result, outside, ostride, odist)
    _of(plan).set(_read(sizes, rank, ctypes.c_int), batch, *places, work)


def _xt_make_many(plan, rank, sizes, inembed, istride, idist, source, onembed, ostride, odist, result, batch, work, execution):
    if source not in _DATA or result not in _DATA:
        raise Refused(_NOT_SUPPORTED)
    inside, outside = (_read(embedded, rank, ctypes.c_longlong) for embedded in (inembed, onembed))
    places = _Side(_DATA[source], inside, istride, idist), _Side(_DATA[result], outside, ostride, odist)
    _of(plan).set(_read(sizes, rank, ctypes.c_longlong), batch, *places, work)


def _execute(plan, source, result, direction=_FORWARD):
    _of(plan).run(source, result, direction == _FORWARD)


def _refuse(*arguments):
    raise Refused(_NOT_SUPPORTED)


#: what answers the functions that are not served: transforms on several devices
REST = "", _refuse


def functions() -> dict:
    """The functions by name: the kinds of their parameters, and what computes them."""
    return {
        "cufftCreate": ("p", _create),
        "cufftDestroy": ("i", _destroy),
        "cufftSetStream": ("ip", _set_stream),
        "cufftSetAutoAllocation": ("ii", lambda plan, automatic: None),
        "cufftSetWorkArea": ("ip", lambda plan, area: None),
        "cufftXtSetWorkArea": ("ip", lambda plan, areas: None),
        "cufftMakePlan1d": ("iiiip", _make_1d),
        "cufftMakePlanMany": ("iippiipiiiip", _make_many),
        "cufftXtMakePlanMany": ("iippllipllilpi", _xt_make_many),
        **{f"cufftExec{kind}": ("ippi", _execute) for kind in ("C2C", "Z2Z")},
        **{f"cufftExec{kind}": ("ipp", _execute) for kind in ("R2C", "D2Z", "C2R", "Z2D")},
        "cufftXtExec": ("ippi", _execute),
    }
