//! Generates instructions from the table: every combination of words of a row, with matching operands, as text and declarations.
//!
//! Tests use valid instructions ([`mnemonics`], [`operands`]) and invalid ones ([`mutants`]); [`module`] wraps them so
//! that a PTX tool can read them. Everything is determined by a seed.

use crate::{
    Count, Form, Mod, Opcode, Opnd, Role, Rule, Shape, Slot, Space, Suffix, Target, Ty, Type, Variant, Version, Word,
};
use std::fmt::Write;

/// A small generator of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    /// The next number.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of these; `None` if there are none.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        (!of.is_empty()).then(|| &of[self.below(of.len())])
    }
}

/// The choices of words for a slot; `None` leaves it out.
fn choices(slot: &Slot) -> Vec<Option<Word>> {
    match slot {
        Slot::One(m) => vec![Some(Word::Mod(*m))],
        Slot::Req(c) => c.of.iter().map(|m| Some(Word::Mod(*m))).collect(),
        Slot::Opt(c) => std::iter::once(None).chain(c.of.iter().map(|m| Some(Word::Mod(*m)))).collect(),
        Slot::Type(_, ts) => ts.iter().map(|t| Some(Word::Type(*t))).collect(),
        Slot::OptType(_, ts) => std::iter::once(None).chain(ts.iter().map(|t| Some(Word::Type(*t)))).collect(),
    }
}

/// Every choice of words that a form allows; where there are more than `limit`, that many drawn at random, in which each
/// single word is tried at least once.
pub fn mnemonics(form: &Form, limit: usize, rng: &mut Rng) -> Vec<Vec<Word>> {
    let slots: Vec<_> = form.slots.iter().map(choices).collect();
    let total = slots.iter().try_fold(1usize, |n, s| n.checked_mul(s.len())).unwrap_or(usize::MAX);
    let pick = |mut index: usize| {
        let mut words = Vec::new();
        for slot in slots.iter().rev() {
            words.extend(slot[index % slot.len()]);
            index /= slot.len();
        }
        words.reverse();
        words
    };
    if total <= limit {
        return (0..total).map(pick).collect();
    }
    let widest = slots.iter().map(Vec::len).max().unwrap_or(1);
    (0..limit.max(widest + limit / 2))
        .map(|round| {
            // Walk through the choices of every slot in step, then draw, where every second mnemonic leaves out what it may.
            let bare = round % 2 == 0;
            slots
                .iter()
                .filter_map(|s| match round < widest {
                    true => s[round % s.len()],
                    false if bare && s[0].is_none() => None,
                    false => s[rng.below(s.len())],
                })
                .collect()
        })
        .collect()
}

/// Operands that fit a variant: registers, and now and then a constant, a sink, a partner, a variable.
/// `None` where only a named rule knows what fits (`call`).
pub fn operands(variant: &Variant, rng: &mut Rng) -> Option<Vec<Shape>> {
    let mut shapes = Vec::new();
    for opnd in variant.operands() {
        if opnd.optional && rng.once_in(2) {
            break;
        }
        shapes.push(operand(variant, opnd, rng)?);
    }
    Some(shapes)
}

