//! The text of code that looks for rows among the addresses of lanes, before single lanes are handled.

use super::{
    branchless::fewer,
    lanes::align_of,
    partial::{MaskedAlign, lanes_of_bits, masked_align},
    unit::Kind,
};
use crate::emit::text::{Elem, Ty, mangle};

/// Lanes whose addresses are compared with consecutive ones at run time: a row of a tile, or the part of it that a swizzle
/// keeps together.
const ROW: u32 = 8;

/// The begin of an unrolled helper that handles rows of consecutive addresses at once and goes on with single lanes otherwise;
/// `rows` is the code for rows that begin at `%b0`, `%b8`, `%b16`, `%b24`.
pub(super) fn consecutive(bytes: u32, rows: &str) -> String {
    let list = |f: &dyn Fn(u32) -> String| (0..32).map(f).collect::<Vec<_>>().join(", ");
    let (firsts, steps) =
        (list(&|lane| format!("i32 {}", lane / ROW * ROW)), list(&|lane| format!("i64 {}", lane % ROW * bytes)));
    let starts: String = (0..32)
        .step_by(ROW as usize)
        .map(|lane| {
            format!(
                "  %s{lane} = extractelement <32 x i64> %at, i32 {lane}\n  %b{lane} = inttoptr i64 %s{lane} to ptr\n"
            )
        })
        .collect();
    format!(
        "  %firsts = shufflevector <32 x i64> %at, <32 x i64> poison, <32 x i32> <{firsts}>\n  \
         %wanted = add <32 x i64> %firsts, <{steps}>\n  %differ = icmp ne <32 x i64> %at, %wanted\n  \
         %apart = bitcast <32 x i1> %differ to i32\n  %scattered = icmp ne i32 %apart, 0\n  \
         br i1 %scattered, label %single, label %rows\nrows:\n{starts}{rows}single:\n"
    )
}

/// With gathers and scatters, or where many lanes are accessed in a loop, too, fewer lanes than these are accessed one by one.
const FEW: u32 = 9;

/// Leaves few lanes to the code for single lanes, which takes less time for them than looking for rows.
pub(super) fn leave_few() -> String {
    fewer(FEW, ["apart.lanes", "many"]) + "many:\n"
}

/// The same for loads of elements `t`: few lanes often load what they share, such as the members of an object whose function they call.
pub(super) fn few_loads(t: Ty, all: Ty, align: u32) -> String {
    let few = fewer(FEW, ["few.lanes", "many"]);
    format!(
        "{few}few.lanes:\n  %few.lane = call i32 @llvm.cttz.i32(i32 %mask, i1 false)\n  %few.in = and i32 %few.lane, 31\n  \
         %few.p = getelementptr i64, ptr %addresses, i32 %few.in\n  %few.a = load i64, ptr %few.p, align 8\n  \
         %few.one = insertelement <32 x i64> poison, i64 %few.a, i32 0\n  \
         %few.all = shufflevector <32 x i64> %few.one, <32 x i64> poison, <32 x i32> zeroinitializer\n  \
         %few.at = freeze <32 x i64> %at\n  %few.differ = icmp ne <32 x i64> %few.at, %few.all\n  \
         %few.bits = bitcast <32 x i1> %few.differ to i32\n  %few.others = and i32 %few.bits, %mask\n  \
         %few.none = icmp eq i32 %mask, 0\n  %few.apart = icmp ne i32 %few.others, 0\n  \
         %few.not = or i1 %few.none, %few.apart\n  br i1 %few.not, label %apart.lanes, label %few.share\nfew.share:\n  \
         %few.from = inttoptr i64 %few.a to ptr\n  %few.x = load {t}, ptr %few.from, align {align}\n  \
         %few.v = insertelement {all} poison, {t} %few.x, i32 0\n  \
         %few.row = shufflevector {all} %few.v, {all} poison, <32 x i32> zeroinitializer\n  \
         %few.on = bitcast i32 %mask to <32 x i1>\n  \
         %few.result = select <32 x i1> %few.on, {all} %few.row, {all} zeroinitializer\n  ret {all} %few.result\nmany:\n"
    )
}

