//! `margay doc INSTR`: prints the rows of an instruction from the table.

use super::Result;
use crate::{
    args::DocArgs,
    exit::{Failure, Outcome},
    report::emit,
};
use margay_isa::{Accuracy, Form, Op, Opcode, Since, Slot, Ty, Word};

/// Runs the command.
pub fn run(args: &DocArgs) -> Result {
    let Some(text) = &args.instruction else {
        for op in Opcode::ALL {
            let row = op.row();
            emit(&format!("{:16} {:12} {}\n", row.name, row.section, row.doc));
        }
        return Ok(Outcome::Clean);
    };
    let mut words = text.trim().trim_end_matches(';').split('.');
    let name = words.next().unwrap_or_default();
    let Some(op) = Opcode::from_name(name) else {
        return Err(Failure::usage(format!(
            "unknown instruction `{name}`; `margay doc` without an argument lists all of them{}",
            similar(name)
        )));
    };
    let row = op.row();
    let wanted: Vec<&str> = words.filter(|w| !w.is_empty()).collect();
    for word in &wanted {
        if Word::from_name(word).is_none() {
            return Err(Failure::usage(format!("`.{word}` is not a modifier or type of PTX")));
        }
    }
    let forms: Vec<&Form> = row.forms.iter().filter(|f| wanted.iter().all(|w| allows(f, w))).collect();
    if forms.is_empty() {
        let all: Vec<String> = row.forms.iter().map(|f| row.notation(f)).collect();
        return Err(Failure::usage(format!(
            "no form of `{name}` accepts {}; its forms are\n  {}",
            wanted.join("."),
            all.join("\n  ")
        )));
    }
    emit(&format!("{}: {}\nPTX ISA, section {}\n", row.name, row.doc, row.section));
    for form in forms {
        emit(&describe(row, form));
    }
    Ok(Outcome::Clean)
}

fn similar(name: &str) -> String {
    let near: Vec<&str> =
        Opcode::ALL.iter().map(|o| o.row().name).filter(|n| n.starts_with(name) || name.starts_with(n)).collect();
    if near.is_empty() || name.is_empty() { String::new() } else { format!("; similar: {}", near.join(", ")) }
}

fn allows(form: &Form, word: &str) -> bool {
    let Some(word) = Word::from_name(word) else { return false };
    form.slots.iter().any(|slot| match (slot, word) {
        (Slot::One(m), Word::Mod(w)) => *m == w,
        (Slot::Opt(c) | Slot::Req(c), Word::Mod(w)) => c.of.contains(&w),
        (Slot::Type(_, types) | Slot::OptType(_, types), Word::Type(t)) => types.contains(&t),
        _ => false,
    })
}

fn describe(row: &Op, form: &Form) -> String {
    let mut out = format!("\n  {}\n", row.notation(form));
    let types: Vec<String> = form
        .operands
        .iter()
        .filter_map(|o| {
            let ty = match o.ty {
                Ty::Of(_) => return None,
                Ty::Is(t) | Ty::Untyped(t) => t.to_string(),
                Ty::Wide(_) => "twice the width of the type".into(),
                Ty::Size(_) => "bits of the same size as the type".into(),
                Ty::Pointer => "an address".into(),
                Ty::Int(_) => "an integer of the same width as the type".into(),
                Ty::Any => return None,
            };
            Some(format!("{}: {ty}", o.name))
        })
        .collect();
    if !types.is_empty() {
        out += &format!("    operands  {}\n", types.join(", "));
    }
    out += &format!("    since     {}\n", since(&form.since));
    for need in form.needs {
        out += &format!("    .{:8} {}\n", need.word.name(), since(&need.since));
    }
    match form.accuracy {
        Some(Accuracy::Ulp(ulp)) => out += &format!("    error     at most {ulp} ulp\n"),
        Some(Accuracy::Relative(log2)) => out += &format!("    error     relative, at most 2^{log2}\n"),
        Some(Accuracy::Absolute(log2)) => {
            out += &format!("    error     absolute, at most 2^{log2} (see the section for the range)\n")
        }
        None => {}
    }
    out
}

fn since(s: &Since) -> String {
    let mut out = format!("PTX ISA {}", s.ptx);
    if s.sm > 0 {
        out += &format!(", sm_{} or higher", s.sm);
    }
    if !s.only.is_empty() {
        let targets: Vec<String> = s.only.iter().map(|t| t.to_string()).collect();
        out += &format!(", on {} only", targets.join(", "));
    }
    out
}
