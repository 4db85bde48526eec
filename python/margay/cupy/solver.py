"""cuSOLVER: the functions that `cupy.linalg` calls (cuSOLVER documentation, "cuSolverDN"). Matrices are column-major. The sparse ones are
in `sparse_solver.py`."""

from __future__ import annotations

import ctypes
import itertools

import numpy

from margay.cupy import factor, sparse_solver
from margay.cupy.library import Refused, addresses, array, put, wait, written

_NOT_INITIALIZED, _NOT_SUPPORTED = 1, 9
_TYPES = {"S": numpy.float32, "D": numpy.float64, "C": numpy.complex64, "Z": numpy.complex128}
# The types in which iterative refinement may factor
_LOWER = {"S": "SHBX", "D": "DSHBX", "C": "CKEY", "Z": "ZCKEY"}
# `cudaDataType_t`
_DATA = {0: numpy.float32, 1: numpy.float64, 4: numpy.complex64, 5: numpy.complex128}
_WITH_VECTORS = 1  # `cusolverEigMode_t`

_streams: dict[int, int] = {}
_handles = itertools.count(1)
_parameters = itertools.count(1)


def _begin(handle: int) -> None:
    if handle not in _streams:
        raise Refused(_NOT_INITIALIZED)
    if not wait(_streams[handle]):
        raise Refused(_NOT_SUPPORTED)


def _create(place):
    handle = next(_handles)
    _streams[handle] = 0
    put(place, ctypes.c_void_p, handle)


def _destroy(handle):
    if _streams.pop(handle, None) is None:
        raise Refused(_NOT_INITIALIZED)


def _set_stream(handle, stream):
    _streams[handle] = stream or 0


def _get_stream(handle, place):
    put(place, ctypes.c_void_p, _streams[handle])


def _real(t):
    return numpy.dtype(t).type(0).real.dtype


def _matrix(address, rows, columns, leading, t):
    return array(address, (rows, columns), (1, leading), t)


def _store(place, values):
    place[...] = values
    written(place)


def _tell(address, info):
    _store(array(address, (1,), (1,), numpy.int32), info)


def _room(at):
    """Needed workspace: none, but CuPy allocates it."""
    return lambda *arguments: put(arguments[at], ctypes.c_int, 1)


def _getrf(t):
    def compute(handle, m, n, a, lda, work, pivots, info):
        _begin(handle)
        matrix = _matrix(a, m, n, lda, t)
        _tell(info, factor.lu(matrix, array(pivots, (min(m, n),), (1,), numpy.int32) if pivots else None))

    return compute


def _getrs(t):
    def compute(handle, trans, n, count, a, lda, pivots, b, ldb, info):
        _begin(handle)
        right = _matrix(b, n, count, ldb, t)
        order = array(pivots, (n,), (1,), numpy.int32) if pivots else None
        _store(right, factor.lu_solve(_matrix(a, n, n, lda, t), order, right, trans))
        _tell(info, 0)

    return compute


def _potrf(t):
    def compute(handle, uplo, n, a, lda, work, size, info):
        _begin(handle)
        _tell(info, factor.cholesky(uplo, _matrix(a, n, n, lda, t)))

    return compute


def _potrf_batched(t):
    def compute(handle, uplo, n, matrices, lda, infos, batch):
        _begin(handle)
        told = array(infos, (batch,), (1,), numpy.int32)
        for i, address in enumerate(addresses(matrices, batch)):
            told[i] = factor.cholesky(uplo, _matrix(address, n, n, lda, t))

    return compute


def _potrs(t):
    def compute(handle, uplo, n, count, a, lda, b, ldb, info):
        _begin(handle)
        right = _matrix(b, n, count, ldb, t)
        _store(right, factor.cholesky_solve(uplo, _matrix(a, n, n, lda, t), right))
        _tell(info, 0)

    return compute


def _potrs_batched(t):
    def compute(handle, uplo, n, count, matrices, lda, rights, ldb, info, batch):
        _begin(handle)
        for a, b in zip(addresses(matrices, batch), addresses(rights, batch), strict=True):
            _potrs(t)(handle, uplo, n, count, a, lda, b, ldb, info)

    return compute


def _geqrf(t):
    def compute(handle, m, n, a, lda, tau, work, size, info):
        _begin(handle)
        matrix = _matrix(a, m, n, lda, t)
        packed, factors = numpy.linalg.qr(matrix, mode="raw")
        _store(matrix, packed.T)
        _store(array(tau, (min(m, n),), (1,), t), factors)
        _tell(info, 0)

    return compute


def _orgqr(t):
    def compute(handle, m, n, k, a, lda, tau, work, size, info):
        _begin(handle)
        factor.orthogonal(_matrix(a, m, n, lda, t), array(tau, (k,), (1,), t))
        _tell(info, 0)

    return compute


