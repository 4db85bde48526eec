//! `.pragma` (manual, section 11.4.7) and its strings (chapter 12), as in ptxas: unknown ones are ignored, except at
//! module scope.

use crate::{
    Module,
    report::{Report, lacking, since},
};
use margay_isa::Since;
use margay_syntax::{
    Span, Tree,
    diag::{Code, Diagnostic, nearest},
    tree::{Directive, Kind},
};

/// The context of a `.pragma`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Outside all functions.
    Module,
    /// Between a kernel's parameters and its body.
    Header,
    /// In the body of a kernel.
    Kernel,
    /// In the body of a device function.
    Function,
}

impl Place {
    fn in_body(self) -> bool {
        matches!(self, Place::Kernel | Place::Function)
    }
}

struct Pragma {
    name: &'static str,
    since: Since,
    /// The required argument after the name, if any.
    argument: Option<&'static str>,
    /// Whether it is allowed outside bodies.
    anywhere: bool,
    /// Whether it is allowed in the bodies of device functions.
    functions: bool,
    /// Whether it is allowed in the bodies of kernels.
    kernels: bool,
}

const KNOWN: [Pragma; 5] = [
    Pragma { name: "nounroll", since: since(2, 0, 0), argument: None, anywhere: true, functions: true, kernels: true },
    Pragma {
        name: "used_bytes_mask",
        since: since(8, 3, 50),
        argument: Some("a mask of 32 bits"),
        anywhere: false,
        functions: true,
        kernels: true,
    },
    Pragma {
        // Since 9.0 in the manual.
        name: "enable_smem_spilling",
        since: since(8, 7, 75),
        argument: None,
        anywhere: false,
        functions: false,
        kernels: true,
    },
    Pragma {
        name: FREQUENCY,
        since: since(9, 0, 0),
        argument: Some("a positive number of executions"),
        anywhere: false,
        functions: true,
        kernels: true,
    },
    // Not in the manual.
    Pragma {
        name: PARAMETERS,
        since: since(6, 3, 30),
        argument: Some("a positive number of registers"),
        anywhere: true,
        functions: true,
        kernels: false,
    },
];
const FREQUENCY: &str = "frequency";
const PARAMETERS: &str = "abi_param_reg";

/// Checks the strings of a `.pragma`.
pub(crate) fn check(tree: &Tree, module: &Module, d: &Directive, place: Place, report: &mut Report) {
    if let Some(lack) = lacking(module, &since(2, 0, 0)) {
        return report.push(lack.diagnose(module, "`.pragma`", d.name));
    }
    for arg in tree.operands(d.args) {
        if matches!(arg.kind, Kind::String) {
            string(module, tree.str(arg.span).trim_matches('"'), arg.span, place, report);
        }
    }
}

fn string(module: &Module, text: &str, span: Span, place: Place, report: &mut Report) {
    let (name, argument) = text.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((text, ""));
    let Some(known) = KNOWN.iter().find(|k| k.name == name) else { return unknown(text, name, span, place, report) };
    let quoted = format!("the pragma \"{name}\"");
    if !place.in_body() && !known.anywhere {
        let message = format!("{quoted} belongs in the body of a function");
        return report.push(Diagnostic::new(Code::DirectiveValue, span, message).here("outside of every body"));
    }
    if let Some(lack) = lacking(module, &known.since) {
        return report.push(lack.diagnose(module, &quoted, span));
    }
    if place == Place::Function && !known.functions {
        let message = format!("{quoted} is only for kernels, not for device functions");
        return report.push(Diagnostic::new(Code::DirectiveValue, span, message).here("in a device function"));
    }
    if place == Place::Kernel && !known.kernels {
        let message = format!("{quoted} is only for device functions, not for kernels");
        return report.push(Diagnostic::new(Code::DirectiveValue, span, message).here("in a kernel"));
    }
    match known.argument {
        Some(what) if argument.is_empty() => report.push(
            Diagnostic::new(Code::DirectiveValue, span, format!("{quoted} takes {what}"))
                .here(format!("missing after `{name}`")),
        ),
        Some(what) if number(argument).is_none_or(|positive| [FREQUENCY, PARAMETERS].contains(&name) && !positive) => {
            report.push(
                Diagnostic::new(Code::DirectiveValue, span, format!("{quoted} takes {what}, found `{argument}`"))
                    .here("not a valid number"),
            )
        }
        // In module scope every letter counts.
        None if place == Place::Module && text != name => unknown(text, name, span, place, report),
        _ => {}
    }
}

