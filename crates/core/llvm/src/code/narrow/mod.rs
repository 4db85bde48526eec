//! Divides vectors of 32 lanes into pieces of a register, for hosts without mask registers.
//!
//! Without AVX-512, LLVM represents `<32 x i1>` as a vector of bytes: a comparison packs four registers into one, every use unpacks them
//! again, even right after the comparison, and a mask that comes from a 32-bit word is taken apart bit by bit. LLVM also processes each
//! operation on four registers at a time, and runs out of the 16 registers. So between LLVM's passes and its code generator, all vectors of elements
//! of 32 or 64 bits are divided into four pieces of eight lanes, and a mask becomes four vectors of eight *words*, whose bits are all set
//! in active lanes. Runs of pure operations are ordered by pieces: all operations on two of them, then all on the other two.
//!
//! This works on LLVM's text, in which all values have names. What is not understood stays as it is: its operands are put together from
//! their pieces, and its result is taken apart. A value `%x` in pieces is `%n0.x` to `%n3.x`; the words of a mask are `%w0.x` to `%w3.x`,
//! and the bits of a comparison `%b0.x` to `%b3.x`. If CTAs have so few threads that the lanes of some pieces are never active, these are
//! not computed, and count as zeros, or if they may be addresses, as the first piece: inactive lanes hold arbitrary values, and no mask contains
//! them.

mod demanded;
mod lanewise;
mod memory;
mod text;

pub(super) use demanded::{exchanges_lanes, narrow_demanded};
use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
    fmt::Write,
};
use text::{constant_piece, declared_name, is_name, is_pure, names, order, parts, piece_name, piece_type};

/// Lanes of a piece.
const LANES: usize = 8;
/// Pieces of a vector.
const PIECES: usize = 4;
/// Pieces whose operations are interleaved, so that the processor has something to do while it waits for results.
const TOGETHER: usize = 2;

/// Divides the vectors of a module, whose values all have names, for CTAs of `threads` threads.
pub(super) fn narrow(module: &str, threads: u32) -> String {
    let count = PIECES.min((threads as usize).div_ceil(LANES).max(1));
    let mut out = String::with_capacity(2 * module.len());
    let of = |line: &'_ &str| line.starts_with("declare ");
    let mut declared: HashSet<String> = module.lines().filter(of).map(|line| declared_name(line).into()).collect();
    let mut lines = module.lines();
    while let Some(line) = lines.next() {
        if !line.starts_with("define ") {
            _ = writeln!(out, "{line}");
            continue;
        }
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
        let mut function = Function { count, ..Function::default() };
        function.read(&body);
        _ = writeln!(out, "{line}");
        function.write(line, &mut out);
        out.push_str("}\n");
        for line in &function.declared {
            if declared.insert(declared_name(line).into()) {
                _ = writeln!(out, "{line}");
            }
        }
    }
    out
}

/// What a value consists of.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Form {
    /// Pieces of elements.
    Elements,
    /// Pieces of words: a mask.
    Words,
    /// Pieces of bits: a mask that an operation of this block computes.
    Bits,
    /// The first piece, which is like the others: of elements, or of words.
    Splat,
    /// A whole vector whose first lane is a scalar.
    First(String),
    /// An `i32` with the bits of a mask. It is made where something other than a test uses it.
    Packed(String),
}

#[derive(Clone, Debug)]
struct Value {
    form: Form,
    elem: String,
    block: usize,
}

/// Operations on the four pieces of a value.
struct Op {
    name: String,
    pieces: [String; PIECES],
}

/// Code in order.
enum Item {
    /// The phis of a value.
    Phi(String, String),
    /// Operations of which each piece depends on the same piece of others.
    Run(Vec<Op>),
    /// Anything else, and the value that it defines.
    Other(String, Option<String>),
}

