//! `--print` and `--expect`: prints buffers after the launch and compares them with files.

use super::{Argument, arguments::HostBuffer};
use crate::{
    args::RunArgs,
    cmd::Result,
    exit::{Failure, Outcome, complain},
    report::emit,
};
use margay::{
    compare::{Tolerance, compare},
    npy::Array,
    quantity::count,
};
use std::{ops::Range, path::PathBuf};

/// Elements printed when no range was given.
const SHOWN: u64 = 64;

/// The parsed options.
pub struct Wanted {
    prints: Vec<Print>,
    expects: Vec<(usize, PathBuf)>,
}

struct Print {
    index: usize,
    /// A range for each given dimension; open ends are `u64::MAX`.
    ranges: Option<Vec<Range<u64>>>,
}

impl Wanted {
    /// Parses the options; done before the launch, so that errors come first.
    pub fn parse(args: &RunArgs) -> Result<Wanted> {
        let prints = args.print.iter().map(|text| print_spec(text)).collect::<Result<_>>()?;
        let expects = args.expect.iter().map(|text| expect_spec(text)).collect::<Result<_>>()?;
        Ok(Wanted { prints, expects })
    }

    /// Whether all indices name buffers.
    pub fn check(&self, arguments: &[Argument]) -> Result<()> {
        let prints = self.prints.iter().map(|p| ("--print", p.index));
        let expects = self.expects.iter().map(|(index, _)| ("--expect", *index));
        for (option, index) in prints.chain(expects) {
            buffer(arguments, option, index)?;
        }
        Ok(())
    }

    /// Prints and compares.
    pub fn report(&self, arguments: &[Argument], args: &RunArgs) -> Result {
        for print in &self.prints {
            let array = buffer(arguments, "--print", print.index)?.array()?;
            emit(&show(&array, print)?);
        }
        let (mut outcome, tolerance) = (Outcome::Clean, Tolerance { relative: args.rtol, absolute: args.atol });
        for (index, path) in &self.expects {
            let wanted =
                Array::load(path).map_err(|e| Failure::usage(format!("cannot read {}: {e}", path.display())))?;
            let got = buffer(arguments, "--expect", *index)?.array()?;
            match compare(&got, &wanted, tolerance) {
                Ok(()) => emit(&format!("argument {index} equals {}\n", path.display())),
                Err(difference) => {
                    let path = path.display();
                    complain(format_args!("error: argument {index} differs from {path}: {difference}"));
                    outcome = Outcome::Findings;
                }
            }
        }
        Ok(outcome)
    }
}

fn buffer<'a>(arguments: &'a [Argument], option: &str, index: usize) -> Result<&'a HostBuffer> {
    match arguments.get(index) {
        Some(Argument { buffer: Some(buffer), .. }) => Ok(buffer),
        Some(_) => Err(Failure::usage(format!("`{option} {index}`: argument {index} is not a buffer"))),
        None => Err(Failure::usage(format!(
            "`{option} {index}`: the kernel takes {}, counted from 0",
            count(arguments.len() as u64, "argument", "arguments")
        ))),
    }
}

fn print_spec(text: &str) -> Result<Print> {
    let wrong = || {
        Failure::usage(format!(
            "`--print {text}`: expected INDEX or INDEX[RANGE], such as `2`, `2[5]`, `2[0..8]` or `2[1,0..4]`"
        ))
    };
    let (index, range) = match text.split_once('[') {
        Some((index, rest)) => (index, Some(rest.strip_suffix(']').ok_or_else(wrong)?)),
        None => (text, None),
    };
    let index = index.trim().parse().map_err(|_| wrong())?;
    let ranges = range
        .map(|r| r.split(',').map(|d| dimension(d.trim())).collect::<Option<Vec<_>>>().ok_or_else(wrong))
        .transpose()?;
    Ok(Print { index, ranges })
}

/// `5`, `0..8`, `0:8`, `..8`, `8..`
fn dimension(text: &str) -> Option<Range<u64>> {
    let end = |t: &str, open: u64| if t.is_empty() { Some(open) } else { t.parse().ok() };
    match text.split_once("..").or_else(|| text.split_once(':')) {
        Some((from, to)) => Some(end(from, 0)?..end(to, u64::MAX)?),
        None => text.parse().ok().map(|i: u64| i..i.saturating_add(1)),
    }
}

fn expect_spec(text: &str) -> Result<(usize, PathBuf)> {
    let parts = text.split_once('=').and_then(|(index, path)| Some((index.trim().parse().ok()?, path.into())));
    parts.ok_or_else(|| Failure::usage(format!("`--expect {text}`: expected INDEX=REF.npy, such as `3=ref.npy`")))
}

