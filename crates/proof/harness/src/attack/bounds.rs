//! Accesses at the bounds of every kind of object, in every width and form, and misaligned ones.

use super::payload::Payload;
use crate::random::Random;

/// Distance from a host allocation within which nothing else can lie (`margay_exec::RED_ZONE`), less the widest access.
const NEAR: i64 = 192;

/// An object to be accessed.
struct Object {
    bytes: i64,
    /// State space after the opcode; empty for generic.
    space: &'static str,
    /// The operand in brackets: a name, or a register that holds the address.
    base: String,
    /// May be stored to.
    writable: bool,
    /// Allows atomic operations.
    atomic: bool,
    /// Lies among host allocations, so that distant addresses may be valid.
    host: bool,
    /// Only constant offsets are allowed.
    constant: bool,
    /// Is surrounded by memory of the same window with unknown contents.
    unknown: bool,
}

pub fn make(r: &mut Random, b: &mut Payload, lean: bool) {
    let mut o = object(r, b, lean);
    let (lines, bytes) = access(r, &o);
    let offset = offset(r, &o, bytes);
    body(r, b, &mut o, offset, bytes, &lines);
}

/// Misaligned accesses within an object.
pub fn misaligned(r: &mut Random, b: &mut Payload, lean: bool) {
    let mut o = object(r, b, lean);
    let (lines, bytes) = access(r, &o);
    let most = (o.bytes - bytes).max(1) as usize;
    let offset = match r.below(4) {
        0 => r.below(most) as i64 / bytes * bytes,
        _ => r.below(most) as i64,
    };
    body(r, b, &mut o, offset, bytes, &lines);
}

fn body(r: &mut Random, b: &mut Payload, o: &mut Object, offset: i64, bytes: i64, lines: &[String]) {
    let inside = offset >= 0 && offset + bytes <= o.bytes;
    if !inside && o.unknown {
        b.quiet = true;
    }
    // The windows lie among host allocations, and the lanes' windows side by side.
    b.loose |= !o.host && o.space.is_empty() && (256..1 << 40).contains(&offset.unsigned_abs()) && !inside;
    let fits = i32::try_from(offset).is_ok();
    let place = match r.below(4) {
        0 | 1 if fits => format!("{}+{offset}", o.base),
        _ if o.constant => format!("{}+{}", o.base, offset.clamp(0, 1 << 20)),
        2 if o.base.starts_with('%') && fits => {
            b.body(format!("add.s64 %d2, {}, {};", o.base, offset.wrapping_sub(64)));
            "%d2+64".into()
        }
        _ => {
            b.body(format!("mov.u64 %d2, {}; add.s64 %d2, %d2, {offset};", o.base));
            "%d2".into()
        }
    };
    for line in lines {
        b.body(line.replace("@A", &place).replace("@S", o.space));
    }
    for line in std::mem::take(&mut b.rest) {
        // Code that the object's own scope needs after the access.
        b.body.push(line);
    }
}

fn offset(r: &mut Random, o: &Object, bytes: i64) -> i64 {
    let size = o.bytes;
    let near = |r: &mut Random| match r.below(9) {
        0 => size - bytes,
        1 => size - bytes / 2,
        2 => size - 1,
        3 => size,
        4 => (size + bytes - 1) / bytes * bytes,
        5 => size + bytes * r.below(6) as i64,
        6 => -bytes,
        7 => -bytes * (1 + r.below(5) as i64),
        _ => (r.below(size as usize) as i64) / bytes * bytes,
    };
    let far: &[i64] = if o.host {
        &[1 << 50, i64::MIN, i64::MAX - 63, -(1 << 52), 1 << 62]
    } else {
        &[
            4096,
            65_536,
            1 << 20,
            (1 << 31) - 16,
            1 << 31,
            (1 << 32) - 16,
            1 << 32,
            (1 << 32) + 16,
            -4096,
            -(1 << 31),
            i64::MIN,
            -(1 << 32),
            1 << 40,
            i64::MAX - 63,
        ]
    };
    let offset = if r.chance(70) { near(r) } else { r.pick(far) };
    match o.host {
        true if offset.unsigned_abs() < 1 << 40 => offset.clamp(-NEAR, size + NEAR - 64),
        _ => offset,
    }
}