/// A function that is rewritten.
#[derive(Default)]
struct Function {
    /// Pieces that are computed.
    count: usize,
    items: Vec<Item>,
    values: HashMap<String, Value>,
    /// The last run, to which operations can still be added, and what it defines.
    run: Vec<Op>,
    in_run: HashSet<String>,
    /// Values that something uses as they were.
    whole: HashSet<String>,
    /// Values that something uses in pieces, with their elements, or as words.
    split: HashMap<String, String>,
    words: HashSet<String>,
    /// Values that were used before their definition was read.
    ahead: HashSet<String>,
    /// Masks that are used as 32 bits other than in tests.
    packed: HashSet<String>,
    /// Number of the current block, and the bits derived from words in it.
    block: usize,
    derived: HashSet<String>,
    /// Those that the current operation has added.
    added: Vec<String>,
    declared: BTreeSet<String>,
    stores: usize,
}

impl Function {
    // ---- reading ----

    fn read(&mut self, body: &[&str]) {
        self.find_packed(body);
        let mut lines = body.iter().filter(|line| !line.is_empty() && !line.starts_with(';'));
        while let Some(line) = lines.next() {
            if !line.starts_with(' ') {
                self.flush();
                self.block += 1;
                self.derived.clear();
                let label = line.split_once(':').map_or(*line, |(label, _)| label);
                self.items.push(Item::Other(format!("{label}:\n"), None));
                continue;
            }
            let mut line = Cow::Borrowed(*line);
            // A switch has several lines.
            if line.ends_with('[') {
                for more in lines.by_ref() {
                    line.to_mut().push('\n');
                    line.to_mut().push_str(more);
                    if more.trim_start().starts_with(']') {
                        break;
                    }
                }
            }
            if self.divide(&line).is_none() {
                self.keep(&line);
            }
        }
        self.flush();
    }

    /// Finds the masks whose bits are used other than in comparisons with 0 and -1 that follow in the text: blocks may precede those that
    /// dominate them.
    fn find_packed(&mut self, body: &[&str]) {
        let mut masks: HashMap<&str, &str> = HashMap::new();
        for line in body {
            if let (Some(name), text) = parts(line)
                && let Some(mask) = text.strip_prefix("bitcast <32 x i1> ").and_then(|t| t.strip_suffix(" to i32"))
            {
                masks.insert(name, mask);
            }
        }
        let mut read: HashSet<&str> = HashSet::new();
        for line in body {
            let (name, text) = parts(line);
            let tests = text.starts_with("icmp eq i32 ") || text.starts_with("icmp ne i32 ");
            let tests = tests && (text.ends_with(", 0") || text.ends_with(", -1") && self.count == PIECES);
            for (bits, mask) in names(text).filter_map(|name| masks.get_key_value(name)) {
                if !tests || !read.contains(bits) {
                    self.packed.insert(mask.to_string());
                }
            }
            read.extend(name);
        }
    }

    /// Ends the current run.
    fn flush(&mut self) {
        self.in_run.clear();
        if !self.run.is_empty() {
            let run = std::mem::take(&mut self.run);
            self.items.push(Item::Run(run));
        }
    }

    /// Adds operations on pieces to the current run.
    fn operation(&mut self, name: &str, form: Form, elem: &str, pieces: [String; PIECES]) {
        self.define(name, form, elem);
        self.in_run.insert(name.into());
        self.run.push(Op { name: name.into(), pieces });
    }

    fn define(&mut self, name: &str, form: Form, elem: &str) {
        self.values.insert(name.into(), Value { form, elem: elem.into(), block: self.block });
    }

    /// Adds other code, which may depend on the current run.
    fn other(&mut self, text: String, name: Option<&str>) {
        self.flush();
        self.items.push(Item::Other(text, name.map(str::to_string)));
    }

    /// Keeps a line as it is, with its operands whole.
    fn keep(&mut self, line: &str) {
        let (name, text) = parts(line);
        self.whole.extend(names(text).map(str::to_string));
        let operation = text.split(' ').next().unwrap_or_default();
        // What the current run need not precede goes before it.
        if is_pure(operation) && !names(text).any(|name| self.in_run.contains(name)) {
            self.items.push(Item::Other(format!("{line}\n"), name.map(str::to_string)));
        } else {
            self.other(format!("{line}\n"), name);
        }
    }

