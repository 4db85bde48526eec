//! The registers and areas that carry values across a call under a plan, in a fixed order.

use crate::abi::{Piece, Place, Plan, Reg, Signature, Value};

/// The content of a register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Carries {
    /// A value of its own for each lane.
    Lanes,
    /// One value for all lanes that call.
    Uniform,
    /// A pointer to a value in the caller's memory.
    Pointer,
}

/// A register that carries something.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Carrier {
    /// The register.
    pub reg: Reg,
    /// Its content.
    pub carries: Carries,
    /// How many bytes of it.
    pub bytes: u32,
}

/// The registers and areas that carry values across a call.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Carriers {
    /// Registers to the callee: pointers to the room for large returns, then the inputs in order.
    pub inputs: Vec<Carrier>,
    /// Registers to the caller, in order of the returns.
    pub outputs: Vec<Carrier>,
    /// Bytes of the stack area that carry values; 0 without.
    pub stack: u32,
    /// The same of the parameter block.
    pub space: u32,
    /// There is a formal without size.
    pub passes: bool,
}

impl Carriers {
    /// Of a signature under a plan.
    pub fn new(sig: &Signature, plan: &Plan) -> Carriers {
        let mut all = Carriers { passes: sig.params.iter().any(|v| v.is_unsized), ..Carriers::default() };
        for piece in plan.rets.iter().flatten() {
            if let Place::Behind(reg) = piece.at {
                all.pointer(reg);
            }
        }
        for (value, pieces) in sig.params.iter().zip(&plan.args).filter(|(v, _)| !v.is_unsized) {
            for piece in pieces {
                if let Some(carrier) = all.piece(value, piece) {
                    all.inputs.push(carrier);
                }
            }
        }
        for (value, pieces) in sig.rets.iter().zip(&plan.rets) {
            for piece in pieces {
                if let Some(carrier) = all.piece(value, piece) {
                    all.outputs.push(carrier);
                }
            }
        }
        all
    }

    fn pointer(&mut self, reg: Reg) {
        if !self.inputs.iter().any(|c| c.reg == reg) {
            self.inputs.push(Carrier { reg, carries: Carries::Pointer, bytes: 8 });
        }
    }

    /// Notes the area or pointer that a piece needs; the register that it is in.
    fn piece(&mut self, value: &Value, piece: &Piece) -> Option<Carrier> {
        let bytes = piece.bytes.len() as u32;
        match piece.at {
            Place::Reg(reg) => {
                let carries = if value.varying { Carries::Lanes } else { Carries::Uniform };
                return Some(Carrier { reg, carries, bytes });
            }
            Place::Stack { offset } => self.stack = self.stack.max(offset.saturating_add(bytes)),
            Place::Space { offset } => self.space = self.space.max(offset.saturating_add(bytes)),
            Place::Behind(reg) => self.pointer(reg),
        }
        None
    }
}
