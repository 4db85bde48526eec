//! Giving every formal, argument and frame variable its place.

use super::{Abi, NoPlan};
use crate::{Ir, Placed, Virtual};

/// Places a whole program under one ABI.
pub fn place(ir: Ir<Virtual>, abi: &dyn Abi) -> Result<Ir<Placed>, NoPlan> {
    let _ = ir;
    Err(NoPlan { value: None, reason: abi.name().into() })
}
