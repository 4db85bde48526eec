#!/usr/bin/env python3
"""Writes tests/run/arithmetic/rows_*.ptx: every pure row of the instruction table with operands at which something happens.

The expectations are computed here, in exact integer and rational arithmetic, from the manual's pseudocode (chapter 9.7; formats
of section 5.2.3). Nothing of margay is used.
"""
import itertools, math, os
from fractions import Fraction as F

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "run", "arithmetic")

# ---------------------------------------------------------------- floating point

class Format:
    def __init__(self, name, exponent, mantissa, nan, inf=True):
        self.name, self.e, self.m, self.nan, self.has_inf = name, exponent, mantissa, nan, inf
        self.bits, self.bias = 1 + exponent + mantissa, (1 << exponent - 1) - 1
        # One NaN, all ones, and no infinity.
        self.nan_only = name in ("e4m3", "ue5m3")

    def unpack(self, b):
        """'nan', ('inf', sign), or (Fraction, sign)."""
        s, e, m = b >> self.bits - 1 & 1, b >> self.m & (1 << self.e) - 1, b & (1 << self.m) - 1
        if self.has_inf and e == (1 << self.e) - 1:
            return "nan" if m else ("inf", s)
        if self.nan_only and e == (1 << self.e) - 1 and m == (1 << self.m) - 1:
            return "nan"
        value = F(m, 1 << self.m) * F(2) ** (1 - self.bias) if e == 0 else (1 + F(m, 1 << self.m)) * F(2) ** (e - self.bias)
        return (-value if s else value, s)

    def most(self):
        e = (1 << self.e) - (2 if self.has_inf else 1)
        m = (1 << self.m) - (2 if self.nan_only else 1)
        return e << self.m | m

    def pack(self, x, mode="rn", sign=0, satfinite=False):
        """Rounds a rational; `sign` is for zeros."""
        if x == 0:
            return sign << self.bits - 1
        s, a = int(x < 0), abs(x)
        e = max(math.floor(math.log2(a)) if a < F(2) ** 1000 and a > F(2) ** -1000 else a.numerator.bit_length() - a.denominator.bit_length(), 1 - self.bias)
        while F(2) ** e > a and e > 1 - self.bias:
            e -= 1
        while F(2) ** (e + 1) <= a:
            e += 1
        ulp = F(2) ** (e - self.m)
        n, rest = a // ulp, a / ulp - a // ulp
        up = {"rn": rest > F(1, 2) or rest == F(1, 2) and n % 2, "rna": rest >= F(1, 2), "rz": False,
              "rm": s and rest > 0, "rp": not s and rest > 0}[mode]
        n += int(up)
        if n == 1 << self.m + 1:
            n, e = n >> 1, e + 1
        code = n if n < 1 << self.m else (e + self.bias << self.m) + n - (1 << self.m)
        if code > self.most():
            away = mode == "rn" or mode == "rna" or mode == "rm" and s or mode == "rp" and not s
            code = self.most() if satfinite or not away else self.most() + 1 if self.has_inf else self.nan
        return s << self.bits - 1 | code


F16, BF16 = Format("f16", 5, 10, 0x7fff), Format("bf16", 8, 7, 0x7fff)
F32, F64 = Format("f32", 8, 23, 0x7fffffff), Format("f64", 11, 52, 0x7ff8000000000000)
E4M3, E5M2 = Format("e4m3", 4, 3, 0x7f, False), Format("e5m2", 5, 2, 0x7f)
E2M3, E3M2, E2M1 = Format("e2m3", 2, 3, 0x1f, False), Format("e3m2", 3, 2, 0x1f, False), Format("e2m1", 2, 1, 7, False)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def flush(fmt, b):
    return b & 1 << fmt.bits - 1 if b >> fmt.m & (1 << fmt.e) - 1 == 0 else b


def finish(fmt, b, ftz=False, sat=False, relu=False):
    nan = fmt.unpack(b) == "nan"
    if nan:
        return 0 if sat else fmt.nan
    if ftz:
        b = flush(fmt, b)
    if (sat or relu) and b >> fmt.bits - 1:
        return 0
    one = fmt.pack(F(1))
    return one if sat and b > one else b


def arith(op, fmt, args, mode="rn", ftz=False, sat=False, relu=False):
    """add, sub, mul, fma, div, rcp, sqrt on bits of a format."""
    args = [flush(fmt, b) if ftz else b for b in args]
    v = [fmt.unpack(b) for b in args]
    return finish(fmt, raw(op, fmt, v, mode), ftz, sat, relu)


