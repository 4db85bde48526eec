//! Moves operations that only rare code needs into that code.
//!
//! A register that is affine unless an index wrapped around lives in a vector as well, which only the code for wrapped
//! indices reads. Each such piece of code gets its own copy of the operations that lead there, so that the usual path
//! does not compute the vectors. LLVM sinks an operation only if a single block uses it.

use super::tidy::{is_value, mentions, parts};
use std::{collections::HashMap, fmt::Write};

/// The prefix of the label of rare code, which ends where a label with [`USUAL`] begins.
pub(super) const RARE: &str = "wrapped.";
/// The prefix of the label of the usual alternative.
pub(super) const USUAL: &str = "straight.";
/// Number of operations that rare code may repeat to recompute a value.
const LIMIT: usize = 24;

/// Sinks vector operations of a function's body into the rare code that uses them.
pub(super) fn sink(text: &str) -> String {
    if !text.contains(RARE) {
        return text.to_string();
    }
    let lines: Vec<&str> = text.lines().collect();
    let regions = rare_regions(&lines);
    let mut definition: HashMap<usize, usize> = HashMap::new();
    for (i, line) in lines.iter().enumerate() {
        parts(line).0.into_iter().for_each(|value| _ = definition.insert(value, i));
    }
    let operands = |i: usize| {
        let own = parts(lines[i]).0;
        mentions(lines[i]).filter(move |v| Some(*v) != own).filter_map(|v| definition.get(&v).copied())
    };
    let mut moves = candidates(&lines, &regions, &operands);
    keep_long(&mut moves, &operands);
    let mut out = String::with_capacity(text.len());
    let mut renamed: HashMap<usize, String> = HashMap::new();
    let mut region = usize::MAX;
    for (i, line) in lines.iter().enumerate() {
        let at = regions[i];
        if moves[i] && at == usize::MAX {
            continue;
        }
        if at == usize::MAX {
            _ = writeln!(out, "{line}");
            region = at;
            continue;
        }
        if at != region {
            _ = writeln!(out, "{line}");
            region = at;
            renamed.clear();
            let mut needed = Vec::new();
            let mut work: Vec<usize> = (i..lines.len()).take_while(|j| regions[*j] == at).collect();
            while let Some(line) = work.pop() {
                for used in operands(line).filter(|used| moves[*used]) {
                    if !needed.contains(&used) {
                        needed.push(used);
                        work.push(used);
                    }
                }
            }
            needed.sort_unstable();
            for i in needed {
                let line = rename(lines[i], &renamed);
                let Some(value) = parts(lines[i]).0 else { continue };
                let name = format!("%t{value}.{at}");
                _ = writeln!(out, "{}", line.replacen(&format!("%t{value} ="), &format!("{name} ="), 1));
                renamed.insert(value, name);
            }
            continue;
        }
        _ = writeln!(out, "{}", rename(line, &renamed));
    }
    out
}

/// By line: the index of the label at which the rare code around it begins; `usize::MAX` outside rare code.
fn rare_regions(lines: &[&str]) -> Vec<usize> {
    let mut region = usize::MAX;
    let of = |(i, line): (usize, &&str)| {
        if line.starts_with(RARE) {
            region = i;
        } else if line.starts_with(USUAL) {
            region = usize::MAX;
        }
        region
    };
    lines.iter().enumerate().map(of).collect()
}

/// By line: an operation on vectors, outside rare code, whose result only rare code uses.
fn candidates<I: Iterator<Item = usize>>(
    lines: &[&str],
    regions: &[usize],
    operands: &impl Fn(usize) -> I,
) -> Vec<bool> {
    let (mut used, mut kept) = (vec![false; lines.len()], vec![false; lines.len()]);
    let mut moves = vec![false; lines.len()];
    for i in (0..lines.len()).rev() {
        let rare = regions[i] != usize::MAX;
        moves[i] = !rare && used[i] && !kept[i] && is_value(lines[i]) && lines[i].contains("<32 x ");
        for o in operands(i) {
            used[o] = true;
            // A use further up is reached through a loop.
            kept[o] |= !rare && !moves[i] || o > i;
        }
    }
    moves
}

