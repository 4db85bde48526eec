//! Accesses of elements at indices of 32 bits from a base that all lanes share, `a[i]`.
//!
//! Addresses of 64 bits fill four of the host's vectors, indices two. So an index is compared with the least and the largest one that lie in
//! the window, which takes scalar code for all lanes together, and loads of single lanes have the base and an index as their address. Values
//! that nothing uses then, the addresses, are not computed.

use super::{
    bounds::Check,
    branchless::{WORTH, before_half, fewer},
    lanes::{Step, align_of},
    partial::{MaskedAlign, masked_align},
    unit::Kind,
};
use crate::emit::{
    function::Emitter,
    mask::Indexed,
    text::{Elem, Ty, Val, int, mangle},
};

/// Bases are at most this far from their window, so that no sum below overflows.
const FAR: i128 = 1 << 40;
/// Lanes whose indices are compared with consecutive ones when all lanes are active: a row of a tile.
const ROW: u32 = 8;

impl Emitter<'_> {
    /// Which lanes leave the window of `limit` starts from `low` on, or are misaligned, by their indices; `None` if indices do not tell.
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
    pub(super) fn gather_by_index(&mut self, lanes: &Val, elem: Elem, mask: Option<&Val>, kind: Kind) -> Option<Val> {
        if self.options.lean || kind != Kind::Weak || elem.bits() > 64 {
            return None;
        }
        let Indexed { base, index, shift, signed } = self.w.indexed(lanes)?;
        let form = Form { elem, shift, signed, mask_registers: self.options.mask_registers };
        let bits = mask.map(|m| self.bits(m));
        self.w.declared.insert(form.helper(mask.is_some()));
        let (name, ty) = (form.name(mask.is_some()), Ty::lanes(elem));
        let bits = bits.map_or(String::new(), |bits| format!(", i32 {bits}"));
        Some(self.w.value(ty, format_args!("call {ty} @{name}(i64 {base}, <32 x i32> {index}{bits})")))
    }
}

/// What is loaded, and how its address is computed.
#[derive(Clone, Copy)]
struct Form {
    elem: Elem,
    /// Log2 of the bytes from one index to the next.
    shift: u32,
    signed: bool,
    mask_registers: bool,
}

/// Code that goes to `%perhaps` if the indices `%index.a` and `%index.b` of two lanes are as far apart as the lanes, or are the same, else to
/// `%apart`.
const ROW_OR_SAME: &str = "  %between = sub i32 %index.b, %index.a\n  %lanes = sub i32 %lane.b, %lane.a\n  \
                       %row.ab = icmp eq i32 %between, %lanes\n  %same.ab = icmp eq i32 %between, 0\n  \
                       %either.ab = or i1 %row.ab, %same.ab\n  br i1 %either.ab, label %perhaps, label %apart\nperhaps:\n";

/// The same for elements whose neighbours have other things between them, so that no row of them can be loaded at once.
const SAME: &str = "  %same.ab = icmp eq i32 %index.b, %index.a\n  br i1 %same.ab, label %alike, label %apart\n";

fn numbers(f: impl Fn(u32) -> u32) -> String {
    (0..32).map(|lane| format!("i32 {}", f(lane))).collect::<Vec<_>>().join(", ")
}

impl Form {
    fn name(self, masked: bool) -> String {
        let (t, some) = (Ty::scalar(self.elem), if masked { "some" } else { "all" });
        format!("margay.gather.{}.{some}.{t}.{}", if self.signed { "index" } else { "unsigned" }, self.shift)
    }

    /// The address `%p…` of the element whose index is `%i…`.
    fn pointer(self, of: &str) -> String {
        format!(
            "  %w{of} = {} i32 %i{of} to i64\n  %d{of} = shl i64 %w{of}, {}\n  %n{of} = add i64 %base, %d{of}\n  \
             %p{of} = inttoptr i64 %n{of} to ptr\n",
            if self.signed { "sext" } else { "zext" },
            self.shift
        )
    }

    /// Whether consecutive indices are those of consecutive elements, so that a row of them can be loaded at once: not those of a member of
    /// structs.
    fn dense(self) -> bool {
        8 << self.shift == self.elem.bits()
    }

    /// Code that looks for a row by the lanes `a` and `b`, and then by all of them, by the code `rows`; it ends before the block `alike`.
    fn look_for_row(self, rows: &str) -> String {
        if self.dense() { format!("{ROW_OR_SAME}{rows}") } else { SAME.into() }
    }

    /// Whether an index is so far from the ends of its range that those of the other lanes of a row do not wrap around: `%away`, if not.
    fn wraps(self) -> String {
        let plus = if self.signed { i32::MAX - 31 } else { -32 };
        format!(
            "  %from.end = add <32 x i32> %index, splat (i32 {plus})\n  \
             %away = icmp uge <32 x i32> %from.end, splat (i32 -64)\n"
        )
    }

