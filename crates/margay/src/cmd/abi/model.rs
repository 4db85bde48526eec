//! What `margay abi` shows, before it is text: one entry for each function, one row for each formal or piece of it.

use margay_check::{Checked, Formal, FuncKind, Function};
use margay_ir::{
    abi::{Abi, Piece, Place, Plan, Value, kernel_layout, kernel_limit, kernel_plan},
    signature,
};
use serde_json::{Value as Json, json};

/// Lanes of a vector register of ABIs that have such.
const LANES: u32 = 32;

/// A function or kernel.
pub struct Entry {
    /// Its name.
    pub name: String,
    /// `kernel` or `function`.
    pub kind: &'static str,
    /// Whether the host lays out its parameters.
    pub is_kernel: bool,
    /// Returns first, then parameters.
    pub rows: Vec<Row>,
    /// Totals, limits.
    pub notes: Vec<String>,
    /// Why the ABI has no plan.
    pub no_plan: Option<String>,
}

/// A formal, with all its pieces.
pub struct Row {
    /// `result 0`, `argument 2`.
    pub role: String,
    /// Name in the text.
    pub name: String,
    /// `.param .align 8 .b8[32]`
    pub ty: String,
    /// Bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// Unused bytes before it, in its block.
    pub padding: u32,
    /// Bytes of the value and where they are.
    pub pieces: Vec<(std::ops::Range<u32>, String)>,
}

impl Row {
    /// Titles of [`Row::cells`].
    pub fn header(is_kernel: bool) -> [&'static str; 7] {
        let place = if is_kernel { "offset" } else { "place" };
        ["", "name", "type", "bytes", "align", "padding", place]
    }

    /// The columns of a table.
    pub fn cells(&self, _is_kernel: bool) -> [String; 7] {
        let whole = |range: &std::ops::Range<u32>| *range == (0..self.size);
        let piece = |(range, place): &(std::ops::Range<u32>, String)| match whole(range) {
            true => place.clone(),
            false => format!("{}..{}: {place}", range.start, range.end),
        };
        let places: Vec<String> = self.pieces.iter().map(piece).collect();
        let padding = if self.padding == 0 { String::new() } else { self.padding.to_string() };
        let size = if self.size == 0 { "any".into() } else { self.size.to_string() };
        [
            self.role.clone(),
            self.name.clone(),
            self.ty.clone(),
            size,
            self.align.to_string(),
            padding,
            places.join(", "),
        ]
    }
}

/// Entries of all functions of a module, in order of the text.
pub fn entries(module: &Checked, abi: &dyn Abi) -> Vec<Entry> {
    module.module.funcs.iter().map(|f| entry(module, f, abi)).collect()
}

