//! Characters that word processors, web pages and keyboards substitute for ASCII characters.

/// The ASCII character that was probably meant.
pub(crate) fn ascii(c: char) -> Option<char> {
    Some(match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' | '\u{ff0d}' => '-',
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ff02}' => '"',
        '\u{a0}'
        | '\u{2000}'..='\u{200b}'
        | '\u{202f}'
        | '\u{205f}'
        | '\u{3000}'
        | '\u{0b}'
        | '\u{85}'
        | '\u{2028}'
        | '\u{2029}' => ' ',
        '\u{37e}' | '\u{ff1b}' => ';',
        '\u{ff0c}' | '\u{201a}' => ',',
        '\u{ff1a}' | '\u{2236}' => ':',
        '\u{ff08}' => '(',
        '\u{ff09}' => ')',
        '\u{ff3b}' => '[',
        '\u{ff3d}' => ']',
        '\u{ff5b}' => '{',
        '\u{ff5d}' => '}',
        '\u{ff0b}' => '+',
        '\u{d7}' | '\u{2217}' | '\u{ff0a}' => '*',
        '\u{ff1d}' => '=',
        _ => return None,
    })
}

/// `'–' (U+2013 EN DASH)`, or the number alone where the character has no picture or no name here.
pub(crate) fn describe(c: char) -> String {
    let name = match c {
        '\0' => "NUL",
        '\u{1}'..='\u{1f}' | '\u{7f}' => "control character",
        '\u{a0}' => "NO-BREAK SPACE",
        '\u{2010}' => "HYPHEN",
        '\u{2011}' => "NON-BREAKING HYPHEN",
        '\u{2012}' => "FIGURE DASH",
        '\u{2013}' => "EN DASH",
        '\u{2014}' => "EM DASH",
        '\u{2015}' => "HORIZONTAL BAR",
        '\u{2212}' => "MINUS SIGN",
        '\u{2018}' => "LEFT SINGLE QUOTATION MARK",
        '\u{2019}' => "RIGHT SINGLE QUOTATION MARK",
        '\u{201c}' => "LEFT DOUBLE QUOTATION MARK",
        '\u{201d}' => "RIGHT DOUBLE QUOTATION MARK",
        '\u{2026}' => "HORIZONTAL ELLIPSIS",
        '\u{200b}' => "ZERO WIDTH SPACE",
        '\u{200c}' => "ZERO WIDTH NON-JOINER",
        '\u{200d}' => "ZERO WIDTH JOINER",
        '\u{feff}' => "ZERO WIDTH NO-BREAK SPACE, a byte order mark",
        '\u{fffd}' => "REPLACEMENT CHARACTER",
        '\u{37e}' => "GREEK QUESTION MARK",
        '\u{d7}' => "MULTIPLICATION SIGN",
        '\u{3000}' => "IDEOGRAPHIC SPACE",
        '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' => "a typographic space",
        '\u{ff01}'..='\u{ff5e}' => "a full-width form",
        _ => "",
    };
    let number = format!("U+{:04X}", c as u32);
    let invisible = c.is_control() || ascii(c) == Some(' ') || matches!(c, '\u{200b}'..='\u{200f}' | '\u{feff}');
    match (invisible, c.is_ascii(), name) {
        (true, _, "") => number,
        (true, _, name) => format!("{number} ({name})"),
        (false, true, _) => format!("`{c}`"),
        (false, false, "") => format!("`{c}` ({number})"),
        (false, false, name) => format!("`{c}` ({number} {name})"),
    }
}
