//! Operations on lanes, and on masks.

use super::{
    Form, Function, Item, LANES, PIECES,
    text::{
        CASTS, FLOAT, INTEGER, bits, commas, divided, divides, is_lanewise, is_name, lanes, order, parts, piece_name,
        piece_type, typed,
    },
};
use std::fmt::Write;

impl Function {
    /// Divides an instruction; `None` if it must be kept.
    pub(super) fn divide(&mut self, line: &str) -> Option<()> {
        let (name, text) = parts(line);
        let (operation, rest) = text.split_once(' ')?;
        let Some(name) = name else {
            return match operation {
                "store" => self.store(rest),
                "call" if rest.starts_with("void @llvm.masked.store.v32") => self.masked_store(rest),
                _ => None,
            };
        };
        if operation == "load" {
            return self.load(name, rest);
        }
        if operation == "call" || operation == "tail" {
            return self.call(name, text);
        }
        // Only branch weights of selects.
        let rest = rest.split_once(", !").map_or(rest, |(rest, _)| rest);
        match operation {
            "icmp" | "fcmp" => self.compare(name, operation, rest),
            "phi" => self.phi(name, rest),
            "select" => self.select(name, rest),
            "freeze" => self.freeze(name, rest),
            "fneg" => self.unary(name, operation, rest),
            "shufflevector" => self.shuffle(name, rest),
            "insertelement" => self.insert(name, rest),
            "extractelement" => self.extract(name, rest),
            _ if INTEGER.contains(&operation) || FLOAT.contains(&operation) => self.binary(name, operation, rest),
            _ if CASTS.contains(&operation) => self.cast(name, operation, rest),
            _ => None,
        }
    }

    fn binary(&mut self, name: &str, operation: &str, rest: &str) -> Option<()> {
        let (flags, rest) = rest.split_at(rest.find("<32 x ")?);
        let (ty, operands) = typed(rest)?;
        let [a, b] = commas(operands)[..] else { return None };
        if let (Some(x), Some(y)) = (self.first(a), self.first(b)) {
            // Of the other lanes nothing is known.
            let (elem, scalar) = (lanes(ty)?, format!("%o.{}", &name[1..]));
            self.keep(&format!("  {scalar} = {operation} {flags}{elem} {x}, {y}"));
            return self.insert(name, &format!("{ty} poison, {elem} {scalar}, i64 0"));
        }
        if lanes(ty)? == "i1" {
            let ty = piece_type("i32");
            let pieces = self.pieces(|s, k, _| {
                let (a, b) = (s.words(a, k)?, s.words(b, k)?);
                Some(format!("{} = {operation} {ty} {a}, {b}", piece_name('w', k, name)))
            })?;
            self.operation(name, Form::Words, "i1", pieces);
            return Some(());
        }
        let elem = divided(ty)?;
        let pieces = self.pieces(|s, k, _| {
            let (a, b) = (s.elements(a, elem, k)?, s.elements(b, elem, k)?);
            Some(format!("{} = {operation} {flags}{} {a}, {b}", piece_name('n', k, name), piece_type(elem)))
        })?;
        self.operation(name, Form::Elements, elem, pieces);
        Some(())
    }

    fn compare(&mut self, name: &str, operation: &str, rest: &str) -> Option<()> {
        let Some(at) = rest.find("<32 x ") else { return self.test(name, rest) };
        let (relation, rest) = rest.split_at(at);
        let (ty, operands) = typed(rest)?;
        let [a, b] = commas(operands)[..] else { return None };
        let elem = divided(ty)?;
        let pieces = self.pieces(|s, k, _| {
            let (a, b) = (s.elements(a, elem, k)?, s.elements(b, elem, k)?);
            Some(format!("{} = {operation} {relation}{} {a}, {b}", piece_name('b', k, name), piece_type(elem)))
        })?;
        self.operation(name, Form::Bits, "i1", pieces);
        Some(())
    }