fn entry(module: &Checked, func: &Function, abi: &dyn Abi) -> Entry {
    let (sig, is_kernel) = (signature(func), func.kind == FuncKind::Kernel);
    let mut entry = Entry {
        name: func.name.to_string(),
        kind: if is_kernel { "kernel" } else { "function" },
        is_kernel,
        rows: Vec::new(),
        notes: Vec::new(),
        no_plan: None,
    };
    let plan = if is_kernel { Ok(kernel_plan(&sig)) } else { abi.plan(&sig, LANES) };
    let plan: Plan = match plan {
        Ok(plan) => plan,
        Err(e) => {
            entry.no_plan = Some(e.value.map_or(e.reason.clone(), |v| format!("{v}: {}", e.reason)));
            return entry;
        }
    };
    let rows = |role: &str, formals: &[Formal], values: &[Value], pieces: &[Vec<Piece>]| -> Vec<Row> {
        let mut end = 0;
        let all = formals.iter().zip(values).zip(pieces).enumerate();
        all.map(|(i, ((formal, value), pieces))| {
            let start = pieces.first().and_then(|p| match p.at {
                Place::Space { offset } | Place::Stack { offset } => Some(offset),
                Place::Reg(_) | Place::Behind(_) => None,
            });
            let padding = start.map_or(0, |s| s.saturating_sub(end));
            end = start.map_or(end, |s| s + value.size);
            let place = |p: &Piece| (p.bytes.clone(), place(p, abi, is_kernel));
            Row {
                role: format!("{role} {i}"),
                name: formal.name.to_string(),
                ty: ty(formal),
                size: value.size,
                align: value.align,
                padding,
                pieces: pieces.iter().map(place).collect(),
            }
        })
        .collect()
    };
    entry.rows = rows("result", &func.rets, &sig.rets, &plan.rets);
    entry.rows.extend(rows("argument", &func.params, &sig.params, &plan.args));
    if is_kernel {
        let (layout, module) = (kernel_layout(&sig), &module.module);
        let limit = kernel_limit(module.version, module.target);
        let used: u32 = sig.params.iter().map(|p| p.size).sum();
        let (size, padding) = (layout.size, layout.size - used.min(layout.size));
        entry
            .notes
            .push(format!("{size} bytes of parameters, {padding} of them padding, of {limit} that the target allows"));
        let largest = func.params.iter().max_by_key(|p| p.size).filter(|p| size > limit / 2 && p.size > 0);
        entry.notes.extend(largest.map(|p| format!("the largest is `{}` with {} bytes", p.name, p.size)));
    } else {
        if plan.stack > 0 {
            entry.notes.push(format!("{} bytes of stack for arguments", plan.stack));
        }
        if !plan.clobbers.is_empty() {
            let names: Vec<String> = plan.clobbers.iter().map(|r| abi.register_name(*r)).collect();
            entry.notes.push(format!("the callee may overwrite {}", ranges(&names)));
        }
    }
    entry
}

fn place(piece: &Piece, abi: &dyn Abi, is_kernel: bool) -> String {
    match piece.at {
        Place::Reg(reg) => abi.register_name(reg),
        Place::Stack { offset } => format!("stack+{offset}"),
        Place::Space { offset } if is_kernel => offset.to_string(),
        Place::Space { offset } => format!("param+{offset}"),
        Place::Behind(reg) => format!("[{}+{}]", abi.register_name(reg), piece.bytes.start),
    }
}

/// The declaration less its name.
fn ty(f: &Formal) -> String {
    use margay_check::{Extent, FormalSpace};
    let space = match f.space {
        FormalSpace::Reg => ".reg",
        FormalSpace::Param => ".param",
    };
    let natural = f.ty.bytes().max(1) * u32::from(f.vector);
    let align = if f.align != natural { format!(" .align {}", f.align) } else { String::new() };
    let vector = if f.vector > 1 { format!(" .v{}", f.vector) } else { String::new() };
    let extent = match f.extent {
        Extent::Scalar => String::new(),
        Extent::Array(n) => format!("[{n}]"),
        Extent::Unsized => "[]".into(),
    };
    format!("{space}{align}{vector} {}{extent}", f.ty)
}

/// "R4 R5 R6 R9" as "R4..R6, R9": names that share a prefix and count up are joined.
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

/// Everything as one object.
pub fn json(file: &str, abi: &str, entries: &[Entry]) -> Json {
    let row = |r: &Row| {
        let pieces: Vec<Json> =
            r.pieces.iter().map(|(b, at)| json!({ "from": b.start, "to": b.end, "at": at })).collect();
        json!({
            "role": r.role, "name": r.name, "type": r.ty, "bytes": r.size, "align": r.align, "padding": r.padding,
            "pieces": pieces,
        })
    };
    let entry = |e: &Entry| {
        let rows: Vec<Json> = e.rows.iter().map(row).collect();
        json!({ "name": e.name, "kind": e.kind, "formals": rows, "notes": e.notes, "no_plan": e.no_plan })
    };
    json!({ "file": file, "abi": abi, "functions": entries.iter().map(entry).collect::<Vec<Json>>() })
}

#[cfg(test)]
mod tests {
    #[test]
    fn registers_that_count_up_are_joined() {
        let names: Vec<String> = ["R4", "R5", "R6", "R9", "X0", "X1", "rdi"].map(String::from).to_vec();
        assert_eq!(super::ranges(&names), "R4..R6, R9, X0..X1, rdi");
    }
}
