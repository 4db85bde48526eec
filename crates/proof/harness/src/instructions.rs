//! Random kernels of a few instructions of the table, with operands of every kind, that all engines must execute alike.
//!
//! ```text
//! seed → rows of the table with operands (`isa::sample`), varied → a kernel → `Variant::judge`
//! ```
//!
//! All registers have values, addresses mostly point into memory that belongs to the thread, and the kernel ends by storing a hash of
//! every register. Instructions stand in straight-line code, under a guard, on a side of a branch, in a loop, or in a function.

use crate::{attack::Shape as Launch, random::Random, variant::Variant as Kernel};
use margay_isa::{
    Effect, Mod, Opcode, Opnd, Role, Shape, Space, Special, Suffix, Target, Ty, Type, Variant, Version,
    sample::{self, Rng},
};
use std::fmt::Write;

/// Registers of each type.
const REGISTERS: usize = 8;
/// Bytes of a thread in its buffer: what instructions may access, then hashes of the registers (`attack::worker` allocates as many).
const AREA: usize = 384;
/// Opcodes whose results are addresses, which no two launches need share.
const ADDRESSES: [Opcode; 2] = [Opcode::Cvta, Opcode::Mapa];
/// Attempts to find an instruction.
const ATTEMPTS: usize = 200;

const INTEGERS: &[i64] = &[
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    15,
    16,
    24,
    31,
    32,
    33,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    32_767,
    32_768,
    65_535,
    65_536,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    -1,
    -2,
    -7,
    -8,
    -128,
    -32_768,
    i64::MAX,
    i64::MIN,
    0x5555_5555_5555_5555,
];
const SINGLES: &[&str] = &[
    "00000000", "80000000", "3F800000", "BF000000", "7F800000", "FF800000", "7FC00000", "7F800001", "00000001",
    "007FFFFF", "7F7FFFFF", "4B000001", "4F000000", "5F000000",
];
const DOUBLES: &[&str] = &[
    "0000000000000000",
    "8000000000000000",
    "3FF0000000000000",
    "BFE0000000000000",
    "7FF0000000000000",
    "7FF8000000000000",
    "7FF0000000000001",
    "0000000000000001",
    "000FFFFFFFFFFFFF",
    "7FEFFFFFFFFFFFFF",
    "41E0000000000000",
    "43E0000000000000",
];

/// Special registers whose values are the same in every execution.
fn specials(version: Version, target: Target) -> Vec<(Type, String)> {
    let steady = |s: &Special| {
        let name = s.info().name;
        !["clock", "timer", "smid", "nsmid", "warpid", "gridid", "graph"].iter().any(|word| name.contains(word))
    };
    let known = |s: &Special| s.info().since <= version && s.info().sm <= target.sm;
    let names = |s: Special| {
        let info = s.info();
        let parts: &[&str] = if info.width == 4 { &[".x", ".y", ".z"] } else { &[""] };
        parts.iter().map(move |p| (info.ty, format!("{}{p}", info.name)))
    };
    Special::NAMED.iter().copied().filter(steady).filter(known).flat_map(names).collect()
}

/// An instruction of the kernel.
struct Instruction {
    text: String,
    /// What its addresses need: the number of the address register, and the state space.
    addresses: Vec<(usize, Space)>,
}

struct Generator {
    random: Random,
    rng: Rng,
    version: Version,
    target: Target,
    specials: Vec<(Type, String)>,
    addresses: Vec<(usize, Space)>,
}