    /// Whether any or all lanes of a mask are set, whose bits are not needed otherwise.
    fn test(&mut self, name: &str, rest: &str) -> Option<()> {
        let (relation, operands) = rest.split_once(" i32 ")?;
        let (packed, wanted) = operands.split_once(", ")?;
        let Form::Packed(mask) = self.values.get(packed)?.form.clone() else { return None };
        let join = match (relation, wanted) {
            ("eq" | "ne", "0") => "or",
            // Some lanes are never active.
            ("eq" | "ne", "-1") if self.count == PIECES => "and",
            _ => return None,
        };
        if self.packed.contains(&mask) {
            return None;
        }
        let (ty, short, mut text) = (piece_type("i32"), &name[1..], String::new());
        let mut joined = self.words(&mask, 0)?;
        for k in 1..self.count {
            let (next, words) = (format!("%x{k}.{short}"), self.words(&mask, k)?);
            _ = writeln!(text, "  {next} = {join} {ty} {joined}, {words}");
            joined = next;
        }
        _ = writeln!(text, "  %s.{short} = icmp slt {ty} {joined}, zeroinitializer");
        _ = writeln!(text, "  %i.{short} = bitcast {} %s.{short} to i{LANES}", piece_type("i1"));
        _ = writeln!(text, "  {name} = icmp {relation} i{LANES} %i.{short}, {wanted}");
        self.other(text, Some(name));
        Some(())
    }

    fn phi(&mut self, name: &str, rest: &str) -> Option<()> {
        let (ty, incoming) = typed(rest)?;
        let elem = lanes(ty).filter(|elem| divides(elem) || *elem == "i1")?;
        let mask = elem == "i1";
        let mut text = String::new();
        for k in 0..self.count {
            let mut list = Vec::new();
            for pair in commas(incoming) {
                let (value, from) = pair.strip_prefix('[')?.strip_suffix(']')?.trim().rsplit_once(", ")?;
                let value = if mask { self.words(value, k)? } else { self.elements(value, elem, k)? };
                list.push(format!("[ {value}, {from} ]"));
            }
            let (kind, elem) = if mask { ('w', "i32") } else { ('n', elem) };
            _ = writeln!(text, "  {} = phi {} {}", piece_name(kind, k, name), piece_type(elem), list.join(", "));
        }
        self.define(name, if mask { Form::Words } else { Form::Elements }, elem);
        self.items.push(Item::Phi(name.into(), text));
        Some(())
    }

    fn select(&mut self, name: &str, rest: &str) -> Option<()> {
        let [condition, a, b] = commas(rest)[..] else { return None };
        let ((kind, condition), (ty, a), (_, b)) = (typed(condition)?, typed(a)?, typed(b)?);
        let elem = lanes(ty).filter(|elem| divides(elem) || *elem == "i1")?;
        let (mask, scalar) = (elem == "i1", kind == "i1");
        if !scalar && kind != "<32 x i1>" {
            return None;
        }
        let (letter, ty) = if mask { ('w', piece_type("i32")) } else { ('n', piece_type(elem)) };
        let pieces = self.pieces(|s, k, before| {
            let condition = match scalar {
                true => format!("i1 {condition}"),
                false => format!("{} {}", piece_type("i1"), s.bits(condition, k, before)?),
            };
            let mut side = |v: &str| if mask { s.words(v, k) } else { s.elements(v, elem, k) };
            let (a, b) = (side(a)?, side(b)?);
            Some(format!("{} = select {condition}, {ty} {a}, {ty} {b}", piece_name(letter, k, name)))
        })?;
        self.operation(name, if mask { Form::Words } else { Form::Elements }, elem, pieces);
        Some(())
    }

