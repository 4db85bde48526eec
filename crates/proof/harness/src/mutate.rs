//! Random mutations of PTX text, such as a typo, a broken generator or a bit flip would cause.

use crate::random::Random;

/// A reproducible source of mutations.
pub struct Mutator(Random);

/// Tokens that are likely to matter.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ";",
    ",",
    ":",
    ".",
    "@",
    "@!",
    "%",
    "%r1",
    "%p1",
    "%rd1",
    "_",
    "0",
    "-1",
    "0x",
    "0f",
    "1e",
    "4294967296",
    "18446744073709551616",
    "\"",
    "/*",
    "*/",
    "//",
    "\\",
    "\0",
    "é",
    ".param .b8 x[",
    ".reg .b32 %r<1000000000>;",
    "ret;",
    "call",
    "bra",
    ".entry",
    ".func",
    ".v4",
    ".align 3",
    ".b128",
    "<",
    ">",
    "=",
    "+",
    "!",
    "|",
    "bar.sync 0;",
    "exit;",
    ".version 1.0",
    ".target sm_10",
    "\n",
];

impl Mutator {
    /// Equal seeds give equal mutations.
    pub fn new(seed: u64) -> Mutator {
        Mutator(Random::new(seed))
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    /// Applies one to four mutations.
    pub fn mutate(&mut self, text: &str) -> String {
        let mut text = text.to_string();
        for _ in 0..1 + self.below(4) {
            text = self.once(&text);
        }
        text
    }

    fn once(&mut self, text: &str) -> String {
        let words: Vec<(usize, usize)> = words(text);
        let word = |m: &mut Mutator| words.get(m.below(words.len())).copied().unwrap_or((0, 0));
        let (a, b) = word(self);
        let (c, d) = word(self);
        let splice = |from: usize, to: usize, new: &str| format!("{}{new}{}", &text[..from], &text[to..]);
        match self.below(8) {
            0 => splice(a, b, ""),
            1 => splice(a, b, &text[c..d]),
            2 => splice(b, b, &format!(" {}", &text[c..d])),
            3 => splice(a, b, PIECES[self.below(PIECES.len())]),
            4 => splice(a, a, PIECES[self.below(PIECES.len())]),
            5 => {
                let lines: Vec<&str> = text.split_inclusive('\n').collect();
                let (i, j) = (self.below(lines.len()), self.below(lines.len()));
                let mut lines = lines;
                if !lines.is_empty() {
                    lines.swap(i, j);
                }
                lines.concat()
            }
            6 => {
                let cut = floor(text, self.below(text.len() + 1));
                text[..cut].to_string()
            }
            _ => {
                let at = floor(text, self.below(text.len().max(1)));
                let end = (at + 1..=text.len()).find(|i| text.is_char_boundary(*i)).unwrap_or(at);
                let byte = char::from(self.below(128) as u8);
                splice(at, end, byte.encode_utf8(&mut [0; 4]))
            }
        }
    }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

/// Ranges of names, numbers and single characters.
fn words(text: &str) -> Vec<(usize, usize)> {
    let (mut words, mut start) = (Vec::new(), None);
    for (i, c) in text.char_indices() {
        let inside = c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
        match (inside, start) {
            (true, None) => start = Some(i),
            (false, Some(from)) => {
                words.push((from, i));
                start = None;
            }
            _ => {}
        }
        if !inside && !c.is_whitespace() {
            words.push((i, i + c.len_utf8()));
        }
    }
    words.extend(start.map(|from| (from, text.len())));
    words
}
