//! The text of code that loads or stores many lanes of a mask, each at an address of its own, without a branch for each.
//!
//! Hosts without AVX-512 have no scatters, and gathers that take longer than single loads. A loop over the lanes of a mask ends with
//! a branch that is hardly ever predicted, and the vector that it has stored element by element is loaded again before the stores are over. So
//! all lanes are accessed, the inactive ones at a spare word of the stack.

use crate::emit::text::{Elem, Ty};

/// As many lanes take about as long in a loop as all lanes in this code (measured on Zen 3 and 4).
pub(super) const WORTH: u32 = 8;

/// Looking for rows takes longer than to load fewer lanes than these in a loop.
pub(super) const SPARSE: u32 = 4;

/// Code that goes to `few` if `%mask` has fewer lanes than `limit`, else to `many`, which the caller begins.
pub(super) fn fewer(limit: u32, [few, many]: [&str; 2]) -> String {
    format!(
        "  %lanes.{many} = call i32 @llvm.ctpop.i32(i32 %mask)\n  %fewer.{many} = icmp ult i32 %lanes.{many}, {limit}\n  \
         br i1 %fewer.{many}, label %{few}, label %{many}\n"
    )
}

/// The variable that inactive lanes access.
pub(super) const SPARE: &str = "  %spare = alloca i64, align 8\n";

/// Code that goes to `%loop` if the lanes of `%mask` are few, and otherwise leaves an address for each lane in `%addresses`.
fn addresses() -> String {
    format!(
        "{}every.lane:\n  store volatile i64 0, ptr %spare, align 8\n  %spare.at = ptrtoint ptr %spare to i64\n  \
         %spare.one = insertelement <32 x i64> poison, i64 %spare.at, i32 0\n  \
         %spare.all = shufflevector <32 x i64> %spare.one, <32 x i64> poison, <32 x i32> zeroinitializer\n  \
         %safe.on = bitcast i32 %mask to <32 x i1>\n  \
         %safe = select <32 x i1> %safe.on, <32 x i64> %at, <32 x i64> %spare.all\n  \
         store volatile <32 x i64> %safe, ptr %addresses, align 64\n",
        fewer(WORTH, ["loop", "every.lane"])
    )
}

/// Lanes of a half of the warp: those of a small CTA, or those that `tid < 16` leaves.
const HALF: u32 = 16;

/// Code before a lane of many: before the upper half of them, it returns if none of that half is active.
pub(super) fn before_half(lane: u32, end: &str) -> String {
    match lane {
        HALF => format!(
            "  %low.half = icmp ult i32 %mask, {}\n  br i1 %low.half, label %half.done, label %high.half\nhalf.done:\n{end}high.half:\n",
            1 << HALF
        ),
        _ => String::new(),
    }
}

/// The address `%lp…` of a lane.
fn pointer(lane: u32) -> String {
    format!(
        "  %la{lane} = getelementptr i64, ptr %addresses, i32 {lane}\n  %ln{lane} = load volatile i64, ptr %la{lane}, align 8\n  \
         %lp{lane} = inttoptr i64 %ln{lane} to ptr\n"
    )
}

/// Code that loads many lanes and returns them, zeros for inactive ones; few are left to `%loop`.
pub(super) fn load_lanes(elem: Elem, align: u32) -> String {
    let (t, all) = (Ty::scalar(elem), Ty::lanes(elem));
    let mut text = addresses();
    for lane in 0..32 {
        let before = if lane == 0 { "zeroinitializer".into() } else { format!("%lr{}", lane - 1) };
        text.push_str(&before_half(lane, &format!("  ret {all} {before}\n")));
        text.push_str(&format!(
            "{}  %lv{lane} = load {t}, ptr %lp{lane}, align {align}\n  \
             %lr{lane} = insertelement {all} {before}, {t} %lv{lane}, i32 {lane}\n",
            pointer(lane)
        ));
    }
    text + &format!("  ret {all} %lr31\n")
}

/// Code that stores many lanes, the lowest one first, and returns; few are left to `%loop`. `spill` leaves the values of the lanes in `%in`.
pub(super) fn store_lanes(elem: Elem, align: u32, spill: &str) -> String {
    let t = Ty::scalar(elem);
    let mut text = addresses() + spill;
    for lane in 0..32 {
        text.push_str(&before_half(lane, "  ret void\n"));
        text.push_str(&format!(
            "{}  %li{lane} = getelementptr {t}, ptr %in, i32 {lane}\n  \
             %lv{lane} = load volatile {t}, ptr %li{lane}, align {}\n  store {t} %lv{lane}, ptr %lp{lane}, align {align}\n",
            pointer(lane),
            elem.bits() / 8
        ));
    }
    text + "  ret void\n"
}