    fn freeze(&mut self, name: &str, rest: &str) -> Option<()> {
        let (ty, value) = typed(rest)?;
        if lanes(ty)? != "i1" {
            return self.unary(name, "freeze", rest);
        }
        // All bits of a word must agree, whatever they become.
        let ty = piece_type("i32");
        let pieces = self.pieces(|s, k, before| {
            let frozen = piece_name('f', k, name);
            _ = writeln!(before, "  {frozen} = freeze {ty} {}", s.words(value, k)?);
            Some(format!("{} = icmp slt {ty} {frozen}, zeroinitializer", piece_name('b', k, name)))
        })?;
        self.operation(name, Form::Bits, "i1", pieces);
        Some(())
    }

    fn unary(&mut self, name: &str, operation: &str, rest: &str) -> Option<()> {
        let (ty, value) = typed(rest)?;
        let elem = divided(ty)?;
        let pieces = self.pieces(|s, k, _| {
            let value = s.elements(value, elem, k)?;
            Some(format!("{} = {operation} {} {value}", piece_name('n', k, name), piece_type(elem)))
        })?;
        self.operation(name, Form::Elements, elem, pieces);
        Some(())
    }

    fn cast(&mut self, name: &str, operation: &str, rest: &str) -> Option<()> {
        let (from, to) = rest.rsplit_once(" to ")?;
        let Some(at) = from.find("<32 x ") else {
            return (operation == "bitcast" && to == "<32 x i1>").then(|| self.unpack(name, from))?;
        };
        let (flags, from) = from.split_at(at);
        let (ty, value) = typed(from)?;
        let a = lanes(ty)?;
        if operation == "bitcast" && a == "i1" && to == "i32" {
            self.define(name, Form::Packed(value.into()), a);
            self.other(String::new(), Some(name));
            return Some(());
        }
        let b = lanes(to)?;
        if b == "i1" && divides(a) {
            let pieces = self.pieces(|s, k, _| {
                let (piece, value) = (piece_name('b', k, name), s.elements(value, a, k)?);
                Some(format!("{piece} = {operation} {flags}{} {value} to {}", piece_type(a), piece_type(b)))
            })?;
            self.operation(name, Form::Bits, b, pieces);
            return Some(());
        }
        if !divides(b) || operation == "bitcast" && bits(a) != bits(b) {
            return None;
        }
        let (words, target) = (piece_type("i32"), piece_type(b));
        let pieces = self.pieces(|s, k, before| {
            let result = match (a, operation, b) {
                ("i1", "sext", "i32") => format!("bitcast {words} {} to {target}", s.words(value, k)?),
                ("i1", "sext", _) => format!("sext {words} {} to {target}", s.words(value, k)?),
                ("i1", "zext", "i32") => format!("lshr {words} {}, splat (i32 31)", s.words(value, k)?),
                ("i1", ..) => format!("{operation} {flags}{} {} to {target}", piece_type(a), s.bits(value, k, before)?),
                _ => format!("{operation} {flags}{} {} to {target}", piece_type(a), s.elements(value, a, k)?),
            };
            Some(format!("{} = {result}", piece_name('n', k, name)))
        })?;
        self.operation(name, Form::Elements, b, pieces);
        Some(())
    }

    /// A mask from 32 bits.
    fn unpack(&mut self, name: &str, from: &str) -> Option<()> {
        let value = from.strip_prefix("i32 ").filter(|value| is_name(value))?;
        self.whole.insert(value.into());
        let (ty, short) = (piece_type("i32"), &name[1..]);
        self.other(
            format!(
                "  %i.{short} = insertelement {ty} poison, i32 {value}, i64 0\n  \
                 %s.{short} = shufflevector {ty} %i.{short}, {ty} poison, <{LANES} x i32> zeroinitializer\n"
            ),
            None,
        );
        let pieces = self.pieces(|_, k, before| {
            let places: Vec<String> =
                (0..LANES).map(|lane| format!("i32 {}", (1u32 << (k * LANES + lane)) as i32)).collect();
            let (places, own) = (places.join(", "), piece_name('a', k, name));
            _ = writeln!(before, "  {own} = and {ty} %s.{short}, <{places}>");
            Some(format!("{} = icmp eq {ty} {own}, <{places}>", piece_name('b', k, name)))
        })?;
        self.operation(name, Form::Bits, "i1", pieces);
        Some(())
    }

