//! Dead-code elimination on the text of a function.
//!
//! A variable is live if something reads it; dead variables are removed with the stores to them. So emitters need not
//! look ahead: they store a register wherever it changes.

use super::known::is_pure;
use std::fmt::Write;

/// The beginning of the barrier that makes LLVM keep a variable in memory; its address follows.
pub(super) const PIN: &str = "call void asm sideeffect \"\", \"r\"(ptr ";
/// Variables that share a barrier: as many addresses as there are registers for.
const PINS: usize = 8;

/// How a line counts in the search for live lines.
enum Line {
    /// Always live: control flow, calls, accesses to memory other than variables.
    Root,
    /// Live if its result is used.
    Value,
    /// A variable.
    Variable,
    /// A store to a variable, or the barrier that makes LLVM treat it as written: live if the variable is.
    Store { to: usize },
    /// Not an instruction.
    Other,
}

/// The number of the value at the start of a text, such as 7 of `%t7`.
fn number(text: &str) -> Option<usize> {
    let digits = text.strip_prefix("%t")?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// The numbers of the values that a line mentions.
pub(super) fn mentions(text: &str) -> impl Iterator<Item = usize> + '_ {
    text.match_indices("%t").filter_map(|(at, _)| number(&text[at..]))
}

/// A line's result, and the text after the `=`.
pub(super) fn parts(line: &str) -> (Option<usize>, &str) {
    let text = line.trim_start();
    match text.split_once(" = ") {
        Some((left, right)) if left.starts_with("%t") => match number(left) {
            Some(n) => (Some(n), right),
            None => (None, text),
        },
        _ => (None, text),
    }
}

fn classify(line: &str) -> (Option<usize>, Line) {
    let (result, text) = parts(line);
    let word = text.split(' ').next().unwrap_or_default();
    let kind = match (result, word) {
        _ if !line.starts_with("  ") => Line::Other,
        (Some(_), "alloca") => Line::Variable,
        (Some(_), "load") if !text.contains(" volatile ") && !text.contains(" atomic ") => Line::Value,
        (Some(_), "call") if text.contains(" @llvm.") && !text.contains("@llvm.readcyclecounter") => Line::Value,
        (Some(_), "call") if text.contains(" @margay.lanes(") || text.contains(" @margay.bits(") => Line::Value,
        (Some(_), word) if is_pure(word) => Line::Value,
        (None, "store") if !text.starts_with("store volatile") && !text.starts_with("store atomic") => {
            let to = text.rfind(", ptr %t").and_then(|at| number(&text[at + 6..]));
            to.map_or(Line::Root, |to| Line::Store { to })
        }
        (None, "call") if text.starts_with(PIN) => {
            let to = mentions(text).next();
            to.map_or(Line::Root, |to| Line::Store { to })
        }
        _ => Line::Root,
    };
    (result, kind)
}

/// Whether a line computes a value from others alone.
pub(super) fn is_value(line: &str) -> bool {
    let (result, text) = parts(line);
    result.is_some() && is_pure(text.split(' ').next().unwrap_or_default())
}

/// The live lines of a function's body, without those that are `idle`.
pub(super) fn tidy(text: &str, idle: impl Fn(&str) -> bool) -> String {
    let body = Body::new(text.lines().filter(|l| !idle(l)).collect());
    let mut needed = body.live();
    body.drop_overwritten(&mut needed);
    body.write(&needed)
}

/// The lines of a function's body.
struct Body<'t> {
    lines: Vec<&'t str>,
    /// By line: its result, and how it counts.
    classes: Vec<(Option<usize>, Line)>,
    /// By value: the line that defines it; `usize::MAX` if none.
    definition: Vec<usize>,
}

