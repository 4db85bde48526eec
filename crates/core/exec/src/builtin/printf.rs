//! `vprintf` (CUDA C++ Programming Guide, "Formatted Output"; C17, section 7.21.6.1).
//!
//! The arguments lie in one buffer, each aligned to its size: 4 bytes for `int` and smaller, 8 for `long long` and
//! `double`, the size of an address for pointers, `long` and `size_t`. `%s` reads device memory.

/// Longest string that `%s` prints, in case its terminator is missing.
const LONGEST: usize = 1 << 16;
/// Largest width and precision.
const WIDEST: usize = 4096;

/// A conversion specification: flags, width, precision, length.
#[derive(Clone, Copy, Default, Debug)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    /// 64-bit integers.
    long: bool,
    /// 1 for `l`, `z` and `t`, 2 for `ll` and `j`.
    length: u32,
    /// `hh` 8, `h` 16.
    short: u32,
}

/// A cursor over the argument buffer.
struct Arguments<'r, R> {
    read: &'r mut R,
    at: u64,
}

impl<R: FnMut(u64) -> Option<u8>> Arguments<'_, R> {
    /// The next argument, of `size` bytes; the error is where it should be.
    fn next(&mut self, size: u64) -> Result<u64, u64> {
        let at = self.at.checked_next_multiple_of(size).ok_or(self.at)?;
        let mut value = 0;
        for k in 0..size {
            value |= u64::from((self.read)(at + k).ok_or(self.at)?) << (8 * k);
        }
        self.at = at.wrapping_add(size);
        Ok(value)
    }
}

/// Formats; returns the bytes and the number of arguments consumed. An address has `pointer` bytes. `read` reads a byte of
/// device memory; if it fails, the address is the error.
pub fn format(
    text: u64,
    arguments: u64,
    pointer: u64,
    mut read: impl FnMut(u64) -> Option<u8>,
) -> Result<(Vec<u8>, u32), u64> {
    let pattern = string(text, &mut read)?;
    let mut out = Vec::with_capacity(pattern.len() + 32);
    let mut args = Arguments { read: &mut read, at: arguments };
    let (mut i, mut used) = (0, 0);
    while i < pattern.len() {
        let plain = pattern[i..].iter().position(|c| *c == b'%').map_or(pattern.len(), |n| i + n);
        out.extend_from_slice(&pattern[i..plain]);
        i = plain + 1;
        if plain >= pattern.len() {
            break;
        }
        let start = plain;
        let mut spec = parse(&pattern, &mut i, &mut args, &mut used)?;
        spec.long = spec.length > 1 || spec.length == 1 && pointer == 8;
        let Some(&conversion) = pattern.get(i) else {
            out.extend_from_slice(&pattern[start..]);
            break;
        };
        i += 1;
        if conversion == b'%' {
            out.push(b'%');
            continue;
        }
        if !convert(&mut out, &mut args, &spec, (conversion, pointer))? {
            out.extend_from_slice(&pattern[start..i]);
            continue;
        }
        used += 1;
    }
    Ok((out, used))
}