    fn call(&mut self, name: &str, text: &str) -> Option<()> {
        let at = text.find("<32 x ")?;
        let open = text.find('@')?;
        let function = text[open..].strip_prefix("@llvm.").filter(|_| at < open)?;
        if function.starts_with("masked.load.v32") {
            return self.masked_load(name, text);
        }
        if !is_lanewise(function) {
            return None;
        }
        let elem = divided(typed(&text[at..])?.0)?;
        let (callee, rest) = text[open..].split_once('(')?;
        let close = rest.rfind(')')?;
        let arguments: Option<Vec<(&str, &str)>> = commas(&rest[..close]).into_iter().map(typed).collect();
        let (arguments, after) = (arguments?, &rest[close + 1..]);
        if arguments.iter().any(|(ty, _)| ty.starts_with('<') && divided(ty).is_none()) {
            return None;
        }
        let callee = callee.replace(".v32", &format!(".v{LANES}"));
        let narrow = |ty: &str| divided(ty).map_or(ty.to_string(), piece_type);
        let pieces = self.pieces(|s, k, _| {
            let mut list = Vec::new();
            for (ty, value) in &arguments {
                let value = match divided(ty) {
                    Some(elem) => s.elements(value, elem, k)?,
                    None => value.to_string(),
                };
                list.push(format!("{} {value}", narrow(ty)));
            }
            let (piece, list) = (piece_name('n', k, name), list.join(", "));
            Some(format!("{piece} = {}{} {callee}({list}){after}", &text[..at], piece_type(elem)))
        })?;
        let types: Vec<String> = arguments.iter().map(|(ty, _)| narrow(ty)).collect();
        self.declared.insert(format!("declare {} {callee}({})", piece_type(elem), types.join(", ")));
        self.operation(name, Form::Elements, elem, pieces);
        Some(())
    }

    /// The scalar in the first lane of a vector, if that is all it has.
    fn first(&self, name: &str) -> Option<String> {
        match &self.values.get(name)?.form {
            Form::First(scalar) => Some(scalar.clone()),
            _ => None,
        }
    }

    /// A vector with a scalar in its first lane, from which a splat is made.
    fn insert(&mut self, name: &str, rest: &str) -> Option<()> {
        let [vector, scalar, index] = commas(rest)[..] else { return None };
        let ((ty, vector), (_, scalar)) = (typed(vector)?, typed(scalar)?);
        let elem = lanes(ty).filter(|elem| divides(elem) || *elem == "i1")?;
        if vector != "poison" || !index.ends_with(" 0") {
            return None;
        }
        self.define(name, Form::First(scalar.into()), elem);
        self.keep(&format!("  {name} = insertelement {rest}"));
        Some(())
    }

