//! Computes fewer lanes where only a few are demanded.
//!
//! A reduction over a warp adds lanes of a vector to each other in five steps, and often only one lane of the sum is stored, so the steps
//! need only 16, 8, 4, 2 and 1 lanes. In a butterfly, where each lane is added to the one whose index differs in a bit, both get the same
//! sum, so half of the lanes suffice even if all are used. LLVM knows which lanes are demanded, but computes vectors of 32 lanes anyway.
//!
//! This works on LLVM's optimized text, in which all values have names. If the first lanes of a value `%x` suffice, they are `%d.x`, and `%x`
//! becomes the expansion of `%d.x`, for uses that are not understood here; LLVM drops it if there are none.

use super::text::{CASTS, FLOAT, bits, commas, constant_elements, is_lanewise, is_name, lanes, names, parts, typed};
use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write,
};

const LANES: u32 = 32;
/// Narrower vectors than this, in bits, do not pay.
const REGISTER: u32 = 128;

/// Integer operations that any lane may execute with any operands.
const INTEGER: [&str; 9] = ["add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr"];
/// Operations that give the same if their operands are exchanged. Which of two NaNs results is not specified.
const COMMUTATIVE: [&str; 7] = ["add", "mul", "and", "or", "xor", "fadd", "fmul"];
const COMMUTATIVE_CALLS: [&str; 4] = ["smax.", "smin.", "umax.", "umin."];

/// A vector operand.
#[derive(Clone, Copy)]
struct Vector<'t> {
    elem: &'t str,
    text: &'t str,
}

enum Kind {
    /// Each lane is computed from the same lane of the operands.
    Lanewise { commutes: bool },
    /// Per lane: the lane of the first operand or, from 32 on, the second that it is a copy of; `None` if it is arbitrary.
    Shuffle(Vec<Option<u32>>),
    /// A single lane.
    Extract(u32),
}

/// An instruction on vectors of 32 lanes: its vector operands, and the text before, between and after them.
struct Instruction<'t> {
    name: &'t str,
    /// Element of the result.
    elem: &'t str,
    kind: Kind,
    operands: Vec<Vector<'t>>,
    between: Vec<&'t str>,
}

