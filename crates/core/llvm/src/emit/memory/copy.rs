//! `cp.async` of 4, 8 or 16 bytes per thread (manual, section 9.7.9.25.3), done at issue, which no program can observe.

use crate::emit::{
    function::{Emitter, Result},
    memory::address::Address,
    text::{Elem, Ty, Val, constant, fill, int},
};
use margay_ir::{Inst, MemSpace, Operand};
use margay_isa::{Mod, Opcode, Variant, name};

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

/// The helper that copies in all lanes.
fn whole_text(size: u32) -> String {
    let ty = unit(size);
    let lane = |lane: u32| fill(include_str!("copy/lane.ll"), &[("lane", &lane), ("ty", &ty), ("size", &size)]);
    let lanes: String = (0..32).map(lane).collect();
    fill(include_str!("copy/all.ll"), &[("size", &size), ("lanes", &lanes)])
}

/// The helper that copies, or writes zeros, in the lanes of a mask.
fn text(size: u32) -> String {
    fill(include_str!("copy/some.ll"), &[("ty", &unit(size)), ("size", &size)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::assert_names;

    #[test]
    fn helpers_define_what_they_use() {
        for size in [4, 8, 16] {
            assert_names(&text(size));
            assert_names(&whole_text(size));
        }
    }
}
