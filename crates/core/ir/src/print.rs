//! Prints programs as text: `margay ir --stage lowered|placed`.
//!
//! A block is a label, instructions, a terminator. An instruction is `results = mnemonic values`; the space of a memory
//! operand is inside its brackets, resolved. Registers keep their PTX names; two of the same name in a function get their
//! number appended.

use crate::{
    Arg, CallSite, Callee, FormalHome, FrameRole, Func, FuncId, GlobalInit, Inst, Ir, MemBase, MemSpace, Operand,
    Pointee, Stage, Terminator, VReg,
    abi::{FuncPlaces, Piece, Place, Plan, Reg, Signature, Value},
};
use margay_check::{FormalSpace, FuncKind};
use margay_isa::{Component, Special};
use std::{collections::HashMap, fmt::Write};

/// The whole program.
pub fn print<S: Stage>(ir: &Ir<S>) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "// .version {}, .target {}, .address_size {}", ir.version, ir.target, ir.address_size);
    if ir.thread_block != 0 {
        let _ = writeln!(out, "// {} bytes of module-scope variables in every thread", ir.thread_block);
    }
    for (i, g) in ir.globals.iter().enumerate() {
        let _ = write!(out, "g{i} = .{} \"{}\" size {} align {}", g.space.name(), g.name, g.size, g.align);
        for (word, on) in [("visible", g.visible), ("extern", g.external), ("managed", g.managed)] {
            if on {
                let _ = write!(out, " {word}");
            }
        }
        for init in &g.init {
            match init {
                GlobalInit::Bytes(at, bytes) => {
                    let _ = write!(out, "\n    +{at}: {}", hex(bytes));
                }
                GlobalInit::Property(name, value) => {
                    let _ = write!(out, "\n    {name} = {value}");
                }
                GlobalInit::Address { at, size, shift, of, offset, generic } => {
                    let target = match of {
                        Pointee::Global(g) => format!("g{}", g.0),
                        Pointee::Func(f) => ir.func(*f).name.to_string(),
                    };
                    let how = if *generic { "generic " } else { "" };
                    let _ = write!(out, "\n    +{at}: {size} bytes of {how}&{target}{} >> {shift}", signed(*offset));
                }
            }
        }
        out.push('\n');
    }
    for id in 0..ir.funcs.len() as u32 {
        out.push('\n');
        out += &print_func(ir, FuncId(id));
    }
    out
}

/// One function.
pub fn print_func<S: Stage>(ir: &Ir<S>, id: FuncId) -> String {
    let func = ir.func(id);
    let mut p = Printer { ir, func, names: names(func), out: String::new() };
    p.header(ir.stage.places(id));
    if func.blocks.is_empty() {
        p.out.push_str(if func.builtin.is_some() { " // device library\n" } else { " // no body\n" });
        return p.out;
    }
    p.out.push_str(" {\n");
    p.frame(ir.stage.places(id));
    for b in 0..func.blocks.len() {
        p.block(b, ir.stage.places(id));
    }
    p.out.push_str("}\n");
    p.out
}

struct Printer<'a, S: Stage> {
    ir: &'a Ir<S>,
    func: &'a Func,
    names: Vec<String>,
    out: String,
}

/// Names of registers: those of the text; of several with one name, the second is `%r'2`.
fn names(func: &Func) -> Vec<String> {
    let mut seen: HashMap<&str, u32> = HashMap::new();
    let mut names = Vec::with_capacity(func.reg_names.len());
    for name in &func.reg_names {
        let number = seen.entry(name).or_default();
        *number += 1;
        names.push(if *number == 1 { name.to_string() } else { format!("{name}'{number}") });
    }
    names
}

fn hex(bytes: &[u8]) -> String {
    const SHOWN: usize = 32;
    let mut text: String = bytes.iter().take(SHOWN).map(|b| format!("{b:02x}")).collect();
    if bytes.len() > SHOWN {
        let _ = write!(text, "... ({} bytes)", bytes.len());
    }
    text
}

fn signed(offset: i64) -> String {
    if offset == 0 { String::new() } else { format!("{offset:+}") }
}

/// A formal as its declaration says it: `.param .b8 x[12] align 4`.
pub(crate) fn describe(value: &Value) -> String {
    let space = match value.space {
        FormalSpace::Reg => ".reg",
        FormalSpace::Param => ".param",
    };
    let vector = if value.vector > 1 { format!(" .v{}", value.vector) } else { String::new() };
    let natural = value.ty.bytes().max(1) * u32::from(value.vector.max(1));
    let align = if value.align == natural { String::new() } else { format!(" .align {}", value.align) };
    let extent = match value {
        _ if value.is_unsized => "[]".to_string(),
        _ if value.array => format!("[{}]", value.size / value.ty.bytes().max(1)),
        _ => String::new(),
    };
    format!("{space}{align}{vector} {}{extent}", value.ty)
}

