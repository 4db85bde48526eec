//! Plans of every ABI over random signatures, and the tables of conventions that are known from outside.

use margay_check::FormalSpace;
use margay_ir::abi::{self, Abi, Piece, Place, Plan, Signature, Value};
use margay_isa::Type;
use proptest::prelude::*;

fn scalar() -> impl Strategy<Value = Value> {
    use Type::*;
    let types = prop::sample::select(vec![B8, B16, B32, B64, B128, U32, S64, F16, F32, F64]);
    (types, any::<bool>(), any::<bool>()).prop_map(|(ty, reg, varying)| {
        let space = if reg { FormalSpace::Reg } else { FormalSpace::Param };
        Value { varying, ..Value::scalar(ty, space) }
    })
}

fn vector() -> impl Strategy<Value = Value> {
    let types = prop::sample::select(vec![Type::B16, Type::F32, Type::U64]);
    (types, prop::sample::select(vec![2u8, 4])).prop_map(|(ty, vector)| {
        let size = ty.bytes() * u32::from(vector);
        Value { vector, size, align: size, ..Value::scalar(ty, FormalSpace::Reg) }
    })
}

fn array() -> impl Strategy<Value = Value> {
    (1u32..200, 0u32..6, any::<bool>())
        .prop_map(|(size, log2, varying)| Value { varying, ..Value::bytes(size, 1 << log2) })
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![3 => scalar(), 1 => vector(), 2 => array()]
}

fn signature() -> impl Strategy<Value = Signature> {
    let unsized_array = (0u32..5).prop_map(|log2| Value { is_unsized: true, ..Value::bytes(0, 1 << log2) });
    let preserve = prop::option::of(2u32..200);
    (
        prop::collection::vec(value(), 0..24),
        prop::option::of(unsized_array),
        prop::collection::vec(value(), 0..3),
        preserve,
    )
        .prop_map(|(mut params, last, rets, preserve)| {
            params.extend(last);
            Signature { params, rets, preserve, preserve_control: None }
        })
}

proptest! {
    #[test]
    fn every_plan_verifies(sig in signature()) {
        for abi in abi::registry() {
            match abi.plan(&sig, 32) {
                Ok(plan) => {
                    prop_assert_eq!(abi::verify_with(*abi, &plan, &sig), Ok(()), "{}", abi.name());
                    prop_assert_eq!(abi.plan(&sig, 32), Ok(plan));
                }
                Err(why) => prop_assert!(!why.reason.is_empty()),
            }
        }
    }

    #[test]
    fn the_identity_places_everything(sig in signature()) {
        prop_assert!(abi::Ptx.plan(&sig, 32).is_ok());
    }

    #[test]
    fn broken_plans_are_rejected(sig in signature(), pick in any::<prop::sample::Index>(), how in 0..3) {
        let mut plan = abi::Ptx.plan(&sig, 32).unwrap();
        let candidates: Vec<usize> = (0..plan.args.len()).filter(|i| !sig.params[*i].is_unsized).collect();
        prop_assume!(!candidates.is_empty());
        let pieces = &mut plan.args[candidates[pick.index(candidates.len())]];
        match how {
            0 => pieces.clear(),
            1 => pieces.push(pieces[0].clone()),
            _ => pieces[0].at = Place::Stack { offset: plan.stack },
        }
        prop_assert!(abi::verify(&plan, &sig).is_err());
    }
}

fn params(values: &[Value]) -> Signature {
    Signature { params: values.to_vec(), ..Signature::default() }
}

/// Where each piece of each input is, as text.
fn places(abi: &dyn Abi, pieces: &[Vec<Piece>]) -> Vec<String> {
    let one = |p: &Piece| match p.at {
        Place::Reg(r) => abi.register_name(r),
        Place::Stack { offset } => format!("[{offset}]"),
        Place::Space { offset } => format!("param[{offset}]"),
        Place::Behind(r) => format!("behind {}", abi.register_name(r)),
    };
    pieces.iter().map(|ps| ps.iter().map(one).collect::<Vec<_>>().join(" ")).collect()
}

fn inputs(abi: &dyn Abi, values: &[Value]) -> Vec<String> {
    places(abi, &abi.plan(&params(values), 32).unwrap().args)
}

fn result(abi: &dyn Abi, value: Value) -> (Plan, String) {
    let plan = abi.plan(&Signature { rets: vec![value], ..Signature::default() }, 32).unwrap();
    let place = places(abi, &plan.rets)[0].clone();
    (plan, place)
}