    fn shuffle(&mut self, name: &str, rest: &str) -> Option<()> {
        let [a, b, lanes_of] = commas(rest)[..] else { return None };
        let ((ty, a), (_, b), (order_type, picks)) = (typed(a)?, typed(b)?, typed(lanes_of)?);
        let elem = lanes(ty)?;
        if picks == "zeroinitializer" && order_type == "<32 x i32>" {
            let Form::First(scalar) = self.values.get(a)?.form.clone() else { return None };
            self.splat(name, elem, &scalar);
            return Some(());
        }
        let elem = divided(ty)?;
        let picks = commas(picks.strip_prefix('<')?.strip_suffix('>')?);
        let picks: Vec<Option<usize>> =
            picks.iter().map(|p| p.strip_prefix("i32 ").and_then(|n| n.parse().ok())).collect();
        if !matches!(picks.len(), LANES | 16 | 32) {
            return None;
        }
        let ty = piece_type(elem);
        let mut pieces = Vec::new();
        for some in picks.chunks(LANES) {
            // The pieces that this one is made of.
            let mut from: Vec<usize> = some.iter().flatten().map(|lane| lane / LANES).collect();
            from.sort_unstable();
            from.dedup();
            if from.len() > 2 {
                return None;
            }
            let place = |lane: usize| from.iter().position(|f| *f == lane / LANES).unwrap_or(0) * LANES + lane % LANES;
            let list: Vec<String> = some
                .iter()
                .map(|pick| pick.map_or("i32 poison".into(), |lane| format!("i32 {}", place(lane))))
                .collect();
            let mut pair = vec!["poison".to_string(); 2];
            for (slot, k) in pair.iter_mut().zip(&from) {
                *slot = if *k < PIECES { self.elements(a, elem, *k)? } else { self.elements(b, elem, *k - PIECES)? };
            }
            let list = list.join(", ");
            pieces.push(format!("shufflevector {ty} {}, {ty} {}, <{LANES} x i32> <{list}>", pair[0], pair[1]));
        }
        // A piece depends on others.
        self.flush();
        match &pieces[..] {
            [one] => self.other(format!("  {name} = {one}\n"), Some(name)),
            [low, high] => {
                let (short, both) = (&name[1..], order(0, 2 * LANES));
                let join = format!("  {name} = shufflevector {ty} %l.{short}, {ty} %h.{short}, {both}\n");
                self.other(format!("  %l.{short} = {low}\n  %h.{short} = {high}\n{join}"), Some(name));
            }
            _ => {
                let lines =
                    self.pieces(|_, k, _| Some(format!("{} = {}", piece_name('n', k, name), pieces.get(k)?)))?;
                self.operation(name, Form::Elements, elem, lines);
            }
        }
        Some(())
    }

    /// A scalar in all lanes.
    fn splat(&mut self, name: &str, elem: &str, scalar: &str) {
        let short = &name[1..];
        let mut text = String::new();
        let (kind, elem_of, scalar) = match elem {
            "i1" => {
                _ = writeln!(text, "  %e.{short} = sext i1 {scalar} to i32");
                ('w', "i32", format!("%e.{short}"))
            }
            _ => ('n', elem, scalar.to_string()),
        };
        let (ty, piece) = (piece_type(elem_of), piece_name(kind, 0, name));
        _ = writeln!(text, "  %i.{short} = insertelement {ty} poison, {elem_of} {scalar}, i64 0");
        _ = writeln!(text, "  {piece} = shufflevector {ty} %i.{short}, {ty} poison, <{LANES} x i32> zeroinitializer");
        self.define(name, Form::Splat, elem);
        self.items.push(Item::Other(text, Some(name.into())));
    }

    fn extract(&mut self, name: &str, rest: &str) -> Option<()> {
        let [vector, index] = commas(rest)[..] else { return None };
        let (ty, vector) = typed(vector)?;
        let elem = lanes(ty).filter(|elem| divides(elem) || *elem == "i1")?;
        let lane: usize = index.rsplit_once(' ')?.1.parse().ok().filter(|lane| *lane < LANES * self.count)?;
        if !is_name(vector) {
            return None;
        }
        let (k, at) = (lane / LANES, lane % LANES);
        let text = if elem == "i1" {
            let (words, short) = (self.words(vector, k)?, &name[1..]);
            let ty = piece_type("i32");
            format!("  %x.{short} = extractelement {ty} {words}, i64 {at}\n  {name} = icmp slt i32 %x.{short}, 0\n")
        } else {
            format!("  {name} = extractelement {} {}, i64 {at}\n", piece_type(elem), self.elements(vector, elem, k)?)
        };
        self.other(text, Some(name));
        Some(())
    }
}
