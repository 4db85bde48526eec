//! Loads and stores of consecutive elements by some of the lanes.
//!
//! AVX-512 has instructions for that. AVX2 has some for elements of 32 and 64 bits, but AMD's processors execute the stores in microcode,
//! several times as slowly as others. So code without mask registers stores whole rows if all lanes are active, as in most warps, and
//! otherwise calls a function that stores eight lanes at once where it can.

use crate::emit::{
    function::Emitter,
    function::affine::Row,
    mask::Masks,
    memory::PROGRAM,
    memory::lanes::align_of,
    memory::unit::Strength,
    text::{Elem, Ty, Val, elements, fill, int, mangle},
};

/// Lanes that the functions test at once.
const PART: u32 = 8;
/// The smallest page of any host, in bytes.
const PAGE: u32 = 4096;

/// How masked loads and stores get their alignment, in bytes: an attribute of the pointer since LLVM 22, an argument before.
pub(super) struct MaskedAlign {
    /// The argument in declarations.
    pub declared: &'static str,
    /// Before the pointer in calls.
    pub attribute: String,
    /// After the pointer in calls.
    pub argument: String,
}

pub(super) fn masked_align(bytes: u32) -> MaskedAlign {
    if cfg!(feature = "llvm22") {
        MaskedAlign { declared: "", attribute: format!("align {bytes} "), argument: String::new() }
    } else {
        MaskedAlign { declared: ", i32", attribute: String::new(), argument: format!(", i32 {bytes}") }
    }
}

/// Code that makes masks of `width` lanes from the bits of the word `%{bits}`; each mask has a name and a first bit. Without mask registers,
/// LLVM would take the bits of a word apart one by one, with 140 instructions for 32 lanes. The host's masked accesses look at the signs of
/// elements, so the masks are computed as signs.
pub(super) fn lanes_of_bits(elem: Elem, width: u32, bits: &str, masks: &[(&str, u32)]) -> String {
    let part = |on: &str, first: u32| match width {
        32 => format!("  %{on} = bitcast i32 %{bits} to <32 x i1>\n"),
        _ => {
            fill(include_str!("partial/mask.ll"), &[("on", &on), ("bits", &bits), ("first", &first), ("width", &width)])
        }
    };
    if elem.bits() < 32 {
        // The host has no such accesses, and LLVM looks at the bits.
        return masks.iter().map(|(on, first)| part(on, *first)).collect();
    }
    let words = format!("<{width} x i32>");
    let mut text = format!(
        "  %word = insertelement {words} poison, i32 %{bits}, i32 0\n  \
         %words = shufflevector {words} %word, {words} poison, {words} zeroinitializer\n"
    );
    for (on, first) in masks {
        let shifts = elements("i32", (0..width).map(|lane| 31 - first - lane));
        text.push_str(&format!(
            "  %{on}.signs = shl {words} %words, <{shifts}>\n  %{on} = icmp slt {words} %{on}.signs, zeroinitializer\n"
        ));
    }
    text
}