/// Writes one argument; false if there is no such conversion.
fn convert<R: FnMut(u64) -> Option<u8>>(
    out: &mut Vec<u8>,
    args: &mut Arguments<'_, R>,
    spec: &Spec,
    (conversion, pointer): (u8, u64),
) -> Result<bool, u64> {
    let integers = if spec.long { 8 } else { 4 };
    match conversion {
        b'd' | b'i' => {
            let v = args.next(integers)?;
            let v = match (spec.long, spec.short) {
                (true, _) => v as i64,
                (_, 8) => i64::from(v as i8),
                (_, 16) => i64::from(v as i16),
                _ => i64::from(v as i32),
            };
            integer(out, spec, v < 0, &v.unsigned_abs().to_string(), "");
        }
        b'u' | b'o' | b'x' | b'X' => {
            let v = args.next(integers)?;
            let v = match spec.short {
                8 if !spec.long => v & 0xff,
                16 if !spec.long => v & 0xffff,
                _ => v,
            };
            let (digits, prefix) = match conversion {
                b'u' => (v.to_string(), ""),
                b'o' => (format!("{v:o}"), if spec.alternate && v != 0 { "0" } else { "" }),
                b'x' => (format!("{v:x}"), if spec.alternate && v != 0 { "0x" } else { "" }),
                _ => (format!("{v:X}"), if spec.alternate && v != 0 { "0X" } else { "" }),
            };
            let unsigned = Spec { plus: false, space: false, ..*spec };
            integer(out, &unsigned, false, &digits, prefix);
        }
        b'p' => {
            let v = args.next(pointer)?;
            // As the host's C library writes it, which formats for the device.
            let text = if v == 0 { "(nil)".into() } else { format!("0x{v:x}") };
            pad(out, spec, text.as_bytes());
        }
        b'c' => {
            let v = args.next(4)?;
            pad(out, spec, &[v as u8]);
        }
        b's' => {
            let v = args.next(pointer)?;
            let mut s = if v == 0 { b"(null)".to_vec() } else { string(v, args.read)? };
            s.truncate(spec.precision.unwrap_or(s.len()));
            pad(out, spec, &s);
        }
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
            let v = args.next(8)?;
            float(out, spec, conversion, f64::from_bits(v));
        }
        // `%n` is not supported by CUDA; its argument is skipped.
        b'n' => _ = args.next(pointer)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn string(at: u64, read: &mut impl FnMut(u64) -> Option<u8>) -> Result<Vec<u8>, u64> {
    let mut out = Vec::new();
    while out.len() < LONGEST {
        let address = at.wrapping_add(out.len() as u64);
        match read(address).ok_or(address)? {
            0 => break,
            c => out.push(c),
        }
    }
    Ok(out)
}

fn parse<R: FnMut(u64) -> Option<u8>>(
    text: &[u8],
    i: &mut usize,
    args: &mut Arguments<'_, R>,
    used: &mut u32,
) -> Result<Spec, u64> {
    let mut spec = Spec::default();
    while let Some(c) = text.get(*i) {
        match c {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternate = true,
            b'0' => spec.zero = true,
            _ => break,
        }
        *i += 1;
    }
    let mut number = |i: &mut usize, args: &mut Arguments<'_, R>| -> Result<i64, u64> {
        if text.get(*i) == Some(&b'*') {
            *i += 1;
            *used += 1;
            return Ok(i64::from(args.next(4)? as i32));
        }
        let mut n = 0i64;
        while let Some(c @ b'0'..=b'9') = text.get(*i) {
            n = (n * 10 + i64::from(c - b'0')).min(WIDEST as i64);
            *i += 1;
        }
        Ok(n)
    };
    let width = number(i, args)?;
    spec.left |= width < 0;
    spec.width = (width.unsigned_abs() as usize).min(WIDEST);
    if text.get(*i) == Some(&b'.') {
        *i += 1;
        // A negative precision counts as none.
        spec.precision = usize::try_from(number(i, args)?).ok().map(|p| p.min(WIDEST));
    }
    while let Some(c) = text.get(*i) {
        match c {
            b'h' if spec.short == 16 => spec.short = 8,
            b'h' => spec.short = 16,
            b'l' => spec.length += 1,
            b'z' | b't' => spec.length = 1,
            b'j' => spec.length = 2,
            b'L' | b'q' => {}
            _ => break,
        }
        *i += 1;
    }
    Ok(spec)
}

fn pad(out: &mut Vec<u8>, spec: &Spec, text: &[u8]) {
    let fill = spec.width.saturating_sub(text.len());
    if !spec.left {
        out.extend(std::iter::repeat_n(b' ', fill));
    }
    out.extend_from_slice(text);
    if spec.left {
        out.extend(std::iter::repeat_n(b' ', fill));
    }
}

fn sign(spec: &Spec, negative: bool) -> &'static str {
    match () {
        _ if negative => "-",
        _ if spec.plus => "+",
        _ if spec.space => " ",
        _ => "",
    }
}

/// Pads a number with zeros (after sign and prefix) or spaces.
fn number(out: &mut Vec<u8>, spec: &Spec, head: &str, digits: &str, zeros_allowed: bool) {
    let len = head.len() + digits.len();
    if spec.zero && !spec.left && zeros_allowed {
        out.extend_from_slice(head.as_bytes());
        out.extend(std::iter::repeat_n(b'0', spec.width.saturating_sub(len)));
        out.extend_from_slice(digits.as_bytes());
    } else {
        pad(out, spec, format!("{head}{digits}").as_bytes());
    }
}

