"""Kernels on Python's arrays: results, conversions of arguments, faults, checks."""

import array
import ctypes
import pickle
import signal
import struct
import threading
import time

import margay
import pytest
from conftest import HEADER, SAXPY

np = pytest.importorskip("numpy")


def kernel(params, body, registers=".reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .pred %p<9>;", name="k"):
    return margay.Module(HEADER + f".visible .entry {name}({params}) {{ {registers} {body} ret; }}").kernel(name)


def echo(type, move="b32"):
    """A kernel that stores its parameter: its bytes as it received them."""
    size = int(move[1:])
    register = {8: ".reg .b16 %v;", 16: ".reg .b16 %v;", 32: ".reg .b32 %v;", 64: ".reg .b64 %v;"}[size]
    return kernel(
        f".param .{type} value, .param .u64 out",
        f"ld.param.{move} %v, [value]; ld.param.u64 %d1, [out]; st.global.{move} [%d1], %v;",
        register + " .reg .b64 %d<2>;",
    )


def stored(type, move, value, dtype):
    out = np.zeros(1, dtype)
    echo(type, move)[1, 1](value, out)
    return out[0]


@pytest.mark.parametrize("engine", ["tiered", "simd", "reference"])
def test_numpy_arrays_are_used_in_place(saxpy, engine):
    n = 1000
    x, y = np.arange(n, dtype=np.float32), np.full(n, 3, np.float32)
    launch = margay.Module(saxpy, engine=engine).kernel("saxpy")[8, 128](n, 2.0, x, y)
    # Integers this small are exact in single precision.
    assert np.array_equal(y, 2 * np.arange(n) + 3)
    assert launch.findings == () and launch.time > 0


def test_memory_of_all_kinds_is_used_in_place(saxpy):
    run = margay.Module(saxpy).kernel()[1, 4]
    x = np.arange(4, dtype=np.float32)

    class Device:
        """What CuPy's and torch's arrays say of themselves."""

        def __init__(self, of):
            self.of = of

        @property
        def __cuda_array_interface__(self):
            return {**self.of.__array_interface__, "version": 3}

    class Capsule:
        """An array with DLPack alone."""

        def __init__(self, of):
            self.of = of

        def __dlpack__(self, **arguments):
            return self.of.__dlpack__(**arguments)

        def __dlpack_device__(self):
            return self.of.__dlpack_device__()

    for make in (
        lambda: array.array("f", [1] * 4),
        lambda: bytearray(struct.pack("4f", 1, 1, 1, 1)),
        lambda: memoryview(bytearray(struct.pack("4f", 1, 1, 1, 1))),
        lambda: (ctypes.c_float * 4)(1, 1, 1, 1),
        lambda: Device(np.ones(4, np.float32)),
        lambda: Capsule(np.ones(4, np.float32)),
    ):
        y = make()
        run(4, 2.0, x, y)
        result = np.asarray(getattr(y, "of", y))
        assert np.array_equal(result.view(np.float32) if result.dtype == np.uint8 else result, [1, 3, 5, 7])


def test_arguments_may_be_the_same_array_or_overlap(saxpy):
    run = margay.Module(saxpy).kernel()[1, 8]
    x = np.arange(8, dtype=np.float32)
    run(8, 1.0, x, x)
    assert np.array_equal(x, 2 * np.arange(8))
    x = np.arange(9, dtype=np.float32)
    margay.Module(saxpy).kernel()[1, 1](1, 1.0, x[8:], x[:8])
    assert x[0] == 8


def test_numbers_are_converted_by_the_type():
    assert stored("u8", "b8", 255, np.uint8) == 255
    assert stored("s16", "b16", -2, np.int16) == -2
    assert stored("u32", "b32", np.uint8(7), np.uint32) == 7
    assert stored("b32", "b32", -1, np.uint32) == 0xFFFFFFFF
    assert stored("b32", "b32", 1.0, np.float32) == 1.0
    assert stored("s64", "b64", -(2**63), np.int64) == -(2**63)
    assert stored("f32", "b32", 1, np.float32) == 1.0
    assert stored("f64", "b64", 0.1, np.float64) == 0.1
    assert stored("f16", "b16", 0.5, np.float16) == 0.5
    assert stored("u32", "b32", True, np.uint32) == 1
    assert stored("u32", "b32", ctypes.c_uint(9), np.uint32) == 9
    assert stored("u64", "b64", None, np.uint64) == 0

    class Index:
        def __index__(self):
            return 11

    assert stored("u32", "b32", Index(), np.uint32) == 11
    assert stored("f32", "b32", Index(), np.float32) == 11.0


