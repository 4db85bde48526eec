//! The result of linking PTX: the PTX itself. A single text is returned as it is; several follow a first line with
//! their lengths, so that the whole is one image for a driver that knows the format.

/// Start of the first line.
pub const MARK: &str = "//margay-linked ";

/// The start of a last line that limits the registers of a thread, as the linker's option `-maxrregcount` does.
const LIMIT: &str = "//margay-maxrregcount ";

/// A text whose threads may have `most` registers. The line is the last one, so that the others keep their numbers.
pub fn limited(text: &str, most: u32) -> String {
    format!("{text}\n{LIMIT}{most}\n")
}

/// The maximum number of registers that a thread of a text may have, if the link limited them.
pub fn limit_of(text: &str) -> Option<u32> {
    text.trim_end().rsplit_once('\n')?.1.strip_prefix(LIMIT)?.parse().ok()
}

/// Packs texts into a NUL-terminated image.
pub fn pack(texts: &[String]) -> Vec<u8> {
    let mut image = match texts {
        [one] => one.clone(),
        _ => {
            let lengths: Vec<String> = texts.iter().map(|t| t.len().to_string()).collect();
            format!("{MARK}{}\n{}", lengths.join(" "), texts.concat())
        }
    }
    .into_bytes();
    image.push(0);
    image
}

/// Unpacks an image of several texts; `None` for other images, an error if the lengths do not match.
pub fn unpack(image: &[u8]) -> Option<Result<Vec<String>, Damaged>> {
    let rest = image.strip_prefix(MARK.as_bytes())?;
    Some(texts(rest).ok_or(Damaged))
}

/// The first line of an image is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged;

fn texts(rest: &[u8]) -> Option<Vec<String>> {
    let (head, mut body) = std::str::from_utf8(rest).ok()?.split_once('\n')?;
    let mut texts = Vec::new();
    for word in head.split(' ') {
        let (one, rest) = body.split_at_checked(word.parse().ok()?)?;
        texts.push(one.to_string());
        body = rest;
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip() {
        let texts = [".version 7.0\n".to_string(), String::new(), "ä\n".into()];
        let image = pack(&texts);
        assert_eq!(unpack(image.strip_suffix(b"\0").unwrap()), Some(Ok(texts.to_vec())));
        assert_eq!((pack(&texts[..1]), unpack(b".version 7.0\n")), (b".version 7.0\n\0".to_vec(), None));
        assert_eq!(unpack(b"//margay-linked 3 99\nabc"), Some(Err(Damaged)));
    }

    #[test]
    fn a_text_may_limit_registers() {
        assert_eq!(limit_of(&limited(".version 7.0", 38)), Some(38));
        assert_eq!((limit_of(".version 7.0\n"), limit_of("//margay-maxrregcount 8")), (None, None));
    }
}