fn unknown(text: &str, name: &str, span: Span, place: Place, report: &mut Report) {
    let message = format!("unknown pragma \"{text}\"");
    let mut d = match place {
        Place::Module => Diagnostic::new(Code::DirectiveValue, span, message)
            .note("unknown pragmas are ignored in functions, but rejected at module scope"),
        _ if name.is_empty() => return,
        _ => Diagnostic::new(Code::UnknownPragma, span, message).note("it is ignored"),
    };
    if report.may_suggest()
        && let Some(meant) = nearest(name.trim(), KNOWN.iter().map(|k| k.name))
    {
        d = d.help(format!("did you mean \"{meant}\"?"));
    }
    report.push(d);
}

/// A whole number as `strtoull` reads it, all of it: whether it is positive.
fn number(text: &str) -> Option<bool> {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => (16, hex),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    (!digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)))
        .then(|| !negative && digits.chars().any(|c| c != '0'))
}

#[cfg(test)]
mod tests {
    use crate::rules::testing::codes;

    fn module(version: &str, target: &str, outside: &str, header: &str, body: &str) -> String {
        format!(".version {version}\n.target {target}\n{outside}\n.entry k() {header} {{ {body} ret; }}\n")
    }

    /// Each as ptxas 13.5 has it.
    #[test]
    fn places() {
        let now = |outside: &str, header: &str, body: &str| codes(&module("9.0", "sm_90", outside, header, body));
        for good in [".pragma \"nounroll\";", ".pragma \"nounroll\", \"nounroll\";"] {
            assert!(now(good, good, good).is_empty());
        }
        for inside in ["used_bytes_mask 1", "frequency 5", "enable_smem_spilling"] {
            let pragma = format!(".pragma \"{inside}\";");
            assert!(now("", "", &pragma).is_empty(), "{inside}");
            assert_eq!(now(&pragma, "", ""), ["E0112"], "{inside}");
            assert_eq!(now("", &pragma, ""), ["E0112"], "{inside}");
        }
        for unknown in ["whatever", "nounroll 4", " nounroll ", ""] {
            let pragma = format!(".pragma \"{unknown}\";");
            assert!(now("", &pragma, &pragma).is_empty(), "{unknown}");
            assert_eq!(now(&pragma, "", ""), ["E0112"], "{unknown}");
        }
        let function = ".func f() { .pragma \"enable_smem_spilling\"; ret; }";
        assert_eq!(now(function, "", ""), ["E0112"]);
    }

    #[test]
    fn arguments() {
        let body = |text: &str| codes(&module("9.0", "sm_90", "", "", &format!(".pragma \"{text}\";")));
        for good in ["15", "0xF", "017", "-1", "0", " 0xf", "4294967296", "99999999999999999999"] {
            assert!(body(&format!("used_bytes_mask {good}")).is_empty(), "{good}");
        }
        for good in ["18446744073709551616", "0x10", "010", "+5", " 7"] {
            assert!(body(&format!("frequency {good}")).is_empty(), "{good}");
        }
        for bad in ["", " ", "0b11", "0xf ", "0xf 2", "1U", "1.0", "0xg", "09", "xyz", "-"] {
            assert_eq!(body(&format!("used_bytes_mask {bad}")), ["E0112"], "{bad}");
            assert_eq!(body(&format!("frequency {bad}")), ["E0112"], "{bad}");
        }
        for bad in ["0", "-1"] {
            assert_eq!(body(&format!("frequency {bad}")), ["E0112"], "{bad}");
        }
        assert_eq!(body("frequency"), ["E0112"]);
    }

    #[test]
    fn versions_and_targets() {
        let pragma = |version: &str, target: &str, text: &str| {
            codes(&module(version, target, "", "", &format!(".pragma \"{text}\";")))
        };
        assert!(pragma("2.0", "sm_13", "nounroll").is_empty());
        assert!(pragma("2.0", "sm_20", "whatever").is_empty());
        assert_eq!(pragma("1.4", "sm_13", "nounroll").len(), 1);
        assert_eq!(pragma("1.4", "sm_13", "whatever").len(), 1);
        assert!(pragma("8.3", "sm_50", "used_bytes_mask 1").is_empty());
        assert_eq!(pragma("8.2", "sm_50", "used_bytes_mask 1").len(), 1);
        assert_eq!(pragma("8.3", "sm_37", "used_bytes_mask 1").len(), 1);
        assert!(pragma("8.7", "sm_75", "enable_smem_spilling").is_empty());
        assert_eq!(pragma("8.6", "sm_75", "enable_smem_spilling").len(), 1);
        assert_eq!(pragma("9.0", "sm_70", "enable_smem_spilling").len(), 1);
        assert!(pragma("9.0", "sm_30", "frequency 1").is_empty());
        assert_eq!(pragma("8.8", "sm_80", "frequency 1").len(), 1);
    }
}