    fn helper(self, masked: bool) -> String {
        let (name, t) = (self.name(masked), Ty::lanes(self.elem));
        let (mask, body) = if masked { (", i32 %mask", self.some()) } else { ("", self.all()) };
        format!(
            "define internal {t} @{name}(i64 %base, <32 x i32> %indices{mask}) #1 {{\nentry:\n  \
             %list = alloca <32 x i32>, align 64\n  %index = freeze <32 x i32> %indices\n{body}}}\ndeclare i32 @llvm.ctpop.i32(i32)\ndeclare i32 @llvm.cttz.i32(i32, i1)\n{}",
            self.masked_load().1
        )
    }

    /// A masked load of a row, and its declaration.
    fn masked_load(self) -> (String, String) {
        let (t, name) = (Ty::lanes(self.elem), format!("llvm.masked.load.{}.p0", mangle(Ty::lanes(self.elem))));
        let MaskedAlign { declared, attribute, argument } = masked_align(align_of(self.elem, Kind::Weak));
        (
            format!("call {t} @{name}(ptr {attribute}%pr{argument}, <32 x i1> %on, {t} zeroinitializer)"),
            format!("declare {t} @{name}(ptr{declared}, <32 x i1>, {t})"),
        )
    }

    /// Code that loads from the indices in `%list`, which are all valid, and returns the elements; of a mask, only those of the lanes `%on`.
    fn each(self, masked: bool) -> String {
        let (t, all, align) = (Ty::scalar(self.elem), Ty::lanes(self.elem), align_of(self.elem, Kind::Weak));
        let chosen = |found: &str, name: &str| match masked {
            true => {
                format!("  %{name} = select <32 x i1> %on, {all} {found}, {all} zeroinitializer\n  ret {all} %{name}\n")
            }
            false => format!("  ret {all} {found}\n"),
        };
        let mut text = String::new();
        for lane in 0..32 {
            let before = if lane == 0 { "zeroinitializer".into() } else { format!("%x{}", lane - 1) };
            if masked {
                text.push_str(&before_half(lane, &chosen(&before, "half")));
            }
            text.push_str(&format!(
                "  %l{lane} = getelementptr i32, ptr %list, i32 {lane}\n  %i{lane} = load volatile i32, ptr %l{lane}, align 4\n{}  \
                 %v{lane} = load {t}, ptr %p{lane}, align {align}\n  \
                 %x{lane} = insertelement {all} {before}, {t} %v{lane}, i32 {lane}\n",
                self.pointer(&lane.to_string())
            ));
        }
        text + &chosen("%x31", "chosen")
    }

    /// Code that returns the element at the index `%index.a` for the lanes of `%on`.
    fn same(self, masked: bool) -> String {
        let (t, all, align) = (Ty::scalar(self.elem), Ty::lanes(self.elem), align_of(self.elem, Kind::Weak));
        let chosen = match masked {
            true => format!("  %one = select <32 x i1> %on, {all} %one.all, {all} zeroinitializer\n  ret {all} %one\n"),
            false => format!("  ret {all} %one.all\n"),
        };
        format!(
            "  %is = add i32 %index.a, 0\n{}  %vs = load {t}, ptr %ps, align {align}\n  %one.0 = insertelement {all} poison, {t} %vs, i32 0\n  \
             %one.all = shufflevector {all} %one.0, {all} poison, <32 x i32> zeroinitializer\n{chosen}",
            self.pointer("s")
        )
    }

    /// The lanes of `%mask` as `%on`: without mask registers, LLVM takes the bits of a word apart one by one.
    fn lanes_of_mask(self) -> String {
        if self.mask_registers {
            return "  %on = bitcast i32 %mask to <32 x i1>\n".into();
        }
        format!(
            "  %word = insertelement <32 x i32> poison, i32 %mask, i32 0\n  \
             %words = shufflevector <32 x i32> %word, <32 x i32> poison, <32 x i32> zeroinitializer\n  \
             %signs = shl <32 x i32> %words, <{}>\n  %on = icmp slt <32 x i32> %signs, zeroinitializer\n",
            numbers(|lane| 31 - lane)
        )
    }

