//! `--arg SPEC`: the syntax of one argument of a kernel.
//!
//! ```text
//! 3  -1.5  0x10  inf  nan  0f3F800000    a scalar, typed by the kernel's parameter
//! f32=2                                  a scalar of that type
//! x.npy                                  a buffer with the file's contents
//! y.npy:out.npy                          the same, written to out.npy afterwards
//! f32[4,8]=zeros:out.npy                 a buffer of that type and shape; also iota, fill:V, rand:SEED, uninit; :OUT may be left out
//! hex:0011aabb                           the bytes of a by-value parameter
//! tensormap:box=64x32,swizzle=128:SPEC   a tensor map of a buffer, or of argument N: `@N` (see [`crate::tensormap`])
//! {u8=3, f64=2.5, f32[16]=iota}          a struct by value, laid out as C does; buffers become pointers
//! tex:x.npy,filter=linear,normalized     a texture object; `tex:` is followed by a buffer, then options of [`crate::image`]
//! surf:f32[4,8]=zeros:out.npy            a surface object
//! ```
//!
//! `OUT` may also end in `.bin` (raw bytes), or in `.png` or `.ppm` for `u8` buffers of shape `[h,w]` or `[h,w,3]`.

use crate::{
    element::{Element, parse_f64},
    image::{ImageSpec, Role},
    tensormap::MapOptions,
};
use std::path::PathBuf;

/// A requested argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Spec {
    /// A literal; its type is the parameter's.
    Scalar(String),
    /// A literal with a type.
    Typed(Element, String),
    /// The bytes of a by-value parameter.
    Bytes(Vec<u8>),
    /// A buffer.
    Buffer(BufferSpec),
    /// A struct by value.
    Struct(Vec<Spec>),
    /// A texture or a surface.
    Image(BufferSpec, Box<ImageSpec>),
    /// A tensor map of a buffer, by value or by pointer.
    TensorMap(MapOptions, MapOf),
}

/// The buffer that a tensor map describes.
#[derive(Clone, PartialEq, Debug)]
pub enum MapOf {
    /// A buffer of its own.
    Buffer(BufferSpec),
    /// The buffer of the argument with that index.
    Argument(usize),
}

/// A requested buffer.
#[derive(Clone, PartialEq, Debug)]
pub struct BufferSpec {
    /// The source of its contents.
    pub init: Init,
    /// The file to which it is written after the launch.
    pub out: Option<PathBuf>,
}

/// The source of a buffer's contents.
#[derive(Clone, PartialEq, Debug)]
pub enum Init {
    /// An `.npy` file.
    File(PathBuf),
    /// Generated.
    Made(Element, Vec<u64>, Fill),
}

/// The contents of a generated buffer.
#[derive(Clone, PartialEq, Debug)]
pub enum Fill {
    /// Uninitialized: `--check init` reports reads.
    Nothing,
    /// All bytes zero.
    Zeros,
    /// Element i is i.
    Iota,
    /// This literal everywhere.
    Value(String),
    /// Pseudo-random elements from a seed.
    Random(u64),
}

const FORMS: &str = "a number, `x.npy`, `x.npy:out.npy`, `f32[1024]=zeros|iota|fill:V|rand:SEED|uninit[:out.npy]`, `hex:0011aabb`, `{u8=1, f32=2.5}`, `tensormap:box=64x32:SPEC`, `tex:x.npy,filter=linear` or `surf:x.npy:out.npy`";

