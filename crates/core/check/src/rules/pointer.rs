//! `.ptr` of kernel parameters (manual, section 5.1.6.3).

use crate::consts::{self, Const};
use crate::module::ShapeAt;
use crate::report::{Report, lacking, since};
use crate::{Module, PtrAttr};
use margay_isa::Space;
use margay_syntax::{
    Tree,
    diag::{Code, Diagnostic},
    tree::Ptr,
};

/// Alignment of what is pointed to, where none is given.
const DEFAULT: u32 = 4;

/// Reads and checks the attribute.
pub(crate) fn attribute(tree: &Tree, module: &Module, ptr: &Ptr, at: ShapeAt, report: &mut Report) -> PtrAttr {
    if super::formals::in_prototype(tree, ptr.word)
        && let Some(lack) = lacking(module, &since(2, 2, 0))
    {
        report.push(lack.diagnose(module, "`.ptr`", ptr.word));
    } else if at != ShapeAt::Kernel {
        let d = Diagnostic::new(Code::PointerAttribute, ptr.word, "`.ptr` is only for kernel parameters")
            .here("not for those of functions");
        // ptxas reads over it in prototypes.
        if super::formals::in_prototype(tree, ptr.word) { report.text_only(d) } else { report.push(d) }
    } else if let Some(lack) = lacking(module, &since(2, 2, 0)) {
        report.push(lack.diagnose(module, "`.ptr`", ptr.word));
    }
    // `.const[2]` is in `.const`.
    let word = |s| tree.str(s).split('[').next().and_then(|w| w.strip_prefix('.'));
    let space = ptr.space.and_then(word).and_then(Space::from_name);
    PtrAttr { space, align: ptr.align.and_then(|o| alignment(tree, o, report)).unwrap_or(DEFAULT) }
}

fn alignment(tree: &Tree, operand: u32, report: &mut Report) -> Option<u32> {
    let o = tree.operands.get(operand as usize)?;
    let Ok(Const::Int { value, .. }) = consts::eval(tree, o) else { return None };
    let align = u32::try_from(value).ok().filter(|v| v.is_power_of_two());
    if align.is_none() {
        report.push(Diagnostic::new(
            Code::Alignment,
            o.span,
            format!("an alignment must be a power of two, found {}", tree.str(o.span)),
        ));
    }
    align
}