/// The kernel of a seed. `opcodes` are those to choose from; none: all.
pub fn kernel(seed: u64, opcodes: &[Opcode]) -> Kernel {
    let mut random = Random::new(seed);
    let steady = |op: &Opcode| !ADDRESSES.contains(op);
    let all: Vec<Opcode> = if opcodes.is_empty() { Opcode::ALL.to_vec() } else { opcodes.to_vec() };
    let all: Vec<Opcode> = all.into_iter().filter(steady).collect();
    assert!(!all.is_empty(), "an opcode whose results are not addresses");
    loop {
        let first = random.pick(&all);
        let targets: Vec<(Version, Target)> = places(first);
        if targets.is_empty() {
            continue;
        }
        let (version, target) = random.pick(&targets);
        let rng = Rng(random.bits());
        let specials = specials(version, target);
        let mut generator = Generator { random: random.clone(), rng, version, target, specials, addresses: Vec::new() };
        // A fault ends the kernel: instructions that have none may be many.
        let calm = |op: &Opcode| matches!(op.row().effect, Effect::Pure | Effect::Machine);
        let all: Vec<Opcode> = if calm(&first) { all.iter().copied().filter(calm).collect() } else { all.clone() };
        let number = 1 + generator.random.below(if calm(&first) { 14 } else { 4 });
        let mut list: Vec<Instruction> = Vec::new();
        for i in 0..number {
            let op = if i == 0 || generator.random.chance(30) { first } else { generator.random.pick(&all) };
            list.extend(generator.instruction(op));
        }
        random = generator.random.clone();
        if list.is_empty() {
            continue;
        }
        let block = random.pick(&[[1, 1, 1], [1, 1, 1], [32, 1, 1], [32, 1, 1], [20, 1, 1], [64, 1, 1], [128, 1, 1]]);
        generator.random = random;
        let text = generator.text(&list);
        let shape = Launch { grid: [1, 1, 1], block, cluster: 1, shared: 1024, stack: 4096, threads: 1 };
        return Kernel { name: first.row().name.to_owned(), text, shape };
    }
}

/// Versions and targets, from PTX ISA 3.0, that have some form of an opcode: the newest one of each target.
fn places(op: Opcode) -> Vec<(Version, Target)> {
    let mut out = Vec::new();
    let mut rng = Rng(1);
    let variants: Vec<Variant> = op
        .row()
        .forms
        .iter()
        .enumerate()
        .flat_map(|(i, form)| {
            let words = sample::mnemonics(form, 12, &mut rng);
            words.into_iter().filter_map(move |w| Variant::new(op, i as u16, &w)).collect::<Vec<_>>()
        })
        .collect();
    for (target, since) in Target::ALL.iter().filter(|(t, _)| t.sm >= 30) {
        for version in [Version::LAST, Version::new(6, 2), Version::new(5, 0)] {
            if *since <= version && variants.iter().any(|v| v.available(version, *target).is_ok()) {
                // Architecture-specific targets have most forms.
                let weight = if target.suffix == Suffix::Arch { 4 } else { 1 };
                out.extend(std::iter::repeat_n((version, *target), weight));
            }
        }
    }
    out
}

/// Numbers of the registers of a type that instructions use.
fn used(t: &Type, of: &str) -> Vec<usize> {
    (0..REGISTERS).filter(|n| of.contains(&format!("%{}_{n}", t.name()))).collect()
}

impl Generator {
    fn instruction(&mut self, op: Opcode) -> Option<Instruction> {
        for _ in 0..ATTEMPTS {
            let form = self.random.below(op.row().forms.len());
            let words = sample::mnemonics(&op.row().forms[form], 6, &mut self.rng);
            let words = words.get(self.random.below(words.len()))?;
            let Some(variant) = Variant::new(op, form as u16, words) else { continue };
            if variant.clash().is_some() || variant.available(self.version, self.target).is_err() {
                continue;
            }
            let Some(shapes) = sample::operands(&variant, &mut self.rng) else { continue };
            self.addresses.clear();
            let operands: Vec<&'static Opnd> = variant.operands().collect();
            let texts: Vec<String> =
                operands.iter().zip(&shapes).map(|(opnd, shape)| self.operand(&variant, opnd, shape)).collect();
            let guard = match self.random.below(8) {
                0 => format!("@%pred_{} ", self.random.below(REGISTERS)),
                1 => format!("@!%pred_{} ", self.random.below(REGISTERS)),
                _ => String::new(),
            };
            let text = format!("{guard}{variant} {};", texts.join(", "));
            return Some(Instruction { text, addresses: std::mem::take(&mut self.addresses) });
        }
        None
    }

