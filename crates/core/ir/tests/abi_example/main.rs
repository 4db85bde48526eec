//! The worked example of ABIS.md compiles, passes the verifier, and is the text that stands there.

mod riscv;

use margay_check::FormalSpace;
use margay_ir::abi::{self, Abi, Piece, Place, Signature, Value};
use margay_isa::Type;
use riscv::RiscV;

fn names(pieces: &[Vec<Piece>]) -> Vec<String> {
    let one = |p: &Piece| match p.at {
        Place::Reg(r) => RiscV.register_name(r),
        Place::Behind(r) => format!("[{}]", RiscV.register_name(r)),
        Place::Stack { offset } => format!("stack+{offset}"),
        Place::Space { offset } => format!("param+{offset}"),
    };
    pieces.iter().map(|p| p.iter().map(one).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn the_example_follows_the_psabi() {
    let int = Value::scalar(Type::S32, FormalSpace::Param);
    let wide = Value::scalar(Type::B128, FormalSpace::Param);
    let params = vec![int, wide, Value::bytes(12, 4), Value::bytes(40, 8), Value::bytes(16, 8)];
    let sig = Signature { params, rets: vec![Value::bytes(24, 8)], ..Signature::default() };
    let plan = RiscV.plan(&sig, 1).unwrap();
    assert_eq!(abi::verify_with(&RiscV, &plan, &sig), Ok(()));
    assert_eq!(names(&plan.rets), ["[a0]"]);
    assert_eq!(names(&plan.args), ["a1", "a2 a3", "a4 a5", "[a6]", "stack+0"]);
}

#[test]
fn every_small_signature_verifies() {
    let values = [1, 4, 8, 12, 16, 17, 64]
        .map(|size| Value::bytes(size, if size % 8 == 0 { 16.min(size) } else { 4.min(size) }));
    for a in &values {
        for b in &values {
            for count in 0..6 {
                let params = [vec![a.clone(); count], vec![b.clone(); 5]].concat();
                let sig = Signature { params, rets: vec![a.clone()], ..Signature::default() };
                let plan = RiscV.plan(&sig, 1).unwrap();
                assert_eq!(abi::verify_with(&RiscV, &plan, &sig), Ok(()), "{sig:?}");
            }
        }
    }
}

#[test]
fn the_page_contains_the_code_of_the_example() {
    let page = include_str!("../../../../../ABIS.md");
    let code = include_str!("riscv.rs");
    assert!(page.contains(code), "copy crates/core/ir/tests/abi_example/riscv.rs into ABIS.md");
}
