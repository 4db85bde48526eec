"""cuBLASLt: matrix products by descriptors (cuBLAS documentation, "Using the cuBLASLt API"), for extensions that call them.

Products of matrices by column or by row, in batches, with the epilogues that add a bias or apply ReLU or GELU. Other orders, products in
eight-bit floating point, scales and epilogues of derivatives are refused.
"""

from __future__ import annotations

import ctypes
import math

import numpy

from margay.cupy import blas
from margay.cupy.library import Refused, put, wait

_INVALID_VALUE, _NOT_SUPPORTED = 7, 15
_BY_COLUMN, _BY_ROW = 0, 1
_RELU, _BIAS, _GELU = 2, 4, 32
_DEFAULT = 1
# Pointer modes with a factor for each row of the result: for C as well, without C, or with one factor for C.
_PER_ROW = (2, 3, 4)
_WITHOUT_C, _ONE_OF_C = 3, 4
_RESULT = 96  # bytes of `cublasLtMatmulHeuristicResult_t`, in which all zeros is an algorithm without a workspace, and success

# Attributes by number: name, and type.
_LAYOUT = {
    0: ("type", ctypes.c_uint32),
    1: ("order", ctypes.c_int32),
    2: ("rows", ctypes.c_uint64),
    3: ("columns", ctypes.c_uint64),
    4: ("leading", ctypes.c_int64),
    5: ("batch", ctypes.c_int32),
    6: ("stride", ctypes.c_int64),
}
_PRODUCT = {
    0: ("compute", ctypes.c_int32),
    1: ("scale", ctypes.c_int32),
    2: ("pointer_mode", ctypes.c_int32),
    3: ("transa", ctypes.c_int32),
    4: ("transb", ctypes.c_int32),
    7: ("epilogue", ctypes.c_uint32),
    8: ("bias", ctypes.c_void_p),
    15: ("multiprocessors", ctypes.c_int32),
    25: ("fast", ctypes.c_int8),
    26: ("bias_type", ctypes.c_int32),
}


class _Layout:
    known = _LAYOUT

    def __init__(self, kind, rows, columns, leading):
        self.type, self.rows, self.columns, self.leading = kind, rows, columns, leading
        self.order, self.batch, self.stride = _BY_COLUMN, 1, 0

    def strides(self):
        return (self.stride, 1, self.leading) if self.order == _BY_COLUMN else (self.stride, self.leading, 1)

    def shape(self):
        return self.batch, self.rows, self.columns


class _Product:
    known = _PRODUCT

    def __init__(self, compute, scale):
        self.compute, self.scale, self.pointer_mode = compute, scale, 0
        self.transa = self.transb = self.fast = self.multiprocessors = 0
        self.epilogue, self.bias, self.bias_type = _DEFAULT, 0, -1


class _Preference:
    known: dict = {}


_objects: dict[int, object] = {}


def _new(place, value):
    # By its address, since programs may place descriptors themselves.
    memory = ctypes.create_string_buffer(16)
    value.memory = memory
    _objects[ctypes.addressof(memory)] = value
    put(place, ctypes.c_void_p, ctypes.addressof(memory))


def _get(address, kind):
    found = _objects.get(address)
    if not isinstance(found, kind):
        raise Refused(_INVALID_VALUE)
    return found


def _destroy(address):
    _objects.pop(address, None)


def _attribute(kind, number, size):
    name, form = kind.known.get(number, (None, None))
    if name is None:
        raise Refused(_NOT_SUPPORTED)
    if size != ctypes.sizeof(form):
        raise Refused(_INVALID_VALUE)
    return name, form


def _set(kind):
    def compute(address, number, place, size):
        found = _get(address, kind)
        if kind is _Preference:  # any algorithm will do
            return
        name, form = _attribute(kind, number, size)
        setattr(found, name, form.from_address(place).value or 0)

    return compute


def _tell(kind):
    def compute(address, number, place, size, written):
        name, form = _attribute(kind, number, size or ctypes.sizeof(kind.known.get(number, (None, ctypes.c_int))[1]))
        if written:
            put(written, ctypes.c_size_t, ctypes.sizeof(form))
        if size:
            put(place, form, getattr(_get(address, kind), name))

    return compute


def _init_layout(place, size, kind, rows, columns, leading):
    _objects[place] = _Layout(kind, rows, columns, leading)


def _init_product(place, size, compute, scale):
    _objects[place] = _Product(compute, scale)


def _heuristic(handle, product, a, b, c, d, preference, wanted, results, found):
    """One algorithm, which needs no workspace."""
    _check(_get(product, _Product), *(_get(x, _Layout) for x in (a, b, c, d)))
    if wanted < 1:
        raise Refused(_INVALID_VALUE)
    ctypes.memset(results, 0, _RESULT)
    put(found, ctypes.c_int, 1)