def _ormqr(t):
    def compute(handle, side, operation, m, n, k, a, lda, tau, c, ldc, work, size, info):
        _begin(handle)
        out, adjoint = _matrix(c, m, n, ldc, t), operation != 0
        reflectors = _matrix(a, m if side == 0 else n, k, lda, t)
        if side == 0:
            factor.reflect(reflectors, array(tau, (k,), (1,), t), out, adjoint)
        else:  # C Q is the adjoint of Q^H C^H
            turned = out.conj().T.copy()
            factor.reflect(reflectors, array(tau, (k,), (1,), t), turned, not adjoint)
            out[...] = turned.conj().T
        written(out)
        _tell(info, 0)

    return compute


def _gesv(t):
    """Linear systems by iterative refinement, whose lower precision need not be used: the number of iterations is 0."""

    def compute(handle, n, count, a, lda, pivots, b, ldb, x, ldx, work, size, iterations, info):
        _begin(handle)
        matrix = _matrix(a, n, n, lda, t).copy()
        order = array(pivots, (n,), (1,), numpy.int32) if pivots else numpy.empty(n, numpy.int32)
        singular = factor.lu(matrix, order)
        if not singular:
            _store(_matrix(x, n, count, ldx, t), factor.lu_solve(matrix, order, _matrix(b, n, count, ldb, t), 0))
        put(iterations, ctypes.c_int, 0)
        _tell(info, singular)

    return compute


def _gels(t):
    def compute(handle, m, n, count, a, lda, b, ldb, x, ldx, work, size, iterations, info):
        _begin(handle)
        found = numpy.linalg.lstsq(_matrix(a, m, n, lda, t), _matrix(b, m, count, ldb, t), rcond=None)[0]
        _store(_matrix(x, n, count, ldx, t), found)
        put(iterations, ctypes.c_int, 0)
        _tell(info, 0)

    return compute


def _gesvd(t):
    def compute(handle, job_u, job_v, m, n, a, lda, s, u, ldu, vt, ldvt, work, size, real_work, info):
        """The jobs say of U and of V's adjoint: all of it, the first `S`ingular vectors, those `O`verwriting the matrix, or `N`one."""
        _begin(handle)
        jobs, least = (chr(job_u), chr(job_v)), min(m, n)
        matrix = _matrix(a, m, n, lda, t)
        left, values, right = numpy.linalg.svd(matrix, full_matrices="A" in jobs)
        _store(array(s, (least,), (1,), _real(t)), values)
        if jobs[0] in ("A", "S"):
            columns = m if jobs[0] == "A" else least
            _store(_matrix(u, m, columns, ldu, t), left[:, :columns])
        if jobs[1] in ("A", "S"):
            rows = n if jobs[1] == "A" else least
            _store(_matrix(vt, rows, n, ldvt, t), right[:rows])
        if jobs[0] == "O":
            _store(matrix[:, :least], left[:, :least])
        elif jobs[1] == "O":
            _store(matrix[:least], right[:least])
        _tell(info, 0)

    return compute


def _decompose(mode, uplo, matrix, values):
    """Eigenvalues, and in the place of the matrix its eigenvectors, if they are asked for."""
    triangle = "LU"[uplo]
    if mode == _WITH_VECTORS:
        found, vectors = numpy.linalg.eigh(matrix, triangle)
        _store(matrix, vectors)
    else:
        found = numpy.linalg.eigvalsh(matrix, triangle)
    _store(values, found)


def _syevd(t):
    def compute(handle, mode, uplo, n, a, lda, w, work, size, info):
        _begin(handle)
        _decompose(mode, uplo, _matrix(a, n, n, lda, t), array(w, (n,), (1,), _real(t)))
        _tell(info, 0)

    return compute


def _syevj(t):
    def compute(handle, mode, uplo, n, a, lda, w, work, size, info, parameters):
        _syevd(t)(handle, mode, uplo, n, a, lda, w, work, size, info)

    return compute


def _syevj_batched(t):
    def compute(handle, mode, uplo, n, a, lda, w, work, size, infos, parameters, batch):
        _begin(handle)
        step, told = numpy.dtype(t).itemsize * lda * n, array(infos, (batch,), (1,), numpy.int32)
        values = array(w, (batch, n), (n, 1), _real(t))
        for i in range(batch):
            _decompose(mode, uplo, _matrix(a + i * step, n, n, lda, t), values[i])
        _store(told, 0)

    return compute


def _gesvdj(t):
    def compute(handle, mode, thin, m, n, a, lda, s, u, ldu, v, ldv, work, size, info, parameters):
        _begin(handle)
        left, values, right = numpy.linalg.svd(_matrix(a, m, n, lda, t), full_matrices=not thin)
        _store(array(s, (min(m, n),), (1,), _real(t)), values)
        if mode == _WITH_VECTORS:
            _store(_matrix(u, *left.shape, ldu, t), left)
            _store(_matrix(v, *right.shape[::-1], ldv, t), right.conj().T)
        _tell(info, 0)

    return compute