    /// A piece of an operand with such elements.
    fn elements(&mut self, operand: &str, elem: &str, k: usize) -> Option<String> {
        if k >= self.count {
            return Some("zeroinitializer".into());
        }
        if !is_name(operand) {
            return constant_piece(operand, k);
        }
        match self.values.get(operand).map(|v| &v.form) {
            Some(Form::Splat) => return Some(piece_name('n', 0, operand)),
            Some(Form::Elements) => return Some(piece_name('n', k, operand)),
            Some(_) => {}
            None => _ = self.ahead.insert(operand.into()),
        }
        self.split.insert(operand.into(), elem.into());
        Some(piece_name('n', k, operand))
    }

    /// A piece of a mask as words.
    fn words(&mut self, operand: &str, k: usize) -> Option<String> {
        if !is_name(operand) {
            return Some(text::as_words(&constant_piece(operand, k)?));
        }
        self.words.insert(operand.into());
        match self.values.get(operand).map(|v| &v.form) {
            Some(Form::Splat) => return Some(piece_name('w', 0, operand)),
            Some(_) => {}
            None => _ = self.ahead.insert(operand.into()),
        }
        Some(piece_name('w', k, operand))
    }

    /// A piece of a mask as bits; the code that derives it goes to `before`.
    fn bits(&mut self, operand: &str, k: usize, before: &mut String) -> Option<String> {
        if !is_name(operand) {
            return constant_piece(operand, k);
        }
        // Of other blocks, words are at hand.
        if self.values.get(operand).is_some_and(|v| v.form == Form::Bits && v.block == self.block) {
            return Some(piece_name('b', k, operand));
        }
        let words = self.words(operand, k)?;
        let name = format!("%d{}.{}", self.block, &words[1..]);
        if self.derived.insert(name.clone()) {
            self.added.push(name.clone());
            _ = writeln!(before, "  {name} = icmp slt {} {words}, zeroinitializer", piece_type("i32"));
        }
        Some(name)
    }

    /// The lines of the four pieces, from a function that writes what precedes each line.
    fn pieces(
        &mut self,
        mut f: impl FnMut(&mut Self, usize, &mut String) -> Option<String>,
    ) -> Option<[String; PIECES]> {
        self.added.clear();
        let mut lines = [const { String::new() }; PIECES];
        for (k, text) in lines.iter_mut().enumerate().take(self.count) {
            let mut before = String::new();
            let Some(line) = f(self, k, &mut before) else {
                // What was derived is not written.
                self.added.iter().for_each(|name| _ = self.derived.remove(name));
                return None;
            };
            *text = format!("{before}  {line}\n");
        }
        Some(lines)
    }

    // ---- writing ----

    fn write(&self, head: &str, out: &mut String) {
        let mut begun = false;
        // Conversions follow the last phi of a block.
        let mut phis: Vec<&str> = Vec::new();
        for item in &self.items {
            let phi = match item {
                Item::Phi(name, _) => Some(name),
                Item::Other(text, Some(name)) if text.contains(" = phi ") => Some(name),
                _ => None,
            };
            if phi.is_none() {
                phis.drain(..).for_each(|name| self.convert(name, out));
            }
            match item {
                Item::Phi(_, text) => out.push_str(text),
                Item::Run(run) => self.write_run(run, out),
                Item::Other(text, name) => {
                    out.push_str(text);
                    if phi.is_none() {
                        name.iter().for_each(|name| self.convert(name, out));
                    }
                    if !std::mem::replace(&mut begun, true) {
                        names(head).for_each(|argument| self.convert(argument, out));
                    }
                }
            }
            phis.extend(phi.map(String::as_str));
        }
    }

    fn write_run(&self, run: &[Op], out: &mut String) {
        for first in (0..self.count).step_by(TOGETHER) {
            for op in run {
                let words =
                    self.values.get(&op.name).is_some_and(|v| v.form == Form::Bits) && self.needs_words(&op.name);
                for k in first..self.count.min(first + TOGETHER) {
                    out.push_str(&op.pieces[k]);
                    if words {
                        let (words, bits) = (piece_name('w', k, &op.name), piece_name('b', k, &op.name));
                        _ = writeln!(out, "  {words} = sext {} {bits} to {}", piece_type("i1"), piece_type("i32"));
                    }
                }
            }
        }
        run.iter().filter(|op| self.values.contains_key(&op.name)).for_each(|op| self.convert(&op.name, out));
    }

