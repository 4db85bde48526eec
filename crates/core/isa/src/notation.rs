//! A form in the manual's notation: `add{.rnd}{.ftz}{.sat}.f32 d, a, b`.

use crate::{Count, Form, Op, Opnd, Role, Slot, Type, Word};

impl Op {
    /// One of its forms in the manual's notation: `{.a|.b}` is optional, and one of `<.a|.b>` is required.
    pub fn notation(&self, form: &Form) -> String {
        let modifiers: String = form.slots.iter().map(slot).collect();
        let operands: Vec<String> = form.operands.iter().map(operand).collect();
        format!("{}{modifiers} {};", self.name, operands.join(", ")).replace(" ;", ";")
    }
}

fn slot(s: &Slot) -> String {
    let words = |words: Vec<Word>| words.iter().map(|w| format!(".{}", w.name())).collect::<Vec<_>>();
    let types = |of: &[Type]| words(of.iter().map(|t| Word::Type(*t)).collect());
    let one_of = |names: Vec<String>| match &names[..] {
        [one] => one.clone(),
        many => format!("<{}>", many.join("|")),
    };
    match s {
        Slot::One(m) => format!(".{}", m.name()),
        Slot::Req(c) => one_of(words(c.of.iter().map(|m| Word::Mod(*m)).collect())),
        Slot::Opt(c) => format!("{{{}}}", words(c.of.iter().map(|m| Word::Mod(*m)).collect()).join("|")),
        Slot::Type(_, of) => one_of(types(of)),
        Slot::OptType(_, of) => format!("{{{}}}", types(of).join("|")),
    }
}

fn operand(o: &Opnd) -> String {
    let name = match o.role {
        Role::Addr => format!("[{}]", o.name),
        Role::Group(parts) => format!("[{}]", parts.iter().map(operand).collect::<Vec<_>>().join(", ")),
        Role::Rets | Role::Args => format!("({}, ...)", o.name),
        _ => match o.count {
            Count::One => o.name.to_string(),
            _ => format!("{{{}, ...}}", o.name),
        },
    };
    let name = if o.pair.is_some() { format!("{name}{{|q}}") } else { name };
    let name = if o.not { format!("{{!}}{name}") } else { name };
    if o.optional { format!("{{{name}}}") } else { name }
}
