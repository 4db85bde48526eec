//! What `cuLinkComplete` yields: the PTX that went in. One text stays what it is; several stand behind a first line that says
//! how long each is.

use crate::{code::Code, raw::Host};

const MARK: &str = "//margay-linked ";

/// The image of some texts, with a zero at its end.
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

/// The texts of an image that [`pack`] made of several.
pub fn unpack(image: Host) -> Result<Option<Vec<String>>, Code> {
    let bytes = image.until_zero()?;
    let Some(rest) = bytes.strip_prefix(MARK.as_bytes()) else { return Ok(None) };
    let text = std::str::from_utf8(rest).map_err(|_| Code::INVALID_IMAGE)?;
    let (head, mut body) = text.split_once('\n').ok_or(Code::INVALID_IMAGE)?;
    let mut texts = Vec::new();
    for word in head.split(' ') {
        let len = word.parse::<usize>().map_err(|_| Code::INVALID_IMAGE)?;
        let (one, rest) = body.split_at_checked(len).ok_or(Code::INVALID_IMAGE)?;
        texts.push(one.to_string());
        body = rest;
    }
    Ok(Some(texts))
}
