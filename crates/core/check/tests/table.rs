//! The instruction table holds together: each form has instructions that read back as that form, is there under some version
//! and target that exist, and names the section of the manual that it is in.

use margay_check::{FuncId, Options, check};
use margay_isa::{Form, Mod, Opcode, Rule, Shape, Since, Target, Type, Variant, Version, sample};
use margay_syntax::{diag::Severity, format, parse};

/// Every form with its opcode and number.
fn forms() -> impl Iterator<Item = (Opcode, u16, &'static Form)> {
    Opcode::ALL.iter().flat_map(|op| op.row().forms.iter().enumerate().map(|(i, f)| (*op, i as u16, f)))
}

/// A version and target under which a form is there, the newest version first.
fn home(variant: &Variant) -> Option<(Version, Target)> {
    let targets =
        |v: Version| Target::ALL.iter().rev().filter(move |(_, since)| *since <= v).map(move |(t, _)| (v, *t));
    let mut places = Version::ALL.iter().rev().flat_map(|v| targets(*v));
    places.find(|(v, t)| variant.available(*v, *t).is_ok())
}

/// The variant of the one instruction before the `exit` of a module, if the module passes.
fn read(text: &str) -> Result<Variant, String> {
    let (checked, found) = check(parse(text), &Options::default());
    let errors: Vec<_> = found.iter().filter(|d| d.severity == Severity::Error).map(|d| &d.message).collect();
    let checked = checked.ok_or_else(|| format!("{errors:?}"))?;
    let body = checked.body(FuncId(0)).ok_or("no body")?;
    let inst = body.insts.first().ok_or("no instruction")?;
    Ok(body.variant(inst).clone())
}

/// Whether shapes determine what the form takes: not that of `call`, nor that `st.bulk.shared::cta` takes no variable by name, nor that the primary
/// size of `createpolicy.range` is at most the total size, nor that the modules made here have addresses of 64 bits.
fn is_told(variant: &Variant) -> bool {
    match variant.op {
        Opcode::Call => false,
        Opcode::St => !(variant.has(Mod::Bulk) && variant.has(Mod::SharedCta)),
        Opcode::Createpolicy => !variant.has(Mod::Range),
        Opcode::Cvta => variant.t() == Type::U64,
        _ => true,
    }
}

#[test]
fn forms_read_back() {
    let mut rng = sample::Rng(1);
    let (mut untold, mut wrong) = (Vec::new(), Vec::new());
    for (op, index, form) in forms() {
        let tries: Vec<(Variant, Vec<Shape>)> = sample::mnemonics(form, 4, &mut rng)
            .into_iter()
            .filter_map(|words| Variant::new(op, index, &words))
            .filter(|v| v.clash().is_none() && is_told(v) && home(v).is_some())
            .filter_map(|v| sample::operands(&v, &mut rng).map(|shapes| (v, shapes)))
            .collect();
        if tries.is_empty() {
            untold.push(format!("{} {index}", op.row().name));
        }
        for (variant, shapes) in tries {
            let Some((version, target)) = home(&variant) else { continue };
            let (mut text, _) = sample::module(version, target, &[sample::text(&variant.to_string(), &shapes)]);
            if form.rules.contains(&Rule::IndependentMode) && !text.contains("texmode_independent") {
                text =
                    text.replacen(&format!(".target {target}"), &format!(".target {target}, texmode_independent"), 1);
            }
            let printed = format(&parse(&text), &Default::default()).unwrap_or_default();
            for text in [&text, &printed] {
                match read(text) {
                    // Where forms overlap, another may stand for this one.
                    Ok(found) if found.words == variant.words && found.accepts(&shapes) => {}
                    found => wrong.push(format!("{op:?} {index} {variant}: {found:?}\n{text}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of them, such as\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
    assert_eq!(untold, ["createpolicy 0", "createpolicy 1", "call 0"]);
}

/// Whether it names versions and targets that exist.
fn is_known(since: &Since) -> bool {
    let target = |t: &Target| Target::ALL.iter().any(|(known, _)| known == t);
    let sm = since.sm == 0 || Target::ALL.iter().any(|(t, _)| t.sm == since.sm);
    Version::ALL.contains(&since.ptx) && sm && since.only.iter().all(target) && since.or.iter().all(is_known)
}

#[test]
fn forms_have_a_home() {
    for (op, index, form) in forms() {
        let name = format!("{} {index}", op.row().name);
        assert!(is_known(&form.since), "{name}: {:?}", form.since);
        assert!(form.needs.iter().all(|n| is_known(&n.since)), "{name}: {:?}", form.needs);
        assert!(form.until.is_none_or(|u| u.ptx > form.since.ptx), "{name}: gone before it came");
        let section = form.section.unwrap_or(op.row().section);
        let numbers: Option<Vec<u32>> = section.split('.').map(|n| n.parse().ok()).collect();
        assert!(numbers.is_some_and(|n| n.starts_with(&[9, 7]) && n.len() > 2), "{name}: section {section}");
    }
}
