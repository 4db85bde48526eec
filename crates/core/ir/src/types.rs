//! The type of each operand of an instruction, including constants and sinks.

use crate::{Func, Inst, Operand, lower::immediate_type};
use margay_isa::{Count, Mod, Opnd, Role, Type, Variant};
use margay_syntax::tree::List;

/// Types of destinations and sources, in the order of [`Inst::dsts`] and [`Inst::srcs`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperandTypes {
    /// Of destinations.
    pub dsts: Vec<Type>,
    /// Of sources; of memory operands `.b64`.
    pub srcs: Vec<Type>,
}

/// The types of an instruction's operands: those of registers are their own, the others come from the row, stored by lowering
/// ([`Func::types`]).
pub fn operand_types(func: &Func, inst: &Inst) -> OperandTypes {
    let of = |list: List<Operand>| {
        let one = |(operand, ty): (&Operand, &Type)| match operand {
            Operand::Reg(r) | Operand::Not(r) => func.regs[r.0 as usize],
            Operand::Mem(..) => Type::B64,
            _ => *ty,
        };
        func.operands(list).iter().zip(&func.types[list.range()]).map(one).collect()
    };
    OperandTypes { dsts: of(inst.dsts), srcs: of(inst.srcs) }
}

/// Types of all operands of a function, from the rows of its instructions.
pub(crate) fn row_types(func: &Func) -> Vec<Type> {
    let mut types = vec![Type::B32; func.operands.len()];
    for inst in &func.insts {
        let variant = func.variant(inst);
        let given = [inst.dsts.range().len(), inst.srcs.range().len()];
        let mut walk = Walk { variant, dsts: Vec::new(), partners: Vec::new(), srcs: Vec::new(), given };
        let opnds: Vec<&'static Opnd> = variant.operands().collect();
        walk.walk(&opnds);
        walk.dsts.append(&mut walk.partners);
        for (list, found) in [(inst.dsts, walk.dsts), (inst.srcs, walk.srcs)] {
            types[list.range()].iter_mut().zip(found).for_each(|(ty, found)| *ty = found);
        }
    }
    types
}

struct Walk<'v> {
    variant: &'v Variant,
    dsts: Vec<Type>,
    partners: Vec<Type>,
    srcs: Vec<Type>,
    given: [usize; 2],
}

impl Walk<'_> {
    fn walk(&mut self, opnds: &[&'static Opnd]) {
        for o in opnds {
            let ty = immediate_type(self.variant, o.ty);
            match o.role {
                Role::Group(inner) => self.walk(&self.variant.inside(inner).collect::<Vec<_>>()),
                Role::Dst => {
                    let n = self.count(o, 0);
                    self.dsts.extend(std::iter::repeat_n(part(o, ty, n), n));
                    if let Some(pair) = o.pair {
                        self.partners.push(immediate_type(self.variant, pair));
                    }
                }
                Role::Addr => self.srcs.push(Type::B64),
                _ => {
                    let n = self.count(o, 1);
                    self.srcs.extend(std::iter::repeat_n(part(o, ty, n), n));
                }
            }
            if o.parts.is_some() || o.neg {
                self.srcs.push(Type::B32);
            }
        }
    }

    /// Registers of an operand; where the row leaves that open, as many as there are more operands than the row's others.
    fn count(&self, o: &Opnd, side: usize) -> usize {
        match self.variant.count(o) {
            Some(n) => n as usize,
            None => {
                let others =
                    self.variant.operands().filter(|other| (other.role == Role::Dst) == (side == 0)).count() - 1;
                // A carry flag does not occur in rows of open counts.
                debug_assert!(!self.variant.has(Mod::Cc));
                self.given[side].saturating_sub(others).max(1)
            }
        }
    }
}

/// The type of one element of an operand that packs a value of type `ty`.
fn part(o: &Opnd, ty: Type, n: usize) -> Type {
    if o.count == Count::Free && n > 1 { Type::of_bits(ty.bits() / n as u32) } else { ty }
}
