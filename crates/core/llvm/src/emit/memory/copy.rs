//! `cp.async` of 4, 8 or 16 bytes per thread (manual, section 9.7.9.25.3), done at issue, which no program can observe.

use crate::emit::{
    function::{Emitter, Result},
    memory::address::Address,
    text::{Elem, Ty, Val, constant, int},
};
use margay_ir::{Inst, MemSpace, Operand};
use margay_isa::{Mod, Opcode, Variant, name};
use std::fmt::Write;

/// Whether an instruction only orders, awaits or prefetches: no-ops, since copies are done at issue.
pub(in crate::emit) fn is_idle(v: &Variant) -> bool {
    let idle = [Mod::CommitGroup, Mod::WaitGroup, Mod::WaitAll, Mod::Prefetch];
    v.op == Opcode::Cp && idle.iter().any(|m| v.has(*m))
}

/// Whether an instruction is a copy of 4, 8 or 16 bytes by each thread.
pub(in crate::emit) fn is_small(v: &Variant) -> bool {
    v.op == Opcode::Cp && v.has(Mod::Async) && ![Mod::Bulk, Mod::Mbarrier, Mod::Tensor].iter().any(|m| v.has(*m))
}

impl Emitter<'_> {
    /// Emits a copy for which [`is_small`] holds; `mask` holds the lanes that pass the guard.
    pub fn copy_small(&mut self, inst: &Inst, mask: Option<&Val>) -> Result<()> {
        let variant = self.func.variant(inst).clone();
        let srcs: Vec<Operand> = self.func.operands(inst.srcs).to_vec();
        let named = |name: &str| variant.operands().zip(&srcs).find(|(o, _)| o.name == name).map(|(_, s)| *s);
        let Some(Operand::Imm(size)) = named(name::CP_SIZE) else { return self.effect(inst) };
        let size = size as u32;
        // Lanes that read the source; the others write zeros.
        let reads = match (named(name::IGNORE_SRC), named(name::SRC_SIZE)) {
            (Some(ignores), _) => {
                let v = self.value(&ignores, Elem::I1)?;
                Some(self.w.op_const("xor", &v, 1))
            }
            // Compilers say so where all bytes come from the source.
            (None, Some(Operand::Imm(wanted))) if wanted == 0 || wanted >= size.into() => {
                (wanted == 0).then(|| constant(Ty::lanes(Elem::I1), 0))
            }
            (None, Some(wanted)) => {
                let v = self.value(&wanted, Elem::I32)?;
                let none = self.w.cmp("icmp eq", &v, &int(Elem::I32, 0));
                let all = self.w.cmp("icmp uge", &v, &int(Elem::I32, i128::from(size)));
                let plain = self.w.op("or", &none, &all);
                return self.whole_or_part(inst, mask, &plain, |e| e.copy_lanes(inst, &srcs, size, mask, Some(&all)));
            }
            _ => None,
        };
        self.copy_lanes(inst, &srcs, size, mask, reads.as_ref())
    }

    /// Emits `whole` if `plain` holds in all executing lanes; else the reference engine executes the instruction.
    fn whole_or_part(
        &mut self,
        inst: &Inst,
        mask: Option<&Val>,
        plain: &Val,
        whole: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let odd = self.w.op_const("xor", plain, 1);
        let odd = match self.lanes(mask) {
            Some(lanes) => self.w.op("and", &lanes, &odd),
            None => odd,
        };
        let odd = if odd.ty.vector { self.any(&odd) } else { odd };
        let [part, all, done] = ["copy.part", "copy.whole", "copied"].map(|l| self.w.label(l));
        self.w.branch_unlikely(&odd, &part, &all);
        let (part, all) = self.diamond([&part, &all, &done], |e| e.effect(inst), whole);
        part.and(all)
    }

    fn copy_lanes(
        &mut self,
        inst: &Inst,
        srcs: &[Operand],
        size: u32,
        mask: Option<&Val>,
        reads: Option<&Val>,
    ) -> Result<()> {
        let at = |space| Inst { space: Some(space), ..*inst };
        let readers = match (mask, reads) {
            (Some(m), Some(r)) => Some(self.w.op("and", m, r)),
            (m, r) => m.or(r).cloned(),
        };
        self.access(&at(MemSpace::Shared), &srcs[0], (size, true), mask, |e, to| {
            e.access(&at(MemSpace::Global), &srcs[1], (size, false), readers.as_ref(), |e, from| {
                e.copy_each((to, from), size, mask, reads);
                Ok(())
            })
        })
    }

    fn copy_each(&mut self, (to, from): (&Address, &Address), size: u32, mask: Option<&Val>, reads: Option<&Val>) {
        let (to, from, lanes) = (self.spread(to), self.spread(from), self.lane_bits(mask));
        let reads = match reads {
            Some(reads) => self.bits(reads),
            None => int(Elem::I32, -1),
        };
        self.w.declared.extend([text(size), whole_text(size)]);
        self.w.line(format_args!(
            "call void @margay.copy.{size}(<32 x i64> {to}, <32 x i64> {from}, i32 {lanes}, i32 {reads})"
        ));
    }
}