/// The ranges of indices to print, by dimension: those that were asked for, else everything.
fn selected(array: &Array, print: &Print) -> Result<Vec<Range<u64>>> {
    let index = print.index;
    let mut ranges: Vec<Range<u64>> = array.shape.iter().map(|n| 0..*n).collect();
    let given = print.ranges.as_deref().unwrap_or(&[]);
    if given.len() > ranges.len() {
        let (what, dimensions) = (array.describe(), count(ranges.len() as u64, "dimension", "dimensions"));
        return Err(Failure::usage(format!("`--print {index}`: the buffer {what} has {dimensions}")));
    }
    for (range, given) in ranges.iter_mut().zip(given) {
        let end = if given.end == u64::MAX { range.end } else { given.end };
        if given.start > end || end > range.end {
            let (from, what) = (given.start, array.describe());
            return Err(Failure::usage(format!("`--print {index}`: {from}..{end} is outside {what}")));
        }
        *range = given.start..end;
    }
    Ok(ranges)
}

/// The indices after `at`, counting up from the last dimension; `None` at the end.
fn next(mut at: Vec<u64>, ranges: &[Range<u64>]) -> Option<Vec<u64>> {
    for (dimension, range) in ranges.iter().enumerate().rev() {
        at[dimension] += 1;
        if at[dimension] < range.end {
            return Some(at);
        }
        at[dimension] = range.start;
    }
    None
}

/// Rows of values, each with the index of its first element.
fn show(array: &Array, print: &Print) -> Result<String> {
    let index = print.index;
    let ranges = selected(array, print)?;
    let cut = if print.ranges.is_none() { array.len().saturating_sub(SHOWN) } else { 0 };
    let mut out = format!("argument {index}: {}\n", array.describe());
    if ranges.iter().any(|r| r.is_empty()) {
        return Ok(out);
    }
    let (rows, columns) = match ranges.split_last() {
        Some((columns, rows)) => (rows, columns.clone()),
        None => (&[][..], 0..1),
    };
    let mut left = if cut > 0 { SHOWN } else { u64::MAX };
    let per_line = if rows.is_empty() { 16 } else { u64::MAX };
    let mut row = Some(rows.iter().map(|r| r.start).collect::<Vec<u64>>());
    while let Some(at) = row {
        let mut from = columns.start;
        while from < columns.end && left > 0 {
            let to = columns.end.min(from.saturating_add(per_line.min(left)));
            let flat = at.iter().zip(&array.shape).fold(0, |n, (i, extent)| n * extent + i);
            let stride = array.shape.last().copied().unwrap_or(1);
            let values: Vec<String> = (from..to).map(|c| array.element.show(array.at(flat * stride + c))).collect();
            let place: Vec<String> = at.iter().map(u64::to_string).chain([from.to_string()]).collect();
            out += &format!("  [{}] {}\n", place.join(","), values.join(" "));
            left -= to - from;
            from = to;
        }
        row = next(at, rows);
    }
    if cut > 0 {
        let first = array.shape[0];
        out += &format!("  ... {cut} more elements; `--print {index}[0..{first}]` shows all of the first dimension\n");
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use margay::element::Element;
    use margay_isa::Type;

    fn iota(shape: &[u64]) -> Array {
        let element = Element::Ptx(Type::S32);
        let data = (0..shape.iter().product()).flat_map(|i| element.iota(i)).collect();
        Array { element, shape: shape.to_vec(), data }
    }

    fn shown(array: &Array, spec: &str) -> String {
        show(array, &print_spec(spec).unwrap()).unwrap_or_else(|e| e.message)
    }

    #[test]
    fn ranges() {
        let a = iota(&[3, 4]);
        assert_eq!(shown(&a, "7[1..,..2]"), "argument 7: s32[3,4]\n  [1,0] 4 5\n  [2,0] 8 9\n");
        assert_eq!(shown(&a, "7[2,3]"), "argument 7: s32[3,4]\n  [2,3] 11\n");
        assert!(shown(&a, "7[0..5]").contains("outside s32[3,4]"));
        assert!(shown(&a, "7[0,0,0]").contains("2 dimensions"));
        assert_eq!(shown(&iota(&[20]), "0[15..18]"), "argument 0: s32[20]\n  [15] 15 16 17\n");
        assert!(shown(&iota(&[100]), "0").contains("... 36 more elements"));
        assert!(print_spec("x").is_err() && print_spec("1[2").is_err());
    }
}