    /// The text of an operand that has another shape now and then, and other registers and numbers.
    fn operand(&mut self, variant: &Variant, opnd: &Opnd, shape: &Shape) -> String {
        match (opnd.role, shape) {
            (Role::Addr, Shape::Address(base)) => {
                let space = opnd.space.and_then(Mod::space).unwrap_or(variant.space());
                self.address(space, base, opnd.ty == Ty::Pointer)
            }
            (Role::Group(inner), Shape::Group(shapes)) => {
                let operands: Vec<&'static Opnd> = variant.inside(inner).collect();
                let parts: Vec<String> =
                    operands.iter().zip(shapes).map(|(opnd, shape)| self.operand(variant, opnd, shape)).collect();
                format!("[{}]", parts.join(", "))
            }
            (Role::Src | Role::Dst, _) => {
                for _ in 0..6 {
                    let other = self.other(variant, opnd, shape);
                    if variant.takes(opnd, &other) {
                        return self.show(opnd, &other);
                    }
                }
                self.show(opnd, shape)
            }
            (Role::Imm, Shape::Int(_)) => {
                let number = *self.rng.pick(INTEGERS).unwrap_or(&0);
                if self.random.chance(30) && opnd.takes_constant(number) {
                    number.to_string()
                } else {
                    shape.to_string()
                }
            }
            _ => shape.to_string(),
        }
    }

    fn other(&mut self, variant: &Variant, opnd: &Opnd, shape: &Shape) -> Shape {
        let chance = self.random.below(100);
        match shape {
            Shape::Reg(t, _) => match chance {
                0..=9 => Shape::Int(self.random.pick(INTEGERS)),
                10..=13 => Shape::Float { single: self.random.chance(50) },
                14..=20 => Shape::Special(if self.random.chance(80) { Type::U32 } else { Type::U64 }),
                21..=24 => Shape::Sink,
                25..=27 => Shape::Not(Box::new(shape.clone())),
                28..=30 => Shape::Symbol(self.random.pick(&[Space::Shared, Space::Local])),
                31..=45 => {
                    let types: Vec<Type> = Type::ALL.iter().copied().filter(|t| t.is_register()).collect();
                    let reg = self.random.pick(&types);
                    let known =
                        !matches!(reg, Type::F16 | Type::F16x2 | Type::B128) || self.version >= Version::new(8, 3);
                    Shape::Reg(
                        if known && variant.takes_register(opnd, opnd.ty, reg) { reg } else { *t },
                        self.number(),
                    )
                }
                _ => Shape::Reg(*t, self.number()),
            },
            Shape::Int(v) => Shape::Int(if chance < 60 { self.random.pick(INTEGERS) } else { *v }),
            Shape::Vector(elements) => Shape::Vector(elements.iter().map(|e| self.other(variant, opnd, e)).collect()),
            Shape::Pair(a, b) => {
                let parts = [self.other(variant, opnd, a), self.other(variant, opnd, b)].map(Box::new);
                let [a, b] = parts;
                Shape::Pair(a, b)
            }
            Shape::Not(inner) => Shape::Not(Box::new(self.other(variant, opnd, inner))),
            _ => shape.clone(),
        }
    }

    fn number(&mut self) -> u8 {
        self.random.below(REGISTERS - 1) as u8
    }