@pytest.mark.parametrize(
    ("type", "move", "value"),
    [("u8", "b8", 256), ("u8", "b8", -1), ("s8", "b8", 128), ("u32", "b32", 2**32), ("s32", "b32", -(2**31) - 1), ("b16", "b16", 65536)],
)
def test_numbers_that_do_not_fit_name_the_parameter(type, move, value):
    with pytest.raises(OverflowError, match=f"argument 0 of `k` .*`value: {type}`.*{value}"):
        stored(type, move, value, np.uint64)


def test_arguments_that_cannot_be_name_the_parameter(saxpy):
    k = margay.Module(saxpy).kernel()
    x = np.zeros(8, np.float32)
    for arguments, error, words in [
        ((8, 1.0, x), TypeError, "takes 4 arguments, found 3"),
        ((8.5, 1.0, x, x), TypeError, "`n: u32`.*float is not an integer"),
        ((8, "one", x, x), TypeError, "`a: f32`.*str is not a number"),
        ((8, 1.0, object(), x), TypeError, "`x: u64`.*object is not an array"),
        ((8, 1.0, x[::2], x), ValueError, "`x: u64`.*ascontiguousarray"),
        ((8, 1.0, np.array([None]), x), TypeError, "`x: u64`.*Python objects"),
        ((x, 1.0, x, x), TypeError, "`n: u32`.*8 bytes, but the parameter has 4"),
            ((8, x, x, x), TypeError, "`a: f32`.*8 bytes"),
            ((None, 1.0, x, x), TypeError, "`n: u32`.*not a pointer"),
    ]:
        with pytest.raises(error, match=words):
            k[1, 8](*arguments)


def test_addresses_that_nobody_can_reach_are_refused(saxpy):
    class Far:
        __cuda_array_interface__ = {"shape": (8,), "typestr": "<f4", "data": (0x7000_0000_0000 - 4096, False), "version": 3}

    x = np.zeros(8, np.float32)
    with pytest.raises(ValueError, match="not accessible memory of this process"):
        margay.Module(saxpy).kernel()[1, 8](8, 1.0, Far(), x)


def test_structs_travel_as_bytes():
    k = kernel(
        ".param .align 8 .b8 s[16], .param .u64 out",
        "ld.param.u32 %r1, [s]; ld.param.u64 %d1, [s+8]; cvt.u64.u32 %d2, %r1; add.u64 %d1, %d1, %d2;"
        "ld.param.u64 %d3, [out]; st.global.u64 [%d3], %d1;",
    )
    out = np.zeros(1, np.uint64)

    class S(ctypes.Structure):
        _fields_ = [("small", ctypes.c_uint32), ("large", ctypes.c_uint64)]

    for s in (struct.pack("IxxxxQ", 3, 2**40), S(3, 2**40), np.array([(3, 0, 2**40)], "u4,u4,u8")[0]):
        out[:] = 0
        k[1, 1](s, out)
        assert out[0] == 2**40 + 3
    with pytest.raises(ValueError, match="found 15 bytes for a parameter of 16 bytes"):
        k[1, 1](bytes(15), out)
    with pytest.raises(TypeError, match="16 bytes by value"):
        k[1, 1](3, out)


def test_pointers_inside_of_structs_are_lent():
    k = kernel(".param .align 8 .b8 s[8]", "ld.param.u64 %d1, [s]; mov.b32 %r1, 7; st.global.u32 [%d1], %r1;")
    x = np.zeros(1, np.uint32)
    with margay.lend(x) as address:
        k[1, 1](struct.pack("Q", address))
    assert x[0] == 7
    with pytest.raises(margay.Fault):
        k[1, 1](struct.pack("Q", address))


def line_of(text, words):
    return 1 + next(i for i, line in enumerate(text.split("\n")) if words in line)


def test_an_access_beside_an_array_is_a_fault(saxpy):
    x, y = np.zeros(8, np.float32), np.zeros(9, np.float32)
    with pytest.raises(margay.Fault) as caught:
        margay.Module(saxpy, name="k.ptx").kernel()[3, 4](9, 1.0, x, y)
    fault = caught.value
    # Element 8 is thread 0 of block 2 with four threads a block.
    assert (fault.kind, fault.thread, fault.block) == ("out-of-bounds", (0, 0, 0), (2, 0, 0))
    line = line_of(saxpy, "ld.global.f32 %u")
    assert (fault.place.file, fault.place.line, fault.place.function) == ("k.ptx", line, "saxpy")
    assert "read of 4 bytes" in fault.title and fault.title in str(fault)
    assert any("`x` of 32 bytes" in note for note in fault.notes)
    again = pickle.loads(pickle.dumps(fault))
    assert (str(again), again.kind, again.place) == (str(fault), fault.kind, fault.place)
    # The module and the device are as good as before.
    margay.Module(saxpy).kernel()[1, 8](8, 1.0, x, x)