/// The lanes of a row that is looked for at run time first: those of a CTA that is 16 threads wide. A wider one has two of them.
const HALF: u32 = 16;

/// Code that leaves lanes to the code for single lanes if the first two of them neither access consecutive elements nor share one, so that
/// lanes at addresses of their own cost no comparison of vectors. Lanes of different halves tell nothing, nor does a single lane, whose
/// other one may be arbitrary.
pub(super) fn may_be_together(elem: Elem) -> String {
    format!(
        "  %lane.a = call i32 @llvm.cttz.i32(i32 %mask, i1 false)\n  %in.a = and i32 %lane.a, 31\n  %less.a = sub i32 %mask, 1\n  \
         %rest.a = and i32 %mask, %less.a\n  %lane.b = call i32 @llvm.cttz.i32(i32 %rest.a, i1 false)\n  \
         %in.b = and i32 %lane.b, 31\n  %at.a = getelementptr i64, ptr %addresses, i32 %in.a\n  \
         %at.b = getelementptr i64, ptr %addresses, i32 %in.b\n  %one.a = load i64, ptr %at.a, align 8\n  \
         %one.b = load i64, ptr %at.b, align 8\n  %apart.ab = sub i64 %one.b, %one.a\n  %lanes.ab = sub i32 %in.b, %in.a\n  \
         %bytes.ab = mul i32 %lanes.ab, {}\n  %wide.ab = zext i32 %bytes.ab to i64\n  \
         %row.ab = icmp eq i64 %apart.ab, %wide.ab\n  %same.ab = icmp eq i64 %apart.ab, 0\n  %either.ab = or i1 %row.ab, %same.ab\n  \
         %halves.ab = xor i32 %in.a, %in.b\n  %far.ab = icmp uge i32 %halves.ab, {HALF}\n  %any.ab = or i1 %either.ab, %far.ab\n  \
         %perhaps = freeze i1 %any.ab\n  br i1 %perhaps, label %perhaps.together, label %apart.lanes\nperhaps.together:\n",
        elem.bits() / 8
    )
}

/// Code that goes to `%one` if the lanes of a mask access consecutive elements from `%base0` and `%base1` on, by the halves `%in0` and
/// `%in1` of the mask, else to a label, where `%fa` is the address of the first lane.
fn find_rows(bytes: u32, otherwise: &str) -> String {
    let mut text = String::from("  %half0 = and i32 %mask, 65535\n  %half1 = lshr i32 %mask, 16\n");
    for k in 0..32 / HALF {
        text.push_str(&format!(
            "  %low{k} = call i32 @llvm.cttz.i32(i32 %half{k}, i1 false)\n  %lane{k} = and i32 %low{k}, 15\n  \
             %index{k} = or i32 %lane{k}, {first}\n  %fp{k} = getelementptr i64, ptr %addresses, i32 %index{k}\n  \
             %fa{k} = load i64, ptr %fp{k}, align 8\n  %far{k} = zext i32 %lane{k} to i64\n  \
             %back{k} = mul i64 %far{k}, {bytes}\n  %begin{k} = sub i64 %fa{k}, %back{k}\n  \
             %base{k} = inttoptr i64 %begin{k} to ptr\n",
            first = k * HALF
        ));
    }
    let list = |f: &dyn Fn(u32) -> String| (0..32).map(f).collect::<Vec<_>>().join(", ");
    text + &format!(
        "  %begin.low = insertelement <32 x i64> poison, i64 %begin0, i32 0\n  \
         %begin.both = insertelement <32 x i64> %begin.low, i64 %begin1, i32 {HALF}\n  \
         %begins = shufflevector <32 x i64> %begin.both, <32 x i64> poison, <32 x i32> <{}>\n  \
         %row = add <32 x i64> %begins, <{}>\n  %known = freeze <32 x i64> %at\n  \
         %off = icmp ne <32 x i64> %known, %row\n  %off.bits = bitcast <32 x i1> %off to i32\n  \
         %off.some = and i32 %off.bits, %mask\n  %empty = icmp eq i32 %half0, 0\n  \
         %fa = select i1 %empty, i64 %fa1, i64 %fa0\n  %found.rows = icmp eq i32 %off.some, 0\n  \
         br i1 %found.rows, label %one, label %{otherwise}\n",
        list(&|lane| format!("i32 {}", lane / HALF * HALF)),
        list(&|lane| format!("i64 {}", lane % HALF * bytes))
    )
}

