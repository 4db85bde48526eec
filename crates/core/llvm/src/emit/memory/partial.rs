//! Loads and stores of consecutive elements by some of the lanes.
//!
//! AVX-512 has instructions for that. AVX2 has some for elements of 32 and 64 bits, of which AMD's processors execute the stores in
//! microcode, several times as slow as others. So code without mask registers stores whole rows if all lanes are active, as they are in most
//! warps, and calls a function otherwise, which stores eight lanes at once where it can.

use crate::emit::{
    function::Emitter,
    function::affine::Row,
    mask::Masks,
    memory::PROGRAM,
    memory::lanes::{load_row, store_row},
    text::{Elem, Ty, Val, int, mangle},
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

/// Code for masks of so many lanes each from the bits of the word `%{bits}`; each has a name and a first bit. This is for accesses without
/// mask registers: LLVM takes the bits of a word apart one by one, which is 140 instructions for 32 lanes, but finds the masks of the host's
/// accesses in the signs of words.
pub(super) fn lanes_of_bits(elem: Elem, width: u32, bits: &str, masks: &[(&str, u32)]) -> String {
    let part = |on: &str, first: u32| match width {
        32 => format!("  %{on} = bitcast i32 %{bits} to <32 x i1>\n"),
        _ => format!(
            "  %{on}.at = lshr i32 %{bits}, {first}\n  %{on}.low = trunc i32 %{on}.at to i{width}\n  \
             %{on} = bitcast i{width} %{on}.low to <{width} x i1>\n"
        ),
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
        let shifts = (0..width).map(|lane| format!("i32 {}", 31 - first - lane)).collect::<Vec<_>>().join(", ");
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

    /// Whether rows of some lanes need code of ours.
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

/// A loop over the bits that are left of `%bits` in a block, then `after`; `step` is the code for `%lane`.
fn each(begin: &str, from: &str, bits: &str, step: &str, after: &str) -> String {
    format!(
        "{begin}  %some = icmp ne i32 {bits}, 0\n  br i1 %some, label %each, label %end\neach:\n  \
         %left = phi i32 [ {bits}, %{from} ], [ %rest, %each ]\n  %lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)\n  \
         %less = sub i32 %left, 1\n  %rest = and i32 %left, %less\n{step}  %more = icmp ne i32 %rest, 0\n  \
         br i1 %more, label %each, label %end\nend:\n{after}"
    )
}

/// A function that loads the lanes of `%bits` from consecutive elements, and zeros for the others. Unless they lie on two pages, one of which
/// may not exist, what is between them is loaded, too.
fn load_some(elem: Elem, width: u32) -> String {
    let (t, part, bytes) = (Ty::scalar(elem), Ty::lanes(elem).part(width), elem.bits() / 8);
    let step = format!(
        "  %from = getelementptr {t}, ptr %p, i32 %lane\n  %v = load {t}, ptr %from, align {bytes}\n  \
         %to = getelementptr {t}, ptr %out, i32 %lane\n  store {t} %v, ptr %to, align {bytes}\n"
    );
    let all = u32::MAX >> (32 - width);
    let mask = lanes_of_bits(elem, width, "bits", &[("on", 0)]);
    let begin = format!(
        "  %out = alloca {part}, align 64\n  %all = icmp eq i32 %bits, {}\n  br i1 %all, label %whole, label %partly\nwhole:\n  \
         %every = load {part}, ptr %p, align {bytes}\n  ret {part} %every\npartly:\n  %at = ptrtoint ptr %p to i64\n  \
         %in.page = and i64 %at, {}\n  %one.page = icmp ule i64 %in.page, {}\n  %any = icmp ne i32 %bits, 0\n  \
         %near = and i1 %one.page, %any\n  br i1 %near, label %among, label %apart\namong:\n  \
         %row = load {part}, ptr %p, align {bytes}\n{mask}  \
         %chosen = select <{width} x i1> %on, {part} %row, {part} zeroinitializer\n  ret {part} %chosen\napart:\n  \
         store {part} zeroinitializer, ptr %out, align 64\n",
        all as i32,
        PAGE - 1,
        PAGE - width * bytes,
    );
    let after = format!("  %found = load {part}, ptr %out, align 64\n  ret {part} %found\n");
    format!(
        "define internal {part} @margay.load.row.{t}.{width}(ptr %p, i32 %bits) #1 {{\nentry:\n{}}}\ndeclare i32 @llvm.cttz.i32(i32, i1)",
        each(&begin, "apart", "%bits", &step, &after)
    )
}

/// A function that stores the lanes of `%bits` to consecutive elements: parts of which all lanes are active at once, others by the
/// host's masked stores or lane by lane.
fn store_some(elem: Elem, width: u32) -> String {
    let (t, ty, bytes) = (Ty::scalar(elem), Ty::lanes(elem), elem.bits() / 8);
    let (whole, part) = (ty.part(width), ty.part(PART));
    let mut text =
        format!("  %in = alloca {whole}, align 64\n  store {whole} %v, ptr %in, align 64\n  br label %part0\n");
    let masked = elem.bits() >= 32;
    let (mask, name) = (format!("<{PART} x i1>"), format!("llvm.masked.store.v{PART}{t}.p0"));
    let parts = width / PART;
    // Lanes that no whole part has stored.
    let mut rest = "%bits".to_string();
    for k in 0..parts {
        let first = k * PART;
        let picks = (first..first + PART).map(|l| format!("i32 {l}")).collect::<Vec<_>>().join(", ");
        text.push_str(&format!(
            "part{k}:\n  %m{k}.0 = lshr i32 %bits, {first}\n  %m{k} = trunc i32 %m{k}.0 to i{PART}\n  \
             %v{k} = shufflevector {whole} %v, {whole} poison, <{PART} x i32> <{picks}>\n  \
             %p{k} = getelementptr {t}, ptr %p, i32 {first}\n  %full{k} = icmp eq i{PART} %m{k}, -1\n  \
             br i1 %full{k}, label %whole{k}, label %other{k}\nwhole{k}:\n  store {part} %v{k}, ptr %p{k}, align {bytes}\n  \
             br label %after{k}\nother{k}:\n"
        ));
        if masked {
            let MaskedAlign { attribute, argument, .. } = masked_align(bytes);
            text.push_str(&format!(
                "  %none{k} = icmp eq i{PART} %m{k}, 0\n  br i1 %none{k}, label %after{k}, label %some{k}\nsome{k}:\n  \
                 {}  \
                 call void @{name}({part} %v{k}, ptr {attribute}%p{k}{argument}, {mask} %on{k})\n",
                {
                    let on = format!("on{k}");
                    lanes_of_bits(elem, PART, "bits", &[(&on, first)]).replace("%word", &format!("%p{k}.word"))
                }
            ));
        }
        text.push_str(&format!("  br label %after{k}\nafter{k}:\n"));
        if !masked {
            let without = !(((1u32 << PART) - 1) << first) as i32;
            text.push_str(&format!(
                "  %drop{k} = select i1 %full{k}, i32 {without}, i32 -1\n  %rest{k} = and i32 {rest}, %drop{k}\n"
            ));
            rest = format!("%rest{k}");
        }
        if k + 1 < parts {
            text.push_str(&format!("  br label %part{}\n", k + 1));
        }
    }
    let header =
        format!("define internal void @margay.store.row.{t}.{width}({whole} %v, ptr %p, i32 %bits) #1 {{\nentry:\n");
    if masked {
        let declared = masked_align(bytes).declared;
        let text =
            text.replace(&format!("  %in = alloca {whole}, align 64\n  store {whole} %v, ptr %in, align 64\n"), "");
        return format!("{header}{text}  ret void\n}}\ndeclare void @{name}({part}, ptr{declared}, {mask})");
    }
    let step = format!(
        "  %from = getelementptr {t}, ptr %in, i32 %lane\n  %e = load {t}, ptr %from, align {bytes}\n  \
         %to = getelementptr {t}, ptr %p, i32 %lane\n  store {t} %e, ptr %to, align {bytes}\n"
    );
    let last = format!("after{}", parts - 1);
    format!("{header}{}}}\ndeclare i32 @llvm.cttz.i32(i32, i1)", each(&text, &last, &rest, &step, "  ret void\n"))
}