impl Emitter<'_> {
    /// Loads a row for some of its lanes; the others are zero.
    pub(super) fn masked_load(&mut self, piece: &str, ty: Ty, pointer: &Val, align: u32, mask: &Val, row: Row) -> Val {
        let (width, align) = (row.width, self.accesses.aligned.unwrap_or(align));
        if self.needs_code(ty.elem, row) && ty.elem.bits() < 32 {
            return self.load_by_code(piece, ty, pointer, mask, row);
        }
        if self.options.masks() == Masks::Calls {
            let bits = self.row_bits(mask, row);
            self.w.declared.insert(load_row(ty.elem, width));
            let elem = Ty::scalar(ty.elem);
            return self
                .w
                .value(ty, format_args!("call {piece} @margay.load.{width}.{elem}(ptr {pointer}, i32 {bits})"));
        }
        let mask = self.piece(mask, row);
        let name = format!("llvm.masked.load.{}.p0", mangle(ty).replace("v32", &format!("v{width}")));
        let MaskedAlign { declared, attribute, argument } = masked_align(align);
        self.w.declared.insert(format!("declare {piece} @{name}(ptr{declared}, <{width} x i1>, {piece})"));
        let arguments = format!("ptr {attribute}{pointer}{argument}, <{width} x i1> {mask}, {piece} zeroinitializer");
        self.w.value(ty, format_args!("call {piece} @{name}({arguments}), {PROGRAM}"))
    }

    /// Stores some lanes of a row.
    pub(super) fn masked_store(&mut self, piece: &Val, ty: Ty, pointer: &Val, align: u32, mask: &Val, row: Row) {
        let (width, align) = (row.width, self.accesses.aligned.unwrap_or(align));
        let calls = self.options.masks() == Masks::Calls;
        if self.needs_code(ty.elem, row) && (ty.elem.bits() < 32 || !calls) {
            return self.store_by_code(piece, ty, pointer, align, mask, row);
        }
        if calls {
            let bits = self.row_bits(mask, row);
            self.w.declared.insert(store_row(ty.elem, width));
            let (elem, ty) = (Ty::scalar(ty.elem), ty.part(width));
            return self
                .w
                .line(format_args!("call void @margay.store.{width}.{elem}(ptr {pointer}, {ty} {piece}, i32 {bits})"));
        }
        let mask = self.piece(mask, row);
        let name = format!("llvm.masked.store.{}.p0", mangle(ty).replace("v32", &format!("v{width}")));
        let ty = ty.part(width);
        let MaskedAlign { declared, attribute, argument } = masked_align(align);
        self.w.declared.insert(format!("declare void @{name}({ty}, ptr{declared}, <{width} x i1>)"));
        let arguments = format!("{ty} {piece}, ptr {attribute}{pointer}{argument}, <{width} x i1> {mask}");
        self.w.line(format_args!("call void @{name}({arguments}), {PROGRAM}"));
    }

    /// Whether masked accesses to a row need a helper, because the host's instructions are missing or slow.
    fn needs_code(&self, elem: Elem, row: Row) -> bool {
        !self.options.mask_registers && row.width >= PART && elem.bits() <= 64
    }

    /// The bits of a row's lanes, the lowest ones first.
    fn row_bits(&mut self, mask: &Val, row: Row) -> Val {
        let bits = self.bits(mask);
        self.w.op_const("lshr", &bits, i128::from(row.index * row.width))
    }

    /// The bits of a row's lanes alone, and whether all are set.
    fn row_lanes(&mut self, mask: &Val, row: Row) -> (Val, Val) {
        let bits = self.row_bits(mask, row);
        let ones = u32::MAX >> (32 - row.width);
        let bits = self.w.op_const("and", &bits, i128::from(ones as i32));
        let every = self.w.cmp("icmp eq", &bits, &int(Elem::I32, i128::from(ones as i32)));
        (bits, every)
    }

    fn store_by_code(&mut self, piece: &Val, ty: Ty, pointer: &Val, align: u32, mask: &Val, row: Row) {
        let (bits, every) = self.row_lanes(mask, row);
        let part = ty.part(row.width);
        self.w.declared.insert(store_some(ty.elem, row.width));
        let name = format!("margay.store.row.{}.{}", Ty::scalar(ty.elem), row.width);
        let call = format!("call void @{name}({part} {piece}, ptr {pointer}, i32 {bits})");
        if self.only_masked() {
            return self.w.line(format_args!("{call}"));
        }
        let [whole, some, done] = ["whole", "some", "stored"].map(|l| self.w.label(l));
        self.w.branch(&every, &whole, &some);
        self.diamond(
            [&whole, &some, &done],
            |e| e.w.line(format_args!("store {part} {piece}, ptr {pointer}, align {align}, {PROGRAM}")),
            |e| e.w.line(format_args!("{call}")),
        );
    }

    fn load_by_code(&mut self, piece: &str, ty: Ty, pointer: &Val, mask: &Val, row: Row) -> Val {
        let (bits, _) = self.row_lanes(mask, row);
        self.w.declared.insert(load_some(ty.elem, row.width));
        let name = format!("margay.load.row.{}.{}", Ty::scalar(ty.elem), row.width);
        self.w.value(ty, format_args!("call {piece} @{name}(ptr {pointer}, i32 {bits})"))
    }
}

/// A function that loads the lanes of a row at consecutive addresses that the bits of `%mask` name, and zeros for the others.
pub(super) fn load_row(elem: Elem, width: u32) -> String {
    row(include_str!("partial/load_row.ll"), "load", elem, width)
}

/// A function that stores the lanes of a row at consecutive addresses that the bits of `%mask` name.
pub(super) fn store_row(elem: Elem, width: u32) -> String {
    row(include_str!("partial/store_row.ll"), "store", elem, width)
}

