//! The order between the nodes of a graph: it follows from their dependencies alone.

use super::{Clock, Piece, current, order, race};
use crate::code::Outcome;
use margay_sanitizer::Footprint;
use std::backtrace::Backtrace;

/// Graphs of more nodes count as one piece.
const LIMIT: usize = 1024;

/// The nodes of a graph that this thread runs, in the order in which it runs them.
#[derive(Default)]
pub struct Nodes {
    /// By number, with the numbers of the nodes that precede it, directly or not, and its own.
    done: Vec<(Piece, Vec<bool>)>,
}

impl Nodes {
    /// Performs the next node as a part of the piece of work of this thread, and compares its accesses with those of nodes that nothing orders
    /// it with; `after` are those that it depends on. If it is a launch: whether it may begin before these have ended.
    pub fn perform(
        &mut self,
        after: &[usize],
        launch: Option<bool>,
        name: impl FnOnce() -> String,
        work: impl FnOnce() -> Outcome,
    ) -> Outcome {
        let number = self.done.len();
        let Some(rest) = (number < LIMIT).then(|| current(|piece| std::mem::take(&mut piece.touched))).flatten() else {
            return work();
        };
        let frees = current(|piece| std::mem::replace(&mut piece.frees, false)).unwrap_or_default();
        current(|piece| piece.launch = launch);
        let outcome = work();
        let mut before = vec![false; number + 1];
        before[number] = true;
        for (_, known) in after.iter().filter_map(|n| self.done.get(*n)) {
            known.iter().zip(&mut before).for_each(|(known, all)| *all |= known);
        }
        let node = current(|piece| {
            let touched: Footprint = std::mem::replace(&mut piece.touched, rest);
            piece.touched.join(&touched);
            let frees = std::mem::replace(&mut piece.frees, frees);
            piece.frees |= frees;
            piece.launch = None;
            Piece {
                context: piece.context.clone(),
                stream: piece.stream,
                number: piece.number,
                knows: Clock::default(),
                name: name(),
                place: format!("a graph in {}", piece.place),
                frees,
                submitted: Backtrace::disabled(),
                touched,
                launch,
                overlap: std::mem::take(&mut piece.overlap),
                pages: Vec::new(),
            }
        });
        if let Some(node) = node {
            self.compare(&node, &before);
            let after = after.iter().filter_map(|n| Some(&self.done.get(*n)?.0));
            let found = order(|order| after.filter_map(|other| order.overlapping_node(&node, other)).next());
            found.flatten().iter().for_each(crate::checks::watch::report);
            self.done.push((node, before));
        }
        outcome
    }

    fn compare(&self, node: &Piece, before: &[bool]) {
        let mut others = self.done.iter().zip(before).filter(|(_, before)| !**before).map(|((other, _), _)| other);
        let Some((other, conflict)) = others.find_map(|o| Some((o, node.touched.conflict(&o.touched)?))) else {
            return;
        };
        let names = [node.name.clone(), other.name.clone()];
        let help = "make one of the nodes depend on the other (`cudaGraphAddDependencies`, or `cudaStreamWaitEvent` while streams are captured)";
        let finding = race([node, other], &names, conflict, help);
        let by = [node, other].map(|n| format!("{} in {}", n.name, n.place));
        if order(|order| order.found.insert(by)).unwrap_or_default() {
            crate::checks::watch::report(&finding);
        }
    }
}
