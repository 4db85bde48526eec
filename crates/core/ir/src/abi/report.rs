//! The data of `margay abi`, before formatting as a table, JSON or HTML: for every function, the locations of its parameters and return
//! values and what each call site passes; for every kernel, the parameter block passed to cuLaunchKernel.

use super::{Abi, NoPlan, Piece, Place, Value, kernel_layout, kernel_limit, kernel_plan};
use crate::{Arg, CallSite, Callee, Func, Ir, Operand, VReg, Virtual, pass::mark_uniform_values, print::describe};
use margay_check::{FuncKind, PtrAttr};
use std::{fmt::Write, ops::Range};

/// Lanes of a vector register of ABIs that have such.
const LANES: u32 = 32;

/// All functions of a program under one ABI.
#[derive(Clone, Debug)]
pub struct Report {
    /// The ABI's name.
    pub abi: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// In the order of the program.
    pub functions: Vec<FuncReport>,
}

/// One function or kernel.
#[derive(Clone, Debug)]
pub struct FuncReport {
    /// Its name.
    pub name: String,
    /// Kernel or device function.
    pub kind: FuncKind,
    /// Has a body in the program.
    pub defined: bool,
    /// `.noreturn`, `.abi_preserve N`, `.abi_preserve_control N`
    pub attributes: Vec<String>,
    /// Returns.
    pub rets: Vec<Row>,
    /// Formals.
    pub params: Vec<Row>,
    /// Why the ABI has no plan; then the rows have no pieces.
    pub no_plan: Option<String>,
    /// Bytes of the outgoing area.
    pub stack: u32,
    /// Registers that the callee may overwrite, joined: `R4..R15`.
    pub clobbers: String,
    /// For kernels: what the parameters cost.
    pub block: Option<Block>,
    /// Calls in the body, in order.
    pub calls: Vec<CallReport>,
}

/// A kernel's parameter block.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Bytes in all.
    pub size: u32,
    /// Bytes between parameters.
    pub padding: u32,
    /// Most bytes that the module's version and target allow.
    pub limit: u32,
}

/// A formal or return.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its declaration without the name.
    pub ty: String,
    /// Bytes; 0 for an array without size.
    pub bytes: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// Unused bytes before it in memory, or after it in its last register.
    pub padding: u32,
    /// The body takes its address, so it gets a copy in the frame.
    pub address_taken: bool,
    /// Where its bytes are.
    pub pieces: Vec<PieceReport>,
}

/// A part of a value and its place.
#[derive(Clone, Debug)]
pub struct PieceReport {
    /// Which bytes of the value.
    pub bytes: Range<u32>,
    /// Where, for people: `R4`, `stack+8`, `param+0`, `[rdi+0]`.
    pub at: String,
    /// Where.
    pub place: Place,
}

/// A call.
#[derive(Clone, Debug)]
pub struct CallReport {
    /// 1-based line in the PTX text; 0 if unknown.
    pub line: u32,
    /// The callee.
    pub callee: String,
    /// What is passed: the argument as the text has it, the formal's name, its places.
    pub args: Vec<Passed>,
    /// Where results go.
    pub rets: Vec<Passed>,
    /// Why the ABI has no plan for it.
    pub no_plan: Option<String>,
}

/// An argument or result of a call.
#[derive(Clone, Debug)]
pub struct Passed {
    /// `%r5`, `py (12 bytes)`, `3`, `nothing`.
    pub what: String,
    /// Name of the formal; empty for indirect calls.
    pub formal: String,
    /// Where it travels.
    pub pieces: Vec<PieceReport>,
}

/// Reports on a whole program.
pub fn report(ir: &Ir<Virtual>, abi: &dyn Abi) -> Report {
    let mut ir = ir.clone();
    if abi.distinguishes_uniform() {
        mark_uniform_values(&mut ir);
    }
    let functions = ir.funcs.iter().map(|f| function(&ir, f, abi)).collect();
    Report { abi: abi.name(), about: abi.about(), functions }
}