impl<'t> Instruction<'t> {
    fn read(line: &'t str) -> Option<Instruction<'t>> {
        let (name, text) = parts(line);
        let (name, (operation, rest)) = (name?, text.split_once(' ')?);
        // Only branch weights of selects.
        let text = text.split_once(", !").map_or(text, |(text, _)| text);
        match operation {
            "shufflevector" => Self::shuffle(name, rest),
            "extractelement" => {
                let [v, index] = commas(rest)[..] else { return None };
                let (v, index) = (vector(v)?, typed(index)?.1.parse().ok().filter(|l| *l < LANES)?);
                let elem = v.elem;
                Some(Instruction { name, elem, kind: Kind::Extract(index), operands: vec![v], between: Vec::new() })
            }
            "icmp" | "fcmp" => Self::lanewise(name, text, Some("i1"), false),
            "select" | "fneg" => Self::lanewise(name, text, None, false),
            "call" | "tail" => {
                let (result, intrinsic) = text.split_once(" @llvm.")?;
                let result = lanes(&result[result.find("<32 x ")?..])?;
                let commutes = COMMUTATIVE_CALLS.iter().any(|c| intrinsic.starts_with(c));
                is_lanewise(intrinsic).then(|| Self::lanewise(name, text, Some(result), commutes))?
            }
            _ if CASTS.contains(&operation) => {
                Self::lanewise(name, text, Some(lanes(text.rsplit_once(" to ")?.1)?), false)
            }
            _ if INTEGER.contains(&operation) || FLOAT.contains(&operation) => {
                Self::lanewise(name, text, None, COMMUTATIVE.contains(&operation))
            }
            _ => None,
        }
    }

    /// Reads an operation on lanes; `elem` is the element of its result if it is not that of its last operand.
    fn lanewise(name: &'t str, text: &'t str, elem: Option<&'t str>, commutes: bool) -> Option<Instruction<'t>> {
        let (open, close) = match text.find("@llvm.") {
            Some(callee) => (callee + text[callee..].find('(')? + 1, text.rfind(')')?),
            None => (0, text.find(" to ").unwrap_or(text.len())),
        };
        let (mut operands, mut between, mut done) = (Vec::<Vector>::new(), Vec::new(), 0);
        for part in commas(&text[open..close]) {
            // A second operand of a type that the first one has named.
            let at = match (part.find("<32 x "), operands.last()) {
                (Some(at), _) => at,
                (None, Some(before)) if open == 0 => {
                    let start = part.as_ptr().addr() - text.as_ptr().addr();
                    between.push(&text[done..start]);
                    operands.push(Vector { elem: before.elem, text: part });
                    done = start + part.len();
                    continue;
                }
                _ => continue,
            };
            let v = vector(&part[at..])?;
            let start = v.text.as_ptr().addr() - text.as_ptr().addr();
            between.push(&text[done..start]);
            operands.push(v);
            done = start + v.text.len();
        }
        between.push(&text[done..]);
        let own = operands.last()?.elem;
        let elem = elem.unwrap_or(own);
        let kind = Kind::Lanewise { commutes: commutes && operands.len() == 2 };
        Some(Instruction { name, elem, kind, operands, between })
    }

    fn shuffle(name: &'t str, rest: &'t str) -> Option<Instruction<'t>> {
        let [a, b, order] = commas(rest)[..] else { return None };
        let (a, b) = (vector(a)?, vector(b)?);
        let (ty, order) = typed(order)?;
        lanes(ty)?;
        let each = match order {
            "zeroinitializer" => vec![Some(0); LANES as usize],
            _ => {
                let lane = |text: &str| text.strip_prefix("i32 ").map(|l| l.parse().ok());
                commas(order.strip_prefix('<')?.strip_suffix('>')?).into_iter().map(lane).collect::<Option<_>>()?
            }
        };
        (each.len() == LANES as usize).then(|| Instruction {
            name,
            elem: a.elem,
            kind: Kind::Shuffle(each),
            operands: vec![a, b],
            between: Vec::new(),
        })
    }
}

/// A vector of 32 lanes with its type.
fn vector(text: &str) -> Option<Vector<'_>> {
    let (ty, text) = typed(text)?;
    Some(Vector { elem: lanes(ty)?, text })
}

/// What is known of the values of a function.
#[derive(Default)]
struct Lanes<'t> {
    /// Bits of a lane's index that make no difference to its value.
    symmetric: HashMap<&'t str, u32>,
    /// Demanded lanes of vectors.
    demanded: HashMap<&'t str, u32>,
}

impl<'t> Lanes<'t> {
    /// The bits of a lane's index that make no difference in an operand.
    fn symmetry(&self, text: &str) -> u32 {
        match text {
            _ if is_name(text) => self.symmetric.get(text).copied().unwrap_or(0),
            _ if constant_elements(text).is_none() => LANES - 1,
            _ => 0,
        }
    }

