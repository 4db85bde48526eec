//! `simd`: the convention of the SIMD engine, in which one call serves all lanes of a warp.
//!
//! A uniform value is passed once, in a scalar register (class `S`, 8 bytes). A varying one is passed in vector registers (class
//! `V`, up to 8 bytes per lane). A vector takes one register per element. An array of up to sixteen words (or eight fields of one
//! or two bytes, if its alignment is no larger) is split into them; larger ones are on the stack, in a block of lanes. A large
//! return value is in such a block too, passed by a pointer in a scalar register.
//! The lane mask and the stack pointer are passed in addition to the plan.

use super::{Abi, NoPlan, Piece, Place, Plan, Reg, Signature, Value};
use std::{ops::Range, sync::LazyLock};

/// The `simd` ABI.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simd;

/// Registers of each class.
const COUNT: u16 = 48;
/// Most registers that an array is split over: one of words, and one of smaller fields.
const MAX_FIELDS: [u32; 2] = [16, 8];

const fn register(varying: bool, index: u16) -> Reg {
    Reg { class: if varying { 'V' } else { 'S' }, index, bytes: 8 }
}

static REGISTERS: LazyLock<Vec<Reg>> =
    LazyLock::new(|| [true, false].into_iter().flat_map(|v| (0..COUNT).map(move |i| register(v, i))).collect());

/// The byte ranges that travel in one register each; `None` for values that stay in memory.
fn fields(value: &Value) -> Option<Vec<Range<u32>>> {
    let unit = match value {
        _ if value.is_unsized || value.size == 0 => return None,
        Value { array: true, .. } => value.align.clamp(1, 4),
        Value { vector: 2.., .. } => value.size / u32::from(value.vector),
        _ => value.size,
    }
    .clamp(1, 8);
    let count = value.size.div_ceil(unit);
    (count <= MAX_FIELDS[usize::from(unit < 4)])
        .then(|| (0..count).map(|i| i * unit..(i * unit + unit).min(value.size)).collect())
}

/// Registers given out so far, by class.
#[derive(Default)]
struct Next([u16; 2]);

impl Next {
    fn take(&mut self, value: &Value) -> Option<Vec<Piece>> {
        let fields = fields(value)?;
        let next = &mut self.0[usize::from(value.varying)];
        if usize::from(COUNT - *next) < fields.len() {
            return None;
        }
        let piece = |bytes| {
            *next += 1;
            Piece { bytes, at: Place::Reg(register(value.varying, *next - 1)) }
        };
        Some(fields.into_iter().map(piece).collect())
    }
}

impl Abi for Simd {
    fn name(&self) -> &'static str {
        "simd"
    }

    fn registers(&self) -> &[Reg] {
        &REGISTERS
    }

    fn about(&self) -> &'static str {
        "whole warps: uniform values in scalar registers, varying ones in vectors"
    }

    fn distinguishes_uniform(&self) -> bool {
        true
    }

    fn plan(&self, sig: &Signature, _lanes: u32) -> Result<Plan, NoPlan> {
        let mut plan = Plan { clobbers: REGISTERS.clone(), ..Plan::default() };
        let (mut inputs, mut outputs) = (Next::default(), Next::default());
        for value in &sig.rets {
            plan.rets.push(match outputs.take(value) {
                Some(pieces) => pieces,
                None => {
                    let pointer = register(false, inputs.0[0]);
                    inputs.0[0] += 1;
                    vec![Piece { bytes: 0..value.size, at: Place::Behind(pointer) }]
                }
            });
            if inputs.0[0] >= COUNT {
                return Err(NoPlan::new("too many large returns"));
            }
        }
        let too_large = || NoPlan::new("the parameters are larger than 4 GiB");
        for value in &sig.params {
            let pieces = match inputs.take(value) {
                Some(pieces) => pieces,
                None => {
                    let offset = plan.stack.checked_next_multiple_of(value.align.max(4)).ok_or_else(too_large)?;
                    plan.stack = offset.checked_add(value.size).ok_or_else(too_large)?;
                    vec![Piece { bytes: 0..value.size, at: Place::Stack { offset } }]
                }
            };
            plan.args.push(pieces);
        }
        Ok(plan)
    }
}
