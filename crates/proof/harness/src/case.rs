//! The header of a case file: `//@ key: value` lines. See `tests/README.ptx` for the format.

use crate::expr::Expr;
use margay::{
    LaunchShape, Verdict,
    element::Element,
    image::{ImageSpec, Role, Sampler},
    spec::{Fill, parse_shape},
    tensormap::MapOptions,
};

/// A parsed case file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Case {
    /// Launches in order.
    pub launches: Vec<Launch>,
    /// Files to link, relative to the case.
    pub links: Vec<String>,
    /// The source of the expectations.
    pub source: Option<String>,
    /// Seeds of further interleavings.
    pub seeds: Vec<u64>,
    /// ABIs that must have a plan, besides `ptx`.
    pub must_place: Vec<String>,
    /// Restricts the case to these ABIs.
    pub only_abis: Option<Vec<String>>,
    /// Restricts the case to these engines.
    pub only_engines: Option<Vec<String>>,
    /// Checked as relocatable code.
    pub relocatable: bool,
    /// Whose verdict counts.
    pub verdict: Verdict,
}

/// A launch with its expectations.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// 1-based line of the directive.
    pub line: usize,
    /// Name of the kernel.
    pub kernel: String,
    /// Its shape.
    pub shape: LaunchShape,
    /// Stack size in bytes.
    pub stack: Option<u32>,
    /// Arguments, in the kernel's order.
    pub args: Vec<Arg>,
    /// Expectations on the results.
    pub expects: Vec<Expect>,
    /// The expected fault: the name of a `FaultKind`, and text that its data, a note or its thread must contain.
    pub fault: Option<(String, String)>,
    /// Text that the note of an undefined use must contain; without it, there must be none.
    pub undefined: Option<String>,
    /// The expected output.
    pub prints: Option<String>,
}

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub struct Arg {
    /// Its name in expectations.
    pub name: String,
    /// Its value.
    pub value: Value,
}

/// An argument's value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A scalar of a type.
    Scalar(Element, String),
    /// The bytes of a by-value parameter.
    Bytes(Vec<u8>),
    /// A buffer.
    Buffer {
        /// Type of its elements.
        element: Element,
        /// Extents.
        shape: Vec<u64>,
        /// Contents before the launch.
        init: BufferInit,
        /// Must be unchanged by the launch.
        read_only: bool,
        /// Passed as a texture or surface, or bound to a reference of the module.
        image: Option<Shown>,
    },
    /// A sampler for a `.samplerref` variable.
    Sampler(Sampler),
    /// A buffer of an earlier launch of this case, by name.
    Same,
    /// A tensor map of the buffer with this name.
    TensorMap(String, MapOptions),
}

/// A buffer used as an image.
#[derive(Clone, PartialEq, Debug)]
pub struct Shown {
    /// What it is and how it is read.
    pub spec: ImageSpec,
    /// Bound to the reference with the argument's name, rather than passed as a parameter.
    pub bound: bool,
}

/// Initial contents of a buffer.
#[derive(Clone, PartialEq, Debug)]
pub enum BufferInit {
    /// As on the command line.
    Fill(Fill),
    /// These values, then zeros.
    List(Vec<String>),
    /// A formula of the index `i`.
    Formula(Expr),
}

/// `d[0..4] == {1, 2, 3, 4}`, `d[i] == 2 * i`
#[derive(Clone, PartialEq, Debug)]
pub struct Expect {
    /// 1-based line.
    pub line: usize,
    /// The text of the expectation.
    pub text: String,
    /// The buffer.
    pub buffer: String,
    /// The elements to compare.
    pub at: At,
    /// The expected values: one for all elements, or one per element.
    pub wanted: Vec<Expr>,
    /// Absolute tolerance.
    pub tolerance: f64,
}

/// A selection of elements.
#[derive(Clone, PartialEq, Debug)]
pub enum At {
    /// All, with `i` as the index.
    All,
    /// One.
    One(Expr),
    /// From, to (exclusive).
    Range(Expr, Expr),
}

/// An error in a case file: line and reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaseError(pub usize, pub String);

impl std::fmt::Display for CaseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.0, self.1)
    }
}

