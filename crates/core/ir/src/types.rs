//! Types of an instruction's operands, one by one: what a constant is splatted to, what a sink would have held.

use crate::{Func, Inst, Operand, lower::immediate_type};
use margay_isa::{Count, Mod, Opnd, Role, Type, Variant};

/// Types of destinations and sources, in the order of [`Inst::dsts`] and [`Inst::srcs`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperandTypes {
    /// Of destinations.
    pub dsts: Vec<Type>,
    /// Of sources; of memory operands `.b64`.
    pub srcs: Vec<Type>,
}

/// What the row says of types; registers have their own.
pub fn operand_types(func: &Func, inst: &Inst) -> OperandTypes {
    let variant = func.variant(inst);
    let (dsts, srcs) = (func.operands(inst.dsts), func.operands(inst.srcs));
    let mut walk =
        Walk { variant, dsts: Vec::new(), partners: Vec::new(), srcs: Vec::new(), given: [dsts.len(), srcs.len()] };
    let opnds: Vec<&'static Opnd> = variant.operands().collect();
    walk.walk(&opnds);
    let mut types = [walk.dsts, walk.srcs];
    types[0].append(&mut walk.partners);
    let fallback = variant.t();
    let fix = |types: &mut Vec<Type>, operands: &[Operand]| {
        types.resize(operands.len(), if operands.len() > types.len() { Type::B32 } else { fallback });
        for (ty, operand) in types.iter_mut().zip(operands) {
            match operand {
                Operand::Reg(r) | Operand::Not(r) => *ty = func.regs[r.0 as usize],
                Operand::Mem(..) => *ty = Type::B64,
                _ => {}
            }
        }
    };
    let [mut d, mut s] = types;
    fix(&mut d, dsts);
    fix(&mut s, srcs);
    OperandTypes { dsts: d, srcs: s }
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