/// The halves `%in0` and `%in1` of the mask.
fn half_masks(elem: Elem, hardware: bool) -> String {
    let half =
        |k| format!("  %bits{k} = trunc i32 %half{k} to i16\n  %in{k} = bitcast i16 %bits{k} to <{HALF} x i1>\n");
    match hardware {
        true => half(0) + &half(1),
        false => lanes_of_bits(elem, HALF, "mask", &[("in0", 0), ("in1", HALF)]),
    }
}

/// The begin of a loop over the lanes of a mask that loads from consecutive addresses at once: whatever lanes there are if they access
/// rows, or if halves of the warp share an element, and single elements that the lanes of shorter rows share, but in lean code. Lanes
/// run apart where their loops end at different times, and those left still access rows, as the light tier's code does where it counts
/// rows as varying.
pub(super) fn load_together(elem: Elem, hardware: bool, lean: bool) -> (String, String) {
    let (t, bytes, align) = (Ty::scalar(elem), elem.bits() / 8, align_of(elem, Kind::Weak));
    let (all, half) = (Ty::lanes(elem), Ty::lanes(elem).part(HALF));
    let name = format!("llvm.masked.load.v{HALF}{}.p0", mangle(t));
    let MaskedAlign { declared, attribute, argument } = masked_align(align);
    let order = (0..32).map(|lane| format!("i32 {lane}")).collect::<Vec<_>>().join(", ");
    let halves = (0..32).map(|lane| format!("i32 {}", lane / HALF * HALF)).collect::<Vec<_>>().join(", ");
    let load = |k: u32| {
        format!(
            "  %found{k} = call {half} @{name}(ptr {attribute}%base{k}{argument}, <{HALF} x i1> %in{k}, {half} zeroinitializer)\n"
        )
    };
    // A half without lanes loads what the other one does.
    let one = format!(
        "{}one:\n{}{}{}  %found = shufflevector {half} %found0, {half} %found1, <32 x i32> <{order}>\n  ret {all} %found\n\
         several:\n  %void = icmp eq i32 %half1, 0\n  %fb = select i1 %void, i64 %fa0, i64 %fa1\n  \
         %begins.0 = insertelement <32 x i64> poison, i64 %fa, i32 0\n  \
         %begins.1 = insertelement <32 x i64> %begins.0, i64 %fb, i32 {HALF}\n  \
         %begins.all = shufflevector <32 x i64> %begins.1, <32 x i64> poison, <32 x i32> <{halves}>\n  \
         %unlike = icmp ne <32 x i64> %known, %begins.all\n  %unlike.bits = bitcast <32 x i1> %unlike to i32\n  \
         %unlike.some = and i32 %unlike.bits, %mask\n  %alike = icmp eq i32 %unlike.some, 0\n  \
         br i1 %alike, label %same, label %mixed\nsame:\n  %same.a = inttoptr i64 %fa to ptr\n  %same.b = inttoptr i64 %fb to ptr\n  \
         %same.x = load {t}, ptr %same.a, align {align}\n  %same.y = load {t}, ptr %same.b, align {align}\n  \
         %same.0 = insertelement {all} poison, {t} %same.x, i32 0\n  %same.1 = insertelement {all} %same.0, {t} %same.y, i32 {HALF}\n  \
         %same.all = shufflevector {all} %same.1, {all} poison, <32 x i32> <{halves}>\n  \
         %same.on = bitcast i32 %mask to <32 x i1>\n  \
         %same.some = select <32 x i1> %same.on, {all} %same.all, {all} zeroinitializer\n  ret {all} %same.some\nmixed:\n",
        find_rows(bytes, "several"),
        half_masks(elem, hardware),
        load(0),
        load(1)
    );
    let declaration = format!("declare {half} @{name}(ptr{declared}, <{HALF} x i1>, {half})");
    if lean {
        return (format!("{one}  br label %apart.lanes\napart.lanes:\n"), declaration);
    }
    let one =
        format!("{one}  %every = icmp eq i32 %mask, -1\n  br i1 %every, label %full, label %apart.lanes\nfull:\n");
    let mut shared = String::from(
        "  %other = icmp ne <32 x i64> %at, %firsts\n  %other.bits = bitcast <32 x i1> %other to i32\n  \
         %alone = icmp ne i32 %other.bits, 0\n  br i1 %alone, label %apart.lanes, label %share\nshare:\n",
    );
    for lane in (0..32).step_by(ROW as usize) {
        shared.push_str(&format!(
            "  %e{lane} = load {t}, ptr %c{lane}, align {align}\n  \
             %h{lane} = insertelement <{ROW} x {t}> poison, {t} %e{lane}, i32 0\n  \
             %k{lane} = shufflevector <{ROW} x {t}> %h{lane}, <{ROW} x {t}> poison, <{ROW} x i32> zeroinitializer\n"
        ));
    }
    let starts: String = (0..32)
        .step_by(ROW as usize)
        .map(|l| format!("  %d{l} = extractelement <32 x i64> %at, i32 {l}\n  %c{l} = inttoptr i64 %d{l} to ptr\n"))
        .collect();
    let shared = shared.replace("share:\n", &format!("share:\n{starts}"));
    let text = format!("{one}{}{shared}{}apart.lanes:\n", consecutive(bytes, &load_rows(elem)), join_rows(elem, 'k'));
    (text, declaration)
}

