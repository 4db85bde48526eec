//! Accesses of elements at indices of 32 bits from a base that all lanes share, `a[i]`.
//!
//! Addresses of 64 bits fill twice as many of the host's vectors as indices do. So indices are compared with the smallest and the largest
//! index inside the window, which scalar code computes once for all lanes, and single lanes are loaded from the base plus an index. The
//! addresses themselves are then unused, and not computed.

use super::{
    bounds::Check,
    branchless::{WORTH, before_half, fewer},
    lanes::{Step, align_of},
    partial::{MaskedAlign, masked_align},
    together::join_rows,
    unit::{Active, Strength},
};
use crate::emit::{
    function::Emitter,
    mask::Indexed,
    text::{Elem, Ty, Val, elements, fill, int, mangle},
};

/// Bases are at most this far from their window, so that no sum below overflows.
const FAR: i128 = 1 << 40;
/// Lanes whose indices are compared with consecutive ones when all lanes are active: a row of a tile.
const ROW: u32 = 8;

impl Emitter<'_> {
    /// The lanes whose index shows that they leave the window of `limit` starts from `low` on, or are misaligned; `None` if indices do not
    /// show this.
    pub(super) fn outside_by_index(&mut self, at: &Indexed, check: &Check, (low, limit): (&Val, &Val)) -> Option<Val> {
        let Indexed { base, index, shift, signed } = at;
        let ((least, _), (odd, odd_at)) = (check.extent(), check.odd());
        if odd >= 1 << shift {
            return None;
        }
        let start = self.w.op_const("add", base, least.into());
        let distance = self.w.op("sub", &start, low);
        let moved = self.w.op_const("add", &distance, FAR);
        let mut bad = self.w.cmp("icmp uge", &moved, &int(Elem::I64, 2 * FAR));
        if odd > 0 {
            let aligned = self.w.op_const("add", base, i128::from(odd_at & odd));
            let rest = self.w.op_const("and", &aligned, odd.into());
            let misaligned = self.w.cmp("icmp ne", &rest, &int(Elem::I64, 0));
            bad = self.w.op("or", &bad, &misaligned);
        }
        // From the least index with `distance + (index << shift) >= 0` to the largest one with a sum below the limit.
        let back = self.w.op("sub", &int(Elem::I64, 0), &distance);
        let up = self.w.op_const("add", &back, (1 << shift) - 1);
        let first = self.w.op_const("ashr", &up, i128::from(*shift));
        let end = self.w.op("add", &back, limit);
        let end = self.w.op_const("sub", &end, 1);
        let last = self.w.op_const("ashr", &end, i128::from(*shift));
        let ends = if *signed { [i32::MIN.into(), i32::MAX.into()] } else { [0, i128::from(u32::MAX)] };
        let [least, most] = ends.map(|end| int(Elem::I64, end));
        let first = self.w.intrinsic("llvm.smax", first.ty, &[&first, &least]);
        let last = self.w.intrinsic("llvm.smin", last.ty, &[&last, &most]);
        let none = self.w.cmp("icmp sgt", &first, &last);
        let bad = self.w.op("or", &bad, &none);
        // An interval without indices.
        let first = self.w.select(&bad, &most, &first);
        let last = self.w.select(&bad, &least, &last);
        let [first, last] = [first, last].map(|end| self.w.resize(&end, Elem::I32, false));
        let [below, above] = if *signed { ["icmp slt", "icmp sgt"] } else { ["icmp ult", "icmp ugt"] };
        let (below, above) = (self.w.cmp(below, index, &first), self.w.cmp(above, index, &last));
        Some(self.w.op("or", &below, &above))
    }

    /// Loads one element per lane of a mask by its index, zeros for other lanes; `None` if the addresses have no such form, or where that
    /// gains nothing.
    pub(super) fn gather_by_index(
        &mut self,
        lanes: &Val,
        elem: Elem,
        mask: Option<&Val>,
        strength: Strength,
    ) -> Option<Val> {
        if self.options.lean || strength != Strength::Weak || elem.bits() > 64 {
            return None;
        }
        let Indexed { base, index, shift, signed } = self.w.indexed(lanes)?;
        let form = Form { elem, shift, signed, mask_registers: self.options.mask_registers };
        let (bits, active) = (mask.map(|m| self.bits(m)), Active::of(mask));
        self.w.declared.insert(form.helper(active));
        let (name, ty) = (form.name(active), Ty::lanes(elem));
        let bits = bits.map_or(String::new(), |bits| format!(", i32 {bits}"));
        Some(self.w.value(ty, format_args!("call {ty} @{name}(i64 {base}, <32 x i32> {index}{bits})")))
    }
}

