//! Loads and stores of consecutive elements, in pieces.

use super::{
    Form, Function, Item, LANES, Op, PIECES,
    text::{aligned, alignment, commas, divided, is_name, mangled, piece_name, piece_type, size, typed},
};
use std::fmt::Write;

/// The operands of a masked access.
struct Masked<'t> {
    pointer: &'t str,
    align: usize,
    /// Attributes and metadata behind the call.
    after: &'t str,
}

/// Splits the arguments of a call, and what follows them.
fn arguments(text: &str) -> Option<(Vec<&str>, &str)> {
    let (_, rest) = text.split_once('(')?;
    let close = rest.rfind(')')?;
    Some((commas(&rest[..close]), &rest[close + 1..]))
}

/// A pointer argument with its alignment, which is an attribute since LLVM 22; before, it was an argument.
fn aligned_pointer<'t>(argument: &'t str, after: &'t str) -> Option<Masked<'t>> {
    let (attributes, pointer) = argument.rsplit_once(' ')?;
    let align = attributes.rsplit_once("align ").and_then(|(_, align)| align.trim().parse().ok()).unwrap_or(1);
    Some(Masked { pointer, align, after })
}

/// The pointer of piece `k` of an access.
fn piece_pointer(before: &mut String, k: usize, name: &str, pointer: &str, elem: &str) -> String {
    if k == 0 {
        return pointer.to_string();
    }
    let place = piece_name('p', k, name);
    _ = writeln!(before, "  {place} = getelementptr i8, ptr {pointer}, i64 {}", k * size(elem));
    place
}

impl Function {
    pub(super) fn load(&mut self, name: &str, rest: &str) -> Option<()> {
        let parts = commas(rest);
        let elem = divided(parts.first()?)?;
        let pointer = parts.get(1)?.strip_prefix("ptr ")?;
        let (align, more) = alignment(&parts[2..])?;
        let pieces = self.pieces(|_, k, before| {
            let from = piece_pointer(before, k, name, pointer, elem);
            let (piece, align) = (piece_name('n', k, name), aligned(align, k * size(elem)));
            Some(format!("{piece} = load {}, ptr {from}, align {align}{more}", piece_type(elem)))
        })?;
        self.whole.insert(pointer.into());
        self.operation(name, Form::Elements, elem, pieces);
        Some(())
    }

    pub(super) fn store(&mut self, rest: &str) -> Option<()> {
        let parts = commas(rest);
        let (ty, value) = typed(parts.first()?)?;
        // Constants may fill memory that is not of lanes.
        let elem = divided(ty).filter(|_| self.count == PIECES || is_name(value))?;
        let pointer = parts.get(1)?.strip_prefix("ptr ")?;
        let (align, more) = alignment(&parts[2..])?;
        let name = self.store_name();
        let pieces = self.pieces(|s, k, before| {
            let to = piece_pointer(before, k, &name, pointer, elem);
            let (value, align) = (s.elements(value, elem, k)?, aligned(align, k * size(elem)));
            Some(format!("store {} {value}, ptr {to}, align {align}{more}", piece_type(elem)))
        })?;
        self.stored(pointer, pieces);
        // A shuffle may read the lanes of pieces that are not computed.
        let mut rest = String::new();
        for k in self.count..PIECES {
            let to = piece_pointer(&mut rest, k, &name, pointer, elem);
            let align = aligned(align, k * size(elem));
            _ = writeln!(rest, "  store {} zeroinitializer, ptr {to}, align {align}{more}", piece_type(elem));
        }
        if !rest.is_empty() {
            self.items.push(Item::Other(rest, None));
        }
        Some(())
    }

    pub(super) fn masked_load(&mut self, name: &str, text: &str) -> Option<()> {
        let at = text.find("<32 x ")?;
        let elem = divided(typed(&text[at..])?.0)?;
        let (arguments, after) = arguments(text)?;
        let [pointer, mask, other] = arguments[..] else { return None };
        let Masked { pointer, align, after } = aligned_pointer(pointer, after)?;
        let ((_, mask), (_, other)) = (typed(mask)?, typed(other)?);
        let (ty, bits) = (piece_type(elem), piece_type("i1"));
        let function = format!("@llvm.masked.load.v{LANES}{}.p0", mangled(elem));
        let pieces = self.pieces(|s, k, before| {
            let from = piece_pointer(before, k, name, pointer, elem);
            let (mask, other) = (s.bits(mask, k, before)?, s.elements(other, elem, k)?);
            let (piece, align) = (piece_name('n', k, name), aligned(align, k * size(elem)));
            Some(format!(
                "{piece} = call {ty} {function}(ptr align {align} {from}, {bits} {mask}, {ty} {other}){after}"
            ))
        })?;
        self.whole.insert(pointer.into());
        self.declared.insert(format!("declare {ty} {function}(ptr, {bits}, {ty})"));
        self.operation(name, Form::Elements, elem, pieces);
        Some(())
    }

    pub(super) fn masked_store(&mut self, text: &str) -> Option<()> {
        let (arguments, after) = arguments(text)?;
        let [value, pointer, mask] = arguments[..] else { return None };
        let ((ty, value), (_, mask)) = (typed(value)?, typed(mask)?);
        let elem = divided(ty)?;
        let Masked { pointer, align, after } = aligned_pointer(pointer, after)?;
        let (ty, bits) = (piece_type(elem), piece_type("i1"));
        let function = format!("@llvm.masked.store.v{LANES}{}.p0", mangled(elem));
        let name = self.store_name();
        let pieces = self.pieces(|s, k, before| {
            let to = piece_pointer(before, k, &name, pointer, elem);
            let (mask, value) = (s.bits(mask, k, before)?, s.elements(value, elem, k)?);
            let align = aligned(align, k * size(elem));
            Some(format!("call void {function}({ty} {value}, ptr align {align} {to}, {bits} {mask}){after}"))
        })?;
        self.declared.insert(format!("declare void {function}({ty}, ptr, {bits})"));
        self.stored(pointer, pieces);
        Some(())
    }

    /// A name for the addresses of a store, which has no result.
    fn store_name(&mut self) -> String {
        self.stores += 1;
        format!("%store{}", self.stores)
    }

    /// Adds a store, after all that precedes it: its pieces may overlap with what other pieces load.
    fn stored(&mut self, pointer: &str, pieces: [String; PIECES]) {
        self.whole.insert(pointer.into());
        self.flush();
        self.items.push(Item::Run(vec![Op { name: String::new(), pieces }]));
    }
}
