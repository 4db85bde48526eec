//! What lowering makes of each construct: control flow, operands, spaces, constants, calls, old PTX.

use crate::common::{expect, lines, module, program};
use margay_ir::{Arg, Builtin, FormalHome, FrameRole, LowerOptions, MemSpace, Operand, Terminator, VReg};
use margay_isa::{Space, Type};

#[test]
fn guarded_jumps_become_branches_and_dead_blocks_are_removed() {
    let ir = module(
        ".func f(.param .b32 n) {
            .reg .b32 %r<3>; .reg .pred %p;
            ld.param.b32 %r1, [n];
            setp.eq.u32 %p, %r1, 0;
            @%p ret;
            setp.gt.u32 %p, %r1, 7;
            @!%p bra.uni SMALL;
            @%p add.u32 %r1, %r1, 1;
            bra END;
            mov.u32 %r2, 1;   // nobody comes here
         SMALL:
            mov.u32 %r2, 2;
            @%p exit;
         END:
            add.u32 %r1, %r1, %r2;
        }",
    );
    let f = &ir.funcs[0];
    assert!(!lines(&ir, "f").iter().any(|l| l.contains("%r2 = mov.u32 1")));
    assert!(matches!(f.blocks[0].term, Terminator::Branch { negated: false, uniform: false, .. }));
    let rets = f.blocks.iter().filter(|b| b.term == Terminator::Ret).count();
    assert_eq!(rets, 2, "the guarded one and the end of the body");
    assert_eq!(f.blocks.iter().filter(|b| b.term == Terminator::Exit).count(), 1);
    expect(&ir, "f", &["@%p'2 %r1 = add.u32 %r1, 1"]);
    assert!(lines(&ir, "f").iter().any(|l| l.starts_with("branch.uni !%p")));
}

#[test]
fn a_table_of_targets_is_a_switch() {
    let ir = module(
        ".func f(.reg .b32 i) {
            .reg .b32 %r;
         T: .branchtargets A, B, A;
            brx.idx i, T;
         A: mov.b32 %r, 1; ret;
         B: mov.b32 %r, 2; ret;
        }",
    );
    let Terminator::Switch { targets, index, .. } = &ir.funcs[0].blocks[0].term else { panic!() };
    assert_eq!((targets.len(), targets[0]), (3, targets[2]));
    assert_eq!(*index, Operand::Reg(VReg(0)));
}

#[test]
fn vectors_become_scalars() {
    let ir = module(
        ".func f(.param .b64 a) {
            .reg .b64 %a; .reg .v4 .f32 %v; .reg .f32 %x, %y; .reg .b64 %d; .reg .b32 %l, %h;
            ld.param.b64 %a, [a];
            ld.global.v4.f32 %v, [%a+16];
            ld.global.v2.f32 {%x, %y}, [%a];
            st.global.v4.f32 [%a], {%x, %v.y, %y, %v.w};
            mov.b64 {%l, %h}, %d;
            mov.b64 %d, {%h, %l};
        }",
    );
    expect(
        &ir,
        "f",
        &[
            "%v.x, %v.y, %v.z, %v.w = ld.global.v4.f32 global[%a+16]",
            "%x, %y = ld.global.v2.f32 global[%a]",
            "st.global.v4.f32 global[%a], %x, %v.y, %y, %v.w",
            "%l, %h = mov.b64 %d",
            "%d = mov.b64 %h, %l",
        ],
    );
}

#[test]
fn the_carry_flag_is_a_register() {
    let ir = module(
        ".func f(.reg .b32 a, .reg .b32 b) {
            .reg .b32 %r<3>;
            add.cc.u32 %r0, a, b;
            addc.cc.u32 %r1, a, 0;
            addc.u32 %r2, b, 0;
        }",
    );
    expect(&ir, "f", &["%r0, cc = add.cc.u32 a, b", "%r1, cc'2 = addc.cc.u32 a, 0, cc", "%r2 = addc.u32 b, 0, cc'2"]);
    let cc = ir.funcs[0].reg_names.iter().position(|n| &**n == "cc").unwrap();
    assert_eq!(ir.funcs[0].regs[cc], Type::Pred);
}