/// An indexed load: the element type, and how its address is computed.
#[derive(Clone, Copy)]
struct Form {
    elem: Elem,
    /// Log2 of the bytes from one index to the next.
    shift: u32,
    signed: bool,
    mask_registers: bool,
}

impl Form {
    fn name(self, active: Active) -> String {
        let lanes = match active {
            Active::All => "all",
            Active::Masked => "some",
        };
        let (t, index) = (Ty::scalar(self.elem), if self.signed { "index" } else { "unsigned" });
        format!("margay.gather.{index}.{lanes}.{t}.{}", self.shift)
    }

    /// The address `%p…` of the element whose index is `%i…`.
    fn pointer(self, of: &str) -> String {
        let extend = if self.signed { "sext" } else { "zext" };
        fill(include_str!("indexed/pointer.ll"), &[("of", &of), ("extend", &extend), ("shift", &self.shift)])
    }

    /// Whether consecutive indices address consecutive elements, so that a row can be loaded at once: not for a member of structs.
    fn dense(self) -> bool {
        8 << self.shift == self.elem.bits()
    }

    /// Code that looks for a row by the lanes `a` and `b`, and then by all of them, by the code `row`; it ends before the block `alike`.
    fn look_for_row(self, row: &str) -> String {
        match self.dense() {
            true => fill(include_str!("indexed/perhaps.ll"), &[]) + row,
            false => fill(include_str!("indexed/perhaps_same.ll"), &[]),
        }
    }

    /// What moves the least and the largest indices of a range, which are 32 each, to its end.
    fn to_end(self) -> i32 {
        if self.signed { i32::MAX - 31 } else { -32 }
    }

    fn helper(self, active: Active) -> String {
        match active {
            Active::All => self.all(),
            Active::Masked => self.some(),
        }
    }

    /// A masked load of a row, and its declaration.
    fn masked_load(self) -> (String, String) {
        let (t, name) = (Ty::lanes(self.elem), format!("llvm.masked.load.{}.p0", mangle(Ty::lanes(self.elem))));
        let MaskedAlign { declared, attribute, argument } = masked_align(align_of(self.elem, Strength::Weak));
        (
            format!("call {t} @{name}(ptr {attribute}%p.row{argument}, <32 x i1> %on, {t} zeroinitializer)"),
            format!("declare {t} @{name}(ptr{declared}, <32 x i1>, {t})"),
        )
    }

    /// Code that returns the elements `found`; with a mask, only those of the lanes `%on`.
    fn choose(self, active: Active, name: &str, found: &str) -> String {
        let all = Ty::lanes(self.elem);
        match active {
            Active::All => format!("  ret {all} {found}\n"),
            Active::Masked => {
                fill(include_str!("indexed/choose.ll"), &[("name", &name), ("all", &all), ("found", &found)])
            }
        }
    }

    /// Code that loads from the indices in `%list`, which are all valid, and returns the elements; with a mask, only those of the lanes `%on`.
    fn each(self, active: Active) -> String {
        let (t, all, align) = (Ty::scalar(self.elem), Ty::lanes(self.elem), align_of(self.elem, Strength::Weak));
        let mut text = String::new();
        for lane in 0..32 {
            let before = if lane == 0 { "zeroinitializer".into() } else { format!("%row{}", lane - 1) };
            if active == Active::Masked {
                text += &before_half(lane, &self.choose(active, "half", &before));
            }
            text += &fill(
                include_str!("indexed/lane.ll"),
                &[
                    ("lane", &lane),
                    ("pointer", &self.pointer(&lane.to_string())),
                    ("t", &t),
                    ("all", &all),
                    ("align", &align),
                    ("before", &before),
                ],
            );
        }
        text + &self.choose(active, "chosen", "%row31")
    }

