//! The finding for a launch that stopped before its end.

use crate::render;
use margay_exec::{Fault, FaultKind, Stop};
use margay_runtime::StopReport;
use margay_sanitizer::{Finding, FindingKind, Party};

/// The finding for a launch that has stopped; for a fault, with its thread, place and notes.
pub fn stopped(report: &StopReport) -> Finding {
    let (title, parties, notes) = match &report.stop {
        Stop::Fault(fault) => (render::fault_title(&fault.kind), party(fault), fault.notes.clone()),
        _ => {
            let text = render::stop(report, false);
            let mut lines = text.trim_end().lines().map(str::to_owned);
            let title = lines.next().unwrap_or_default();
            (title.trim_start_matches("error: ").to_owned(), None, lines.collect())
        }
    };
    Finding { kind: FindingKind::Fault, title, parties: parties.into_iter().collect(), notes, help: None, times: 1 }
}

/// The thread of a fault, if its place is known.
fn party(fault: &Fault) -> Option<Party> {
    let verb = match &fault.kind {
        FaultKind::OutOfBounds(a) | FaultKind::UseAfterFree(a) | FaultKind::Misaligned(a) | FaultKind::ReadOnly(a) => {
            if a.write {
                "writes"
            } else {
                "reads"
            }
        }
        FaultKind::BadFree { .. } => "frees",
        FaultKind::Deadlock(_) | FaultKind::Barrier(_) => "waits",
        _ => "stops",
    };
    let Fault { thread, cta, at, stack, .. } = fault;
    Some(Party { verb: verb.into(), thread: *thread, cta: *cta, at: (*at)?, callers: stack.clone() })
}