    fn find_symmetry(&mut self, i: &Instruction<'t>, shuffles: &HashMap<&'t str, (&'t str, u32)>) {
        let each = |s: &Self| i.operands.iter().fold(LANES - 1, |all, v| all & s.symmetry(v.text));
        let symmetric = match &i.kind {
            Kind::Lanewise { commutes } => {
                // A value and its own shuffle, in either order.
                let of =
                    |a: &str, b: &str| shuffles.get(b).filter(|(source, _)| *source == a).map_or(0, |(_, bit)| *bit);
                let own = match i.operands[..] {
                    [a, b] if *commutes => of(a.text, b.text) | of(b.text, a.text),
                    _ => 0,
                };
                each(self) | own
            }
            Kind::Shuffle(_) => shuffles.get(i.name).map_or(0, |(source, _)| self.symmetry(source)),
            Kind::Extract(_) => 0,
        };
        self.symmetric.insert(i.name, symmetric);
    }

    /// Adds to the demanded lanes of an operand; whether that changed them.
    fn demand(&mut self, text: &'t str, wanted: u32) -> bool {
        if !is_name(text) || wanted == 0 {
            return false;
        }
        let kept = !self.symmetry(text);
        let wanted = (0..LANES).filter(|l| wanted >> l & 1 != 0).fold(0, |all, l| all | 1 << (l & kept));
        let old = self.demanded.entry(text).or_default();
        let changed = *old | wanted != *old;
        *old |= wanted;
        changed
    }

    /// Lanes that suffice for a value.
    fn width(&self, name: &str, elem: &str) -> u32 {
        let highest = self.demanded.get(name).map_or(0, |lanes| LANES - lanes.leading_zeros());
        highest.next_power_of_two().max(REGISTER / bits(elem).max(32) as u32)
    }
}

/// Whether a module, as emitted, has vectors whose lanes are copied to others.
pub(in crate::code) fn exchanges_lanes(module: &str) -> bool {
    module.lines().any(|line| line.contains(" = shufflevector <32 x ") && !line.ends_with(" zeroinitializer"))
}

/// Narrows the vectors of a module, whose values all have names; `None` if there are none to narrow.
pub(in crate::code) fn narrow_demanded(module: &str) -> Option<String> {
    let (mut out, mut declared) = (String::with_capacity(module.len()), BTreeSet::new());
    let (mut lines, mut narrowed) = (module.lines(), false);
    while let Some(line) = lines.next() {
        _ = writeln!(out, "{line}");
        if line.starts_with("define ") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").collect();
            narrowed |= Function::new(&body).write(&body, &mut out, &mut declared);
            out.push_str("}\n");
        }
    }
    for line in declared {
        if !module.contains(&line) {
            _ = writeln!(out, "{line}");
        }
    }
    narrowed.then_some(out)
}

struct Function<'t> {
    /// By line.
    instructions: Vec<Option<Instruction<'t>>>,
    lanes: Lanes<'t>,
    /// Narrowed values, with their lanes.
    widths: HashMap<&'t str, u32>,
}