#[test]
fn constants_are_bits_of_their_type() {
    let ir = module(
        ".func f() {
            .reg .b16 %h; .reg .b32 %r; .reg .b64 %d; .reg .f32 %f; .reg .f64 %g; .reg .pred %p;
            add.s16 %h, %h, -1;
            mov.u32 %r, -2;
            mul.wide.u32 %d, %r, 0xFFFFFFFF;
            mov.f32 %f, 0.1;
            add.f32 %f, %f, 0f40000000;
            mov.f64 %g, 1.5;
            mov.pred %p, 2;
            shl.b64 %d, %d, 40;
        }",
    );
    let last = ["0xffff", "0xfffffffe", "0xffffffff", "0x3dcccccd", "0x40000000", "0x3ff8000000000000", "1", "0x28"];
    let body: Vec<String> = lines(&ir, "f").into_iter().filter(|l| l.contains(" = ")).collect();
    for (line, bits) in body.iter().zip(last) {
        assert!(line.ends_with(&format!(" {bits}")), "{line}: {bits}");
    }
}

#[test]
fn parameters_have_their_spaces() {
    let ir = module(
        ".func (.param .b32 r) f(.param .align 8 .b8 a[16], .reg .b64 p) {
            .reg .b64 %a; .reg .b32 %r;
            ld.param.b32 %r, [a+4];
            mov.b64 %a, a;
            ld.local.b32 %r, [%a];
            ld.param.b32 %r, [%a+8];
            ld.param::entry.b32 %r, [p];
            st.param.b32 [r], %r;
            ret;
        }
        .entry k(.param .b32 n, .param .b64 q, .param .align 16 .b8 s[20]) {
            .reg .b64 %a; .reg .b32 %r;
            ld.param.b32 %r, [s+8];
            ld.param.b64 %a, [q];
            mov.b64 %a, s;
            ld.param.b32 %r, [%a+4];
            cvta.param.u64 %a, %a;
            ld.b32 %r, [%a];
        }",
    );
    expect(
        &ir,
        "f",
        &[
            "%r = ld.param.b32 local[f1+4]",
            "%a = mov.b64 &f1",
            "%r'2 = ld.local.b32 local[%a]",
            "%r'3 = ld.param.b32 local[%a+8]",
            "%r'4 = ld.param::entry.b32 param[p]",
            "st.param.b32 local[f0], %r'4",
        ],
    );
    expect(
        &ir,
        "k",
        &[
            "%r = ld.param.b32 param[block+24]",
            "%a = ld.param.b64 param[block+8]",
            "%a'2 = mov.b64 &param+16",
            "%r'2 = ld.param.b32 param[%a'2+4]",
            "%r'3 = ld.b32 generic[%a'3]",
        ],
    );
    let f = &ir.funcs[0];
    assert!(f.frame[1].address_taken && !f.frame[0].address_taken);
    assert_eq!((f.frame[0].role, f.frame[1].role), (FrameRole::Return(0), FrameRole::Formal(0)));
    let k = &ir.funcs[1];
    assert_eq!(k.params, [FormalHome::Kernel(0), FormalHome::Kernel(8), FormalHome::Kernel(16)]);
    let cvta = k.insts.iter().find(|i| k.variant(i).op == margay_isa::Opcode::Cvta).unwrap();
    assert_eq!(cvta.space, Some(MemSpace::KernelParam));
}

#[test]
fn calls_pass_values_and_variables_and_may_omit_them() {
    let ir = module(
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
        .func (.reg .b32 r) g(.reg .b32 a, .param .align 4 .b8 b[8], .param .f32 c, .param .align 8 .b8 rest[]) { mov.b32 r, a; ret; }
        .func f(.reg .b64 t) {
            .reg .b32 %r<4>; .reg .pred %p;
            .param .align 4 .b8 s[8];
            .param .b32 v;
         P: .callprototype (.param .b32 _) _ (.param .align 4 .b8 _[8]);
            @%p call (%r1), g, (7, s, 1.5);
            call.uni (_), g, (%r1, s, 0f3F800000);
            call (v), t, (s), P;
        }",
    );
    let f = ir.funcs.iter().find(|f| &*f.name == "f").unwrap();
    let (first, second, third) = (&f.calls[0], &f.calls[1], &f.calls[2]);
    assert_eq!(first.args[0], Arg::Values(vec![Operand::Imm(7)]));
    assert_eq!(first.args[2], Arg::Values(vec![Operand::Imm(0x3fc0_0000)]));
    assert_eq!(first.args[3], Arg::Omitted);
    assert!(matches!(first.args[1], Arg::Frame(id) if f.frame[id.0 as usize].role == FrameRole::Param));
    assert_eq!(second.rets, [Arg::Omitted]);
    assert!(second.uniform && !first.uniform);
    assert!(matches!(third.callee, margay_ir::Callee::Indirect(_, None)));
    assert!(matches!(third.rets[0], Arg::Frame(_)));
    let guarded = f.insts.iter().filter(|i| i.guard.is_some()).count();
    assert_eq!(guarded, 1, "a guarded call keeps its guard");
    assert_eq!(ir.funcs[0].builtin, Some(Builtin::Vprintf));
}