/// Code lines with `@A` for the address and `@S` for the space, and the number of bytes accessed.
fn access(r: &mut Random, o: &Object) -> (Vec<String>, i64) {
    let load = |text: &str, bytes| (vec![text.to_owned()], bytes);
    if o.constant {
        // `ld.param`, `st.param` of call variables.
        return match r.below(6) {
            0 => load("ld@S.b8 %h0, [@A]; cvt.u32.u16 %r0, %h0;", 1),
            1 => load("ld@S.b16 %h0, [@A]; cvt.u32.u16 %r0, %h0;", 2),
            2 => load("ld@S.b64 %d0, [@A];", 8),
            3 => load("ld@S.v2.b32 {%r0, %r1}, [@A];", 8),
            4 => load("ld@S.v4.b32 {%r0, %r1, %r2, %r3}, [@A];", 16),
            _ => load("ld@S.b32 %r0, [@A];", 4),
        };
    }
    match r.below(10) {
        0..4 => read(r, o),
        4..7 if o.writable => write(r, o),
        7 | 8 if o.atomic => atomic(r, o),
        9 if o.space == ".global" || o.space.is_empty() => {
            load(r.pick(&["prefetch@S.L1 [@A];", "prefetch@S.L2 [@A];"]), 1)
        }
        _ => read(r, o),
    }
}

fn read(r: &mut Random, o: &Object) -> (Vec<String>, i64) {
    let one = |text: &str, bytes| (vec![text.to_owned()], bytes);
    let strong = o.atomic && r.chance(30);
    let how = if strong { r.pick(&[".volatile", ".relaxed.gpu", ".acquire.sys", ".relaxed.cta"]) } else { "" };
    let nc = o.space == ".global" && how.is_empty() && r.chance(15);
    let op = if nc { "ld.global.nc".into() } else { format!("ld{how}@S") };
    match r.below(9) {
        0 => one(&format!("{op}.u8 %r0, [@A];"), 1),
        1 => one(&format!("{op}.s16 %r0, [@A];"), 2),
        2 => one(&format!("{op}.u64 %d0, [@A];"), 8),
        3 => one(&format!("{op}.v2.u32 {{%r0, %r1}}, [@A]; add.u32 %r0, %r0, %r1;"), 8),
        4 => one(&format!("{op}.v4.u32 {{%r0, %r1, %r2, %r3}}, [@A]; add.u32 %r0, %r0, %r3;"), 16),
        5 => one(&format!("{op}.v2.u64 {{%d0, %d3}}, [@A]; add.u64 %d0, %d0, %d3;"), 16),
        6 => one(&format!("{op}.v4.u8 {{%r0, %r1, %r2, %r3}}, [@A]; add.u32 %r0, %r0, %r3;"), 4),
        7 => one(&format!("{op}.f64 %g0, [@A]; mov.b64 %d0, %g0;"), 8),
        _ => one(&format!("{op}.u32 %r0, [@A];"), 4),
    }
}

fn write(r: &mut Random, o: &Object) -> (Vec<String>, i64) {
    let one = |text: &str, bytes| (vec![text.to_owned()], bytes);
    let strong = o.atomic && r.chance(30);
    let how = if strong { r.pick(&[".volatile", ".relaxed.gpu", ".release.sys"]) } else { "" };
    match r.below(8) {
        0 => one(&format!("st{how}@S.u8 [@A], %r0;"), 1),
        1 => one(&format!("mov.u16 %h0, 5; st{how}@S.u16 [@A], %h0;"), 2),
        2 => one(&format!("st{how}@S.u64 [@A], %d0;"), 8),
        3 => one(&format!("st{how}@S.v2.u32 [@A], {{%gid, %r0}};"), 8),
        4 => one(&format!("st{how}@S.v4.u32 [@A], {{%gid, %r0, %lane, %lin}};"), 16),
        5 => one(&format!("st{how}@S.v2.u64 [@A], {{%d0, %d0}};"), 16),
        _ => one(&format!("st{how}@S.u32 [@A], %gid;"), 4),
    }
}

fn atomic(r: &mut Random, o: &Object) -> (Vec<String>, i64) {
    let one = |text: String, bytes| (vec![text], bytes);
    let how = r.pick(&["", "", ".relaxed.gpu", ".acq_rel.sys", ".acquire.cta"]);
    let _ = o;
    match r.below(14) {
        12 => one("red@S.add.noftz.f16x2 [@A], %r0;".into(), 4),
        13 => one(format!("atom{how}@S.and.b64 %d0, [@A], %d0;"), 8),
        0 => one(format!("atom{how}@S.add.u32 %r0, [@A], 1;"), 4),
        1 => one(format!("atom{how}@S.exch.b64 %d0, [@A], 7;"), 8),
        2 => one(format!("atom{how}@S.cas.b32 %r0, [@A], 0, 1;"), 4),
        3 => one(format!("atom{how}@S.cas.b64 %d0, [@A], 0, 1;"), 8),
        4 => one(format!("atom{how}@S.min.s32 %r0, [@A], -5;"), 4),
        5 => one(format!("atom{how}@S.inc.u32 %r0, [@A], 9;"), 4),
        6 => one(format!("mov.f32 %f0, 0f3F800000; atom{how}@S.add.f32 %f1, [@A], %f0;"), 4),
        7 => one(format!("mov.f64 %g0, 0d3FF0000000000000; atom{how}@S.add.f64 %g1, [@A], %g0;"), 8),
        8 => one(
            format!("atom{how}@S.cas.b16 %h0, [@A], %h0, %h0;")
                .replace("%h0, [", "%h1, [")
                .replace("%h0, %h0", "%h2, %h3"),
            2,
        ),
        9 => one("red@S.add.u32 [@A], 1;".into(), 4),
        10 => one("red.relaxed.gpu@S.max.u64 [@A], 9;".into(), 8),
        _ => one(format!("atom{how}@S.xor.b64 %d0, [@A], 1;"), 8),
    }
}

