"""cuBLAS: the functions that CuPy calls (cuBLAS documentation, "Using the cuBLAS API"). Matrices are column-major."""

from __future__ import annotations

import ctypes

import numpy

from margay.cupy import factor
from margay.cupy.library import Refused, addresses, array, put, version, wait, written

_NOT_INITIALIZED, _INVALID_VALUE, _NOT_SUPPORTED = 1, 7, 15
_TYPES = {"S": numpy.float32, "D": numpy.float64, "C": numpy.complex64, "Z": numpy.complex128}
BFLOAT16 = "bfloat16"  # NumPy has no such type
# `cudaDataType_t`
_DATA = {
    0: numpy.float32, 1: numpy.float64, 2: numpy.float16, 3: numpy.int8, 4: numpy.complex64, 5: numpy.complex128, 10: numpy.int32,
    14: BFLOAT16,
}  # fmt: skip
# `cublasComputeType_t`: the type of the scalars; each has a pedantic variant, and single precision has fast ones.
_COMPUTE = {
    64: numpy.float16, 65: numpy.float16, 70: numpy.float64, 71: numpy.float64, 72: numpy.int32, 73: numpy.int32,
    **dict.fromkeys((68, 69, 74, 75, 77, 78), numpy.float32),
}  # fmt: skip
_COMPLEX = {numpy.float32: numpy.complex64, numpy.float64: numpy.complex128}
# Sums of narrow numbers are formed in wider ones.
SUMS = {numpy.float16: numpy.float32, numpy.int8: numpy.int32, BFLOAT16: numpy.float32}


class _Handle:
    def __init__(self):
        self.stream, self.pointer_mode, self.math_mode = 0, 0, 0


_handles: dict[int, tuple[_Handle, object]] = {}


def _of(handle: int) -> _Handle:
    if handle not in _handles:
        raise Refused(_NOT_INITIALIZED)
    return _handles[handle][0]


def _begin(handle: int) -> None:
    """Waits for what the operands depend on."""
    if not wait(_of(handle).stream):
        raise Refused(_NOT_SUPPORTED)


def _create(place):
    memory = ctypes.create_string_buffer(16)
    address = ctypes.addressof(memory)
    _handles[address] = _Handle(), memory
    put(place, ctypes.c_void_p, address)


def _destroy(handle):
    _of(handle)
    del _handles[handle]


def _get_version(handle, place):
    major, minor, patch = version("cublas")
    put(place, ctypes.c_int, major * 10000 + minor * 100 + patch)


def _getter(name, kind):
    return lambda handle, place: put(place, kind, getattr(_of(handle), name))


def _setter(name):
    return lambda handle, value: setattr(_of(handle), name, value or 0)


def scalar(address, dtype):
    """A factor. It may be on the host or on the device, whose addresses are the host's as well."""
    if not address:
        raise Refused(_INVALID_VALUE)
    size = numpy.dtype(dtype).itemsize
    return numpy.frombuffer((ctypes.c_char * size).from_address(address), dtype)[0].copy()


def read(address, shape, strides, dtype, as_type=None):
    if dtype is BFLOAT16:
        values = array(address, shape, strides, numpy.uint16).astype(numpy.uint32) << 16
        return values.view(numpy.float32)
    values = array(address, shape, strides, dtype)
    return values if as_type is None else values.astype(as_type, copy=False)


def write(address, shape, strides, dtype, values):
    if dtype is BFLOAT16:
        bits = numpy.ascontiguousarray(values, numpy.float32).view(numpy.uint32)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        values = numpy.where(numpy.isnan(values), (bits >> 16) | 64, rounded).astype(numpy.uint16)
        dtype = numpy.uint16
    place = array(address, shape, strides, dtype)
    place[...] = values.real if values.dtype.kind == "c" and place.dtype.kind != "c" else values
    written(place)


