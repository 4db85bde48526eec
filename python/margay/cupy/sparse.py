"""cuSPARSE: the functions that `cupyx.scipy.sparse` calls (cuSPARSE documentation, "cuSPARSE Generic APIs", "Conversions", "Extra").

A matrix or vector that the program describes is an object of ours. `Sparse.entries` is what all computations begin with: rows, columns and
values of the stored elements, counted from zero.
"""

from __future__ import annotations

import ctypes
import itertools
from dataclasses import dataclass, field

import numpy

from margay.cupy.library import Refused, array, put, version, wait, written

NOT_INITIALIZED, INVALID_VALUE, TYPE_NOT_SUPPORTED, NOT_SUPPORTED = 1, 3, 8, 10
#: `cudaDataType_t`
TYPES = {0: numpy.float32, 1: numpy.float64, 2: numpy.float16, 4: numpy.complex64, 5: numpy.complex128, 10: numpy.int32}
#: `cusparseIndexType_t`
INDICES = {1: numpy.uint16, 2: numpy.int32, 3: numpy.int64}
#: `cusparseFormat_t`
CSR, CSC, COO = 1, 2, 3
_COLUMN_ORDER = 1  # `cusparseOrder_t`
_BLOCK = 1 << 22  # products of elements that are held at a time

_objects: dict[int, object] = {}
_numbers = itertools.count(1)


def of(number: int, kind: type):
    """The object of a handle or descriptor."""
    found = _objects.get(number)
    if not isinstance(found, kind):
        raise Refused(NOT_INITIALIZED if kind is Handle else INVALID_VALUE)
    return found


def keep(place: int, new: object) -> None:
    """Gives the program a number for an object."""
    number = next(_numbers)
    _objects[number] = new
    put(place, ctypes.c_void_p, number)


def forget(number: int) -> None:
    """Forgets an object."""
    if number and _objects.pop(number, None) is None:
        raise Refused(INVALID_VALUE)


def begin(handle: int) -> None:
    """Waits for what the operands depend on."""
    if not wait(of(handle, Handle).stream):
        raise Refused(NOT_SUPPORTED)


def store(place: numpy.ndarray, values) -> None:
    """Writes device memory."""
    place[...] = values
    written(place)


def vector(address: int, count: int, dtype) -> numpy.ndarray:
    """Device memory as a vector."""
    return array(address, (count,), (1,), dtype)


def scalar(address: int, dtype):
    """A factor, on the host or on the device."""
    if not address:
        raise Refused(INVALID_VALUE)
    return numpy.frombuffer((ctypes.c_char * numpy.dtype(dtype).itemsize).from_address(address), dtype)[0].copy()


def type_of(code: int, known: dict = TYPES) -> type:
    """The NumPy type of an element or an index."""
    if code not in known:
        raise Refused(TYPE_NOT_SUPPORTED)
    return known[code]


@dataclass
class Handle:
    """A library handle."""

    stream: int = 0
    pointer_mode: int = 0


@dataclass
class Legacy:
    """A `cusparseMatDescr_t`."""

    values: dict = field(default_factory=lambda: dict.fromkeys(("type", "fill", "diagonal", "base"), 0))

    @property
    def base(self) -> int:
        return self.values["base"]


@dataclass
class Sparse:
    """A matrix of a compressed format, or of coordinates. `major` are the offsets of its rows or columns; with coordinates, its rows."""

    format: int
    rows: int
    cols: int
    nnz: int
    major: int
    minor: int
    data: int
    major_type: int
    minor_type: int
    base: int
    type: int
    attributes: dict = field(default_factory=lambda: {0: 0, 1: 0})  # `cusparseSpMatAttribute_t`: fill mode, type of the diagonal

    @property
    def lines(self) -> int:
        """The number of compressed rows or columns."""
        return self.rows if self.format == CSR else self.cols

    def entries(self) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
        """Rows, columns and values of the elements."""
        minor = vector(self.minor, self.nnz, type_of(self.minor_type, INDICES)).astype(numpy.int64) - self.base
        values = vector(self.data, self.nnz, type_of(self.type))
        if self.format == COO:
            return vector(self.major, self.nnz, type_of(self.major_type, INDICES)).astype(numpy.int64) - self.base, minor, values
        major = expanded(vector(self.major, self.lines + 1, type_of(self.major_type, INDICES)))
        return (major, minor, values) if self.format == CSR else (minor, major, values)

    def store_offsets(self, lines: numpy.ndarray) -> None:
        """Writes the offsets for elements in these rows or columns."""
        place = vector(self.major, self.lines + 1, type_of(self.major_type, INDICES))
        store(place, offsets(lines, self.lines) + self.base)

    def store_entries(self, rows: numpy.ndarray, cols: numpy.ndarray, values: numpy.ndarray) -> None:
        """Writes the elements, which are sorted as the format wants them."""
        if self.format == COO:
            store(vector(self.major, self.nnz, type_of(self.major_type, INDICES)), rows + self.base)
        else:
            self.store_offsets(rows if self.format == CSR else cols)
        store(vector(self.minor, self.nnz, type_of(self.minor_type, INDICES)), (rows if self.format == CSC else cols) + self.base)
        store(vector(self.data, self.nnz, type_of(self.type)), values)


