//! `.ptr` of kernel parameters (manual, section 5.1.6.3).

use crate::module::ShapeAt;
use crate::{Module, report::Report};
use margay_isa::Space;
use margay_syntax::{Span, Tree};

/// The space pointed to.
pub(crate) fn space(_text: &str, _span: Span, space: Option<Space>, _report: &mut Report) -> Option<Space> {
    space
}

/// Where `.ptr` may stand.
pub(crate) fn place(_module: &Module, _word: Span, _at: ShapeAt, _report: &mut Report) {}

/// The alignment of what is pointed to.
pub(crate) fn alignment(tree: &Tree, operand: u32, _report: &mut Report) -> Option<u32> {
    crate::consts::eval_index(tree, operand).ok()?.as_int().and_then(|v| u32::try_from(v).ok())
}