def raw(op, fmt, v, mode):
    if "nan" in v:
        return fmt.nan
    inf = lambda s: fmt.pack(F(2) ** 5000, "rp" if not s else "rm") if False else (s << fmt.bits - 1 | fmt.most() + 1)
    is_inf = lambda x: x[0] == "inf"
    if op == "sub":
        x, s = v[1]
        v = [v[0], (x if x == "inf" else -x, 1 - s)]
        op = "add"
    if op == "rcp":
        v, op = [(F(1), 0), v[0]], "div"
    if op in ("mul", "fma"):
        a, b = v[:2]
        s = a[1] ^ b[1]
        if is_inf(a) or is_inf(b):
            if 0 in (a[0], b[0]):
                return fmt.nan
            p = ("inf", s)
        else:
            p = (a[0] * b[0], s)
        if op == "mul":
            return inf(s) if is_inf(p) else fmt.pack(p[0], mode, s)
        v, op = [p, v[2]], "add"
    if op == "add":
        a, b = v
        if is_inf(a) or is_inf(b):
            if is_inf(a) and is_inf(b) and a[1] != b[1]:
                return fmt.nan
            return inf(a[1] if is_inf(a) else b[1])
        zero = a[1] if a[1] == b[1] else int(mode == "rm")
        return fmt.pack(a[0] + b[0], mode, zero)
    if op == "div":
        a, b = v
        s = a[1] ^ b[1]
        if is_inf(a) and is_inf(b) or a[0] == 0 and b[0] == 0:
            return fmt.nan
        if is_inf(a) or b[0] == 0:
            return inf(s)
        return s << fmt.bits - 1 if is_inf(b) else fmt.pack(a[0] / b[0], mode, s)
    if op == "sqrt":
        a = v[0]
        if a[0] == 0:
            return a[1] << fmt.bits - 1
        if a[1]:
            return fmt.nan
        if is_inf(a):
            return inf(0)
        # Sixty-four bits more than the format has, and a sticky one.
        k = 1200
        root = math.isqrt(a[0].numerator * (1 << 2 * k) // a[0].denominator)
        exact = F(root, 1 << k)
        if exact * exact != a[0]:
            exact += F(1, 1 << k + 1)
        return fmt.pack(exact, mode)
    raise ValueError(op)


def extreme(op, fmt, args, ftz=False, nan=False, xorsign=False, absolute=False):
    args = [flush(fmt, b) if ftz else b for b in args]
    top = 1 << fmt.bits - 1
    sign = 0
    if xorsign:
        sign = (args[0] ^ args[1]) & top
    if xorsign or absolute:
        args = [b & ~top for b in args]
    nans = [fmt.unpack(b) == "nan" for b in args]
    if all(nans) or nan and any(nans):
        return fmt.nan
    rest = [b for b, n in zip(args, nans) if not n]
    key = lambda b: -(b & ~top) - 1 if b & top else b
    return (min if op == "min" else max)(rest, key=key) | sign


def compare(op, a, b, fmt=None, signed=False, bits=32):
    """A comparison of bits."""
    if fmt:
        x, y = fmt.unpack(a), fmt.unpack(b)
        unordered = "nan" in (x, y)
        if op == "num":
            return not unordered
        if op == "nan":
            return unordered
        if unordered:
            return len(op) == 3
        order = lambda v: (F(-2) ** 5001 if v[1] else F(2) ** 5000) if v[0] == "inf" else v[0]
        x, y, op = order(x), order(y), op[:2]
    else:
        x, y = (sign(a, bits), sign(b, bits)) if signed else (a, b)
        op = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(op, op)
    return {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[op]


def sign(x, bits):
    return x - (1 << bits) if x >> bits - 1 & 1 else x


def mask(x, bits):
    return x & (1 << bits) - 1


def pair(f, bits=16):
    """A function of halves over packed pairs."""
    return lambda *args: f(*[a & 0xffff for a in args]) | f(*[a >> 16 for a in args]) << 16


# ---------------------------------------------------------------- cases

class Case:
    def __init__(self, name, title, version="8.8", target="sm_100a"):
        self.name, self.title, self.version, self.target = name, title, version, target
        self.rows, self.lanes = [], 8

    def row(self, text, dst, srcs, inputs, f):
        """`text` with {0}, {1}.. for sources and {d}, {e} for destinations; register widths 1 (predicate), 16, 32, 64."""
        inputs = [t if isinstance(t, tuple) else (t,) for t in inputs]
        assert all(len(t) == len(srcs) for t in inputs), text
        inputs = (list(inputs) * self.lanes)[:max(self.lanes, 1)] if len(inputs) < self.lanes else inputs
        dst = dst if isinstance(dst, tuple) else (dst,)
        for k in range(0, len(inputs), self.lanes):
            part = inputs[k:k + self.lanes]
            part += [part[0]] * (self.lanes - len(part))
            results = [f(*t) for t in part]
            results = [r if isinstance(r, tuple) else (r,) for r in results]
            self.rows.append((text, dst, srcs, part, results))

    def write(self):
        body, inputs, outputs = [], [], []
        for text, dst, srcs, part, results in self.rows:
            names = {}
            for k, bits in enumerate(srcs):
                at = len(inputs) * 8
                inputs += [mask(t[k], max(bits, 1)) for t in part]
                body.append(f"    ld.global.b64 %l{k}, [%in+{at}];")
                name = f"%{'p' if bits == 1 else 'h' if bits == 16 else 'r' if bits == 32 else 'l'}{k}"
                if bits == 1:
                    body.append(f"    setp.ne.u64 {name}, %l{k}, 0;")
                elif bits < 64:
                    body.append(f"    cvt.u{bits}.u64 {name}, %l{k};")
                names[str(k)] = name
            for k, bits in enumerate(dst):
                names["de"[k]] = f"%{'p' if bits == 1 else 'h' if bits == 16 else 'r' if bits == 32 else 'l'}{8 + k}"
            line = text
            for key, name in names.items():
                line = line.replace("{" + key + "}", name)
            body += [f"    {l.strip()};" for l in line.split(";") if l.strip()]
            for k, bits in enumerate(dst):
                at, name = len(outputs) * 8, names["de"[k]]
                outputs += [mask(int(r[k]), max(bits, 1)) for r in results]
                if bits == 1:
                    body.append(f"    selp.u64 %l10, 1, 0, {name};")
                elif bits < 64:
                    body.append(f"    cvt.u64.u{bits} %l10, {name};")
                body.append(f"    st.global.b64 [%out+{at}], {'%l10' if bits < 64 else name};")
        hexes = lambda v: ", ".join(hex(x) for x in v)
        text = [f"//@ launch: k<<<1, {self.lanes}>>>(in a: b64[{len(inputs)}] = {{{hexes(inputs)}}}, out d: b64[{len(outputs)}])",
                f"//@ expect: d[0..{len(outputs)}] == {{{hexes(outputs)}}}",
                "//@ source: manual, chapter 9.7, in exact arithmetic: tests/generate/scalar.py", "", f"// {self.title}",
                f".version {self.version}", f".target {self.target}", ".address_size 64", "",
                ".visible .entry k(.param .u64 a, .param .u64 d)", "{", "    .reg .pred %p<12>;", "    .reg .b16 %h<12>;",
                "    .reg .b32 %r<12>, %lane;", "    .reg .b64 %l<12>, %in, %out, %at;", "    mov.u32 %lane, %tid.x;",
                "    mul.wide.u32 %at, %lane, 8;", "    ld.param.u64 %in, [a];", "    ld.param.u64 %out, [d];", "    add.u64 %in, %in, %at;",
                "    add.u64 %out, %out, %at;"] + body + ["    ret;", "}", ""]
        os.makedirs(OUT, exist_ok=True)
        with open(os.path.join(OUT, f"rows_{self.name}.ptx"), "w") as f:
            f.write("\n".join(text))


# Operands at which something happens.
U32 = [(0, 1), (0xffffffff, 1), (0x7fffffff, 0x80000000), (0x80000000, 0x80000000), (12345, 54321), (0xfffffffe, 3), (0x80000001, 0x7fffffff), (0x12345678, 0x9abcdef0)]
U64 = [(0, 1), (2**64 - 1, 1), (2**63 - 1, 2**63), (2**63, 2**63), (12345678901, 98765432109), (2**64 - 2, 3), (2**63 + 1, 2**63 - 1), (0x123456789abcdef0, 0xfedcba9876543210)]
U16 = [(0, 1), (0xffff, 1), (0x7fff, 0x8000), (0x8000, 0x8000), (1234, 4321), (0xfffe, 3), (0x8001, 0x7fff), (0x1234, 0x9abc)]
PAIRS = [(a | b << 16, c | d << 16) for (a, c), (b, d) in zip(U16, U16[3:] + U16[:3])]
S32 = [0x3f800000, 0xbf800000, 0x40490fdb, 0x00000001, 0x80000001, 0x7f800000, 0x7fc00000, 0x7f7fffff, 0x33800001, 0x4b7fffff, 0x80000000, 0x3eaaaaab]
S32P = [(S32[0], S32[8]), (S32[2], S32[11]), (S32[3], S32[3]), (S32[4], S32[0]), (S32[5], S32[7]), (S32[6], S32[0]), (S32[7], S32[7]), (S32[9], S32[2]), (S32[10], 0), (S32[5], 0xff800000), (0x00ffffff, 0x80800001), (0xc2f00001, 0x3dcccccd), (0x3f800000, 0x33000001), (0x3f800001, 0xbf800000), (0xc0a00000, 0x40a00000), (0x7effffff, 0x3fffffff)]
D64 = [0x3ff0000000000000, 0xc00921fb54442d18, 0x1, 0x8000000000000001, 0x7ff0000000000000, 0x7fefffffffffffff, 0x3ca0000000000001, 0x3fd5555555555555]
D64P = [(D64[0], D64[6]), (D64[1], D64[7]), (D64[2], D64[3]), (D64[4], D64[0]), (D64[5], D64[5]), (D64[7], D64[1]), (0x8000000000000000, 0), (0x000fffffffffffff, 0x4340000000000001)]
H16 = [0x3c00, 0xbc00, 0x4248, 0x0001, 0x8001, 0x7c00, 0x7e00, 0x7bff, 0x1401, 0x63ff, 0x8000, 0x3555]
H16P = [(H16[0], H16[8]), (H16[2], H16[11]), (H16[3], H16[3]), (H16[4], H16[0]), (H16[5], H16[7]), (H16[6], H16[0]), (H16[7], H16[7]), (0xfbff, 0x3801), (H16[10], 0), (H16[5], 0xfc00), (0x07ff, 0x8401), (0xd7f1, 0x2e66), (0x3c01, 0x3c01), (0x6bff, 0x1001), (0xc500, 0x4500), (0x5bff, 0x4bff)]
BF = [(a >> 16, b >> 16) for a, b in S32P]
third = lambda ps: [(a, b, ps[(i + 5) % len(ps)][0]) for i, (a, b) in enumerate(ps)]
both = lambda ps: [(ps[i][0] | ps[(i + 3) % len(ps)][0] << 16, ps[i][1] | ps[(i + 3) % len(ps)][1] << 16) for i in range(len(ps))]
both3 = lambda ts: [tuple(ts[i][k] | ts[(i + 3) % len(ts)][k] << 16 for k in range(3)) for i in range(len(ts))]
INT = {16: U16, 32: U32, 64: U64}


def integers():
    c = Case("integer", "Integer arithmetic and bits.")
    for t in ("s16", "s32", "s64"):
        b = int(t[1:])
        c.row(f"abs.{t} {{d}}, {{0}}", b, [b], [x for x, _ in INT[b]], lambda x, b=b: mask(abs(sign(x, b)), b))
        c.row(f"max.{t} {{d}}, {{0}}, {{1}}", b, [b, b], INT[b], lambda x, y, b=b: mask(max(sign(x, b), sign(y, b)), b))
        c.row(f"sad.{t} {{d}}, {{0}}, {{1}}, {{2}}", b, [b] * 3, [(x, y, 7) for x, y in INT[b]], lambda x, y, z, b=b: mask(z + abs(sign(x, b) - sign(y, b)), b))
    c.row("min.u32 {d}, {0}, {1}", 32, [32, 32], U32, min)
    c.row("sad.u32 {d}, {0}, {1}, {2}", 32, [32] * 3, [(x, y, 9) for x, y in U32], lambda x, y, z: mask(z + abs(x - y), 32))
    clamp = lambda v, b: mask(max(-(1 << b - 1), min((1 << b - 1) - 1, v)), b)
    c.row("add.sat.s32 {d}, {0}, {1}", 32, [32, 32], U32, lambda x, y: clamp(sign(x, 32) + sign(y, 32), 32))
    c.row("sub.sat.s32 {d}, {0}, {1}", 32, [32, 32], U32, lambda x, y: clamp(sign(x, 32) - sign(y, 32), 32))
    c.row("mad.hi.sat.s32 {d}, {0}, {1}, {2}", 32, [32] * 3, [(x, y, z) for (x, y), z in zip(U32, (1, 0x7fffffff, 0x80000000, 0x7fffffff, 5, 6, 0xc0000000, 8))], lambda x, y, z: clamp((sign(x, 32) * sign(y, 32) >> 32) + sign(z, 32), 32))
    for t, w in (("u16", 32), ("s16", 32), ("u32", 64), ("s32", 64)):
        b = int(t[1:])
        s = (lambda x, b=b: sign(x, b)) if t[0] == "s" else (lambda x: x)
        c.row(f"mad.wide.{t} {{d}}, {{0}}, {{1}}, {{2}}", w, [b, b, w], [(x, y, 1 << w - 2) for x, y in INT[b]], lambda x, y, z, s=s, w=w: mask(s(x) * s(y) + z, w))
    low24 = lambda x, signed: sign(x & 0xffffff, 24) if signed else x & 0xffffff
    for t in ("u32", "s32"):
        s = t == "s32"
        for half, shift in (("lo", 0), ("hi", 16)):
            c.row(f"mul24.{half}.{t} {{d}}, {{0}}, {{1}}", 32, [32, 32], U32, lambda x, y, s=s, h=shift: mask(low24(x, s) * low24(y, s) >> h, 32))
            c.row(f"mad24.{half}.{t} {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, [(x, y, 77) for x, y in U32], lambda x, y, z, s=s, h=shift: mask((low24(x, s) * low24(y, s) >> h) + z, 32))
    c.row("mad24.hi.sat.s32 {d}, {0}, {1}, {2}", 32, [32] * 3, [(x, y, z) for (x, y), z in zip(U32, (1, 0x7fffffff, 0x80000000, 2, 3, 4, 0x7fffffff, 0x80000000))], lambda x, y, z: clamp((low24(x, 1) * low24(y, 1) >> 16) + sign(z, 32), 32))
    for t in ("u16x2", "s16x2"):
        s = (lambda x: sign(x, 16)) if t[0] == "s" else (lambda x: x)
        c.row(f"add.{t} {{d}}, {{0}}, {{1}}", 32, [32, 32], PAIRS, pair(lambda x, y: mask(x + y, 16)))
        c.row(f"min.{t} {{d}}, {{0}}, {{1}}", 32, [32, 32], PAIRS, pair(lambda x, y, s=s: min(x, y, key=s)))
        c.row(f"max.{t} {{d}}, {{0}}, {{1}}", 32, [32, 32], PAIRS, pair(lambda x, y, s=s: max(x, y, key=s)))
    relu = lambda f, b: lambda x, y: mask(max(0, f(sign(x, b), sign(y, b))), b)
    for op, f in (("min", min), ("max", max)):
        c.row(f"{op}.relu.s32 {{d}}, {{0}}, {{1}}", 32, [32, 32], U32, relu(f, 32))
        c.row(f"{op}.s16x2.relu {{d}}, {{0}}, {{1}}".replace(".s16x2.relu", ".relu.s16x2"), 32, [32, 32], PAIRS, pair(relu(f, 16)))
    for b in (32, 64):
        xs = [x for x, _ in INT[b]]
        c.row(f"popc.b{b} {{d}}, {{0}}", 32, [b], xs, lambda x: bin(x).count("1"))
        c.row(f"clz.b{b} {{d}}, {{0}}", 32, [b], xs, lambda x, b=b: b - x.bit_length())
        c.row(f"brev.b{b} {{d}}, {{0}}", b, [b], xs, lambda x, b=b: int(bin(x)[2:].zfill(b)[::-1], 2))
        c.row(f"cnot.b{b} {{d}}, {{0}}", b, [b], xs, lambda x: int(x == 0))
        for t in "us":
            def bfind(x, b=b, t=t):
                x = mask(~x, b) if t == "s" and x >> b - 1 else x
                return x.bit_length() - 1 if x else 0xffffffff
            c.row(f"bfind.{t}{b} {{d}}, {{0}}", 32, [b], xs, bfind)
            c.row(f"bfind.shiftamt.{t}{b} {{d}}, {{0}}", 32, [b], xs, lambda x, b=b, f=bfind: f(x) if f(x) == 0xffffffff else b - 1 - f(x))
    c.row("cnot.b16 {d}, {0}", 16, [16], [0, 1, 0x8000], lambda x: int(x == 0))
    def fns(m, base, offset):
        base &= 31
        if offset == 0:
            return base if m >> base & 1 else 0xffffffff
        pos, count, step = base, 0, 1 if sign(offset, 32) > 0 else -1
        want = abs(sign(offset, 32))
        while 0 <= pos < 32:
            count += m >> pos & 1
            if count == want:
                return pos
            pos += step
        return 0xffffffff
    c.row("fns.b32 {d}, {0}, {1}, {2}", 32, [32] * 3, [(0xaa, 4, 1), (0xaa, 4, 0), (0xaa, 3, 0), (0xaa, 7, -1 & 0xffffffff), (0xaa, 1, 3), (0xaa, 0, 9), (0x80000001, 31, 1), (0x80000001, 30, -1 & 0xffffffff)], fns)
    def bmsk(a, b, wrap):
        a, b = (a & 31, b & 31) if wrap else (min(a, 32), min(b, 32))
        return mask(((1 << b) - 1) << a, 32)
    szext = lambda a, b, signed, wrap: (lambda n: (mask(sign(a & (1 << n) - 1, n), 32) if signed else a & (1 << n) - 1) if n else 0)(b & 31 if wrap else min(b, 32))
    pos = [(0, 5), (3, 8), (31, 4), (32, 1), (40, 40), (5, 32), (5, 33), (0, 0)]
    for w in ("clamp", "wrap"):
        c.row(f"bmsk.{w}.b32 {{d}}, {{0}}, {{1}}", 32, [32, 32], pos, lambda a, b, w=w: bmsk(a, b, w == "wrap"))
        for t in "us":
            c.row(f"szext.{w}.{t}32 {{d}}, {{0}}, {{1}}", 32, [32, 32], [(0x80000095, n) for n in (1, 5, 8, 31, 32, 33, 0, 40)], lambda a, b, w=w, t=t: szext(a, b, t == "s", w == "wrap"))
    for b in (16, 32, 64):
        shifts = [(x, n) for (x, _), n in zip(INT[b], (0, 1, b - 1, b, b + 1, 200, 5, 3))]
        for t in "bus":
            c.row(f"shr.{t}{b} {{d}}, {{0}}, {{1}}", b, [b, 32], shifts, lambda x, n, b=b, t=t: mask((sign(x, b) if t == "s" else x) >> min(n, b), b))
    for d, w in itertools.product("lr", ("clamp", "wrap")):
        def shf(a, b, n, d=d, w=w):
            n = n & 31 if w == "wrap" else min(n, 32)
            return mask((b << 32 | a) << n >> 32, 32) if d == "l" else mask((b << 32 | a) >> n, 32)
        c.row(f"shf.{d}.{w}.b32 {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, [(x, y, n) for (x, y), n in zip(U32, (0, 1, 31, 32, 33, 63, 5, 100))], shf)
    def lop(a, b, z, lut):
        return sum((lut >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | z >> i & 1) & 1) << i for i in range(32))
    for lut in (0x96, 0xe8, 0xca, 0x01):
        c.row(f"lop3.b32 {{d}}, {{0}}, {{1}}, {{2}}, {hex(lut)}", 32, [32] * 3, [(x, y, x ^ 0x5a5a5a5a) for x, y in U32], lambda a, b, z, lut=lut: lop(a, b, z, lut))
    for op in ("or", "and"):
        c.row(f"lop3.{op}.b32 {{d}}|{{e}}, {{0}}, {{1}}, {{2}}, 0x80, {{3}}", (32, 1), [32, 32, 32, 1], [(x, y, 0xffffffff, i & 1) for i, (x, y) in enumerate(U32)], lambda a, b, z, p, op=op: ((a & b & z), (bool(a & b & z) or p) if op == "or" else bool(a & b & z) and p))
    byte = lambda x, i, signed: sign(x >> 8 * i & 0xff, 8) if signed else x >> 8 * i & 0xff
    half = lambda x, i, signed: sign(x >> 16 * i & 0xffff, 16) if signed else x >> 16 * i & 0xffff
    for ta, tb in itertools.product("us", "us"):
        ins = [(x, y, 1000) for x, y in U32]
        c.row(f"dp4a.{ta}32.{tb}32 {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, ins, lambda a, b, z, s=ta == "s", u=tb == "s": mask(z + sum(byte(a, i, s) * byte(b, i, u) for i in range(4)), 32))
        for h, at in (("lo", 0), ("hi", 2)):
            c.row(f"dp2a.{h}.{ta}32.{tb}32 {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, ins, lambda a, b, z, s=ta == "s", u=tb == "s", at=at: mask(z + sum(half(a, i, s) * byte(b, at + i, u) for i in range(2)), 32))
    # Extended precision: pairs of instructions through the carry.
    for b in (32, 64):
        for t in "us":
            s = (lambda x, b=b: sign(x, b)) if t == "s" else (lambda x: x)
            ins = [(x, y, mask(~x, b), 3) for x, y in INT[b]]
            c.row(f"add.cc.{t}{b} {{d}}, {{0}}, {{1}}; addc.{t}{b} {{e}}, {{2}}, {{3}}", (b, b), [b] * 4, ins, lambda x, y, z, w, b=b: (x + y, z + w + (x + y >> b)))
            for h, shift in (("lo", 0), ("hi", b)):
                part = lambda x, y, s=s, h=shift, b=b: mask(s(x) * s(y) >> h, b)
                c.row(f"mad.{h}.cc.{t}{b} {{d}}, {{0}}, {{1}}, {{2}}; madc.{h}.{t}{b} {{e}}, {{0}}, {{1}}, {{3}}", (b, b), [b] * 4, ins,
                      lambda x, y, z, w, b=b, p=part: (p(x, y) + z, p(x, y) + w + (p(x, y) + z >> b)))
    for b in (16, 32, 64):
        for t in ("b", "u", "s"):
            c.row(f"slct.{t}{b}.s32 {{d}}, {{0}}, {{1}}, {{2}}", b, [b, b, 32], [(x, y, z) for (x, y), z in zip(INT[b], (0, 1, 0xffffffff, 0x80000000, 7, 0x7fffffff, 2, 3))], lambda x, y, z: y if z >> 31 else x)
    c.row("slct.f32.s32 {d}, {0}, {1}, {2}", 32, [32] * 3, [(1, 2, 0), (1, 2, 0x80000000)], lambda x, y, z: y if z >> 31 else x)
    zs = [0, 0x80000000, 0xbf800000, 0x3f800000, 0x7fc00000, 0x80000001, 1, 0xff800000]
    less = lambda z: F32.unpack(z) == "nan" or not (F32.unpack(z)[0] == "inf" and not F32.unpack(z)[1] or F32.unpack(z)[0] != "inf" and F32.unpack(z)[0] >= 0)
    c.row("slct.u32.f32 {d}, {0}, {1}, {2}", 32, [32] * 3, [(1, 2, z) for z in zs], lambda x, y, z: y if less(z) else x)
    c.row("slct.ftz.f64.f32 {d}, {0}, {1}, {2}", 64, [64, 64, 32], [(1, 2, z) for z in zs], lambda x, y, z: y if less(flush(F32, z)) else x)
    c.write()


def floats():
    c = Case("float", "Single and double precision: every rounding mode; subnormals, zeros, infinities, NaN.")
    for mode in ("", ".rn", ".rz", ".rm", ".rp"):
        m = mode[1:] or "rn"
        for op in ("add", "sub", "mul"):
            c.row(f"{op}{mode}.f32 {{d}}, {{0}}, {{1}}", 32, [32, 32], S32P, lambda a, b, op=op, m=m: arith(op, F32, (a, b), m))
            c.row(f"{op}{mode}.ftz.sat.f32 {{d}}, {{0}}, {{1}}", 32, [32, 32], S32P, lambda a, b, op=op, m=m: arith(op, F32, (a, b), m, True, True))
            c.row(f"{op}{mode}.f64 {{d}}, {{0}}, {{1}}", 64, [64, 64], D64P, lambda a, b, op=op, m=m: arith(op, F64, (a, b), m))
            two = [(S32P[i][0] | S32P[-1 - i][0] << 32, S32P[i][1] | S32P[-1 - i][1] << 32) for i in range(8)]
            c.row(f"{op}{mode}.f32x2 {{d}}, {{0}}, {{1}}", 64, [64, 64], two, lambda a, b, op=op, m=m: arith(op, F32, (mask(a, 32), mask(b, 32)), m) | arith(op, F32, (a >> 32, b >> 32), m) << 32)
        if not mode:
            continue
        t32, t64 = third(S32P), third(D64P)
        c.row(f"fma{mode}.f32 {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, t32, lambda *v, m=m: arith("fma", F32, v, m))
        c.row(f"fma{mode}.ftz.sat.f32 {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, t32, lambda *v, m=m: arith("fma", F32, v, m, True, True))
        c.row(f"mad{mode}.f32 {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, t32, lambda *v, m=m: arith("fma", F32, v, m))
        c.row(f"mad{mode}.f64 {{d}}, {{0}}, {{1}}, {{2}}", 64, [64] * 3, t64, lambda *v, m=m: arith("fma", F64, v, m))
        c.row(f"fma{mode}.f64 {{d}}, {{0}}, {{1}}, {{2}}", 64, [64] * 3, t64, lambda *v, m=m: arith("fma", F64, v, m))
        c.row(f"fma{mode}.ftz.f32x2 {{d}}, {{0}}, {{1}}, {{2}}", 64, [64] * 3, [tuple(t32[i][k] | t32[i + 8][k] << 32 for k in range(3)) for i in range(8)],
              lambda *v, m=m: arith("fma", F32, [mask(x, 32) for x in v], m, True) | arith("fma", F32, [x >> 32 for x in v], m, True) << 32)
        c.row(f"div{mode}.f32 {{d}}, {{0}}, {{1}}", 32, [32, 32], S32P, lambda *v, m=m: arith("div", F32, v, m))
        c.row(f"div{mode}.ftz.f32 {{d}}, {{0}}, {{1}}", 32, [32, 32], S32P, lambda *v, m=m: arith("div", F32, v, m, True))
        c.row(f"div{mode}.f64 {{d}}, {{0}}, {{1}}", 64, [64, 64], D64P[:6] + D64P[7:], lambda *v, m=m: arith("div", F64, v, m))
        for op in ("rcp", "sqrt"):
            c.row(f"{op}{mode}.f32 {{d}}, {{0}}", 32, [32], S32, lambda x, op=op, m=m: arith(op, F32, (x,), m))
            c.row(f"{op}{mode}.ftz.f32 {{d}}, {{0}}", 32, [32], S32, lambda x, op=op, m=m: arith(op, F32, (x,), m, True))
            positive = [x for x in D64 if not x >> 63 or op == "rcp"]
            c.row(f"{op}{mode}.f64 {{d}}, {{0}}", 64, [64], positive, lambda x, op=op, m=m: arith(op, F64, (x,), m))
        # Mixed precision: halves widened, one rounding.
        for h, fmt, ps in (("f16", F16, H16P), ("bf16", BF16, BF)):
            wide = lambda x, fmt=fmt: F32.nan if fmt.unpack(x) == "nan" else F32.pack(fmt.unpack(x)[0], "rn", fmt.unpack(x)[1]) if fmt.unpack(x)[0] != "inf" else fmt.unpack(x)[1] << 31 | 0x7f800000
            mixed = [(ps[i][0], S32P[i][1]) for i in range(16)]
            c.row(f"add{mode}.f32.{h} {{d}}, {{0}}, {{1}}", 32, [16, 32], mixed, lambda a, b, m=m, w=wide: arith("add", F32, (w(a), b), m))
            c.row(f"sub{mode}.sat.f32.{h} {{d}}, {{0}}, {{1}}", 32, [16, 32], mixed, lambda a, b, m=m, w=wide: arith("sub", F32, (w(a), b), m, False, True))
            c.row(f"fma{mode}.f32.{h} {{d}}, {{0}}, {{1}}, {{2}}", 32, [16, 16, 32], [(ps[i][0], ps[i][1], S32P[i][0]) for i in range(16)], lambda a, b, z, m=m, w=wide: arith("fma", F32, (w(a), w(b), z), m))
    top = lambda b: 1 << b - 1
    c.row("abs.f32 {d}, {0}", 32, [32], S32[:6] + S32[7:], lambda x: x & ~top(32))
    c.row("abs.ftz.f32 {d}, {0}", 32, [32], S32[:6] + S32[7:], lambda x: flush(F32, x) & ~top(32))
    c.row("neg.ftz.f32 {d}, {0}", 32, [32], S32[:6] + S32[7:], lambda x: flush(F32, x) ^ top(32))
    c.row("neg.f32 {d}, {0}", 32, [32], S32[:6] + S32[7:], lambda x: x ^ top(32))
    c.row("abs.f64 {d}, {0}", 64, [64], D64, lambda x: x & ~top(64))
    c.row("neg.f64 {d}, {0}", 64, [64], D64, lambda x: x ^ top(64))
    c.row("copysign.f32 {d}, {0}, {1}", 32, [32, 32], S32P, lambda a, b: b & ~top(32) | a & top(32))
    c.row("copysign.f64 {d}, {0}, {1}", 64, [64, 64], D64P, lambda a, b: b & ~top(64) | a & top(64))
    for op in ("min", "max"):
        for words, kw in (("", {}), (".ftz", {"ftz": True}), (".NaN", {"nan": True}), (".xorsign.abs", {"xorsign": True}), (".ftz.NaN.xorsign.abs", {"ftz": True, "nan": True, "xorsign": True})):
            c.row(f"{op}{words}.f32 {{d}}, {{0}}, {{1}}", 32, [32, 32], S32P, lambda *v, op=op, kw=kw: extreme(op, F32, v, **kw))
        c.row(f"{op}.f64 {{d}}, {{0}}, {{1}}", 64, [64, 64], D64P, lambda *v, op=op: extreme(op, F64, v))
        for words, kw in (("", {}), (".NaN.abs", {"nan": True, "absolute": True}), (".ftz", {"ftz": True})):
            c.row(f"{op}{words}.f32 {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, third(S32P), lambda *v, op=op, kw=kw: extreme(op, F32, v, **kw))
    def testp(what, fmt, x):
        e, m = x >> fmt.m & (1 << fmt.e) - 1, x & (1 << fmt.m) - 1
        all_ones = e == (1 << fmt.e) - 1
        return {"finite": not all_ones, "infinite": all_ones and not m, "number": not (all_ones and m), "notanumber": all_ones and m != 0,
                "normal": (e > 0 or m == 0) and not all_ones, "subnormal": e == 0 and m != 0}[what]
    for what in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        c.row(f"testp.{what}.f32 {{d}}, {{0}}", 1, [32], S32, lambda x, w=what: testp(w, F32, x))
        c.row(f"testp.{what}.f64 {{d}}, {{0}}", 1, [64], D64, lambda x, w=what: testp(w, F64, x))
    c.write()


def halves():
    c = Case("half", "Halves and bfloats, alone and in pairs: one rounding, subnormals kept unless `.ftz` says otherwise.", version="9.2")
    for t, fmt, ps in (("f16", F16, H16P), ("bf16", BF16, BF)):
        ts = third(ps)
        for op in ("add", "sub", "mul"):
            for mode in ("", ".rn"):
                f = lambda a, b, op=op, fmt=fmt: arith(op, fmt, (a, b))
                c.row(f"{op}{mode}.{t} {{d}}, {{0}}, {{1}}", 16, [16, 16], ps, f)
                c.row(f"{op}{mode}.{t}x2 {{d}}, {{0}}, {{1}}", 32, [32, 32], both(ps), pair(f))
            if t == "f16":
                g = lambda a, b, op=op: arith(op, F16, (a, b), "rn", True, True)
                c.row(f"{op}.rn.ftz.sat.f16 {{d}}, {{0}}, {{1}}", 16, [16, 16], ps, g)
        f = lambda *v, fmt=fmt: arith("fma", fmt, v)
        r = lambda *v, fmt=fmt: arith("fma", fmt, v, relu=True)
        c.row(f"fma.rn.{t} {{d}}, {{0}}, {{1}}, {{2}}", 16, [16] * 3, ts, f)
        c.row(f"fma.rn.{t}x2 {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, both3(ts), pair(f))
        c.row(f"fma.rn.relu.{t}x2 {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, both3(ts), pair(r))
        if t == "f16":
            c.row("fma.rn.ftz.sat.f16 {d}, {0}, {1}, {2}", 16, [16] * 3, ts, lambda *v: arith("fma", F16, v, "rn", True, True))
            c.row("fma.rn.ftz.relu.f16 {d}, {0}, {1}, {2}", 16, [16] * 3, ts, lambda *v: arith("fma", F16, v, "rn", True, False, True))
        plain = [p for p in ps if fmt.unpack(p[0]) != "nan"]
        xs = [p[0] for p in plain]
        c.row(f"neg.{t} {{d}}, {{0}}", 16, [16], xs, lambda x: x ^ 0x8000)
        c.row(f"neg.{t}x2 {{d}}, {{0}}", 32, [32], [x | xs[0] << 16 for x in xs], lambda x: x ^ 0x80008000)
        c.row(f"abs.{t} {{d}}, {{0}}", 16, [16], xs, lambda x: x & 0x7fff)
        if t == "f16":
            c.row("neg.ftz.f16 {d}, {0}", 16, [16], xs, lambda x: flush(F16, x) ^ 0x8000)
            c.row("abs.ftz.f16x2 {d}, {0}", 32, [32], [x | xs[3] << 16 for x in xs], pair(lambda x: flush(F16, x) & 0x7fff))
        for op in ("min", "max"):
            for words, kw in (("", {}), (".NaN", {"nan": True}), (".xorsign.abs", {"xorsign": True}), (".NaN.xorsign.abs", {"nan": True, "xorsign": True})):
                f = lambda a, b, op=op, fmt=fmt, kw=kw: extreme(op, fmt, (a, b), **kw)
                c.row(f"{op}{words}.{t} {{d}}, {{0}}, {{1}}", 16, [16, 16], ps, f)
                c.row(f"{op}{words}.{t}x2 {{d}}, {{0}}, {{1}}", 32, [32, 32], both(ps), pair(f))
    c.write()


def comparisons():
    c = Case("compare", "`set` and `setp`: every comparison, ordered and unordered, alone and combined.")
    c.lanes = 4
    FL = {"f16": (F16, H16P, 16), "bf16": (BF16, BF, 16), "f32": (F32, S32P, 32), "f64": (F64, D64P + [(0x7ff8000000000001, 0), (0, 0x7ff8000000000001)], 64)}
    OPS = ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
    join = {"and": lambda a, b: a and b, "or": lambda a, b: a or b, "xor": lambda a, b: bool(a) != bool(b)}
    true = {"u32": 0xffffffff, "s32": 0xffffffff, "f32": 0x3f800000, "f16": 0x3c00, "bf16": 0x3f80, "u16": 0xffff, "s16": 0xffff}
    width = {"u32": 32, "s32": 32, "f32": 32, "f16": 16, "bf16": 16, "u16": 16, "s16": 16}
    k = 0
    # Source types with their comparisons.
    sources = [(f"{t}{b}", b, INT[b], (lambda op, x, y, t=t, b=b: compare(op, x, y, None, t == "s", b)), {"b": ["eq", "ne"], "s": OPS[:6], "u": OPS[:6] + ["lo", "ls", "hi", "hs"]}[t]) for b in (16, 32, 64) for t in "bus"]
    sources += [(t, b, ps, (lambda op, x, y, fmt=fmt: compare(op, x, y, fmt)), OPS) for t, (fmt, ps, b) in FL.items()]
    for src, b, ps, f, ops in sources:
        ps = ps[:4] if src not in FL else [ps[i] for i in (1, 2, 4, 5, len(ps) - 1, len(ps) - 2, len(ps) - 3, 3)]
        for op in ops:
            # setp: one and two predicates, combined
            pq = src not in ("f16", "bf16")
            dst, text = ((1, 1), "{d}|{e}") if pq else (1, "{d}")
            c.row(f"setp.{op}.{src} {text}, {{0}}, {{1}}", dst, [b, b], ps, lambda x, y, op=op, f=f, pq=pq: (f(op, x, y), not f(op, x, y)) if pq else f(op, x, y))
        for op, how in zip(itertools.cycle(ops), ("and", "or", "xor")):
            c.row(f"setp.{op}.{how}.{src} {text}, {{0}}, {{1}}, {{2}}", dst, [b, b, 1], [(x, y, i & 1) for i, (x, y) in enumerate(ps)],
                  lambda x, y, p, op=op, how=how, f=f, pq=pq: (join[how](f(op, x, y), p), join[how](not f(op, x, y), p)) if pq else join[how](f(op, x, y), p))
        dsts = {"f16": ["f16", "bf16", "u16", "s32"], "bf16": ["u16", "s32"], "f32": ["u32", "f32", "f16", "bf16"], "f64": ["s32", "f32", "f16", "bf16"]}.get(src, ["u32", "s32", "f32", "f16", "bf16"])
        for d in dsts:
            for _ in range(2):
                op, how = ops[k % len(ops)], ("and", "or", "xor")[k % 3]
                k += 1
                c.row(f"set.{op}.{d}.{src} {{d}}, {{0}}, {{1}}", width[d], [b, b], ps, lambda x, y, op=op, f=f, d=d: true[d] if f(op, x, y) else 0)
                c.row(f"set.{op}.{how}.{d}.{src} {{d}}, {{0}}, {{1}}, !{{2}}", width[d], [b, b, 1], [(x, y, i & 1) for i, (x, y) in enumerate(ps)],
                      lambda x, y, p, op=op, how=how, f=f, d=d: true[d] if join[how](f(op, x, y), not p) else 0)
    # Pairs: two predicates, or two halves; one word for both with an integer destination.
    for t, fmt, ps in (("f16", F16, H16P[2:6]), ("bf16", BF16, BF[2:6])):
        for op in OPS:
            f = lambda x, y, op=op, fmt=fmt: compare(op, x, y, fmt)
            c.row(f"setp.{op}.{t}x2 {{d}}|{{e}}, {{0}}, {{1}}", (1, 1), [32, 32], both(ps), lambda x, y, f=f: (f(x & 0xffff, y & 0xffff), f(x >> 16, y >> 16)))
            c.row(f"setp.{op}.and.{t}x2 {{d}}|{{e}}, {{0}}, {{1}}, {{2}}", (1, 1), [32, 32, 1], [(x, y, i & 1) for i, (x, y) in enumerate(both(ps))], lambda x, y, p, f=f: (f(x & 0xffff, y & 0xffff) and p, f(x >> 16, y >> 16) and p))
            one = true[t]
            c.row(f"set.{op}.{t}x2.{t}x2 {{d}}, {{0}}, {{1}}", 32, [32, 32], both(ps), pair(lambda x, y, f=f, one=one: one if f(x, y) else 0))
            c.row(f"set.{op}.or.{t}x2.{t}x2 {{d}}, {{0}}, {{1}}, {{2}}", 32, [32, 32, 1], [(x, y, i & 1) for i, (x, y) in enumerate(both(ps))],
                  lambda x, y, p, f=f, one=one: (one if f(x & 0xffff, y & 0xffff) or p else 0) | (one if f(x >> 16, y >> 16) or p else 0) << 16)
        c.row(f"set.lt.u32.{t}x2 {{d}}, {{0}}, {{1}}", 32, [32, 32], both(ps), pair(lambda x, y, fmt=fmt: 0xffff if compare("lt", x, y, fmt) else 0))
        c.row(f"set.geu.xor.s32.{t}x2 {{d}}, {{0}}, {{1}}, {{2}}", 32, [32, 32, 1], [(x, y, i & 1) for i, (x, y) in enumerate(both(ps))],
              lambda x, y, p, fmt=fmt: (0xffff if compare("geu", x & 0xffff, y & 0xffff, fmt) != bool(p) else 0) | (0xffff if compare("geu", x >> 16, y >> 16, fmt) != bool(p) else 0) << 16)
    c.write()


def conversions():
    c = Case("convert", "`cvt`: every pair of kinds, rounding modes, saturation; packed and narrow formats.", version="9.1")
    read = lambda x, t: sign(x, int(t[1:])) if t[0] == "s" else x
    reg = lambda t: max(16, int(t[1:]))
    def sat_int(x, s, d):
        b = int(d[1:])
        v, low, high = read(x, s), (-(1 << b - 1) if d[0] == "s" else 0), ((1 << b - 1) - 1 if d[0] == "s" else (1 << b) - 1)
        v = max(low, min(high, v))
        # A destination of 8 bits lies in a register of 16, extended by its sign.
        return mask(v, reg(d))
    SAT = {"s16": ["u16", "u32", "u64", "s32", "s64"], "s32": ["u32", "u64", "s64"], "s64": ["u64"], "s8": ["u16", "u32", "u64", "s16", "s32", "s64"],
           "u16": ["u32", "u64", "s16", "s32", "s64"], "u32": ["u64", "s16", "s32", "s64"], "u64": ["s16", "s32", "s64"], "u8": ["u16", "u32", "u64", "s16", "s32", "s64"]}
    for d, ss in SAT.items():
        for s in ss:
            c.row(f"cvt.sat.{d}.{s} {{d}}, {{0}}", reg(d), [reg(s)], [x for x, _ in INT[reg(s)]], lambda x, s=s, d=d: sat_int(x, s, d))
    # Floats to integers: rounded, clamped; NaN is 0 (for f64 and 64 bits, the highest bit).
    def to_int(x, fmt, d, mode):
        b, v = int(d[1:]), fmt.unpack(x)
        low, high = (-(1 << b - 1), (1 << b - 1) - 1) if d[0] == "s" else (0, (1 << b) - 1)
        if v == "nan":
            return 1 << b - 1 if fmt is F64 or b == 64 else 0
        if v[0] == "inf":
            return mask(low if v[1] else high, reg(d))
        q = {"rni": lambda v: round(v), "rzi": lambda v: math.trunc(v), "rmi": math.floor, "rpi": math.ceil}[mode](v[0])
        return mask(max(low, min(high, q)), reg(d))
    SOME = [0x3f000000, 0x3fc00000, 0xbfc00000, 0x4f000000, 0xcf000000, 0x7fc00000, 0xff800000, 0x43808000, 0x5f000001, 0x40200000, 0x80000001, 0xc3008000]
    DSOME = [F64.pack(F32.unpack(x)[0], "rn", F32.unpack(x)[1]) for x in SOME if F32.unpack(x) != "nan" and F32.unpack(x)[0] != "inf"]
    for mode in ("rni", "rzi", "rmi", "rpi"):
        for d in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
            c.row(f"cvt.{mode}.{d}.f32 {{d}}, {{0}}", reg(d), [32], SOME, lambda x, d=d, m=mode: to_int(x, F32, d, m))
            c.row(f"cvt.{mode}.{d}.f16 {{d}}, {{0}}", reg(d), [16], H16, lambda x, d=d, m=mode: to_int(x, F16, d, m))
            if d[1:] != "8":  # those take registers of eight bits
                c.row(f"cvt.{mode}.{d}.bf16 {{d}}, {{0}}", reg(d), [16], [x >> 16 for x in SOME], lambda x, d=d, m=mode: to_int(x, BF16, d, m))
            c.row(f"cvt.{mode}.{d}.f64 {{d}}, {{0}}", reg(d), [64], DSOME, lambda x, d=d, m=mode: to_int(x, F64, d, m))
        for t, fmt, xs, b in (("f32", F32, S32, 32), ("f64", F64, D64[:4] + D64[5:], 64), ("f16", F16, H16, 16), ("bf16", BF16, [x >> 16 for x in S32], 16)):
            def whole(x, fmt=fmt, m=mode, sat=False):
                v = fmt.unpack(x)
                if v == "nan":
                    return 0 if sat else fmt.nan
                if v[0] == "inf":
                    return finish(fmt, x, sat=sat)
                q = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[m](v[0])
                return finish(fmt, fmt.pack(F(q), "rn", v[1]), sat=sat)
            c.row(f"cvt.{mode}.{t}.{t} {{d}}, {{0}}", b, [b], xs, whole)
            if t in ("f32", "f16"):
                c.row(f"cvt.{mode}.sat.{t}.{t} {{d}}, {{0}}", b, [b], xs, lambda x, w=whole: w(x, sat=True))
    # Integers to floats, floats to floats.
    def to_float(v, fmt, mode, ftz=False, sat=False, relu=False, satfinite=False):
        if v == "nan":
            return 0 if sat else fmt.nan
        if v[0] == "inf":
            code = fmt.pack(F(2) ** 2000 * (-1 if v[1] else 1), mode if satfinite else "rn", satfinite=satfinite)
        else:
            code = fmt.pack(v[0], mode, v[1], satfinite)
        return finish(fmt, code, ftz, sat, relu)
    def widen(x, fmt):
        return fmt.unpack(x)
    for mode in ("rn", "rz", "rm", "rp"):
        for s in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
            xs = [x for x, _ in INT[reg(s)]]
            narrow = lambda x, s=s: read(mask(x, int(s[1:])), s)
            for t, fmt, b in (("f32", F32, 32), ("f64", F64, 64), ("f16", F16, 16), ("bf16", BF16, 16)):
                if t == "bf16" and s[1:] == "8":
                    continue
                c.row(f"cvt.{mode}.{t}.{s} {{d}}, {{0}}", b, [reg(s)], xs, lambda x, n=narrow, fmt=fmt, m=mode: fmt.pack(F(n(x)), m))
        wide = [x for x in DSOME + D64 if F64.unpack(x)[0] != "inf"] + [0x7ff0000000000000, 0x3ff0000010000000, 0x3810000000000001, 0x47efffffe0000001]
        for t, fmt, b in (("f32", F32, 32), ("f16", F16, 16), ("bf16", BF16, 16)):
            c.row(f"cvt.{mode}.{t}.f64 {{d}}, {{0}}", b, [64], wide, lambda x, fmt=fmt, m=mode: to_float(widen(x, F64), fmt, m))
        c.row(f"cvt.{mode}.ftz.sat.f32.f64 {{d}}, {{0}}", 32, [64], wide, lambda x, m=mode: to_float(widen(x, F64), F32, m, True, True))
        more = S32 + [0x33800000, 0x477ff000, 0x3f801000, 0x387fe001]
        c.row(f"cvt.{mode}.f16.f32 {{d}}, {{0}}", 16, [32], more, lambda x, m=mode: to_float(widen(x, F32), F16, m))
        c.row(f"cvt.{mode}.bf16.f32 {{d}}, {{0}}", 16, [32], more, lambda x, m=mode: to_float(widen(x, F32), BF16, m))
        c.row(f"cvt.{mode}.ftz.sat.f16.f32 {{d}}, {{0}}", 16, [32], more, lambda x, m=mode: to_float(widen(flush(F32, x), F32), F16, m, False, True))
        c.row(f"cvt.{mode}.bf16.f16 {{d}}, {{0}}", 16, [16], H16, lambda x, m=mode: to_float(widen(x, F16), BF16, m))
        c.row(f"cvt.{mode}.f16.bf16 {{d}}, {{0}}", 16, [16], [x >> 16 for x in more], lambda x, m=mode: to_float(widen(x, BF16), F16, m))
    bfs = [x >> 16 for x in S32]
    c.row("cvt.f32.f16 {d}, {0}", 32, [16], H16, lambda x: to_float(widen(x, F16), F32, "rn"))
    c.row("cvt.sat.f32.f16 {d}, {0}", 32, [16], H16, lambda x: to_float(widen(x, F16), F32, "rn", False, True))
    c.row("cvt.f64.f16 {d}, {0}", 64, [16], H16[:6] + H16[7:], lambda x: to_float(widen(x, F16), F64, "rn"))
    c.row("cvt.f64.f32 {d}, {0}", 64, [32], S32[:6] + S32[7:], lambda x: to_float(widen(x, F32), F64, "rn"))
    c.row("cvt.f32.bf16 {d}, {0}", 32, [16], bfs, lambda x: to_float(widen(x, BF16), F32, "rn"))
    c.row("cvt.f64.bf16 {d}, {0}", 64, [16], bfs[:6] + bfs[7:], lambda x: to_float(widen(x, BF16), F64, "rn"))
    for mode in ("rn", "rz"):
        for t, fmt in (("f16", F16), ("bf16", BF16)):
            c.row(f"cvt.{mode}.relu.{t}.f32 {{d}}, {{0}}", 16, [32], S32, lambda x, fmt=fmt, m=mode: to_float(widen(x, F32), fmt, m, relu=True))
            c.row(f"cvt.{mode}.relu.satfinite.{t}.f32 {{d}}, {{0}}", 16, [32], S32, lambda x, fmt=fmt, m=mode: to_float(widen(x, F32), fmt, m, relu=True, satfinite=True))
            c.row(f"cvt.{mode}.satfinite.{t}.f32 {{d}}, {{0}}", 16, [32], S32, lambda x, fmt=fmt, m=mode: to_float(widen(x, F32), fmt, m, satfinite=True))
            for words, kw in (("", {}), (".relu", {"relu": True}), (".satfinite", {"satfinite": True})):
                c.row(f"cvt.{mode}{words}.{t}x2.f32 {{d}}, {{0}}, {{1}}", 32, [32, 32], S32P, lambda a, b, fmt=fmt, m=mode, kw=kw: to_float(widen(a, F32), fmt, m, **kw) << 16 | to_float(widen(b, F32), fmt, m, **kw))
    TF = Format("tf32", 8, 10, 0x3ffff)
    tf = lambda x, m, **kw: F32.nan if F32.unpack(x) == "nan" else to_float(widen(x, F32), TF, m, **kw) << 13
    for mode in ("rn", "rz"):
        c.row(f"cvt.{mode}.tf32.f32 {{d}}, {{0}}", 32, [32], S32, lambda x, m=mode: tf(x, m))
        c.row(f"cvt.{mode}.satfinite.relu.tf32.f32 {{d}}, {{0}}", 32, [32], S32, lambda x, m=mode: tf(x, m, satfinite=True, relu=True))
    c.row("cvt.rna.tf32.f32 {d}, {0}", 32, [32], S32 + [0x3f801000, 0x3f803000], lambda x: tf(x, "rna"))
    # Eight, six and four bits.
    tiny = [0x3f800000, 0xbfc00000, 0x43e00000, 0xc3f00000, 0x477fffff, 0x3a800000, 0x3b000001, 0x7f800000, 0xff800000, 0x80000000, 0x40e00000, 0x3e800000, 0x3e000001, 0x41700000, 0x7fc00000, 0x3f900000]
    tp = [(a, tiny[(i * 7 + 3) % 16]) for i, a in enumerate(tiny)]
    hs = [F16.nan if F32.unpack(x) == "nan" else F16.pack(F32.unpack(x)[0], "rn", F32.unpack(x)[1]) if F32.unpack(x)[0] != "inf" else F32.unpack(x)[1] << 15 | 0x7c00 for x in tiny]
    hp = [h | hs[(i * 5 + 2) % 16] << 16 for i, h in enumerate(hs)]
    bp = [x >> 16 | (tiny[(i * 5 + 2) % 16] >> 16) << 16 for i, x in enumerate(tiny)]
    def small(v, fmt, relu=False):
        """Narrow formats saturate to the largest; NaN is the positive NaN, or the largest where there is none."""
        if v == "nan":
            return fmt.nan
        s = v[1]
        code = fmt.pack(F(2) ** 2000 * (-1 if s else 1), "rn", satfinite=True) if v[0] == "inf" else fmt.pack(v[0], "rn", s, True)
        return 0 if relu and s else code
    for t, fmt, width, version in (("e4m3", E4M3, 8, 0), ("e5m2", E5M2, 8, 0), ("e2m3", E2M3, 8, 0), ("e3m2", E3M2, 8, 0), ("e2m1", E2M1, 4, 0)):
        four = width == 4
        put = lambda hi, lo, w=width: hi << w | lo
        # A destination of `.e2m1x2` is a `.b8` register.
        into = "{{ .reg .b8 %q; {body} mov.b16 {{d}}, {{%q, 0}}; }}"
        def dest(m, srcs, four=four):
            return f"{m} %q, {srcs}; cvt.u16.u8 {{d}}, %q" if four else f"{m} {{d}}, {srcs}"
        for relu in ("", ".relu"):
            r = relu != ""
            c.row(dest(f"cvt.rn.satfinite{relu}.{t}x2.f32", "{0}, {1}"), 16, [32, 32], tp, lambda a, b, fmt=fmt, r=r, put=put: put(small(F32.unpack(a), fmt, r), small(F32.unpack(b), fmt, r)))
            c.row(dest(f"cvt.rn.satfinite{relu}.{t}x2.f16x2", "{0}"), 16, [32], hp, lambda x, fmt=fmt, r=r, put=put: put(small(F16.unpack(x >> 16), fmt, r), small(F16.unpack(x & 0xffff), fmt, r)))
            c.row(dest(f"cvt.rn.satfinite{relu}.{t}x2.bf16x2", "{0}"), 16, [32], bp, lambda x, fmt=fmt, r=r, put=put: put(small(BF16.unpack(x >> 16), fmt, r), small(BF16.unpack(x & 0xffff), fmt, r)))
            codes = [(k * 37 + 5) & (255 if four else ((1 << fmt.bits) - 1) * 0x101) for k in range(16)] if four else [((k * 37 + 5) & (1 << fmt.bits) - 1) << 8 | (k * 91 + 1) & (1 << fmt.bits) - 1 for k in range(16)]
            wide = lambda x, fmt=fmt, r=r: to_float(fmt.unpack(x), F16, "rn", relu=r)
            if four:
                c.row(f"cvt.u8.u16 %q, {{0}}; cvt.rn{relu}.f16x2.{t}x2 {{d}}, %q", 32, [16], codes, lambda x, w=wide: w(x >> 4 & 15) << 16 | w(x & 15))
            else:
                c.row(f"cvt.rn{relu}.f16x2.{t}x2 {{d}}, {{0}}", 32, [16], codes, lambda x, w=wide: w(x >> 8) << 16 | w(x & 0xff))
    # Powers of two: the exponent of a magnitude, rounded down or up.
    def ue8(v, mode, finite):
        if v == "nan":
            return 0xff
        if v[0] == "inf":
            return 0xfe if finite else 0xff
        a = abs(v[0])
        if a == 0:
            return 0
        e = math.floor(math.log2(a))
        e += int(mode == "rp" and a != F(2) ** e)
        code = max(0, min(255, e + 127))
        return min(code, 0xfe) if finite else code
    ups = [(0x3f800000, 0x40400000), (0x00000001, 0x7f7fffff), (0x3fc00000, 0), (0x7f800000, 0x7fc00000), (0x40000001, 0x34000000), (0x00800001, 0x00400000)]
    for mode in ("rz", "rp"):
        for finite in ("", ".satfinite"):
            c.row(f"cvt.{mode}{finite}.ue8m0x2.f32 {{d}}, {{0}}, {{1}}", 16, [32, 32], ups, lambda a, b, m=mode, s=finite != "": ue8(F32.unpack(a), m, s) << 8 | ue8(F32.unpack(b), m, s))
            c.row(f"cvt.{mode}{finite}.ue8m0x2.bf16x2 {{d}}, {{0}}", 16, [32], [a >> 16 << 16 | b >> 16 for a, b in ups], lambda x, m=mode, s=finite != "": ue8(BF16.unpack(x >> 16), m, s) << 8 | ue8(BF16.unpack(x & 0xffff), m, s))
    back = lambda e: BF16.nan if e == 0xff else BF16.pack(F(2) ** (e - 127))
    c.row("cvt.rn.bf16x2.ue8m0x2 {d}, {0}", 32, [16], [0x7f80, 0x00ff, 0x01fe, 0x8070, 0x7e81, 0xff00], lambda x: back(x >> 8) << 16 | back(x & 0xff))
    # cvt.pack
    for d in ("u16", "s16"):
        c.row(f"cvt.pack.sat.{d}.s32 {{d}}, {{0}}, {{1}}", 32, [32, 32], U32 + [(40000, 0xffff8000), (70000, 0xffff0000)], lambda a, b, d=d: mask(sat_int(a, "s32", d), 16) << 16 | mask(sat_int(b, "s32", d), 16))
    for d, b in (("u8", 8), ("s8", 8), ("u4", 4), ("s4", 4), ("u2", 2), ("s2", 2)):
        low, high = (-(1 << b - 1), (1 << b - 1) - 1) if d[0] == "s" else (0, (1 << b) - 1)
        f = lambda x, b=b, low=low, high=high: mask(max(low, min(high, sign(x, 32))), b)
        c.row(f"cvt.pack.sat.{d}.s32.b32 {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, [(x, y, 0x12345678) for x, y in U32 + [(1, 2), (0xffffffff, 100)]], lambda x, y, z, f=f, b=b: mask(z << 2 * b, 32) | f(x) << b | f(y))
    c.write()
    fix(os.path.join(OUT, "rows_convert.ptx"))


def stochastic():
    """`.rs` adds random bits at the top of what is cut off; a carry rounds away from zero. `.oob`; `.s2f6`; directed bfloats."""
    c = Case("newer", "Rows of the latest versions: stochastic rounding, out-of-bounds NaN, `.s2f6`, directed rounding of bfloats.", version="9.2", target="sm_100a")
    up = lambda x, cut, random, width: (x >> cut) + (1 if (x & (1 << cut) - 1) + (random << cut - width) >> cut else 0)
    # The exponents stay: sums of 1.x with the bits that are cut off.
    xs = [0x3f808000, 0x3f807fff, 0x3f80c001, 0xbf808000, 0x3fa00000, 0x3f801000, 0xbf801fff, 0x3f80f000]
    rs = [0x80008000, 0x80007fff, 0x40003fff, 0x1000ffff, 0, 0xffff0fff, 0x0001f000, 0x7fff1000]
    ins = [(x, xs[(i + 3) % 8], r) for i, (x, r) in enumerate(zip(xs, rs))]
    c.row("cvt.rs.bf16x2.f32 {d}, {0}, {1}, {2}", 32, [32] * 3, ins, lambda a, b, r: up(a, 16, r >> 16, 16) << 16 | up(b, 16, r & 0xffff, 16))
    to16 = lambda x, r: (x >> 31) << 15 | up(x & 0x7fffffff, 13, r & 0x1fff, 13) - (112 << 10)
    c.row("cvt.rs.f16x2.f32 {d}, {0}, {1}, {2}", 32, [32] * 3, ins, lambda a, b, r: to16(a, r >> 16) << 16 | to16(b, r))
    relu = lambda x, v: 0 if x >> 31 else v
    c.row("cvt.rs.relu.bf16x2.f32 {d}, {0}, {1}, {2}", 32, [32] * 3, ins, lambda a, b, r: relu(a, up(a, 16, r >> 16, 16)) << 16 | relu(b, up(b, 16, r & 0xffff, 16)))
    # Of two elements that share a half, the first takes its bits in reverse order: measured on sm_100 by others.
    back = lambda half: int(f"{half:016b}"[::-1], 2)
    wide = [0x3f880000, 0x3f980001, 0xbf940000, 0x3fb7ffff, 0x3fc40000, 0xbfa80000, 0x3fd00001, 0x3f87ffff]
    fours = [(wide[i], wide[(i + 1) % 8], wide[(i + 2) % 8], wide[(i + 5) % 8], r) for i, r in enumerate(rs)]
    for t, m, bias in (("e4m3", 3, 7), ("e5m2", 2, 15), ("e2m3", 3, 1), ("e3m2", 2, 3)):
        width = 8 if t in ("e4m3", "e5m2") else 6
        code = lambda x, r, m=m, bias=bias, w=width: (x >> 31) << w - 1 | up(x & 0x7fffffff, 23 - m, r, 16) - (127 - bias << m)
        c.row("cvt.rs.satfinite." + t + "x4.f32 {d}, {{0}, {1}, {2}, {3}}, {4}", 32, [32] * 5, fours,
              lambda a, b, e, f, r, code=code: code(a, back(r >> 16)) << 24 | code(b, r >> 16) << 16 | code(e, back(r & 0xffff)) << 8 | code(f, r & 0xffff))
    byte = lambda r, high: (r >> 24 & 0xff) << 8 | r >> 8 & 0xff if high else (r >> 16 & 0xff) << 8 | r & 0xff
    four = lambda x, r: (x >> 31) << 3 | up(x & 0x7fffffff, 22, r, 16) - (126 << 1)
    c.row("cvt.rs.satfinite.e2m1x4.f32 {d}, {{0}, {1}, {2}, {3}}, {4}", 16, [32] * 5, fours,
          lambda a, b, e, f, r: four(a, back(byte(r, True))) << 12 | four(b, byte(r, True)) << 8 | four(e, back(byte(r, False))) << 4 | four(f, byte(r, False)))
    for t, fmt, ps in (("f16", F16, H16P), ("bf16", BF16, BF)):
        oob = third(ps)[:8] + [(0x7fff, ps[0][0], ps[1][0]), (ps[0][0], 0x7fff, ps[1][0])]
        f = lambda *v, fmt=fmt: 0 if 0x7fff in v[:2] else arith("fma", fmt, v)
        c.row(f"fma.rn.oob.{t} {{d}}, {{0}}, {{1}}, {{2}}", 16, [16] * 3, oob, f)
        c.row(f"fma.rn.oob.relu.{t}x2 {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, both3(oob), pair(lambda *v, fmt=fmt: 0 if 0x7fff in v[:2] else arith("fma", fmt, v, relu=True)))
    c.row("fma.rn.oob.sat.f16 {d}, {0}, {1}, {2}", 16, [16] * 3, third(H16P) + [(0x7fff, 0x3c00, 0x3c00)], lambda *v: 0 if 0x7fff in v[:2] else arith("fma", F16, v, sat=True))
    for mode in ("rz", "rm", "rp"):
        f = lambda *v, m=mode: arith("fma", BF16, v, m)
        c.row(f"fma.{mode}.bf16 {{d}}, {{0}}, {{1}}, {{2}}", 16, [16] * 3, third(BF), f)
        c.row(f"fma.{mode}.relu.bf16x2 {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, both3(third(BF)), pair(lambda *v, m=mode: arith("fma", BF16, v, m, relu=True)))
        c.row(f"fma.{mode}.oob.bf16 {{d}}, {{0}}, {{1}}, {{2}}", 16, [16] * 3, third(BF)[:7] + [(0x7fff, 0x3f80, 0x3f80)], lambda *v, m=mode: 0 if 0x7fff in v[:2] else arith("fma", BF16, v, m))
    # Two's complement in units of 1/64.
    values = [0x3f800000, 0xbf800000, 0x3c800000, 0x40000000, 0xc0400000, 0x3c400000, 0x3d000001, 0xbc800001]
    def s2f6(v, scale=0):
        q = F32.unpack(v)[0] * 64 / F(2) ** scale
        return mask(max(-128, min(127, round(q))), 8)
    vp = [(v, values[(i + 3) % 8]) for i, v in enumerate(values)]
    c.row("cvt.rn.satfinite.s2f6x2.f32 {d}, {0}, {1}", 16, [32, 32], vp, lambda a, b: s2f6(a) << 8 | s2f6(b))
    c.row("cvt.rn.satfinite.s2f6x2.bf16x2 {d}, {0}", 16, [32], [(a >> 16) << 16 | b >> 16 for a, b in vp], lambda x: s2f6(x >> 16 << 16) << 8 | s2f6(mask(x << 16, 32)))
    widen = lambda code: BF16.pack(F(sign(code, 8), 64), "rn", 0)
    c.row("cvt.rn.bf16x2.s2f6x2 {d}, {0}", 32, [16], [0x0140, 0x80ff, 0x7f00, 0xc001, 0x2040, 0x3355, 0x0000, 0x81fe], lambda x: widen(x >> 8) << 16 | widen(x & 0xff))
    c.write()


def fix(path):
    """Conversions with `.e2m1x2` need a register of eight bits."""
    text = open(path).read().replace("    .reg .b16 %h<12>;", "    .reg .b8 %q;\n    .reg .b16 %h<12>;")
    open(path, "w").write(text)


def video():
    c = Case("video", "Video instructions, by the manual's pseudocode.")
    c.lanes = 4
    def select(x, t, sel):
        if sel:
            width = 8 if sel[0] == "b" else 16
            x, b = x >> width * int(sel[1:]) & (1 << width) - 1, width
        else:
            b = 32
        return sign(x, b) if t[0] == "s" else x
    def saturate(v, t, dsel):
        b = {"b": 8, "h": 16}.get(dsel[:1], 32)
        low, high = (-(1 << b - 1), (1 << b - 1) - 1) if t[0] == "s" else (0, (1 << b) - 1)
        return max(low, min(high, v))
    def merge(v, dsel, z):
        width = 8 if dsel[0] == "b" else 16
        at = width * int(dsel[1:])
        return z & ~((1 << width) - 1 << at) & 0xffffffff | mask(v, width) << at
    second = {"add": lambda v, z, t: v + (sign(z, 32) if t[0] == "s" else z), "min": lambda v, z, t: min(v, sign(z, 32) if t[0] == "s" else z), "max": lambda v, z, t: max(v, sign(z, 32) if t[0] == "s" else z)}
    base = {"vadd": lambda a, b: a + b, "vsub": lambda a, b: a - b, "vabsdiff": lambda a, b: abs(a - b), "vmin": min, "vmax": max}
    ins = [(0x80ff7f01, 0x0102fe80, 0x11223344), (0xffffffff, 0x80000001, 5), (0x7f80ff00, 0x80008001, 0xfffffffb), (0x12345678, 0x9abcdef0, 0x7fffffff)]
    k = 0
    wrap = lambda v, t: v  # the second operation takes the intermediate result of 34 bits
    for op, f in base.items():
        for td, ta, tb in (("u32", "u32", "u32"), ("s32", "u32", "s32"), ("s32", "s32", "s32"), ("u32", "s32", "u32")):
            sa, sb = ("", "b1", "h1", "b3")[k % 4], ("h0", "", "b2", "b0")[(k // 2) % 4]
            ds, k = ("b0", "b3", "h1", "h0", "b2")[k % 5], k + 1
            g = lambda x, y, f=f, ta=ta, tb=tb, sa=sa, sb=sb: f(select(x, ta, sa), select(y, tb, sb))
            A, B = "{0}" + ("." + sa if sa else ""), "{1}" + ("." + sb if sb else "")
            for sat in ("", ".sat"):
                done = (lambda v, td=td, ds="": saturate(v, td, ds)) if sat else (lambda v, td=td, ds="": v)
                c.row(f"{op}.{td}.{ta}.{tb}{sat} {{d}}, {A}, {B}", 32, [32] * 3, ins, lambda x, y, z, g=g, done=done: mask(done(g(x, y)), 32))
                c.row(f"{op}.{td}.{ta}.{tb}{sat} {{d}}.{ds}, {A}, {B}, {{2}}", 32, [32] * 3, ins, lambda x, y, z, g=g, done=done, ds=ds: merge(done(g(x, y), ds=ds), ds, z))
                o = ("add", "min", "max")[k % 3]
                c.row(f"{op}.{td}.{ta}.{tb}{sat}.{o} {{d}}, {A}, {B}, {{2}}", 32, [32] * 3, ins, lambda x, y, z, g=g, done=done, o=o, td=td: mask(second[o](wrap(done(g(x, y)), td), z, td), 32))
    # Shifts: amounts are unsigned; clamped to 32 or taken modulo 32.
    for op, td, ta, w in itertools.product(("vshl", "vshr"), ("u32", "s32"), ("u32", "s32"), ("clamp", "wrap")):
        def shift(x, n, op=op, ta=ta, w=w):
            n = n & 31 if w == "wrap" else min(n, 32)
            v = select(x, ta, "")
            return v << n if op == "vshl" else v >> n
        sh = [(x, n, z) for (x, _, z), n in zip(ins, (1, 31, 33, 64))]
        c.row(f"{op}.{td}.{ta}.u32.{w} {{d}}, {{0}}, {{1}}", 32, [32] * 3, sh, lambda x, n, z, s=shift: mask(s(x, n), 32))
        c.row(f"{op}.{td}.{ta}.u32.sat.{w} {{d}}, {{0}}, {{1}}", 32, [32] * 3, sh, lambda x, n, z, s=shift, td=td: mask(saturate(s(x, n), td, ""), 32))
        c.row(f"{op}.{td}.{ta}.u32.{w} {{d}}.h1, {{0}}, {{1}}, {{2}}", 32, [32] * 3, sh, lambda x, n, z, s=shift: merge(s(x, n), "h1", z))
        c.row(f"{op}.{td}.{ta}.u32.{w}.max {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, sh, lambda x, n, z, s=shift, td=td: mask(max(wrap(s(x, n), td), sign(z, 32) if td[0] == "s" else z), 32))
    for ta, tb, op in itertools.product(("u32", "s32"), ("u32", "s32"), ("eq", "ne", "lt", "le", "gt", "ge")):
        sa, sb = ("", "b1", "h1")[k % 3], ("h0", "", "b2")[k % 3]
        k += 1
        A, B = "{0}" + ("." + sa if sa else ""), "{1}" + ("." + sb if sb else "")
        def test(x, y, op=op, ta=ta, tb=tb, sa=sa, sb=sb):
            a, b = select(x, ta, sa), select(y, tb, sb)
            return int({"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[op])
        c.row(f"vset.{ta}.{tb}.{op} {{d}}, {A}, {B}", 32, [32] * 3, ins, lambda x, y, z, t=test: t(x, y))
        c.row(f"vset.{ta}.{tb}.{op} {{d}}.b2, {A}, {B}, {{2}}", 32, [32] * 3, ins, lambda x, y, z, t=test: merge(t(x, y), "b2", z))
        c.row(f"vset.{ta}.{tb}.{op}.add {{d}}, {A}, {B}, {{2}}", 32, [32] * 3, ins, lambda x, y, z, t=test: mask(t(x, y) + z, 32))
    # Products of 33 bits, scaled; `c` has the product's sign.
    for ta, tb, sh, po in itertools.product(("u32", "s32"), ("u32", "s32"), ("", ".shr7", ".shr15"), ("", ".po")):
        td = "s32" if "s" in ta + tb else "u32"
        def vmad(x, y, z, ta=ta, tb=tb, sh=sh, po=po, td=td):
            v = select(x, ta, "h0") * select(y, tb, "") + (sign(z, 32) if td[0] == "s" else z) + int(po != "")
            return mask(v >> {"": 0, ".shr7": 7, ".shr15": 15}[sh], 32)
        c.row(f"vmad.{td}.{ta}.{tb}{po}{sh} {{d}}, {{0}}.h0, {{1}}, {{2}}", 32, [32] * 3, ins, vmad)
    # Two and four lanes: elements out of both words, a mask of those written, the rest from `c`; or a sum.
    lanes = {"vadd": lambda a, b: a + b, "vsub": lambda a, b: a - b, "vavrg": lambda a, b: (a + b + 1 if a + b >= 0 else a + b) >> 1 if a + b >= 0 else -((-(a + b)) >> 1), "vabsdiff": lambda a, b: abs(a - b), "vmin": min, "vmax": max}
    for n in (2, 4):
        width, unit = 32 // n, "h" if n == 2 else "b"
        full = "10" if n == 2 else "3210"
        for op, f in lanes.items():
            for td, ta, tb in (("u32", "u32", "u32"), ("s32", "s32", "s32"), ("s32", "u32", "s32")):
                elements = lambda x, t, w=width, n=n: [sign(x >> w * i & (1 << w) - 1, w) if t[0] == "s" else x >> w * i & (1 << w) - 1 for i in range(n)]
                def each(x, y, f=f, ta=ta, tb=tb, e=elements):
                    return [f(a, b) for a, b in zip(e(x, ta), e(y, tb))]
                if op == "vavrg" and td == "s32":
                    # A tie rounds away from zero.
                    def each(x, y, ta=ta, tb=tb, e=elements):
                        return [math.floor(F(a + b, 2) + F(1, 2)) if a + b >= 0 else -math.floor(F(-(a + b), 2) + F(1, 2)) for a, b in zip(e(x, ta), e(y, tb))]
                clip = lambda v, td=td, u=unit: saturate(v, td, u)
                glue = lambda vs, w=width: sum(mask(v, w) << w * i for i, v in enumerate(vs))
                c.row(f"{op}{n}.{td}.{ta}.{tb} {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, ins, lambda x, y, z, each=each, glue=glue: glue(each(x, y)))
                c.row(f"{op}{n}.{td}.{ta}.{tb}.sat {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, ins, lambda x, y, z, each=each, glue=glue, clip=clip: glue([clip(v) for v in each(x, y)]))
                m = f"{unit}1" if n == 2 else "b20"
                keep = 0x0000ffff if n == 2 else 0xff00ff00
                c.row(f"{op}{n}.{td}.{ta}.{tb} {{d}}.{m}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, ins, lambda x, y, z, each=each, glue=glue, keep=keep: glue(each(x, y)) & ~keep & 0xffffffff | z & keep)
                c.row(f"{op}{n}.{td}.{ta}.{tb}.add {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, ins, lambda x, y, z, each=each: mask(sum(each(x, y)) + z, 32))
        for ta, tb, op in itertools.product(("u32", "s32"), ("u32", "s32"), ("eq", "ne", "lt", "le", "gt", "ge")):
            elements = lambda x, t, w=width, n=n: [sign(x >> w * i & (1 << w) - 1, w) if t[0] == "s" else x >> w * i & (1 << w) - 1 for i in range(n)]
            def tests(x, y, op=op, ta=ta, tb=tb, e=elements):
                return [int({"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[op]) for a, b in zip(e(x, ta), e(y, tb))]
            c.row(f"vset{n}.{ta}.{tb}.{op} {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, ins, lambda x, y, z, t=tests, w=width: sum(v << w * i for i, v in enumerate(t(x, y))))
            c.row(f"vset{n}.{ta}.{tb}.{op}.add {{d}}, {{0}}, {{1}}, {{2}}", 32, [32] * 3, ins, lambda x, y, z, t=tests: mask(sum(t(x, y)) + z, 32))
    c.write()


if __name__ == "__main__":
    integers()
    floats()
    halves()
    comparisons()
    conversions()
    video()
    stochastic()