/// The begin of a loop over the lanes of a mask that stores rows at once.
pub(super) fn store_together(elem: Elem, hardware: bool) -> (String, String) {
    let (all, half) = (Ty::lanes(elem), Ty::lanes(elem).part(HALF));
    let name = format!("llvm.masked.store.v{HALF}{}.p0", mangle(Ty::scalar(elem)));
    let MaskedAlign { declared, attribute, argument } = masked_align(align_of(elem, Kind::Weak));
    let mut text = find_rows(elem.bits() / 8, "apart.lanes") + "one:\n" + &half_masks(elem, hardware);
    for k in 0..32 / HALF {
        let picks = (k * HALF..(k + 1) * HALF).map(|lane| format!("i32 {lane}")).collect::<Vec<_>>().join(", ");
        text.push_str(&format!(
            "  %piece{k} = shufflevector {all} %values, {all} poison, <{HALF} x i32> <{picks}>\n  \
             call void @{name}({half} %piece{k}, ptr {attribute}%base{k}{argument}, <{HALF} x i1> %in{k})\n"
        ));
    }
    text.push_str("  ret void\napart.lanes:\n");
    let counts = "declare i32 @llvm.cttz.i32(i32, i1)\ndeclare i32 @llvm.ctpop.i32(i32)";
    (text, format!("declare void @{name}({half}, ptr{declared}, <{HALF} x i1>)\n{counts}"))
}