fn component(c: Component) -> char {
    match c {
        Component::X => 'x',
        Component::Y => 'y',
        Component::Z => 'z',
        Component::W => 'w',
    }
}

fn special(s: Special, c: Component) -> String {
    let info = s.info();
    let name = match s {
        Special::EnvReg(i) => format!("%envreg{i}"),
        Special::Pm(i) => format!("%pm{i}"),
        Special::Pm64(i) => format!("%pm{i}_64"),
        _ => info.name.to_string(),
    };
    if info.width > 1 { format!("{name}.{}", component(c)) } else { name }
}

fn pieces(pieces: &[Piece], name: &dyn Fn(Reg) -> String) -> String {
    let one = |p: &Piece| match p.at {
        Place::Reg(r) => name(r),
        Place::Stack { offset } => format!("stack+{offset}"),
        Place::Space { offset } => format!("param+{offset}"),
        Place::Behind(r) => format!("[{}]", name(r)),
    };
    pieces.iter().map(one).collect::<Vec<_>>().join(":")
}

impl<S: Stage> Printer<'_, S> {
    fn register_name(&self, reg: Reg) -> String {
        match self.ir.stage.abi().and_then(crate::abi::by_name) {
            Some(abi) => abi.register_name(reg),
            None => format!("{}{}", reg.class, reg.index),
        }
    }

    fn places(&self, list: &[Vec<Piece>]) -> Vec<String> {
        list.iter().map(|p| pieces(p, &|r| self.register_name(r))).collect()
    }

    fn header(&mut self, places: Option<&FuncPlaces>) {
        let func = self.func;
        let kind = match func.kind {
            FuncKind::Kernel => ".entry",
            FuncKind::Device => ".func",
        };
        let side = |values: &[Value], homes: &[FormalHome], plan: Option<&Vec<Vec<Piece>>>| {
            let places = plan.map(|p| self.places(p)).unwrap_or_default();
            let one = |(i, v): (usize, &Value)| {
                let home = match homes.get(i) {
                    Some(FormalHome::Regs(regs)) => {
                        regs.iter().map(|r| self.names[r.0 as usize].clone()).collect::<Vec<_>>().join(" ")
                    }
                    Some(FormalHome::Frame(id)) => format!("f{}", id.0),
                    Some(FormalHome::Kernel(offset)) => format!("param+{offset}"),
                    None => "_".to_string(),
                };
                let at = places.get(i).map(|p| format!(" @ {p}")).unwrap_or_default();
                format!("{}: {home}{at}", describe(v))
            };
            values.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
        };
        let params = side(&func.sig.params, &func.params, places.map(|p| &p.plan.args));
        let rets = side(&func.sig.rets, &func.rets, places.map(|p| &p.plan.rets));
        let noreturn = if func.noreturn { " .noreturn" } else { "" };
        let arrow = if rets.is_empty() { String::new() } else { format!(" -> ({rets})") };
        let _ = write!(self.out, "{kind} {}({params}){arrow}{noreturn}", func.name);
    }

    fn frame(&mut self, places: Option<&FuncPlaces>) {
        if let Some(p) = places {
            let outgoing = p.calls.iter().map(|c| c.stack).max().unwrap_or(0);
            let _ = writeln!(
                self.out,
                "    // frame: {} bytes, align {}; outgoing area of {outgoing} bytes at {}",
                p.frame_size, p.frame_align, p.outgoing
            );
        }
        for (i, var) in self.func.frame.iter().enumerate() {
            let role = match var.role {
                FrameRole::Local => "local".to_string(),
                FrameRole::Param => "param".to_string(),
                FrameRole::Formal(i) => format!("formal {i}"),
                FrameRole::Return(i) => format!("return {i}"),
            };
            let at = places.map(|p| format!(" at {}", p.frame[i])).unwrap_or_default();
            let taken = if var.address_taken { ", address taken" } else { "" };
            let (name, size, align) = (&var.name, var.size, var.align);
            let _ = writeln!(self.out, "    f{i} = {role} \"{name}\" size {size} align {align}{taken}{at}");
        }
    }

    fn block(&mut self, index: usize, places: Option<&FuncPlaces>) {
        let block = &self.func.blocks[index];
        let label = block.label.as_ref().map(|l| format!(" // {l}")).unwrap_or_default();
        let _ = writeln!(self.out, "  b{index}:{label}");
        for inst in self.func.insts(block) {
            let line = self.inst(inst, places);
            let _ = writeln!(self.out, "    {line}");
        }
        let uni = |uniform: bool| if uniform { ".uni" } else { "" };
        let _ = match &block.term {
            Terminator::Jump(t) => writeln!(self.out, "    jump b{}", t.0),
            Terminator::Branch { pred, negated, then, other, uniform } => {
                let not = if *negated { "!" } else { "" };
                let name = &self.names[pred.0 as usize];
                writeln!(self.out, "    branch{} {not}{name}, b{}, b{}", uni(*uniform), then.0, other.0)
            }
            Terminator::Switch { index, targets, uniform } => {
                let list = targets.iter().map(|t| format!("b{}", t.0)).collect::<Vec<_>>().join(", ");
                let index = self.operand(*index, None);
                writeln!(self.out, "    switch{} {index}, [{list}]", uni(*uniform))
            }
            Terminator::Ret => writeln!(self.out, "    ret"),
            Terminator::Exit => writeln!(self.out, "    exit"),
        };
    }

    fn inst(&self, inst: &Inst, places: Option<&FuncPlaces>) -> String {
        let func = self.func;
        let mut text = String::new();
        if let Some((p, negated)) = inst.guard {
            let _ = write!(text, "@{}{} ", if negated { "!" } else { "" }, self.names[p.0 as usize]);
        }
        let list = |ops: &[Operand]| ops.iter().map(|o| self.operand(*o, inst.space)).collect::<Vec<_>>().join(", ");
        let dsts = list(func.operands(inst.dsts));
        if !dsts.is_empty() {
            let _ = write!(text, "{dsts} = ");
        }
        let _ = write!(text, "{}", func.variant(inst));
        match func.operands(inst.srcs) {
            [Operand::Call(call)] => {
                let plan = places.map(|p| &p.calls[*call as usize]);
                let _ = write!(text, " {}", self.call(&func.calls[*call as usize], plan));
            }
            srcs if !srcs.is_empty() => {
                let _ = write!(text, " {}", list(srcs));
            }
            _ => {}
        }
        text
    }

    fn reg(&self, reg: VReg) -> &str {
        self.names.get(reg.0 as usize).map_or("?", |n| n)
    }

    fn operand(&self, operand: Operand, in_space: Option<MemSpace>) -> String {
        match operand {
            Operand::Reg(r) => self.reg(r).to_string(),
            Operand::Not(r) => format!("!{}", self.reg(r)),
            Operand::Imm(bits) if bits < 10 => bits.to_string(),
            Operand::Imm(bits) => format!("{bits:#x}"),
            Operand::Special(s, c) => special(s, c),
            Operand::GlobalAddr(g, offset) => format!("&g{}{}", g.0, signed(offset)),
            Operand::FrameAddr(f, offset) => format!("&f{}{}", f.0, signed(offset)),
            Operand::ParamAddr(offset) => format!("&param{}", signed(offset)),
            Operand::Func(f) => format!("&{}", self.ir.func(f).name),
            Operand::Mem(base, offset) => {
                let space = in_space.map_or("", MemSpace::name);
                let base = match base {
                    MemBase::Reg(r) => self.reg(r).to_string(),
                    MemBase::Global(g) => format!("g{}", g.0),
                    MemBase::Frame(f) => format!("f{}", f.0),
                    MemBase::KernelParam => "block".to_string(),
                    MemBase::Absolute => return format!("{space}[{offset:#x}]"),
                };
                format!("{space}[{base}{}]", signed(offset))
            }
            Operand::Call(index) => format!("call {index}"),
            Operand::Sink => "_".to_string(),
        }
    }

    fn call(&self, call: &CallSite, plan: Option<&Plan>) -> String {
        let side = |args: &[Arg], plan: Option<&Vec<Vec<Piece>>>| {
            let places = plan.map(|p| self.places(p)).unwrap_or_default();
            let one = |(i, arg): (usize, &Arg)| {
                let what = match arg {
                    Arg::Values(ops) => ops.iter().map(|o| self.operand(*o, None)).collect::<Vec<_>>().join(" "),
                    Arg::Frame(f) => format!("f{}", f.0),
                    Arg::Omitted => "_".to_string(),
                };
                places.get(i).map_or(what.clone(), |p| format!("{what} @ {p}"))
            };
            args.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
        };
        let callee = match &call.callee {
            Callee::Direct(f) => self.ir.func(*f).name.to_string(),
            Callee::Indirect(r, None) => format!("*{} {}", self.reg(*r), signature(&call.sig)),
            Callee::Indirect(r, Some(list)) => {
                let list = list.iter().map(|f| &*self.ir.func(*f).name).collect::<Vec<_>>().join(" ");
                format!("*{} {{{list}}}", self.reg(*r))
            }
        };
        let args = side(&call.args, plan.map(|p| &p.args));
        let rets = side(&call.rets, plan.map(|p| &p.rets));
        let uni = if call.uniform { ".uni" } else { "" };
        if rets.is_empty() { format!("{callee}{uni}({args})") } else { format!("{callee}{uni}({args}) -> ({rets})") }
    }
}

fn signature(sig: &Signature) -> String {
    let list = |values: &[Value]| values.iter().map(describe).collect::<Vec<_>>().join(", ");
    format!("<({}) -> ({})>", list(&sig.params), list(&sig.rets))
}
