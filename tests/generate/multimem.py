#!/usr/bin/env python3
"""Writes tests/run/memory/multimem.ptx: every row of `multimem` over a multicast object with one replica, where reductions
over the replicas are the value itself (manual, sections 8.2.3 and 9.7.9.14)."""
import os, struct

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES = {"u32": 4, "s32": 4, "b32": 4, "f32": 4, "u64": 8, "s64": 8, "b64": 8, "f64": 8, "f16": 2, "bf16": 2, "f16x2": 4,
         "bf16x2": 4, "e5m2": 1, "e4m3": 1, "e5m2x2": 2, "e4m3x2": 2, "e5m2x4": 4, "e4m3x4": 4}
ONE = {"f32": 0x3f800000, "f64": 0x3ff0000000000000, "f16": 0x3c00, "bf16": 0x3f80}
TWO = {"f32": 0x40000000, "f64": 0x4000000000000000, "f16": 0x4000, "bf16": 0x4000}
body, memory, expect = [], bytearray(), bytearray()
out = bytearray()


def slot(data):
    """16-byte aligned bytes of the object."""
    at = len(memory)
    memory.extend(data.ljust(32, b"\0"))
    expect.extend(data.ljust(32, b"\0"))
    return at


def registers(ty, n):
    size = max(8, BYTES[ty] * 8)
    names = [f"%b{size}_{i}" for i in range(n)]
    return ("{" + ", ".join(names) + "}" if n > 1 else names[0]), names


def word(ty, value):
    return value.to_bytes(BYTES[ty], "little")


