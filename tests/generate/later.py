#!/usr/bin/env python3
"""Writes tests/run/arithmetic/rows_later.ptx: the pure rows that PTX ISA 9.2 to 9.5 brought.

Expectations as in scalar.py. What a manual at hand does not say is from NVIDIA's headers (cuda_fp8.hpp: `.ue5m3` holds
magnitudes and overflows to NaN, or with `.rz` to the largest number) and from the instructions that ptxas makes.
"""
import os
from scalar import (BF, BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32, H16P, OUT, PAIRS, S32, S32P, U32, U64, F, Case, Format, arith, fix, flush,
                    mask, pair, sign)

QUADS = [(0x01ff807f, 0x01018001), (0x00ff7f80, 0x80ff0180), (0x12345678, 0x9abcdef0), (0xffffffff, 0x01010101), (0x7f7f7f7f, 0x01020380), (0, 0xff00ff00), (0x80808080, 0x80808080), (0xfe01c864, 0x03fe4040)]
# Five bits of exponent, three of mantissa: the sign that the type lacks is always zero here.
UE5M3 = Format("ue5m3", 5, 3, 0xff, False)


def each(f, bits):
    """A function of elements over packed words."""
    lanes = range(0, 32, bits)
    return lambda *args: sum(mask(f(*[mask(a >> i, bits) for a in args]), bits) << i for i in lanes)


