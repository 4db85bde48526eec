//! Templates: the texts of helper functions, in LLVM IR with placeholders.
//!
//! They are `.ll` files in a folder with the name of the module that fills them. Some are whole functions, others are blocks or
//! instructions that functions share or repeat, for example for each lane.

use std::fmt::{Display, Write};

/// Fills the placeholders `{name}` of a template. A placeholder that is alone on its line stands for any number of lines.
/// Comments and blank lines are left out.
///
/// # Panics
///
/// In tests and debug builds: if a placeholder has no value, or a value no placeholder.
pub(in crate::emit) fn fill(template: &str, values: &[(&str, &dyn Display)]) -> String {
    let mut text = String::with_capacity(2 * template.len());
    let mut used = 0_u64;
    for line in template.lines() {
        let line = line.split(';').next().unwrap_or_default().trim_end();
        let (before, mut rest) = (text.len(), line);
        while let Some((head, name, tail)) = next_placeholder(rest) {
            text.push_str(head);
            rest = tail;
            match values.iter().position(|(known, _)| *known == name) {
                Some(i) => {
                    used |= 1 << i;
                    let _ = write!(text, "{}", values[i].1);
                }
                None if STRICT => panic!("`{name}` has no value: {line}"),
                None => {}
            }
        }
        text.push_str(rest);
        if text.len() > before && !text.ends_with('\n') {
            text.push('\n');
        }
    }
    for (i, (name, _)) in values.iter().enumerate() {
        assert!(!STRICT || used >> i & 1 == 1, "the template does not use `{name}`");
    }
    text
}

/// Whether templates are verified as they are filled.
const STRICT: bool = cfg!(any(test, debug_assertions));

/// The text before the first placeholder of a line, its name, and the text after it.
fn next_placeholder(line: &str) -> Option<(&str, &str, &str)> {
    line.match_indices('{').find_map(|(at, _)| {
        let (name, tail) = line[at + 1..].split_once('}')?;
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        is_name.then_some((&line[..at], name, tail))
    })
}

/// The elements of a constant vector, `i32 0, i32 1`.
pub(in crate::emit) fn elements(ty: &str, of: impl IntoIterator<Item = impl Display>) -> String {
    let mut text = String::new();
    for (i, element) in of.into_iter().enumerate() {
        let _ = write!(text, "{}{ty} {element}", if i == 0 { "" } else { ", " });
    }
    text
}

/// Verifies that the functions of a text define each of their values and blocks once, and all that they use.
#[cfg(test)]
pub(in crate::emit) fn assert_names(text: &str) {
    let end = |name: &str| name.find(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c)).unwrap_or(name.len());
    let names = |text: &'_ str| -> Vec<String> {
        text.match_indices('%').map(|(at, _)| text[at + 1..][..end(&text[at + 1..])].to_string()).collect()
    };
    for function in text.split("define internal ").skip(1) {
        let (header, body) = function.split_once(" {\n").unwrap();
        let body = body.split_once("\n}").unwrap().0;
        let labels =
            body.lines().filter(|line| !line.starts_with(' ')).map(|line| line.trim_end_matches(':').to_string());
        let values = body
            .lines()
            .filter_map(|line| line.strip_prefix("  %")?.split_once(" = "))
            .map(|(name, _)| name.to_string());
        let mut defined = names(header);
        defined.extend(labels.chain(values));
        // An entry block without a label.
        defined.push("0".into());
        let mut once = std::collections::HashSet::new();
        for name in &defined {
            assert!(once.insert(name.as_str()), "`{name}` is defined twice:\n{function}");
        }
        for name in names(body) {
            assert!(once.contains(name.as_str()), "`{name}` is not defined:\n{function}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_comments_dropped() {
        let template = "\
; Adds.
define i32 @{name}(i32 %a) {

{before}
  %pair = call { i32, i1 } @f(i32 %a) ; Both.
{nothing}
  ret i32 {n}{n}
}
";
        let text = fill(template, &[("name", &"add"), ("before", &"  a\n  b\n"), ("nothing", &""), ("n", &4)]);
        assert_eq!(
            text,
            "define i32 @add(i32 %a) {\n  a\n  b\n  %pair = call { i32, i1 } @f(i32 %a)\n  ret i32 44\n}\n"
        );
        assert_eq!(elements("i32", [0, 8]), "i32 0, i32 8");
        assert_eq!(elements("i64", 0..1), "i64 0");
    }

    #[test]
    #[should_panic(expected = "`a` is defined twice")]
    fn a_name_of_a_value_and_a_block_panics() {
        assert_names("define internal i32 @f(i32 %x) #1 {\n  %a = add i32 %x, 1\n  br label %a\na:\n  ret i32 %a\n}\n");
    }

    #[test]
    #[should_panic(expected = "`b` has no value")]
    fn a_placeholder_without_a_value_panics() {
        fill("{a} {b}", &[("a", &1)]);
    }

    #[test]
    #[should_panic(expected = "does not use `b`")]
    fn a_value_without_a_placeholder_panics() {
        fill("{a}", &[("a", &1), ("b", &2)]);
    }
}