def applied(operation, matrices):
    """`op(A)`: as it is, transposed, or conjugated too."""
    if operation not in (0, 1, 2):
        raise Refused(_INVALID_VALUE)
    if operation == 0:
        return matrices
    turned = numpy.swapaxes(matrices, -1, -2)
    return turned.conj() if operation == 2 else turned


def _multiply(handle, transa, transb, sizes, alpha, a, b, beta, c, batch, scale):
    """`C = alpha op(A) op(B) + beta C`. An operand is its address, type, leading dimension and stride between matrices."""
    _begin(handle)
    m, n, k = sizes
    if min(m, n, k, batch) < 0:
        raise Refused(_INVALID_VALUE)
    sums = SUMS.get(c[1], c[1])
    if sums is not numpy.int32 or scale is not numpy.int32:
        sums = numpy.result_type(sums, scale)

    def matrices(operand, operation, rows, columns):
        address, dtype, leading, stride = operand
        shape = (batch, rows, columns) if operation == 0 else (batch, columns, rows)
        return applied(operation, read(address, shape, (stride, 1, leading), dtype, sums))

    weight = scalar(alpha, scale)
    result = numpy.zeros((batch, m, n), sums)
    if weight != 0 and k:
        result = numpy.matmul(matrices(a, transa, m, k), matrices(b, transb, k, n)) * weight
    address, dtype, leading, stride = c
    weight = scalar(beta, scale)
    if weight != 0:  # otherwise C need not hold numbers
        result = result + weight * read(address, (batch, m, n), (stride, 1, leading), dtype, sums)
    write(address, (batch, m, n), (stride, 1, leading), dtype, result)


