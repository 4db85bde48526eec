//! From text to a program, for tests.

use margay_check::{Checked, Options};
use margay_ir::{Ir, LowerError, LowerOptions, Source, Virtual, lower_with};
use margay_syntax::Severity;
use std::sync::Arc;

/// Parses and checks as relocatable code, or as a whole program where the module switches the stack-based ABI off; panics with
/// the errors if there are any.
pub fn checked(name: &str, text: &str) -> (Arc<Source>, Checked) {
    let parsed = margay_syntax::parse(text);
    let check = |relocatable, parsed| margay_check::check(parsed, &Options { relocatable, ..Options::default() });
    let (checked, diagnostics) = match check(true, parsed) {
        (None, _) => check(false, margay_syntax::parse(text)),
        passed => passed,
    };
    let errors: Vec<&str> =
        diagnostics.iter().filter(|d| d.severity == Severity::Error).map(|d| d.message.as_str()).collect();
    let checked = checked.unwrap_or_else(|| panic!("{name}: {errors:?}"));
    let (files, tree) = (checked.module.files.clone(), checked.tree.clone());
    (Arc::new(Source::new(name, tree, files)), checked)
}

/// Links and lowers modules named `a.ptx`, `b.ptx`, ...; a program that comes out is verified.
pub fn program(texts: &[&str], options: &LowerOptions<'_>) -> Result<Ir<Virtual>, LowerError> {
    let modules: Vec<_> = texts.iter().zip('a'..).map(|(t, c)| checked(&format!("{c}.ptx"), t)).collect();
    let ir = lower_with(&modules, options)?;
    margay_ir::verify(&ir).unwrap_or_else(|e| panic!("{e}\n{}", margay_ir::print(&ir)));
    Ok(ir)
}

/// One module with this body of module-level text, for sm_80 and PTX 8.0.
pub fn module(text: &str) -> Ir<Virtual> {
    let text = format!(".version 8.3\n.target sm_80\n.address_size 64\n{text}");
    program(&[&text], &LowerOptions { kernel: None, relocatable: true }).unwrap()
}

/// The lines of a printed function, without indentation.
pub fn lines(ir: &Ir<Virtual>, func: &str) -> Vec<String> {
    let id = ir.funcs.iter().position(|f| &*f.name == func).unwrap();
    margay_ir::print_func(ir, margay_ir::FuncId(id as u32)).lines().map(|l| l.trim().to_string()).collect()
}

/// Panics unless the lines are in the printed function in this order (others may appear between).
pub fn expect(ir: &Ir<Virtual>, func: &str, wanted: &[&str]) {
    let found = lines(ir, func);
    let mut rest = found.iter();
    for line in wanted {
        assert!(rest.any(|l| l == line), "`{line}` is missing (or out of order) in\n{}", found.join("\n"));
    }
}