@dataclass
class Vector:
    """A vector; with indices, those of the elements that it stores."""

    size: int
    data: int
    type: int
    nnz: int = 0
    indices: int = 0
    index_type: int = 0
    base: int = 0

    def values(self) -> numpy.ndarray:
        return vector(self.data, self.nnz if self.indices else self.size, type_of(self.type))

    def places(self) -> numpy.ndarray:
        return vector(self.indices, self.nnz, type_of(self.index_type, INDICES)).astype(numpy.int64) - self.base


@dataclass
class Dense:
    """A dense matrix."""

    rows: int
    cols: int
    leading: int
    data: int
    type: int
    order: int

    def values(self) -> numpy.ndarray:
        strides = (1, self.leading) if self.order == _COLUMN_ORDER else (self.leading, 1)
        return array(self.data, (self.rows, self.cols), strides, type_of(self.type))


def expanded(starts: numpy.ndarray) -> numpy.ndarray:
    """The row of each element, from the offsets of the rows."""
    return numpy.repeat(numpy.arange(len(starts) - 1), numpy.diff(starts))


def offsets(rows: numpy.ndarray, count: int) -> numpy.ndarray:
    """The offsets of the rows, from the row of each element."""
    return numpy.concatenate(([0], numpy.bincount(rows, minlength=count).cumsum()))