    fn show(&mut self, opnd: &Opnd, shape: &Shape) -> String {
        match shape {
            Shape::Special(t) => {
                let fitting: Vec<String> = self
                    .specials
                    .iter()
                    .filter(|(s, _)| s.bits() == t.bits() && *s != Type::Pred)
                    .map(|(_, n)| n.clone())
                    .collect();
                match fitting.is_empty() {
                    true => "%laneid".into(),
                    false => fitting[self.random.below(fitting.len())].clone(),
                }
            }
            Shape::Float { single: true } => format!("0f{}", self.random.pick(SINGLES)),
            Shape::Float { single: false } => format!("0d{}", self.random.pick(DOUBLES)),
            Shape::Vector(elements) => {
                let parts: Vec<String> = elements.iter().map(|e| self.show(opnd, e)).collect();
                format!("{{{}}}", parts.join(", "))
            }
            Shape::Pair(a, b) => format!("{}|{}", self.show(opnd, a), self.show(opnd, b)),
            Shape::Not(inner) => format!("!{}", self.show(opnd, inner)),
            Shape::Symbol(_) if self.random.chance(30) => format!("{shape}+{}", 4 * self.random.below(20)),
            Shape::Reg(..) if opnd.neg && self.random.chance(30) => format!("-{shape}"),
            _ => shape.to_string(),
        }
    }

    /// An address in a space: mostly valid, as a variable, a register of 64 or 32 bits, or a number, with or without an offset.
    fn address(&mut self, space: Space, base: &Shape, pointer: bool) -> String {
        let number = self.addresses.len();
        let offset = match self.random.below(12) {
            0..=5 => String::new(),
            6 => format!("+{}", self.random.pick(INTEGERS) & 0xffff),
            7 => "+-16".into(),
            _ => format!("+{}", self.random.pick(&[4, 8, 16, 32, 48, 64])),
        };
        if !pointer {
            return format!("[%b32_{}{offset}]", self.random.below(REGISTERS));
        }
        if let Shape::Symbol(_) = base {
            return format!("[{base}{offset}]");
        }
        self.addresses.push((number, space));
        let narrow = matches!(space, Space::Shared | Space::Local) && self.random.chance(50);
        format!("[%{}{number}{offset}]", if narrow { "n" } else { "a" })
    }

    /// Code that sets the address register of a number to memory of the thread in a space.
    fn set_address(&mut self, number: usize, space: Space, out: &mut String) {
        let generic = space == Space::Generic;
        let space = match space {
            Space::Generic => {
                self.random.pick(&[Space::Generic, Space::Generic, Space::Shared, Space::Local, Space::Const])
            }
            s => s,
        };
        let (base, stride) = match space {
            Space::Shared => ("shared_v", if self.random.chance(40) { 16 } else { 0 }),
            Space::Local => ("local_v", 0),
            Space::Const => ("const_v", 0),
            Space::Param => ("param_v", 0),
            Space::Global if self.random.chance(30) => ("global_v", if self.random.chance(40) { 16 } else { 0 }),
            _ => ("%own", 0),
        };
        let _ = writeln!(out, "    mov.b64 %a{number}, {base};");
        if stride > 0 {
            let _ = writeln!(out, "    mad.wide.u32 %a{number}, %lin, {stride}, %a{number};");
        }
        let _ = writeln!(out, "    cvt.u32.u64 %n{number}, %a{number};");
        if generic && matches!(space, Space::Shared | Space::Local | Space::Const) {
            let _ = writeln!(out, "    cvta{space}.u64 %a{number}, %a{number};");
        }
    }