impl<'t> Body<'t> {
    fn new(lines: Vec<&'t str>) -> Body<'t> {
        let classes: Vec<(Option<usize>, Line)> = lines.iter().map(|l| classify(l)).collect();
        let values = classes.iter().filter_map(|(r, _)| *r).max().map_or(0, |n| n + 1);
        let mut definition = vec![usize::MAX; values];
        for (i, (result, _)) in classes.iter().enumerate() {
            result.iter().for_each(|r| definition[*r] = i);
        }
        Body { lines, classes, definition }
    }

    /// The line that defines a value.
    fn defined_at(&self, value: usize) -> Option<usize> {
        self.definition.get(value).copied().filter(|at| *at != usize::MAX)
    }

    /// The line of the variable that a pointer points into, at whatever offset.
    fn variable(&self, mut value: usize) -> Option<usize> {
        loop {
            let at = self.defined_at(value)?;
            match &self.classes[at].1 {
                Line::Variable => return Some(at),
                Line::Value if parts(self.lines[at]).1.starts_with("getelementptr") => {
                    let text = parts(self.lines[at]).1;
                    value = number(&text[text.find("ptr %t")? + 4..])?;
                }
                _ => return None,
            }
        }
    }

    /// By line: whether it is live.
    fn live(&self) -> Vec<bool> {
        let mut needed = vec![false; self.lines.len()];
        // The stores to each variable, and by line the index of its variable in that list.
        let mut stores: Vec<Vec<usize>> = Vec::new();
        let mut of = vec![usize::MAX; self.lines.len()];
        let mut work = Vec::new();
        for (i, (_, class)) in self.classes.iter().enumerate() {
            match class {
                Line::Root => work.push(i),
                Line::Store { to } => match self.variable(*to) {
                    Some(at) => {
                        if of[at] == usize::MAX {
                            of[at] = stores.len();
                            stores.push(Vec::new());
                        }
                        stores[of[at]].push(i);
                    }
                    None => work.push(i),
                },
                Line::Value | Line::Variable | Line::Other => {}
            }
        }
        while let Some(i) = work.pop() {
            if std::mem::replace(&mut needed[i], true) {
                continue;
            }
            if let Some(stores) = stores.get(of[i]) {
                work.extend(stores);
            }
            let own = self.classes[i].0;
            let used = mentions(self.lines[i]).filter(|v| Some(*v) != own);
            work.extend(used.filter_map(|v| self.defined_at(v)).filter(|at| !needed[*at]));
        }
        needed
    }

    /// Removes stores to a variable that is overwritten before anything can read it.
    fn drop_overwritten(&self, needed: &mut [bool]) {
        // The variables that the following lines overwrite.
        let mut next: Vec<usize> = Vec::new();
        for (i, class) in self.classes.iter().enumerate().rev() {
            match class.1 {
                Line::Store { to }
                    if self.variable(to) == self.definition.get(to).copied() && self.lines[i].contains("  store ") =>
                {
                    if next.contains(&to) {
                        needed[i] = false;
                    } else {
                        next.push(to);
                    }
                }
                Line::Root | Line::Other | Line::Store { .. } => next.clear(),
                Line::Variable => {}
                // Another pointer may point to the same variable.
                Line::Value if parts(self.lines[i]).1.starts_with("load") => {
                    let read = mentions(parts(self.lines[i]).1).next().and_then(|v| self.variable(v));
                    next.retain(|to| self.variable(*to) != read);
                }
                Line::Value => {}
            }
        }
    }

    /// The text of the lines that are needed, with one barrier for several variables.
    fn write(&self, needed: &[bool]) -> String {
        let mut out = String::with_capacity(self.lines.iter().map(|l| l.len() + 1).sum());
        let mut pins: Vec<&str> = Vec::new();
        for (i, line) in self.lines.iter().enumerate() {
            if !needed[i] && !matches!(self.classes[i].1, Line::Other) {
                continue;
            }
            // All barriers are in the entry block.
            let pin = line.trim_start().strip_prefix(PIN).and_then(|rest| rest.strip_suffix(')'));
            pins.extend(pin);
            if pins.len() == PINS || !pins.is_empty() && line.starts_with("  br ") {
                let (each, all) = (vec!["r"; pins.len()].join(","), pins.join(", ptr "));
                let _ = writeln!(out, "  call void asm sideeffect \"\", \"{each}\"(ptr {all})");
                pins.clear();
            }
            if pin.is_none() {
                out.push_str(line);
                out.push('\n');
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::tidy;

    #[test]
    fn unused_values_and_stores_are_removed() {
        let text = "\
entry:
  %t1 = alloca i32, align 4
  %t2 = alloca [2 x i32], align 4
  call void asm sideeffect \"\", \"r\"(ptr %t1)
  store i32 0, ptr %t1, align 4
  %t3 = getelementptr i8, ptr %t2, i64 4
  %t4 = add i32 %x, 1
  store i32 %t4, ptr %t3, align 4
  %t5 = load i32, ptr %t2, align 4
  %t6 = add i32 %t5, %t5
  %t7 = load atomic volatile i32, ptr %p monotonic, align 4
  ret i32 %t5
";
        let kept = "\
entry:
  %t2 = alloca [2 x i32], align 4
  %t3 = getelementptr i8, ptr %t2, i64 4
  %t4 = add i32 %x, 1
  store i32 %t4, ptr %t3, align 4
  %t5 = load i32, ptr %t2, align 4
  %t7 = load atomic volatile i32, ptr %p monotonic, align 4
  ret i32 %t5
";
        assert_eq!(tidy(text, |_| false), kept);
    }

    #[test]
    fn variables_are_pinned_together() {
        let text = "\
entry:
  %t1 = alloca i32, align 4
  call void asm sideeffect \"\", \"r\"(ptr %t1)
  %t2 = alloca i32, align 4
  call void asm sideeffect \"\", \"r\"(ptr %t2)
  %t3 = alloca i32, align 4
  call void asm sideeffect \"\", \"r\"(ptr %t3)
  br label %start
start:
  %t4 = load i32, ptr %t1, align 4
  %t5 = load i32, ptr %t3, align 4
  %t6 = add i32 %t4, %t5
  ret i32 %t6
";
        let tidied = tidy(text, |_| false);
        assert!(
            tidied.contains("  call void asm sideeffect \"\", \"r,r\"(ptr %t1, ptr %t3)\n  br label %start\n"),
            "{tidied}"
        );
    }

    #[test]
    fn stores_to_escaping_variables_are_kept() {
        let text =
            "  %t1 = alloca i32, align 4\n  store i32 7, ptr %t1, align 4\n  call void %f(ptr %t1)\n  ret void\n";
        assert_eq!(tidy(text, |_| false), text);
    }
}
