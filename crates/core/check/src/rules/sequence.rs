//! The call sequence (manual, section 7.1): argument stores immediately before the call, result loads immediately
//! after it. ptxas only requires that some call has produced the result that is loaded.

use crate::Verdict;
use crate::body::{Operand, SymRef, Walker};
use margay_isa::Effect;
use margay_syntax::{
    Span,
    diag::{Code, Diagnostic},
};
use std::ops::Range;

/// The state of a `.param` variable of the body.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Use {
    /// A call has named it.
    called: bool,
    /// Instruction index and place of the first store since the last call.
    store: Option<(u32, Span)>,
    /// The call that made it, by instruction index.
    result_of: Option<u32>,
}

impl Use {
    const NONE: Use = Use { called: false, store: None, result_of: None };
}

fn slot<'x>(w: &'x mut Walker<'_, '_>, local: u32) -> &'x mut Use {
    if w.params.len() <= local as usize {
        w.params.resize(local as usize + 1, Use::NONE);
    }
    &mut w.params[local as usize]
}

/// Accesses that follow one another without another instruction or a label between.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Run {
    start: u32,
    end: u32,
    store: bool,
    /// Whether a label precedes this instruction.
    label: Option<u32>,
}

impl Run {
    /// Whether a label precedes the instruction of this index.
    pub(crate) fn label(&mut self, here: u32) {
        self.label = Some(here);
    }
}

/// A store to, or a load from, a `.param` variable of the body. The instruction is the last of the list.
pub(crate) fn access(w: &mut Walker<'_, '_>, local: u32, store: bool, span: Span) {
    let here = w.body.insts.len() as u32 - 1;
    if w.run.end != here || w.run.store != store || w.run.label == Some(here) {
        w.run = Run { start: here, end: here, store, ..w.run };
    }
    w.run.end = here + 1;
    let run = w.run;
    let state = slot(w, local);
    if store {
        state.store.get_or_insert((here, span));
        return;
    }
    let state = *state;
    if !state.called {
        let at = w.body.locals[local as usize].name;
        w.facts.stray_load.get_or_insert((span, at));
        return;
    }
    if let Some(call) = state.result_of
        && (run.start != call + 1 || run.label == Some(run.start))
    {
        let at = w.tree.instrs[w.body.insts[call as usize].node as usize].span;
        apart(
            w,
            call + 1..here,
            Diagnostic::new(Code::CallSequence, span, "the result load does not immediately follow its call")
                .label(at, "the call")
                .note("section 7.1: result loads (`ld.param`) must immediately follow the call, without control flow in between"),
        );
    }
}

/// A call: its arguments must have been stored in the run that ends here.
pub(crate) fn call(w: &mut Walker<'_, '_>, rets: Operand, args: Operand) {
    let here = w.body.insts.len() as u32 - 1;
    let adjacent = w.run.store && w.run.end == here && w.run.label != Some(here);
    let start = if adjacent { w.run.start } else { here };
    for (list, result) in [(args, false), (rets, true)] {
        let Operand::List(list) = list else { continue };
        for i in list.range() {
            let Operand::Symbol(SymRef::Local(local), _) = w.body.operands[i] else { continue };
            let state = slot(w, local);
            state.called = true;
            let stored = state.store.take();
            if result {
                state.result_of = Some(here);
            } else if let Some((index, span)) = stored
                && index < start
            {
                let at = w.tree.instrs[w.body.insts[here as usize].node as usize].span;
                apart(
                    w,
                    index + 1..here,
                    Diagnostic::new(
                        Code::CallSequence,
                        span,
                        "the argument store does not immediately precede its call",
                    )
                    .label(at, "the call")
                    .note("section 7.1: the `st.param` of arguments immediately precede the call")
                    .note("there is no control flow between them and the call"),
                );
            }
        }
    }
    w.run = Run { start: here + 1, end: here + 1, store: false, ..w.run };
}

/// Reports an access that is not adjacent to its call. Compilers put plain instructions in between, which the manual forbids and every tool
/// accepts; so without control flow in between, it is an error only where the manual's text is enforced.
fn apart(w: &mut Walker<'_, '_>, between: Range<u32>, d: Diagnostic) {
    let flow = |i: u32| {
        let inst = &w.body.insts[i as usize];
        matches!(
            w.body.variants[inst.variant.0 as usize].op.row().effect,
            Effect::Control | Effect::Call | Effect::Warp
        )
    };
    let label = w.run.label.is_some_and(|l| l >= between.start && l <= between.end);
    if w.report.verdict != Verdict::Ptxas || label || between.clone().any(flow) {
        w.report.text_only(d);
    }
}