/// A load of one element for all lanes, `%same.all`.
fn load_same(elem: Elem, address: &str) -> String {
    let (t, align, all) = (Ty::scalar(elem), align_of(elem, Kind::Weak), Ty::lanes(elem));
    format!(
        "  %same.p = inttoptr i64 {address} to ptr\n  %same.v = load {t}, ptr %same.p, align {align}\n  \
         %same.1 = insertelement {all} poison, {t} %same.v, i32 0\n  \
         %same.all = shufflevector {all} %same.1, {all} poison, <32 x i32> zeroinitializer\n"
    )
}

/// The begin of an unrolled helper that loads rows of consecutive addresses, or one element for all lanes, at once. Without hardware for
/// lanes at addresses of their own, where vectors have many registers, the first two lanes tell whether to compare the others.
pub(super) fn load_all_together(elem: Elem, hardware: bool) -> String {
    let (all, bytes) = (Ty::lanes(elem), elem.bits() / 8);
    let rows = consecutive(bytes, &load_rows(elem));
    let perhaps = match hardware {
        true => String::new(),
        false => format!(
            "  %one.a = extractelement <32 x i64> %at, i32 0\n  %one.b = extractelement <32 x i64> %at, i32 1\n  \
             %apart.ab = sub i64 %one.b, %one.a\n  %row.ab = icmp eq i64 %apart.ab, {bytes}\n  %same.ab = icmp eq i64 %apart.ab, 0\n  \
             %perhaps = or i1 %row.ab, %same.ab\n  br i1 %perhaps, label %perhaps.together, label %mixed\nperhaps.together:\n"
        ),
    };
    format!(
        "{perhaps}{rows}  %firsts.1 = shufflevector <32 x i64> %at, <32 x i64> poison, <32 x i32> zeroinitializer\n  \
         %unlike = icmp ne <32 x i64> %at, %firsts.1\n  %unlike.bits = bitcast <32 x i1> %unlike to i32\n  \
         %alike = icmp eq i32 %unlike.bits, 0\n  br i1 %alike, label %same, label %mixed\nsame:\n  \
         %same.a = extractelement <32 x i64> %at, i32 0\n{}  ret {all} %same.all\nmixed:\n",
        load_same(elem, "%same.a")
    )
}

fn load_rows(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, Kind::Weak));
    let mut text = String::new();
    for lane in (0..32).step_by(ROW as usize) {
        text.push_str(&format!("  %l{lane} = load <{ROW} x {t}>, ptr %b{lane}, align {align}\n"));
    }
    text + &join_rows(elem, 'l')
}

/// Joins four rows of eight lanes, named by a letter and their first lanes, and returns them.
pub(super) fn join_rows(elem: Elem, row: char) -> String {
    let t = Ty::scalar(elem);
    let mut text = String::new();
    let join = |n: u32, name: &str, a: &str, b: &str| {
        let picks = (0..n).map(|l| format!("i32 {l}")).collect::<Vec<_>>().join(", ");
        let half = n / 2;
        format!("  %{name} = shufflevector <{half} x {t}> %{a}, <{half} x {t}> %{b}, <{n} x i32> <{picks}>\n")
    };
    text.push_str(&join(16, &format!("{row}.low"), &format!("{row}0"), &format!("{row}8")));
    text.push_str(&join(16, &format!("{row}.high"), &format!("{row}16"), &format!("{row}24")));
    text.push_str(&join(32, &format!("{row}.whole"), &format!("{row}.low"), &format!("{row}.high")));
    text + &format!("  ret <32 x {t}> %{row}.whole\n")
}

pub(super) fn store_rows(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, Kind::Weak));
    let mut text = String::new();
    for lane in (0..32).step_by(ROW as usize) {
        let picks = (lane..lane + ROW).map(|l| format!("i32 {l}")).collect::<Vec<_>>().join(", ");
        text.push_str(&format!(
            "  %w{lane} = shufflevector <32 x {t}> %values, <32 x {t}> poison, <{ROW} x i32> <{picks}>\n  \
             store <{ROW} x {t}> %w{lane}, ptr %b{lane}, align {align}\n"
        ));
    }
    text + "  ret void\n"
}