def load(mnemonic, ty, n):
    size = BYTES[ty]
    data = bytes((len(memory) // 32 * 7 + k * 3 + 1) & 0x3f for k in range(size * n))
    at = slot(data)
    group, names = registers(ty, n)
    body.append(f"    multimem.ld_reduce{mnemonic} {group}, [%m+{at}];")
    for k, name in enumerate(names):
        body.append(f"    st.global.b{size * 8} [%out+{len(out) + k * size}], {name};")
    out.extend(data.ljust(32, b"\0"))


def store(mnemonic, ty, n):
    size = BYTES[ty]
    at = slot(b"")
    group, names = registers(ty, n)
    for k, name in enumerate(names):
        value = (0x1234567811223344 + 0x0101010101010101 * k) & ((1 << 8 * size) - 1)
        body.append(f"    ld.global.b{size * 8} {name}, [%in+{(8 * k)}];")
        expect[at + k * size:at + (k + 1) * size] = (0x1122334455667788 + 0x0101010101010101 * k).to_bytes(8, "little")[:size]
    body.append(f"    multimem.st{mnemonic} [%m+{at}], {group};")


def reduce(mnemonic, op, ty, n):
    size, base = BYTES[ty], ty.removesuffix("x2")
    one, two, pair = ONE.get(base, 6), TWO.get(base), ty.endswith("x2")
    dup = lambda v: v | v << 16 if pair else v
    operand = dup(one) if base in ONE else 3
    start = dup(one) if base in ONE else 6
    result = {"add": dup(two) if base in ONE else 9, "min": 3, "max": 6, "and": 2, "or": 7, "xor": 5, "inc": 0, "dec": 3}[op]
    at = slot(word(ty, start) * n)
    expect[at:at + size * n] = word(ty, result) * n
    group, names = registers(ty, n)
    body.extend(f"    mov.b{8 * size} {name}, {hex(operand)};" for name in names)
    body.append(f"    multimem.red{mnemonic} [%m+{at}], {group};")


LOADS = [("add", "", "u32", 1), ("min", "", "s64", 1), ("xor", "", "b64", 1), ("add", ".v4", "f32", 4), ("add", "", "f64", 1),
         ("add", ".acc::f32.v8", "f16", 8), ("add", ".v4", "bf16x2", 4), ("max", ".v4", "bf16", 4), ("min", ".v2", "f16x2", 2),
         ("add", ".acc::f16.v8", "e5m2", 8), ("add", ".v8", "e4m3x2", 8), ("add", "", "e5m2x4", 1), ("max", ".v4", "e4m3", 4),
         ("min", ".v2", "e5m2x2", 2), ("max", ".v4", "e4m3x4", 4)]
ORDERS = [lambda i: "", lambda i: ".weak", lambda i: [".relaxed.gpu.global", ".acquire.sys", ".relaxed.cta"][i % 3]]
for i, (op, words, ty, n) in enumerate(LOADS):
    for order in ORDERS:
        load(f"{order(i)}.{op}{words}.{ty}", ty, n)
STORES = [("", "u64", 1), (".v4", "f32", 4), (".v8", "f16", 8), (".v2", "bf16x2", 2), (".v4", "e5m2", 4), (".v8", "e4m3x2", 8), (".v4", "e5m2x4", 4)]
for i, (words, ty, n) in enumerate(STORES):
    for order in [lambda i: ".global", lambda i: ".weak", lambda i: [".relaxed.gpu", ".release.sys.global"][i % 2]]:
        store(f"{order(i)}{words}.{ty}", ty, n)
REDUCTIONS = [("add", "", "u32", 1), ("min", "", "s32", 1), ("and", "", "b64", 1), ("add", ".v4", "f32", 4), ("add", ".v8", "f16", 8), ("add", ".v2", "bf16x2", 2)]
for i, (op, words, ty, n) in enumerate(REDUCTIONS):
    for order in [lambda i: "", lambda i: [".relaxed.gpu.global", ".release.cluster"][i % 2]]:
        reduce(f"{order(i)}.{op}{words}.{ty}", op, ty, n)
# Bulk copies and reductions from shared memory: 16 bytes of 3 (or 1.0), over 6.
COPIES = [("add", "u32"), ("add.noftz", "f16"), ("add.noftz", "f32"), ("max", "s64"), ("dec", "u32"), ("or", "b32")]
shared, bulk = bytearray(), []
for op, ty in COPIES:
    size, name = BYTES[ty], op.split(".")[0]
    one, two = ONE.get(ty), TWO.get(ty)
    at, sat = slot(word(ty, one or 6) * (16 // size)), len(shared)
    shared.extend(word(ty, one or 3) * (16 // size))
    result = {"add": two or 9, "max": 6, "dec": 3, "or": 7}[name]
    expect[at:at + 16] = word(ty, result) * (16 // size)
    bulk.append(f"    multimem.cp.reduce.async.bulk.global.shared::cta.bulk_group.{op}.{ty} [%m+{at}], [stage+{sat}], 16;")
at, sat = slot(b""), len(shared)
shared.extend(range(100, 116))
expect[at:at + 16] = bytes(range(100, 116))
bulk.append(f"    multimem.cp.async.bulk.global.shared::cta.bulk_group [%m+{at}], [stage+{sat}], 16;")
stage = "\n".join(f"    st.shared.b64 [stage+{k}], {hex(int.from_bytes(shared[k:k + 8], 'little'))};" for k in range(0, len(shared), 8))
listing = lambda b: ", ".join(str(v) for v in b)
values = (0x1122334455667788).to_bytes(8, "little")
text = f"""//@ launch: k<<<1, 1>>>(inout m: u8[{len(memory)}] = {{{listing(memory)}}}, in a: u64[8] = 0x1122334455667788 + 0x0101010101010101 * i, out d: u8[{len(out)}])
//@ expect: m[0..{len(memory)}] == {{{listing(expect)}}}
//@ expect: d[0..{len(out)}] == {{{listing(out)}}}
//@ source: manual, sections 8.2.3, 9.7.9.14, 9.7.9.26 and 9.7.9.27: with one replica a reduction over all of them is its value; tests/generate/multimem.py

// Multicast memory with one replica, every row.
.version 9.5
.target sm_100a
.address_size 64

.visible .entry k(.param .u64 m, .param .u64 a, .param .u64 d)
{{
    .reg .b8 %b8_<8>;
    .reg .b16 %b16_<8>;
    .reg .b32 %b32_<8>;
    .reg .b64 %b64_<8>, %m, %in, %out;
    .shared .align 16 .b8 stage[{len(shared)}];
    ld.param.u64 %m, [m];
    ld.param.u64 %in, [a];
    ld.param.u64 %out, [d];
""" + "\n".join(body) + "\n" + stage + "\n    fence.proxy.async.shared::cta;\n" + "\n".join(bulk) + """
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
"""
with open(os.path.join(HERE, "..", "run", "memory", "multimem.ptx"), "w") as f:
    f.write(text)