def _gesvda(t):
    """The first singular values of matrices, with their vectors, and how far the products of these are from the matrices."""

    def compute(handle, mode, rank, m, n, a, lda, sa, s, ss, u, ldu, su, v, ldv, sv, work, size, infos, residuals, batch):
        _begin(handle)
        matrices = array(a, (batch, m, n), (sa, 1, lda), t)
        left, values, right = numpy.linalg.svd(matrices, full_matrices=False)
        left, values, right = left[..., :rank], values[:, :rank], right[:, :rank]
        _store(array(s, (batch, rank), (ss, 1), _real(t)), values)
        if mode == _WITH_VECTORS:
            _store(array(u, (batch, m, rank), (su, 1, ldu), t), left)
            _store(array(v, (batch, n, rank), (sv, 1, ldv), t), right.conj().swapaxes(1, 2))
        if residuals:
            rest = numpy.linalg.norm(matrices - (left * values[:, None]) @ right, axis=(1, 2))
            (ctypes.c_double * batch).from_address(residuals)[:] = rest.tolist()
        _store(array(infos, (batch,), (1,), numpy.int32), 0)

    return compute


def _gesvdj_batched(t):
    def compute(handle, mode, m, n, a, lda, s, u, ldu, v, ldv, work, size, infos, parameters, batch):
        _begin(handle)
        least, told = min(m, n), array(infos, (batch,), (1,), numpy.int32)
        matrices = array(a, (batch, m, n), (lda * n, 1, lda), t)
        left, values, right = numpy.linalg.svd(matrices)
        _store(array(s, (batch, least), (least, 1), _real(t)), values)
        if mode == _WITH_VECTORS:
            _store(array(u, (batch, m, m), (ldu * m, 1, ldu), t), left)
            _store(array(v, (batch, n, n), (ldv * n, 1, ldv), t), right.conj().swapaxes(1, 2))
        _store(told, 0)

    return compute


def _xsyevd(handle, parameters, mode, uplo, n, kind, a, lda, kind_w, w, compute, device, device_size, host, host_size, info):
    if kind not in _DATA:
        raise Refused(_NOT_SUPPORTED)
    _syevd(_DATA[kind])(handle, mode, uplo, n, a, lda, w, None, 0, info)


def _xgeev(handle, parameters, left, right, n, kind, a, lda, kind_w, w, kind_l, vl, ldvl, kind_r, vr, ldvr, compute, *room_and_info):
    if kind not in _DATA or kind_w not in _DATA or left == _WITH_VECTORS:
        raise Refused(_NOT_SUPPORTED)
    _begin(handle)
    values, vectors = numpy.linalg.eig(_matrix(a, n, n, lda, _DATA[kind]))
    _store(array(w, (n,), (1,), _DATA[kind_w]), values)
    if right == _WITH_VECTORS:
        if kind in (0, 1):  # of a pair of conjugates, the first one's real and imaginary parts
            second = numpy.flatnonzero(values.imag > 0) + 1 if numpy.iscomplexobj(values) else []
            packed = vectors.real.copy()
            for i in second:
                packed[:, i] = vectors[:, i - 1].imag
            vectors = packed
        _store(_matrix(vr, n, n, ldvr, _DATA[kind_r]), vectors)
    _tell(room_and_info[-1], 0)


def _no_room(*places):
    """Needed workspace on the device and on the host: none."""

    def compute(*arguments):
        for place in places:
            put(arguments[place], ctypes.c_size_t, 0)

    return compute


def _exact(kind, value):
    """What an iterative method says of its last use."""
    return lambda handle, parameters, place: put(place, kind, value)


def _create_parameters(place):
    put(place, ctypes.c_void_p, next(_parameters))


def _refuse(*arguments):
    raise Refused(_NOT_SUPPORTED)


#: what answers the functions that are not served, whose handle NVIDIA's do not know
REST = "", _refuse
_NOTHING = lambda *arguments: None  # noqa: E731

