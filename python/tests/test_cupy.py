"""CuPy's arrays and its calls of NVIDIA's libraries, against NumPy."""

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("cupy", reason="cupy is not installed")


def run(tmp_path, text):
    program = tmp_path / "program.py"
    program.write_text("import cupy, numpy\n" + textwrap.dedent(text))
    environment = {**os.environ, "CUPY_CACHE_DIR": str(tmp_path / "cupy")}
    command = ["margay", "exec", "--", sys.executable, str(program)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0 and not ran.stderr, ran.stdout + ran.stderr
    return ran.stdout


NEAR = """
    def near(found, expected, tolerance):
        assert found.dtype == expected.dtype, (found.dtype, expected.dtype)
        numpy.testing.assert_allclose(cupy.asnumpy(found), expected, rtol=tolerance, atol=tolerance)

    def numbers(shape, dtype):
        made = numpy.random.default_rng(len(shape)).normal(size=(*shape, 2))
        return (made[..., 0] + 1j * made[..., 1]).astype(dtype) if dtype in "FD" else made[..., 0].astype(dtype)
"""

PRODUCTS = """
    a, b = numbers((33, 20), dtype), numbers((20, 17), dtype)
    x, y = cupy.asarray(a), cupy.asarray(b)
    for compute in (
        lambda m, a, b: a @ b,
        lambda m, a, b: a.T.dot(a),
        lambda m, a, b: a[::2] @ b[:, ::3],
        lambda m, a, b: a @ b[:, 0],
        lambda m, a, b: m.matmul(m.stack([a, a * 2]), b),
        lambda m, a, b: m.tensordot(a, b, 1),
        lambda m, a, b: m.inner(a, a),
        lambda m, a, b: m.vdot(a, a),
        lambda m, a, b: m.outer(a[0], b[0]),
        lambda m, a, b: m.einsum("ij,jk->ki", a, b),
        lambda m, a, b: a[:0] @ b,
        lambda m, a, b: a[:, :0] @ b[:0],
    ):
        near(compute(cupy, x, y), compute(numpy, a, b), tolerance)
"""


@pytest.mark.parametrize("dtype", ["e", "f", "d", "F", "D"])
def test_products(tmp_path, dtype):
    run(tmp_path, NEAR + f"    dtype, tolerance = {dtype!r}, {2e-2 if dtype == 'e' else 1e-4}\n" + PRODUCTS)


BLAS = """
    from cupy import cublas
    a, v = numbers((6, 6), dtype), numbers((6,), dtype)
    x, w = cupy.asarray(a), cupy.asarray(v)
    out = cupy.full(6, numpy.nan, dtype)
    cublas.gemv("T", 2.0, x, w, 0.0, out)
    near(out, 2 * a.T @ v, 1e-4)
    out = cupy.asfortranarray(x)
    (cublas.ger if dtype in "fd" else cublas.geru)(1.0, w, w, out)
    near(out, a + numpy.outer(v, v), 1e-4)
    near(cublas.dgmm("L", cupy.asfortranarray(x), w), v[:, None] * a, 1e-4)
    near(cublas.geam("N", "T", 1.0, x, 2.0, x), a + 2 * a.T, 1e-4)
    near(cublas.gemm("N", "H", x, x), a @ a.conj().T, 1e-4)
    near(cublas.nrm2(w), numpy.linalg.norm(v), 1e-4)
    near(cublas.asum(w), (abs(v.real) + abs(v.imag)).sum(), 1e-4)
    assert int(cublas.iamax(w)) == int(numpy.argmax(abs(v.real) + abs(v.imag))) + 1
    scaled = w.copy()
    cublas.scal(3.0, scaled)
    cublas.axpy(2.0, w, scaled)
    near(scaled, v * 5, 1e-4)
"""


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_blas(tmp_path, dtype):
    run(tmp_path, NEAR + f"    dtype = {dtype!r}\n" + BLAS)


FOURIER = """
    dtype, real = "fdFD"[kind], "fdfd"[kind]
    a = numbers((4, 6, 9), dtype)
    x = cupy.asarray(a)
    for compute in (
        lambda m, a: m.fft.fft(a),
        lambda m, a: m.fft.ifft(a, n=12, axis=0),
        lambda m, a: m.fft.fft2(a),
        lambda m, a: m.fft.ifftn(a),
        lambda m, a: m.fft.rfft(a.real),
        lambda m, a: m.fft.rfftn(a.real),
        lambda m, a: m.fft.irfft(a),
        lambda m, a: m.fft.irfft2(a, s=(6, 11)),
        lambda m, a: m.convolve(a[0, 0], a[1, 1]),
    ):
        found, expected = compute(cupy, x), compute(numpy, a)
        near(found, expected.astype(found.dtype), 1e-4)
"""


@pytest.mark.parametrize("kind", range(4))
def test_fourier_transforms(tmp_path, kind):
    run(tmp_path, NEAR + f"    kind = {kind}\n" + FOURIER)


def test_statistics_that_need_products(tmp_path):
    run(
        tmp_path,
        NEAR
        + """
    a = numbers((4, 9), "d")
    near(cupy.cov(cupy.asarray(a)), numpy.cov(a), 1e-7)
    near(cupy.corrcoef(cupy.asarray(a)), numpy.corrcoef(a), 1e-7)
""",
    )


def test_calls_while_the_interpreter_exits(tmp_path):
    """Handles are freed then, when Python's functions are gone."""
    text = "import threading\nx = cupy.ones((3, 3))\nthreading.Thread(target=lambda: x @ x).start()\nprint(float((x @ x).sum()))\n"
    assert run(tmp_path, text) == "27.0\n"


RANDOM = """
    import warnings
    warnings.simplefilter("ignore")

    def moments(made, mean, deviation):
        numpy.testing.assert_allclose([float(made.mean()), float(made.std())], [mean, deviation], atol=0.05)

    def draw():
        cupy.random.seed(3)
        return cupy.random.rand(5), cupy.random.randn(4), cupy.random.randint(0, 99, 6)

    for first, second in zip(draw(), draw()):
        assert (first == second).all()
    n = 20001
    uniform = cupy.random.random_sample(n, dtype="f")
    moments(uniform, 0.5, 12**-0.5)
    assert 0 <= float(uniform.min()) and float(uniform.max()) < 1
    moments(cupy.random.normal(2, 3, n) / 3, 2 / 3, 1)
    moments(cupy.random.standard_normal(n, dtype="f"), 0, 1)
    moments(cupy.log(cupy.random.lognormal(1, 0.5, n)), 1, 0.5)
    moments(cupy.random.RandomState(5).poisson(4.0, n) / 4, 1, 0.5)
    assert sorted(cupy.random.permutation(50).tolist()) == list(range(50))
    assert set(cupy.random.randint(3, 9, 1000).tolist()) == set(range(3, 9))
    assert cupy.random.RandomState(1, method=cupy.cuda.curand.CURAND_RNG_PSEUDO_MT19937).rand(3).shape == (3,)
"""


def test_random_numbers(tmp_path):
    try:
        from cupy_backends.cuda.libs import curand  # noqa: F401
    except ImportError:
        pytest.skip("cuRAND is not installed")
    run(tmp_path, RANDOM)


LINEAR = """
    def adjoint(m):
        return m.conj().swapaxes(-1, -2)

    def same(found, expected):
        numpy.testing.assert_allclose(cupy.asnumpy(found), cupy.asnumpy(expected), rtol=tolerance, atol=tolerance)

    tolerance = 2e-3 if dtype in "fF" else 1e-8
    for shape in ((5, 5), (7, 4), (4, 7), (1, 1), (3, 5, 5), (2, 3, 6, 4)):
        a = numbers(shape, dtype)
        x, size = cupy.asarray(a), min(shape[-2:])
        for full in (False, True):
            u, s, v = cupy.linalg.svd(x, full_matrices=full)
            same((u[..., :size] * s[..., None, :].astype(dtype)) @ v[..., :size, :], a)
            same(adjoint(u) @ u, numpy.broadcast_to(numpy.eye(u.shape[-1]), (*shape[:-2], u.shape[-1], u.shape[-1])))
        same(cupy.linalg.svd(x, compute_uv=False), numpy.linalg.svd(a, compute_uv=False))
        for mode in ("reduced", "complete"):
            q, r = cupy.linalg.qr(x, mode)
            same(q @ r, a)
            same(adjoint(q) @ q, numpy.broadcast_to(numpy.eye(q.shape[-1]), (*shape[:-2], q.shape[-1], q.shape[-1])))
        if len(shape) == 2:
            same(cupy.linalg.pinv(x), numpy.linalg.pinv(a))
            same(cupy.linalg.lstsq(x, x[:, 0], rcond=None)[0], numpy.linalg.lstsq(a, a[:, 0], rcond=None)[0])
        if shape[-1] != shape[-2]:
            continue
        hermitian, positive = a + adjoint(a), a @ adjoint(a) + numpy.eye(size, dtype=dtype)
        for triangle in "LU":
            w, v = cupy.linalg.eigh(cupy.asarray(hermitian), triangle)
            same(w, numpy.linalg.eigvalsh(hermitian))
            same(cupy.asarray(hermitian) @ v, v * w[..., None, :].astype(dtype))
        same(cupy.linalg.cholesky(cupy.asarray(positive)), numpy.linalg.cholesky(positive))
        same(cupy.linalg.inv(cupy.asarray(positive)) @ cupy.asarray(positive), numpy.broadcast_to(numpy.eye(size), shape))
        same(x @ cupy.linalg.solve(x, x[..., :1]), a[..., :1])
        same(cupy.linalg.det(x), numpy.linalg.det(a))
        same(cupy.linalg.slogdet(x)[1], numpy.linalg.slogdet(a)[1])

    import cupyx

    with cupyx.errstate(linalg="raise"):
        for fail in (lambda: cupy.linalg.cholesky(-cupy.eye(3)), lambda: cupy.linalg.inv(cupy.zeros((3, 3)))):
            try:
                fail()
            except numpy.linalg.LinAlgError:
                continue
            raise AssertionError("no error")
"""


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_linear_algebra(tmp_path, dtype):
    run(tmp_path, NEAR + f"    dtype = {dtype!r}\n" + LINEAR)


FACTORS = """
    from cupy import cublas
    from cupyx import cusolver, lapack
    from cupyx.scipy.linalg import lu_factor, solve_triangular

    def same(found, expected):
        numpy.testing.assert_allclose(cupy.asnumpy(found), cupy.asnumpy(expected), rtol=tolerance, atol=tolerance)

    tolerance = 2e-3 if dtype in "fF" else 1e-8
    for n in (1, 5, 70):
        a, b, tall, right = (numbers(shape, dtype) for shape in ((n, n), (n, 3), (n + 40, n), (n + 40, 2)))
        positive = a @ a.conj().T + n * numpy.eye(n, dtype=dtype)
        x, p, y = cupy.asarray(a), cupy.asarray(positive), cupy.asarray(b)
        factors, pivots = lu_factor(x)
        order = list(range(n))
        for k, pivot in enumerate(pivots.tolist()):
            order[k], order[pivot] = order[pivot], order[k]
        same((cupy.tril(factors, -1) + cupy.eye(n, dtype=dtype)) @ cupy.triu(factors), a[order])
        q, r = cupy.linalg.qr(cupy.asarray(tall), "complete")
        same(q @ r, tall)
        same(q.conj().T @ q, numpy.eye(n + 40))
        same(p @ lapack.posv(p.copy(), y), b)
        batch = cupy.stack([p, 2 * p])
        same(batch @ lapack.posv(batch, cupy.stack([y, y])), numpy.stack([b, b]))
        same(x @ cusolver.gesv(x, y), b)
        least = numpy.linalg.lstsq(tall, right, rcond=None)[0]
        same(lapack.gels(cupy.asarray(tall), cupy.asarray(right)), least)
        same(cusolver.gels(cupy.asarray(tall), cupy.asarray(right)), least)
        same(lapack.gels(cupy.asarray(tall.T), y), numpy.linalg.lstsq(tall.T, b, rcond=None)[0])
        for lower in (True, False):
            factor = cupy.linalg.cholesky(p)
            same(p @ lapack.potrs(factor if lower else factor.conj().T.copy(), y.copy(), lower), b)
        values = numpy.linalg.svd(tall, compute_uv=False)
        for decompose in (cusolver.gesvdj, cusolver.gesvda):
            u, s, v = decompose(cupy.asarray(tall))
            same((u[:, :n] * s.astype(dtype)) @ v.conj().T[:n], tall)
            same(s, values)
            same(decompose(cupy.asarray(tall), compute_uv=False), values)
        w, v = cusolver.syevj(p)
        same(w, numpy.linalg.eigvalsh(positive))
        same(p @ v, v * w.astype(dtype))
        triangles = cupy.tril(batch)
        same(triangles @ solve_triangular(triangles, cupy.stack([y, y]), lower=True), numpy.stack([b, b]))
        for lower in (True, False) if dtype in "fd" and n > 2 else ():
            band, result = numbers((3, n), dtype), cupy.ones(n, dtype)
            matrix = numpy.diag(band[0 if lower else 2])
            for i in (1, 2):
                stored = numpy.diag(band[i, :-i] if lower else band[2 - i, i:], i)
                matrix += stored + stored.T
            cublas.sbmv(2, 2.0, cupy.asfortranarray(cupy.asarray(band)), y[:, 0].copy(), 3.0, result, lower=lower)
            same(result, 2 * matrix @ b[:, 0] + 3)
"""


@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
def test_factorizations(tmp_path, dtype):
    run(tmp_path, NEAR + f"    dtype = {dtype!r}\n" + FACTORS)


SPARSE = """
    from cupyx import cusparse
    from cupyx.scipy import sparse

    tolerance = 1e-4 if dtype in "fF" else 1e-10
    adjoint = lambda m: m.conj().T

    def holes(shape, dtype):
        made = numbers(shape, dtype)
        return numpy.where(numpy.random.default_rng(shape[0]).random(shape) < 0.3, made, 0).astype(dtype)

    def whole(m):
        return m.toarray() if sparse.issparse(m) else m

    for shape in ((9, 7), (1, 12), (30, 45), (5, 3)):
        a = holes(shape, dtype)
        a[shape[0] // 2] = 0
        b, right = holes(shape, dtype), numbers((shape[1], 4), dtype)
        for kind in ("csr", "csc", "coo"):
            x, y = (sparse.csr_matrix(cupy.asarray(m)).asformat(kind) for m in (a, b))
            for found, expected in (
                (x, a), (x.T, a.T), (x.tocsr(), a), (x.tocsc(), a), (x.tocoo(), a), (x.conj().T.tocsr(), adjoint(a)),
                (x @ cupy.asarray(right), a @ right), (x @ cupy.asarray(right[:, 0]), a @ right[:, 0]),
                (x.T @ cupy.asarray(numpy.asfortranarray(a)), a.T @ a), (cupy.asarray(a.T) @ x, a.T @ a),
                (x + y, a + b), (x - y, a - b), (2 * x + y * 3, 2 * a + 3 * b), (x.multiply(y), a * b), (x * 0 + y, b),
                (x @ y.T, a @ b.T), (x.T @ y, a.T @ b), (x.tocsr()[2:, 1:3] if shape[0] > 2 else x, a[2:, 1:3] if shape[0] > 2 else a),
                (x.sum(0), a.sum(0, keepdims=True)), (abs(x), abs(a)), (x.tocsr()[0], a[:1]),
            ):
                near(whole(found), expected, tolerance)
            assert x.nnz == numpy.count_nonzero(a)
        shuffled = sparse.csr_matrix(cupy.asarray(a)).tocoo()
        order = cupy.asarray(numpy.random.default_rng(1).permutation(shuffled.nnz))
        parts = shuffled.data[order], (shuffled.row[order], shuffled.col[order])
        near(sparse.coo_matrix(parts, shape=shape).tocsr().toarray(), a, tolerance)
        twice = sparse.coo_matrix(tuple(parts), shape=shape)
        twice = sparse.coo_matrix((cupy.tile(twice.data, 2), (cupy.tile(twice.row, 2), cupy.tile(twice.col, 2))), shape=shape)
        near(twice.tocsc().toarray(), 2 * a, tolerance)
        stored = sparse.csr_matrix(cupy.asarray(a))
        stored.data[::2] = 0
        count = int(cupy.count_nonzero(stored.data))
        kept = stored.toarray()
        stored.eliminate_zeros()
        assert stored.nnz == count and bool((stored.toarray() == kept).all())
        if count:  # else CuPy clears the vector itself, whatever its factor
            found = cusparse.spmv(stored, cupy.asarray(right[:, 1]), cupy.ones(shape[0], dtype), 2, 3)
            near(found, 2 * kept.get() @ right[:, 1] + 3, tolerance)
        near(cusparse.spmm(stored, cupy.asfortranarray(cupy.asarray(right)), None, 2), 2 * kept.get() @ right, tolerance)
        for form in ("csr", "csc", "coo"):
            near(cusparse.denseToSparse(cupy.asfortranarray(cupy.asarray(a)), form).toarray(), a, tolerance)

    triangle = holes((6, 6), dtype) + 3 * numpy.eye(6, dtype=dtype)
    right = numbers((6, 2), dtype)
    for lower in (True, False):
        for unit in (True, False):
            for operation, apply in (("N", lambda m: m), ("T", lambda m: m.T), ("H", adjoint)):
                part = numpy.tril(triangle) if lower else numpy.triu(triangle)
                if unit:
                    numpy.fill_diagonal(part, 1)
                matrix = sparse.csr_matrix(cupy.asarray(triangle))
                found = cusparse.spsm(matrix, cupy.asarray(right), 2, lower, unit, operation)
                near(found, numpy.linalg.solve(apply(part), 2 * right), tolerance)

    from cupyx.scipy.sparse import linalg
    system = triangle @ adjoint(triangle) + numpy.eye(6, dtype=dtype)
    found, failed = linalg.cg(sparse.csr_matrix(cupy.asarray(system)), cupy.asarray(right[:, 0]))
    assert failed == 0
    numpy.testing.assert_allclose(system @ found.get(), right[:, 0], rtol=1e-3, atol=1e-3)
"""


@pytest.mark.parametrize("dtype", ["f", "D"])
def test_sparse_matrices(tmp_path, dtype):
    run(tmp_path, NEAR + f"    dtype = {dtype!r}\n" + SPARSE)


SYSTEMS = """
    from cupyx.scipy import sparse
    from cupyx.scipy.interpolate import CubicSpline
    from cupyx.scipy.sparse import linalg

    random = numpy.random.default_rng(7)
    for n in (1, 5, 40, 1200):
        dense = numpy.zeros((n, n))
        for offset in (-2, 0, 1):
            dense += numpy.diag(random.random(max(n - abs(offset), 0)), offset) if abs(offset) < n else 0
        dense = dense.astype(dtype) + 4 * numpy.eye(n, dtype=dtype)
        right = random.random(n).astype(dtype)
        found = linalg.spsolve(sparse.csr_matrix(cupy.asarray(dense)), cupy.asarray(right))
        near(found, numpy.linalg.solve(dense, right), 1e-3 if dtype == "f" else 1e-9)
    places = numpy.linspace(0, 3, 9)
    spline = CubicSpline(cupy.asarray(places), cupy.asarray(places**3))  # which reproduces cubic polynomials
    near(spline(cupy.asarray(places + 0.1)[:-1]), (places + 0.1)[:-1] ** 3, 1e-9)
"""


@pytest.mark.parametrize("dtype", ["f", "d", "D"])
def test_sparse_systems(tmp_path, dtype):
    pytest.importorskip("scipy")
    run(tmp_path, NEAR + f"    dtype = {dtype!r}\n" + SYSTEMS)


INCOMPLETE = """
    from cupyx.scipy import sparse
    from cupyx.scipy.sparse.linalg import spilu

    a = numpy.where(numpy.random.default_rng(2).random((25, 25)) < 0.3, numbers((25, 25), dtype), 0) + 6 * numpy.eye(25, dtype=dtype)
    right, factors, stored = numbers((25, 2), dtype), a.copy(), a != 0
    for i in range(1, 25):
        for k in range(i):
            if stored[i, k]:
                factors[i, k] /= factors[k, k]
                rest = stored[i] & stored[k] & (numpy.arange(25) > k)
                factors[i, rest] -= factors[i, k] * factors[k, rest]
    found = spilu(sparse.csr_matrix(cupy.asarray(a)), fill_factor=1).solve(cupy.asarray(right)).get()
    unit = numpy.tril(factors, -1) + numpy.eye(25, dtype=dtype)
    numpy.testing.assert_allclose(unit @ numpy.triu(factors) @ found, right, rtol=1e-3, atol=1e-3)
    a[3, 3] = 0
    try:
        spilu(sparse.csr_matrix(cupy.asarray(a)), fill_factor=1)
    except ValueError as error:
        assert "a(3,3) is missing" in str(error), error
    else:
        raise AssertionError("no error")
"""


@pytest.mark.parametrize("dtype", ["f", "D"])
def test_incomplete_factorization(tmp_path, dtype):
    pytest.importorskip("scipy")
    run(tmp_path, NEAR + f"    dtype = {dtype!r}\n" + INCOMPLETE)


REFUSED = """
    from cupy_backends.cuda.libs import cusolver
    handle = cusolver.create()
    try:
        cusolver.sgesvdjBatched_bufferSize(0, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1)
        cusolver.ssytrf_bufferSize(handle, 1, 0, 1)
    except cusolver.CUSOLVERError as error:
        print(error)
    cusolver.destroy(handle)
"""


def test_functions_that_are_not_served_are_refused(tmp_path):
    assert "NOT_SUPPORTED" in run(tmp_path, REFUSED)


BEYOND = """
import cupy
square = cupy.RawKernel('extern "C" __global__ void square(float* x) { x[threadIdx.x] *= x[threadIdx.x]; }', "square")
square((1,), (128,), (cupy.zeros(COUNT, cupy.float32),))
cupy.cuda.Device().synchronize()
"""


@pytest.mark.parametrize("count", [128, 100])
def test_an_access_beyond_an_array_is_found(tmp_path, count):
    """CuPy's pool would have room for 128 elements where the array has 100."""
    program = tmp_path / "program.py"
    program.write_text(BEYOND.replace("COUNT", str(count)))
    command = ["margay", "exec", "--check", "memory", "--", sys.executable, str(program)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (ran.returncode == 0) == (count == 128), ran.stderr
    assert ("0 bytes after the end of the allocation of 400 bytes" in ran.stderr) == (count == 100), ran.stderr
