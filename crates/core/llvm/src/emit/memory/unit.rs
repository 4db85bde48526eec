//! How a thread's access is performed: in which units, and how strongly.
//!
//! The manual leaves the order of a vector's elements open (section 8.2.4), but every GPU moves up to 16 aligned bytes
//! of a thread at once, and device-wide algorithms rely on that to publish a value together with its state. A *unit* is
//! what is moved at once: a whole access, or each 16 bytes of it.
//!
//! A strong access is an LLVM atomic, since only those are single-copy atomic and coherent (section 8.10.5), and
//! volatile, so that a polling loop reloads and no accesses are merged. Its ordering is `monotonic`; acquire and
//! release are separate fences, which order the accesses of all lanes at once. 16 bytes are aligned vector moves where
//! the host has AVX, else `cmpxchg16b`.

use super::{
    PROGRAM,
    lanes::{Lane, lane_list, lane_loop},
    transpose::{Owner, Vectors},
};
use crate::emit::{
    function::Emitter,
    function::affine::{Row, rows},
    text::{Elem, Ty, Val, fill, int},
};
use margay_ir::{Inst, MemSpace};
use margay_isa::{Mod, Variant};

/// Whether lanes read or write memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Load,
    Store,
}

/// The lanes for which a helper accesses memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Active {
    All,
    /// Those of its argument `%mask`.
    Masked,
}

impl Active {
    /// Of an access with this mask, if it has one.
    pub(super) fn of(mask: Option<&Val>) -> Active {
        if mask.is_some() { Active::Masked } else { Active::All }
    }
}

/// How freely LLVM may transform an access.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Strength {
    /// In any way that a single thread cannot observe.
    Weak,
    /// Not at all (manual, section 8.4: `.relaxed`, `.acquire`, `.release`, `.volatile`, `.mmio`).
    Strong,
}

/// The strength of a load or store.
pub(super) fn strength(variant: &Variant) -> Strength {
    let strong = [Mod::Volatile, Mod::Acquire, Mod::Release, Mod::Relaxed, Mod::Mmio];
    if strong.iter().any(|m| variant.has(*m)) { Strength::Strong } else { Strength::Weak }
}

impl Strength {
    /// Suffix of helper names.
    pub(super) fn suffix(self) -> &'static str {
        if self == Strength::Strong { ".strong" } else { "" }
    }

    /// A load instruction; strong ones take integers only.
    pub(super) fn load(self, ty: &str, pointer: &str, align: u32) -> String {
        match self {
            Strength::Weak => format!("load {ty}, ptr {pointer}, align {align}"),
            Strength::Strong => format!("load atomic volatile {ty}, ptr {pointer} monotonic, align {align}"),
        }
    }

    /// A store instruction; strong ones take integers only.
    pub(super) fn store(self, ty: &str, value: &str, pointer: &str, align: u32) -> String {
        match self {
            Strength::Weak => format!("store {ty} {value}, ptr {pointer}, align {align}"),
            Strength::Strong => format!("store atomic volatile {ty} {value}, ptr {pointer} monotonic, align {align}"),
        }
    }
}

/// Largest unit in bytes.
const LIMIT: u32 = 16;

/// LLVM type of a unit of `bytes` bytes.
fn unit_type(bytes: u32, strength: Strength) -> String {
    match (bytes, strength) {
        (LIMIT, Strength::Weak) => "<2 x i64>".into(),
        _ => format!("i{}", 8 * bytes),
    }
}

/// Whether the elements of an access are moved in units; a single element of up to 64 bits is a unit by itself.
pub(super) fn in_units(elem: Elem, count: u32) -> bool {
    count > 1 || elem == Elem::I128
}

/// The stride in elements, if a row of lanes is to be loaded together with the elements between them: it spans at most 512 bytes.
pub(super) fn near(stride: i64, elem: Elem, width: u32) -> Option<u32> {
    let bytes = elem.bits() / 8;
    let stride = u32::try_from(stride).ok().filter(|s| *s > bytes && s.is_multiple_of(bytes) && width >= 8)?;
    (stride * width <= 512 && stride / bytes <= 8).then_some(stride / bytes)
}

