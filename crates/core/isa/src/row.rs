//! The vocabulary of a row: slots for modifiers, operands ([`Opnd`]), availability, effect.
//!
//! A *form* is one line of the manual's grammar, read left to right:
//! `add{.rnd}{.ftz}{.sat}.f32 d, a, b` is
//! `form(&[opt(&RND), opt(&FTZ), opt(&SAT), T.of(F32)], &[d(T), a(T), a(T)])`.

use crate::{Class, Mod, Need, Opnd, Rule, Since, Target, Type, Until, Version};

/// A type variable of a form: bound by a type slot, used by operands. `cvt.T.U`, `mma....T.U.V.W`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Var {
    T,
    U,
    V,
    W,
    X,
    Y,
}

/// How many type variables a form can have.
pub const VARS: usize = 6;

impl Var {
    /// A slot that takes one of these types and binds the variable.
    pub const fn of(self, types: &'static [Type]) -> Slot {
        Slot::Type(self, types)
    }
}

/// One place in the sequence of modifiers of a form.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    /// Exactly this word.
    One(Mod),
    /// One of a class, or nothing.
    Opt(&'static Class),
    /// One of a class.
    Req(&'static Class),
    /// A type; binds a variable.
    Type(Var, &'static [Type]),
    /// An optional type.
    OptType(Var, &'static [Type]),
}
/// The effect of a row, which determines what executes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// A function of its operands' bits, lane by lane.
    Pure,
    /// A function of its operands and of the machine, lane by lane: address windows, ranks in a cluster, cache policies, handles.
    /// It touches no memory.
    Machine,
    /// Reads or writes memory, or orders accesses.
    Memory,
    /// Changes which instruction comes next.
    Control,
    /// Calls a function.
    Call,
    /// Needs the other lanes of the warp, or the CTA, or reads machine state.
    Warp,
}

/// The error bound of an approximate form.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Accuracy {
    /// Units in the last place.
    Ulp(f32),
    /// Relative error at most 2 to this power.
    Relative(f32),
    /// Absolute error at most 2 to this power.
    Absolute(f32),
}

/// One form of an instruction: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Modifiers in the manual's order.
    pub slots: &'static [Slot],
    /// How many of the first slots ptxas reads as part of the opcode: they come first, in this order (`mul.lo`, `cvta.to`).
    pub fixed: u8,
    /// How many of those slots ptxas reads as one word with the opcode, without spaces between them.
    pub glued: u8,
    /// Operands in order.
    pub operands: &'static [Opnd],
    /// Since when.
    pub since: Since,
    /// The version and target from which it is rejected (`shfl` without `.sync`).
    pub until: Option<Until>,
    /// Alternatives that were added later.
    pub needs: &'static [Need],
    /// Cross-instruction rules.
    pub rules: &'static [Rule],
    /// Error bound of an approximate form.
    pub accuracy: Option<Accuracy>,
    /// The manual's section, if different from the opcode's ([`Op::section`]).
    pub section: Option<&'static str>,
}

/// A form available everywhere; the methods below narrow it.
pub const fn form(slots: &'static [Slot], operands: &'static [Opnd]) -> Form {
    Form {
        slots,
        fixed: 0,
        glued: 0,
        operands,
        since: Since::ALWAYS,
        until: None,
        needs: &[],
        rules: &[],
        accuracy: None,
        section: None,
    }
}

impl Form {
    /// Exists since PTX ISA `major.minor`.
    pub const fn ptx(mut self, major: u16, minor: u16) -> Form {
        self.since.ptx = Version::new(major, minor);
        self
    }

    /// Needs `sm_NN` or higher.
    pub const fn sm(mut self, sm: u16) -> Form {
        self.since.sm = sm;
        self
    }

    /// Needs one of these specific targets.
    pub const fn targets(mut self, only: &'static [Target]) -> Form {
        self.since.only = only;
        self
    }

    /// Also exists with another pair of version and target.
    pub const fn or(mut self, or: &'static [Since]) -> Form {
        self.since.or = or;
        self
    }

    /// Rejected since PTX ISA `major.minor` for targets from `sm_NN`.
    pub const fn until(mut self, major: u16, minor: u16, sm: u16) -> Form {
        self.until = Some(Until { ptx: Version::new(major, minor), sm });
        self
    }

