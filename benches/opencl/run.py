#!/usr/bin/env python3
"""Runs one kernel of kernels.cl on an OpenCL platform: through the ICD loader and ctypes, nothing else is needed.

usage: run.py PLATFORM KERNEL GRID BLOCK ROUNDS ARG...       prints JSON: build_ns, kernel_ns_min, kernel_ns_median
       run.py --list                                          prints the names of the platforms that have a CPU
An ARG is a number of 32 bits (2.0 is a float) or a file IN.npy[:OUT.npy]; OUT gets the buffer as it is after the first launch.
A launch's time is that of its event from start to end, without what the queue costs.
"""
import ctypes, ctypes.util, json, os, sys, time
HERE = os.path.dirname(os.path.abspath(__file__))
CPU, PLATFORM_NAME, PROFILING, START, END, BUILD_LOG, COPY = 2, 0x0902, 2, 0x1282, 0x1283, 0x1183, 1 | 32
P, U64 = ctypes.c_void_p, ctypes.c_uint64


class Failed(Exception):
    pass


class OpenCL:
    """The calls that are used, with their error codes turned into exceptions."""

    def __init__(self):
        name = ctypes.util.find_library("OpenCL") or "libOpenCL.so.1"
        try:
            self.library = ctypes.CDLL(name)
        except OSError as why:
            raise Failed(str(why))

    def __call__(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise Failed(f"{name}: OpenCL error {code}")

    def make(self, name, *arguments):
        """A call that returns an object, and its error through a last argument."""
        f, code = getattr(self.library, name), ctypes.c_int32()
        f.restype = P
        made = f(*arguments, ctypes.byref(code))
        if code.value:
            raise Failed(f"{name}: OpenCL error {code.value}")
        return P(made)

    def cpus(self):
        """Name of a platform and its CPU device."""
        count = ctypes.c_uint32()
        if self.library.clGetPlatformIDs(0, None, ctypes.byref(count)):
            return
        platforms = (P * count.value)()
        self("clGetPlatformIDs", count, platforms, None)
        for platform in map(P, platforms):
            text, device = ctypes.create_string_buffer(256), P()
            self("clGetPlatformInfo", platform, PLATFORM_NAME, ctypes.c_size_t(256), text, None)
            if not self.library.clGetDeviceIDs(platform, U64(CPU), 1, ctypes.byref(device), None):
                yield text.value.decode(), device


def npy(path):
    """Header and bytes of a file."""
    with open(path, "rb") as f:
        data = f.read()
    end = 10 + int.from_bytes(data[8:10], "little")
    return data[:end], data[end:]


def build(cl, context, device):
    with open(os.path.join(HERE, "kernels.cl"), "rb") as f:
        source = f.read()
    program = cl.make("clCreateProgramWithSource", context, 1, ctypes.byref(ctypes.c_char_p(source)), None)
    try:
        cl("clBuildProgram", program, 1, ctypes.byref(device), b"", None, None)
    except Failed as why:
        log = ctypes.create_string_buffer(1 << 16)
        cl("clGetProgramBuildInfo", program, device, BUILD_LOG, ctypes.c_size_t(len(log)), log, None)
        raise Failed(f"{why}\n{log.value.decode(errors='replace')}")
    return program


def run(platform, name, grid, block, rounds, arguments):
    cl = OpenCL()
    device = next((d for p, d in cl.cpus() if platform in p), None)
    if device is None:
        raise Failed(f"there is no platform {platform}")
    context = cl.make("clCreateContext", None, 1, ctypes.byref(device), None, None)
    queue = cl.make("clCreateCommandQueue", context, device, U64(PROFILING))
    started = time.monotonic_ns()
    program = build(cl, context, device)
    kernel = cl.make("clCreateKernel", program, name.encode())
    built = time.monotonic_ns() - started
    buffers = []
    for index, text in enumerate(arguments):
        if ".npy" in text:
            source, _, target = text.partition(":")
            header, data = npy(source)
            value = cl.make("clCreateBuffer", context, U64(COPY), ctypes.c_size_t(len(data)), data)
            buffers.append((value, header, len(data), target))
        else:
            value = ctypes.c_float(float(text)) if "." in text else ctypes.c_int32(int(text))
        cl("clSetKernelArg", kernel, index, ctypes.c_size_t(ctypes.sizeof(value)), ctypes.byref(value))
    size = (ctypes.c_size_t * 3)(*[g * b for g, b in zip(grid, block)])
    local, times = (ctypes.c_size_t * 3)(*block), []
    for number in range(rounds):
        event, at = P(), [U64(), U64()]
        cl("clEnqueueNDRangeKernel", queue, kernel, 3, None, size, local, 0, None, ctypes.byref(event))
        cl("clFinish", queue)
        for which, to in zip((START, END), at):
            cl("clGetEventProfilingInfo", event, which, ctypes.c_size_t(8), ctypes.byref(to), None)
        cl("clReleaseEvent", event)
        times.append(at[1].value - at[0].value)
        for value, header, length, target in buffers if number == 0 else []:
            if target:
                data = ctypes.create_string_buffer(length)
                cl("clEnqueueReadBuffer", queue, value, 1, ctypes.c_size_t(0), ctypes.c_size_t(length), data, 0, None, None)
                with open(target, "wb") as f:
                    f.write(header + data.raw)
    times.sort()
    return {"build_ns": built, "kernel_ns_min": times[0], "kernel_ns_median": times[len(times) // 2]}


def main():
    try:
        if sys.argv[1:] == ["--list"]:
            print("\n".join(name for name, _ in OpenCL().cpus()))
            return
        platform, name, grid, block, rounds, *arguments = sys.argv[1:]
        shape = lambda text: (list(map(int, text.split(","))) + [1, 1])[:3]
        print(json.dumps(run(platform, name, shape(grid), shape(block), int(rounds), arguments)))
    except Failed as why:
        sys.exit(str(why))


if __name__ == "__main__":
    main()