/// One operand that fits.
pub fn operand(variant: &Variant, opnd: &Opnd, rng: &mut Rng) -> Option<Shape> {
    Some(match opnd.role {
        Role::Dst | Role::Src => match (opnd.count, variant.count(opnd)) {
            (Count::Exactly(_) | Count::Table(_), Some(n)) | (_, Some(n @ 2..)) => {
                // All elements are declared alike, as ptxas requires.
                let Shape::Reg(t, _) = register(variant, opnd, 0, rng)? else { return None };
                let mut elements: Vec<Shape> = (0..n).map(|i| Shape::Reg(t, (i % 8) as u8)).collect();
                if let (Some(ty), Some(first)) = (opnd.lead, elements.first_mut()) {
                    *first = Shape::Reg(variant.resolve_ty(ty)?.untyped(), 0);
                }
                Shape::Vector(elements)
            }
            _ => single(variant, opnd, rng)?,
        },
        Role::Imm => Shape::Int(constant(variant, opnd, rng)),
        Role::Addr if opnd.ty != Ty::Pointer => Shape::Address(Box::new(Shape::Reg(Type::B32, 7))),
        Role::Addr => {
            let space = opnd.space.and_then(Mod::space).unwrap_or(variant.space());
            let base = match space {
                // What a callee or a call may address there is not determined by shapes.
                Space::Param if variant.op == Opcode::St || variant.has(Mod::ParamFunc) => return None,
                Space::Param => Shape::Symbol(Space::Param),
                Space::Generic | Space::Reg | Space::Sreg | Space::Tex => Shape::Reg(Type::B64, 7),
                _ if rng.once_in(3) => Shape::Symbol(space),
                _ => Shape::Reg(Type::B64, 7),
            };
            Shape::Address(Box::new(base))
        }
        Role::Var => register(variant, opnd, 7, rng)?,
        Role::Group(inner) => {
            // ptxas reads no constant in a bracketed list.
            Shape::Group(variant.inside(inner).map(|o| operand(variant, &o.reg(), rng)).collect::<Option<_>>()?)
        }
        Role::Label => Shape::Label,
        Role::Table => Shape::Table,
        Role::Handle(t) => Shape::Handle(t),
        Role::Callee | Role::Rets | Role::Args => return None,
    })
}

fn single(variant: &Variant, opnd: &Opnd, rng: &mut Rng) -> Option<Shape> {
    let ty = variant.resolve_ty(opnd.ty);
    if opnd.role == Role::Dst {
        let discarded = variant.row().rules.contains(&Rule::SinkOnly) || opnd.sink && rng.once_in(6);
        let d = if discarded { Shape::Sink } else { register(variant, opnd, 0, rng)? };
        return Some(match opnd.pair {
            Some(_) if opnd.paired || rng.once_in(3) => Shape::Pair(Box::new(d), Box::new(Shape::Reg(Type::Pred, 1))),
            _ => d,
        });
    }
    if opnd.imm && rng.once_in(4) {
        match ty {
            Some(t) if t.takes_int() => return Some(Shape::Int(constant(variant, opnd, rng))),
            Some(Type::F32) => return Some(Shape::Float { single: true }),
            Some(Type::F64) => return Some(Shape::Float { single: false }),
            None if opnd.ty != crate::Ty::Any => return Some(Shape::Int(constant(variant, opnd, rng))),
            _ => {}
        }
    }
    let reg = register(variant, opnd, 2, rng)?;
    Some(if opnd.not && rng.once_in(3) { Shape::Not(Box::new(reg)) } else { reg })
}

fn constant(variant: &Variant, opnd: &Opnd, rng: &mut Rng) -> i64 {
    let value = match (rng.pick(opnd.values), opnd.range) {
        (Some(v), _) => *v,
        // No more than the fewest bytes that are copied.
        (None, _) if variant.row().rules.contains(&Rule::CopySourceSize) => rng.below(5) as i64,
        (None, Some((low, high))) => low + (rng.bits() % (high.abs_diff(low).saturating_add(1).max(1))) as i64,
        (None, None) if variant.row().rules.contains(&Rule::StackAlignment) => 1 << rng.below(7),
        (None, None) => 1 + rng.below(7) as i64,
    };
    if opnd.step > 1 { (value / opnd.step).max(1) * opnd.step } else { value }
}

fn register(variant: &Variant, opnd: &Opnd, number: u8, rng: &mut Rng) -> Option<Shape> {
    let Some(ty) = variant.resolve_ty(opnd.ty) else { return Some(Shape::Reg(Type::B64, number % 8)) };
    let fitting: Vec<Type> = Type::ALL
        .iter()
        .copied()
        .filter(|r| r.is_register() && variant.takes_register(opnd, opnd.ty, *r))
        // Half-precision and very wide registers are not known to every version: only where nothing else will do.
        .filter(|r| {
            !matches!(r, Type::F16 | Type::F16x2 | Type::B128) || ty.takes(*r, false) && ty.untyped() == Type::B128
        })
        .collect();
    let exact = [ty, ty.untyped()].into_iter().find(|t| fitting.contains(t));
    let chosen =
        if rng.once_in(3) { rng.pick(&fitting).copied().or(exact) } else { exact.or(fitting.first().copied()) };
    Some(Shape::Reg(chosen?, number % 8))
}