fn object(r: &mut Random, b: &mut Payload, lean: bool) -> Object {
    let bytes = r.pick(&[16i64, 20, 32, 64, 100, 256]);
    let name = b.name("object");
    let new = NewObject { name, bytes, generic: r.chance(35) };
    match r.below(if lean { 14 } else { 12 }) {
        0 | 1 => new.global(b),
        2 => new.constant(b),
        3 | 4 => new.shared(r, b),
        5 => new.dynamic_shared(b),
        6 | 7 => new.local(b),
        8 => new.counters(b),
        9 => new.heap(b),
        10 => new.call_variable(b),
        11 => new.formal_of_callee(r, b),
        _ => new.kernel_parameter(r, b),
    }
}

/// What an access goes to, before it is declared.
struct NewObject {
    name: String,
    bytes: i64,
    /// It is accessed by a generic address, in `%d1`.
    generic: bool,
}

impl NewObject {
    fn object(&self, space: &'static str, base: &str) -> Object {
        Object {
            bytes: self.bytes,
            space,
            base: base.into(),
            writable: true,
            atomic: true,
            host: false,
            constant: false,
            unknown: false,
        }
    }

    /// Puts its generic address into `%d1` if that is how it is accessed.
    fn take_address(&self, b: &mut Payload, space: &str) {
        if self.generic {
            b.body(format!("mov.u64 %d1, {name}; cvta{space}.u64 %d1, %d1;", name = self.name));
        }
    }

    /// State space and base of the access.
    fn place(&self, space: &'static str) -> (&'static str, String) {
        if self.generic { ("", "%d1".to_owned()) } else { (space, self.name.clone()) }
    }

    /// A global variable.
    fn global(&self, b: &mut Payload) -> Object {
        let (name, bytes) = (&self.name, self.bytes);
        b.module(format!(".global .align 16 .b8 {name}[{bytes}];"));
        self.take_address(b, ".global");
        let (space, base) = self.place(".global");
        Object { host: true, ..self.object(space, &base) }
    }

    /// A constant variable.
    fn constant(&self, b: &mut Payload) -> Object {
        let (name, bytes) = (&self.name, self.bytes);
        b.module(format!(".const .align 16 .b8 {name}[{bytes}] = {{1, 2, 3, 4, 5}};"));
        self.take_address(b, ".const");
        let (space, base) = self.place(".const");
        // Stores through a generic address must be refused.
        Object { host: true, writable: self.generic, atomic: self.generic, ..self.object(space, &base) }
    }

    /// A shared variable, of the module or of the kernel.
    fn shared(&self, r: &mut Random, b: &mut Payload) -> Object {
        let (name, bytes) = (&self.name, self.bytes);
        let scope = r.chance(50);
        let text = format!(".shared .align 16 .b8 {name}[{bytes}];");
        if scope {
            b.module(text)
        } else {
            b.all(text)
        }
        zero(b, name, bytes);
        self.take_address(b, ".shared");
        let (space, base) = self.place(".shared");
        Object { unknown: true, ..self.object(space, &base) }
    }

    /// Dynamic shared memory.
    fn dynamic_shared(&self, b: &mut Payload) -> Object {
        let (name, bytes) = (&self.name, self.bytes);
        b.module(format!(".extern .shared .align 16 .b8 {name}[];"));
        b.shape.shared = bytes as u32;
        zero(b, name, bytes);
        self.take_address(b, ".shared");
        let (space, base) = self.place(".shared");
        Object { unknown: true, ..self.object(space, &base) }
    }

    /// A local variable.
    fn local(&self, b: &mut Payload) -> Object {
        let (name, bytes) = (&self.name, self.bytes);
        b.body(format!(".local .align 16 .b8 {name}[{bytes}];"));
        for at in (0..bytes).step_by(4) {
            b.body(format!("st.local.u32 [{name}+{at}], {at};"));
        }
        self.take_address(b, ".local");
        let (space, base) = self.place(".local");
        Object { unknown: true, atomic: false, ..self.object(space, &base) }
    }

    /// The words that are not compared.
    fn counters(&self, b: &mut Payload) -> Object {
        // The words that are not compared are 576 bytes of an allocation.
        b.body("mov.u64 %d1, %counters;");
        let mut o = self.object(if self.generic { "" } else { ".global" }, "%d1");
        (o.bytes, o.host) = (576, true);
        o
    }

