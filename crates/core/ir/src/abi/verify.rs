//! The verifier for the plans of all ABIs.

use super::{Abi, Piece, Place, Plan, Reg, Signature, Value};
use std::collections::HashSet;

/// An error in a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanError(pub String);

impl std::fmt::Display for PlanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PlanError {}

/// No ABI here aligns the stack to more: larger alignments of a formal are not kept by its place.
const MAX_ALIGN: u32 = 16;

/// Checks that a plan is one:
///
/// 1. it has one entry for every input and every return;
/// 2. every byte of every value travels exactly once, and an unsized array has one place where it starts;
/// 3. a register carries no more bytes than it has, and at most one piece; pointers to values count as inputs;
/// 4. memory places lie inside the outgoing area, are aligned (to at most 16 bytes), and no two overlap;
/// 5. no register is both an input's (or a pointer) and out of the callee's hands: carriers are clobbered;
/// 6. no register is listed twice as clobbered.
pub fn verify(plan: &Plan, sig: &Signature) -> Result<(), PlanError> {
    let lists = [("args", &plan.args, &sig.params), ("rets", &plan.rets, &sig.rets)];
    for (what, places, values) in lists {
        if places.len() != values.len() {
            return Err(PlanError(format!("{} entries in {what} for {} values", places.len(), values.len())));
        }
        for (i, (pieces, value)) in places.iter().zip(values).enumerate() {
            cover(pieces, value).map_err(|why| PlanError(format!("{what}[{i}]: {why}")))?;
            for piece in pieces {
                fits(piece, value, plan).map_err(|why| PlanError(format!("{what}[{i}]: {why}")))?;
            }
        }
    }
    registers(plan)?;
    memory(plan)
}

/// As [`verify`], and all registers are the ABI's own.
pub fn verify_with(abi: &dyn Abi, plan: &Plan, sig: &Signature) -> Result<(), PlanError> {
    verify(plan, sig)?;
    let own: HashSet<Reg> = abi.registers().iter().copied().collect();
    let foreign = carriers(plan).map(|(_, r)| r).chain(plan.clobbers.iter().copied()).find(|r| !own.contains(r));
    foreign.map_or(Ok(()), |r| Err(PlanError(format!("{r:?} is not a register of `{}`", abi.name()))))
}

fn cover(pieces: &[Piece], value: &Value) -> Result<(), String> {
    if value.is_unsized {
        return match pieces {
            [Piece { bytes, at: Place::Stack { .. } | Place::Space { .. } }] if *bytes == (0..0) => Ok(()),
            _ => Err("an unsized array must have one location in memory, with an empty range".into()),
        };
    }
    let mut ranges: Vec<_> =
        pieces.iter().map(|p| p.bytes.clone()).filter(|r| value.size != 0 || !r.is_empty()).collect();
    ranges.sort_by_key(|r| r.start);
    let mut end = 0;
    for r in ranges {
        if r.start != end || r.end <= r.start {
            return Err(format!(
                "byte {} travels {}",
                end.min(r.start),
                if r.start > end { "nowhere" } else { "twice" }
            ));
        }
        end = r.end;
    }
    if end == value.size { Ok(()) } else { Err(format!("bytes {end}.. of {} have no location", value.size)) }
}

fn fits(piece: &Piece, value: &Value, plan: &Plan) -> Result<(), String> {
    match piece.at {
        Place::Reg(r) if piece.bytes.len() as u32 > u32::from(r.bytes) => {
            Err(format!("{} bytes in a register of {}", piece.bytes.len(), r.bytes))
        }
        Place::Stack { offset } | Place::Space { offset } => {
            let align = value.align.clamp(1, MAX_ALIGN);
            // The value's start decides; a later piece has the same distance from it as in the value.
            if offset.wrapping_sub(piece.bytes.start) % align != 0 {
                return Err(format!("offset {offset} for bytes {}.. is not aligned to {align}", piece.bytes.start));
            }
            if u64::from(offset) + piece.bytes.len() as u64 > u64::from(plan.stack) {
                return Err(format!("offset {offset} lies beyond the outgoing area of {} bytes", plan.stack));
            }
            Ok(())
        }
        Place::Reg(_) | Place::Behind(_) => Ok(()),
    }
}

/// Registers that carry something: `true` for those that do at the call.
fn carriers(plan: &Plan) -> impl Iterator<Item = (bool, Reg)> + '_ {
    let of = |at_call: bool| {
        move |p: &Piece| match p.at {
            Place::Reg(r) => Some((at_call, r)),
            Place::Behind(r) => Some((true, r)),
            Place::Stack { .. } | Place::Space { .. } => None,
        }
    };
    plan.args.iter().flatten().filter_map(of(true)).chain(plan.rets.iter().flatten().filter_map(of(false)))
}

fn registers(plan: &Plan) -> Result<(), PlanError> {
    let clobbers: HashSet<Reg> = plan.clobbers.iter().copied().collect();
    if clobbers.len() != plan.clobbers.len() {
        return Err(PlanError("a register is clobbered twice".into()));
    }
    let mut seen = HashSet::new();
    for (at_call, reg) in carriers(plan) {
        if !seen.insert((at_call, reg)) {
            return Err(PlanError(format!("{reg:?} is used twice")));
        }
        if !clobbers.contains(&reg) {
            return Err(PlanError(format!("{reg:?} carries a value but is not clobbered")));
        }
    }
    Ok(())
}

fn memory(plan: &Plan) -> Result<(), PlanError> {
    // Inputs and return values share the parameter block; on a stack, only values that are there at the same time must not overlap.
    let mut ranges = Vec::new();
    for (at_call, piece) in
        plan.args.iter().flatten().map(|p| (true, p)).chain(plan.rets.iter().flatten().map(|p| (false, p)))
    {
        match piece.at {
            Place::Stack { offset } => ranges.push((1 + u8::from(at_call), offset, piece.bytes.len() as u32)),
            Place::Space { offset } => ranges.push((0, offset, piece.bytes.len() as u32)),
            Place::Reg(_) | Place::Behind(_) => {}
        }
    }
    ranges.retain(|r| r.2 != 0);
    ranges.sort_unstable();
    for w in ranges.windows(2) {
        if w[0].0 == w[1].0 && u64::from(w[0].1) + u64::from(w[0].2) > u64::from(w[1].1) {
            return Err(PlanError(format!("{} bytes at offset {} and those at {} overlap", w[0].2, w[0].1, w[1].1)));
        }
    }
    Ok(())
}