fn row(template: &str, verb: &str, elem: Elem, width: u32) -> String {
    let MaskedAlign { declared, attribute, argument } = masked_align(align_of(elem, Strength::Weak));
    fill(
        template,
        &[
            ("t", &Ty::scalar(elem)),
            ("width", &width),
            ("piece", &Ty::lanes(elem).part(width)),
            ("name", &format_args!("llvm.masked.{verb}.v{width}{}.p0", mangle(Ty::scalar(elem)))),
            ("on", &lanes_of_bits(elem, width, "mask", &[("on", 0)])),
            ("declared", &declared),
            ("attribute", &attribute),
            ("argument", &argument),
        ],
    )
}

/// A function that loads the lanes of `%bits` from consecutive elements, with zeros in the other lanes. It loads the elements of all lanes,
/// unless these lie on two pages, one of which may not exist.
fn load_some(elem: Elem, width: u32) -> String {
    let bytes = elem.bits() / 8;
    fill(
        include_str!("partial/load_some.ll"),
        &[
            ("t", &Ty::scalar(elem)),
            ("width", &width),
            ("part", &Ty::lanes(elem).part(width)),
            ("bytes", &bytes),
            ("ones", &((u32::MAX >> (32 - width)) as i32)),
            ("page_mask", &(PAGE - 1)),
            ("last", &(PAGE - width * bytes)),
            ("mask", &lanes_of_bits(elem, width, "bits", &[("on", 0)])),
        ],
    )
}

/// A function that stores the lanes of `%bits` to consecutive elements: parts with all lanes active by one store, other parts by the
/// host's masked stores or lane by lane.
fn store_some(elem: Elem, width: u32) -> String {
    let (t, ty, bytes) = (Ty::scalar(elem), Ty::lanes(elem), elem.bits() / 8);
    let (whole, part) = (ty.part(width), ty.part(PART));
    let masked = elem.bits() >= 32;
    let name = format!("llvm.masked.store.v{PART}{t}.p0");
    let count = width / PART;
    let mut parts = String::new();
    // Lanes that no whole part has stored.
    let mut rest = "%bits".to_string();
    for k in 0..count {
        let first = k * PART;
        parts += &fill(
            include_str!("partial/store_part.ll"),
            &[
                ("k", &k),
                ("first", &first),
                ("width", &PART),
                ("t", &t),
                ("whole", &whole),
                ("part", &part),
                ("picks", &elements("i32", first..first + PART)),
                ("bytes", &bytes),
                ("masked", &if masked { store_masked_part(elem, k, &name) } else { String::new() }),
            ],
        );
        if !masked {
            let without = !(((1u32 << PART) - 1) << first) as i32;
            parts += &fill(include_str!("partial/store_rest.ll"), &[("k", &k), ("without", &without), ("rest", &rest)]);
            rest = format!("%rest{k}");
        }
        if k + 1 < count {
            parts += &format!("  br label %part{}\n", k + 1);
        }
    }
    if masked {
        return fill(
            include_str!("partial/store_some_masked.ll"),
            &[
                ("t", &t),
                ("width", &width),
                ("whole", &whole),
                ("parts", &parts),
                ("name", &name),
                ("part", &part),
                ("declared", &masked_align(bytes).declared),
                ("part_width", &PART),
            ],
        );
    }
    fill(
        include_str!("partial/store_some.ll"),
        &[
            ("t", &t),
            ("width", &width),
            ("whole", &whole),
            ("parts", &parts),
            ("rest", &rest),
            ("last", &format_args!("after{}", count - 1)),
            ("bytes", &bytes),
        ],
    )
}

/// Code that stores the active lanes of part `k` by the host's masked store `name`.
fn store_masked_part(elem: Elem, k: u32, name: &str) -> String {
    let MaskedAlign { attribute, argument, .. } = masked_align(elem.bits() / 8);
    let on = format!("on{k}");
    let mask = lanes_of_bits(elem, PART, "bits", &[(&on, k * PART)]).replace("%word", &format!("%p{k}.word"));
    fill(
        include_str!("partial/store_masked.ll"),
        &[
            ("k", &k),
            ("width", &PART),
            ("part", &Ty::lanes(elem).part(PART)),
            ("name", &name),
            ("attribute", &attribute),
            ("argument", &argument),
            ("mask", &mask),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::assert_names;

    #[test]
    fn helpers_define_what_they_use() {
        for (elem, width) in
            [Elem::I8, Elem::I16, Elem::I32, Elem::F64].into_iter().flat_map(|e| [(e, 8), (e, 16), (e, 32)])
        {
            for helper in [load_row, store_row, load_some, store_some] {
                assert_names(&helper(elem, width));
            }
        }
    }
}