/// The instruction's text, without semicolon.
pub fn text(mnemonic: &str, shapes: &[Shape]) -> String {
    let mut out = mnemonic.to_owned();
    for (i, s) in shapes.iter().enumerate() {
        let _ = write!(out, "{}{s}", if i > 0 { ", " } else { " " });
    }
    out
}

/// The mnemonic of words in their given order.
pub fn mnemonic(op: Opcode, words: &[Word]) -> String {
    let mut out = op.row().name.to_owned();
    for w in words {
        let _ = write!(out, ".{}", w.name());
    }
    out
}

/// One fault in the words of a mnemonic: one dropped, doubled, moved, replaced by a word of another form of the same opcode,
/// or one added.
pub fn mutants(op: Opcode, words: &[Word], rng: &mut Rng) -> Vec<Vec<Word>> {
    let pool: Vec<Word> = op.row().forms.iter().flat_map(|f| f.slots.iter().flat_map(choices)).flatten().collect();
    let mut out = Vec::new();
    for i in 0..words.len() {
        let mut fewer = words.to_vec();
        let word = fewer.remove(i);
        let mut moved = fewer.clone();
        moved.insert(rng.below(words.len()), word);
        let mut doubled = words.to_vec();
        doubled.insert(i, word);
        let mut other = words.to_vec();
        other[i] = rng.pick(&pool).copied().unwrap_or(word);
        out.extend([fewer, moved, doubled, other]);
    }
    let mut more = words.to_vec();
    if let Some(w) = rng.pick(&pool) {
        more.insert(rng.below(words.len() + 1), *w);
        out.push(more);
    }
    out.retain(|w| w != words);
    out
}

/// A module for `target` with one kernel that holds the instructions, one a line. Gives the text and the line of the first
/// instruction, from 1. Only registers that the instructions use are declared. A sampler of its own makes the module one of
/// independent textures.
pub fn module(version: Version, target: Target, instructions: &[String]) -> (String, usize) {
    let uses = |name: &str| instructions.iter().any(|i| i.contains(name));
    let mut out = format!(".version {version}\n.target {target}");
    if uses("samplerref_v") {
        out += ", texmode_independent";
    }
    let suffix_free = Target { suffix: Suffix::None, ..target };
    if version >= Version::new(2, 3) && suffix_free.sm >= 20 {
        out += "\n.address_size 64";
    }
    out +=
        "\n.global .align 16 .b8 global_v[64]; .const .align 16 .b8 const_v[64]; .shared .align 16 .b8 shared_v[64];";
    for t in [Type::TexRef, Type::SamplerRef, Type::SurfRef] {
        if t == Type::TexRef && uses("texref_v") && version < Version::new(1, 5) {
            out += " .tex .u32 texref_v;";
        } else if uses(&format!("{}_v", t.name())) {
            let _ = write!(out, " .global .{} {}_v;", t.name(), t.name());
        }
    }
    out += "\n.entry k";
    if version >= Version::new(1, 4) {
        out += "(.param .align 16 .b8 param_v[64])";
    }
    out += " {";
    for t in Type::ALL.iter().filter(|t| t.is_register()) {
        if uses(&format!("%{}_", t.name())) {
            let _ = write!(out, " .reg .{0} %{0}_<8>;", t.name());
        }
    }
    if uses("local_v") {
        out += " .local .align 16 .b8 local_v[64];";
    }
    if uses("$T") {
        out += " $T: .branchtargets $L;";
    }
    out += "\n";
    let first = out.lines().count() + 1;
    for i in instructions {
        let _ = writeln!(out, "{i};");
    }
    out += "$L: exit;\n}\n";
    (out, first)
}
