//! The text of code that looks for rows among the addresses of lanes, before single lanes are handled.

use super::{
    branchless::fewer,
    lanes::{LaneCode, align_of},
    partial::{MaskedAlign, lanes_of_bits, masked_align},
    unit::Strength,
};
use crate::emit::text::{Elem, Ty, elements, fill, mangle};

/// Lanes whose addresses are compared with consecutive ones at run time: a row of a tile, or the part of it that a swizzle
/// keeps together.
const ROW: u32 = 8;

/// A template filled for the first lane of each row.
fn each_row(of: impl Fn(u32) -> String) -> String {
    (0..32).step_by(ROW as usize).map(of).collect()
}

/// The beginning of an unrolled helper that handles rows of consecutive addresses at once and continues with single lanes otherwise;
/// `rows` is the code for rows that begin at `%start0`, `%start8`, `%start16`, `%start24`.
pub(super) fn consecutive(bytes: u32, rows: &str) -> String {
    let starts = each_row(|lane| fill(include_str!("together/start.ll"), &[("lane", &lane)]));
    fill(
        include_str!("together/consecutive.ll"),
        &[
            ("firsts", &elements("i32", (0..32).map(|lane| lane / ROW * ROW))),
            ("steps", &elements("i64", (0..32).map(|lane| lane % ROW * bytes))),
            ("starts", &starts),
            ("rows", &rows),
        ],
    )
}

/// Fewer lanes than this are accessed one by one, even with gathers and scatters.
const FEW: u32 = 9;

/// Leaves few lanes to the code for single lanes, which takes less time for them than looking for rows.
pub(super) fn leave_few() -> String {
    fewer(FEW, ["apart.lanes", "many"]) + "many:\n"
}

/// The same for loads of elements `t`: few lanes often load what they share, such as the members of an object whose function they call.
pub(super) fn few_loads(t: Ty, all: Ty, align: u32) -> String {
    let fewer = fewer(FEW, ["few.lanes", "many"]);
    fill(include_str!("together/few_loads.ll"), &[("fewer", &fewer), ("t", &t), ("all", &all), ("align", &align)])
}

/// Lanes of the rows that are looked for first at run time: those of a CTA that is 16 threads wide. A wider row counts as two of them.
const HALF: u32 = 16;

/// The elements that move a value from the first lane of each half to all of its lanes.
fn firsts_of_halves() -> String {
    elements("i32", (0..32).map(|lane| lane / HALF * HALF))
}

/// Code that goes to the code for single lanes if the first two active lanes neither access consecutive elements nor share one, so that
/// unrelated addresses cost no comparison of vectors. Two lanes in different halves, or a single lane, show nothing.
pub(super) fn may_be_together(elem: Elem) -> String {
    fill(include_str!("together/perhaps.ll"), &[("bytes", &(elem.bits() / 8)), ("half", &HALF)])
}

/// Code that goes to `%one` if the lanes of a mask access consecutive elements from `%base0` and `%base1` on, by the halves `%half0` and
/// `%half1` of the mask, else to a label, where `%first.at` is the address of the first lane.
fn find_rows(bytes: u32, otherwise: &str) -> String {
    let halves: String = (0..32 / HALF)
        .map(|k| fill(include_str!("together/find_half.ll"), &[("k", &k), ("first", &(k * HALF)), ("bytes", &bytes)]))
        .collect();
    fill(
        include_str!("together/find_rows.ll"),
        &[
            ("halves", &halves),
            ("half", &HALF),
            ("firsts", &firsts_of_halves()),
            ("steps", &elements("i64", (0..32).map(|lane| lane % HALF * bytes))),
            ("otherwise", &otherwise),
        ],
    )
}

/// The halves of the mask as `%half.on0` and `%half.on1`.
fn half_masks(elem: Elem, hardware: bool) -> String {
    let half = |k| fill(include_str!("together/half_mask.ll"), &[("k", &k), ("half", &HALF)]);
    match hardware {
        true => half(0) + &half(1),
        false => lanes_of_bits(elem, HALF, "mask", &[("half.on0", 0), ("half.on1", HALF)]),
    }
}

