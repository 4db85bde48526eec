//! `sysv`: the System V convention of x86-64 hosts, for calls between host code and device functions (System V Application
//! Binary Interface, AMD64 Architecture Processor Supplement, section 3.2.3).
//!
//! A scalar is INTEGER or SSE depending on its type; `.b128` is an `__int128`; a predicate is a `bool`. A vector is a structure of its
//! elements. PTX does not define the contents of a byte array, so its eightbytes are INTEGER, like those of a C structure of integers;
//! a C structure of floats of up to 16 bytes would use other registers. Arrays of floating-point elements are SSE.
//! Values over 16 bytes are MEMORY: inputs on the stack, a return value through a hidden pointer in `rdi`.

use super::{Abi, NoPlan, Piece, Place, Plan, Reg, Signature, Value};
use std::sync::LazyLock;

/// The `sysv` ABI.
#[derive(Clone, Copy, Debug, Default)]
pub struct SysV;

/// General registers by their number in instructions.
const NAMES: [&str; 16] =
    ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
const RAX: u16 = 0;
const RDX: u16 = 2;
const RDI: u16 = 7;
/// `rdi rsi rdx rcx r8 r9`
const INTEGER_ARGS: [u16; 6] = [RDI, 6, RDX, 1, 8, 9];
/// The registers that a callee may overwrite.
const SCRATCH: [u16; 9] = [RAX, 1, RDX, 6, RDI, 8, 9, 10, 11];
/// Bytes that one register carries of a value.
const EIGHTBYTE: u32 = 8;

const fn general(index: u16) -> Reg {
    Reg { class: 'I', index, bytes: 8 }
}

const fn xmm(index: u16) -> Reg {
    Reg { class: 'X', index, bytes: 16 }
}

static REGISTERS: LazyLock<Vec<Reg>> = LazyLock::new(|| (0..16).map(general).chain((0..16).map(xmm)).collect());

/// Whether a value's eightbytes are SSE; all of one kind, since all elements of a PTX value have one type.
fn is_sse(value: &Value) -> bool {
    value.ty.is_float()
}

fn in_memory(value: &Value) -> bool {
    value.size > 16 || value.is_unsized
}

/// Byte ranges of the eightbytes.
fn eightbytes(value: &Value) -> Vec<std::ops::Range<u32>> {
    (0..value.size).step_by(EIGHTBYTE as usize).map(|b| b..(b + EIGHTBYTE).min(value.size)).collect()
}

fn pieces(value: &Value, regs: impl Iterator<Item = Reg>) -> Vec<Piece> {
    eightbytes(value).into_iter().zip(regs).map(|(bytes, reg)| Piece { bytes, at: Place::Reg(reg) }).collect()
}

impl Abi for SysV {
    fn name(&self) -> &'static str {
        "sysv"
    }

    fn registers(&self) -> &[Reg] {
        &REGISTERS
    }

    fn register_name(&self, reg: Reg) -> String {
        match NAMES.get(usize::from(reg.index)) {
            Some(name) if reg.class == 'I' => (*name).to_string(),
            _ => format!("xmm{}", reg.index),
        }
    }

    fn about(&self) -> &'static str {
        "the C convention of x86-64 hosts (System V)"
    }

    fn argument_registers(&self) -> Vec<Reg> {
        INTEGER_ARGS.into_iter().map(general).chain((0..8).map(xmm)).collect()
    }

    fn plan(&self, sig: &Signature, _lanes: u32) -> Result<Plan, NoPlan> {
        if sig.rets.len() > 1 {
            return Err(NoPlan::of("rets[1]", "a C function returns one value"));
        }
        let clobbers = SCRATCH.into_iter().map(general).chain((0..16).map(xmm)).collect();
        let mut plan = Plan { clobbers, ..Plan::default() };
        let (mut integer, mut sse) = (0usize, 0usize);
        for value in &sig.rets {
            plan.rets.push(if in_memory(value) {
                integer = 1;
                vec![Piece { bytes: 0..value.size, at: Place::Behind(general(RDI)) }]
            } else if is_sse(value) {
                pieces(value, [xmm(0), xmm(1)].into_iter())
            } else {
                pieces(value, [general(RAX), general(RDX)].into_iter())
            });
        }
        let too_large = || NoPlan::new("the parameters are larger than 4 GiB");
        for value in &sig.params {
            let count = value.size.div_ceil(EIGHTBYTE) as usize;
            // A value that does not fit into the registers left goes to the stack as a whole.
            if !in_memory(value) && is_sse(value) && sse + count <= 8 {
                plan.args.push(pieces(value, (sse..8).map(|i| xmm(i as u16))));
                sse += count;
            } else if !in_memory(value) && !is_sse(value) && integer + count <= INTEGER_ARGS.len() {
                plan.args.push(pieces(value, INTEGER_ARGS[integer..].iter().map(|i| general(*i))));
                integer += count;
            } else {
                let offset = plan.stack.checked_next_multiple_of(value.align.max(EIGHTBYTE)).ok_or_else(too_large)?;
                let end = offset.checked_add(value.size).and_then(|e| e.checked_next_multiple_of(EIGHTBYTE));
                plan.stack = end.ok_or_else(too_large)?;
                plan.args.push(vec![Piece { bytes: 0..value.size, at: Place::Stack { offset } }]);
            }
        }
        Ok(plan)
    }
}