    /// Code that gives every register that the instructions `of` use a value.
    fn values(&mut self, types: &[Type], of: &str, out: &mut String) {
        for t in types {
            for n in used(t, of) {
                match self.random.below(8) {
                    0 => drop(writeln!(out, "    mov.u32 %x, {};", self.random.pick(INTEGERS) as u32)),
                    1 => drop(writeln!(
                        out,
                        "    mad.lo.u32 %x, %lin, {}, {};",
                        self.random.pick(&[1, 2, 4, 8, 16]),
                        self.random.below(40)
                    )),
                    2 => drop(writeln!(
                        out,
                        "    add.u32 %x, %lin, {n};\n    and.b32 %x, %x, {};",
                        self.random.pick(&[1, 3, 7, 31])
                    )),
                    3 => drop(writeln!(out, "    ld.global.u32 %x, [%in+{}];", 4 * self.random.below(1000))),
                    4 => drop(writeln!(out, "    mov.b32 %x, 0x{};", self.random.pick(SINGLES))),
                    _ => {
                        let _ = writeln!(
                            out,
                            "    mad.wide.u32 %at, %lin, 4, %in;\n    ld.global.u32 %x, [%at+{}];",
                            4 * self.random.below(800)
                        );
                    }
                }
                let name = format!("%{}_{n}", t.name());
                let line = match t.bits() {
                    _ if *t == Type::Pred => format!(
                        "setp.gt.u32 {name}, %x, {};",
                        self.random.pick(&[0, 1, 3, 0x7fff_ffffu32, 0xffff_ffff])
                    ),
                    8 => format!("cvt.u8.u32 {name}, %x;"),
                    16 => match self.random.chance(50) {
                        true => format!("mov.b32 {{{name}, _}}, %x;"),
                        false => format!("mov.b32 {{_, {name}}}, %x;"),
                    },
                    32 => format!("mov.b32 {name}, %x;"),
                    64 => {
                        let high = match self.random.below(4) {
                            0 => "%x",
                            1 => "%y",
                            2 => "%lin",
                            _ => "0",
                        };
                        match self.random.chance(70) {
                            true => format!("mov.b64 {name}, {{%x, {high}}};\n    mov.b32 %y, %x;"),
                            false => format!("mov.b64 {name}, {{{high}, %x}};\n    mov.b32 %y, %x;"),
                        }
                    }
                    _ => format!(
                        "mov.b64 %at, {{%x, %y}};\n    mov.b64 %ac, {{%lin, %x}};\n    mov.b128 {name}, {{%at, %ac}};"
                    ),
                };
                let _ = writeln!(out, "    {line}");
            }
        }
    }

    /// Code that stores a hash of these registers.
    fn results(&mut self, types: &[Type], of: &str, out: &mut String) {
        let mut at = 128;
        for t in types {
            let _ = writeln!(out, "    mov.b64 %hash, 7;");
            for n in used(t, of) {
                let name = format!("%{}_{n}", t.name());
                let line = match t.bits() {
                    _ if *t == Type::Pred => format!("selp.b64 %at, 1, 2, {name};"),
                    8 => format!("cvt.u64.u8 %at, {name};"),
                    16 => format!("mov.b32 %x, {{{name}, {name}}};\n    cvt.u64.u32 %at, %x;"),
                    32 => format!("mov.b32 %x, {name};\n    cvt.u64.u32 %at, %x;"),
                    64 => format!("mov.b64 %at, {name};"),
                    _ => format!("mov.b128 {{%at, %ac}}, {name};\n    mad.lo.u64 %at, %ac, 77, %at;"),
                };
                let _ = writeln!(out, "    {line}\n    mad.lo.u64 %hash, %hash, 0x100000001b3, %at;");
            }
            let _ = writeln!(out, "    st.global.u64 [%own+{at}], %hash;");
            at += 8;
        }
        debug_assert!(at <= AREA);
    }

