//! `riscv`: the integer calling convention of 64-bit RISC-V without floating-point registers (RISC-V ELF psABI, "Integer
//! Calling Convention"). The worked example of ABIS.md; `tests/abi_example` holds it to the verifier.

use margay_ir::abi::{Abi, NoPlan, Piece, Place, Plan, Reg, Signature, Value};

/// The `riscv` ABI.
pub struct RiscV;

/// Bytes of a register, and of a slot on the stack.
const XLEN: u32 = 8;

/// `a0` to `a7` carry inputs, `a0` and `a1` also the return; `t0` to `t6` are scratch.
const fn a(index: u16) -> Reg {
    Reg { class: 'a', index, bytes: XLEN as u16 }
}

static REGISTERS: [Reg; 8] = [a(0), a(1), a(2), a(3), a(4), a(5), a(6), a(7)];

/// Pieces of up to eight bytes each, in the registers given.
fn split(value: &Value, regs: &[Reg]) -> Vec<Piece> {
    let starts = (0..value.size).step_by(XLEN as usize);
    starts.zip(regs).map(|(b, reg)| Piece { bytes: b..(b + XLEN).min(value.size), at: Place::Reg(*reg) }).collect()
}

impl Abi for RiscV {
    fn name(&self) -> &'static str {
        "riscv"
    }

    fn about(&self) -> &'static str {
        "the integer calling convention of 64-bit RISC-V"
    }

    fn registers(&self) -> &[Reg] {
        &REGISTERS
    }

    fn plan(&self, sig: &Signature, _lanes: u32) -> Result<Plan, NoPlan> {
        if sig.rets.len() > 1 {
            return Err(NoPlan::of("rets[1]", "a function returns one value"));
        }
        let mut plan = Plan { clobbers: REGISTERS.to_vec(), ..Plan::default() };
        let mut next = 0;
        for value in &sig.rets {
            // A return value of more than two registers is passed by pointer; the pointer takes a0 before all inputs.
            plan.rets.push(if value.size > 2 * XLEN {
                next = 1;
                vec![Piece { bytes: 0..value.size, at: Place::Behind(a(0)) }]
            } else {
                split(value, &REGISTERS)
            });
        }
        for value in &sig.params {
            let needed = value.size.div_ceil(XLEN) as usize;
            // Twice as wide and twice as aligned as a register: an even pair, the register before it stays unused.
            if needed == 2 && value.align == 2 * XLEN {
                next += next % 2;
            }
            let left = REGISTERS.get(next..).unwrap_or_default();
            plan.args.push(match value {
                // By reference: the caller makes a copy and passes its address.
                _ if needed > 2 && !left.is_empty() => {
                    next += 1;
                    vec![Piece { bytes: 0..value.size, at: Place::Behind(left[0]) }]
                }
                _ if !value.is_unsized && needed <= left.len() => {
                    next += needed;
                    split(value, left)
                }
                // The rest goes to the stack. (The psABI would also split a pair between a7 and the stack, and pass the
                // address of a large value there; this example keeps values whole.)
                _ => {
                    next = REGISTERS.len();
                    let offset = plan.stack.next_multiple_of(value.align.clamp(XLEN, 2 * XLEN));
                    plan.stack = (offset + value.size).next_multiple_of(XLEN);
                    vec![Piece { bytes: 0..value.size, at: Place::Stack { offset } }]
                }
            });
        }
        Ok(plan)
    }
}
