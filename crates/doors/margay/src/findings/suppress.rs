//! Suppression files: findings to ignore.
//!
//! A line is a kind and a pattern: `race *reduce*`, `leak *`, `* k.cu:12`. Patterns are compared with the kernel, with functions (mangled
//! and not) and with locations as `FILE:LINE`; `*` matches anything; `#` begins a comment. Files of compute-sanitizer (`--xml --save`) are
//! accepted too: a record matches findings of its `kind`, with one of its `func` among their functions and with its `text` as title, if
//! it has those elements; `.*` in them means `*`.

use super::{Files, Item, cuda, sarif::RULES, xml};
use std::path::Path;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// The kind, by margay's or compute-sanitizer's name; `*` for all.
    kind: String,
    /// Patterns, one of which must match if there are any.
    places: Vec<String>,
    /// The title; `None` for any.
    title: Option<String>,
}

/// The entries of a file.
#[derive(Clone, Default, Debug)]
pub struct Suppressions(Vec<Entry>);

impl Suppressions {
    /// Reads a file of either format.
    pub fn read(path: &Path) -> Result<Suppressions, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        Suppressions::parse(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Reads a text of either format.
    pub fn parse(text: &str) -> Result<Suppressions, String> {
        if text.trim_start().starts_with('<') {
            return Ok(Suppressions(elements(text, "record").map(record).collect()));
        }
        let lines = (1..).zip(text.lines()).map(|(n, l)| (n, l.split('#').next().unwrap_or("").trim()));
        let entry = |(number, line): (u32, &str)| match split(line) {
            Some((kind, pattern)) if is_kind(&kind) => Ok(Entry { kind, places: vec![pattern.into()], title: None }),
            Some((kind, _)) => {
                let names: Vec<&str> = RULES.iter().map(|(kind, _)| kind.name()).collect();
                Err(format!("line {number}: `{kind}` is no kind of findings; expected {} or `*`", names.join(", ")))
            }
            None => Err(format!(
                "line {number}: `{line}` is not a suppression; expected a kind and a pattern: `race *reduce*`"
            )),
        };
        lines.filter(|(_, l)| !l.is_empty()).map(entry).collect::<Result<_, _>>().map(Suppressions)
    }

    /// Whether a finding is suppressed.
    pub fn cover(&self, item: Item<'_>, files: &mut Files) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let mut places: Vec<String> = names(item.kernel).into();
        for (party, image) in item.finding.parties.iter().filter_map(|p| Some((p, item.image?))) {
            let calls = party.callers.iter().map(|c| (c.func, c.at));
            for place in std::iter::once(party.at).chain(calls) {
                let name = &image.ir.func(place.0).name;
                places.extend(names(name));
                places.extend(cuda(image, place, files).iter().flat_map(|l| {
                    let short = l.file.rsplit('/').next().unwrap_or("");
                    [format!("{}:{}", l.file, l.line), format!("{short}:{}", l.line)]
                }));
            }
        }
        let (own, theirs) = (item.finding.kind.name(), xml::kind(item.finding.kind).to_lowercase());
        self.0.iter().any(|e| {
            let kind = e.kind == "*" || fits(&e.kind, own) || e.kind == theirs || e.kind == former(own);
            let place = e.places.is_empty() || e.places.iter().any(|p| places.iter().any(|place| fits(p, place)));
            kind && place && e.title.as_ref().is_none_or(|t| fits(t, &item.finding.title))
        })
    }
}

/// The kind and the pattern of a line. Some kinds have several words.
fn split(line: &str) -> Option<(String, &str)> {
    let lower = line.to_ascii_lowercase();
    let named = RULES.iter().map(|(kind, _)| kind.name()).find(|name| lower.starts_with(&format!("{name} ")));
    let (kind, pattern) = match named {
        Some(name) => line.split_at(name.len()),
        None => line.split_once(char::is_whitespace)?,
    };
    Some((kind.to_lowercase(), pattern.trim()))
}

/// Whether some kind has this name, or a name that it matches.
fn is_kind(kind: &str) -> bool {
    let theirs = |k| xml::kind(k).eq_ignore_ascii_case(kind);
    RULES.iter().any(|(k, _)| fits(kind, k.name()) || theirs(*k) || kind == former(k.name()))
}

/// The former name of a kind whose spelling has changed, which older files have.
fn former(kind: &'static str) -> &'static str {
    match kind {
        "uninitialized" => "uninitialised",
        "synchronization" => "synchronisation",
        kind => kind,
    }
}

/// The names of a function: mangled, demangled with parameters, and its last component alone.
fn names(name: &str) -> [String; 3] {
    [name.to_owned(), crate::render::demangled(name), crate::render::short_name(name)]
}

/// The contents of the elements of a name, one after the other; none lies in another of its name.
fn elements<'a>(text: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, from) = rest.split_once(&open)?;
        let (inside, behind) = from.split_once(&close)?;
        rest = behind;
        Some(inside)
    })
}