#[test]
fn variables_of_bodies_become_variables_of_the_program() {
    let ir = module(
        ".global .u32 table[2] = {1, 2};
        .func f() {
            .reg .b64 %a; .reg .b32 %r;
            .shared .align 8 .b8 tile[64];
            .local .align 4 .b8 scratch[12];
            { .local .b32 scratch; st.local.b32 [scratch], 1; }
            mov.u64 %a, table+4;
            mov.u64 %a, tile;
            st.shared.b32 [tile+8], %r;
            st.local.b32 [scratch+8], %r;
            mov.u64 %a, scratch;
        }",
    );
    let tile = ir.globals.iter().position(|g| &*g.name == "f::tile").unwrap();
    assert_eq!((ir.globals[tile].space, ir.globals[tile].size, ir.globals[tile].align), (Space::Shared, 64, 8));
    let f = &ir.funcs[0];
    assert_eq!(f.frame.iter().map(|v| v.size).collect::<Vec<_>>(), [12, 4]);
    expect(
        &ir,
        "f",
        &[
            "st.local.b32 local[f1], 1",
            "%a = mov.u64 &g0+4",
            &format!("%a'2 = mov.u64 &g{tile}"),
            &format!("st.shared.b32 shared[g{tile}+8], %r"),
            "st.local.b32 local[f0+8], %r",
            "%a'3 = mov.u64 &f0",
        ],
    );
}

#[test]
fn registers_of_module_scope_live_in_the_thread_block() {
    let text = ".version 2.3\n.target sm_20\n.address_size 64
        .reg .u32 G; .reg .pred Q; .local .u32 L[4];
        .func f() { .reg .u32 %z; add.u32 G, G, 1; setp.eq.u32 Q, G, 3; @Q mov.u32 G, 0; st.local.u32 [L+4], G; ret; }
        .entry k() { mov.u32 G, 5; call f, (); ret; }";
    let ir = program(&[text], &LowerOptions { kernel: Some("k"), relocatable: false }).unwrap();
    assert!(ir.thread_block >= 24 + 16 && ir.thread_block.is_multiple_of(16));
    let f = lines(&ir, "f");
    let count = |part: &str| f.iter().filter(|l| l.contains(part)).count();
    let (g, q) = ("local[0x10]", "local[0x14]");
    assert_eq!(count(&format!("= ld.local.b32 {g}")), 3, "G is read three times: {f:#?}");
    assert_eq!(count(&format!("= ld.local.b32 {q}")), 1, "Q is read once: {f:#?}");
    assert!(f.iter().any(|l| l.starts_with("@tmp") && l.contains(&format!("st.local.b32 {g}"))), "guarded: {f:#?}");
    assert_eq!((count("selp.b32 1, 0"), count("setp.ne.u32")), (1, 1), "predicates travel as words: {f:#?}");
    assert_eq!(count("st.local.u32 local[0x1c]"), 1, "L+4: {f:#?}");
}

#[test]
fn source_places_follow_loc() {
    let ir = module(
        ".file 1 \"k.cu\"
        .func f() {
            .reg .b32 %r;
            mov.b32 %r, 1;
            .loc 1 12 5
            mov.b32 %r, 2;
            ret;
        }",
    );
    let f = &ir.funcs[0];
    let at = |i: usize| f.places[f.insts[i].at as usize].loc;
    assert_eq!((at(0), at(1)), ((0, 0, 0), (1, 12, 5)));
    assert_eq!(f.source.files[&1].as_ref(), "k.cu");
}