impl Emitter<'_> {
    /// The strength with which an access is performed. All threads that access shared memory run on one thread of the
    /// host, so a strong access only has to keep its place: the fences emitted before and after it become no instruction,
    /// but keep LLVM from moving or merging the access.
    pub(super) fn ordered(&mut self, inst: &Inst, variant: &Variant) -> Strength {
        let strength = strength(variant);
        if strength == Strength::Weak || inst.space != Some(MemSpace::Shared) {
            return strength;
        }
        self.w.line(format_args!("fence syncscope(\"singlethread\") acq_rel"));
        Strength::Weak
    }

    /// Loads elements from one address per row of lanes.
    pub(super) fn fetch_rows(
        &mut self,
        pointers: &[Val],
        elem: Elem,
        count: u32,
        width: u32,
        strength: Strength,
    ) -> Vec<Val> {
        let (scalar, bytes) = (Ty::scalar(elem), elem.bits() / 8);
        let unit = (bytes * count).min(LIMIT);
        let mut elements = vec![Vec::new(); count as usize];
        for p in pointers {
            for first in (0..count).step_by((unit / bytes) as usize) {
                let at = self.w.offset_const(p, u64::from(first * bytes));
                let (ty, n) = (unit_type(unit, strength), unit / bytes);
                let text = strength.load(&ty, &at.to_string(), unit);
                let raw = self.w.value(scalar, format_args!("{text}, {PROGRAM}"));
                if n == 1 && ty == scalar.to_string() {
                    elements[first as usize].push(raw);
                    continue;
                }
                let parts = format!("<{n} x {scalar}>");
                let all = self.w.value(scalar, format_args!("bitcast {ty} {raw} to {parts}"));
                for k in 0..n {
                    let one = self.w.value(scalar, format_args!("extractelement {parts} {all}, i32 {k}"));
                    elements[(first + k) as usize].push(one);
                }
            }
        }
        let whole = |e: &mut Self, scalars: &[Val]| match scalars {
            [one] => one.clone(),
            _ => e.broadcast_rows(scalars, elem, width),
        };
        elements.iter().map(|scalars| whole(self, scalars)).collect()
    }

    /// Stores elements at one address.
    pub(super) fn put_one(&mut self, pointer: &Val, values: &[Val], elem: Elem, strength: Strength) {
        let (scalar, bytes) = (Ty::scalar(elem), elem.bits() / 8);
        let unit = (bytes * values.len() as u32).min(LIMIT);
        let (ty, n) = (unit_type(unit, strength), unit / bytes);
        for (i, values) in values.chunks(n as usize).enumerate() {
            let at = self.w.offset_const(pointer, u64::from(i as u32 * unit));
            let whole = match values {
                [one] if ty == scalar.to_string() => one.clone(),
                _ => {
                    let parts = format!("<{n} x {scalar}>");
                    let mut all = "poison".to_string();
                    for (k, v) in values.iter().enumerate() {
                        let text = format_args!("insertelement {parts} {all}, {scalar} {v}, i32 {k}");
                        all = self.w.value(scalar, text).to_string();
                    }
                    self.w.value(scalar, format_args!("bitcast {parts} {all} to {ty}"))
                }
            };
            let text = strength.store(&ty, &whole.to_string(), &at.to_string(), unit);
            self.w.line(format_args!("{text}, {PROGRAM}"));
        }
    }

    /// Loads the elements of each lane from arbitrary addresses, in units.
    pub(super) fn gather_units(
        &mut self,
        lanes: &Val,
        elem: Elem,
        count: u32,
        mask: Option<&Val>,
        strength: Strength,
    ) -> Vec<Val> {
        let bytes = count * elem.bits() / 8;
        let buffer = self.w.alloca(&format!("[{} x i8]", 32 * bytes), 64);
        let every = self.looped(mask);
        let bits = mask.or(every.as_ref()).map(|m| self.bits(m));
        let (at, addresses) = self.call_at(lanes, gather(bytes, Active::of(bits.as_ref()), strength));
        let (name, bits) = called("gather", bytes, bits.as_ref(), strength);
        self.w.line(format_args!("call void @{name}{at}({addresses}, ptr {buffer}{bits})"));
        self.load_vectors(Vectors { elem, count, width: 32 }, &buffer, Owner::Engine)
    }

    /// Loads the elements of a row of lanes whose addresses are `stride` elements apart, together with the elements between them: as two
    /// vectors, the first from the row's first element on, the second up to its last.
    pub(super) fn load_strided_by_shuffle(&mut self, pointer: &Val, elem: Elem, width: u32, stride: u32) -> Val {
        let (ty, all) = (Ty::lanes(elem), (width - 1) * stride + 1);
        let half = all.div_ceil(2).next_power_of_two();
        let whole = ty.part(half);
        let [low, high] = [0, all - half].map(|from| {
            let at = self.w.offset_const(pointer, u64::from(from * elem.bits() / 8));
            self.w.value(ty, format_args!("load {whole}, ptr {at}, align {}, {PROGRAM}", elem.bits() / 8))
        });
        let pick = |l: u32| if l * stride < half { l * stride } else { half + l * stride - (all - half) };
        let picks: Vec<String> = (0..width).map(|l| format!("i32 {}", pick(l))).collect();
        let picks = picks.join(", ");
        self.w.value(ty, format_args!("shufflevector {whole} {low}, {whole} {high}, <{width} x i32> <{picks}>"))
    }

    /// Deinterleaves a vector of `width * count` elements into `count` vectors.
    pub(super) fn every(&mut self, all: &Val, elem: Elem, count: u32, width: u32) -> Vec<Val> {
        if count == 1 {
            return vec![all.clone()];
        }
        let (ty, whole) = (Ty::lanes(elem), Ty::lanes(elem).part(width * count));
        (0..count)
            .map(|k| {
                let picks: Vec<String> = (0..width).map(|l| format!("i32 {}", l * count + k)).collect();
                let picks = picks.join(", ");
                let text = format_args!("shufflevector {whole} {all}, {whole} poison, <{width} x i32> <{picks}>");
                self.w.value(ty, text)
            })
            .collect()
    }

    /// Interleaves the lanes of a row: all elements of one lane, then of the next.
    pub(super) fn interleave(&mut self, values: &[Val], elem: Elem, row: Row) -> Val {
        let pieces: Vec<Val> = values.iter().map(|v| self.piece(v, row)).collect();
        if let [one] = &pieces[..] {
            return one.clone();
        }
        let (count, width) = (values.len() as u32, row.width);
        // Concatenates the vectors, then shuffles.
        let (all, whole) = (self.concat(pieces, elem, width), Ty::lanes(elem).part(width * count));
        let picks: Vec<String> = (0..width * count).map(|l| format!("i32 {}", l % count * width + l / count)).collect();
        let (n, picks) = (width * count, picks.join(", "));
        let text = format_args!("shufflevector {whole} {all}, {whole} poison, <{n} x i32> <{picks}>");
        self.w.value(Ty::lanes(elem), text)
    }

    /// Stores the elements of each lane to arbitrary addresses, in units.
    pub(super) fn scatter_units(
        &mut self,
        lanes: &Val,
        values: &[Val],
        elem: Elem,
        mask: Option<&Val>,
        strength: Strength,
    ) {
        let count = values.len() as u32;
        let bytes = count * elem.bits() / 8;
        let buffer = self.w.alloca(&format!("[{} x i8]", 32 * bytes), 64);
        let values: Vec<Val> = values.iter().map(|v| self.w.splat(v)).collect();
        let Some(row) = rows(32).next() else { return };
        self.store_vectors(&values, elem, row, &buffer, Owner::Engine);
        let every = self.looped(mask);
        let bits = mask.or(every.as_ref()).map(|m| self.bits(m));
        let (at, addresses) = self.call_at(lanes, scatter(bytes, Active::of(bits.as_ref()), strength));
        let (name, bits) = called("scatter", bytes, bits.as_ref(), strength);
        self.w.line(format_args!("call void @{name}{at}({addresses}, ptr {buffer}{bits})"));
    }

    /// The value that remains where all lanes of a row write to one address: the last active lane's.
    pub(super) fn last_of(&mut self, v: &Val, row: Row, lanes: Option<&Val>) -> Val {
        if !v.ty.vector {
            return v.clone();
        }
        let lane = match lanes {
            None => int(Elem::I32, i128::from(row.width * (row.index + 1)) - 1),
            Some(m) => {
                let bits = self.bits(m);
                let zeros = self.w.intrinsic_named("llvm.ctlz.i32", Ty::scalar(Elem::I32), &[&bits, &int(Elem::I1, 1)]);
                self.w.op("sub", &int(Elem::I32, 31), &zeros)
            }
        };
        self.w.extract(v, &lane)
    }
}

