#!/usr/bin/env python3
"""Writes tests/run/async/bulk_relaxed.ptx: the bulk copies and reductions with an explicit `.relaxed` and scope that PTX ISA 9.4
brought, and the asynchronous stores and reductions on multicast objects (with one replica, where they are those on its memory).

What they do is what the manual says of the forms without `.relaxed` (sections 9.7.9.25.4 and 9.7.9.27)."""
import os

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES = {"u32": 4, "s32": 4, "b32": 4, "f32": 4, "u64": 8, "s64": 8, "b64": 8, "f64": 8, "f16": 2, "bf16": 2}
ONE = {"f32": 0x3f800000, "f64": 0x3ff0000000000000, "f16": 0x3c00, "bf16": 0x3f80}
TWO = {"f32": 0x40000000, "f64": 0x4000000000000000, "f16": 0x4000, "bf16": 0x4000}
# On 6 and 3: `.inc` wraps to 0 where the old value is not below the operand, `.dec` to the operand where it is above.
RESULT = {"add": 9, "min": 3, "max": 6, "and": 2, "or": 7, "xor": 5, "inc": 0, "dec": 3}
SCOPES = ["cta", "cluster", "gpu", "sys"]
# Of each 16 bytes those whose bit is set.
MASK = 0xa5f1
memory, expect, stage, shared_expect, body = bytearray(), bytearray(), bytearray(), bytearray(), []
signalled = 0


def words(ty, value, count):
    return value.to_bytes(BYTES[ty], "little") * count


def operands(op, ty):
    """Old value, operand and result of a reduction."""
    if ty in ONE:
        return ONE[ty], ONE[ty], TWO[ty] if op == "add" else ONE[ty]
    return 6, 3, RESULT[op]


def in_memory(before, after):
    memory.extend(before), expect.extend(after)
    return len(memory) - len(before)


def in_shared(before, after):
    stage.extend(before), shared_expect.extend(after)
    return len(stage) - len(before)


def source(data):
    return in_shared(data, data)


GLOBAL = {"add": ["u32", "s32", "u64", "f32", "f64"], "add.noftz": ["f16", "bf16"], "min": ["u32", "s64", "f16"], "max": ["s32", "u64", "bf16"],
          "inc": ["u32"], "dec": ["u32"], "and": ["b32"], "or": ["b64"], "xor": ["b32"]}
n = 0
for prefix in ("cp.reduce", "multimem.cp.reduce"):
    for op, types in GLOBAL.items():
        for ty in types:
            old, b, new = operands(op.split(".")[0], ty)
            count = 16 // BYTES[ty]
            g, s = in_memory(words(ty, old, count), words(ty, new, count)), source(words(ty, b, count))
            body.append(f"{prefix}.async.bulk.relaxed.{SCOPES[n % 4]}.global.shared::cta.bulk_group.{op}.{ty} [%g+{g}], [%s+{s}], 16;")
            n += 1
for op, ty in (("add", "u32"), ("add", "s32"), ("add", "u64"), ("min", "s32"), ("max", "u32"), ("inc", "u32"), ("dec", "u32"), ("and", "b32"), ("xor", "b32")):
    old, b, new = operands(op, ty)
    count = 16 // BYTES[ty]
    to, s = in_shared(words(ty, old, count), words(ty, new, count)), source(words(ty, b, count))
    body.append(f"cp.reduce.async.bulk.relaxed.{SCOPES[n % 2]}.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{op}.{ty} [%c+{to}], [%s+{s}], 16, [%b];")
    signalled += 16
    n += 1
