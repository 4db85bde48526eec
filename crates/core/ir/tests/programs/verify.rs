//! Programs that break a property each, and the verifier that notices.

use crate::common::module;
use margay_ir::{BlockId, FormalHome, Func, Ir, MemBase, Operand, Terminator, VReg, Virtual, verify};
use std::sync::Arc;

fn sample() -> Ir<Virtual> {
    module(
        ".func (.reg .b32 r) g(.reg .b32 a) { mov.b32 r, a; ret; }
        .func f(.reg .b32 a, .reg .b64 p) {
            .reg .b32 %r; .reg .pred %p; .local .b32 l;
            setp.eq.u32 %p, a, 0;
            @%p bra END;
            st.global.b32 [p+4], a;
            call (%r), g, (a);
         END:
            ret;
        }",
    )
}

/// Applies a change to `f` and returns what the verifier says.
fn broken(change: impl FnOnce(&mut Func)) -> String {
    let mut ir = sample();
    assert_eq!(verify(&ir), Ok(()));
    let index = ir.funcs.iter().position(|f| &*f.name == "f").unwrap();
    change(Arc::make_mut(&mut ir.funcs[index]));
    let e = verify(&ir).unwrap_err();
    assert_eq!(e.func, "f");
    e.message
}

#[test]
fn blocks_and_terminators() {
    assert!(broken(|f| f.blocks[0].term = Terminator::Jump(BlockId(9))).contains("not a block"));
    assert!(broken(|f| f.blocks[0].term = Terminator::Ret).contains("no predecessor"));
    let twice = broken(|f| f.blocks[1].insts = f.blocks[0].insts);
    assert!(twice.contains("shared"), "{twice}");
    let pred = broken(|f| {
        if let Terminator::Branch { pred, .. } = &mut f.blocks[0].term {
            *pred = VReg(0);
        }
    });
    assert!(pred.contains("not a predicate"), "{pred}");
}

#[test]
fn operands_and_calls() {
    let change_first = |f: &mut Func, from: fn(&Operand) -> bool, to: Operand| {
        let at = f.operands.iter().position(from).unwrap();
        f.operands[at] = to;
    };
    let is_mem = |o: &Operand| matches!(o, Operand::Mem(..));
    let is_call = |o: &Operand| matches!(o, Operand::Call(_));
    assert!(broken(|f| change_first(f, is_mem, Operand::Reg(VReg(99)))).contains("no register 99"));
    assert!(broken(|f| change_first(f, is_mem, Operand::Mem(MemBase::KernelParam, 0))).contains("kernel parameter"));
    assert!(broken(|f| change_first(f, is_call, Operand::Imm(0))).contains("malformed call"));
    assert!(broken(|f| change_first(f, is_call, Operand::Call(7))).contains("no such call site"));
    assert!(
        broken(|f| change_first(f, is_mem, Operand::FrameAddr(margay_ir::FrameId(0), 0))).contains("taken silently")
    );
    assert!(broken(|f| f.insts.iter_mut().for_each(|i| i.space = None)).contains("without space"));
    assert!(broken(|f| drop(f.calls[0].args.pop())).contains("differ in number"));
}

#[test]
fn formals() {
    assert!(broken(|f| drop(f.params.pop())).contains("formals without home"));
    assert!(broken(|f| f.params[0] = FormalHome::Kernel(0)).contains("wrong kind of home"));
}