def test_read_only_arrays_are_not_written(saxpy):
    x = np.zeros(4, np.float32)
    frozen = np.zeros(4, np.float32)
    frozen.flags.writeable = False
    k = margay.Module(saxpy).kernel()
    k[1, 4](4, 1.0, frozen, x)
    for target in (frozen, bytes(16)):
        with pytest.raises(margay.Fault) as caught:
            k[1, 4](4, 1.0, x, target)
        assert caught.value.kind == "read-only"
    assert not frozen.any()


RACE = HEADER + """
.shared .align 4 .b32 tile[64];
.visible .entry reverse(.param .u64 out) {
    .reg .b32 %t, %a, %v;
    .reg .b64 %p, %o;
    mov.u32 %t, %tid.x;
    shl.b32 %a, %t, 2;
    mov.u32 %v, tile;
    add.u32 %v, %v, %a;
    st.shared.u32 [%v], %t;
    BARRIER
    sub.u32 %a, 252, %a;
    mov.u32 %v, tile;
    add.u32 %v, %v, %a;
    ld.shared.u32 %v, [%v];
    ld.param.u64 %p, [out];
    mul.wide.u32 %o, %t, 4;
    add.u64 %p, %p, %o;
    st.global.u32 [%p], %v;
    ret;
}
"""


def test_checks_find_a_missing_barrier():
    out = np.zeros(64, np.uint32)
    wrong = margay.Module(RACE.replace("BARRIER", "")).kernel()
    (finding, *_) = wrong[1, 64](out, checks=("memory", "races")).findings
    assert finding.kind == "race" and len(finding.threads) == 2
    assert {party.place.function for party in finding.threads} == {"reverse"}
    assert finding.title in str(finding)
    right = margay.Module(RACE.replace("BARRIER", "bar.sync 0;")).kernel()
    assert right[1, 64](out, checks="all").findings == ()
    assert np.array_equal(out, np.arange(64)[::-1])
    with pytest.raises(ValueError, match="`frogs`"):
        right[1, 64](out, checks="frogs")


def test_dynamic_shared_memory_and_its_limit():
    k = margay.Module(
        HEADER
        + ".extern .shared .align 4 .b8 room[];\n"
        + ".visible .entry k(.param .u64 out, .param .u32 at) { .reg .b32 %r<3>; .reg .b64 %d; mov.u32 %r1, room;"
        + "ld.param.u32 %r2, [at]; add.u32 %r1, %r1, %r2; mov.u32 %r2, 5; st.shared.u32 [%r1], %r2;"
        + "ld.shared.u32 %r2, [%r1]; ld.param.u64 %d, [out]; st.global.u32 [%d], %r2; ret; }",
        device=margay.device("t4"),
    ).kernel()
    out = np.zeros(1, np.uint32)
    k[1, 1](out, 1020, shared=1024)
    assert out[0] == 5
    with pytest.raises(margay.Fault):
        k[1, 1](out, 1024, shared=1024)
    # CUDA C++ Programming Guide, technical specifications: 64 KiB for a block of compute capability 7.5.
    k[1, 1](out, 0, shared=65536)
    with pytest.raises(ValueError, match="limit of 65536 per CTA"):
        k[1, 1](out, 0, shared=65540)


def test_launches_that_no_device_takes(saxpy):
    k = margay.Module(saxpy).kernel()
    x = np.zeros(1, np.float32)
    for grid, block, error in [(0, 1, ValueError), (1, 1025, ValueError), (-1, 1, ValueError), ((1, 1, 1, 1), 1, ValueError), (1.5, 1, AttributeError)]:
        with pytest.raises((error, TypeError)):
            k[grid, block](1, 1.0, x, x)
    with pytest.raises(TypeError, match="grid, block"):
        k[1]
    with pytest.raises(LookupError, match="`saxpi`.*`saxpy`"):
        margay.Module(saxpy).kernel("saxpi")
    with pytest.raises(ValueError, match="`warp9`"):
        margay.Module(saxpy, engine="warp9")
    with pytest.raises(ValueError, match="`rtx1` is not a device"):
        margay.device("rtx1")


def test_variables_of_a_module():
    text = ".global .align 4 .b32 total = 5;\n.visible .entry k() { .reg .b32 %r; ld.global.u32 %r, [total]; add.u32 %r, %r, 1; st.global.u32 [total], %r; ret; }"
    module = margay.Module(HEADER + text)
    assert module.read("total") == struct.pack("I", 5)
    module.write("total", struct.pack("I", 40))
    module.kernel()[1, 1]()
    assert module.read("total") == struct.pack("I", 41)
    with pytest.raises(ValueError, match="4 bytes, found 5"):
        module.write("total", bytes(5))
    with pytest.raises(LookupError, match="nothing"):
        module.read("nothing")