impl Spec {
    /// Parses a SPEC; the error says what is wrong with it and what was expected.
    pub fn parse(text: &str) -> Result<Spec, String> {
        let text = text.trim();
        for (word, role) in [("tex:", Role::Texture), ("surf:", Role::Surface)] {
            if let Some(rest) = text.strip_prefix(word) {
                let parts = split_fields(rest);
                let (source, words) = parts.split_first().ok_or_else(|| format!("`{word}` requires an array"))?;
                let Spec::Buffer(buffer) = Spec::parse(source)? else {
                    return Err(format!(
                        "`{source}` is not an array; expected `{word}x.npy` or `{word}f32[4,8]=zeros`"
                    ));
                };
                let image = ImageSpec::parse(role, words.iter().copied())?;
                return Ok(Spec::Image(buffer, Box::new(image)));
            }
        }
        if let Some(hex) = text.strip_prefix("hex:") {
            return hex_bytes(hex).map(Spec::Bytes);
        }
        if let Some(map) = text.strip_prefix("tensormap:") {
            let (options, of) = map.split_once(':').ok_or("expected `tensormap:box=64x32,swizzle=128:SPEC`")?;
            let of = match (of.strip_prefix('@').map(str::parse), Spec::parse(of)) {
                (Some(Ok(index)), _) => MapOf::Argument(index),
                (None, Ok(Spec::Buffer(buffer))) => MapOf::Buffer(buffer),
                (None, Err(why)) => return Err(why),
                _ => return Err(format!("`{of}` is neither a buffer nor `@N`, the buffer of argument N")),
            };
            return Ok(Spec::TensorMap(MapOptions::parse(options)?, of));
        }
        if let Some(fields) = text.strip_prefix('{') {
            let fields = fields.strip_suffix('}').ok_or("the struct is not closed with `}`")?;
            return split_fields(fields).into_iter().map(Spec::parse).collect::<Result<_, _>>().map(Spec::Struct);
        }
        if let Some((ty, rest)) = text.split_once('[')
            && let Some((shape, init)) = rest.split_once("]=")
        {
            let element = element(ty)?;
            let shape = parse_shape(shape)?;
            return made(element, shape, init).map(Spec::Buffer);
        }
        if let Some((ty, value)) = text.split_once('=')
            && ty.chars().all(|c| c.is_ascii_alphanumeric())
        {
            let element = element(ty)?;
            element.parse(value)?;
            return Ok(Spec::Typed(element, value.into()));
        }
        if is_scalar(text) {
            return Ok(Spec::Scalar(text.into()));
        }
        match text.split_once(".npy:") {
            Some((file, out)) if !out.is_empty() => {
                let init = Init::File(PathBuf::from(format!("{file}.npy")));
                Ok(Spec::Buffer(BufferSpec { init, out: Some(out_path(out)?) }))
            }
            _ if text.ends_with(".npy") => Ok(Spec::Buffer(BufferSpec { init: Init::File(text.into()), out: None })),
            _ => Err(format!("expected {FORMS}")),
        }
    }
}

/// `4,8`
pub fn parse_shape(text: &str) -> Result<Vec<u64>, String> {
    let dims = text.split(',').map(str::trim).filter(|d| !d.is_empty());
    let shape: Option<Vec<u64>> = dims.map(|d| d.parse().ok()).collect();
    let small = |s: &Vec<u64>| s.iter().try_fold(1u64, |n, d| n.checked_mul(*d)).is_some_and(|n| n <= 1 << 40);
    shape
        .filter(small)
        .ok_or_else(|| format!("`[{text}]` is not a shape; expected extents separated by commas, such as `[4,8]`"))
}

fn element(name: &str) -> Result<Element, String> {
    Element::from_name(name).ok_or_else(|| {
        format!("`{name}` is not an element type; expected `s32`, `u8`, `f16`, `b64` and the like, `i32`, `int32`, `float32` or `bool`")
    })
}

fn made(element: Element, shape: Vec<u64>, init: &str) -> Result<BufferSpec, String> {
    let (word, rest) = init.split_once(':').map_or((init, None), |(w, r)| (w, Some(r)));
    let (fill, out) = match (word, rest) {
        ("zeros", out) => (Fill::Zeros, out),
        ("uninit", out) => (Fill::Nothing, out),
        ("iota", out) => (Fill::Iota, out),
        ("fill" | "rand", None | Some("")) => {
            return Err(format!("`{word}` requires a value: `fill:1.5` or `rand:7`"));
        }
        ("fill" | "rand", Some(rest)) => {
            let (value, out) = rest.split_once(':').map_or((rest, None), |(v, o)| (v, Some(o)));
            let fill = match word {
                "fill" => element.parse(value).map(|_| Fill::Value(value.into()))?,
                _ => Fill::Random(value.parse().map_err(|_| format!("`{value}` is not a seed; expected an integer"))?),
            };
            (fill, out)
        }
        _ => {
            return Err(format!(
                "`{word}` is not an initial value; expected `zeros`, `iota`, `fill:V`, `rand:SEED` or `uninit`"
            ));
        }
    };
    let out = out.map(out_path).transpose()?;
    Ok(BufferSpec { init: Init::Made(element, shape, fill), out })
}

