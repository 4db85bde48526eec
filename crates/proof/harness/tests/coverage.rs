//! Every row of the instruction table is covered by a run case, or listed in `tests/uncovered.txt` with a reason.
//!
//! A row counts as covered if a kernel that a case launches has it in its code, or in a function that the kernel
//! reaches. `MARGAY_UNCOVERED=1` rewrites the list; new rows have no reason, which the test rejects.

use margay::{LoadOptions, Options, SourceText};
use margay_harness::{case::Case, files, parallel, root};
use margay_isa::{Form, Opcode};
use margay_runtime::Device;
use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
};

/// A row: opcode and index of the form.
type Row = (Opcode, u16);

/// The rows of the functions reached by the launches of a case.
fn rows_of(case: &Case, path: &Path, device: &std::sync::Arc<Device>) -> HashSet<Row> {
    let mut covered = HashSet::new();
    let mut texts = vec![std::fs::read_to_string(path).expect("a case")];
    for link in &case.links {
        texts.push(std::fs::read_to_string(path.with_file_name(link)).expect("a linked file"));
    }
    let sources: Vec<SourceText<'_>> = texts.iter().map(|text| SourceText { name: "case", text }).collect();
    let check = Options { relocatable: case.relocatable, ..Options::default() };
    let options = LoadOptions { check, ..LoadOptions::default() };
    let Ok(module) = device.context().load(&sources, &options) else { return covered };
    for launch in &case.launches {
        let Ok(ir) = module.lower(Some(&launch.kernel)) else { continue };
        let reached: HashSet<&str> = ir.funcs.iter().filter(|f| !f.blocks.is_empty()).map(|f| &*f.name).collect();
        for (_, checked) in module.files() {
            let funcs = checked.module.funcs.iter().enumerate().filter(|(_, f)| reached.contains(&*f.name));
            for (i, _) in funcs {
                let body = checked.body(margay_check::FuncId(i as u32)).unwrap_or_default();
                covered.extend(body.variants.iter().map(|v| (v.op, v.form)));
            }
        }
    }
    covered
}

/// All rows by notation, made unique.
fn rows() -> BTreeMap<String, Row> {
    let mut all = BTreeMap::new();
    for op in Opcode::ALL {
        let name = |form: &Form| op.row().notation(form).trim_end_matches(';').to_owned();
        for (i, form) in op.row().forms.iter().enumerate() {
            let mut notation = name(form);
            // Forms that differ in what the notation does not show, such as availability.
            let same = op.row().forms[..i].iter().filter(|f| name(f) == notation).count();
            if same > 0 {
                notation += &format!(" ({})", same + 1);
            }
            assert!(all.insert(notation, (*op, i as u16)).is_none());
        }
    }
    all
}

#[test]
fn every_row_has_a_run_case_or_a_reason() {
    let device = Device::new().expect("a device");
    let cases: Vec<_> = files("tests/run").into_iter().filter(|(name, _)| !name.ends_with("_linked")).collect();
    let of_cases = parallel(&cases, |(name, path)| {
        let text = std::fs::read_to_string(path).expect("a case");
        let case = Case::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        rows_of(&case, path, &device)
    });
    let covered: HashSet<Row> = of_cases.into_iter().flatten().collect();
    let rows = rows();
    let list = root().join("tests/uncovered.txt");
    let text = std::fs::read_to_string(&list).unwrap_or_default();
    let (comment, lines): (Vec<&str>, Vec<&str>) = text.lines().partition(|l| l.starts_with('#') || l.is_empty());
    let listed: BTreeMap<&str, &str> = lines.iter().map(|l| l.split_once('\t').unwrap_or((l, ""))).collect();
    if std::env::var_os("MARGAY_UNCOVERED").is_some() {
        let mut out: String = comment.iter().map(|l| format!("{l}\n")).collect();
        for (notation, _) in rows.iter().filter(|(_, row)| !covered.contains(*row)) {
            let reason = listed.get(notation.as_str()).copied().unwrap_or_default();
            out += &format!("{notation}\t{reason}\n");
        }
        std::fs::write(&list, out).expect("the list is written");
        return;
    }
    let mut wrong = Vec::new();
    for (notation, row) in &rows {
        match (covered.contains(row), listed.get(notation.as_str())) {
            (false, None) => wrong.push(format!("no run case has `{notation}`")),
            (false, Some(reason)) if reason.trim().is_empty() => {
                wrong.push(format!("`{notation}` is listed without a reason"))
            }
            (true, Some(_)) => wrong.push(format!("`{notation}` is listed, and a run case has it")),
            _ => {}
        }
    }
    wrong.extend(listed.keys().filter(|n| !rows.contains_key(**n)).map(|n| format!("no row is called `{n}`")));
    println!("{} of {} rows have a run case", covered.len(), rows.len());
    assert!(wrong.is_empty(), "tests/uncovered.txt: {} lines are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