/// What a lane copies at once.
fn unit(size: u32) -> &'static str {
    match size {
        4 => "i32",
        8 => "i64",
        _ => "<4 x i32>",
    }
}

/// The helper that copies in all lanes. Lanes come in order, so that the last one wins where several write to one place.
fn whole_text(size: u32) -> String {
    let ty = unit(size);
    let mut text =
        format!("define internal void @margay.copy.all.{size}(<32 x i64> %to, <32 x i64> %from) #1 {{\nentry:\n");
    for lane in 0..32 {
        let _ = writeln!(
            text,
            "  %to{lane} = extractelement <32 x i64> %to, i32 {lane}\n  %target{lane} = inttoptr i64 %to{lane} to ptr\n  \
             %from{lane} = extractelement <32 x i64> %from, i32 {lane}\n  %source{lane} = inttoptr i64 %from{lane} to ptr\n  \
             %v{lane} = load {ty}, ptr %source{lane}, align {size}\n  store {ty} %v{lane}, ptr %target{lane}, align {size}"
        );
    }
    text + "  ret void\n}"
}

/// The helper that copies, or writes zeros, in the lanes of a mask.
fn text(size: u32) -> String {
    let ty = unit(size);
    format!(
        "define internal void @margay.copy.{size}(<32 x i64> %to, <32 x i64> %from, i32 %mask, i32 %reads) #1 {{
entry:
  %both = and i32 %mask, %reads
  %whole = icmp eq i32 %both, -1
  br i1 %whole, label %all, label %parts
all:
  call void @margay.copy.all.{size}(<32 x i64> %to, <32 x i64> %from)
  ret void
parts:
  %nothing = alloca {ty}, align {size}
  store {ty} zeroinitializer, ptr %nothing, align {size}
  %tos = alloca <32 x i64>, align 64
  store volatile <32 x i64> %to, ptr %tos, align 64
  %froms = alloca <32 x i64>, align 64
  store volatile <32 x i64> %from, ptr %froms, align 64
  %some = icmp ne i32 %mask, 0
  br i1 %some, label %each, label %end
each:
  %left = phi i32 [ %mask, %parts ], [ %rest, %each ]
  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %to.p = getelementptr i64, ptr %tos, i32 %lane
  %to.a = load i64, ptr %to.p, align 8
  %target = inttoptr i64 %to.a to ptr
  %from.p = getelementptr i64, ptr %froms, i32 %lane
  %from.a = load i64, ptr %from.p, align 8
  %there = inttoptr i64 %from.a to ptr
  %shifted = lshr i32 %reads, %lane
  %wants = trunc i32 %shifted to i1
  %source = select i1 %wants, ptr %there, ptr %nothing
  %v = load {ty}, ptr %source, align {size}
  store {ty} %v, ptr %target, align {size}
  %more = icmp ne i32 %rest, 0
  br i1 %more, label %each, label %end
end:
  ret void
}}
declare i32 @llvm.cttz.i32(i32, i1)"
    )
}