fn out_path(text: &str) -> Result<PathBuf, String> {
    let known = [".npy", ".bin", ".png", ".ppm"].iter().any(|e| text.ends_with(e));
    if known { Ok(text.into()) } else { Err(format!("`{text}` must end in .npy, .bin, .png or .ppm")) }
}

fn hex_bytes(hex: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u32> =
        hex.chars().filter(|c| !matches!(c, '_' | ' ')).map(|c| c.to_digit(16).unwrap_or(16)).collect();
    if digits.contains(&16) || !digits.len().is_multiple_of(2) {
        return Err("`hex:` requires an even number of hexadecimal digits, two per byte".into());
    }
    Ok(digits.chunks(2).map(|d| (d[0] * 16 + d[1]) as u8).collect())
}

fn is_scalar(text: &str) -> bool {
    let bits = |prefix: &str| text.strip_prefix(prefix).is_some_and(|h| h.chars().all(|c| c.is_ascii_hexdigit()));
    parse_f64(text).is_some()
        || matches!(text, "true" | "false")
        || bits("0f")
        || bits("0d")
        || bits("0F")
        || bits("0D")
}

/// Splits at commas outside brackets and braces.
pub fn split_fields(text: &str) -> Vec<&str> {
    let (mut fields, mut depth, mut start) = (Vec::new(), 0u32, 0);
    for (i, c) in text.char_indices() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                fields.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    fields.push(text[start..].trim());
    fields.retain(|f| !f.is_empty());
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use margay_isa::Type;

    fn made(text: &str) -> (Element, Vec<u64>, Fill, Option<String>) {
        match Spec::parse(text) {
            Ok(Spec::Buffer(BufferSpec { init: Init::Made(e, s, f), out })) => {
                (e, s, f, out.map(|p| p.display().to_string()))
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn every_form() {
        let scalar = |t: &str| Ok(Spec::Scalar(t.into()));
        for text in ["3", "-5", "-1.5", "0x10", "inf", "-inf", "nan", "1e-05", "9.999999747378752e-06"] {
            assert_eq!(Spec::parse(text), scalar(text));
        }
        assert_eq!(Spec::parse("hex:0011aabb"), Ok(Spec::Bytes(vec![0, 0x11, 0xaa, 0xbb])));
        let f32s = Element::Ptx(Type::F32);
        assert_eq!(made("f32[4,8]=zeros"), (f32s, vec![4, 8], Fill::Zeros, None));
        assert_eq!(
            made("f32[2]=fill:-1.5:/tmp/o.npy"),
            (f32s, vec![2], Fill::Value("-1.5".into()), Some("/tmp/o.npy".into()))
        );
        assert_eq!(
            made("i64[7]=rand:3:x.bin"),
            (Element::Ptx(Type::S64), vec![7], Fill::Random(3), Some("x.bin".into()))
        );
        assert_eq!(made("u8[]=iota").1, Vec::<u64>::new());
        let file = |p: &str, out: Option<&str>| {
            Ok(Spec::Buffer(BufferSpec { init: Init::File(p.into()), out: out.map(Into::into) }))
        };
        assert_eq!(Spec::parse("/tmp/a b/x.npy"), file("/tmp/a b/x.npy", None));
        assert_eq!(Spec::parse("x.npy:y.npy"), file("x.npy", Some("y.npy")));
        let fields = vec![Spec::Typed(Element::Ptx(Type::U8), "3".into()), Spec::Scalar("4".into())];
        assert_eq!(Spec::parse("{u8=3, 4}"), Ok(Spec::Struct(fields)));
    }

    #[test]
    fn errors_say_what_was_expected() {
        let error = |t: &str| Spec::parse(t).unwrap_err();
        assert!(error("foo").contains("`x.npy`"));
        assert!(error("f33[4]=zeros").contains("`f33` is not an element type"));
        assert!(error("f32[4]=ones").contains("zeros"));
        assert!(error("f32[4]=fill").contains("requires a value"));
        assert!(error("f32[x]=zeros").contains("not a shape"));
        assert!(error("u8[2]=fill:300").contains("does not fit"));
        assert!(error("hex:012").contains("even number"));
        assert!(error("f32[2]=zeros:out.txt").contains(".npy"));
        assert!(error("u8[999999999,999999999]=zeros").contains("not a shape"));
    }
}
