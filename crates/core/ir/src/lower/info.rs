//! Properties of variants that lowering needs, looked up once per body instead of once per instruction.

use super::constant::immediate_type;
use crate::MemSpace;
use margay_isa::{Count, Effect, Mod, Opcode, Opnd, Role, Type, Variant, Word};

/// A variant's operands and effects.
pub(super) struct Info {
    /// Operands that the instruction takes, in order.
    pub operands: Box<[Slot]>,
    /// Writes the carry flag (`.cc`).
    pub sets_carry: bool,
    /// Reads the carry flag (section 9.7.2).
    pub reads_carry: bool,
    /// A call.
    pub is_call: bool,
    /// The first state space among its modifiers.
    pub space: Option<Named>,
}

/// An operand.
pub(super) struct Slot {
    /// Its row.
    pub opnd: &'static Opnd,
    /// The type that an immediate takes there.
    pub ty: Type,
    /// The type of a vector's first element, where it is another.
    pub lead: Option<Type>,
    /// Elements of a vector beyond these are ignored.
    pub most: Option<usize>,
    /// Operands of a bracketed group.
    pub inner: Box<[Slot]>,
}

/// A state space as a modifier names it.
#[derive(Clone, Copy)]
pub(super) enum Named {
    /// Decided.
    Is(MemSpace),
    /// `.param` without sub-qualifier: the function's kind and the address decide.
    Param,
}

impl Info {
    pub fn new(variant: &Variant) -> Info {
        Info {
            operands: variant.operands().map(|o| Slot::new(variant, o)).collect(),
            sets_carry: variant.has(Mod::Cc),
            reads_carry: matches!(variant.op, Opcode::Addc | Opcode::Subc | Opcode::Madc),
            is_call: variant.op.row().effect == Effect::Call,
            space: variant.words.iter().find_map(|w| match w {
                Word::Mod(m) => named(*m),
                Word::Type(_) => None,
            }),
        }
    }
}

impl Slot {
    fn new(variant: &Variant, opnd: &'static Opnd) -> Slot {
        let inner = match opnd.role {
            Role::Group(inner) => variant.inside(inner).map(|o| Slot::new(variant, o)).collect(),
            _ => Box::default(),
        };
        let lead = opnd.lead.map(|ty| immediate_type(variant, ty));
        let most = match opnd.count {
            Count::AtLeast(_) => variant.count(opnd).map(|n| n as usize),
            _ => None,
        };
        Slot { opnd, ty: immediate_type(variant, opnd.ty), lead, most, inner }
    }
}

fn named(m: Mod) -> Option<Named> {
    Some(Named::Is(match m {
        Mod::Const => MemSpace::Const,
        Mod::Global => MemSpace::Global,
        Mod::Local => MemSpace::Local,
        Mod::Shared | Mod::SharedCta => MemSpace::Shared,
        Mod::SharedCluster => MemSpace::SharedCluster,
        Mod::ParamEntry => MemSpace::KernelParam,
        Mod::ParamFunc => MemSpace::Local,
        Mod::Param => return Some(Named::Param),
        _ => return None,
    }))
}
