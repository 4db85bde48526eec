#!/usr/bin/env python3
"""Writes tests/run/arithmetic/table_*.ptx: rows of arithmetic on edge values, with results from exact arithmetic.

The model below is Python's integers and fractions and the manual's text, nothing of margay's. Run it from the repository's
root after adding a row: `python3 tests/generate.py`.
"""
import os
import random
from fractions import Fraction as F

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run", "arithmetic")
random.seed(20)

# ---- integers ----


def u(x, bits):
    return x & ((1 << bits) - 1)


def s(x, bits):
    x = u(x, bits)
    return x - (1 << bits) if x >> (bits - 1) else x


def typed(x, ty):
    return s(x, int(ty[1:])) if ty[0] == "s" else u(x, int(ty[1:]))


def clamp(x, ty):
    bits = int(ty[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if ty[0] == "s" else (0, (1 << bits) - 1)
    return min(max(x, low), high)


# ---- floats ----

FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
NAN, INF = "nan", "inf"


class Float:
    """A sign, and a magnitude: a fraction, infinity or NaN."""

    def __init__(self, negative, size):
        self.negative, self.size = negative, size

    @property
    def value(self):
        return -self.size if self.negative else self.size

    def finite(self):
        return isinstance(self.size, F)

    def nan(self):
        return self.size is NAN


def decode(bits, fmt, ftz=False):
    e, m = FORMATS[fmt]
    negative, exponent, mantissa = bits >> (e + m) & 1, bits >> m & ((1 << e) - 1), bits & ((1 << m) - 1)
    if exponent == (1 << e) - 1:
        return Float(bool(negative), NAN if mantissa else INF)
    bias = (1 << (e - 1)) - 1
    if exponent == 0:
        return Float(bool(negative), F(0) if ftz else F(mantissa) * F(2) ** (1 - bias - m))
    return Float(bool(negative), F(mantissa + (1 << m)) * F(2) ** (exponent - bias - m))


def canonical(fmt):
    e, m = FORMATS[fmt]
    return (1 << (e + m)) - 1 if fmt != "f64" else NAN


def whole(x, mode, negative):
    """A fraction that is not negative, to an integer; the mode is that of the signed value."""
    floor = x.numerator // x.denominator
    rest = x - floor
    if mode == "rn":
        up = rest > F(1, 2) or (rest == F(1, 2) and floor & 1)
    else:
        up = rest > 0 and mode == ("rm" if negative else "rp")
    return floor + bool(up)


def encode(x, fmt, mode="rn", ftz=False, sat=False, relu=False):
    e, m = FORMATS[fmt]
    bias = (1 << (e - 1)) - 1
    if relu and (x.nan() and False or not x.nan() and x.negative):
        x = Float(False, F(0))
    if sat:
        if x.nan() or x.negative or x.size == 0:
            x = Float(False, F(0))
        elif not x.finite() or x.size > 1:
            x = Float(False, F(1))
    if x.nan():
        return canonical(fmt)
    sign = int(x.negative) << (e + m)
    infinity = ((1 << e) - 1) << m
    if not x.finite():
        return sign | infinity
    if x.size == 0:
        return sign
    scale = 1 - bias - m
    while x.size >= F(2) ** (scale + m + 1):
        scale += 1
    q = whole(x.size / F(2) ** scale, mode, x.negative)
    if q == 1 << (m + 1):
        q, scale = q >> 1, scale + 1
    if q < 1 << m:
        return sign if ftz else sign | q
    exponent = scale + m + bias
    if exponent >= (1 << e) - 1:
        toward = mode == "rz" or mode == ("rp" if x.negative else "rm")
        return sign | (infinity - 1 if toward else infinity)
    return sign | exponent << m | (q - (1 << m))


def signed(value, zero_negative):
    return Float(zero_negative if value == 0 else value < 0, abs(F(value)))


def add(x, y, mode="rn"):
    if x.nan() or y.nan() or (not x.finite() and not y.finite() and x.negative != y.negative):
        return Float(False, NAN)
    if not x.finite() or not y.finite():
        return y if x.finite() else x
    both = x.size == 0 and y.size == 0 and x.negative == y.negative
    return signed(x.value + y.value, x.negative if both else mode == "rm")


def negated(x):
    return Float(not x.negative, x.size)


def mul(x, y):
    negative = x.negative != y.negative
    if x.nan() or y.nan() or (not x.finite() and y.size == 0) or (not y.finite() and x.size == 0):
        return Float(False, NAN)
    return Float(negative, INF if not x.finite() or not y.finite() else x.size * y.size)


def div(x, y):
    negative = x.negative != y.negative
    if x.nan() or y.nan() or (x.size == 0 and y.size == 0) or (not x.finite() and not y.finite()):
        return Float(False, NAN)
    if not x.finite() or y.size == 0:
        return Float(negative, INF)
    return Float(negative, F(0) if not y.finite() else x.size / y.size)


def extreme(name, x, y, nan=False, xorsign=False):
    if x.nan() or y.nan():
        if nan or (x.nan() and y.nan()):
            return Float(False, NAN)
        r = y if x.nan() else x
        if xorsign:
            return Float(x.negative != y.negative, r.size)
        return r
    if xorsign:
        key = lambda v: F(10) ** 400 if not v.finite() else v.size
        r = (min if name == "min" else max)((x, y), key=key)
        return Float(x.negative != y.negative, r.size)
    key = lambda v: (v.value if v.finite() else (-1 if v.negative else 1) * F(10) ** 400, not v.negative)
    return (min if name == "min" else max)((x, y), key=key)


def root(x):
    """A value within 2^-200 of the square root that rounds as the root does: exact where the root is."""
    if x.nan() or (x.negative and x.size != 0):
        return Float(False, NAN)
    if not x.finite() or x.size == 0:
        return x
    n = x.size.numerator * x.size.denominator << 800
    low = 1 << (n.bit_length() // 2 + 1)
    while True:
        step = (low + n // low) // 2
        if step >= low:
            break
        low = step
    exact = low * low == n
    return Float(False, F(2 * low + (0 if exact else 1), x.size.denominator << 401))


# ---- cases ----


class Case:
    def __init__(self, name, about, source, version="8.6", target="sm_100"):
        self.name, self.about, self.source, self.version, self.target = name, about, source, version, target
        self.inputs, self.rows = {}, []

    def input(self, name, bits, values):
        self.inputs[name] = (bits, [u(v, bits) for v in values])
        self.threads = len(values)

    def row(self, code, bits, f, *names):
        """PTX that leaves its result in %d (%dh, %dd: 16, 64 bits); `f` gives the result of a thread's inputs."""
        columns = [self.inputs[n][1] for n in names]
        self.rows.append((code, bits, [f(*v) for v in zip(*columns)]))

    def write(self):
        n = self.threads
        out = [f"// {self.about}", "// Written by tests/generate.py."]
        args = [f"in {k}: u{b}[{n}] = {{{', '.join(map(str, v))}}}" for k, (b, v) in self.inputs.items()]
        widths = sorted({b for _, b, _ in self.rows}, key=str)
        count = {b: sum(1 for r in self.rows if r[1] == b) for b in widths}
        args += [f"out out{b}: {'f64' if b == 'f64' else f'u{b}'}[{count[b] * n}]" for b in sorted(widths, key=str)]
        out.append(f"//@ launch: k<<<1, {n}>>>({', '.join(args)})")
        at = dict.fromkeys(widths, 0)
        for code, bits, want in self.rows:
            first = at[bits] * n
            at[bits] += 1
            out.append(f"//@ expect: out{bits}[{first}..{first + n}] == {{{', '.join(map(str, want))}}} // {code.splitlines()[-1].strip()}")
        out += [f"//@ source: {self.source}", "", f".version {self.version}", f".target {self.target}", ".address_size 64", ""]
        params = [f".param .u64 {k}" for k in self.inputs] + [f".param .u64 out{b}" for b in sorted(widths, key=str)]
        out += [f".visible .entry k({', '.join(params)})", "{"]
        out.append("    .reg .b8 %db; .reg .b32 %t, %d, %e; .reg .b16 %dh, %eh; .reg .b64 %dd, %ed, %p, %o; .reg .pred %q, %r;")
        out.append("    mov.u32 %t, %tid.x;")
        for k, (b, _) in self.inputs.items():
            out += [f"    .reg .b{b} %{k};", f"    ld.param.u64 %p, [{k}];", f"    mad.wide.u32 %p, %t, {b // 8}, %p;", f"    ld.global.b{b} %{k}, [%p];"]
        for b in sorted(widths, key=str):
            size = 64 if b == "f64" else b
            out += [f"    .reg .b64 %out{b};", f"    ld.param.u64 %out{b}, [out{b}];", f"    mad.wide.u32 %out{b}, %t, {size // 8}, %out{b};"]
        at = dict.fromkeys(widths, 0)
        for code, bits, _ in self.rows:
            size = 64 if bits == "f64" else bits
            register = {16: "%dh", 32: "%d", 64: "%dd"}[size]
            out += [f"    {line.strip()}" for line in code.strip().splitlines()]
            out.append(f"    st.global.b{size} [%out{bits}+{at[bits] * n * size // 8}], {register};")
            at[bits] += 1
        out += ["    ret;", "}", ""]
        with open(os.path.join(HERE, f"table_{self.name}.ptx"), "w") as f:
            f.write("\n".join(out))


EDGE32 = [0, 1, 2, 31, 32, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF, 0x12345678, 0xDEADBEEF, 0x00FF00FF, 0x80FF7F01, 0x55555555, 0xAAAAAAAA, 33]


def mixed(bits, n=24):
    edges = [v if bits == 32 else (u(v, 16) if bits == 16 else v | (v * 0x9E3779B97F4A7C15 & 0xFFFFFFFF) << 32) for v in EDGE32]
    return [random.choice(edges) if random.random() < 0.6 else random.getrandbits(bits) for _ in range(n)]


def integers():
    c = Case("integer", "Integer rows on edge values.", "manual, sections 9.7.1 and 9.7.2, in Python's integers")
    c.input("a", 32, EDGE32)
    for name in "bc":
        c.input(name, 32, mixed(32))
    c.input("ha", 16, mixed(16)), c.input("hb", 16, mixed(16))
    c.input("la", 64, mixed(64)), c.input("lb", 64, mixed(64)), c.input("lc", 64, mixed(64))
    regs = {16: ("ha", "hb", "%dh"), 32: ("a", "b", "%d"), 64: ("la", "lb", "%dd")}
    for bits, (x, y, d) in regs.items():
        c.row(f"abs.s{bits} {d}, %{x};", bits, lambda v: u(abs(s(v, bits)), bits), x)
        c.row(f"cnot.b{bits} {d}, %{x};", bits, lambda v: int(v == 0), x)
        for sign in "us":
            ty = f"{sign}{bits}"
            for name, f in (("min", min), ("max", max)):
                c.row(f"{name}.{ty} {d}, %{x}, %{y};", bits, lambda v, w: u(f(typed(v, ty), typed(w, ty)), bits), x, y)
            c.row(f"sad.{ty} {d}, %{x}, %{y}, %{x};", bits, lambda v, w: u(v + abs(typed(v, ty) - typed(w, ty)), bits), x, y)
            if bits > 16:
                find = lambda v: (v if sign == "u" or not v >> (bits - 1) else u(~v, bits)).bit_length() - 1
                c.row(f"bfind.{ty} %d, %{x};", 32, lambda v: u(find(v), 32), x)
                c.row(f"bfind.shiftamt.{ty} %d, %{x};", 32, lambda v: u(-1 if find(v) < 0 else bits - 1 - find(v), 32), x)
        if bits > 16:
            c.row(f"brev.b{bits} {d}, %{x};", bits, lambda v: int(f"{v:0{bits}b}"[::-1], 2), x)
            c.row(f"clz.b{bits} %d, %{x};", 32, lambda v: bits - v.bit_length(), x)
            c.row(f"popc.b{bits} %d, %{x};", 32, lambda v: bin(v).count("1"), x)
            z = "c" if bits == 32 else "lc"
            carry = lambda v, w: u(v, bits) + u(w, bits) >> bits
            c.row(f"add.cc.u{bits} {d}, %{x}, %{y};\naddc.u{bits} {d}, %{x}, 0;", bits, lambda v, w: u(v + carry(v, w), bits), x, y)
            c.row(f"sub.cc.u{bits} {d}, %{x}, %{y};\nsubc.u{bits} {d}, 0, 0;", bits, lambda v, w: u(-int(v < w), bits), x, y)
            c.row(f"mad.lo.cc.u{bits} {d}, %{x}, %{y}, %{z};\nmadc.hi.u{bits} {d}, %{x}, %{y}, 0;", bits,
                  lambda v, w, q: u((v * w >> bits) + carry(v * w, q), bits), x, y, z)
            c.row(f"mad.hi.cc.u{bits} {d}, %{x}, %{y}, %{z};\nmadc.lo.cc.s{bits} {d}, %{x}, %{y}, 1;\naddc.u{bits} {d}, {d}, 0;", bits,
                  lambda v, w, q: u(v * w + 1 + carry(v * w >> bits, q) + (u(v * w, bits) + 1 + carry(v * w >> bits, q) >> bits), bits), x, y, z)
    for name, f in (("add", lambda x, y: x + y), ("sub", lambda x, y: x - y)):
        c.row(f"{name}.sat.s32 %d, %a, %b;", 32, lambda x, y: u(clamp(f(s(x, 32), s(y, 32)), "s32"), 32), "a", "b")
    halves = lambda f, ty: lambda x, y: u(f(typed(x, ty), typed(y, ty)), 16) | u(f(typed(x >> 16, ty), typed(y >> 16, ty)), 16) << 16
    for sign in "us":
        c.row(f"add.{sign}16x2 %d, %a, %b;", 32, halves(lambda x, y: x + y, f"{sign}16"), "a", "b")
        c.row(f"min.{sign}16x2 %d, %a, %b;", 32, halves(min, f"{sign}16"), "a", "b")
        c.row(f"max.{sign}16x2 %d, %a, %b;", 32, halves(max, f"{sign}16"), "a", "b")
    for name, f in (("min", min), ("max", max)):
        c.row(f"{name}.relu.s32 %d, %a, %b;", 32, lambda x, y: max(f(s(x, 32), s(y, 32)), 0), "a", "b")
        c.row(f"{name}.relu.s16x2 %d, %a, %b;", 32, halves(lambda x, y: max(f(x, y), 0), "s16"), "a", "b")
    c.row("mad.hi.sat.s32 %d, %a, %b, %c;", 32, lambda x, y, z: u(clamp((s(x, 32) * s(y, 32) >> 32) + s(z, 32), "s32"), 32), "a", "b", "c")
    c.row("mad24.hi.sat.s32 %d, %a, %b, %c;", 32, lambda x, y, z: u(clamp((s(x, 24) * s(y, 24) >> 16) + s(z, 32), "s32"), 32), "a", "b", "c")
    for sign in "us":
        part = lambda x: typed(x, f"{sign}24")
        c.row(f"mul24.lo.{sign}32 %d, %a, %b;", 32, lambda x, y: u(part(x) * part(y), 32), "a", "b")
        c.row(f"mul24.hi.{sign}32 %d, %a, %b;", 32, lambda x, y: u(part(x) * part(y) >> 16, 32), "a", "b")
        c.row(f"mad24.lo.{sign}32 %d, %a, %b, %c;", 32, lambda x, y, z: u(part(x) * part(y) + z, 32), "a", "b", "c")
        c.row(f"mad24.hi.{sign}32 %d, %a, %b, %c;", 32, lambda x, y, z: u((part(x) * part(y) >> 16) + z, 32), "a", "b", "c")
        c.row(f"mad.wide.{sign}16 %d, %ha, %hb, %c;", 32, lambda x, y, z: u(typed(x, f"{sign}16") * typed(y, f"{sign}16") + z, 32), "ha", "hb", "c")
        c.row(f"mad.wide.{sign}32 %dd, %a, %b, %lc;", 64, lambda x, y, z: u(typed(x, f"{sign}32") * typed(y, f"{sign}32") + z, 64), "a", "b", "lc")
        for other in "us":
            bytes_of = lambda x, t: [typed(x >> 8 * i, t) for i in range(4)]
            c.row(f"dp4a.{sign}32.{other}32 %d, %a, %b, %c;", 32,
                  lambda x, y, z: u(z + sum(p * q for p, q in zip(bytes_of(x, f"{sign}8"), bytes_of(y, f"{other}8"))), 32), "a", "b", "c")
            for half, shift in (("lo", 0), ("hi", 16)):
                c.row(f"dp2a.{half}.{sign}32.{other}32 %d, %a, %b, %c;", 32,
                      lambda x, y, z: u(z + sum(typed(x >> 16 * i, f"{sign}16") * typed(y >> shift + 8 * i, f"{other}8") for i in range(2)), 32), "a", "b", "c")
        for mode in ("clamp", "wrap"):
            def extend(x, n):
                n = min(n, 32) if mode == "clamp" else n & 31
                return u(0 if n == 0 else typed(x, f"{sign}{n}"), 32)
            c.row(f"szext.{mode}.{sign}32 %d, %a, %b;", 32, extend, "a", "b")
    for mode in ("clamp", "wrap"):
        def mask(a, b):
            a, b = (min(a, 32), min(b, 32)) if mode == "clamp" else (a & 31, b & 31)
            return u(((1 << b) - 1) << a, 32)
        c.row(f"bmsk.{mode}.b32 %d, %a, %b;", 32, mask, "a", "b")
        def funnel(left):
            def f(low, high, n):
                n = min(n, 32) if mode == "clamp" else n & 31
                both = high << 32 | low
                return u(both << n >> 32 if left else both >> n, 32)
            return f
        c.row(f"shf.l.{mode}.b32 %d, %a, %b, %c;", 32, funnel(True), "a", "b", "c")
        c.row(f"shf.r.{mode}.b32 %d, %a, %b, %c;", 32, funnel(False), "a", "b", "c")
    table = lambda x, y, z, lut: sum((lut >> ((x >> i & 1) << 2 | (y >> i & 1) << 1 | z >> i & 1) & 1) << i for i in range(32))
    for lut in (0x96, 0xE8, 0x1A):
        c.row(f"lop3.b32 %d, %a, %b, %c, {lut};", 32, lambda x, y, z: table(x, y, z, lut), "a", "b", "c")
    for name, f in (("or", lambda p, q: p or q), ("and", lambda p, q: p and q)):
        c.row(f"setp.lt.u32 %q, %b, %c;\nlop3.{name}.b32 %e|%r, %a, %b, %c, 0x80, %q;\nselp.u32 %d, 1, 0, %r;", 32,
              lambda x, y, z: int(f(x & y & z != 0, y < z)), "a", "b", "c")
    def nth(m, base, offset):
        base, offset = base & 31, s(offset, 32)
        if offset == 0:
            return base if m >> base & 1 else 0xFFFFFFFF
        at = [i for i in (range(base, 32) if offset > 0 else range(base, -1, -1)) if m >> i & 1]
        return at[abs(offset) - 1] if abs(offset) <= len(at) else 0xFFFFFFFF
    for offset in (0, 1, 3, -1, -2):
        c.row(f"and.b32 %e, %b, 31;\nfns.b32 %d, %a, %e, {offset};", 32, lambda m, b: nth(m, b, u(offset, 32)), "a", "b")
    for ty, (bits, x, y, d) in {"b16": (16, "ha", "hb", "%dh"), "u32": (32, "a", "b", "%d"), "s64": (64, "la", "lb", "%dd")}.items():
        c.row(f"slct.{ty}.s32 {d}, %{x}, %{y}, %c;", bits, lambda v, w, z: v if s(z, 32) >= 0 else w, x, y, "c")
    c.write()


def compare(name, x, y):
    return {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y, "lo": x < y, "ls": x <= y, "hi": x > y, "hs": x >= y}[name]


TRUE = {"u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "u16": 0xFFFF, "s16": 0xFFFF, "f16x2": 0x3C00, "bf16x2": 0x3F80}


def combine(name, p, q):
    return {"and": p and q, "or": p or q, "xor": p != q}[name]


def compares():
    c = Case("compare", "set and setp of integers and of floats, alone and combined with a predicate.", "manual, sections 9.7.6.1, 9.7.6.2, 9.7.7.1 and 9.7.7.2")
    ints = [0, 1, 2, 0x7FFF, 0x8000, 0xFFFF]
    c.input("a", 32, EDGE32), c.input("b", 32, [random.choice([v, w]) for v, w in zip(EDGE32, mixed(32))])
    ha, hb = [random.choice(ints) for _ in EDGE32], [random.choice(ints) for _ in EDGE32]
    c.input("ha", 16, ha), c.input("hb", 16, hb)
    la = mixed(64)
    c.input("la", 64, la), c.input("lb", 64, [random.choice([v, w]) for v, w in zip(la, mixed(64))])
    floats = {}
    for fmt, bits in (("f16", 16), ("bf16", 16), ("f32", 32), ("f64", 64)):
        e, m = FORMATS[fmt]
        some = [0, 1 << (e + m), 1, encode(Float(False, F(3, 2)), fmt), encode(Float(True, F(3, 2)), fmt), encode(Float(False, F(2)), fmt), ((1 << e) - 1) << m, (1 << e + 1) - 1 << m, ((1 << e) - 1) << m | 1 << (m - 1)]
        for side in "xy":
            c.input(f"{fmt}{side}", bits, [random.choice(some) for _ in EDGE32])
        floats[fmt] = bits
    for side in "xy":
        for fmt in ("f16", "bf16"):
            low, high = c.inputs[f"{fmt}{side}"][1], list(reversed(c.inputs[f"{fmt}{side}"][1]))
            c.input(f"{fmt}x2{side}", 32, [p | q << 16 for p, q in zip(low, high)])
    guard, holds = "setp.lt.u32 %q, %a, 1000;", lambda a: a < 1000
    regs = {16: ("ha", "hb"), 32: ("a", "b"), 64: ("la", "lb")}

    def both(code, ty, src, f, names):
        """The plain form, and one combined with a (negated) predicate."""
        d, bits = ("%dh", 16) if ty in ("f16", "bf16", "u16", "s16") else ("%d", 32)
        c.row(f"set.{code}.{ty}.{src} {d}, {names};", bits, lambda *v: TRUE[ty] if f(*v[1:]) else 0, "a", *names.replace("%", "").split(", "))
        how, bang = random.choice(["and", "or", "xor"]), random.choice(["", "!"])
        c.row(f"{guard}\nset.{code}.{how}.{ty}.{src} {d}, {names}, {bang}%q;", bits,
              lambda *v: TRUE[ty] if combine(how, f(*v[1:]), holds(v[0]) != bool(bang)) else 0, "a", *names.replace("%", "").split(", "))

    for bits, (x, y) in regs.items():
        for sign, names in (("b", ["eq", "ne"]), ("s", ["eq", "lt", "ge"]), ("u", ["ne", "le", "gt", "lo", "hs"])):
            for ty in ("u32", "s32", "f32", "f16", "bf16"):
                name = random.choice(names)
                source = f"{sign}{bits}"
                value = lambda v: typed(v, source) if sign == "s" else v
                both(name, ty, source, lambda v, w: compare(name, value(v), value(w)), f"%{x}, %{y}")
            for name in names:
                how, bang = random.choice(["and", "or", "xor"]), random.choice(["", "!"])
                source = f"{sign}{bits}"
                value = lambda v: typed(v, source) if sign == "s" else v
                p = lambda a, v, w: combine(how, compare(name, value(v), value(w)), holds(a) != bool(bang))
                q = lambda a, v, w: combine(how, not compare(name, value(v), value(w)), holds(a) != bool(bang))
                c.row(f"{guard}\nsetp.{name}.{how}.{source} %r|%q, %{x}, %{y}, {bang}%q;\nselp.u32 %d, 1, 0, %r;\nselp.u32 %e, 2, 0, %q;\nor.b32 %d, %d, %e;", 32,
                      lambda *v: int(p(*v)) | int(q(*v)) << 1, "a", x, y)

    def ordered(name, fmt, ftz=False):
        def f(v, w):
            v, w = decode(v, fmt, ftz), decode(w, fmt, ftz)
            unordered = v.nan() or w.nan()
            if name in ("num", "nan"):
                return unordered == (name == "nan")
            if unordered:
                return name.endswith("u") and name != "u"
            key = lambda z: z.value if z.finite() else (-1 if z.negative else 1) * F(10) ** 400
            return compare(name[:2], key(v), key(w))
        return f
    relations = ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
    targets = {"f32": ["u32", "s32", "f32", "f16", "bf16"], "f64": ["u32", "s32", "f32", "f16", "bf16"], "f16": ["u16", "s16", "u32", "s32", "f16", "bf16"], "bf16": ["u16", "s16", "u32", "s32"]}
    for fmt, list_of in targets.items():
        for ty in list_of:
            name = random.choice(relations)
            both(name, ty, fmt, ordered(name, fmt), f"%{fmt}x, %{fmt}y")
        for i, name in enumerate(relations):
            pair = fmt in ("f32", "f64")
            f = ordered(name, fmt)
            head = f"setp.{name}.{fmt} %r{'|%q' if pair else ''}, %{fmt}x, %{fmt}y;"
            tail = "selp.u32 %e, 2, 0, %q;\nor.b32 %d, %d, %e;" if pair else "mov.u32 %e, 0;"
            c.row(f"{head}\nselp.u32 %d, 1, 0, %r;\n{tail}", 32, lambda v, w: int(f(v, w)) | (int(not f(v, w)) << 1 if pair else 0), f"{fmt}x", f"{fmt}y")
            how = ["and", "or", "xor"][i % 3]
            c.row(f"{guard}\nsetp.{name}.{how}.{fmt} %r, %{fmt}x, %{fmt}y, !%q;\nselp.u32 %d, 1, 0, %r;", 32,
                  lambda a, v, w: int(combine(how, f(v, w), not holds(a))), "a", f"{fmt}x", f"{fmt}y")
    for fmt in ("f16", "bf16"):
        for i, name in enumerate(relations):
            f, x, y = ordered(name, fmt), f"{fmt}x2x", f"{fmt}x2y"
            ty = [f"{fmt}x2", "u32", "s32"][i % 3]
            two = lambda v, w: (f(v & 0xFFFF, w & 0xFFFF), f(v >> 16, w >> 16))
            one = TRUE[ty] if ty.endswith("x2") else 0xFFFF
            joined = lambda p, q: (one if p else 0) | (one if q else 0) << 16
            c.row(f"set.{name}.{ty}.{fmt}x2 %d, %{x}, %{y};", 32, lambda v, w: joined(*two(v, w)), x, y)
            c.row(f"{guard}\nset.{name}.or.{ty}.{fmt}x2 %d, %{x}, %{y}, %q;", 32, lambda a, v, w: joined(*[r or holds(a) for r in two(v, w)]), "a", x, y)
            c.row(f"setp.{name}.{fmt}x2 %r|%q, %{x}, %{y};\nselp.u32 %d, 1, 0, %r;\nselp.u32 %e, 2, 0, %q;\nor.b32 %d, %d, %e;", 32,
                  lambda v, w: int(two(v, w)[0]) | int(two(v, w)[1]) << 1, x, y)
            c.row(f"{guard}\nsetp.{name}.xor.{fmt}x2 %r|%q, %{x}, %{y}, %q;\nselp.u32 %d, 1, 0, %r;\nselp.u32 %e, 2, 0, %q;\nor.b32 %d, %d, %e;", 32,
                  lambda a, v, w: int(two(v, w)[0] != holds(a)) | int(two(v, w)[1] != holds(a)) << 1, "a", x, y)
    for x, y in (("a", "b"),):
        c.row("slct.ftz.u32.f32 %d, %a, %b, %f32x;", 32, lambda v, w, z: v if not decode(z, "f32").nan() and (not decode(z, "f32").negative or decode(z, "f32", True).size == 0) else w, "a", "b", "f32x")
        c.row("slct.b64.f32 %dd, %la, %lb, %f32x;", 64, lambda v, w, z: v if not decode(z, "f32").nan() and (not decode(z, "f32").negative or decode(z, "f32").size == 0) else w, "la", "lb", "f32x")
    for fmt in ("f32", "f64"):
        e, m = FORMATS[fmt]
        kinds = {"finite": lambda z: z.finite(), "infinite": lambda z: z.size is INF, "number": lambda z: not z.nan(), "notanumber": lambda z: z.nan(),
                 "normal": lambda z: z.finite() and (z.size == 0 or z.size >= F(2) ** (2 - (1 << (e - 1)))), "subnormal": lambda z: z.finite() and 0 < z.size < F(2) ** (2 - (1 << (e - 1)))}
        for kind, f in kinds.items():
            c.row(f"testp.{kind}.{fmt} %r, %{fmt}x;\nselp.u32 %d, 1, 0, %r;", 32, lambda v: int(f(decode(v, fmt))), f"{fmt}x")
    c.write()


def conversions():
    c = Case("convert", "Saturating conversions between integers, and floats to integers and back.", "manual, sections 9.7.9.21 (cvt) and 9.7.9.22 (cvt.pack)")
    c.input("a", 32, EDGE32), c.input("b", 32, mixed(32)), c.input("h", 16, mixed(16)), c.input("l", 64, mixed(64))
    some = [F(0), F(1, 2), F(3, 2), F(5, 2), F(255), F(511, 2), F(256), F(32767), F(65535), F(1 << 31), F(3000000000), F(1, 1 << 20), F(127), F(-1, 2), F(-3, 2), F(-128), F(-129), F(-32769), F(-(1 << 31)), F(-5, 2), F(7, 3), F(-7, 3), F(1000001, 8), F(99)]
    for fmt, bits in (("f16", 16), ("bf16", 16), ("f32", 32), ("f64", 64)):
        c.input(fmt, bits, [encode(signed(v, False), fmt) for v in some])
    source = {8: ("a", 32), 16: ("h", 16), 32: ("a", 32), 64: ("l", 64)}
    register = {8: ("%d", 32), 16: ("%dh", 16), 32: ("%d", 32), 64: ("%dd", 64)}
    sizes = [8, 16, 32, 64]
    for db in sizes:
        for ds in "us":
            for sb in sizes:
                for ss in "us":
                    to, of = f"{ds}{db}", f"{ss}{sb}"
                    wider = db > sb and (ds == "s" or ss == "u") or db == sb and ds == ss
                    if wider:
                        continue
                    (d, bits), (x, _) = register[db], source[sb]
                    result = lambda v: u(clamp(typed(v, of), to), bits)
                    c.row(f"cvt.sat.{to}.{of} {d}, %{x};", bits, result, x)
    modes = ["rni", "rzi", "rmi", "rpi"]

    def integral(x, mode, to):
        if x.nan():
            return 0
        if not x.finite():
            return clamp(-(1 << 80) if x.negative else 1 << 80, to)
        q = whole(x.size, {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}[mode], x.negative)
        return clamp(-q if x.negative else q, to)
    for fmt in ("f16", "bf16", "f32", "f64"):
        for i, (db, ds) in enumerate((b, t) for b in sizes for t in "us"):
            mode, (d, bits), to = modes[i % 4], register[db], f"{ds}{db}"
            # bf16 takes registers of exactly the other type's width.
            code = f"cvt.{mode}.{to}.{fmt} {d}, %{fmt};" if (fmt, db) != ("bf16", 8) else f"cvt.{mode}.{to}.bf16 %db, %bf16;\ncvt.{ds}32.{to} %d, %db;"
            c.row(code, bits, lambda v: u(integral(decode(v, fmt), mode, to), bits), fmt)
        for mode in modes:
            d, bits = {"f16": ("%dh", 16), "bf16": ("%dh", 16), "f32": ("%d", 32), "f64": ("%dd", 64)}[fmt]
            def whole_float(v):
                x = decode(v, fmt)
                if not x.finite():
                    return encode(x, fmt)
                q = whole(x.size, {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}[mode], x.negative)
                return encode(Float(x.negative, F(q)), fmt)
            c.row(f"cvt.{mode}.{fmt}.{fmt} {d}, %{fmt};", bits, whole_float, fmt)
        for i, (sb, ss) in enumerate((b, t) for b in sizes for t in "us"):
            mode, (x, _), of = ["rn", "rz", "rm", "rp"][i % 4], source[sb], f"{ss}{sb}"
            d, bits = {"f16": ("%dh", 16), "bf16": ("%dh", 16), "f32": ("%d", 32), "f64": ("%dd", 64)}[fmt]
            code = f"cvt.{mode}.{fmt}.{of} {d}, %{x};" if (fmt, sb) != ("bf16", 8) else f"cvt.u8.u32 %db, %a;\ncvt.{mode}.bf16.{of} %dh, %db;"
            c.row(code, bits, lambda v: encode(signed(typed(v, of), False), fmt, mode), x)
    narrowing = [("f32", "f64"), ("f16", "f64"), ("bf16", "f64"), ("f16", "f32"), ("bf16", "f32"), ("bf16", "f16"), ("f16", "bf16")]
    for to, of in narrowing:
        d, bits = ("%d", 32) if to == "f32" else ("%dh", 16)
        for mode in ("rn", "rz", "rm", "rp"):
            c.row(f"cvt.{mode}.{to}.{of} {d}, %{of};", bits, lambda v: encode(decode(v, of), to, mode), of)
    c.row("cvt.sat.f32.f16 %d, %f16;", 32, lambda v: encode(decode(v, "f16"), "f32", sat=True), "f16")
    c.row("cvt.f32.bf16 %d, %bf16;", 32, lambda v: encode(decode(v, "bf16"), "f32"), "bf16")
    c.row("cvt.f64.bf16 %dd, %bf16;", 64, lambda v: encode(decode(v, "bf16"), "f64"), "bf16")
    c.row("cvt.rn.sat.f16.f32 %dh, %f32;", 16, lambda v: encode(decode(v, "f32"), "f16", sat=True), "f32")
    for mode in ("rn", "rz"):
        c.row(f"cvt.{mode}.relu.f16.f32 %dh, %f32;", 16, lambda v: encode(decode(v, "f32"), "f16", mode, relu=True), "f32")
        c.row(f"cvt.{mode}.relu.bf16.f32 %dh, %f32;", 16, lambda v: encode(decode(v, "f32"), "bf16", mode, relu=True), "f32")
        for fmt in ("f16", "bf16"):
            c.row(f"neg.f32 %e, %f32;\ncvt.{mode}.{fmt}x2.f32 %d, %f32, %e;", 32,
                  lambda v: encode(decode(v, "f32"), fmt, mode) << 16 | encode(negated(decode(v, "f32")), fmt, mode), "f32")
    for to in ("u16", "s16"):
        c.row(f"cvt.pack.sat.{to}.s32 %d, %a, %b;", 32, lambda x, y: u(clamp(s(x, 32), to), 16) << 16 | u(clamp(s(y, 32), to), 16), "a", "b")
    for bits in (2, 4, 8):
        for sign in "us":
            to = f"{sign}{bits}"
            c.row(f"cvt.pack.sat.{to}.s32.b32 %d, %a, %b, %b;", 32,
                  lambda x, y: u(y << 2 * bits | u(clamp(s(x, 32), to), bits) << bits | u(clamp(s(y, 32), to), bits), 32), "a", "b")
    c.write()


def floats():
    c = Case("float", "Rows of f32 and f64 in every rounding mode, flushed and saturated.", "manual, section 9.7.3, in exact fractions", "8.8")
    some = [F(0), F(1), F(1, 3), F(-1), F(3, 2), F(-1, 3), F(2) ** -126, F(2) ** -149, F(2) ** 127, F(16777217), F(5, 7), F(-22, 7)]
    for fmt, bits in (("f32", 32), ("f64", 64)):
        e, m = FORMATS[fmt]
        values = [encode(signed(v, False), fmt) for v in some] + [1 << (e + m), ((1 << e) - 1) << m, (1 << (e + 1)) - 1 << m, encode(Float(False, F(2) ** 100 + 1), fmt)]
        for name in "xyz":
            c.input(f"{fmt}{name}", bits, [random.choice(values) for _ in range(40)])
    modes = ("rn", "rz", "rm", "rp")
    ops = {"add": (2, lambda m: lambda x, y: add(x, y, m)), "sub": (2, lambda m: lambda x, y: add(x, negated(y), m)), "mul": (2, lambda m: mul), "div": (2, lambda m: div),
           "fma": (3, lambda m: lambda x, y, z: add(mul(x, y), z, m)), "mad": (3, lambda m: lambda x, y, z: add(mul(x, y), z, m)),
           "rcp": (1, lambda m: lambda x: div(Float(False, F(1)), x)), "sqrt": (1, lambda m: root)}
    for fmt, d in (("f32", "%d"), ("f64", "%dd")):
        bits = 32 if fmt == "f32" else "f64"

        def number(v):
            """f64 results stand as decimals, for a NaN has no one pattern there."""
            if fmt == "f32":
                return v
            import struct
            return "nan" if v is NAN else repr(struct.unpack("<d", struct.pack("<Q", v))[0])
        for name, (count, make) in ops.items():
            names = [f"{fmt}{n}" for n in "xyz"[:count]]
            operands = ", ".join(f"%{n}" for n in names)
            for mode in modes:
                op = make(mode)
                c.row(f"{name}.{mode}.{fmt} {d}, {operands};", bits, lambda *v: number(encode(op(*[decode(x, fmt) for x in v]), fmt, mode)), *names)
                if fmt == "f32":
                    c.row(f"{name}.{mode}.ftz.f32 {d}, {operands};", 32, lambda *v: encode(op(*[decode(x, fmt, True) for x in v]), fmt, mode, ftz=True), *names)
                if fmt == "f32" and name in ("add", "sub", "mul", "fma", "mad"):
                    c.row(f"{name}.{mode}.sat.f32 {d}, {operands};", 32, lambda *v: encode(op(*[decode(x, fmt) for x in v]), fmt, mode, sat=True), *names)
        for name in ("min", "max"):
            c.row(f"{name}.{fmt} {d}, %{fmt}x, %{fmt}y;", bits, lambda x, y: number(encode(extreme(name, decode(x, fmt), decode(y, fmt)), fmt)), f"{fmt}x", f"{fmt}y")
        sign = 31 if fmt == "f32" else 63
        width = 32 if fmt == "f32" else 64
        c.row(f"copysign.{fmt} {d}, %{fmt}x, %{fmt}y;", width, lambda x, y: y & ~(1 << sign) | x & 1 << sign, f"{fmt}x", f"{fmt}y")
        c.row(f"abs.{fmt} {d}, %{fmt}x;", width, lambda x: x & ~(1 << sign), f"{fmt}x")
        c.row(f"neg.{fmt} {d}, %{fmt}x;", width, lambda x: x ^ 1 << sign, f"{fmt}x")
    for name in ("min", "max"):
        for nan in (False, True):
            n = ".NaN" if nan else ""
            c.row(f"{name}.ftz{n}.f32 %d, %f32x, %f32y;", 32, lambda x, y: encode(extreme(name, decode(x, "f32", True), decode(y, "f32", True), nan), "f32"), "f32x", "f32y")
            c.row(f"{name}{n}.xorsign.abs.f32 %d, %f32x, %f32y;", 32, lambda x, y: encode(extreme(name, decode(x, "f32"), decode(y, "f32"), nan, True), "f32"), "f32x", "f32y")
            def three(x, y, z):
                first = extreme(name, decode(x, "f32"), decode(y, "f32"), nan)
                return encode(extreme(name, first, decode(z, "f32"), nan), "f32")
            c.row(f"{name}{n}.f32 %d, %f32x, %f32y, %f32z;", 32, three, "f32x", "f32y", "f32z")
    pair = lambda f: lambda *v: f(*[x & 0xFFFFFFFF for x in v]) | f(*[x >> 32 for x in v]) << 32
    for name in ("add", "sub", "mul", "fma"):
        count, make = ops[name]
        names = [f"f32{n}" for n in "xyz"[:count]]
        for mode in modes:
            op = make(mode)
            packs = "\n".join(f"mov.b64 %{r}, {{%{n}, %f32{q}}};" for r, n, q in zip(("dd", "ed", "o"), names, "zxy"))
            other = [f"f32{q}" for q in "zxy"[:count]]
            f = lambda *v: encode(op(*[decode(x, "f32") for x in v]), "f32", mode)
            c.row(f"{packs}\n{name}.{mode}.f32x2 %dd, {', '.join(['%dd', '%ed', '%o'][:count])};", 64,
                  lambda *v: f(*v[:count]) | f(*v[count:]) << 32, *names, *other)
    c.write()


def halves():
    c = Case("half", "Rows of f16, bf16 and their pairs, flushed, saturated and rectified.", "manual, section 9.7.4, in exact fractions")
    some = [F(0), F(1), F(1, 3), F(-1), F(3, 2), F(-1, 3), F(2) ** -14, F(3) * F(2) ** -24, F(60000), F(2049), F(5, 7), F(-22, 7), F(1, 1024)]
    for fmt in ("f16", "bf16"):
        e, m = FORMATS[fmt]
        values = [encode(signed(v, False), fmt) for v in some] + [1 << (e + m), ((1 << e) - 1) << m, (1 << (e + 1)) - 1 << m, ((1 << e) - 1) << m | 1]
        for name in "xyz":
            c.input(f"{fmt}{name}", 16, [random.choice(values) for _ in range(40)])
            low, high = c.inputs[f"{fmt}{name}"][1], list(reversed(c.inputs[f"{fmt}{name}"][1]))
            c.input(f"{fmt}x2{name}", 32, [p | q << 16 for p, q in zip(low, high)])

    def both(text, count, fmt, f):
        for two in ("", "x2"):
            names = [f"{fmt}{two}{n}" for n in "xyz"[:count]]
            d, bits = ("%d", 32) if two else ("%dh", 16)
            g = (lambda *v: f(*[x & 0xFFFF for x in v]) | f(*[x >> 16 for x in v]) << 16) if two else f
            c.row(f"{text}.{fmt}{two} {d}, {', '.join('%' + n for n in names)};", bits, g, *names)
    for fmt in ("f16", "bf16"):
        plain = lambda op, **k: lambda *v: encode(op(*[decode(x, fmt, k.get("ftz", False)) for x in v]), fmt, **k)
        both("add.rn", 2, fmt, plain(add)), both("sub.rn", 2, fmt, plain(lambda x, y: add(x, negated(y)))), both("mul.rn", 2, fmt, plain(mul))
        fused = lambda x, y, z: add(mul(x, y), z)
        both("fma.rn", 3, fmt, plain(fused)), both("fma.rn.relu", 3, fmt, plain(fused, relu=True))
        if fmt == "f16":
            both("add.ftz", 2, fmt, plain(add, ftz=True)), both("sub.sat", 2, fmt, plain(lambda x, y: add(x, negated(y)), sat=True)), both("mul.ftz.sat", 2, fmt, plain(mul, ftz=True, sat=True))
            both("fma.rn.ftz", 3, fmt, plain(fused, ftz=True)), both("fma.rn.sat", 3, fmt, plain(fused, sat=True))
        for name in ("min", "max"):
            for nan in (False, True):
                n = ".NaN" if nan else ""
                both(f"{name}{n}", 2, fmt, plain(lambda x, y: extreme(name, x, y, nan)))
                both(f"{name}{n}.xorsign.abs", 2, fmt, plain(lambda x, y: extreme(name, x, y, nan, True)))
        clean = [v if not decode(v, fmt).nan() else 0x3C00 for v in c.inputs[f"{fmt}x"][1]]
        c.input(f"{fmt}n", 16, clean), c.input(f"{fmt}x2n", 32, [p | q << 16 for p, q in zip(clean, reversed(clean))])
        for name, f in (("abs", lambda v: v & 0x7FFF), ("neg", lambda v: v ^ 0x8000)):
            c.row(f"{name}.{fmt} %dh, %{fmt}n;", 16, f, f"{fmt}n")
            c.row(f"{name}.{fmt}x2 %d, %{fmt}x2n;", 32, lambda v: f(v & 0xFFFF) | f(v >> 16) << 16, f"{fmt}x2n")
    c.input("w", 32, [encode(signed(random.choice(some), False), "f32") for _ in range(40)])
    for fmt in ("f16", "bf16"):
        for mode in ("rn", "rz", "rm", "rp"):
            wide = lambda op: lambda x, w: encode(op(decode(x, fmt), decode(w, "f32")), "f32", mode)
            c.row(f"add.{mode}.f32.{fmt} %d, %{fmt}x, %w;", 32, wide(lambda x, w: add(x, w, mode)), f"{fmt}x", "w")
            c.row(f"sub.{mode}.f32.{fmt} %d, %{fmt}x, %w;", 32, wide(lambda x, w: add(x, negated(w), mode)), f"{fmt}x", "w")
            c.row(f"fma.{mode}.f32.{fmt} %d, %{fmt}x, %{fmt}y, %w;", 32,
                  lambda x, y, w: encode(add(mul(decode(x, fmt), decode(y, fmt)), decode(w, "f32"), mode), "f32", mode), f"{fmt}x", f"{fmt}y", "w")
    c.write()


def video():
    c = Case("video", "Scalar and packed video instructions.", "manual, sections 9.7.18.1 and 9.7.18.2", "8.6", "sm_90")
    for name in "abc":
        c.input(name, 32, EDGE32 if name == "a" else mixed(32))
    part = {"b": 8, "h": 16, "": 32}

    def select(x, selector, sign):
        kind, index = (selector[0], int(selector[1])) if selector else ("", 0)
        bits = part[kind]
        return typed(x >> bits * index, f"{sign}{bits}")
    second = {"add": lambda r, z: r + z, "min": min, "max": max}
    basics = {"vadd": lambda x, y: x + y, "vsub": lambda x, y: x - y, "vabsdiff": lambda x, y: abs(x - y), "vmin": min, "vmax": max}
    for name, f in basics.items():
        for d, sa, sb, xa, xb in (("u", "u", "u", "", ""), ("s", "s", "s", "b1", "h0"), ("s", "u", "s", "h1", "b3"), ("u", "s", "u", "b0", "")):
            head = lambda more: f"{name}.{d}32.{sa}32.{sb}32{more} %d, %a{'.' + xa if xa else ''}, %b{'.' + xb if xb else ''}"
            raw = lambda x, y: f(select(x, xa, sa), select(y, xb, sb))
            sat = lambda x, y: clamp(raw(x, y), f"{d}32")
            c.row(head("") + ";", 32, lambda x, y: u(raw(x, y), 32), "a", "b")
            c.row(head(".sat") + ";", 32, lambda x, y: u(sat(x, y), 32), "a", "b")
            for op, g in second.items():
                c.row(head(f".sat.{op}") + ", %c;", 32, lambda x, y, z: u(g(sat(x, y), typed(z, f"{d}32")), 32), "a", "b", "c")
            c.row(head(".sat").replace("%d,", "%d.h1,") + ", %c;", 32, lambda x, y, z: u(clamp(raw(x, y), f"{d}16"), 16) << 16 | z & 0xFFFF, "a", "b", "c")
            c.row(head(".sat").replace("%d,", "%d.b2,") + ", %c;", 32, lambda x, y, z: u(clamp(raw(x, y), f"{d}8"), 8) << 16 | z & 0xFF00FFFF, "a", "b", "c")
    for left in (True, False):
        for mode in ("clamp", "wrap"):
            for sign in "us":
                def shift(x, y):
                    n = min(y, 32) if mode == "clamp" else y & 31
                    x = typed(x, f"{sign}32")
                    return x << n if left else x >> n
                name = "vshl" if left else "vshr"
                c.row(f"{name}.{sign}32.{sign}32.u32.{mode} %d, %a, %b;", 32, lambda x, y: u(shift(x, y), 32), "a", "b")
                c.row(f"{name}.{sign}32.{sign}32.u32.{mode}.add %d, %a, %b, %c;", 32, lambda x, y, z: u(shift(x, y) + z, 32), "a", "b", "c")
                c.row(f"{name}.{sign}32.{sign}32.u32.{mode} %d.h0, %a, %b, %c;", 32, lambda x, y, z: u(shift(x, y), 16) | z & 0xFFFF0000, "a", "b", "c")
    for relation in ("eq", "ne", "lt", "le", "gt", "ge"):
        for sa, sb in (("u", "u"), ("s", "s"), ("u", "s")):
            f = lambda x, y: int(compare(relation, typed(x, f"{sa}32"), typed(y, f"{sb}32")))
            c.row(f"vset.{sa}32.{sb}32.{relation} %d, %a, %b;", 32, f, "a", "b")
            c.row(f"vset.{sa}32.{sb}32.{relation}.add %d, %a, %b, %c;", 32, lambda x, y, z: u(f(x, y) + z, 32), "a", "b", "c")
            c.row(f"vset.{sa}32.{sb}32.{relation} %d.b3, %a, %b, %c;", 32, lambda x, y, z: f(x, y) << 24 | z & 0xFFFFFF, "a", "b", "c")
    for lanes, bits in ((2, 16), (4, 8)):
        pieces = lambda x, sign: [typed(x >> bits * i, f"{sign}{bits}") for i in range(lanes)]
        join = lambda list_of: sum(u(v, bits) << bits * i for i, v in enumerate(list_of))
        packed = dict(basics, vavrg=lambda x, y: None)
        for name, f in packed.items():
            for d, sa, sb in (("u", "u", "u"), ("s", "s", "s")):
                if name == "vavrg":
                    f = lambda x, y: x + y + 1 >> 1 if x + y >= 0 else -(-(x + y + 1) >> 1) if False else (x + y + (1 if x + y >= 0 else 0)) >> 1
                    if d == "s":
                        continue  # how negative sums round, the manual and hardware are to be asked
                each = lambda x, y: [f(p, q) for p, q in zip(pieces(x, sa), pieces(y, sb))]
                c.row(f"{name}{lanes}.{d}32.{sa}32.{sb}32 %d, %a, %b, %c;", 32, lambda x, y, z: join(each(x, y)), "a", "b", "c")
                c.row(f"{name}{lanes}.{d}32.{sa}32.{sb}32.sat %d, %a, %b, %c;", 32, lambda x, y, z: join([clamp(v, f"{d}{bits}") for v in each(x, y)]), "a", "b", "c")
                c.row(f"{name}{lanes}.{d}32.{sa}32.{sb}32.add %d, %a, %b, %c;", 32, lambda x, y, z: u(sum(each(x, y)) + z, 32), "a", "b", "c")
        for relation in ("eq", "lt", "ge"):
            each = lambda x, y: [int(compare(relation, p, q)) for p, q in zip(pieces(x, "s"), pieces(y, "s"))]
            c.row(f"vset{lanes}.s32.s32.{relation} %d, %a, %b, %c;", 32, lambda x, y, z: join(each(x, y)), "a", "b", "c")
            c.row(f"vset{lanes}.s32.s32.{relation}.add %d, %a, %b, %c;", 32, lambda x, y, z: u(sum(each(x, y)) + z, 32), "a", "b", "c")
    for ty in ("u", "s"):
        for sh in ("", ".shr7", ".shr15"):
            n = int(sh[4:] or 0)
            def product(po):
                return lambda x, y, z: typed(x, f"{ty}32") * typed(y, f"{ty}32") + typed(z, f"{ty}32") + po >> n
            c.row(f"vmad.{ty}32.{ty}32.{ty}32{sh} %d, %a, %b, %c;", 32, lambda x, y, z: u(product(0)(x, y, z), 32), "a", "b", "c")
            c.row(f"vmad.{ty}32.{ty}32.{ty}32.po{sh} %d, %a, %b, %c;", 32, lambda x, y, z: u(product(1)(x, y, z), 32), "a", "b", "c")
            c.row(f"vmad.{ty}32.{ty}32.{ty}32.sat{sh} %d, %a, %b, %c;", 32, lambda x, y, z: u(clamp(product(0)(x, y, z), f"{ty}32"), 32), "a", "b", "c")
    c.write()


# ---- approximations: within the manual's bounds ----


def approximate(name, about, source, version, target, rows, head):
    """`rows`: PTX from %x, %y (f32) or %u, %v (f64) to %d or %dd, the result's type, its values, and the bound of each."""
    xs, ys = [0.125, 0.5, 1.0, 1.75, 2.5, 3.0], [3.0, -0.75, 7.0, 1.5, -2.25, 0.3125]
    out = [f"// {about}", "// Written by tests/generate.py."]
    count = {t: sum(1 for r in rows if r[1] == t) * len(xs) for t in ("f32", "f64")}
    kinds = [t for t in ("f32", "f64") if count[t]]
    out.append(f"//@ launch: k<<<1, {len(xs)}>>>({', '.join(f'out o{t}: {t}[{count[t]}]' for t in kinds)})")
    at = dict.fromkeys(kinds, 0)
    body = []
    for code, ty, f, bound in rows:
        d, size = ("%d", 4) if ty == "f32" else ("%dd", 8)
        body += [f"    {line.strip()}" for line in code.splitlines()] + [f"    st.global.{ty} [%o{ty}+{at[ty] * size}], {d};"]
        wanted = []
        for i, (x, y) in enumerate(zip(xs, ys)):
            v = f(x, y)
            wanted.append(f"o{ty}[{at[ty] + i}] == {v!r} +- {bound(v)!r}")
        at[ty] += len(xs)
        out.append(f"//@ expect: {', '.join(wanted)} // {code.splitlines()[-1].strip()}")
    out += [f"//@ source: {source}", "", f".version {version}", f".target {target}"] + ([".address_size 64"] if version >= "2.3" else []) + [""]
    params = [f".param .u64 o{t}" for t in kinds]
    # Before PTX ISA 1.4 a kernel declares its parameters in its body.
    out += [f".{head}entry k({', '.join(params)})", "{"] if version >= "1.4" else [".entry k", "{"] + [f"    {p};" for p in params]
    out.append("    .reg .b16 %h; .reg .u32 %t; .reg .f32 %x, %y, %d; .reg .f64 %u, %v, %dd; .reg .u64 %of32, %of64, %p; .reg .pred %q;")
    out.append("    cvt.u32.u16 %t, %tid.x;" if version < "2.0" else "    mov.u32 %t, %tid.x;")
    for i, (x, y) in enumerate(zip(xs, ys)):
        import struct
        pattern = lambda v: "0f" + struct.pack(">f", v).hex().upper()
        out.append(f"    setp.eq.u32 %q, %t, {i};\n    @%q mov.f32 %x, {pattern(x)};\n    @%q mov.f32 %y, {pattern(y)};")
    out.append("    cvt.f64.f32 %u, %x;\n    cvt.f64.f32 %v, %y;")
    for t in kinds:
        out.append(f"    ld.param.u64 %o{t}, [o{t}];\n    mul.wide.u32 %p, %t, {4 if t == 'f32' else 8};\n    add.u64 %o{t}, %o{t}, %p;")
    out += body + ["    exit;", "}", ""]
    with open(os.path.join(HERE, f"table_{name}.ptx"), "w") as f:
        f.write("\n".join(out))


def approximations():
    import math
    relative = lambda bits: lambda v: abs(v) * 2.0 ** -bits
    absolute = lambda bits: lambda v: 2.0 ** -bits
    rows = []
    for ftz in ("", ".ftz"):
        rows += [
            (f"sin.approx{ftz}.f32 %d, %x;", "f32", lambda x, y: math.sin(x), absolute(20.5)),
            (f"cos.approx{ftz}.f32 %d, %x;", "f32", lambda x, y: math.cos(x), absolute(20.5)),
            (f"ex2.approx{ftz}.f32 %d, %y;", "f32", lambda x, y: 2.0 ** y, relative(22)),
            (f"lg2.approx{ftz}.f32 %d, %x;", "f32", lambda x, y: math.log2(x), absolute(22)),
            (f"rcp.approx{ftz}.f32 %d, %y;", "f32", lambda x, y: 1 / y, relative(23)),
            (f"rsqrt.approx{ftz}.f32 %d, %x;", "f32", lambda x, y: x ** -0.5, relative(22.9)),
            (f"sqrt.approx{ftz}.f32 %d, %x;", "f32", lambda x, y: x ** 0.5, relative(23)),
            (f"div.approx{ftz}.f32 %d, %x, %y;", "f32", lambda x, y: x / y, relative(22)),
            (f"div.full{ftz}.f32 %d, %x, %y;", "f32", lambda x, y: x / y, relative(22)),
        ]
    rows += [
        ("tanh.approx.f32 %d, %y;", "f32", lambda x, y: math.tanh(y), relative(11)),
        ("rcp.approx.ftz.f64 %dd, %v;", "f64", lambda x, y: 1 / y, relative(19)),
        ("rsqrt.approx.ftz.f64 %dd, %u;", "f64", lambda x, y: x ** -0.5, relative(19)),
        ("rsqrt.approx.f64 %dd, %u;", "f64", lambda x, y: x ** -0.5, relative(19)),
    ]
    for fmt, ex2, tanh in (("f16", 9.9, 10.98), ("bf16", 7, 8)):
        narrow, widen = f"cvt.rn.{fmt}.f32 %h, %y;", f"cvt.f32.{fmt} %d, %h;"
        ftz = ".ftz" if fmt == "bf16" else ""
        rows.append((f"{narrow}\nex2.approx{ftz}.{fmt} %h, %h;\n{widen}", "f32", lambda x, y: 2.0 ** y, relative(ex2)))
        rows.append((f"{narrow}\ntanh.approx.{fmt} %h, %h;\n{widen}", "f32", lambda x, y: math.tanh(y), absolute(tanh - 0.01)))
        for name, f, bound in ((f"ex2.approx{ftz}", lambda v: 2.0 ** v, relative(ex2)), ("tanh.approx", math.tanh, absolute(tanh - 0.01))):
            pair = f"{{ .reg .b32 %w; .reg .b16 %l;\ncvt.rn.{fmt}x2.f32 %w, %y, %x;\n{name}.{fmt}x2 %w, %w;\nmov.b32 {{%l, %h}}, %w; }}\n{widen}"
            rows.append((pair, "f32", lambda x, y, f=f: f(y), bound))
    approximate("approximate", "Approximations, each within its bound.", "manual, sections 9.7.3 and 9.7.4: the maximal errors stated there", "8.6", "sm_90", rows, "visible .")
    near = relative(21)
    old = [(f"{name}.f32 %d, %x;", "f32", f, near) for name, f in (("rcp", lambda x, y: 1 / x), ("rsqrt", lambda x, y: x ** -0.5), ("sqrt", lambda x, y: x ** 0.5))]
    old += [
        ("sin.f32 %d, %x;", "f32", lambda x, y: math.sin(x), absolute(20)), ("cos.f32 %d, %x;", "f32", lambda x, y: math.cos(x), absolute(20)),
        ("ex2.f32 %d, %y;", "f32", lambda x, y: 2.0 ** y, near), ("lg2.f32 %d, %x;", "f32", lambda x, y: math.log2(x), absolute(21)),
        ("div.f32 %d, %x, %y;", "f32", lambda x, y: x / y, near), ("mad.f32 %d, %x, %y, %x;", "f32", lambda x, y: x * y + x, near),
        ("div.f64 %dd, %u, %v;", "f64", lambda x, y: x / y, relative(50)), ("sqrt.f64 %dd, %u;", "f64", lambda x, y: x ** 0.5, relative(50)),
        ("rsqrt.f64 %dd, %u;", "f64", lambda x, y: x ** -0.5, relative(50)), ("mad.f64 %dd, %u, %v, %u;", "f64", lambda x, y: x * y + x, relative(50)),
    ]
    approximate("old", "Rows without rounding, as PTX 1.x writes them.", "manual, section 9.7.3: before PTX ISA 1.4 these are the approximate or nearest forms", "1.3", "sm_13", old, "")


if __name__ == "__main__":
    for make in (integers, compares, conversions, floats, halves, video, approximations):
        make()