/// Name of a helper, and the mask as its argument.
fn called(what: &str, bytes: u32, bits: Option<&Val>, strength: Strength) -> (String, String) {
    let all = if bits.is_none() { ".all" } else { "" };
    let name = format!("margay.{what}{all}.{bytes}{}", strength.suffix());
    (name, bits.map_or(String::new(), |b| format!(", i32 {b}")))
}

/// Moves the units of a lane between `%p…` and its part of `%buffer`.
fn moves(Lane { n, number }: Lane<'_>, bytes: u32, direction: Direction, strength: Strength) -> String {
    let unit = bytes.min(LIMIT);
    let ty = unit_type(unit, strength);
    let one = |at: u32| {
        let [here, there, value] = ["here", "there", "v"].map(|name| format!("%{name}{n}.{at}"));
        let (from, to) = match direction {
            Direction::Load => (strength.load(&ty, &here, unit), Strength::Weak.store(&ty, &value, &there, unit)),
            Direction::Store => (Strength::Weak.load(&ty, &there, unit), strength.store(&ty, &value, &here, unit)),
        };
        fill(
            include_str!("unit/move.ll"),
            &[("n", &n), ("lane", &number), ("at", &at), ("bytes", &bytes), ("load", &from), ("store", &to)],
        )
    };
    (0..bytes).step_by(unit as usize).map(one).collect()
}