    /// Whether something uses a mask of bits as words, or in one.
    fn needs_words(&self, name: &str) -> bool {
        self.words.contains(name) || self.needs_whole(name)
    }

    fn needs_whole(&self, name: &str) -> bool {
        self.whole.contains(name) || self.packed.contains(name)
    }

    /// Writes the forms of a value that are used and that it was not computed in.
    fn convert(&self, name: &str, out: &mut String) {
        let Some(value) = self.values.get(name) else { return self.take_apart(name, out) };
        match &value.form {
            Form::First(_) => self.take_apart(name, out),
            Form::Packed(mask) => {
                if self.whole.contains(name) {
                    _ = writeln!(out, "  {name} = bitcast <32 x i1> {mask} to i32");
                }
            }
            Form::Splat => {
                let (kind, elem) = if value.elem == "i1" { ('w', "i32") } else { ('n', &value.elem[..]) };
                // Uses that precede its definition did not know that it is a splat, and name its other pieces.
                for k in (1..self.count).filter(|_| self.ahead.contains(name)) {
                    let (ty, one, other) = (piece_type(elem), piece_name(kind, 0, name), piece_name(kind, k, name));
                    _ = writeln!(out, "  {other} = bitcast {ty} {one} to {ty}");
                }
                self.put_together(name, &value.elem, true, out);
            }
            Form::Elements | Form::Words | Form::Bits => self.put_together(name, &value.elem, false, out),
        }
    }

    /// Concatenates the pieces of a value, if something uses it whole.
    fn put_together(&self, name: &str, elem: &str, splat: bool, out: &mut String) {
        if !self.needs_whole(name) {
            return;
        }
        let short = &name[1..];
        let mask = elem == "i1";
        let (kind, elem) = if mask { ('w', "i32") } else { ('n', elem) };
        let whole = if mask { format!("%v.{short}") } else { name.to_string() };
        let piece = |k: usize| match k < self.count {
            true => piece_name(kind, if splat { 0 } else { k }, name),
            // They may be addresses, from which all lanes load: those of the first piece are valid.
            false if elem == "i64" => piece_name(kind, 0, name),
            false => "zeroinitializer".into(),
        };
        let (ty, half) = (piece_type(elem), format!("<{} x {elem}>", 2 * LANES));
        for (name, k) in [("l", 0), ("h", 2)] {
            let (a, b) = (piece(k), piece(k + 1));
            _ = writeln!(out, "  %{name}.{short} = shufflevector {ty} {a}, {ty} {b}, {}", order(0, 2 * LANES));
        }
        let all = order(0, 4 * LANES);
        _ = writeln!(out, "  {whole} = shufflevector {half} %l.{short}, {half} %h.{short}, {all}");
        if mask {
            _ = writeln!(out, "  {name} = icmp slt <32 x i32> {whole}, zeroinitializer");
        }
    }

    /// Takes apart a value that is whole, if something uses its pieces.
    fn take_apart(&self, name: &str, out: &mut String) {
        if let Some(elem) = self.split.get(name) {
            self.write_pieces(name, elem, 'n', name, out);
        }
        if self.words.contains(name) {
            let whole = format!("%v.{}", &name[1..]);
            _ = writeln!(out, "  {whole} = sext <32 x i1> {name} to <32 x i32>");
            self.write_pieces(&whole, "i32", 'w', name, out);
        }
    }

    /// Writes the pieces of a whole vector.
    fn write_pieces(&self, whole: &str, elem: &str, kind: char, name: &str, out: &mut String) {
        let ty = format!("<32 x {elem}>");
        for k in 0..self.count {
            let (piece, lanes) = (piece_name(kind, k, name), order(k * LANES, LANES));
            _ = writeln!(out, "  {piece} = shufflevector {ty} {whole}, {ty} poison, {lanes}");
        }
    }
}

#[cfg(test)]
mod tests;