    /// An object of the device heap.
    fn heap(&self, b: &mut Payload) -> Object {
        let bytes = self.bytes;
        b.module(".extern .func (.param .b64 r) malloc (.param .b64 a);");
        b.body("{ .param .b64 a; .param .b64 p;");
        b.body(format!("st.param.b64 [a], {bytes}; call (p), malloc, (a); ld.param.b64 %d1, [p]; }}"));
        b.body("setp.eq.u64 %p1, %d1, 0; @%p1 bra SAFE;");
        Object { host: true, ..self.object(if self.generic { "" } else { ".global" }, "%d1") }
    }

    /// A call variable, written before the call.
    fn call_variable(&self, b: &mut Payload) -> Object {
        let (name, bytes) = (&self.name, self.bytes);
        let f = b.name("callee");
        // All of it, since bytes that a function does not write are undefined.
        let words: Vec<String> = (0..bytes).step_by(4).map(|at| format!("st.param.b32 [y+{at}], %t;")).collect();
        b.module(format!(".func (.param .align 16 .b8 y[{bytes}]) {f}(.param .align 16 .b8 x[{bytes}])\n{{ .reg .b32 %t; ld.param.b32 %t, [x]; {} ret; }}", words.join(" ")));
        b.body(format!("{{ .param .align 16 .b8 x[{bytes}]; .param .align 16 .b8 {name}[{bytes}];"));
        b.body(format!("st.param.b32 [x], %gid; call ({name}), {f}, (x);"));
        b.rest("}");
        Object { writable: false, atomic: false, constant: true, ..self.object(".param", name) }
    }

    /// A formal, within its function.
    fn formal_of_callee(&self, r: &mut Random, b: &mut Payload) -> Object {
        let bytes = self.bytes;
        let f = b.name("callee");
        let inside = formal(r, bytes);
        b.module(format!(".func (.param .b32 y) {f}(.param .align 16 .b8 x[{bytes}])\n{{\n{inside}\n}}"));
        b.body(format!("{{ .param .align 16 .b8 x[{bytes}]; .param .b32 y;"));
        for at in (0..bytes - 3).step_by(4) {
            b.body(format!("st.param.b32 [x+{at}], {at};"));
        }
        b.body(format!("call (y), {f}, (x); ld.param.b32 %r0, [y]; }}"));
        b.quiet = true;
        // The payload's own access is harmless here.
        b.body("mov.u64 %d1, %own;");
        Object { bytes: 64, host: true, ..self.object(".global", "%d1") }
    }

    /// The kernel's last parameter, by constant offset, by register or through a generic address.
    fn kernel_parameter(&self, r: &mut Random, b: &mut Payload) -> Object {
        let (name, bytes) = (&self.name, self.bytes);
        b.params.push(format!(".param .align 16 .b8 {name}[{bytes}]"));
        let mut o = Object { writable: false, atomic: false, host: true, unknown: true, ..self.object(".param", name) };
        match r.below(3) {
            0 => o.constant = true,
            1 => {}
            _ => {
                b.body(format!("mov.u64 %d1, {name}; cvta.param.u64 %d1, %d1;"));
                (o.space, o.base) = ("", "%d1".into());
            }
        }
        o
    }
}

/// The body of a function that reads its formal `x` at some offset and returns the word in `y`.
fn formal(r: &mut Random, bytes: i64) -> String {
    let at = r.pick(&[0, 4, bytes - 4, bytes - 2, bytes, bytes + 4, bytes + 64, 4096, 1 << 20]);
    let at = at / 4 * 4;
    match r.below(4) {
        0 => format!(
            "    .reg .b32 %t; .reg .b64 %a; mov.u64 %a, x; ld.local.u32 %t, [%a+{at}]; st.param.b32 [y], %t; ret;"
        ),
        1 => format!(
            "    .reg .b32 %t; .reg .b64 %a; mov.u64 %a, x; cvta.local.u64 %a, %a; ld.u32 %t, [%a+{at}]; st.param.b32 [y], %t; ret;"
        ),
        2 => format!("    .reg .b32 %t; mov.u32 %t, 1; st.param.b32 [y+{}], %t; ret;", r.pick(&[0, 0, 4, 8, 64, 4096])),
        _ => format!("    .reg .b32 %t; ld.param.b32 %t, [x+{at}]; st.param.b32 [y], %t; ret;"),
    }
}

/// Initializes an array in shared memory, so that all threads of a CTA agree on its contents.
fn zero(b: &mut Payload, name: &str, bytes: i64) {
    for at in (0..bytes).step_by(4) {
        b.all(format!("st.shared.u32 [{name}+{at}], {at};"));
    }
    b.all("bar.sync 0;");
}
