//! `.version`, `.target`, `.address_size` (manual, section 11.1): what the module requires, and whether it exists.

use super::Module;
use crate::{Options, report::Report};
use margay_isa::{Since, Target, Version};
use margay_syntax::{
    Span, Tree,
    diag::{Code, Diagnostic, nearest},
    tree::{Directive, Item, Kind},
};

/// An option of `.target`.
#[derive(Clone, Copy)]
enum TargetOption {
    TexmodeUnified,
    TexmodeIndependent,
    Debug,
    MapF64ToF32,
}

impl TargetOption {
    /// In the order of the variants, each with its name and the version that brought it.
    const ALL: [(TargetOption, &'static str, Version); 4] = [
        (TargetOption::TexmodeUnified, "texmode_unified", Version::new(1, 5)),
        (TargetOption::TexmodeIndependent, "texmode_independent", Version::new(1, 5)),
        (TargetOption::Debug, "debug", Version::new(3, 0)),
        (TargetOption::MapF64ToF32, "map_f64_to_f32", Version::FIRST),
    ];

    fn parse(text: &str) -> Option<TargetOption> {
        TargetOption::ALL.iter().find(|(_, name, _)| *name == text).map(|(option, ..)| *option)
    }
}

/// Where options are named, by [`TargetOption`].
type OptionSpans = [Option<Span>; TargetOption::ALL.len()];

/// Reads the directives at the head of the module. The parser has complained about missing and misplaced ones.
pub(super) fn read(tree: &Tree, module: &mut Module, options: &Options, report: &mut Report) {
    let mut size = false;
    let mut options_at = OptionSpans::default();
    for item in &tree.items {
        let Item::Directive(d) = item else { continue };
        let d = &tree.directives[*d as usize];
        match tree.str(d.name) {
            ".version" => version(tree, d, module, report),
            ".target" => target(tree, d, module, &mut options_at, report),
            ".address_size" => {
                address_size(tree, d, module, report);
                size = true;
            }
            _ => {}
        }
    }
    if !size {
        // Without a word about it addresses have 32 bits (section 11.1.3); nothing is known without a version.
        module.address_size = options.address_size.unwrap_or(if module.version_at.is_none() { 64 } else { 32 });
    }
    if let Some(v) = options.version {
        module.version = v;
    }
    if let Some(t) = options.target {
        module.target = t;
    }
    pair(module, options, report);
}

fn version(tree: &Tree, d: &Directive, module: &mut Module, report: &mut Report) {
    let [arg] = tree.operands(d.args) else { return };
    if module.version_at.is_some() {
        return;
    }
    let text = tree.str(arg.span);
    match Version::parse(text) {
        Some(v) => {
            module.version = v;
            module.version_at = Some(arg.span);
        }
        None => report.push(
            Diagnostic::new(Code::UnknownVersion, arg.span, format!("unknown PTX ISA version {text}"))
                .here(format!("the newest version is {}", Version::LAST))
                .note(format!("versions: {}", versions()))
                .note("8.0 came with CUDA 12.0 (driver 525), 8.8 with CUDA 12.9 (driver 575), 9.0 with CUDA 13.0 (driver 580)"),
        ),
    }
}

/// The published versions, as one range for each major version.
fn versions() -> String {
    let of_one_major = Version::ALL.chunk_by(|a, b| a.major() == b.major());
    let ranges: Vec<String> = of_one_major.map(|v| format!("{}-{}", v[0], v[v.len() - 1])).collect();
    ranges.join(", ")
}

/// `before`: where earlier directives name options.
fn target(tree: &Tree, d: &Directive, module: &mut Module, before: &mut OptionSpans, report: &mut Report) {
    let mut options = OptionSpans::default();
    for (i, arg) in tree.operands(d.args).iter().enumerate() {
        let text = tree.str(arg.span);
        let Some(option) = TargetOption::parse(text) else {
            architecture(text, arg.span, module, report);
            continue;
        };
        // A further directive need not repeat the architecture, as ptxas has it.
        if i == 0 && module.target_at.is_none() {
            let message = format!("`.target` begins with an architecture, found `{text}`");
            report.push(
                Diagnostic::new(Code::UnknownTarget, arg.span, message)
                    .help("write the architecture first: `.target sm_80, texmode_independent`"),
            );
        }
        options[option as usize] = Some(arg.span);
    }
    exclusive_texture_modes(&options, before, report);
    for (option, name, since) in TargetOption::ALL {
        let Some(at) = options[option as usize] else { continue };
        before[option as usize].get_or_insert(at);
        if let Some(lack) = crate::report::lacking(module, &Since { ptx: since, ..Since::ALWAYS }) {
            report.push(lack.diagnose(module, &format!("the option `{name}`"), at));
        }
    }
    let debug = options[TargetOption::Debug as usize];
    module.texmode_independent |= options[TargetOption::TexmodeIndependent as usize].is_some();
    module.debug |= debug.is_some();
    module.debug_at = module.debug_at.or(debug);
    if let (Some(at), Some(target)) = (options[TargetOption::MapF64ToF32 as usize], module.target_at)
        && module.target.sm >= 13
    {
        let message =
            format!("`map_f64_to_f32` is only for targets without double precision, not for {}", module.target);
        report.push(Diagnostic::new(Code::TargetOption, at, message).label(target, "this target has double precision"));
    }
}

/// The architecture of a `.target`. The last of several counts, but all must be known to the version.
fn architecture(text: &str, span: Span, module: &mut Module, report: &mut Report) {
    let target = match (Target::parse(text), number(text)) {
        (Some(target), _) => {
            if let Some(before) = module.target_at.filter(|_| module.target != target) {
                version_knows(module, module.target, before, report);
            }
            target
        }
        (None, Some(target)) => {
            report.text_only(unknown(text, span));
            target
        }
        (None, None) => return report.push(unknown(text, span)),
    };
    module.target = target;
    module.target_at = Some(span);
}

/// At most one texturing mode, in all directives together (section 11.1.2).
fn exclusive_texture_modes(options: &OptionSpans, before: &OptionSpans, report: &mut Report) {
    let [unified, independent] = [TargetOption::TexmodeUnified, TargetOption::TexmodeIndependent].map(|o| o as usize);
    if options[unified].or(options[independent]).is_none() {
        return;
    }
    let (Some(unified), Some(independent)) =
        (options[unified].or(before[unified]), options[independent].or(before[independent]))
    else {
        return;
    };
    let message = "`texmode_unified` and `texmode_independent` exclude each other";
    report.push(
        Diagnostic::new(Code::TargetOption, unified.max(independent), message)
            .label(unified.min(independent), "the other is here"),
    );
}

/// What ptxas makes of a name that it does not know, unless that ends in `a` or `f`: the number in it, `sm_80` of `sm_080` and of
/// `sm_80ti`.
fn number(text: &str) -> Option<Target> {
    let rest = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_"))?;
    let digits = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
    let target = Target::sm(digits.parse().ok()?);
    (text.is_ascii() && !text.ends_with(['a', 'f'])).then_some(target).filter(|t| t.since().is_some())
}

fn unknown(text: &str, span: Span) -> Diagnostic {
    let names: Vec<String> = Target::ALL.iter().map(|(t, _)| t.to_string()).collect();
    let number =
        |s: &str| s.trim_start_matches("sm_").trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<i64>().ok();
    let mut d = Diagnostic::new(Code::UnknownTarget, span, format!("unknown target `{text}`"));
    let by_number = number(text).filter(|_| text.starts_with("sm_")).and_then(|n| {
        let below = names.iter().rev().find(|t| number(t).is_some_and(|x| x <= n) && !t.ends_with(['a', 'f']));
        let above = names.iter().find(|t| number(t).is_some_and(|x| x > n));
        let near: Vec<String> = [below, above].into_iter().flatten().map(|t| format!("`{t}`")).collect();
        (!near.is_empty()).then(|| crate::report::list(&near, "and"))
    });
    if let Some(near) = by_number {
        d = d.here(format!("nearest targets: {near}"));
    } else if let Some(near) =
        nearest(text, names.iter().map(String::as_str).chain(TargetOption::ALL.map(|(_, name, _)| name)))
    {
        d = d.here(format!("did you mean `{near}`?"));
    }
    d.note(format!("targets: {}", names.join(" ")))
}

fn address_size(tree: &Tree, d: &Directive, module: &mut Module, report: &mut Report) {
    match tree.operands(d.args) {
        [arg] => match arg.kind {
            Kind::Int { value, .. } if matches!(value.get(), 32 | 64) => module.address_size = value.get() as u32,
            // A constant of 32, for ptxas here as anywhere.
            Kind::Name if tree.str(arg.span) == "WARP_SZ" => module.address_size = 32,
            Kind::Error => {}
            _ => report.push(Diagnostic::new(
                Code::AddressSize,
                arg.span,
                format!("addresses have 32 or 64 bits, found `{}`", tree.str(arg.span)),
            )),
        },
        _ => return,
    }
    if let Some(lack) = crate::report::lacking(module, &Since::new(2, 3, 0)) {
        report.push(lack.diagnose(module, "`.address_size`", d.span));
    }
}

/// The version must support the target, and the target must not be newer than the requested one.
fn pair(module: &Module, options: &Options, report: &mut Report) {
    let Some(t) = module.target_at else { return };
    version_knows(module, module.target, t, report);
    if module.version_at.is_none() {
        return;
    }
    if let Some(arch) = options.arch
        && !arch.provides(module.target)
        && arch != module.target
    {
        report.push(
            Diagnostic::new(Code::ArchTooOld, t, format!("`.target {}` does not run on `{arch}`", module.target))
                .here(if module.target.sm > arch.sm {
                    format!("newer than `{arch}`")
                } else {
                    "specific to another architecture or family".to_owned()
                })
                .help(format!("use `--arch {}`, or lower the target", module.target)),
        );
    }
}

fn version_knows(module: &Module, target: Target, span: Span, report: &mut Report) {
    let (Some(v), Some(since)) = (module.version_at, target.since()) else { return };
    if since > module.version {
        report.push(
            Diagnostic::new(
                Code::VersionTarget,
                span,
                format!("PTX ISA {} does not support `{target}`", module.version),
            )
            .here(format!("supported since {since}"))
            .label(v, format!("the module has {}", module.version))
            .fix(v, since.to_string(), format!("write `.version {since}`")),
        );
    }
}