impl Case {
    /// Parses the header lines of a file.
    pub fn parse(text: &str) -> Result<Case, CaseError> {
        let mut case = Case::default();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let Some(directive) = line.trim_start().strip_prefix("//@") else { continue };
            let (key, value) = directive.split_once(':').map_or((directive.trim(), ""), |(k, v)| (k.trim(), v.trim()));
            let fail = |why: String| CaseError(number, why);
            let words = || value.split([' ', ',']).filter(|w| !w.is_empty()).map(String::from).collect::<Vec<_>>();
            match key {
                "launch" => case.launches.push(launch(number, value).map_err(fail)?),
                "expect" => {
                    let expects = expects(number, value).map_err(fail)?;
                    case.last(number)?.expects.extend(expects);
                }
                "fault" => {
                    let (kind, text) = value.split_once(' ').unwrap_or((value, ""));
                    case.last(number)?.fault = Some((kind.into(), text.trim().trim_matches('"').into()));
                }
                "undefined" => case.last(number)?.undefined = Some(value.trim_matches('"').into()),
                "prints" => {
                    let text = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
                    let text = text.ok_or_else(|| fail("the text must be in quotes".into()))?;
                    let text = text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"");
                    case.last(number)?.prints.get_or_insert_default().push_str(&text);
                }
                "link" => case.links.extend(words()),
                "source" => case.source = Some(value.into()),
                "seeds" => {
                    let (from, to) = value.split_once("..").ok_or_else(|| fail("seeds are a range `1..20`".into()))?;
                    let bounds = from.trim().parse::<u64>().ok().zip(to.trim().parse::<u64>().ok());
                    let (from, to) = bounds.ok_or_else(|| fail("seeds are a range `1..20`".into()))?;
                    case.seeds = (from..to).collect();
                }
                "places" => case.must_place = words(),
                "only-abi" => case.only_abis = Some(words()),
                "only-engine" => case.only_engines = Some(words()),
                "relocatable" => case.relocatable = true,
                "by-text" => case.verdict = Verdict::Text,
                _ => return Err(fail(format!("no directive `{key}`"))),
            }
        }
        match case {
            Case { source: None, .. } => {
                Err(CaseError(0, "no `//@ source:` says where the expectations come from".into()))
            }
            Case { ref launches, .. } if launches.is_empty() => Err(CaseError(0, "no `//@ launch:`".into())),
            // A launch without expectations may prepare the next one, but the last one must have some.
            _ => match case.launches.last() {
                Some(l) if l.expects.is_empty() && l.fault.is_none() && l.undefined.is_none() && l.prints.is_none() => {
                    Err(CaseError(l.line, "the last launch expects nothing".into()))
                }
                _ => Ok(case),
            },
        }
    }

    fn last(&mut self, line: usize) -> Result<&mut Launch, CaseError> {
        self.launches.last_mut().ok_or_else(|| CaseError(line, "it belongs to a `launch:` before it".into()))
    }
}

/// `name<<<grid, block, shared>>>(args) cluster 2 cooperative stack 1024`
fn launch(line: usize, text: &str) -> Result<Launch, String> {
    let (kernel, rest) = text.split_once("<<<").ok_or("expected `kernel<<<grid, block>>>(arguments)`")?;
    let (config, rest) = rest.split_once(">>>").ok_or("`<<<` without `>>>`")?;
    let rest = rest.trim().strip_prefix('(').ok_or("expected `(` after `>>>`")?;
    let close = closing(rest).ok_or("`(` without `)`")?;
    let (args, options) = (&rest[..close], rest[close + 1..].trim());
    let config = split(config);
    if !(2..=3).contains(&config.len()) {
        return Err("`<<<grid, block>>>` or `<<<grid, block, shared>>>`".into());
    }
    let mut launch = Launch {
        line,
        kernel: kernel.trim().into(),
        shape: LaunchShape {
            shared: config.get(2).map_or(Ok(0), |s| number(s))?,
            ..LaunchShape::new(dim3(config[0])?, dim3(config[1])?)
        },
        stack: None,
        args: split(args).into_iter().map(arg).collect::<Result<_, _>>()?,
        expects: Vec::new(),
        fault: None,
        undefined: None,
        prints: None,
    };
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("`{word}` needs a value"));
        match word {
            "cluster" => launch.shape.cluster = Some(dim3(value()?)?),
            "stack" => launch.stack = Some(number(value()?)?),
            "cooperative" => launch.shape.cooperative = true,
            _ => return Err(format!("no option `{word}` of a launch")),
        }
    }
    Ok(launch)
}