fn gather(bytes: u32, active: Active, strength: Strength) -> String {
    helper(Direction::Load, bytes, active, strength)
}

fn scatter(bytes: u32, active: Active, strength: Strength) -> String {
    helper(Direction::Store, bytes, active, strength)
}

/// A function that moves the units of each lane between its address and `%buffer`.
fn helper(direction: Direction, bytes: u32, active: Active, strength: Strength) -> String {
    let verb = match direction {
        Direction::Load => "gather",
        Direction::Store => "scatter",
    };
    let step = |lane: Lane<'_>| moves(lane, bytes, direction, strength);
    if active == Active::All {
        let header = format!("void @margay.{verb}.all.{bytes}{}(<32 x i64> %at, ptr %buffer)", strength.suffix());
        return lane_list(&header, "", step, "  ret void\n");
    }
    let header = format!("void @margay.{verb}.{bytes}{}(<32 x i64> %at, ptr %buffer, i32 %mask)", strength.suffix());
    // Inactive lanes must load something defined, even if it is never used.
    let before = match direction {
        Direction::Load => format!("  store <{} x i16> zeroinitializer, ptr %buffer, align 64\n", 16 * bytes),
        Direction::Store => String::new(),
    };
    lane_loop(&header, &before, step, "  ret void\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::assert_names;

    #[test]
    fn helpers_define_what_they_use() {
        for (bytes, strength) in
            [2, 8, 32].into_iter().flat_map(|bytes| [(bytes, Strength::Weak), (bytes, Strength::Strong)])
        {
            for active in [Active::All, Active::Masked] {
                assert_names(&gather(bytes, active, strength));
                assert_names(&scatter(bytes, active, strength));
            }
        }
    }
}