    /// For the lanes of a mask: few of them one after another, many at once, where inactive lanes load what the first active one does.
    fn some(self) -> String {
        let (t, all, align) = (Ty::scalar(self.elem), Ty::lanes(self.elem), align_of(self.elem, Kind::Weak));
        let pointer = format!(
            "  %lp = getelementptr i32, ptr %list, i32 %lane\n  %i = load i32, ptr %lp, align 4\n{}",
            self.pointer("")
        );
        let load = format!("  %v = load {t}, ptr %p, align {align}\n");
        let rows = format!(
            "  %ir = sub i32 %index.a, %lane.a\n  %begin.0 = insertelement <32 x i32> poison, i32 %ir, i32 0\n  \
             %begin = shufflevector <32 x i32> %begin.0, <32 x i32> poison, <32 x i32> zeroinitializer\n  \
             %row = add <32 x i32> %begin, <{lanes}>\n  %off = icmp ne <32 x i32> %index, %row\n{wraps}  \
             %not.row = or <32 x i1> %off, %away\n  %not.row.bits = bitcast <32 x i1> %not.row to i32\n  \
             %not.row.some = and i32 %not.row.bits, %mask\n  %is.row = icmp eq i32 %not.row.some, 0\n  \
             br i1 %is.row, label %whole, label %alike\nwhole:\n{row_pointer}  %found = {load}\n  ret {all} %found\n",
            lanes = numbers(|lane| lane),
            wraps = self.wraps(),
            row_pointer = self.pointer("r"),
            load = self.masked_load().0,
        );
        let step = Step { pointer: &pointer, code: &load, collects: Some(self.elem) };
        format!(
            "  store volatile <32 x i32> %index, ptr %list, align 64\n{few}many:\n{on}  %lane.a = call i32 @llvm.cttz.i32(i32 %mask, i1 true)\n  %less.a = sub i32 %mask, 1\n  \
             %others = and i32 %mask, %less.a\n  %lane.b = call i32 @llvm.cttz.i32(i32 %others, i1 true)\n  \
             %la = getelementptr i32, ptr %list, i32 %lane.a\n  %lb = getelementptr i32, ptr %list, i32 %lane.b\n  \
             %index.a = load i32, ptr %la, align 4\n  %index.b = load i32, ptr %lb, align 4\n  \
             %first.0 = insertelement <32 x i32> poison, i32 %index.a, i32 0\n  \
             %first = shufflevector <32 x i32> %first.0, <32 x i32> poison, <32 x i32> zeroinitializer\n{look}alike:\n  \
             %unlike = icmp ne <32 x i32> %index, %first\n  %unlike.bits = bitcast <32 x i1> %unlike to i32\n  \
             %unlike.some = and i32 %unlike.bits, %mask\n  %is.same = icmp eq i32 %unlike.some, 0\n  \
             br i1 %is.same, label %same, label %apart\nsame:\n{same}apart:\n  \
             %safe = select <32 x i1> %on, <32 x i32> %index, <32 x i32> %first\n  store volatile <32 x i32> %safe, ptr %list, align 64\n{each}loop:\n{one_by_one}  ret {all} %result\n",
            few = fewer(WORTH, ["loop", "many"]),
            on = self.lanes_of_mask(),
            look = self.look_for_row(&rows),
            same = self.same(true),
            each = self.each(true),
            one_by_one = step.repeat("loop"),
        )
    }

    /// For all lanes: rows of eight at once, and one element that all share.
    fn all(self) -> String {
        let (t, align) = (Ty::scalar(self.elem), align_of(self.elem, Kind::Weak));
        let mut rows = String::new();
        for lane in (0..32).step_by(ROW as usize) {
            rows.push_str(&format!(
                "  %i.row{lane} = extractelement <32 x i32> %index, i32 {lane}\n{}  \
                 %y{lane} = load <{ROW} x {t}>, ptr %p.row{lane}, align {align}\n",
                self.pointer(&format!(".row{lane}"))
            ));
        }
        let row = format!(
            "  %firsts = shufflevector <32 x i32> %index, <32 x i32> poison, <32 x i32> <{firsts}>\n  \
             %wanted = add <32 x i32> %firsts, <{steps}>\n  %off = icmp ne <32 x i32> %index, %wanted\n{wraps}  \
             %not.row = or <32 x i1> %off, %away\n  %not.row.bits = bitcast <32 x i1> %not.row to i32\n  \
             %is.row = icmp eq i32 %not.row.bits, 0\n  br i1 %is.row, label %whole, label %alike\nwhole:\n{rows}{joined}",
            firsts = numbers(|lane| lane / ROW * ROW),
            steps = numbers(|lane| lane % ROW),
            wraps = self.wraps(),
            joined = super::together::join_rows(self.elem, 'y'),
        );
        format!(
            "  %index.a = extractelement <32 x i32> %index, i32 0\n  %index.b = extractelement <32 x i32> %index, i32 1\n  \
             %lane.a = add i32 0, 0\n  %lane.b = add i32 0, 1\n{look}alike:\n  \
             %first.all = shufflevector <32 x i32> %index, <32 x i32> poison, <32 x i32> zeroinitializer\n  \
             %unlike = icmp ne <32 x i32> %index, %first.all\n  %unlike.bits = bitcast <32 x i1> %unlike to i32\n  \
             %is.same = icmp eq i32 %unlike.bits, 0\n  br i1 %is.same, label %same, label %apart\nsame:\n{same}apart:\n  \
             store volatile <32 x i32> %index, ptr %list, align 64\n{each}",
            look = self.look_for_row(&row),
            same = self.same(false),
            each = self.each(false),
        )
    }
}