/// `in a: s32[32] = iota`, `n: u32 = 7`, `s = hex:0011`, `same a`
fn arg(text: &str) -> Result<Arg, String> {
    let (bound, text) = text.strip_prefix("bind ").map_or((false, text), |rest| (true, rest.trim()));
    if let Some((name, words)) = text.split_once(": sampler").filter(|_| bound) {
        let sampler = margay::image::sampler(words.split_whitespace())?;
        return Ok(Arg { name: name.trim().into(), value: Value::Sampler(sampler) });
    }
    let (text, image) = match text.split_once(" as ") {
        Some((rest, words)) => {
            let mut words = words.split_whitespace();
            let role = match words.next() {
                Some("tex") => Role::Texture,
                Some("surf") => Role::Surface,
                _ => return Err(format!("`{text}`: `as tex` or `as surf`, then words")),
            };
            (rest, Some(Shown { spec: ImageSpec::parse(role, words)?, bound }))
        }
        None if bound => return Err(format!("`{text}`: what is bound is `as tex`, `as surf` or `: sampler`")),
        None => (text, None),
    };
    let (left, init) = text.split_once('=').map_or((text, None), |(l, r)| (l.trim(), Some(r.trim())));
    if let Some(name) = left.strip_prefix("same ") {
        return Ok(Arg { name: name.trim().into(), value: Value::Same });
    }
    let (role, left) = match left.split_once(' ') {
        Some((role @ ("in" | "out" | "inout"), rest)) => (role, rest),
        _ => ("", left),
    };
    if let Some(hex) = init.and_then(|i| i.strip_prefix("hex:")) {
        let bytes = match margay::spec::Spec::parse(&format!("hex:{hex}"))? {
            margay::spec::Spec::Bytes(bytes) => bytes,
            _ => return Err("hexadecimal bytes expected".into()),
        };
        return Ok(Arg { name: left.split(':').next().unwrap_or(left).trim().into(), value: Value::Bytes(bytes) });
    }
    if let Some(map) = init.and_then(|i| i.strip_prefix("tensormap(")?.strip_suffix(')')) {
        let (of, options) = map.split_once(',').unwrap_or((map, ""));
        let value = Value::TensorMap(of.trim().into(), MapOptions::parse(options)?);
        return Ok(Arg { name: left.trim().into(), value });
    }
    let (name, ty) = left.split_once(':').ok_or_else(|| format!("`{text}`: expected `name: type`"))?;
    let (ty, shape) = match ty.trim().split_once('[') {
        Some((ty, shape)) => (ty, Some(parse_shape(shape.trim_end_matches(']'))?)),
        None => (ty.trim(), None),
    };
    let element = Element::from_name(ty.trim()).ok_or_else(|| format!("`{ty}` is not an element type"))?;
    let value = match (shape, init) {
        (None, Some(init)) if role.is_empty() => {
            element.parse(init)?;
            Value::Scalar(element, init.into())
        }
        (None, _) => return Err(format!("`{text}`: a scalar is written `name: type = value`")),
        (Some(_), _) if role.is_empty() => return Err(format!("`{text}`: a buffer is `in`, `out` or `inout`")),
        (Some(shape), init) => {
            let init = buffer_init(element, init.unwrap_or("zeros"))?;
            Value::Buffer { element, shape, init, read_only: role == "in", image }
        }
    };
    Ok(Arg { name: name.trim().into(), value })
}

fn buffer_init(element: Element, text: &str) -> Result<BufferInit, String> {
    if let Some(list) = text.strip_prefix('{').and_then(|l| l.strip_suffix('}')) {
        let values: Vec<String> = split(list).into_iter().map(String::from).collect();
        values.iter().try_for_each(|v| element.parse(v).map(drop))?;
        return Ok(BufferInit::List(values));
    }
    let (word, value) = text.split_once([' ', ':']).map_or((text, ""), |(w, v)| (w, v.trim()));
    Ok(match word {
        "zeros" => BufferInit::Fill(Fill::Zeros),
        "iota" => BufferInit::Fill(Fill::Iota),
        "fill" => {
            element.parse(value)?;
            BufferInit::Fill(Fill::Value(value.into()))
        }
        "rand" => BufferInit::Fill(Fill::Random(value.parse().map_err(|_| format!("`{value}` is not a seed"))?)),
        _ => BufferInit::Formula(Expr::parse(text).map_err(|e| e.to_string())?),
    })
}