fn record(text: &str) -> Entry {
    let plain = |t: &str| {
        let t = t.trim().replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
        t.replace(".*", "*")
    };
    let kind = elements(text, "kind").next().map_or("*".into(), |k| plain(k).to_lowercase());
    // Host frames do not matter: a finding concerns the launch, not the call that led to it.
    let host = elements(text, "hostStack").next().unwrap_or("");
    let device = text.replace(host, "");
    let places = elements(&device, "func").map(|f| format!("*{}*", plain(f))).collect();
    Entry { kind, places, title: elements(text, "text").next().map(plain) }
}

/// Whether a text matches a pattern, in which `*` matches anything.
pub fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, mut rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    while let Some((part, more)) = rest.split_once('*') {
        let Some(at) = text.find(part) else { return false };
        (text, rest) = (&text[at + part.len()..], more);
    }
    text.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use margay_sanitizer::{Finding, FindingKind};

    fn finding(kind: FindingKind, title: &str) -> Finding {
        Finding { kind, title: title.into(), parties: Vec::new(), notes: Vec::new(), help: None, times: 1 }
    }

    #[test]
    fn stars_match_anything() {
        assert!(fits("*reduce*", "_Z6reducePi") && fits("a*c*e", "abcde") && fits("", "") && fits("*", ""));
        assert!(!fits("a*c", "abcd") && !fits("*x*", "abc") && !fits("ab", "abc") && !fits("ab*ba", "aba"));
    }

    #[test]
    fn kinds_are_known_and_may_have_several_words() {
        let refused = Suppressions::parse("races sum\n").unwrap_err();
        assert!(refused.starts_with("line 1: `races` is no kind of findings; expected race, "), "{refused}");
        for text in ["out of bounds k", "out* k", "Memcheck k", "uninitialised k", "* k"] {
            assert!(Suppressions::parse(text).is_ok(), "{text}");
        }
        let list = Suppressions::parse("out of bounds k").unwrap();
        let finding = finding(FindingKind::Bounds, "t");
        assert!(list.cover(Item { image: None, kernel: "k", finding: &finding }, &mut Files::default()));
    }

    #[test]
    fn entries_name_a_kind_and_a_place() {
        let list = Suppressions::parse("# ours\nrace sum*   # known\n\nleak *\n").unwrap();
        let covers = |kind, kernel| {
            let finding = finding(kind, "t");
            list.cover(Item { image: None, kernel, finding: &finding }, &mut Files::default())
        };
        assert!(covers(FindingKind::Race, "sums") && !covers(FindingKind::Race, "total"));
        assert!(covers(FindingKind::Race, "_ZN1a5sum_aEPi"), "by the last name");
        assert!(covers(FindingKind::Leak, "") && !covers(FindingKind::Uninitialized, "sums"));
        assert!(Suppressions::parse("race").unwrap_err().contains("line 1"));
    }

    #[test]
    fn records_of_compute_sanitizer_are_parsed() {
        let text = "<?xml version=\"1.0\"?>\n<ComputeSanitizerOutput><record><kind>Initcheck</kind><what><text>.*read.*</text></what>\
            <where><func>sum</func></where><hostStack><frame><func>main</func></frame></hostStack></record></ComputeSanitizerOutput>";
        let list = Suppressions::parse(text).unwrap();
        let covers = |kind, kernel, title: &str| {
            let finding = finding(kind, title);
            list.cover(Item { image: None, kernel, finding: &finding }, &mut Files::default())
        };
        assert!(covers(FindingKind::Uninitialized, "_Z3sumPi", "uninitialized: reads x"));
        assert!(!covers(FindingKind::Uninitialized, "main", "uninitialized: reads x"));
        assert!(!covers(FindingKind::Uninitialized, "sum", "uninitialized: x"));
        assert!(!covers(FindingKind::Race, "sum", "reads"));
    }
}