def clamp(v, bits, signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return max(low, min(high, v))


def integers(c):
    c.row("add.sat.u32 {d}, {0}, {1}", 32, [32, 32], U32, lambda x, y: clamp(x + y, 32, False))
    for t, bits, ins in (("u8x4", 8, QUADS), ("s8x4", 8, QUADS), ("u16x2", 16, PAIRS), ("s16x2", 16, PAIRS)):
        s = t[0] == "s"
        read = lambda x, s=s, b=bits: sign(x, b) if s else x
        for op, f in (("add", lambda x, y: x + y), ("sub", lambda x, y: x - y)):
            if bits == 8:
                c.row(f"{op}.{t} {{d}}, {{0}}, {{1}}", 32, [32, 32], ins, each(f, bits))
            if bits == 8 or op == "add":
                c.row(f"{op}.sat.{t} {{d}}, {{0}}, {{1}}", 32, [32, 32], ins, each(lambda x, y, f=f, r=read, b=bits, s=s: clamp(f(r(x), r(y)), b, s), bits))
        if bits == 8:
            for op, f in (("min", min), ("max", max)):
                c.row(f"{op}.{t} {{d}}, {{0}}, {{1}}", 32, [32, 32], ins, each(lambda x, y, f=f, r=read: f(r(x), r(y)), bits))
                if s:
                    c.row(f"{op}.relu.{t} {{d}}, {{0}}, {{1}}", 32, [32, 32], ins, each(lambda x, y, f=f, r=read: max(0, f(r(x), r(y))), bits))
        tests = {"eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y}
        names = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"} if not s else {}
        # All ones where it holds: ptxas makes VISET.BM.
        for op in [*tests, *names]:
            f = tests[names.get(op, op)]
            c.row(f"set.{op}.{t} {{d}}, {{0}}, {{1}}", 32, [32, 32], ins, each(lambda x, y, f=f, r=read: -int(f(r(x), r(y))), bits))
    c.row("neg.s8x4 {d}, {0}", 32, [32], [x for x, _ in QUADS], each(lambda x: -x, 8))
    def product(x, y):
        return 0 if y == 0 else (x if y & 1 else 0) ^ product(x, y >> 1) << 1
    for t in ("u64", "s64"):
        ins = [(x, y, mask(x * 3, 64)) for x, y in U64]
        c.row(f"clmad.lo.{t} {{d}}, {{0}}, {{1}}, {{2}}", 64, [64] * 3, ins, lambda x, y, z: mask(product(x, y), 64) ^ z)
        c.row(f"clmad.hi.{t} {{d}}, {{0}}, {{1}}, {{2}}", 64, [64] * 3, ins, lambda x, y, z: product(x, y) >> 64 ^ z)


def to_small(v, fmt, mode="rn", finite=True, relu=False, positive=False):
    """A value (or "nan", or ("inf", sign)) in a small format."""
    if v == "nan":
        return fmt.nan
    unsigned = fmt is UE5M3
    x, s = v if not unsigned else (abs(v[0]) if v[0] != "inf" else "inf", 0)
    if relu and s:
        return 0
    if x == "inf":
        code = s << fmt.bits - 1 | (fmt.most() if finite else fmt.nan)
    else:
        code = fmt.pack(x, mode, s, finite)
    return 0 if positive and code == 1 << fmt.bits - 1 else code


def scaled(v, by):
    """A value times a power of two, or NaN where the scale is."""
    return "nan" if v == "nan" or by is None else v if v[0] == "inf" else (v[0] * F(2) ** by, v[1])


def scale_of(code):
    return None if code == 0xff else code - 127


def conversions(c):
    small = {"e4m3": (E4M3, 8), "e5m2": (E5M2, 8), "e2m3": (E2M3, 8), "e3m2": (E3M2, 8), "e2m1": (E2M1, 4), "ue5m3": (UE5M3, 8)}
    wide = [0x3f800000, 0xbfc00000, 0x43e00000, 0xc3f00000, 0x477fffff, 0x3a800000, 0x3b000001, 0x7f800000, 0xff800000, 0x80000000, 0x40e00000, 0x37000000, 0x36800001, 0x47e40000, 0x7fc00000, 0x47e80001, 0x80000001, 0x36ffffff, 0x3f900000, 0xb3000000]
    pairs = [(a, wide[(i * 7 + 3) % 20]) for i, a in enumerate(wide)]
    halves = [(a >> 16, b >> 16) for a, b in pairs]
    packed = lambda ps: [a << 16 | b for a, b in ps]
    def into(words, t, srcs):
        return f"cvt.{words}.{t}x2.{srcs.split()[0]} %q, {' '.join(srcs.split()[1:])}; cvt.u16.u8 {{d}}, %q" if t == "e2m1" else f"cvt.{words}.{t}x2.{srcs.split()[0]} {{d}}, {' '.join(srcs.split()[1:])}"
    for t, (fmt, bits) in small.items():
        both = lambda f, b=bits: lambda x, y, *rest: f(x, *rest) << b | f(y, *rest)
        split = lambda f: lambda x, *rest: f(x >> 16, x & 0xffff, *rest)
        modes = [("rn", False), ("rz", False), ("rp", False), ("rn", True), ("rz", True), ("rp", True)] if t == "ue5m3" else [("rz", True)]
        for mode, finite in modes:
            words = mode + (".satfinite" if finite else "")
            one = lambda fmt32: lambda x, fmt=fmt, m=mode, f=finite: to_small(fmt32.unpack(x), fmt, m, f)
            c.row(into(words, t, "f32 {0}, {1}"), 16, [32, 32], pairs, both(one(F32)))
            c.row(into(words, t, "f16x2 {0}"), 16, [32], packed(H16P), split(both(one(F16))))
            c.row(into(words, t, "bf16x2 {0}"), 16, [32], packed(halves), split(both(one(BF16))))
        # One scale for both divides; subnormal sources count as zero. (ptxas 13.5 breaks down on those from `.f32`.)
        for mode in ("rn", "rz"):
            for finite in ((False, True) if t == "ue5m3" else (True,)):
                words = mode + (".satfinite" if finite else "") + ".scaled::n1::ue8m0"
                def one(source):
                    def f(x, code, fmt=fmt, m=mode, fin=finite, source=source):
                        v = source.unpack(flush(source, x))
                        v = (F(0), 0) if v != "nan" and v[0] == 0 and x & (1 << source.bits - 1) - 1 else v
                        by = scale_of(code & 0xff)
                        return to_small(scaled(v, None if by is None else -by), fmt, m, fin)
                    return f
                scales = [127, 128, 120, 140, 127, 0, 254, 255, 130, 127]
                cycle = lambda ins: [(*(i if isinstance(i, tuple) else (i,)), scales[k % 10]) for k, i in enumerate(ins)]
                c.row("mov.b16 {%q, _}, {2}; " + into(words, t, "f32 {0}, {1}, %q"), 16, [32, 32, 16], cycle(pairs), both(one(F32)))
                c.row("mov.b16 {%q, _}, {1}; " + into(words, t, "f16x2 {0}, %q"), 16, [32, 16], cycle(packed(H16P)), split(both(one(F16))))
                c.row("mov.b16 {%q, _}, {1}; " + into(words, t, "bf16x2 {0}, %q"), 16, [32, 16], cycle(packed(halves)), split(both(one(BF16))))
        if t != "ue5m3":
            f = lambda x, fmt=fmt: to_small(F32.unpack(x), fmt, positive=True)
            c.row(into("rn.satfinite.pzo", t, "f32 {0}, {1}"), 16, [32, 32], pairs, both(f))
            c.row(into("rz.satfinite.pzo", t, "bf16x2 {0}"), 16, [32], packed(halves), split(both(lambda x, fmt=fmt: to_small(BF16.unpack(x), fmt, "rz", positive=True))))
    # Back: each element times its own scale.
    for t, (fmt, bits) in small.items():
        codes = [(((k * 37 + 5) & (1 << min(fmt.bits, 8)) - 1) << bits | (k * 91 + 1) & (1 << min(fmt.bits, 8)) - 1, [0x7f7f, 0x807e, 0xff7f, 0x00fe, 0x7fff, 0xfe01, 0x8588, 0x7f7f][k % 8]) for k in range(24)]
        source = "%q" if t == "e2m1" else "{0}"
        load = "cvt.u8.u16 %q, {0}; " if t == "e2m1" else ""
        for relu in ("", ".relu") if t != "ue5m3" else ("",):
            for finite in ("", ".satfinite"):
                def back(x, by, fmt=fmt, r=relu != "", fin=finite != ""):
                    v = scaled(fmt.unpack(x), by)
                    if v == "nan":
                        return BF16.nan
                    if r and v[1]:
                        return 0
                    if v[0] == "inf":
                        return v[1] << 15 | (BF16.most() if fin else BF16.most() + 1)
                    return BF16.pack(v[0], "rn", v[1], fin)
                low = (1 << bits) - 1
                c.row(f"{load}cvt.rn{finite}{relu}.bf16x2.{t}x2 {{d}}, {source}", 32, [16], [x for x, _ in codes], lambda x, b=back, n=bits, low=low: b(x >> n, 0) << 16 | b(x & low, 0))
                c.row(f"{load}cvt.rn{finite}{relu}.scaled::n2::ue8m0.bf16x2.{t}x2 {{d}}, {source}, {{1}}", 32, [16, 16], codes, lambda x, s, b=back, n=bits, low=low: b(x >> n, scale_of(s >> 8)) << 16 | b(x & low, scale_of(s & 0xff)))
    to_half = lambda x: F16.nan if UE5M3.unpack(x) == "nan" else F16.pack(UE5M3.unpack(x)[0])
    c.row("cvt.rn.f16x2.ue5m3x2 {d}, {0}", 32, [16], [0x0001, 0xff38, 0xfef7, 0xf880, 0x0807, 0x3c7f, 0x4001, 0x00ff], lambda x: to_half(x >> 8) << 16 | to_half(x & 0xff))
    # No negative zero.
    for mode in ("rn", "rz", "rm", "rp"):
        for t, fmt in (("f16", F16), ("bf16", BF16)):
            def plus(x, fmt=fmt, m=mode):
                v = F32.unpack(x)
                if v == "nan":
                    return fmt.nan
                code = v[1] << fmt.bits - 1 | fmt.most() + 1 if v[0] == "inf" else fmt.pack(v[0], m, v[1])
                return 0 if code == 0x8000 else code
            c.row(f"cvt.{mode}.pzo.{t}.f32 {{d}}, {{0}}", 16, [32], S32 + [0xb3000000, 0xb2ffffff, 0x80000000, 0x80800000], plus)
            if mode in ("rn", "rz"):
                c.row(f"cvt.{mode}.pzo.{t}x2.f32 {{d}}, {{0}}, {{1}}", 32, [32, 32], S32P + [(0xb2ffffff, 0x80000001)], lambda x, y, p=plus: p(x) << 16 | p(y))


def mixed(c):
    """Halves among singles (section 9.7.5): exact operands, one rounding; cutting a cut sum again to a half changes nothing."""
    both = lambda f: lambda *v: mask(f(*[mask(x, w) for x, w in v]), 32) | f(*[x >> w for x, w in v]) << 32
    ins = [(H16P[i][0] | H16P[(i + 3) % 16][0] << 16, BF[i][0] | BF[(i + 5) % 16][0] << 16, S32P[i][1] | S32P[(i + 7) % 16][0] << 32, S32P[i][0] | S32P[(i + 9) % 16][1] << 32) for i in range(16)]
    for k, (h, fmt) in enumerate((("f16x2", F16), ("bf16x2", BF16))):
        def wide(x, fmt=fmt):
            v = fmt.unpack(x)
            return F32.nan if v == "nan" else v[1] << 31 | 0x7f800000 if v[0] == "inf" else F32.pack(v[0], "rn", v[1])
        for mode in ("", ".rn", ".rz", ".rm", ".rp"):
            m = mode[1:] or "rn"
            for op in ("add", "sub"):
                one = lambda a, z, op=op, m=m, w=wide: arith(op, F32, (w(a), z), m)
                c.row(f"{op}{mode}.f32x2.{h}.f32x2 {{d}}, {{0}}, {{1}}", 64, [32, 64], [(i[k], i[2]) for i in ins], lambda a, z, f=one: both(f)((a, 16), (z, 32)))
            if mode:
                one = lambda a, b, z, m=m, w=wide: arith("fma", F32, (w(a), b, z), m)
                c.row(f"fma{mode}.f32x2.{h}.f32x2.f32x2 {{d}}, {{0}}, {{1}}, {{2}}", 64, [32, 64, 64], [(i[k], i[2], i[3]) for i in ins], lambda a, b, z, f=one: both(f)((a, 16), (b, 32), (z, 32)))
    for op in ("add", "sub", "mul"):
        cut = lambda a, b, op=op: arith(op, F32, (a, b), "rz") >> 16
        c.row(f"{op}.rz.bf16x2.f32x2.f32x2 {{d}}, {{0}}, {{1}}", 32, [64, 64], [i[2:] for i in ins], lambda a, b, f=cut: f(mask(a, 32), mask(b, 32)) | f(a >> 32, b >> 32) << 16)


def moves(c):
    for t, bits in (("b32", 32), ("f64", 64), ("u16", 16)):
        c.row(f"mov.v2.{t} " + "{{d}, {e}}, {{0}, {1}}", (bits, bits), [bits, bits], [(mask(x, bits), mask(y, bits)) for x, y in U64], lambda x, y: (x, y))


if __name__ == "__main__":
    c = Case("later", "Rows of PTX ISA 9.2 to 9.5: packed bytes, products without carries, `.ue5m3`, `.pzo`, scales.", version="9.5", target="sm_107a")
    integers(c)
    conversions(c)
    mixed(c)
    moves(c)
    c.write()
    fix(os.path.join(OUT, "rows_later.ptx"))