    /// The first `slots` slots belong to the opcode.
    pub const fn fixed(mut self, slots: u8) -> Form {
        self.fixed = slots;
        self.glued = slots;
        self
    }

    /// Spaces are allowed after the first `slots` of the slots that belong to the opcode.
    pub const fn glued(mut self, slots: u8) -> Form {
        self.glued = slots;
        self
    }

    /// Alternatives with requirements of their own.
    pub const fn only(mut self, needs: &'static [Need]) -> Form {
        self.needs = needs;
        self
    }

    /// Named rules.
    pub const fn rules(mut self, rules: &'static [Rule]) -> Form {
        self.rules = rules;
        self
    }

    /// Is described in a different section than the opcode.
    pub const fn section(mut self, section: &'static str) -> Form {
        self.section = Some(section);
        self
    }

    /// Largest error in units of the last place.
    pub const fn ulp(mut self, ulp: f32) -> Form {
        self.accuracy = Some(Accuracy::Ulp(ulp));
        self
    }

    /// Largest relative error, as its base-2 logarithm.
    pub const fn relative(mut self, log2: f32) -> Form {
        self.accuracy = Some(Accuracy::Relative(log2));
        self
    }

    /// Largest absolute error, as its base-2 logarithm; the section gives the range.
    pub const fn absolute(mut self, log2: f32) -> Form {
        self.accuracy = Some(Accuracy::Absolute(log2));
        self
    }
}

/// The forms of an opcode that one section of the manual describes.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The section.
    pub section: &'static str,
    /// Its forms.
    pub forms: &'static [Form],
}

/// Forms of one section; `joined!` joins those of an opcode.
pub const fn rows(section: &'static str, forms: &'static [Form]) -> Rows {
    Rows { section, forms }
}

/// The number of forms in all these sections.
pub const fn total(sections: &[Rows]) -> usize {
    let (mut n, mut i) = (0, 0);
    while i < sections.len() {
        n += sections[i].forms.len();
        i += 1;
    }
    n
}

/// The forms of all these sections in order, each with its section. `N` is their [`total`].
pub const fn flatten<const N: usize>(sections: &[Rows]) -> [Form; N] {
    let mut all = [form(&[], &[]); N];
    let (mut n, mut i) = (0, 0);
    while i < sections.len() {
        let mut j = 0;
        while j < sections[i].forms.len() {
            all[n] = sections[i].forms[j].section(sections[i].section);
            n += 1;
            j += 1;
        }
        i += 1;
    }
    all
}

/// `joined!("add", Pure, "`d = a + b`", integer::ADD, float::ADD)`: an opcode whose forms are in several sections.
macro_rules! joined {
    ($name:literal, $effect:expr, $doc:literal, $($rows:expr),+ $(,)?) => {{
        static ROWS: &[$crate::Rows] = &[$($rows),+];
        static FORMS: [$crate::Form; $crate::total(ROWS)] = $crate::flatten(ROWS);
        $crate::op($name, ROWS[0].section, $effect, $doc, &FORMS)
    }};
}
pub(crate) use joined;

/// One opcode with its forms.
#[derive(Debug)]
pub struct Op {
    /// The word before the first dot.
    pub name: &'static str,
    /// The manual's section, e.g. `9.7.1.1`.
    pub section: &'static str,
    /// Who executes it.
    pub effect: Effect,
    /// One sentence.
    pub doc: &'static str,
    /// The forms, at least one.
    pub forms: &'static [Form],
}

/// An opcode; one without forms is a mistake in the table and does not compile.
pub const fn op(
    name: &'static str,
    section: &'static str,
    effect: Effect,
    doc: &'static str,
    forms: &'static [Form],
) -> Op {
    assert!(!forms.is_empty(), "an opcode has at least one form");
    Op { name, section, effect, doc, forms }
}

/// Shorthand for a [`Slot::One`].
pub const fn one(m: Mod) -> Slot {
    Slot::One(m)
}

/// Shorthand for a [`Slot::Opt`].
pub const fn opt(class: &'static Class) -> Slot {
    Slot::Opt(class)
}

/// Shorthand for a [`Slot::Req`].
pub const fn req(class: &'static Class) -> Slot {
    Slot::Req(class)
}
