//! Facts about a body that the rules for the whole module need.

use crate::{FuncId, Function, GlobalId, rules::pair::Groups};
use margay_syntax::Span;

/// The facts about a body that the rules for the whole module need.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Functions called directly, with the first place of each.
    pub(crate) calls: Vec<(FuncId, Span)>,
    /// Functions whose address is taken.
    pub(crate) taken: Vec<(FuncId, Span)>,
    /// Module-level variables that are named, with the first place of each.
    pub(crate) globals: Vec<(GlobalId, Span)>,
    /// `.shared` variables that the body declares: name, bytes, alignment.
    pub(crate) shared: Vec<(Span, u64, u32)>,
    /// `.const` variables that the body declares.
    pub(crate) constants: Vec<(Span, u64, u32)>,
    /// The first indirect call.
    pub(crate) indirect: Option<Span>,
    /// Prototypes that calls name, with the place of the call.
    pub(crate) prototypes: Vec<(Box<Function>, Span)>,
    /// Targets of the lists that calls name, with the place of the call.
    pub(crate) listed: Vec<(FuncId, Span)>,
    /// The groups of CTAs that share tensor memory.
    pub(crate) groups: Groups,
    /// The first `.unified` of a variable that the body declares.
    pub(crate) unified: Option<Span>,
    /// The first `cvta.const` or `cvta.to.const`.
    pub(crate) cvta_const: Option<Span>,
    /// The first `ld.param` of a call's result that no earlier call feeds.
    pub(crate) stray_load: Option<(Span, Span)>,
}
