//! `sm`: where ptxas puts parameters on the GPU, for explanation only. Observed in the machine code of ptxas 13.5 for sm_80
//! (sm_75 to sm_100 behave alike), for functions that other modules may call (`-c`, `.visible`, indirect); calls inside one
//! module may differ. NVIDIA does not guarantee any of this.
//!
//! * R4 to R15 carry inputs: each parameter as a whole takes the lowest free run of registers with its alignment
//!   (in words, at most 4); later parameters fill holes. Parameters that do not fit go to the next aligned slot on the
//!   stack (at R1), in whole words. Unsized arrays always go there, after everything else.
//! * A return value of up to 48 bytes is in registers from R4 on. For a larger one, the caller passes the 32-bit local address of a buffer
//!   in R4, before all parameters.
//! * R20:R21 hold the return address. Callee-saved are R2, R16 to R31 except for that pair, and from R36 on every second
//!   group of four.
//! * `.abi_preserve N` preserves R2 and N registers from R16 on; the last pair of these is the return address. Parameters that laid
//!   out consecutively take more than 48 bytes, and return values of more than 48 bytes, are then passed in a window of
//!   other registers, whose start follows no known rule: there is no plan for these.

use super::{Abi, NoPlan, Piece, Place, Plan, Reg, Signature, Value};
use std::{ops::Range, sync::LazyLock};

/// The `sm` ABI.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sm;

const fn r(index: u16) -> Reg {
    Reg { class: 'R', index, bytes: 4 }
}

/// How many general registers a thread can have; predicates are not part of any plan.
const COUNT: u16 = 253;

static REGISTERS: LazyLock<Vec<Reg>> = LazyLock::new(|| (0..COUNT).map(r).collect());

/// The first register of inputs and returns.
const FIRST: u32 = 4;
/// How many there are.
const WORDS: u32 = 12;
/// Where the return address is, with the next register.
const RETURN_ADDRESS: u32 = 20;

const UNKNOWN_WINDOW: &str = "with `.abi_preserve`, ptxas passes what does not fit in R4 to R15 in unknown registers";

/// Words of registers that a value takes.
fn words(size: u32) -> u32 {
    size.div_ceil(4)
}

/// First word and number of words of the run that a value takes, if one is free.
fn run(taken: u32, value: &Value) -> Option<Range<u32>> {
    let (len, step) = (words(value.size).max(1), (value.align / 4).clamp(1, 4));
    (0..WORDS)
        .filter(|first| first % step == 0 && first + len <= WORDS)
        .find(|first| (taken >> first) & ((1 << len) - 1) == 0)
        .map(|first| first..first + len)
}

/// Words that the parameters take consecutively, each at its full alignment.
fn in_order(values: &[Value]) -> u32 {
    let sized = values.iter().filter(|v| !v.is_unsized);
    sized.fold(0u32, |end, v| {
        let start = end.checked_next_multiple_of((v.align / 4).max(1)).unwrap_or(u32::MAX);
        start.saturating_add(words(v.size).max(1))
    })
}

/// Pieces of a value in consecutive registers from word `first` on.
fn in_registers(value: &Value, first: u32) -> Vec<Piece> {
    (0..words(value.size))
        .map(|w| Piece { bytes: 4 * w..(4 * w + 4).min(value.size), at: Place::Reg(r((FIRST + first + w) as u16)) })
        .collect()
}

/// The first register of the pair with the return address: R20, or the last even pair of the block that `.abi_preserve` keeps
/// (R14 where that is empty).
pub fn return_address(preserve: Option<u32>) -> u32 {
    preserve.map_or(RETURN_ADDRESS, |n| (16u32.saturating_add(n) & !1) - 2)
}

/// Registers that a callee may overwrite.
fn clobbered(preserve: Option<u32>) -> Vec<Reg> {
    let kept = |i: u32| match preserve {
        _ if i & !1 == return_address(preserve) => false,
        _ if i == 2 => true,
        None => (16..32).contains(&i) || (i >= 32 && i & 4 != 0),
        Some(n) => i >= 16 && i < n.saturating_add(16),
    };
    (0..COUNT).filter(|i| *i != 1 && !kept(u32::from(*i))).map(r).collect()
}

impl Abi for Sm {
    fn name(&self) -> &'static str {
        "sm"
    }

    fn registers(&self) -> &[Reg] {
        &REGISTERS
    }

    fn about(&self) -> &'static str {
        "where ptxas puts parameters on the GPU (observed, sm_80)"
    }

    fn argument_registers(&self) -> Vec<Reg> {
        (FIRST..FIRST + WORDS).map(|i| r(i as u16)).collect()
    }

    fn plan(&self, sig: &Signature, _lanes: u32) -> Result<Plan, NoPlan> {
        if sig.rets.len() > 1 {
            return Err(NoPlan::of(
                "rets[1]",
                "several return values require a module without the ABI; this ABI returns one value",
            ));
        }
        // ptxas takes `.b8`, `.b16` and `.f16`, but no integer of that size.
        let sub_word = |v: &Value| !v.array && v.ty.bits() <= 16 && v.ty.is_int();
        for (what, values) in [("args", &sig.params), ("rets", &sig.rets)] {
            if let Some(i) = values.iter().position(|v| v.ty == margay_isa::Type::Pred || sub_word(v)) {
                return Err(NoPlan::of(
                    format!("{what}[{i}]"),
                    "predicates and 8- and 16-bit integers require a module without the ABI",
                ));
            }
        }
        let mut taken = 0u32;
        let mut plan = Plan { clobbers: clobbered(sig.preserve), ..Plan::default() };
        for value in &sig.rets {
            if words(value.size) <= WORDS {
                plan.rets.push(in_registers(value, 0));
            } else if sig.preserve.is_some() {
                return Err(NoPlan::of("rets[0]", UNKNOWN_WINDOW));
            } else {
                taken |= 1;
                plan.rets.push(vec![Piece { bytes: 0..value.size, at: Place::Behind(r(FIRST as u16)) }]);
            }
        }
        if sig.preserve.is_some() && in_order(&sig.params) > WORDS {
            return Err(NoPlan::new(UNKNOWN_WINDOW));
        }
        let too_large = || NoPlan::new("the parameters are larger than 4 GiB");
        for value in &sig.params {
            if let (false, Some(found)) = (value.is_unsized, run(taken, value)) {
                taken |= ((1 << found.len()) - 1) << found.start;
                plan.args.push(in_registers(value, found.start));
                continue;
            }
            // Stack slots are whole words.
            let offset = plan.stack.checked_next_multiple_of(value.align.max(4)).ok_or_else(too_large)?;
            let end = offset.checked_add(value.size).and_then(|e| e.checked_next_multiple_of(4));
            plan.stack = end.ok_or_else(too_large)?;
            plan.args.push(vec![Piece { bytes: 0..value.size, at: Place::Stack { offset } }]);
        }
        Ok(plan)
    }
}
