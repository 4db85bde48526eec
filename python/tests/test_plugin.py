"""`pytest --margay`: what it does to tests, in a pytest of its own."""

import pytest
from conftest import HEADER

pytestmark = pytest.mark.skipif(
    not hasattr(pytest, "Pytester"), reason="pytest's own plugin for testing plugins is missing"
)

# A launch through the driver, as every CUDA library makes it.
DRIVER = f'''
import ctypes

HEADER = {HEADER!r}


def launch(body, threads=1, shared=""):
    """Runs a kernel of one block over 64 words; the code of the synchronization behind it."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    memory = ctypes.c_uint64()
    assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0 and cuda.cuCtxSetCurrent(context) == 0
    text = HEADER + shared + (
        ".visible .entry k(.param .u64 out) {{ .reg .b32 %r<9>; .reg .b64 %d<9>; ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x;"
        "mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d1, %d2; " + body + " ret; }}"
    )
    assert cuda.cuModuleLoadData(ctypes.byref(module), text.encode() + b"\\0") == 0
    assert cuda.cuModuleGetFunction(ctypes.byref(function), module, b"k") == 0
    assert cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(256)) == 0
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
    assert cuda.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, None, arguments, None) == 0
    return cuda


FAULT = "mov.b64 %d3, 64; st.global.u32 [%d3], %r1;"
RIGHT = "st.global.u32 [%d2], %r1;"
RACE = "mov.b32 %r2, 5; st.global.u32 [%d1], %r1;"
'''


@pytest.fixture
def suite(pytester, monkeypatch):
    # The outer pytest may run under the plugin or under xdist itself.
    for variable in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID", "PYTEST_CURRENT_TEST"):
        monkeypatch.delenv(variable, raising=False)

    def run(text, *options):
        pytester.makepyfile(driver=DRIVER)
        pytester.makepyfile("from driver import *\nimport pytest\n\n" + text)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)

    return run


THREE = """
def test_right():
    assert launch(RIGHT).cuCtxSynchronize() == 0

def test_fault_that_is_noticed():
    assert launch(FAULT).cuCtxSynchronize() == 0

def test_fault_that_nobody_asks_about():
    launch(FAULT)

def test_right_afterwards():
    assert launch(RIGHT).cuCtxSynchronize() == 0
"""


def test_a_fault_is_the_fault_of_one_test(suite):
    result = suite(THREE, "--margay", "--margay-device=t4")
    result.assert_outcomes(passed=2, failed=2)
    text = result.stdout.str()
    assert text.count("- margay: fault -") == 2 and "write of 4 bytes" in text
    result.stdout.fnmatch_lines(["margay: 4 tests on t4, 2 faults"])


def test_workers_of_xdist_count_together(suite):
    pytest.importorskip("xdist")
    result = suite(THREE, "--margay", "-n", "2")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["margay: 4 tests on its own device, 2 faults"])


def test_kernels_that_misbehave_fail_their_test(suite):
    text = """
def test_race():
    assert launch(RACE, threads=64).cuCtxSynchronize() == 0

def test_right():
    assert launch(RIGHT, threads=64).cuCtxSynchronize() == 0
"""
    suite(text, "--margay").assert_outcomes(passed=2)
    result = suite(text, "--margay-check=races,memory")
    result.assert_outcomes(passed=1, failed=1)
    assert "margay: finding" in result.stdout.str()
    result.stdout.fnmatch_lines(["margay: 2 tests on its own device, 0 faults, * finding* of races,memory"])


def test_gpu_only_is_skipped_under_margay_and_no_one_else(suite):
    text = "@pytest.mark.gpu_only\ndef test_tensor_cores():\n    pass\n"
    suite(text, "--margay", "--strict-markers").assert_outcomes(skipped=1)
    suite(text, "--strict-markers").assert_outcomes(passed=1)


def test_the_fixture_is_the_device_that_was_asked_for(suite):
    text = "def test_device(margay_device):\n    assert margay_device.capability == CAPABILITY\n"
    suite(text.replace("CAPABILITY", "(9, 0)"), "--margay", "--margay-device=h100").assert_outcomes(passed=1)
    suite(text.replace("CAPABILITY", "(8, 9)")).assert_outcomes(passed=1)


def test_the_configuration_can_say_it(suite, pytester):
    pytester.makeini("[pytest]\nmargay = true\n")
    suite(THREE).assert_outcomes(passed=2, failed=2)


def test_options_and_output_survive_the_restart(suite):
    result = suite("def test_words():\n    print('heard')\n    assert False\n", "--margay", "-k", "words and not others")
    result.assert_outcomes(failed=1)
    assert result.stdout.str().count("test session starts") == 1
    result.stdout.fnmatch_lines(["heard"])


def test_without_it_nothing_happens(suite):
    result = suite("def test_nothing():\n    import margay\n    assert not margay.is_enabled()\n")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("margay:*")
