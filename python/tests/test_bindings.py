"""NVIDIA's Python bindings of the runtime, which bring one of their own, run on margay's."""

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")

PROGRAM = """
    from cuda.bindings import runtime

    def ok(result):
        assert result[0] == runtime.cudaError_t.cudaSuccess, result
        return result[1] if len(result) == 2 else result[1:]

    assert ok(runtime.cudaGetDeviceCount()) == 1
    assert ok(runtime.cudaGetDeviceProperties(0)).major == 9
    kind = runtime.cudaMemcpyKind
    there, sent, back = ok(runtime.cudaMalloc(64)), bytearray(range(64)), bytearray(64)
    at = lambda array: (__import__("ctypes").c_char * 64).from_buffer(array)
    address = lambda array: __import__("ctypes").addressof(at(array))
    stream = ok(runtime.cudaStreamCreate())
    ok(runtime.cudaMemcpyAsync(there, address(sent), 64, kind.cudaMemcpyHostToDevice, stream))
    ok(runtime.cudaMemcpyAsync(address(back), there, 64, kind.cudaMemcpyDeviceToHost, stream))
    ok(runtime.cudaStreamSynchronize(stream))
    assert back == sent
    assert runtime.cudaMalloc(1 << 60)[0] == runtime.cudaError_t.cudaErrorMemoryAllocation
    assert runtime.cudaGetLastError()[0] == runtime.cudaError_t.cudaErrorMemoryAllocation
    assert runtime.cudaGetLastError()[0] == runtime.cudaError_t.cudaSuccess
    ok(runtime.cudaFree(there))
    print("right")
"""


@pytest.mark.parametrize("way", ["exec", "enable"])
@pytest.mark.parametrize("threads", ["0", "1"], ids=["legacy", "per-thread"])
def test_runtime_bindings(tmp_path, way, threads):
    """The default stream of the program, or one per thread (`CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM`)."""
    program = tmp_path / "program.py"
    begin = "import margay\nmargay.enable()\n" if way == "enable" else ""
    program.write_text(begin + textwrap.dedent(PROGRAM))
    start = ["margay", "exec", "--"] if way == "exec" else []
    environment = {**os.environ, "MARGAY_DEVICE": "h100", "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM": threads}
    ran = subprocess.run([*start, sys.executable, str(program)], check=False, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0 and ran.stdout == "right\n" and ran.stderr == "", ran.stdout + ran.stderr
