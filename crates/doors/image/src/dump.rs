//! Parser for the output of `cuobjdump -ptx`: several modules, each under a heading.

/// The heading of a PTX module.
const PTX: &str = "Fatbin ptx code:";
/// The heading of machine code, which has no contents in such a listing.
const CODE: &str = "Fatbin elf code:";

/// A module in a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module<'a> {
    /// Architecture: 80 for sm_80; 0 if the heading does not say.
    pub architecture: u32,
    /// The text of the module.
    pub text: &'a str,
}

/// The modules of a listing, none if it has machine code only; `None` if the text is not a listing.
pub fn modules(text: &str) -> Option<Vec<Module<'_>>> {
    // A listing begins with a heading, so a module that mentions one in a comment is no listing.
    let start = text.len() - text.trim_start().len();
    if ![PTX, CODE].iter().any(|heading| text[start..].starts_with(heading)) {
        return None;
    }
    let mut found = Vec::new();
    let first = headings(text).find(|at| text[*at..].starts_with(PTX));
    let mut rest = first.map_or("", |at| &text[at..]);
    while let Some(body) = rest.strip_prefix(PTX) {
        let next = headings(body).next();
        let (own, after) = body.split_at(next.unwrap_or(body.len()));
        let architecture =
            own.lines().find_map(|l| l.strip_prefix("arch = sm_")).map(|n| n.trim_end_matches(char::is_alphabetic));
        // The heading ends where comments or the `.version` directive begin.
        let start = own.find("\n//").into_iter().chain(own.find("\n.version")).min();
        if let Some(start) = start {
            found.push(Module {
                architecture: architecture.and_then(|n| n.trim().parse().ok()).unwrap_or(0),
                text: own[start + 1..].trim_end(),
            });
        }
        rest = after;
        // Machine code between modules is skipped.
        while rest.starts_with(CODE) {
            let next = headings(&rest[CODE.len()..]).next();
            rest = next.map_or("", |at| &rest[CODE.len() + at..]);
        }
    }
    Some(found)
}

/// The positions of headings.
fn headings(text: &str) -> impl Iterator<Item = usize> {
    let mut all: Vec<usize> = [PTX, CODE].iter().flat_map(|h| text.match_indices(h)).map(|(at, _)| at).collect();
    all.retain(|at| is_heading(text, *at));
    all.sort_unstable();
    all.into_iter()
}

/// Whether a position is at the start of a line.
fn is_heading(text: &str, at: usize) -> bool {
    at == 0 || text.as_bytes()[at - 1] == b'\n'
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "\n\nFatbin elf code:\n================\narch = sm_80\nhost = linux\n\nFatbin ptx code:\n================\n\
        arch = sm_75\ncode version = [9,2]\ncompressed\nptxasOptions = \n\n//\n// One\n.version 9.2\n.target sm_75\n\
        Fatbin elf code:\n================\narch = sm_90\n\nFatbin ptx code:\n================\narch = sm_90a\n\n.version 9.2\n.target sm_90a\n";

    #[test]
    fn every_module_is_found_with_its_architecture() {
        let found = modules(LISTING).unwrap();
        let expected = [(75, "//\n// One\n.version 9.2\n.target sm_75"), (90, ".version 9.2\n.target sm_90a")];
        assert_eq!(found.iter().map(|m| (m.architecture, m.text)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn other_texts_are_not_listings() {
        assert_eq!(modules(".version 7.0\n// Fatbin ptx code: not a heading\n"), None);
        assert_eq!(modules(""), None);
    }

    #[test]
    fn a_listing_of_machine_code_has_no_module() {
        assert_eq!(modules("\nFatbin elf code:\n================\narch = sm_80\n"), Some(Vec::new()));
    }
}