fn function(ir: &Ir<Virtual>, func: &Func, abi: &dyn Abi) -> FuncReport {
    let kernel = func.kind == FuncKind::Kernel;
    let plan = if kernel { Ok(kernel_plan(&func.sig)) } else { abi.plan(&func.sig, LANES) };
    let no_plan = plan.as_ref().err().map(NoPlan::to_string);
    let plan = plan.unwrap_or_default();
    let taken = |returns: bool, i: usize| {
        let home = if returns { func.rets.get(i) } else { func.params.get(i) };
        matches!(home, Some(crate::FormalHome::Frame(id)) if func.frame[id.0 as usize].address_taken)
    };
    let ends = [sorted_ends(&plan.args), sorted_ends(&plan.rets)];
    let rows = |values: &[Value], names: &[Box<str>], pieces: &[Vec<Piece>], returns: bool| -> Vec<Row> {
        let all = values.iter().enumerate();
        let pointers = if returns { &[][..] } else { &func.pointers };
        all.map(|(i, value)| {
            let pieces = pieces.get(i).map_or(&[][..], |p| p);
            Row {
                name: names.get(i).map(|n| n.to_string()).unwrap_or_default(),
                ty: describe(value) + &pointers.get(i).copied().flatten().map_or(String::new(), |p| pointer(&p)),
                bytes: value.size,
                align: value.align,
                padding: padding(pieces, &ends, returns),
                address_taken: taken(returns, i),
                pieces: pieces.iter().map(|p| piece(p, abi)).collect(),
            }
        })
        .collect()
    };
    let block = kernel.then(|| {
        let size = kernel_layout(&func.sig).size;
        let used: u32 = func.sig.params.iter().map(|p| p.size).fold(0, u32::saturating_add);
        Block { size, padding: size.saturating_sub(used), limit: kernel_limit(ir.version, ir.target) }
    });
    FuncReport {
        name: func.name.to_string(),
        kind: func.kind,
        defined: !func.blocks.is_empty(),
        attributes: attributes(func),
        rets: rows(&func.sig.rets, &func.ret_names, &plan.rets, true),
        params: rows(&func.sig.params, &func.param_names, &plan.args, false),
        no_plan,
        stack: plan.stack,
        clobbers: ranges(&plan.clobbers.iter().map(|r| abi.register_name(*r)).collect::<Vec<_>>()),
        block,
        calls: calls(ir, func, abi),
    }
}

/// The directives of a function that change how it is called.
fn attributes(func: &Func) -> Vec<String> {
    let preserve = |directive: &str, n: Option<u32>| n.map(|n| format!(".{directive} {n}"));
    let all = [
        func.noreturn.then(|| ".noreturn".to_string()),
        preserve("abi_preserve", func.sig.preserve),
        preserve("abi_preserve_control", func.sig.preserve_control),
    ];
    all.into_iter().flatten().collect()
}

/// `.ptr` and what follows it.
fn pointer(attribute: &PtrAttr) -> String {
    let space = attribute.space.map_or(String::new(), |space| format!(" {space}"));
    format!(" .ptr{space} .align {}", attribute.align)
}

/// Start and end in memory of a value's first piece there.
fn memory(pieces: &[Piece]) -> Option<(u32, u32)> {
    pieces.iter().find_map(|p| match p.at {
        Place::Stack { offset } | Place::Space { offset } => {
            Some((offset, offset.saturating_add(p.bytes.len() as u32)))
        }
        Place::Reg(_) | Place::Behind(_) => None,
    })
}

/// Where the values in memory end, in ascending order.
fn sorted_ends(values: &[Vec<Piece>]) -> Vec<u32> {
    let mut ends: Vec<u32> = values.iter().filter_map(|p| memory(p)).map(|(_, end)| end).collect();
    ends.sort_unstable();
    ends
}

/// Unused bytes before a value in memory, or after it in its register. `ends` are those of the inputs and of the return values.
fn padding(pieces: &[Piece], ends: &[Vec<u32>; 2], returns: bool) -> u32 {
    if let Some((start, _)) = memory(pieces) {
        let shared = pieces.iter().any(|p| matches!(p.at, Place::Space { .. }));
        // PTX's parameter block contains both inputs and return values.
        let beside = |of_returns: bool| shared || of_returns == returns;
        let ends = ends.iter().zip([false, true]).filter(|(_, of_returns)| beside(*of_returns));
        let before = ends.filter_map(|(ends, _)| ends[..ends.partition_point(|end| *end <= start)].last()).max();
        return start - before.unwrap_or(&0);
    }
    match pieces.last() {
        Some(Piece { bytes, at: Place::Reg(r) }) => u32::from(r.bytes) - bytes.len() as u32,
        _ => 0,
    }
}

fn piece(p: &Piece, abi: &dyn Abi) -> PieceReport {
    let at = match p.at {
        Place::Reg(reg) => abi.register_name(reg),
        Place::Stack { offset } => format!("stack+{offset}"),
        Place::Space { offset } => format!("param+{offset}"),
        Place::Behind(reg) => format!("[{}+{}]", abi.register_name(reg), p.bytes.start),
    };
    PieceReport { bytes: p.bytes.clone(), at, place: p.at }
}

fn calls(ir: &Ir<Virtual>, func: &Func, abi: &dyn Abi) -> Vec<CallReport> {
    let mut found = Vec::new();
    for inst in func.blocks.iter().flat_map(|b| func.insts(b)) {
        if let [Operand::Call(index)] = func.operands(inst.srcs) {
            let at = func.places[inst.at as usize];
            let line = func.source.lines().line(at.span.start);
            found.push((at.span.start, call(ir, func, &func.calls[*index as usize], line, abi)));
        }
    }
    found.sort_by_key(|f| f.0);
    found.into_iter().map(|f| f.1).collect()
}

