#!/usr/bin/env python3
"""Makes expect/*.npy: what the examples must compute, worked out with numpy from the definition of each problem and from no PTX
tool. Run by hand; the results are kept in the repository, so nobody needs numpy to use the examples.
"""
import os
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
os.makedirs(os.path.join(HERE, "expect"), exist_ok=True)


def save(name, array):
    np.save(os.path.join(HERE, "expect", name + ".npy"), array)


def splitmix(seed, n):
    """The 64-bit words behind `rand:SEED`: SplitMix64 from that seed."""
    z = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * np.arange(1, n + 1, dtype=np.uint64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def rand_f32(seed, *shape):
    """`rand:SEED` of `f32`: the top 24 bits over 2^24."""
    words = splitmix(seed, int(np.prod(shape)))
    return ((words >> np.uint64(40)).astype(np.float64) / 2**24).astype(np.float32).reshape(shape)


def rand_u8(seed, n):
    """`rand:SEED` of `u8`: the low 8 bits."""
    return (splitmix(seed, n) & np.uint64(255)).astype(np.uint8)


# saxpy: exact, every product and sum is representable
save("saxpy", (2.5 * np.arange(1000) + 1).astype(np.float32))

# matmul: in double
a, b = rand_f32(1, 33, 40).astype(np.float64), rand_f32(2, 40, 29).astype(np.float64)
save("matmul", (a @ b).astype(np.float32))

# reduce
save("reduce", np.array([sum(range(10000))], dtype=np.int32))

# histogram
save("histogram", np.bincount(rand_u8(7, 10000), minlength=256).astype(np.uint32))

# structs: kind 3, mass 2.5, at (1, 2, 3), flags -4, dt = 0, 1, ..., 31: small integers and halves, exact
dt = np.arange(32, dtype=np.float32)
moved = np.stack([np.float32(1 + i) + dt * np.float32(3 + i) for i in range(3)] + [np.float32(2.5) * dt * np.float32(-4)], axis=1)
save("structs", moved.astype(np.float32))


# recursion: closed forms of Ackermann's function for m = 0, 1, 2; the known numbers of solutions of the n queens
save("recursion_ack", np.array([[i + 1, i + 2, 2 * i + 3][i % 3] for i in range(32)], dtype=np.int32))
save("recursion_queens", np.array([1, 1, 0, 0, 2, 10, 4, 40, 92] + [-1] * 23, dtype=np.int32))

# dispatch: C's division, which truncates
i = np.arange(64)
x, y = i, np.full(64, -7)
save("dispatch", np.choose(i % 4, [x + y, x - y, x * y, np.trunc(x / y)]).astype(np.int32))


def collatz(n):
    steps = 0
    while n != 1:
        n, steps = (3 * n + 1 if n % 2 else n // 2), steps + 1
    return steps


# the two written by hand
save("collatz", np.array([collatz(i + 1) for i in range(64)], dtype=np.uint32))
n = np.arange(32)
three = n + n * n + 100
save("variadic", np.stack([three, n * n + three], axis=1).astype(np.int32))

# mandelbrot: single precision without contraction, operation by operation
f = np.float32


def escape(x, y, limit):
    u, v, count = np.zeros_like(x), np.zeros_like(x), np.zeros(x.shape, int)
    live = np.ones(x.shape, bool)
    for _ in range(limit):
        live &= u * u + v * v < f(16)
        with np.errstate(over="ignore", invalid="ignore"):
            t = u * u - v * v + x
            v = np.where(live, f(2) * u * v + y, v)
            u = np.where(live, t, u)
        count += live
    return count


def plane(width, height, x_scale, y_scale):
    px, py = np.meshgrid(np.arange(width), np.arange(height))
    x = f(-2.2) + px.astype(f) * x_scale
    y = (py - height // 2).astype(f) * y_scale
    return x.astype(f), y.astype(f)


width, height, limit = 96, 64, 200
scale = f(3) / f(width)
count = escape(*plane(width, height, scale, scale), limit)
rgb = np.zeros((height, width, 3), np.uint8)
for c in range(3):
    phase = (count * 9 + c * 85) & 255
    rgb[..., c] = np.where(count == limit, 0, np.where(phase < 128, 2 * phase, 510 - 2 * phase))
save("mandelbrot_picture", rgb)

width, height = 78, 30
count = escape(*plane(width, height, f(3) / f(width), f(2.4) / f(height)), 96)
shades = np.frombuffer(b" .,:;+*oO%#@", np.uint8)
chars = np.full((height, width + 1), ord("\n"), np.uint8)
chars[:, :width] = np.where(count == 96, ord("@"), shades[np.minimum(count, 10)])
save("mandelbrot_text", chars)