    /// Code that returns the element at the index `%index.a` for the lanes of `%on`.
    fn same(self, active: Active) -> String {
        fill(
            include_str!("indexed/same.ll"),
            &[
                ("pointer", &self.pointer(".same")),
                ("t", &Ty::scalar(self.elem)),
                ("all", &Ty::lanes(self.elem)),
                ("align", &align_of(self.elem, Strength::Weak)),
                ("chosen", &self.choose(active, "one", "%one.all")),
            ],
        )
    }

    /// The lanes of `%mask` as `%on`: without mask registers, LLVM takes the bits of a word apart one by one.
    fn lanes_of_mask(self) -> String {
        if self.mask_registers {
            return "  %on = bitcast i32 %mask to <32 x i1>\n".into();
        }
        fill(include_str!("indexed/mask.ll"), &[("shifts", &elements("i32", (0..32).rev()))])
    }

    /// For the lanes of a mask: few of them one after another, many at once.
    fn some(self) -> String {
        let (t, align) = (Ty::scalar(self.elem), align_of(self.elem, Strength::Weak));
        let pointer = fill(include_str!("indexed/one_by_one.ll"), &[("pointer", &self.pointer(""))]);
        let load = format!("  %v = load {t}, ptr %p, align {align}\n");
        let step = Step { pointer: &pointer, code: &load, last: "each", collects: Some(self.elem) };
        let (load, declared) = self.masked_load();
        let row = fill(
            include_str!("indexed/row_of_some.ll"),
            &[
                ("all", &Ty::lanes(self.elem)),
                ("lanes", &elements("i32", 0..32)),
                ("to_end", &self.to_end()),
                ("row_pointer", &self.pointer(".row")),
                ("load", &load),
            ],
        );
        fill(
            include_str!("indexed/some.ll"),
            &[
                ("name", &self.name(Active::Masked)),
                ("all", &Ty::lanes(self.elem)),
                ("few", &fewer(WORTH, ["loop", "many"])),
                ("on", &self.lanes_of_mask()),
                ("look", &self.look_for_row(&row)),
                ("same", &self.same(Active::Masked)),
                ("each", &self.each(Active::Masked)),
                ("one_by_one", &step.repeat("loop")),
                ("declared", &declared),
            ],
        )
    }

    /// For all lanes: rows of eight at once, and one element that all share.
    fn all(self) -> String {
        let (t, align) = (Ty::scalar(self.elem), align_of(self.elem, Strength::Weak));
        let rows: String = (0..32)
            .step_by(ROW as usize)
            .map(|lane| {
                let pointer = self.pointer(&format!(".row{lane}"));
                fill(
                    include_str!("indexed/row.ll"),
                    &[("lane", &lane), ("pointer", &pointer), ("row", &ROW), ("t", &t), ("align", &align)],
                )
            })
            .collect();
        let row = fill(
            include_str!("indexed/row_of_all.ll"),
            &[
                ("firsts", &elements("i32", (0..32).map(|lane| lane / ROW * ROW))),
                ("steps", &elements("i32", (0..32).map(|lane| lane % ROW))),
                ("to_end", &self.to_end()),
                ("rows", &rows),
                ("joined", &join_rows(self.elem, "loaded")),
            ],
        );
        fill(
            include_str!("indexed/all.ll"),
            &[
                ("name", &self.name(Active::All)),
                ("all", &Ty::lanes(self.elem)),
                ("look", &self.look_for_row(&row)),
                ("same", &self.same(Active::All)),
                ("each", &self.each(Active::All)),
                ("declared", &self.masked_load().1),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::assert_names;

    #[test]
    fn helpers_define_what_they_use() {
        for (elem, shift) in
            [(Elem::I8, 0), (Elem::I8, 2), (Elem::I16, 1), (Elem::F32, 2), (Elem::F32, 4), (Elem::I64, 3)]
        {
            for (signed, mask_registers) in [(false, false), (true, true)] {
                let form = Form { elem, shift, signed, mask_registers };
                [Active::All, Active::Masked].into_iter().for_each(|active| assert_names(&form.helper(active)));
            }
        }
    }
}