    fn text(&mut self, list: &[Instruction]) -> String {
        let all: String = list.iter().map(|i| format!("{}\n", i.text)).collect();
        let uses = |name: &str| all.contains(name);
        let independent = if uses("samplerref_v") { ", texmode_independent" } else { "" };
        let mut out = format!(".version {}\n.target {}{independent}\n.address_size 64\n", self.version, self.target);
        let data: Vec<String> =
            (0..64).map(|_| (self.random.bits() as u32 >> self.random.below(32)).to_string()).collect();
        let data = data.join(", ");
        let _ = writeln!(out, ".global .align 128 .b32 global_v[512] = {{{data}}};");
        let _ = writeln!(out, ".const .align 128 .b32 const_v[128] = {{{data}}};");
        let _ = writeln!(out, ".shared .align 128 .b8 shared_v[4096];");
        for t in [Type::TexRef, Type::SamplerRef, Type::SurfRef] {
            let _ = uses(&format!("{}_v", t.name())).then(|| writeln!(out, ".global .{} {}_v;", t.name(), t.name()));
        }
        let types: Vec<Type> = Type::ALL
            .iter()
            .copied()
            .filter(|t| t.is_register() && (uses(&format!("%{}_", t.name())) || *t == Type::Pred))
            .collect();
        let _ = writeln!(out, ".entry k(.param .u64 in, .param .u64 own, .param .align 16 .b8 param_v[128])\n{{");
        for t in &types {
            let _ = writeln!(out, "    .reg .{0} %{0}_<{REGISTERS}>;", t.name());
        }
        let _ = writeln!(
            out,
            "    .reg .b32 %x, %y, %z, %lin, %n<8>, %trip;\n    .reg .b64 %in, %own, %at, %ac, %hash, %a<8>;\n    .reg .pred %q, %r;\n    .local .align 128 .b8 local_v[512];"
        );
        let _ = writeln!(
            out,
            "    ld.param.u64 %in, [in];\n    ld.param.u64 %own, [own];\n    mov.u32 %lin, %tid.x;\n    mad.wide.u32 %own, %lin, {AREA}, %own;\n    mov.u32 %y, 5;"
        );
        if uses("$T") {
            let _ = writeln!(out, "    $T: .branchtargets $L;");
        }
        self.fill(&mut out);
        self.values(&types, &all, &mut out);
        for (i, instruction) in list.iter().enumerate() {
            self.place(i, instruction, &mut out);
        }
        let _ = writeln!(out, "$L:");
        self.results(&types, &all, &mut out);
        out += "    ret;\n}\n";
        out
    }

    /// Code that fills shared and local memory, and makes a barrier object at the beginning of the shared variable.
    fn fill(&mut self, out: &mut String) {
        let _ = writeln!(
            out,
            "    mov.u32 %trip, 0;\nfill:\n    mad.lo.u32 %x, %trip, 2654435761, 12345;\n    mov.u32 %n0, local_v;\n    add.u32 %n0, %n0, %trip;\n    st.local.b32 [%n0], %x;"
        );
        let _ = writeln!(
            out,
            "    setp.eq.u32 %q, %lin, 0;\n    mov.u32 %n0, shared_v;\n    mad.lo.u32 %n0, %trip, 8, %n0;\n    @%q st.shared.v2.b32 [%n0], {{%x, %trip}};"
        );
        let _ = writeln!(out, "    add.u32 %trip, %trip, 4;\n    setp.lt.u32 %q, %trip, 512;\n    @%q bra fill;");
        if self.target.sm >= 80 && self.version >= Version::new(7, 0) && self.random.chance(50) {
            let count = self.random.pick(&[1, 2, 20, 32, 64, 128]);
            let _ =
                writeln!(out, "    setp.eq.u32 %q, %lin, 0;\n    @%q mbarrier.init.shared.b64 [shared_v], {count};");
        }
        let _ = writeln!(out, "    bar.sync 0;");
    }

    fn place(&mut self, i: usize, instruction: &Instruction, out: &mut String) {
        for (number, space) in &instruction.addresses {
            self.set_address(*number, *space, out);
        }
        let text = &instruction.text;
        let _ = match self.random.below(10) {
            0 => writeln!(
                out,
                "    setp.lt.u32 %q, %lin, {};\n    @!%q bra skip{i};\n    {text}\nskip{i}:",
                self.random.below(40)
            ),
            1 => writeln!(
                out,
                "    and.b32 %z, %lin, 1;\n    setp.eq.u32 %q, %z, 0;\n    @%q bra even{i};\n    {text}\n    bra join{i};\neven{i}:\n    {text}\njoin{i}:"
            ),
            2 => writeln!(
                out,
                "    mov.u32 %trip, 0;\nloop{i}:\n    {text}\n    add.u32 %trip, %trip, 1;\n    setp.lt.u32 %q, %trip, 3;\n    @%q bra loop{i};"
            ),
            3 => writeln!(
                out,
                "    and.b32 %trip, %lin, 3;\nloop{i}:\n    {text}\n    sub.u32 %trip, %trip, 1;\n    setp.gt.s32 %q, %trip, 0;\n    @%q bra loop{i};"
            ),
            _ => writeln!(out, "    {text}"),
        };
    }
}
