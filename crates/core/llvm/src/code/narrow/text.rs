//! What optimized LLVM IR looks like: types, operands, constants, names.

use super::{LANES, PIECES};

/// Operations on integers, and on floating-point numbers, with two operands of one type.
pub(super) const INTEGER: [&str; 13] =
    ["add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "udiv", "sdiv", "urem", "srem"];
pub(super) const FLOAT: [&str; 5] = ["fadd", "fsub", "fmul", "fdiv", "frem"];
pub(super) const CASTS: [&str; 10] =
    ["sext", "zext", "trunc", "bitcast", "sitofp", "uitofp", "fptosi", "fptoui", "fpext", "fptrunc"];

/// Intrinsics that compute each lane from the same lane of their operands.
const LANEWISE: [&str; 29] = [
    "abs.",
    "bitreverse.",
    "bswap.",
    "ceil.",
    "copysign.",
    "ctlz.",
    "ctpop.",
    "cttz.",
    "fabs.",
    "floor.",
    "fma.",
    "fptosi.sat.",
    "fptoui.sat.",
    "fshl.",
    "fshr.",
    "maxnum.",
    "minnum.",
    "nearbyint.",
    "rint.",
    "roundeven.",
    "sadd.sat.",
    "smax.",
    "smin.",
    "sqrt.",
    "ssub.sat.",
    "trunc.",
    "uadd.sat.",
    "umax.",
    "umin.",
];

/// Whether an intrinsic, named without `llvm.`, computes each lane by itself.
pub(super) fn is_lanewise(intrinsic: &str) -> bool {
    LANEWISE.iter().any(|name| intrinsic.starts_with(name))
}

/// Whether an operation has no effect and depends on its operands only.
pub(super) fn is_pure(operation: &str) -> bool {
    let other = ["icmp", "fcmp", "fneg", "select", "getelementptr", "inttoptr", "ptrtoint", "extractvalue"];
    let vector = ["insertelement", "shufflevector", "extractelement"];
    [&INTEGER[..], &FLOAT, &CASTS, &other, &vector].iter().any(|list| list.contains(&operation))
}

/// Splits at commas outside brackets.
pub(super) fn commas(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (i, c) in text.bytes().enumerate() {
        match c {
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            b'>' | b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// The type at the start of a text, and what follows.
pub(super) fn typed(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let mut depth = 0;
    let end = text.bytes().position(|c| {
        match c {
            b'<' | b'{' | b'[' => depth += 1,
            b'>' | b'}' | b']' => depth -= 1,
            _ => {}
        }
        c == b' ' && depth == 0
    })?;
    Some((&text[..end], text[end..].trim_start()))
}

/// The element of a vector type of 32 lanes.
pub(super) fn lanes(ty: &str) -> Option<&str> {
    ty.strip_prefix("<32 x ")?.strip_suffix('>')
}

/// Bits of an element; 0 for types that are not divided.
pub(super) fn bits(elem: &str) -> usize {
    match elem {
        "i1" => 1,
        "i8" => 8,
        "i16" | "half" | "bfloat" => 16,
        "i32" | "float" => 32,
        "i64" | "double" => 64,
        _ => 0,
    }
}

/// Bytes of a piece.
pub(super) fn size(elem: &str) -> usize {
    LANES * bits(elem) / 8
}

/// Whether vectors of such elements are divided. Smaller ones fill a register or two as they are.
pub(super) fn divides(elem: &str) -> bool {
    bits(elem) >= 32
}

/// The element of a vector type that is divided.
pub(super) fn divided(ty: &str) -> Option<&str> {
    lanes(ty).filter(|elem| divides(elem))
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with('%')
}

/// The values and labels that a text mentions.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('%').map(|(at, _)| {
        let rest = &text[at..];
        let inside = |c: char| c.is_ascii_alphanumeric() || "._$-".contains(c);
        let end = rest[1..].find(|c| !inside(c)).map_or(rest.len(), |end| end + 1);
        &rest[..end]
    })
}

/// A line's result, and the text after the `=`.
pub(super) fn parts(line: &str) -> (Option<&str>, &str) {
    let line = line.trim_start();
    match line.split_once(" = ") {
        Some((name, text)) if is_name(name) && !name.contains(' ') => (Some(name), text),
        _ => (None, line),
    }
}

/// Name of piece `k` of a value: of its elements (`n`), words (`w`), bits (`b`), or address (`p`).
pub(super) fn piece_name(kind: char, k: usize, name: &str) -> String {
    format!("%{kind}{k}.{}", &name[1..])
}

/// The type of a piece.
pub(super) fn piece_type(elem: &str) -> String {
    format!("<{LANES} x {elem}>")
}

/// The lanes from `first` on as the text of a vector.
pub(super) fn order(first: usize, count: usize) -> String {
    let lanes: Vec<String> = (first..first + count).map(|lane| format!("i32 {lane}")).collect();
    format!("<{count} x i32> <{}>", lanes.join(", "))
}

/// The elements of a constant vector that lists them; `None` for one with the same in all lanes.
pub(super) fn constant_elements(text: &str) -> Option<Vec<&str>> {
    Some(commas(text.strip_prefix('<')?.strip_suffix('>')?))
}

/// A piece of a constant; `None` if it is not understood.
pub(super) fn constant_piece(text: &str, k: usize) -> Option<String> {
    if text.starts_with("splat ") || matches!(text, "zeroinitializer" | "poison" | "undef") {
        return Some(text.to_string());
    }
    let elements = constant_elements(text)?;
    let piece = || format!("<{}>", elements[k * LANES..(k + 1) * LANES].join(", "));
    (elements.len() == PIECES * LANES).then(piece)
}

/// A constant mask as words.
pub(super) fn as_words(mask: &str) -> String {
    mask.replace("i1 true", "i32 -1").replace("i1 false", "i32 0").replace("i1 ", "i32 ")
}

/// Name of a declared function.
pub(super) fn declared_name(line: &str) -> &str {
    line.split_once('@').and_then(|(_, rest)| rest.split_once('(')).map_or("", |(name, _)| name)
}

/// The part of an overloaded intrinsic's name for an element.
pub(super) fn mangled(elem: &str) -> &str {
    match elem {
        "float" => "f32",
        "double" => "f64",
        integer => integer,
    }
}

/// An access's alignment, and the metadata behind it; `None` for anything else.
pub(super) fn alignment(parts: &[&str]) -> Option<(usize, String)> {
    let (first, rest) = parts.split_first()?;
    let align = first.strip_prefix("align ")?.parse().ok()?;
    Some((align, rest.iter().map(|part| format!(", {part}")).collect()))
}

/// The alignment `at` bytes behind something aligned.
pub(super) fn aligned(align: usize, at: usize) -> usize {
    if at == 0 { align } else { align.min(1 << at.trailing_zeros()) }
}