fn call(ir: &Ir<Virtual>, func: &Func, site: &CallSite, line: u32, abi: &dyn Abi) -> CallReport {
    let sig = match &site.callee {
        Callee::Direct(id) => &ir.func(*id).sig,
        Callee::Indirect(..) => &site.sig,
    };
    let plan = abi.plan(sig, LANES);
    let no_plan = plan.as_ref().err().map(NoPlan::to_string);
    let plan = plan.unwrap_or_default();
    let reg = |r: VReg| func.reg_names[r.0 as usize].to_string();
    let (callee, names) = match &site.callee {
        Callee::Direct(id) => (ir.func(*id).name.to_string(), Some(ir.func(*id))),
        Callee::Indirect(r, None) => (format!("through {}", reg(*r)), None),
        Callee::Indirect(r, Some(targets)) => {
            let list: Vec<&str> = targets.iter().map(|t| &*ir.func(*t).name).collect();
            (format!("through {}: {}", reg(*r), list.join(" or ")), None)
        }
    };
    let passed = |args: &[Arg], values: &[Value], pieces: &[Vec<Piece>], formals: Option<&[Box<str>]>| -> Vec<Passed> {
        let one = |(i, (arg, value)): (usize, (&Arg, &Value))| Passed {
            what: match arg {
                Arg::Values(ops) => ops.iter().map(|o| operand(func, *o, value)).collect::<Vec<_>>().join(" "),
                Arg::Frame(id) => {
                    let var = &func.frame[id.0 as usize];
                    format!("{} ({} bytes)", var.name, var.size)
                }
                Arg::Omitted => "nothing".to_string(),
            },
            formal: formals.and_then(|f| f.get(i)).map(|n| n.to_string()).unwrap_or_default(),
            pieces: pieces.get(i).map_or(&[][..], |p| p).iter().map(|p| piece(p, abi)).collect(),
        };
        args.iter().zip(values).enumerate().map(one).collect()
    };
    CallReport {
        line,
        callee,
        args: passed(&site.args, &site.sig.params, &plan.args, names.map(|f| &f.param_names[..])),
        rets: passed(&site.rets, &site.sig.rets, &plan.rets, names.map(|f| &f.ret_names[..])),
        no_plan,
    }
}

fn operand(func: &Func, operand: Operand, value: &Value) -> String {
    match operand {
        Operand::Reg(r) => func.reg_names[r.0 as usize].to_string(),
        Operand::Not(r) => format!("!{}", func.reg_names[r.0 as usize]),
        Operand::Imm(bits) if value.ty.is_float() && value.ty.bits() == 32 => f32::from_bits(bits as u32).to_string(),
        Operand::Imm(bits) if value.ty.is_float() && value.ty.bits() == 64 => f64::from_bits(bits).to_string(),
        Operand::Imm(bits) => bits.to_string(),
        Operand::Special(s, _) => s.info().name.to_string(),
        _ => "an address".to_string(),
    }
}

/// `R4 R5 R6 R9` as `R4..R6, R9`: names that share a prefix and count up are joined.
fn ranges(names: &[String]) -> String {
    let split = |name: &str| {
        let digits = name.find(|c: char| c.is_ascii_digit())?;
        Some((name[..digits].to_string(), name[digits..].parse::<u32>().ok()?))
    };
    let mut out: Vec<(String, String)> = Vec::new();
    for name in names {
        let next = out.last().and_then(|(_, last)| split(last)).map(|(prefix, n)| format!("{prefix}{}", n + 1));
        match out.last_mut() {
            Some((_, last)) if next.as_ref() == Some(name) => *last = name.clone(),
            _ => out.push((name.clone(), name.clone())),
        }
    }
    let texts: Vec<String> = out.iter().map(|(a, b)| if a == b { a.clone() } else { format!("{a}..{b}") }).collect();
    texts.join(", ")
}

impl Row {
    /// All places on one line: `R6 R7`, or `0..8: xmm0, 8..12: xmm1` where bytes do not simply follow each other.
    pub fn places(&self) -> String {
        places(&self.pieces)
    }

    /// `12`, or `any` for an array without size.
    pub fn size(&self) -> String {
        if self.bytes == 0 { "any".to_string() } else { self.bytes.to_string() }
    }
}

/// See [`Row::places`].
pub fn places(pieces: &[PieceReport]) -> String {
    pieces.iter().map(|p| p.at.clone()).collect::<Vec<_>>().join(" ")
}