def test_several_texts_are_linked():
    lib = HEADER + ".visible .func (.reg .b32 r) seven() { mov.b32 r, 7; ret; }"
    use = HEADER + ".extern .func (.reg .b32 r) seven();\n.visible .entry k(.param .u64 out) { .reg .b32 %r; .reg .b64 %d; call (%r), seven; ld.param.u64 %d, [out]; st.global.u32 [%d], %r; ret; }"
    out = np.zeros(1, np.uint32)
    margay.Module([use, lib]).kernel("k")[1, 1](out)
    assert out[0] == 7


SPIN = HEADER + ".visible .entry spin(.param .u64 at) { .reg .b32 %r; .reg .b64 %d; .reg .pred %p; ld.param.u64 %d, [at]; L: add.u32 %r, %r, 1; st.volatile.global.u32 [%d], %r; setp.ne.u32 %p, %r, 0xffffffff; @%p bra L; bra.uni L; ret; }"


@pytest.fixture
def interruptible():
    """Ctrl-C raises, also where this process was started in the background with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_a_launch(interruptible):
    k = margay.Module(SPIN).kernel()
    x = np.zeros(1, np.uint32)
    main = threading.get_ident()
    timer = threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        k[1, 1](x)
    timer.join()


def test_other_threads_run_while_a_kernel_does(interruptible):
    k = margay.Module(SPIN).kernel()
    x = np.zeros(1, np.uint32)
    seen, done = [], threading.Event()

    def watch():
        # It sees what the kernel writes while the kernel runs: this thread was not held up.
        while not done.is_set() and len(seen) < 3:
            if x[0] and (not seen or x[0] != seen[-1]):
                seen.append(int(x[0]))
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    main = threading.get_ident()
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            k[1, 1](x)
    finally:
        done.set()
        watcher.join()
    assert len(seen) == 3


def test_a_short_launch_does_not_wait_for_a_long_one(saxpy, interruptible):
    long, short = margay.Module(SPIN).kernel(), margay.Module(saxpy).kernel()
    spun, y = np.zeros(1, np.uint32), np.ones(4, np.float32)
    ended, main = threading.Event(), threading.get_ident()

    def work():
        try:
            while not spun[0]:
                time.sleep(0.01)
            short[1, 4](4, 1.0, y, y)
            ended.set()
        finally:
            signal.pthread_kill(main, signal.SIGINT)

    worker = threading.Thread(target=work)
    worker.start()
    # It runs until the short one has ended.
    with pytest.raises(KeyboardInterrupt):
        long[1, 1](spun)
    worker.join()
    assert ended.is_set() and y.tolist() == [2] * 4


def test_threads_launch_side_by_side(saxpy):
    k = margay.Module(saxpy).kernel()
    shared = np.arange(256, dtype=np.float32)
    results = [np.zeros(256, np.float32) for _ in range(8)]

    def work(result):
        for _ in range(20):
            k[2, 128](256, 1.0, shared, result)

    threads = [threading.Thread(target=work, args=(r,)) for r in results]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for result in results:
        assert np.array_equal(result, 20 * np.arange(256))


def test_what_kernels_print_appears_where_python_prints(capsys):
    text = HEADER + """
.extern .func (.param .b32 status) vprintf(.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 words[7] = {104, 101, 108, 108, 111, 10, 0}; // "hello\\n"
.visible .entry k() {
    .reg .b64 %a; .reg .b32 %r;
    cvta.global.u64 %a, words;
    { .param .b64 format; .param .b64 arguments; .param .b32 status;
      st.param.b64 [format], %a; mov.b64 %a, 0; st.param.b64 [arguments], %a;
      call (status), vprintf, (format, arguments); ld.param.b32 %r, [status]; }
    ret;
}
"""
    margay.Module(text).kernel()[1, 1]()
    assert capsys.readouterr().out == "hello\n"


def test_modules_and_kernels_travel_between_processes(saxpy):
    k = pickle.loads(pickle.dumps(margay.Module(saxpy, device=margay.device("h100")).kernel("saxpy")))
    x = np.ones(4, np.float32)
    k[1, 4](4, 1.0, x, x)
    assert x.tolist() == [2] * 4 and k.module.device.capability == (9, 0)


def test_a_fork_makes_a_device_of_its_own(python):
    assert python(
        "import os, sys, margay, numpy as np\n"
        f"k = margay.Module({SAXPY!r}).kernel()\n"
        "x = np.ones(4, np.float32)\n"
        "k[1, 4](4, 1.0, x, x)\n"
        "child = os.fork()\n"
        "k[1, 4](4, 1.0, x, x)\n"
        "assert x.tolist() == [4] * 4\n"
        "if child: sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "os._exit(0)\n"
    ) == ""