text = bytes(range(100, 132))
nothing = bytes(32)
some = bytes(x if MASK >> k % 16 & 1 else 0 for k, x in enumerate(text))
s, g = source(text), in_memory(text, text)
body.append(f"cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.b128 [%g+{in_memory(nothing, text)}], [%s+{s}], 32;")
body.append(f"cp.async.bulk.relaxed.sys.global.shared::cta.bulk_group.cp_mask.b128 [%g+{in_memory(nothing, some)}], [%s+{s}], 32, %mask;")
body.append(f"multimem.cp.async.bulk.relaxed.gpu.global.shared::cta.bulk_group.cp_mask.b128 [%g+{in_memory(nothing, some)}], [%s+{s}], 32, %mask;")
body.append(f"cp.async.bulk.relaxed.cta.shared::cta.global.mbarrier::complete_tx::bytes.b128 [%s+{in_shared(nothing, text)}], [%g+{g}], 32, [%b];")
body.append(f"cp.async.bulk.relaxed.cluster.shared::cluster.global.mbarrier::complete_tx::bytes.b128 [%c+{in_shared(nothing, text)}], [%g+{g}], 32, [%b];")
body.append(f"cp.async.bulk.relaxed.cluster.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.b128 [%c+{in_shared(nothing, text)}], [%g+{g}], 32, [%b], %one;")
body.append(f"cp.async.bulk.relaxed.cluster.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.b128 [%c+{in_shared(nothing, text)}], [%s+{s}], 32, [%b];")
signalled += 4 * 32
for ty in ("u32", "s32", "u64"):
    size = BYTES[ty]
    g = in_memory(words(ty, 6, 1).ljust(16, b"\0"), words(ty, 9, 1).ljust(16, b"\0"))
    body.append(f"multimem.red.async.release.{SCOPES[2 + size // 8]}.global.add.{ty} [%g+{g}], %three{size * 8};")
for ty in ("b32", "u64", "s32", "f64"):
    size = BYTES[ty]
    g = in_memory(bytes(16), words(ty, 3, 1).ljust(16, b"\0"))
    body.append(f"multimem.st.async.release.gpu.global.{ty} [%g+{g}], %three{size * 8};")

listing = lambda b: ", ".join(str(v) for v in b)
lines = "\n".join("    " + line for line in body)
count = len(stage)
# The thread that copies is alone: it loads its shared memory from `a` and gives it back in `d`.
text = f"""//@ launch: k<<<1, 1>>>(inout g: u8[{len(memory)}] = {{{listing(memory)}}}, in a: u8[{count}] = {{{listing(stage)}}}, out d: u8[{count}])
//@ expect: g[0..{len(memory)}] == {{{listing(expect)}}}
//@ expect: d[0..{count}] == {{{listing(shared_expect)}}}
//@ source: manual, sections 9.7.9.25.4, 9.7.9.27 and 9.7.13.7 for the forms without `.relaxed`; tests/generate/bulk.py

// Bulk copies and reductions with a scope, asynchronous stores and reductions on multicast objects.
.version 9.5
.target sm_107a
.address_size 64

.visible .entry k(.param .u64 g, .param .u64 a, .param .u64 d)
{{
    .reg .pred %p;
    .reg .b16 %mask, %one;
    .reg .b32 %s, %c, %b, %zero, %n, %at, %three32;
    .reg .b64 %g, %in, %out, %x, %state, %three64;
    .shared .align 16 .b8 stage[{count}];
    .shared .align 8 .b64 bar;
    ld.param.u64 %g, [g];
    ld.param.u64 %in, [a];
    ld.param.u64 %out, [d];
    mov.u16 %mask, {MASK};
    mov.u16 %one, 1;
    mov.u32 %three32, 3;
    mov.u64 %three64, 3;
    mov.u32 %zero, 0;
    mov.u32 %s, stage;
    mov.u32 %b, bar;
    mapa.shared::cluster.u32 %c, %s, %zero;
    mapa.shared::cluster.u32 %b, %b, %zero;
    mov.u32 %at, %s;
    mov.u32 %n, 0;
fill:
    ld.global.u64 %x, [%in];
    st.shared.u64 [%at], %x;
    add.u64 %in, %in, 8;
    add.u32 %at, %at, 8;
    add.u32 %n, %n, 8;
    setp.lt.u32 %p, %n, {count};
    @%p bra fill;
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared.b64 %state, [bar], {signalled};
    fence.proxy.async;
{lines}
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
wait:
    mbarrier.test_wait.shared.b64 %p, [bar], %state;
    @!%p bra wait;
    mov.u32 %n, 0;
    mov.u32 %at, %s;
empty:
    ld.shared.u64 %x, [%at];
    st.global.u64 [%out], %x;
    add.u64 %out, %out, 8;
    add.u32 %at, %at, 8;
    add.u32 %n, %n, 8;
    setp.lt.u32 %p, %n, {count};
    @%p bra empty;
    ret;
}}
"""
with open(os.path.join(HERE, "..", "run", "async", "bulk_relaxed.ptx"), "w") as f:
    f.write(text)