impl Report {
    /// Tables for a terminal.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for f in &self.functions {
            f.text(&mut out);
        }
        out
    }
}

impl FuncReport {
    /// `kernel` or `function`.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            FuncKind::Kernel => "kernel",
            FuncKind::Device => "function",
        }
    }

    /// What it is, its name and attributes, and whether it is only declared.
    pub fn title(&self) -> String {
        let attributes: String = self.attributes.iter().map(|a| format!(" {a}")).collect();
        let declared = if self.defined { "" } else { " (declared)" };
        format!("{} {}{attributes}{declared}", self.kind_name(), self.name)
    }

    /// Facts below the table.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(b) = self.block {
            notes.push(format!(
                "{} bytes of parameters, {} of them padding; limit {} bytes ({:.1} % used)",
                b.size,
                b.padding,
                b.limit,
                100.0 * f64::from(b.size) / f64::from(b.limit.max(1))
            ));
            if b.size > b.limit {
                notes.push(format!("{} bytes too many", b.size - b.limit));
            }
            return notes;
        }
        if self.stack > 0 {
            let area = if self
                .params
                .iter()
                .chain(&self.rets)
                .flat_map(|r| &r.pieces)
                .any(|p| matches!(p.place, Place::Space { .. }))
            {
                "parameter space"
            } else {
                "stack for arguments"
            };
            notes.push(format!("{} bytes of {area}", self.stack));
        }
        if !self.clobbers.is_empty() {
            notes.push(format!("the callee may overwrite {}", shortened(&self.clobbers)));
        }
        notes
    }

    fn text(&self, out: &mut String) {
        let _ = writeln!(out, "{}", self.title());
        if let Some(why) = &self.no_plan {
            let _ = writeln!(out, "  this ABI cannot pass it: {why}\n");
            return;
        }
        let place = if self.block.is_some() { "offset" } else { "place" };
        let mut rows = vec![["", "name", "type", "bytes", "align", "padding", place].map(String::from)];
        let sides = [("result", &self.rets), ("argument", &self.params)];
        for (role, i, r) in
            sides.iter().flat_map(|(role, rows)| rows.iter().enumerate().map(move |(i, r)| (role, i, r)))
        {
            let in_memory = matches!(r.pieces.first(), Some(PieceReport { place: Place::Stack { .. }, .. }));
            let taken = match (r.address_taken, in_memory) {
                (true, true) => " (address taken)",
                (true, false) => " (address taken: copied to the frame)",
                (false, _) => "",
            };
            let at = match (self.block, r.pieces.first()) {
                (Some(_), Some(PieceReport { place: Place::Space { offset }, .. })) => offset.to_string(),
                _ => format!("{}{taken}", r.places()),
            };
            let padding = if r.padding == 0 { String::new() } else { r.padding.to_string() };
            rows.push([
                format!("{role} {i}"),
                r.name.clone(),
                r.ty.clone(),
                r.size(),
                r.align.to_string(),
                padding,
                at,
            ]);
        }
        if rows.len() == 1 {
            out.push_str("  no parameters, no results\n");
        } else {
            align_columns(&rows, "  ", out);
        }
        for note in self.notes() {
            let _ = writeln!(out, "  {note}");
        }
        for c in &self.calls {
            let _ = writeln!(out, "  line {}: call {}", c.line, c.callee);
            if let Some(why) = &c.no_plan {
                let _ = writeln!(out, "    this ABI cannot pass it: {why}");
                continue;
            }
            let mut rows = Vec::new();
            for (arrow, side) in [("->", &c.args), ("<-", &c.rets)] {
                for p in side {
                    rows.push([p.what.clone(), arrow.to_string(), places(&p.pieces), p.formal.clone()]);
                }
            }
            align_columns(&rows, "    ", out);
        }
        out.push('\n');
    }
}

/// The first ranges of a long list of registers.
fn shortened(ranges: &str) -> String {
    const SHOWN: usize = 6;
    let all: Vec<&str> = ranges.split(", ").collect();
    if all.len() <= SHOWN + 2 {
        return ranges.to_string();
    }
    format!("{} and {} more ranges up to {}", all[..SHOWN].join(", "), all.len() - SHOWN, all[all.len() - 1])
}

fn align_columns<const N: usize>(rows: &[[String; N]], indent: &str, out: &mut String) {
    let width = |c: usize| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    for row in rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, w)| format!("{cell:w$}")).collect();
        let _ = writeln!(out, "{indent}{}", cells.join("  ").trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_that_count_up_are_joined() {
        let names: Vec<String> = ["R4", "R5", "R6", "R9", "xmm0", "xmm1", "rdi"].map(String::from).to_vec();
        assert_eq!(ranges(&names), "R4..R6, R9, xmm0..xmm1, rdi");
    }
}