def summed(keys: numpy.ndarray, values: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The different keys in order, and the sum of the values of each."""
    if not len(keys):
        return keys, values
    order = numpy.argsort(keys, kind="stable")
    keys = keys[order]
    first = numpy.flatnonzero(numpy.concatenate(([True], keys[1:] != keys[:-1])))
    return keys[first], numpy.add.reduceat(values[order], first, axis=0)


def applied(operation: int, rows, cols, values):
    """The elements of `op(A)`."""
    if operation not in (0, 1, 2):
        raise Refused(INVALID_VALUE)
    if operation == 0:
        return rows, cols, values
    return cols, rows, values.conj() if operation == 2 else values


def _turned(operation: int, matrix: numpy.ndarray) -> numpy.ndarray:
    if operation not in (0, 1, 2):
        raise Refused(INVALID_VALUE)
    return matrix if operation == 0 else matrix.T if operation == 1 else matrix.T.conj()


def _wide(kind: int) -> type:
    """The type of sums."""
    return numpy.float32 if type_of(kind) is numpy.float16 else type_of(kind)


def multiply(entries, right: numpy.ndarray, rows: int, kind: type) -> numpy.ndarray:
    """`A B` for a sparse matrix and a dense one, by blocks of columns."""
    at, cols, values = entries
    out = numpy.zeros((rows, right.shape[1]), kind)
    values = values.astype(kind, copy=False)[:, None]
    width = max(1, _BLOCK // max(1, len(at)))
    for i in range(0, right.shape[1], width):
        block = slice(i, i + width)
        found, sums = summed(at, values * right[cols, block].astype(kind, copy=False))
        out[found, block] = sums
    return out


def _update(place: numpy.ndarray, product: numpy.ndarray, alpha, beta) -> None:
    """`C = alpha product + beta C`, without reading `C` where `beta` is zero."""
    store(place, alpha * product if beta == 0 else alpha * product + beta * place)


def _spmv(handle, operation, alpha, matrix, x, beta, y, compute, algorithm, buffer):
    begin(handle)
    matrix, x, y, kind = of(matrix, Sparse), of(x, Vector), of(y, Vector), _wide(compute)
    if (matrix.cols, matrix.rows) != ((x.size, y.size) if operation == 0 else (y.size, x.size)):
        raise Refused(INVALID_VALUE)
    product = multiply(applied(operation, *matrix.entries()), x.values()[:, None], y.size, kind)[:, 0]
    _update(y.values(), product, scalar(alpha, kind), scalar(beta, kind))


def _spmm(handle, left, right, alpha, matrix, b, beta, c, compute, algorithm, buffer):
    begin(handle)
    matrix, c, kind = of(matrix, Sparse), of(c, Dense), _wide(compute)
    b = _turned(right, of(b, Dense).values())
    rows, inner = (matrix.rows, matrix.cols) if left == 0 else (matrix.cols, matrix.rows)
    if (rows, inner, b.shape[1]) != (c.rows, b.shape[0], c.cols):
        raise Refused(INVALID_VALUE)
    product = multiply(applied(left, *matrix.entries()), b, rows, kind)
    _update(c.values(), product, scalar(alpha, kind), scalar(beta, kind))


def _spvv(handle, operation, x, y, result, compute, buffer):
    begin(handle)
    x, y, kind = of(x, Vector), of(y, Vector), _wide(compute)
    values = x.values().conj() if operation == 2 else x.values()
    total = numpy.sum(values.astype(kind) * y.values()[x.places()].astype(kind), dtype=kind)
    (ctypes.c_char * total.nbytes).from_address(result)[:] = total.tobytes()


def _gather(handle, y, x):
    begin(handle)
    x = of(x, Vector)
    store(x.values(), of(y, Vector).values()[x.places()])


def _spgemm_room(handle, left, right, alpha, a, b, beta, c, compute, algorithm, state, size, buffer):
    """The size of a buffer. The first call of two asks for it, without one."""
    put(size, ctypes.c_size_t, 1)


def _spgemm(handle, left, right, alpha, a, b, beta, c, compute, algorithm, state, size, buffer):
    if not buffer:
        put(size, ctypes.c_size_t, 1)
        return
    begin(handle)
    a, b, c, kind = of(a, Sparse), of(b, Sparse), of(c, Sparse), _wide(compute)
    if (left, right) != (0, 0) or not a.format == b.format == c.format == CSR or scalar(beta, kind) != 0:
        raise Refused(NOT_SUPPORTED)
    if (a.rows, a.cols, b.cols) != (c.rows, b.rows, c.cols):
        raise Refused(INVALID_VALUE)
    rows, inner, values = a.entries()
    brows, bcols, bvalues = b.entries()
    starts = offsets(brows, b.rows)
    # Each element of A meets the elements of one row of B.
    count = numpy.diff(starts)[inner]
    source = numpy.repeat(numpy.arange(len(rows)), count)
    place = numpy.arange(len(source)) - numpy.repeat(count.cumsum() - count, count) + starts[inner][source]
    keys = rows[source] * b.cols + bcols[place]
    products = values[source].astype(kind, copy=False) * bvalues[place].astype(kind, copy=False)
    keys, sums = summed(keys, products)
    of(state, _Product).found = keys // max(1, b.cols), keys % max(1, b.cols), scalar(alpha, kind) * sums
    c.nnz = len(keys)


def _spgemm_copy(handle, left, right, alpha, a, b, beta, c, compute, algorithm, state):
    found = of(state, _Product).found
    if found is None:
        raise Refused(INVALID_VALUE)
    of(c, Sparse).store_entries(*found)


class _Product:
    """A `cusparseSpGEMMDescr_t`, with the product once it is computed."""

    found = None


class _Solver:
    """A `cusparseSpSMDescr_t`."""


def _spsm(handle, left, right, alpha, matrix, b, c, compute, algorithm, state):
    """`op(A) C = alpha op(B)` with a triangle of A, row by row."""
    begin(handle)
    matrix, c, kind = of(matrix, Sparse), of(c, Dense), _wide(compute)
    upper, unit = matrix.attributes[0] == 1, matrix.attributes[1] == 1
    rows, cols, values = matrix.entries()
    part = cols > rows if upper else cols < rows
    diagonal = numpy.ones(matrix.rows, kind)
    if not unit:
        diagonal[:] = 0
        at = rows == cols
        diagonal[rows[at]] = values[at]
    if left != 0:
        upper = not upper
        diagonal = diagonal.conj() if left == 2 else diagonal
    rows, cols, values = applied(left, rows[part], cols[part], values[part])
    order = numpy.argsort(rows, kind="stable")
    cols, values, starts = cols[order], values[order].astype(kind, copy=False), offsets(rows, matrix.rows)
    solution = scalar(alpha, kind) * _turned(right, of(b, Dense).values()).astype(kind)
    for i in reversed(range(matrix.rows)) if upper else range(matrix.rows):
        line = slice(starts[i], starts[i + 1])
        solution[i] = (solution[i] - values[line] @ solution[cols[line]]) / diagonal[i]
    store(c.values(), solution)


def _to_dense(handle, matrix, out, algorithm, buffer):
    begin(handle)
    rows, cols, values = of(matrix, Sparse).entries()
    place = of(out, Dense).values()
    place[...] = 0
    place[rows, cols] = values
    written(place)


def _nonzero(dense, matrix):
    """The elements of a dense matrix in the order of a sparse one's format."""
    values = of(dense, Dense).values()
    if matrix.format == CSC:
        cols, rows = numpy.nonzero(values.T)
    else:
        rows, cols = numpy.nonzero(values)
    return rows, cols, values[rows, cols]


def _analyze_dense(handle, dense, matrix, algorithm, buffer):
    begin(handle)
    matrix = of(matrix, Sparse)
    rows, cols, _ = _nonzero(dense, matrix)
    matrix.nnz = len(rows)
    if matrix.format != COO:
        matrix.store_offsets(rows if matrix.format == CSR else cols)


def _from_dense(handle, dense, matrix, algorithm, buffer):
    begin(handle)
    matrix = of(matrix, Sparse)
    found = _nonzero(dense, matrix)
    matrix.nnz = len(found[0])
    matrix.store_entries(*found)


def _room(at: int):
    """Needed workspace: none, but CuPy allocates it."""
    return lambda *arguments: put(arguments[at], ctypes.c_size_t, 1)


def _nothing(*arguments) -> None:
    pass


def _maker(kind, *before, order=None):
    """Creates a descriptor with the values of the parameters behind its place."""
    return lambda place, *values: keep(place, kind(*before, *(values if order is None else order(*values))))


def _teller(kind, *parts):
    """Answers questions: the names of a descriptor's parts and their C types."""

    def tell(number, *places):
        found = of(number, kind)
        for place, (name, c_type) in zip(places, parts, strict=True):
            if place:
                put(place, c_type, getattr(found, name))

    return tell


_LONG, _INT, _ADDRESS = ctypes.c_int64, ctypes.c_int, ctypes.c_void_p
_SIZES = ("rows", _LONG), ("cols", _LONG), ("nnz", _LONG)
_PLACES = ("major", _ADDRESS), ("minor", _ADDRESS), ("data", _ADDRESS)


def _set_pointers(matrix, major, minor, data):
    matrix = of(matrix, Sparse)
    matrix.major, matrix.minor, matrix.data = major or 0, minor or 0, data or 0


def _set_values(matrix, data):
    of(matrix, Sparse).data = data or 0


def _set_attribute(matrix, attribute, data, size):
    if attribute not in (0, 1) or size != 4:
        raise Refused(INVALID_VALUE)
    of(matrix, Sparse).attributes[attribute] = _INT.from_address(data).value


def _destroy_handle(handle):
    of(handle, Handle)
    forget(handle)


def _set_stream(handle, stream):
    of(handle, Handle).stream = stream or 0


def _set_mode(handle, mode):
    of(handle, Handle).pointer_mode = mode


def _get_version(handle, place):
    major, minor, patch = version("cusparse")
    put(place, _INT, major * 1000 + minor * 100 + patch)


def _set_legacy(name):
    return lambda number, value: of(number, Legacy).values.__setitem__(name, value)


def _refuse(*arguments):
    raise Refused(NOT_SUPPORTED)


#: what answers the functions that are not served, whose handle NVIDIA's do not know
REST = "", _refuse

_STATE = {
    "Create": ("p", lambda place: keep(place, Handle())),
    "Destroy": ("p", _destroy_handle),
    "GetVersion": ("pp", _get_version),
    "SetStream": ("pp", _set_stream),
    "GetStream": ("pp", _teller(Handle, ("stream", _ADDRESS))),
    "SetPointerMode": ("pi", _set_mode),
    "GetPointerMode": ("pp", _teller(Handle, ("pointer_mode", _INT))),
    "CreateMatDescr": ("p", lambda place: keep(place, Legacy())),
    "DestroyMatDescr": ("p", forget),
    "SetMatType": ("pi", _set_legacy("type")),
    "SetMatFillMode": ("pi", _set_legacy("fill")),
    "SetMatDiagType": ("pi", _set_legacy("diagonal")),
    "SetMatIndexBase": ("pi", _set_legacy("base")),
    "CreateSpVec": ("pllppiii", _maker(Vector, order=lambda size, nnz, at, data, i, base, t: (size, data, t, nnz, at, i, base))),
    "DestroySpVec": ("p", forget),
    "SpVecGet": ("pppppppp", _teller(
        Vector, ("size", _LONG), ("nnz", _LONG), ("indices", _ADDRESS), ("data", _ADDRESS), ("index_type", _INT), ("base", _INT),
        ("type", _INT),
    )),
    "CreateDnVec": ("plpi", _maker(Vector)),
    "DestroyDnVec": ("p", forget),
    "DnVecGet": ("pppp", _teller(Vector, ("size", _LONG), ("data", _ADDRESS), ("type", _INT))),
    "CreateDnMat": ("plllpii", _maker(Dense)),
    "DestroyDnMat": ("p", forget),
    "DnMatGet": ("ppppppp", _teller(
        Dense, ("rows", _LONG), ("cols", _LONG), ("leading", _LONG), ("data", _ADDRESS), ("type", _INT), ("order", _INT)
    )),
    "CreateCsr": ("plllpppiiii", _maker(Sparse, CSR)),
    "CreateCsc": ("plllpppiiii", _maker(Sparse, CSC)),
    "CreateCoo": ("plllpppiii", _maker(Sparse, COO, order=lambda *v: (*v[:6], v[6], *v[6:]))),
    "DestroySpMat": ("p", forget),
    "CsrGet": ("ppppppppppp", _teller(
        Sparse, *_SIZES, *_PLACES, ("major_type", _INT), ("minor_type", _INT), ("base", _INT), ("type", _INT)
    )),
    "CooGet": ("pppppppppp", _teller(Sparse, *_SIZES, *_PLACES, ("major_type", _INT), ("base", _INT), ("type", _INT))),
    "CsrSetPointers": ("pppp", _set_pointers),
    "SpMatGetSize": ("pppp", _teller(Sparse, *_SIZES)),
    "SpMatGetFormat": ("pp", _teller(Sparse, ("format", _INT))),
    "SpMatGetIndexBase": ("pp", _teller(Sparse, ("base", _INT))),
    "SpMatGetValues": ("pp", _teller(Sparse, ("data", _ADDRESS))),
    "SpMatSetValues": ("pp", _set_values),
    "SpMatSetAttribute": ("pipz", _set_attribute),
}  # fmt: skip

_GENERIC = {
    "SpVV_bufferSize": ("pipppip", _room(6)),
    "SpVV": ("pipppip", _spvv),
    "Gather": ("ppp", _gather),
    "SpMV_bufferSize": ("pipppppiip", _room(9)),
    "SpMV_preprocess": ("pipppppiip", _nothing),
    "SpMV": ("pipppppiip", _spmv),
    "SpMM_bufferSize": ("piipppppiip", _room(10)),
    "SpMM_preprocess": ("piipppppiip", _nothing),
    "SpMM": ("piipppppiip", _spmm),
    "SpGEMM_createDescr": ("p", lambda place: keep(place, _Product())),
    "SpGEMM_destroyDescr": ("p", forget),
    "SpGEMM_workEstimation": ("piipppppiippp", _spgemm_room),
    "SpGEMM_compute": ("piipppppiippp", _spgemm),
    "SpGEMM_copy": ("piipppppiip", _spgemm_copy),
    "SpSM_createDescr": ("p", lambda place: keep(place, _Solver())),
    "SpSM_destroyDescr": ("p", forget),
    "SpSM_bufferSize": ("piippppiipp", _room(10)),
    "SpSM_analysis": ("piippppiipp", _nothing),
    "SpSM_solve": ("piippppiip", _spsm),
    "SparseToDense_bufferSize": ("pppip", _room(4)),
    "SparseToDense": ("pppip", _to_dense),
    "DenseToSparse_bufferSize": ("pppip", _room(4)),
    "DenseToSparse_analysis": ("pppip", _analyze_dense),
    "DenseToSparse_convert": ("pppip", _from_dense),
}


def functions() -> dict:
    """The functions by name: the kinds of their parameters, and what computes them."""
    from margay.cupy import conversion, incomplete

    found = {**_STATE, **_GENERIC, **conversion.functions(), **incomplete.functions()}
    return {f"cusparse{name}": function for name, function in found.items()}