impl<'t> Function<'t> {
    fn new(body: &[&'t str]) -> Function<'t> {
        let instructions: Vec<_> = body.iter().map(|line| Instruction::read(line)).collect();
        let mut function = Function { instructions, lanes: Lanes::default(), widths: HashMap::new() };
        // Shuffles that exchange lanes whose indices differ in one bit: what they shuffle, and the bit.
        let mut shuffles = HashMap::new();
        for i in function.instructions.iter().flatten() {
            if let Kind::Shuffle(each) = &i.kind {
                let exchanges = |bit: u32| (0..LANES).all(|l| each[l as usize] == Some(l ^ bit));
                if let Some(bit) = [1, 2, 4, 8, 16].into_iter().find(|bit| exchanges(*bit)) {
                    shuffles.insert(i.name, (i.operands[0].text, bit));
                }
            }
            function.lanes.find_symmetry(i, &shuffles);
        }
        function.find_demanded(body);
        for i in function.instructions.iter().flatten() {
            let width = function.lanes.width(i.name, i.elem);
            let used = function.lanes.demanded.contains_key(i.name);
            if used && width < LANES && !matches!(i.kind, Kind::Extract(_)) {
                function.widths.insert(i.name, width);
            }
        }
        function
    }

    /// Finds the demanded lanes of all values, from uses to definitions.
    fn find_demanded(&mut self, body: &[&'t str]) {
        let mut changed = true;
        while changed {
            changed = false;
            for (line, i) in body.iter().zip(&self.instructions).rev() {
                let Some(i) = i else {
                    names(parts(line).1).for_each(|name| changed |= self.lanes.demand(name, u32::MAX));
                    continue;
                };
                let wanted = self.lanes.demanded.get(i.name).copied().unwrap_or(0);
                match &i.kind {
                    Kind::Lanewise { .. } => {
                        i.operands.iter().for_each(|v| changed |= self.lanes.demand(v.text, wanted));
                        // Other operands, such as the condition of all lanes, are no vectors.
                    }
                    Kind::Shuffle(each) => {
                        for (k, v) in (0..).zip(&i.operands) {
                            let from = |l: &u32| each[*l as usize].filter(|from| from / LANES == k);
                            let lanes = (0..LANES).filter(|l| wanted >> l & 1 != 0);
                            let wanted = lanes.filter_map(|l| from(&l)).fold(0, |all, from| all | 1 << (from % LANES));
                            changed |= self.lanes.demand(v.text, wanted);
                        }
                    }
                    Kind::Extract(lane) => changed |= self.lanes.demand(i.operands[0].text, 1 << lane),
                }
            }
        }
    }

    /// Writes the body; whether something was narrowed.
    fn write(&self, body: &[&str], out: &mut String, declared: &mut BTreeSet<String>) -> bool {
        let mut narrowed = false;
        for (line, i) in body.iter().zip(&self.instructions) {
            narrowed |= match i {
                Some(i) => self.rewrite(i, out, declared).is_some(),
                None => false,
            } || {
                _ = writeln!(out, "{line}");
                false
            };
        }
        narrowed
    }

    fn rewrite(&self, i: &Instruction<'_>, out: &mut String, declared: &mut BTreeSet<String>) -> Option<()> {
        if let Kind::Extract(lane) = i.kind {
            let v = i.operands[0];
            let (width, from) = (self.widths.get(v.text)?, lane & !self.lanes.symmetry(v.text));
            _ = writeln!(out, "  {} = extractelement <{width} x {}> {}, i64 {from}", i.name, v.elem, few(v.text));
            return Some(());
        }
        let width = *self.widths.get(i.name)?;
        let mut text = String::new();
        match &i.kind {
            Kind::Lanewise { .. } => {
                let operands = i.operands.iter().enumerate();
                let operands = operands.map(|(k, v)| self.operand(i.name, k, *v, width, &mut text)).collect::<Vec<_>>();
                let resized =
                    |t: &str| t.replace("<32 x ", &format!("<{width} x ")).replace(".v32", &format!(".v{width}"));
                let mut line = resized(i.between[0]);
                for (operand, after) in operands.iter().zip(&i.between[1..]) {
                    line.push_str(operand);
                    line.push_str(&resized(after));
                }
                if let Some(declaration) = declaration(&line) {
                    declared.insert(declaration);
                }
                _ = writeln!(text, "  {} = {line}", few(i.name));
            }
            Kind::Shuffle(each) => {
                // The lanes come from vectors as narrow as they are.
                let [a, b] = [0, 1].map(|k| i.operands[k]);
                let has = |v: Vector| match self.widths.get(v.text) {
                    Some(width) => *width,
                    None if is_name(v.text) || constant_elements(v.text).is_some() => LANES,
                    // The same in all lanes.
                    None => 1,
                };
                let from = has(a).max(has(b));
                let [a_text, b_text] = [(0, a), (1, b)].map(|(k, v)| self.operand(i.name, k, v, from, &mut text));
                let place = |lane: Option<u32>| {
                    let (v, lane) = lane.map(|l| (if l < LANES { a } else { b }, l))?;
                    let kept = (lane % LANES) & !self.lanes.symmetry(v.text);
                    (kept < from).then_some(if lane < LANES { kept } else { from + kept })
                };
                let order =
                    (0..width).map(|l| place(each[l as usize]).map_or("i32 poison".into(), |l| format!("i32 {l}")));
                let order = order.collect::<Vec<_>>().join(", ");
                _ = writeln!(
                    text,
                    "  {} = shufflevector <{from} x {}> {a_text}, <{from} x {}> {b_text}, <{width} x i32> <{order}>",
                    few(i.name),
                    i.elem,
                    i.elem
                );
            }
            Kind::Extract(_) => return None,
        }
        out.push_str(&text);
        self.resize(i.name, &few(i.name), i.elem, (width, LANES), self.lanes.symmetry(i.name), out);
        Some(())
    }

    /// Operand `k` of the value `user` with `width` lanes; code for that goes to `before`.
    fn operand(&self, user: &str, k: usize, v: Vector<'_>, width: u32, before: &mut String) -> String {
        if !is_name(v.text) {
            return match constant_elements(v.text) {
                Some(elements) if width < LANES => format!("<{}>", elements[..width as usize].join(", ")),
                _ => v.text.into(),
            };
        }
        let (has, from) = match self.widths.get(v.text) {
            Some(few_lanes) => (*few_lanes, few(v.text)),
            None => (LANES, v.text.into()),
        };
        if has == width {
            return from;
        }
        let name = format!("%o{k}.{}", &user[1..]);
        self.resize(&name, &from, v.elem, (has, width), self.lanes.symmetry(v.text), before);
        name
    }

    /// Defines a vector with other lanes: the first ones, or those that stand for all.
    fn resize(&self, name: &str, from: &str, elem: &str, (has, width): (u32, u32), symmetric: u32, out: &mut String) {
        let lane = |l: u32| match l & !symmetric {
            kept if kept < has => format!("i32 {kept}"),
            _ => "i32 poison".into(),
        };
        let order = (0..width).map(lane).collect::<Vec<_>>().join(", ");
        _ = writeln!(
            out,
            "  {name} = shufflevector <{has} x {elem}> {from}, <{has} x {elem}> poison, <{width} x i32> <{order}>"
        );
    }
}

/// The name of a value with as few lanes as are demanded.
fn few(name: &str) -> String {
    format!("%d.{}", &name[1..])
}

/// The declaration of the intrinsic that a line calls.
fn declaration(line: &str) -> Option<String> {
    let (head, rest) = line.split_once("@llvm.")?;
    let (name, arguments) = rest.split_once('(')?;
    // Behind attributes such as a range.
    let result = head[head.rfind('<')?..].trim_end();
    let types: Option<Vec<&str>> =
        commas(arguments.rsplit_once(')')?.0).into_iter().map(|a| Some(typed(a)?.0)).collect();
    Some(format!("declare {result} @llvm.{name}({})", types?.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function with one block, and what becomes of it.
    fn narrowed(body: &str) -> Option<String> {
        narrow_demanded(&format!("define void @f(ptr %p, ptr %q) {{\nentry:\n{body}  ret void\n}}\n"))
    }

    /// The lanes of a shuffle, as text.
    fn by_lane(lane: impl Fn(u32) -> u32) -> String {
        format!("<32 x i32> <{}>", (0..LANES).map(|l| format!("i32 {}", lane(l))).collect::<Vec<_>>().join(", "))
    }

    /// A sum of lanes: each is added to the lane `lane` gives, for each of the functions.
    fn sum(lanes: &[&dyn Fn(u32) -> u32]) -> String {
        let mut text = "  %s0 = load <32 x float>, ptr %p, align 4\n".to_string();
        for (k, lane) in lanes.iter().enumerate() {
            let (last, next, order) = (format!("%s{k}"), format!("%s{}", k + 1), by_lane(lane));
            _ = writeln!(text, "  %x{k} = shufflevector <32 x float> {last}, <32 x float> poison, {order}");
            _ = writeln!(text, "  {next} = fadd <32 x float> {last}, %x{k}");
        }
        text
    }

    #[track_caller]
    fn contains(text: &str, lines: &[&str]) {
        for line in lines {
            assert!(text.contains(&format!("  {line}\n")), "{line} in {text}");
        }
    }

    #[test]
    fn a_sum_of_which_one_lane_is_stored() {
        let down = |by: u32| move |l: u32| if l + by < LANES { l + by } else { l };
        let body = sum(&[&down(16), &down(8), &down(4)])
            + "  %e = extractelement <32 x float> %s3, i64 0\n  store float %e, ptr %q\n";
        let text = narrowed(&body).unwrap();
        // Lane 0 of the sum needs lanes 0 and 4 of the one before it, these 0, 4, 8 and 12, and these as many from 16 on.
        contains(
            &text,
            &[
                "%d.s1 = fadd <16 x float> %o0.s1, %d.x0",
                "%d.s2 = fadd <8 x float> %o0.s2, %d.x1",
                "%d.s3 = fadd <4 x float> %o0.s3, %d.x2",
                "%e = extractelement <4 x float> %d.s3, i64 0",
            ],
        );
    }

    #[test]
    fn a_sum_that_is_the_same_in_all_lanes() {
        let body = sum(&[&|l| l ^ 16, &|l| l ^ 8, &|l| l ^ 4, &|l| l ^ 2, &|l| l ^ 1])
            + "  store <32 x float> %s5, ptr %q, align 4\n";
        let text = narrowed(&body).unwrap();
        contains(
            &text,
            &[
                "%d.s1 = fadd <16 x float> %o0.s1, %d.x0",
                "%d.s5 = fadd <4 x float> %d.s4, %d.x4",
                "%s5 = shufflevector <4 x float> %d.s5, <4 x float> poison, <32 x i32> <REST>"
                    .replace("<REST>", by_lane(|_| 0).strip_prefix("<32 x i32> ").unwrap())
                    .as_str(),
                "store <32 x float> %s5, ptr %q, align 4",
            ],
        );
    }

    /// A difference is not the same in both lanes, and neither is a sum of which LLVM has dropped some lanes.
    #[test]
    fn lanes_that_differ_are_kept() {
        let stored = "  store <32 x float> %s1, ptr %q, align 4\n";
        assert_eq!(narrowed(&(sum(&[&|l| l ^ 16]).replace("fadd", "fsub") + stored)), None);
        let partial = sum(&[&|l| l ^ 16]).replacen("i32 16", "i32 poison", 1);
        assert_eq!(narrowed(&(partial + stored)), None);
        // Lane 31 needs the upper half.
        let last = "  %e = extractelement <32 x float> %s1, i64 31\n  store float %e, ptr %q\n";
        assert_eq!(narrowed(&(sum(&[&|l| l.saturating_sub(1)]) + last)), None);
    }

    #[test]
    fn operations_between_two_shuffles() {
        let lanes: String = (0..LANES).map(|l| format!("i32 {l}, ")).collect();
        let body = format!(
            "  %v = load <32 x i32>, ptr %p, align 4
  %a = add nsw <32 x i32> %v, <{}>
  %c = icmp slt <32 x i32> %a, splat (i32 7)
  %b = select <32 x i1> %c, <32 x i32> %a, <32 x i32> zeroinitializer, !prof !0
  %m = call <32 x i32> @llvm.smax.v32i32(<32 x i32> %b, <32 x i32> %v)
  %n = tail call range(i32 0, 33) <32 x i32> @llvm.ctlz.v32i32(<32 x i32> %m, i1 false), !range !1
  %f = sitofp <32 x i32> %n to <32 x double>
  %e = extractelement <32 x double> %f, i64 1
  store double %e, ptr %q
",
            lanes.trim_end_matches(", ")
        );
        let text = narrowed(&body).unwrap();
        contains(
            &text,
            &[
                "%d.a = add nsw <4 x i32> %o0.a, <i32 0, i32 1, i32 2, i32 3>",
                "%d.c = icmp slt <4 x i32> %d.a, splat (i32 7)",
                "%d.b = select <4 x i1> %d.c, <4 x i32> %d.a, <4 x i32> zeroinitializer",
                "%d.m = call <4 x i32> @llvm.smax.v4i32(<4 x i32> %d.b, <4 x i32> %o1.m)",
                "%d.n = tail call range(i32 0, 33) <4 x i32> @llvm.ctlz.v4i32(<4 x i32> %d.m, i1 false)",
                "%o0.f = shufflevector <4 x i32> %d.n, <4 x i32> poison, <2 x i32> <i32 0, i32 1>",
                "%d.f = sitofp <2 x i32> %o0.f to <2 x double>",
                "%e = extractelement <2 x double> %d.f, i64 1",
            ],
        );
        for line in [
            "declare <4 x i32> @llvm.smax.v4i32(<4 x i32>, <4 x i32>)",
            "declare <4 x i32> @llvm.ctlz.v4i32(<4 x i32>, i1)",
        ] {
            assert!(text.contains(&format!("\n{line}\n")), "{line} in {text}");
        }
    }

    /// Lanes of a constant beyond those of the vector that is shuffled with it.
    #[test]
    fn shuffles_with_constants() {
        let order = by_lane(|l| if l < 8 { l } else { 32 + l });
        let body = format!(
            "  %v = load <32 x i32>, ptr %p, align 4
  %a = add <32 x i32> %v, splat (i32 1)
  %x = shufflevector <32 x i32> %a, <32 x i32> <{}>, {order}
  %y = add <32 x i32> %x, %x
  %e = extractelement <32 x i32> %y, i64 12
  store i32 %e, ptr %q
",
            (0..LANES).map(|l| format!("i32 {l}")).collect::<Vec<_>>().join(", ")
        );
        let text = narrowed(&body).unwrap();
        let line = text.lines().find(|l| l.contains("%d.x = ")).unwrap();
        // Lane 12 is that of the constant.
        assert!(line.contains("<32 x i32> <i32 0, i32 1, ") && line.contains(", i32 44, "), "{text}");
    }
}
