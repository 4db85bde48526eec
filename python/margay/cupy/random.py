"""cuRAND: the functions that CuPy calls (cuRAND documentation, "Host API Overview").

All kinds of pseudo-random generators are NumPy's Philox: a seed always yields the same numbers, but they are not those of cuRAND.
"""

from __future__ import annotations

import ctypes
import itertools

import numpy

from margay.cupy.library import Refused, array, put, wait, written

_NOT_INITIALIZED, _TYPE_ERROR, _LENGTH_NOT_MULTIPLE, _LAUNCH_FAILURE = 101, 103, 105, 201
_PSEUDO = range(100, 200)


class _Generator:
    def __init__(self):
        self.stream, self.seed, self.offset = 0, 0, 0
        self.begin()

    def begin(self) -> None:
        """Starts the sequence of the seed and the offset."""
        bits = numpy.random.Philox(key=self.seed)
        self.numbers = numpy.random.Generator(bits.advance(self.offset) if self.offset else bits)


_generators: dict[int, _Generator] = {}
_handles = itertools.count(1)


def _of(handle: int) -> _Generator:
    if handle not in _generators:
        raise Refused(_NOT_INITIALIZED)
    return _generators[handle]


def _create(place, kind):
    if kind not in _PSEUDO:
        raise Refused(_TYPE_ERROR)
    handle = next(_handles)
    _generators[handle] = _Generator()
    put(place, ctypes.c_void_p, handle)


def _destroy(handle):
    _of(handle)
    del _generators[handle]


def _set_stream(handle, stream):
    _of(handle).stream = stream or 0


def _set_seed(handle, seed):
    generator = _of(handle)
    generator.seed = seed & (2**64 - 1)
    generator.begin()


def _set_offset(handle, offset):
    generator = _of(handle)
    generator.offset = offset & (2**64 - 1)
    generator.begin()


def _fill(dtype, draw, pairs=False):
    """A function that fills an array; `draw` yields the numbers from NumPy's generator, their count and the parameters."""

    def compute(handle, address, count, *parameters):
        generator = _of(handle)
        if pairs and count % 2:
            raise Refused(_LENGTH_NOT_MULTIPLE)
        if not wait(generator.stream):
            raise Refused(_LAUNCH_FAILURE)
        out = array(address, (count,), (1,), dtype)
        out[...] = draw(generator.numbers, count, *parameters)
        written(out)

    return compute


def _integers(dtype):
    return lambda numbers, count: numbers.integers(0, numpy.iinfo(dtype).max, count, dtype, endpoint=True)


def _uniform(dtype):
    return lambda numbers, count: 1 - numbers.random(count, dtype)  # without 0 and with 1


def _normal(dtype):
    return lambda numbers, count, mean, deviation: mean + deviation * numbers.standard_normal(count, dtype)


def _log_normal(dtype):
    return lambda numbers, count, mean, deviation: numpy.exp(_normal(dtype)(numbers, count, mean, deviation))


def _refuse(*arguments):
    raise Refused(_TYPE_ERROR)


#: what answers the functions that are not served, whose generator NVIDIA's do not know
REST = "", _refuse


def functions() -> dict:
    """The functions by name: the kinds of their parameters, and what computes them."""
    single, double = numpy.float32, numpy.float64
    return {
        "curandCreateGenerator": ("pi", _create),
        "curandDestroyGenerator": ("p", _destroy),
        "curandSetStream": ("pp", _set_stream),
        "curandSetPseudoRandomGeneratorSeed": ("pl", _set_seed),
        "curandSetGeneratorOffset": ("pl", _set_offset),
        "curandSetGeneratorOrdering": ("pi", lambda handle, ordering: None),
        "curandGenerate": ("ppz", _fill(numpy.uint32, _integers(numpy.uint32))),
        "curandGenerateLongLong": ("ppz", _fill(numpy.uint64, _integers(numpy.uint64))),
        "curandGenerateUniform": ("ppz", _fill(single, _uniform(single))),
        "curandGenerateUniformDouble": ("ppz", _fill(double, _uniform(double))),
        "curandGenerateNormal": ("ppzff", _fill(single, _normal(single), pairs=True)),
        "curandGenerateNormalDouble": ("ppzdd", _fill(double, _normal(double), pairs=True)),
        "curandGenerateLogNormal": ("ppzff", _fill(single, _log_normal(single), pairs=True)),
        "curandGenerateLogNormalDouble": ("ppzdd", _fill(double, _log_normal(double), pairs=True)),
        "curandGeneratePoisson": ("ppzd", _fill(numpy.uint32, lambda numbers, count, mean: numbers.poisson(mean, count))),
    }