fn b(ty: Type) -> Value {
    Value::scalar(ty, FormalSpace::Param)
}

/// Observed in the machine code of ptxas 13.5 for sm_80.
#[test]
fn sm_follows_ptxas() {
    let sm = &abi::Sm;
    let (b8, b32, b64, b128) = (b(Type::B8), b(Type::B32), b(Type::B64), b(Type::B128));
    assert_eq!(inputs(sm, &[b32.clone(), b64.clone(), b32.clone()]), ["R4", "R6 R7", "R5"]);
    assert_eq!(inputs(sm, &[b32.clone(), b128, b32.clone()]), ["R4", "R8 R9 R10 R11", "R5"]);
    let fourteen = inputs(sm, &vec![b32.clone(); 14]);
    assert_eq!(fourteen[11..], ["R15", "[0]", "[4]"]);
    let mut eleven = vec![b32.clone(); 11];
    eleven.extend([b64.clone(), b32.clone()]);
    assert_eq!(inputs(sm, &eleven)[10..], ["R14", "[0]", "R15"]);
    assert_eq!(inputs(sm, &[b32.clone(), Value::bytes(16, 4), b32.clone()]), ["R4", "R5 R6 R7 R8", "R9"]);
    assert_eq!(inputs(sm, &[b32.clone(), Value::bytes(16, 8), b32.clone()]), ["R4", "R6 R7 R8 R9", "R5"]);
    assert_eq!(inputs(sm, &[b32.clone(), Value::bytes(16, 16), b32.clone()]), ["R4", "R8 R9 R10 R11", "R5"]);
    assert_eq!(inputs(sm, &[Value::bytes(52, 4), Value::bytes(64, 16)]), ["[0]", "[64]"]);
    let mut stack = vec![b32.clone(); 13];
    stack.extend([b8, b64, Value::bytes(12, 4)]);
    assert_eq!(inputs(sm, &stack)[12..], ["[0]", "[4]", "[8]", "[16]"]);
    assert_eq!(result(sm, Value::bytes(16, 4)).1, "R4 R5 R6 R7");
    assert_eq!(result(sm, Value::bytes(52, 4)).1, "behind R4");
}

/// From the tables of the AMD64 supplement, section 3.2.3.
#[test]
fn sysv_follows_the_supplement() {
    let c = &abi::SysV;
    let (int, double) = (b(Type::S32), b(Type::F64));
    let mixed = [int.clone(), double.clone(), Value::bytes(12, 4), Value::bytes(24, 8), b(Type::F32), b(Type::S64)];
    assert_eq!(inputs(c, &mixed), ["rdi", "xmm0", "rsi rdx", "[0]", "xmm1", "rcx"]);
    // Two eightbytes do not split between the last register and the stack; what follows may still take the register.
    let mut crowded = vec![int.clone(); 5];
    crowded.extend([Value::bytes(16, 8), int.clone(), int]);
    assert_eq!(inputs(c, &crowded)[5..], ["[0]", "r9", "[16]"]);
    assert_eq!(result(c, Value::bytes(16, 8)).1, "rax rdx");
    assert_eq!(result(c, double).1, "xmm0");
    let (plan, place) = result(c, Value::bytes(17, 1));
    assert_eq!(place, "behind rdi");
    assert_eq!(plan.args.len(), 0);
}

#[test]
fn simd_keeps_uniform_values_scalar() {
    let uniform = Value { varying: false, ..b(Type::U64) };
    let float4 = Value { vector: 4, size: 16, align: 16, ..Value::scalar(Type::F32, FormalSpace::Reg) };
    let found = inputs(&abi::Simd, &[uniform, b(Type::F32), Value::bytes(12, 4), Value::bytes(100, 4), float4]);
    assert_eq!(found, ["S0", "V0", "V1 V2 V3", "[0]", "V4 V5 V6 V7"]);
}

#[test]
fn legacy_returns_several_values_and_has_no_stack() {
    let sig = Signature { rets: vec![b(Type::B32), b(Type::B64)], ..Signature::default() };
    let plan = abi::Legacy.plan(&sig, 32).unwrap();
    assert_eq!(places(&abi::Legacy, &plan.rets), ["R0", "R1 R2"]);
    assert!(abi::Legacy.plan(&params(&[Value::bytes(600, 4)]), 32).is_err());
    for abi in [&abi::Sm as &dyn Abi, &abi::SysV] {
        assert!(abi.plan(&sig, 32).is_err(), "{}", abi.name());
    }
}