/// The beginning of a loop over the lanes of a mask. It loads all active lanes at once if they access rows, or if each half of the warp
/// shares an element; except in lean code, also if the lanes of shorter rows share elements. Masked lanes often access rows: where
/// loops end at different times, the remaining lanes do, and so does the light tier's code where it counts rows as varying.
pub(super) fn load_together(elem: Elem, LaneCode { hardware, lean }: LaneCode) -> (String, String) {
    let (t, bytes, align) = (Ty::scalar(elem), elem.bits() / 8, align_of(elem, Strength::Weak));
    let (all, part) = (Ty::lanes(elem), Ty::lanes(elem).part(HALF));
    let name = format!("llvm.masked.load.v{HALF}{}.p0", mangle(t));
    let MaskedAlign { declared, attribute, argument } = masked_align(align);
    let text = fill(
        include_str!("together/load.ll"),
        &[
            ("find_rows", &find_rows(bytes, "several")),
            ("masks", &half_masks(elem, hardware)),
            ("t", &t),
            ("all", &all),
            ("part", &part),
            ("half", &HALF),
            ("name", &name),
            ("attribute", &attribute),
            ("argument", &argument),
            ("align", &align),
            ("order", &elements("i32", 0..32)),
            ("firsts", &firsts_of_halves()),
            ("rest", &if lean { "  br label %apart.lanes\n".into() } else { load_full(elem) }),
        ],
    );
    (text, format!("declare {part} @{name}(ptr{declared}, <{HALF} x i1>, {part})"))
}

/// Code that loads shorter rows of all lanes, or elements that the lanes of such rows share.
fn load_full(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, Strength::Weak));
    let shared = each_row(|lane| {
        fill(include_str!("together/share.ll"), &[("lane", &lane), ("t", &t), ("align", &align), ("row", &ROW)])
    });
    fill(
        include_str!("together/load_full.ll"),
        &[
            ("rows", &consecutive(elem.bits() / 8, &load_rows(elem))),
            ("starts", &each_row(|lane| fill(include_str!("together/share_start.ll"), &[("lane", &lane)]))),
            ("shared", &shared),
            ("joined", &join_rows(elem, "share.row")),
        ],
    )
}

/// The beginning of a loop over the lanes of a mask that stores rows at once.
pub(super) fn store_together(elem: Elem, hardware: bool) -> (String, String) {
    let (all, part) = (Ty::lanes(elem), Ty::lanes(elem).part(HALF));
    let name = format!("llvm.masked.store.v{HALF}{}.p0", mangle(Ty::scalar(elem)));
    let MaskedAlign { declared, attribute, argument } = masked_align(align_of(elem, Strength::Weak));
    let stores: String = (0..32 / HALF)
        .map(|k| {
            fill(
                include_str!("together/store_half.ll"),
                &[
                    ("k", &k),
                    ("all", &all),
                    ("part", &part),
                    ("half", &HALF),
                    ("picks", &elements("i32", k * HALF..(k + 1) * HALF)),
                    ("name", &name),
                    ("attribute", &attribute),
                    ("argument", &argument),
                ],
            )
        })
        .collect();
    let text = fill(
        include_str!("together/store.ll"),
        &[
            ("find_rows", &find_rows(elem.bits() / 8, "apart.lanes")),
            ("masks", &half_masks(elem, hardware)),
            ("stores", &stores),
        ],
    );
    let counts = "declare i32 @llvm.cttz.i32(i32, i1)\ndeclare i32 @llvm.ctpop.i32(i32)";
    (text, format!("declare void @{name}({part}, ptr{declared}, <{HALF} x i1>)\n{counts}"))
}

/// The beginning of an unrolled helper that loads rows of consecutive addresses, or one element for all lanes, at once. Without the host's
/// gathers, a vector fills many registers, so the first two lanes decide whether to compare the others.
pub(super) fn load_all_together(elem: Elem, hardware: bool) -> String {
    let bytes = elem.bits() / 8;
    let perhaps = match hardware {
        true => String::new(),
        false => fill(include_str!("together/perhaps_all.ll"), &[("bytes", &bytes)]),
    };
    fill(
        include_str!("together/load_all.ll"),
        &[
            ("perhaps", &perhaps),
            ("rows", &consecutive(bytes, &load_rows(elem))),
            ("t", &Ty::scalar(elem)),
            ("all", &Ty::lanes(elem)),
            ("align", &align_of(elem, Strength::Weak)),
        ],
    )
}

fn load_rows(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, Strength::Weak));
    each_row(|lane| format!("  %loaded{lane} = load <{ROW} x {t}>, ptr %start{lane}, align {align}\n"))
        + &join_rows(elem, "loaded")
}

/// Joins four rows of eight lanes, named by a word and their first lanes, and returns them.
pub(super) fn join_rows(elem: Elem, row: &str) -> String {
    fill(
        include_str!("together/join.ll"),
        &[
            ("row", &row),
            ("t", &Ty::scalar(elem)),
            ("sixteen", &elements("i32", 0..16)),
            ("order", &elements("i32", 0..32)),
        ],
    )
}

pub(super) fn store_rows(elem: Elem) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, Strength::Weak));
    let stores = each_row(|lane| {
        fill(
            include_str!("together/store_row.ll"),
            &[
                ("lane", &lane),
                ("t", &t),
                ("align", &align),
                ("row", &ROW),
                ("picks", &elements("i32", lane..lane + ROW)),
            ],
        )
    });
    stores + "  ret void\n"
}