def _gemm(t):
    def compute(handle, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
        _multiply(handle, transa, transb, (m, n, k), alpha, (a, t, lda, 0), (b, t, ldb, 0), beta, (c, t, ldc, 0), 1, t)

    return compute


def _gemm_strided(t):
    def compute(handle, transa, transb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, batch):
        _multiply(handle, transa, transb, (m, n, k), alpha, (a, t, lda, sa), (b, t, ldb, sb), beta, (c, t, ldc, sc), batch, t)

    return compute


def _gemm_batched(t):
    def compute(handle, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, batch):
        _begin(handle)
        for at in zip(*(addresses(x, batch) for x in (a, b, c)), strict=True):
            a1, b1, c1 = at
            _multiply(handle, transa, transb, (m, n, k), alpha, (a1, t, lda, 0), (b1, t, ldb, 0), beta, (c1, t, ldc, 0), 1, t)

    return compute


def typed(*kinds):
    if any(kind not in _DATA for kind in kinds):
        raise Refused(_NOT_SUPPORTED)
    return [_DATA[kind] for kind in kinds]


def _scale_of(compute, result):
    scale = _COMPUTE.get(compute)
    if scale is None:
        raise Refused(_NOT_SUPPORTED)
    return _COMPLEX[scale] if result in (numpy.complex64, numpy.complex128) else scale


def _gemm_ex(handle, transa, transb, m, n, k, alpha, a, ta, lda, b, tb, ldb, beta, c, tc, ldc, compute, algorithm):
    strided = (handle, transa, transb, m, n, k, alpha, a, ta, lda, 0, b, tb, ldb, 0, beta, c, tc, ldc, 0, 1, compute, algorithm)
    return _gemm_strided_ex(*strided)


def _gemm_strided_ex(
    handle, transa, transb, m, n, k, alpha, a, ta, lda, sa, b, tb, ldb, sb, beta, c, tc, ldc, sc, batch, compute, algorithm
):
    ta, tb, tc = typed(ta, tb, tc)
    operands = (a, ta, lda, sa), (b, tb, ldb, sb), beta, (c, tc, ldc, sc)
    _multiply(handle, transa, transb, (m, n, k), alpha, *operands, batch, _scale_of(compute, tc))


def _sgemm_ex(handle, transa, transb, m, n, k, alpha, a, ta, lda, b, tb, ldb, beta, c, tc, ldc):
    _gemm_ex(handle, transa, transb, m, n, k, alpha, a, ta, lda, b, tb, ldb, beta, c, tc, ldc, 68, 0)


def _vector(address, n, step, dtype):
    """A vector; with a negative step, it runs from its end to the address."""
    values = array(address, (max(n, 0),), (abs(step),), dtype)
    return values if step >= 0 else values[::-1]


def _gemv(t):
    def compute(handle, trans, m, n, alpha, a, lda, x, incx, beta, y, incy):
        _begin(handle)
        matrix = applied(trans, array(a, (m, n), (1, lda), t))
        rows, columns = matrix.shape
        out = _vector(y, rows, incy, t)
        result = scalar(alpha, t) * (matrix @ _vector(x, columns, incx, t))
        weight = scalar(beta, t)
        out[...] = result if weight == 0 else result + weight * out
        written(array(y, (rows,), (abs(incy),), t))

    return compute


def _sbmv(t):
    def compute(handle, uplo, n, k, alpha, a, lda, x, incx, beta, y, incy):
        """A symmetric matrix of which one triangle of a band is stored, a diagonal as a row."""
        _begin(handle)
        band = array(a, (k + 1, n), (1, lda), t)
        matrix = numpy.zeros((n, n), t)
        for i in range(min(k + 1, n)):
            stored = band[i, : n - i] if uplo == 0 else band[k - i, i:]
            numpy.fill_diagonal(matrix[i:], stored)
            numpy.fill_diagonal(matrix[:, i:], stored)
        out = _vector(y, n, incy, t)
        result, weight = scalar(alpha, t) * (matrix @ _vector(x, n, incx, t)), scalar(beta, t)
        out[...] = result if weight == 0 else result + weight * out
        written(array(y, (n,), (abs(incy),), t))

    return compute


def _ger(t, conjugated=False):
    def compute(handle, m, n, alpha, x, incx, y, incy, a, lda):
        _begin(handle)
        row = _vector(y, n, incy, t)
        matrix = array(a, (m, n), (1, lda), t)
        matrix += scalar(alpha, t) * numpy.outer(_vector(x, m, incx, t), row.conj() if conjugated else row)

    return compute


def _dot(t, conjugated=False):
    def compute(handle, n, x, incx, y, incy, result):
        _begin(handle)
        product = (numpy.vdot if conjugated else numpy.dot)(_vector(x, n, incx, t), _vector(y, n, incy, t))
        numpy.frombuffer((ctypes.c_char * numpy.dtype(t).itemsize).from_address(result), t)[...] = product

    return compute


def _norm(t, norm):
    real = numpy.dtype(t).type(0).real.dtype

    def compute(handle, n, x, incx, result):
        _begin(handle)
        numpy.frombuffer((ctypes.c_char * real.itemsize).from_address(result), real)[...] = norm(_vector(x, n, incx, t)) if n > 0 else 0

    return compute


def _sum_of_parts(x):
    return numpy.abs(x.real).sum() + numpy.abs(x.imag).sum()


def _extreme(t, choose):
    def compute(handle, n, x, incx, result):
        _begin(handle)
        values = _vector(x, n, incx, t)
        put(result, ctypes.c_int, int(choose(numpy.abs(values.real) + numpy.abs(values.imag))) + 1 if n > 0 else 0)  # counted from 1

    return compute


def _axpy(t):
    def compute(handle, n, alpha, x, incx, y, incy):
        _begin(handle)
        out = _vector(y, n, incy, t)
        out += scalar(alpha, t) * _vector(x, n, incx, t)

    return compute


def _scal(t, factor):
    def compute(handle, n, alpha, x, incx):
        _begin(handle)
        values = _vector(x, n, incx, t)
        values *= scalar(alpha, factor)

    return compute


def _geam(t):
    def compute(handle, transa, transb, m, n, alpha, a, lda, beta, b, ldb, c, ldc):
        _begin(handle)
        result = numpy.zeros((m, n), t)
        for place, operation, address, leading in ((alpha, transa, a, lda), (beta, transb, b, ldb)):
            scale = scalar(place, t)
            if scale != 0:
                shape = (m, n) if operation == 0 else (n, m)
                result += scale * applied(operation, array(address, shape, (1, leading), t))
        write(c, (m, n), (1, ldc), t, result)

    return compute


def _dgmm(t):
    def compute(handle, side, m, n, a, lda, x, incx, c, ldc):
        _begin(handle)
        diagonal = _vector(x, m if side == 0 else n, incx, t)
        matrix = array(a, (m, n), (1, lda), t)
        write(c, (m, n), (1, ldc), t, diagonal[:, None] * matrix if side == 0 else matrix * diagonal)

    return compute


def _syrk(t):
    def compute(handle, uplo, trans, n, k, alpha, a, lda, beta, c, ldc):
        _begin(handle)
        shape = (n, k) if trans == 0 else (k, n)
        matrix = applied(trans and 1, array(a, shape, (1, lda), t))
        out, weight = array(c, (n, n), (1, ldc), t), scalar(beta, t)
        result = scalar(alpha, t) * (matrix @ matrix.T)
        if weight != 0:
            result = result + weight * out
        numpy.copyto(out, result, where=factor.triangle(uplo, numpy.ones((n, n), bool)))
        written(out)

    return compute


def _trsm(t):
    def compute(handle, side, uplo, trans, diagonal, m, n, alpha, a, lda, b, ldb):
        _begin(handle)
        size = m if side == 0 else n
        matrix = factor.triangle(uplo, array(a, (size, size), (1, lda), t))
        if diagonal == 1:  # ones, whatever the memory holds
            numpy.fill_diagonal(matrix, 1)
        matrix, out = applied(trans, matrix), array(b, (m, n), (1, ldb), t)
        right = scalar(alpha, t) * out
        out[...] = numpy.linalg.solve(matrix, right) if side == 0 else numpy.linalg.solve(matrix.T, right.T).T

    return compute


def _trsm_batched(t):
    def compute(handle, side, uplo, trans, diagonal, m, n, alpha, matrices, lda, rights, ldb, batch):
        _begin(handle)
        for a, b in zip(addresses(matrices, batch), addresses(rights, batch), strict=True):
            _trsm(t)(handle, side, uplo, trans, diagonal, m, n, alpha, a, lda, b, ldb)

    return compute


def _getrf_batched(t):
    def compute(handle, n, matrices, lda, pivots, infos, batch):
        _begin(handle)
        told = array(infos, (batch,), (1,), numpy.int32)
        orders = array(pivots, (batch, n), (n, 1), numpy.int32) if pivots else [None] * batch
        for i, address in enumerate(addresses(matrices, batch)):
            told[i] = factor.lu(array(address, (n, n), (1, lda), t), orders[i])

    return compute


def _getrs_batched(t):
    def compute(handle, trans, n, count, matrices, lda, pivots, rights, ldb, info, batch):
        _begin(handle)
        orders = array(pivots, (batch, n), (n, 1), numpy.int32) if pivots else [None] * batch
        for order, a, b in zip(orders, addresses(matrices, batch), addresses(rights, batch), strict=True):
            right = array(b, (n, count), (1, ldb), t)
            right[...] = factor.lu_solve(array(a, (n, n), (1, lda), t), order, right, trans)
        put(info, ctypes.c_int, 0)

    return compute


def _getri_batched(t):
    def compute(handle, n, matrices, lda, pivots, inverses, ldc, infos, batch):
        _begin(handle)
        orders = array(pivots, (batch, n), (n, 1), numpy.int32) if pivots else [None] * batch
        for order, a, c in zip(orders, addresses(matrices, batch), addresses(inverses, batch), strict=True):
            inverse = factor.lu_solve(array(a, (n, n), (1, lda), t), order, numpy.eye(n, dtype=t), 0)
            write(c, (n, n), (1, ldc), t, inverse)
        array(infos, (batch,), (1,), numpy.int32)[...] = 0

    return compute


def _refuse(*arguments):
    raise Refused(_NOT_SUPPORTED)


#: what answers the functions that are not served, whose handle NVIDIA's do not know
REST = "", _refuse

_STATE = {
    "Create_v2": ("p", _create),
    "Destroy_v2": ("p", _destroy),
    "GetVersion_v2": ("pp", _get_version),
    "SetStream_v2": ("pp", _setter("stream")),
    "GetStream_v2": ("pp", _getter("stream", ctypes.c_void_p)),
    "SetPointerMode_v2": ("pi", _setter("pointer_mode")),
    "GetPointerMode_v2": ("pp", _getter("pointer_mode", ctypes.c_int)),
    "SetMathMode": ("pi", _setter("math_mode")),
    "SetWorkspace_v2": ("ppz", lambda handle, memory, size: _of(handle) and None),
    "GetMathMode": ("pp", _getter("math_mode", ctypes.c_int)),
    "GemmEx": ("piiiiippiipiippiiii", _gemm_ex),
    "SgemmEx": ("piiiiippiipiippii", _sgemm_ex),
    "GemmStridedBatchedEx": ("piiiiippiilpiilppiiliii", _gemm_strided_ex),
}


def _of_type(letter: str, t: type) -> dict:
    """The functions whose name has a letter for the type of their operands."""
    real = {"C": numpy.float32, "Z": numpy.float64}.get(letter)
    found = {
        f"{letter}gemm_v2": ("piiiiippipippi", _gemm(t)),
        f"{letter}gemmStridedBatched": ("piiiiippilpilppili", _gemm_strided(t)),
        f"{letter}gemmBatched": ("piiiiippipippii", _gemm_batched(t)),
        f"{letter}gemv_v2": ("piiippipippi", _gemv(t)),
        f"{letter}axpy_v2": ("pippipi", _axpy(t)),
        f"{letter}scal_v2": ("pippi", _scal(t, t)),
        f"{letter}geam": ("piiiippippipi", _geam(t)),
        f"{letter}dgmm": ("piiipipipi", _dgmm(t)),
        f"{letter}syrk_v2": ("piiiippippi", _syrk(t)),
        f"{letter}trsm_v2": ("piiiiiippipi", _trsm(t)),
        f"{letter}trsmBatched": ("piiiiiippipii", _trsm_batched(t)),
        f"I{letter.lower()}amax_v2": ("pipip", _extreme(t, numpy.argmax)),
        f"I{letter.lower()}amin_v2": ("pipip", _extreme(t, numpy.argmin)),
        f"{letter}getrfBatched": ("pipippi", _getrf_batched(t)),
        f"{letter}getrsBatched": ("piiipippipi", _getrs_batched(t)),
        f"{letter}getriBatched": ("pipippipi", _getri_batched(t)),
    }
    if real is None:
        found[f"{letter}ger_v2"] = "piippipipi", _ger(t)
        found[f"{letter}sbmv_v2"] = "piiippipippi", _sbmv(t)
        found[f"{letter}dot_v2"] = "pipipip", _dot(t)
    else:
        for name, conjugated in (("u", False), ("c", True)):
            found[f"{letter}ger{name}_v2"] = "piippipipi", _ger(t, conjugated)
            found[f"{letter}dot{name}_v2"] = "pipipip", _dot(t, conjugated)
        found[{"C": "Csscal_v2", "Z": "Zdscal_v2"}[letter]] = "pippi", _scal(t, real)
    prefix = {"C": "Sc", "Z": "Dz"}.get(letter, letter)
    found[f"{prefix}nrm2_v2"] = "pipip", _norm(t, numpy.linalg.norm)
    found[f"{prefix}asum_v2"] = "pipip", _norm(t, _sum_of_parts)
    return found


def functions() -> dict:
    """The functions by name: the kinds of their parameters, and what computes them."""
    found = dict(_STATE)
    for letter, t in _TYPES.items():
        found |= _of_type(letter, t)
    return {f"cublas{name}": function for name, function in found.items()}