/// `d[0] == 1, e[i] == a[i] + 1 +- 0.5`; a comment may follow `//`.
fn expects(line: usize, text: &str) -> Result<Vec<Expect>, String> {
    let text = text.split_once("//").map_or(text, |(t, _)| t);
    split(text).into_iter().map(|t| expect(line, t)).collect()
}

fn expect(line: usize, text: &str) -> Result<Expect, String> {
    let wrong = || format!("`{text}`: expected `buffer[index] == value`");
    let error = |e: crate::expr::ExprError| format!("`{text}`: {e}");
    // The first `==` outside brackets separates the expectation; others belong to expressions.
    let (left, right) = text.split_once("==").ok_or_else(wrong)?;
    let (right, tolerance) = right.split_once("+-").map_or((right, Ok(0.0)), |(r, t)| (r, t.trim().parse()));
    let tolerance = tolerance.map_err(|_| format!("`{text}`: the tolerance is not a number"))?;
    let (buffer, at) = match left.trim().split_once('[') {
        None => (left.trim(), At::All),
        Some((buffer, index)) => {
            let index = index.trim().strip_suffix(']').ok_or_else(wrong)?;
            let at = match index.split_once("..") {
                _ if index == "i" => At::All,
                Some((from, to)) => At::Range(Expr::parse(from).map_err(error)?, Expr::parse(to).map_err(error)?),
                None => At::One(Expr::parse(index).map_err(error)?),
            };
            (buffer.trim(), at)
        }
    };
    let wanted = match right.trim().strip_prefix('{').and_then(|l| l.strip_suffix('}')) {
        Some(list) => split(list).into_iter().map(Expr::parse).collect::<Result<Vec<_>, _>>().map_err(error)?,
        None => vec![Expr::parse(right).map_err(error)?],
    };
    Ok(Expect { line, text: text.into(), buffer: buffer.into(), at, wanted, tolerance })
}

fn number(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| format!("`{text}` is not a number"))
}

/// `4`, `(2,3)`, `(2,3,4)`
fn dim3(text: &str) -> Result<[u32; 3], String> {
    let mut dims = [1; 3];
    let inner = text.trim().trim_start_matches('(').trim_end_matches(')');
    for (i, part) in inner.split(',').enumerate() {
        *dims.get_mut(i).ok_or("at most three sizes")? = number(part)?;
    }
    Ok(dims)
}

/// Position of the `)` that closes a bracket opened before the text.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.char_indices().find_map(|(i, c)| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => return Some(i),
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        None
    })
}

/// Splits at commas outside all brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|p| !p.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read() {
        let case = Case::parse(
            "//@ launch: k<<<(2,3), 32, 64>>>(in a: s32[4,8] = iota, n: u32 = 7, s = hex:00ff, out d: f32[2]) cluster 2\n\
             //@ expect: d[0] == 1.5 +- 0.1, d[i] == i * 2, d[0..2] == {1, 2}   // why\n\
             //@ fault: OutOfBounds after the end\n//@ source: manual, add\nadd.s32 %r1, %r2, %r3;\n",
        )
        .unwrap();
        let l = &case.launches[0];
        let shape = LaunchShape { cluster: Some([2, 1, 1]), shared: 64, ..LaunchShape::new([2, 3, 1], [32, 1, 1]) };
        assert_eq!(l.shape, shape);
        assert_eq!(l.args.len(), 4);
        assert_eq!(l.args[2].value, Value::Bytes(vec![0, 255]));
        assert_eq!(l.expects.len(), 3);
        assert_eq!(l.expects[0].tolerance, 0.1);
        assert_eq!(l.expects[2].wanted.len(), 2);
        assert_eq!(l.fault, Some(("OutOfBounds".into(), "after the end".into())));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let error = |t: &str| Case::parse(t).unwrap_err();
        assert_eq!(error("//@ lunch: x").0, 1);
        assert!(error("//@ launch: k<<<1, 1>>>()\n//@ source: x").1.contains("expects nothing"));
        assert!(error("//@ launch: k<<<1, 1>>>(in a: q32[4])").1.contains("element type"));
        assert!(error("//@ launch: k<<<1, 1>>>()\n//@ expect: d = 1").1.contains("=="));
    }
}