def _check(product, *layouts):
    blas.typed(*(x.type for x in layouts))
    simple = product.epilogue & ~(_RELU | _BIAS | _GELU) in (0, _DEFAULT)
    if not simple or any(x.order not in (_BY_COLUMN, _BY_ROW) for x in layouts):
        raise Refused(_NOT_SUPPORTED)


def _factor(address, scale, mode, rows):
    """A factor, or one for each row of the result."""
    if mode not in _PER_ROW:
        return blas.scalar(address, scale)
    return blas.read(address, (rows, 1), (1, 1), scale)


def _multiply(handle, product, alpha, a, of_a, b, of_b, beta, c, of_c, d, of_d, algorithm, workspace, room, stream):
    product = _get(product, _Product)
    layouts = _, _, _, result = [_get(x, _Layout) for x in (of_a, of_b, of_c, of_d)]
    _check(product, *layouts)
    if not wait(stream or 0):
        raise Refused(_NOT_SUPPORTED)
    ta, tb, tc, td = blas.typed(*(x.type for x in layouts))
    (scale,) = blas.typed(product.scale)
    whole = ta is numpy.int8
    # Sums of products of integers are exact in double precision, which NumPy multiplies in a fraction of the time.
    sums = numpy.float64 if whole else numpy.result_type(blas.SUMS.get(td, td), scale)

    def read(address, layout, operation, dtype):
        return blas.applied(operation, blas.read(address, layout.shape(), layout.strides(), dtype, sums))

    values = numpy.matmul(read(a, layouts[0], product.transa, ta), read(b, layouts[1], product.transb, tb))
    if values.shape != result.shape():
        raise Refused(_INVALID_VALUE)
    if whole:
        values = values.astype(numpy.int64).astype(numpy.int32).astype(scale)
    mode = product.pointer_mode
    values = values * _factor(alpha, scale, mode, result.rows)
    # Where only the product has a factor for each row, that of C is zero or one number.
    weight = 0 if mode == _WITHOUT_C else _factor(beta, scale, 0 if mode == _ONE_OF_C else mode, result.rows)
    if numpy.any(weight):  # otherwise C need not hold numbers
        values = values + weight * read(c, layouts[2], 0, tc).astype(values.dtype)
    values = _finish(product, result, scale if td is numpy.int8 else td, values)
    if td is numpy.int8:
        values = numpy.clip(numpy.rint(values), -128, 127)
    blas.write(d, result.shape(), result.strides(), td, values)


def _finish(product, result, bias_type, values):
    """The epilogue: a bias by row, then a function."""
    if product.epilogue & _BIAS:
        (kind,) = blas.typed(product.bias_type) if product.bias_type >= 0 else (bias_type,)
        values = values + blas.read(product.bias, (result.rows, 1), (1, 1), kind)
    if product.epilogue & _RELU:
        values = numpy.maximum(values, 0)
    if product.epilogue & _GELU:
        # The approximation by a hyperbolic tangent.
        values = 0.5 * values * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (values + 0.044715 * values**3)))
    return values


#: what answers the functions that are not served
REST = blas.REST


def functions() -> dict:
    """The functions by name: the kinds of their parameters, and what computes them."""
    found = {
        "Create": ("p", lambda place: _new(place, _Preference())),
        "Destroy": ("p", _destroy),
        "MatrixLayoutCreate": ("pizzl", lambda place, *sizes: _new(place, _Layout(*sizes))),
        "MatrixLayoutInit_internal": ("pzizzl", _init_layout),
        "MatrixLayoutDestroy": ("p", _destroy),
        "MatrixLayoutSetAttribute": ("pipz", _set(_Layout)),
        "MatrixLayoutGetAttribute": ("pipzp", _tell(_Layout)),
        "MatmulDescCreate": ("pii", lambda place, *kinds: _new(place, _Product(*kinds))),
        "MatmulDescInit_internal": ("pzii", _init_product),
        "MatmulDescDestroy": ("p", _destroy),
        "MatmulDescSetAttribute": ("pipz", _set(_Product)),
        "MatmulDescGetAttribute": ("pipzp", _tell(_Product)),
        "MatmulPreferenceCreate": ("p", lambda place: _new(place, _Preference())),
        "MatmulPreferenceDestroy": ("p", _destroy),
        "MatmulPreferenceSetAttribute": ("pipz", _set(_Preference)),
        "MatmulAlgoGetHeuristic": ("pppppppipp", _heuristic),
        "Matmul": ("ppppppppppppppzp", _multiply),
    }
    return {f"cublasLt{name}": function for name, function in found.items()}