/// Leaves values that take many operations to repeat in place, with everything that they depend on.
fn keep_long<I: Iterator<Item = usize>>(moves: &mut [bool], operands: &impl Fn(usize) -> I) {
    let mut cost = vec![0; moves.len()];
    let mut long = Vec::new();
    for i in (0..moves.len()).filter(|i| moves[*i]) {
        cost[i] = 1 + operands(i).map(|o| cost[o]).sum::<usize>();
        if cost[i] > LIMIT {
            cost[i] = 0;
            long.push(i);
        }
    }
    while let Some(i) = long.pop() {
        if std::mem::replace(&mut moves[i], false) {
            long.extend(operands(i));
        }
    }
}

/// A line with new names for values.
fn rename(line: &str, names: &HashMap<usize, String>) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("%t") {
        let digits = &rest[at + 2..];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let (name, after) = (&rest[at..at + 2 + end], &digits[end..]);
        out.push_str(&rest[..at]);
        let new = digits[..end].parse().ok().and_then(|value: usize| names.get(&value));
        out.push_str(new.map_or(name, String::as_str));
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::sink;

    #[test]
    fn operands_of_rare_code_are_computed_there() {
        let text = "\
start:
  %t1 = add <32 x i64> %t0, %t0
  %t2 = add <32 x i64> %t1, %t0
  %t3 = add <32 x i64> %t0, %t0
  br i1 %c, label %wrapped.1, label %straight.2
wrapped.1:
  %t4 = sub <32 x i64> %t2, %t1
  call void @f(<32 x i64> %t4)
  br label %checked.4
checked.4:
  call void @g(<32 x i64> %t2)
  br label %accessed.3
straight.2:
  br label %accessed.3
accessed.3:
  call void @f(<32 x i64> %t3)
  br i1 %c, label %wrapped.5, label %straight.6
wrapped.5:
  call void @f(<32 x i64> %t1)
  br label %accessed.7
straight.6:
  br label %accessed.7
accessed.7:
  ret void
";
        let moved = "\
start:
  %t3 = add <32 x i64> %t0, %t0
  br i1 %c, label %wrapped.1, label %straight.2
wrapped.1:
  %t1.5 = add <32 x i64> %t0, %t0
  %t2.5 = add <32 x i64> %t1.5, %t0
  %t4 = sub <32 x i64> %t2.5, %t1.5
  call void @f(<32 x i64> %t4)
  br label %checked.4
checked.4:
  call void @g(<32 x i64> %t2.5)
  br label %accessed.3
straight.2:
  br label %accessed.3
accessed.3:
  call void @f(<32 x i64> %t3)
  br i1 %c, label %wrapped.5, label %straight.6
wrapped.5:
  %t1.17 = add <32 x i64> %t0, %t0
  call void @f(<32 x i64> %t1.17)
  br label %accessed.7
straight.6:
  br label %accessed.7
accessed.7:
  ret void
";
        assert_eq!(sink(text), moved);
    }

    #[test]
    fn long_computations_stay() {
        let mut text = "start:\n".to_string();
        for i in 1..32 {
            text += &format!("  %t{i} = add <32 x i64> %t{}, %t0\n", i - 1);
        }
        text += "  br i1 %c, label %wrapped.1, label %straight.2\nwrapped.1:\n  call void @f(<32 x i64> %t31)\n  br label %accessed.3\n";
        text += "straight.2:\n  br label %accessed.3\naccessed.3:\n  ret void\n";
        let sunk = sink(&text);
        let (before, after) = sunk.split_once("wrapped.1:").unwrap();
        assert!(before.contains("%t25 =") && !before.contains("%t26 =") && after.contains("%t31.33 ="), "{sunk}");
    }
}
