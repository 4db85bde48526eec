//! Launches that may begin before their predecessors in the stream have ended (`cudaLaunchAttributeProgrammaticStreamSerialization`).

use super::{Order, Piece, race};
use margay_sanitizer::{Conflict, Finding};

/// What orders two grids.
const WAIT: &str = "the earlier grid lets the later one begin by `griddepcontrol.launch_dependents` \
                    (`cudaTriggerProgrammaticLaunchCompletion()`), so the later one must not access what both use before \
                    `griddepcontrol.wait` (`cudaGridDependencySynchronize()`)";

impl Order {
    /// A race between the accesses of a launch before its wait and an earlier launch in its stream.
    pub(super) fn overlapping(&mut self, piece: &Piece) -> Option<Finding> {
        let mut later = piece;
        while later.launch == Some(true) {
            let before = |other: &&Piece| (other.stream, other.number + 1) == (later.stream, later.number);
            let other = self.unknown.iter().find(before)?;
            if let Some((conflict, line)) = early(piece, other) {
                let submitted = [piece.by(), other.by()];
                let key = submitted.clone();
                return self.found.insert(key).then(|| overlap([piece, other], &submitted, conflict, line));
            }
            if !other.overlap.triggers || !other.overlap.at_once {
                return None;
            }
            later = other;
        }
        None
    }

    /// A race between the accesses of a graph's node before its wait and a node that it depends on.
    pub(super) fn overlapping_node(&mut self, node: &Piece, other: &Piece) -> Option<Finding> {
        let (conflict, line) = early(node, other).filter(|_| node.launch == Some(true))?;
        let names = [node, other].map(|n| format!("{} in {}", n.name, n.place));
        let finding = overlap([node, other], &[node.name.clone(), other.name.clone()], conflict, line);
        self.found.insert(names).then_some(finding)
    }
}

/// The accesses of a launch that came too early, and their places, if the launch before it has let it begin.
fn early<'p>(piece: &'p Piece, other: &Piece) -> Option<(Conflict, &'p str)> {
    if other.launch.is_none() || !other.overlap.triggers {
        return None;
    }
    piece.overlap.early.iter().find_map(|(line, touched)| Some((touched.conflict(&other.touched)?, &**line)))
}

fn overlap(pieces: [&Piece; 2], submitted: &[String; 2], conflict: Conflict, line: &str) -> Finding {
    let mut finding = race(pieces, submitted, conflict, WAIT);
    finding.notes.push(format!("{} accesses it at {line}, before a wait", pieces[0].name));
    finding
}