_STATE = {
    "Create": ("p", _create),
    "Destroy": ("p", _destroy),
    "SetStream": ("pp", _set_stream),
    "GetStream": ("pp", _get_stream),
    "CreateParams": ("p", _create_parameters),
    "DestroyParams": ("p", _NOTHING),
    "CreateSyevjInfo": ("p", _create_parameters),
    "DestroySyevjInfo": ("p", _NOTHING),
    "CreateGesvdjInfo": ("p", _create_parameters),
    "DestroyGesvdjInfo": ("p", _NOTHING),
    "XsyevjSetTolerance": ("pd", _NOTHING),
    "XsyevjSetMaxSweeps": ("pi", _NOTHING),
    "XsyevjSetSortEig": ("pi", _NOTHING),
    "XgesvdjSetTolerance": ("pd", _NOTHING),
    "XgesvdjSetMaxSweeps": ("pi", _NOTHING),
    "XgesvdjSetSortEig": ("pi", _NOTHING),
    "XsyevjGetResidual": ("ppp", _exact(ctypes.c_double, 0)),
    "XsyevjGetSweeps": ("ppp", _exact(ctypes.c_int, 1)),
    "XgesvdjGetResidual": ("ppp", _exact(ctypes.c_double, 0)),
    "XgesvdjGetSweeps": ("ppp", _exact(ctypes.c_int, 1)),
    "Xsyevd": ("ppiiliplipipzpzp", _xsyevd),
    "Xsyevd_bufferSize": ("ppiiliplipipp", _no_room(11, 12)),
    "Xgeev": ("ppiiliplipipliplipzpzp", _xgeev),
    "Xgeev_bufferSize": ("ppiiliplipipliplipp", _no_room(17, 18)),
}


def _of_type(letter: str, t: type) -> dict:
    """The functions whose name has a letter for the type of their operands."""
    hermitian, unitary = ("he", "un") if letter in "CZ" else ("sy", "or")
    return {
        f"{letter}getrf_bufferSize": ("piipip", _room(5)),
        f"{letter}getrf": ("piipippp", _getrf(t)),
        f"{letter}getrs": ("piiipippip", _getrs(t)),
        f"{letter}potrf_bufferSize": ("piipip", _room(5)),
        f"{letter}potrf": ("piipipip", _potrf(t)),
        f"{letter}potrfBatched": ("piipipi", _potrf_batched(t)),
        f"{letter}potrs": ("piiipipip", _potrs(t)),
        f"{letter}potrsBatched": ("piiipipipi", _potrs_batched(t)),
        f"{letter}geqrf_bufferSize": ("piipip", _room(5)),
        f"{letter}geqrf": ("piipippip", _geqrf(t)),
        f"{letter}{unitary}gqr_bufferSize": ("piiipipp", _room(7)),
        f"{letter}{unitary}gqr": ("piiipippip", _orgqr(t)),
        f"{letter}{unitary}mqr_bufferSize": ("piiiiipippip", _room(11)),
        f"{letter}{unitary}mqr": ("piiiiipippipip", _ormqr(t)),
        f"{letter}gesvd_bufferSize": ("piip", _room(3)),
        f"{letter}gesvd": ("pbbiipippipipipp", _gesvd(t)),
        f"{letter}{hermitian}evd_bufferSize": ("piiipipp", _room(7)),
        f"{letter}{hermitian}evd": ("piiipippip", _syevd(t)),
        f"{letter}{hermitian}evj_bufferSize": ("piiipippp", _room(7)),
        f"{letter}{hermitian}evj": ("piiipippipp", _syevj(t)),
        f"{letter}{hermitian}evjBatched_bufferSize": ("piiipipppi", _room(7)),
        f"{letter}{hermitian}evjBatched": ("piiipippippi", _syevj_batched(t)),
        f"{letter}gesvdj_bufferSize": ("piiiipippipipp", _room(12)),
        f"{letter}gesvdj": ("piiiipippipipipp", _gesvdj(t)),
        f"{letter}gesvdaStridedBatched_bufferSize": ("piiiipilplpilpilpi", _room(16)),
        f"{letter}gesvdaStridedBatched": ("piiiipilplpilpilpippi", _gesvda(t)),
        f"{letter}gesvdjBatched_bufferSize": ("piiipippipippi", _room(11)),
        f"{letter}gesvdjBatched": ("piiipippipipippi", _gesvdj_batched(t)),
    }


def functions() -> dict:
    """The functions by name: the kinds of their parameters, and what computes them."""
    found = dict(_STATE)
    for letter, t in _TYPES.items():
        found |= _of_type(letter, t)
        for lower in _LOWER[letter]:
            found[f"{letter}{lower}gesv_bufferSize"] = "piipippipipp", _no_room(11)
            found[f"{letter}{lower}gesv"] = "piipippipipzpp", _gesv(t)
            found[f"{letter}{lower}gels_bufferSize"] = "piiipipipipp", _no_room(11)
            found[f"{letter}{lower}gels"] = "piiipipipipzpp", _gels(t)
    dense = {f"cusolverDn{name}": function for name, function in found.items()}
    shared = {name: _STATE[name] for name in ("Create", "Destroy", "SetStream", "GetStream")}
    sparse = {f"cusolverSp{name}": function for name, function in (shared | sparse_solver.functions(_begin)).items()}
    return dense | sparse