fn integer(out: &mut Vec<u8>, spec: &Spec, negative: bool, digits: &str, prefix: &str) {
    let mut digits = if spec.precision == Some(0) && digits == "0" { String::new() } else { digits.to_owned() };
    let mut prefix = prefix;
    if let Some(p) = spec.precision {
        if prefix == "0" && digits.len() < p {
            prefix = "";
        }
        digits = format!("{digits:0>p$}");
    }
    number(out, spec, &format!("{}{prefix}", sign(spec, negative)), &digits, spec.precision.is_none());
}

fn float(out: &mut Vec<u8>, spec: &Spec, conversion: u8, v: f64) {
    let upper = conversion.is_ascii_uppercase();
    let head = sign(spec, v.is_sign_negative());
    let magnitude = v.abs();
    let (body, zeros) = match () {
        _ if v.is_nan() => ("nan".to_owned(), false),
        _ if v.is_infinite() => ("inf".to_owned(), false),
        _ => (finite(spec, conversion.to_ascii_lowercase(), magnitude), true),
    };
    let body = if upper { body.to_ascii_uppercase() } else { body };
    // With `%a`, zeros go after the prefix.
    match body.strip_prefix("0x").or_else(|| body.strip_prefix("0X")) {
        Some(rest) => number(out, spec, &format!("{head}{}", &body[..2]), rest, zeros),
        None => number(out, spec, head, &body, zeros),
    }
}

fn finite(spec: &Spec, conversion: u8, v: f64) -> String {
    let point = |s: String| if spec.alternate && !s.contains('.') { s + "." } else { s };
    match conversion {
        b'f' => point(format!("{v:.*}", spec.precision.unwrap_or(6))),
        b'e' => exponent(v, spec.precision.unwrap_or(6), spec.alternate),
        b'a' => hexadecimal(v, spec.precision, spec.alternate),
        _ => {
            let p = spec.precision.unwrap_or(6).max(1);
            let scientific = format!("{v:.*e}", p - 1);
            let x: i32 = scientific.split_once('e').and_then(|(_, x)| x.parse().ok()).unwrap_or(0);
            let text = if x < -4 || x >= p as i32 {
                exponent(v, p - 1, spec.alternate)
            } else {
                point(format!("{v:.*}", (p as i32 - 1 - x).max(0) as usize))
            };
            if spec.alternate { text } else { without_zeros(&text) }
        }
    }
}

/// Removes trailing zeros of the fraction.
fn without_zeros(text: &str) -> String {
    let (mantissa, exponent) = match text.find('e') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    format!("{mantissa}{exponent}")
}

fn exponent(v: f64, precision: usize, alternate: bool) -> String {
    let text = format!("{v:.precision$e}");
    let (mantissa, x) = text.split_once('e').unwrap_or((&text, "0"));
    let x: i32 = x.parse().unwrap_or(0);
    let dot = if alternate && !mantissa.contains('.') { "." } else { "" };
    format!("{mantissa}{dot}e{}{:02}", if x < 0 { '-' } else { '+' }, x.abs())
}

