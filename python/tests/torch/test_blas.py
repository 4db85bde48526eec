"""cuBLAS and cuBLASLt as a program calls them, against products that are computed here."""

import ctypes
from pathlib import Path

import pytest
import torch

FLOAT, HALF, INT8, INT32 = 0, 2, 3, 10  # `cudaDataType_t`
COMPUTE_FLOAT, COMPUTE_INT32 = 68, 72  # `cublasComputeType_t`
TRANSA, TRANSB, EPILOGUE, BIAS = 3, 4, 7, 8
ORDER, BATCH, STRIDE = 1, 5, 6
RELU_BIAS, GELU, DRELU = 2 | 4, 32, 8 | 128
TYPES = {torch.float32: FLOAT, torch.float16: HALF, torch.int8: INT8, torch.int32: INT32}


@pytest.fixture(scope="module")
def lt():
    torch.cuda.current_blas_handle()
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib/libtorch_cuda.so"))


def created(function, *arguments):
    made = ctypes.c_void_p()
    assert function(ctypes.byref(made), *arguments) == 0
    return made


def layout(lt, tensor):
    """A layout by row of a matrix, or of a batch of them."""
    rows, columns = tensor.shape[-2:]
    made = created(
        lt.cublasLtMatrixLayoutCreate, TYPES[tensor.dtype], ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(columns)
    )
    settings = [(ORDER, ctypes.c_int32(1))]
    if tensor.dim() == 3:
        settings += [(BATCH, ctypes.c_int32(tensor.size(0))), (STRIDE, ctypes.c_int64(rows * columns))]
    for number, value in settings:
        assert lt.cublasLtMatrixLayoutSetAttribute(made, number, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value))) == 0
    return made


def multiply(lt, a, b, d, compute=COMPUTE_FLOAT, scale=FLOAT, alpha=1.0, beta=0.0, **attributes):
    """The status of `d = epilogue(alpha op(a) op(b) + beta d)`."""
    handle = created(lt.cublasLtCreate)
    product = created(lt.cublasLtMatmulDescCreate, compute, scale)
    for name, value in attributes.items():
        value = ctypes.c_void_p(value.data_ptr()) if name == "BIAS" else ctypes.c_int32(value)
        size = ctypes.c_size_t(ctypes.sizeof(value))
        assert lt.cublasLtMatmulDescSetAttribute(product, globals()[name], ctypes.byref(value), size) == 0
    kind = ctypes.c_int32 if scale == INT32 else ctypes.c_float
    of = [layout(lt, t) for t in (a, b, d)]
    at = [ctypes.c_void_p(t.data_ptr()) for t in (a, b, d)]
    status = lt.cublasLtMatmul(
        handle, product, ctypes.byref(kind(alpha)), at[0], of[0], at[1], of[1], ctypes.byref(kind(beta)),
        at[2], of[2], at[2], of[2], None, None, ctypes.c_size_t(0), None,
    )  # fmt: skip
    assert [lt.cublasLtMatrixLayoutDestroy(x) for x in of] == [0, 0, 0]
    assert lt.cublasLtMatmulDescDestroy(product) == lt.cublasLtDestroy(handle) == 0
    return status


def test_products_of_bytes_are_exact(lt):
    a = torch.randint(-128, 128, (7, 2000), dtype=torch.int8)
    b = torch.randint(-128, 128, (5, 2000), dtype=torch.int8)
    expected = a.int() @ b.int().t()
    d = torch.zeros(7, 5, dtype=torch.int32, device="cuda")
    assert multiply(lt, a.cuda(), b.cuda(), d, COMPUTE_INT32, INT32, 1, 0, TRANSB=1) == 0
    assert torch.equal(d.cpu(), expected)
    # With a scale in floating point, the result is rounded and saturates.
    small = torch.zeros(7, 5, dtype=torch.int8, device="cuda")
    assert multiply(lt, a.cuda(), b.cuda(), small, COMPUTE_INT32, FLOAT, 2.0**-10, 0, TRANSB=1) == 0
    assert torch.equal(small.cpu(), (expected.double() * 2.0**-10).round().clamp(-128, 127).to(torch.int8))


def test_batches_are_added_to_the_result(lt):
    a, b, c = torch.randn(3, 4, 8), torch.randn(3, 8, 6), torch.randn(3, 4, 6)
    d = c.cuda()
    assert multiply(lt, a.cuda(), b.cuda(), d, alpha=0.5, beta=2.0) == 0
    torch.testing.assert_close(d.cpu(), 0.5 * (a @ b) + 2 * c)


def test_epilogues(lt):
    a, b, bias = torch.randn(8, 4), torch.randn(8, 6), torch.randn(4)
    d = torch.empty(4, 6, device="cuda")
    assert multiply(lt, a.cuda(), b.cuda(), d, TRANSA=1, EPILOGUE=RELU_BIAS, BIAS=bias.cuda()) == 0
    torch.testing.assert_close(d.cpu(), (a.t() @ b + bias[:, None]).relu())
    half = torch.empty(4, 6, device="cuda", dtype=torch.float16)
    assert multiply(lt, a.half().cuda(), b.half().cuda(), half, TRANSA=1, EPILOGUE=GELU) == 0
    expected = torch.nn.functional.gelu(a.half().float().t() @ b.half().float(), approximate="tanh")
    torch.testing.assert_close(half.cpu(), expected.half(), rtol=2e-3, atol=2e-3)


def test_what_is_not_served_is_refused(lt):
    a = torch.randn(4, 4, device="cuda")
    assert multiply(lt, a, a, torch.empty_like(a), EPILOGUE=DRELU) == 15
    assert multiply(lt, a, a, torch.empty(5, 4, device="cuda")) == 7
    lt.cublasLtGetStatusString.restype = ctypes.c_char_p
    assert lt.cublasLtGetStatusString(15)


def test_cublas_multiplies_with_the_handle_of_torch(lt):
    handle = ctypes.c_void_p(torch.cuda.current_blas_handle())
    a, b = torch.randn(5, 7), torch.randn(7, 3)
    on_device, out = [b.cuda(), a.cuda()], torch.ones(5, 3, device="cuda")
    at = [ctypes.c_void_p(t.data_ptr()) for t in (*on_device, out)]
    two, one = ctypes.c_float(2), ctypes.c_float(1)
    # By column, these are the transposed matrices.
    assert lt.cublasSgemm_v2(handle, 0, 0, 3, 5, 7, ctypes.byref(two), at[0], 3, at[1], 7, ctypes.byref(one), at[2], 3) == 0
    torch.testing.assert_close(out.cpu(), 2 * (a @ b) + 1)