fn hexadecimal(v: f64, precision: Option<usize>, alternate: bool) -> String {
    let bits = v.to_bits();
    let (mut x, mut mantissa) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    let mut lead = u64::from(x != 0);
    x = match (x, mantissa) {
        (0, 0) => 0,
        (0, _) => -1022,
        _ => x - 1023,
    };
    let digits = match precision {
        Some(p) if p < 13 => {
            let drop = 4 * (13 - p) as u32;
            let all = lead << 52 | mantissa;
            let (kept, rest, half) = (all >> drop, all & ((1 << drop) - 1), 1u64 << (drop - 1));
            let rounded = kept + u64::from(rest > half || rest == half && kept & 1 == 1);
            lead = rounded >> (4 * p);
            mantissa = rounded & ((1 << (4 * p)) - 1);
            if p == 0 { String::new() } else { format!("{mantissa:0p$x}") }
        }
        Some(p) => format!("{mantissa:013x}{}", "0".repeat(p - 13)),
        None => format!("{mantissa:013x}").trim_end_matches('0').to_owned(),
    };
    let dot = if digits.is_empty() && !alternate { "" } else { "." };
    format!("0x{lead}{dot}{digits}p{x:+}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats with 8-byte arguments given as words; expectations are what C's `printf` gives.
    fn show(text: &str, args: &[u64], strings: &[&str]) -> String {
        let mut memory = vec![0u8; 64];
        let place = |m: &mut Vec<u8>, bytes: &[u8]| {
            let at = m.len() as u64;
            m.extend_from_slice(bytes);
            m.push(0);
            at
        };
        let pattern = place(&mut memory, text.as_bytes());
        let addresses: Vec<u64> = strings.iter().map(|s| place(&mut memory, s.as_bytes())).collect();
        memory.resize(memory.len().next_multiple_of(8), 0);
        let buffer = memory.len() as u64;
        for a in args {
            let v = if *a >= 1 << 60 && *a < (1 << 60) + 16 { addresses[(*a - (1 << 60)) as usize] } else { *a };
            memory.extend_from_slice(&v.to_le_bytes());
        }
        let (out, _) = format(pattern, buffer, 8, |a| memory.get(a as usize).copied()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn addresses_of_32_bits() {
        let memory = b"%ld %lld %p\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\x07\0\0\0";
        let (out, n) = format(0, 16, 4, |a| memory.get(a as usize).copied()).unwrap();
        assert_eq!((out.as_slice(), n), (b"5 6 0x7".as_slice(), 3));
    }

    #[test]
    fn integers_as_in_c() {
        let five = 5u64 | 7 << 32;
        assert_eq!(show("%d %d|", &[five], &[]), "5 7|");
        assert_eq!(show("%5d|%-5d|", &[five], &[]), "    5|7    |");
        assert_eq!(show("%05d|%+d|", &[five], &[]), "00005|+7|");
        assert_eq!(show("%d", &[0xffff_fffe], &[]), "-2");
        assert_eq!(show("%lld %lu", &[u64::MAX, u64::MAX], &[]), "-1 18446744073709551615");
        assert_eq!(show("%#x %X", &[0xbeef | 0xabc << 32], &[]), "0xbeef ABC");
        assert_eq!(show("%.3d|%8.3d|", &[five], &[]), "005|     007|");
        assert_eq!(show("%hhd %hu", &[0x1ff | 0x1_ffff << 32], &[]), "-1 65535");
        assert_eq!(show("%*d|", &[6 | 5 << 32], &[]), "     5|");
        assert_eq!(show("%o %#o", &[8 | 8 << 32], &[]), "10 010");
        assert_eq!(show("%c%c%%", &[65 | 66 << 32], &[]), "AB%");
        assert_eq!(show("100%", &[], &[]), "100%");
    }

    #[test]
    fn floats_as_in_c() {
        let f = |v: f64| v.to_bits();
        assert_eq!(show("%f %.2f %e", &[f(1.5), f(-2.345), f(12345.678)], &[]), "1.500000 -2.35 1.234568e+04");
        assert_eq!(show("%g %g %g", &[f(0.0001), f(1e-5), f(123456789.0)], &[]), "0.0001 1e-05 1.23457e+08");
        assert_eq!(show("%g %G", &[f(100000.0), f(1e100)], &[]), "100000 1E+100");
        assert_eq!(show("%08.3f|%-8.1f|", &[f(-3.0), f(2.0)], &[]), "-003.000|2.0     |");
        assert_eq!(show("%f %5f %F", &[f(f64::INFINITY), f(f64::NAN), f(f64::NEG_INFINITY)], &[]), "inf   nan -INF");
        assert_eq!(show("%a %a %.1a", &[f(1.0), f(0.5), f(1.96875)], &[]), "0x1p+0 0x1p-1 0x2.0p+0");
        assert_eq!(show("%#.0f %.0e", &[f(3.0), f(5.0)], &[]), "3. 5e+00");
    }

    #[test]
    fn strings_and_pointers() {
        let s = 1u64 << 60;
        assert_eq!(show("[%s|%6s|%-6s|%.2s]", &[s, s, s, s], &["abc"]), "[abc|   abc|abc   |ab]");
        assert_eq!(show("%p %s", &[0x10, 0], &[]), "0x10 (null)");
    }
}
