//! The text of code that loads or stores many lanes of a mask, each at an address of its own, without a branch for each.
//!
//! Hosts without AVX-512 have no scatters, and their gathers take longer than single loads. A loop over the lanes of a mask ends with
//! a branch that is hardly ever predicted, and a vector that was stored element by element is loaded before the stores have completed. So
//! this code accesses all lanes, the inactive ones at a spare word of the stack.

use crate::emit::text::{Elem, Ty, fill};

/// A loop over this many lanes takes about as long as this code for all lanes (measured on Zen 3 and 4).
pub(super) const WORTH: u32 = 8;

/// Looking for rows takes longer than loading fewer lanes than this in a loop.
pub(super) const SPARSE: u32 = 4;

/// Code that goes to `few` if `%mask` has fewer lanes than `limit`, else to `many`, which the caller begins.
pub(super) fn fewer(limit: u32, [few, many]: [&str; 2]) -> String {
    fill(include_str!("branchless/fewer.ll"), &[("limit", &limit), ("few", &few), ("many", &many)])
}

/// The variable that inactive lanes access.
pub(super) const SPARE: &str = "  %spare = alloca i64, align 8\n";

/// Code that goes to `%loop` if the lanes of `%mask` are few, and otherwise leaves an address for each lane in `%addresses`.
fn addresses() -> String {
    fill(include_str!("branchless/addresses.ll"), &[("fewer", &fewer(WORTH, ["loop", "every.lane"]))])
}

/// Lanes of half a warp: those of a small CTA, or those that pass `tid < 16`.
const HALF: u32 = 16;

/// Code before a lane of many: before the upper half of them, it returns if none of that half is active.
pub(super) fn before_half(lane: u32, end: &str) -> String {
    match lane {
        HALF => fill(include_str!("branchless/half.ll"), &[("lanes", &(1 << HALF)), ("end", &end)]),
        _ => String::new(),
    }
}

/// The address `%p…` of a lane.
fn pointer(lane: u32) -> String {
    fill(include_str!("branchless/pointer.ll"), &[("lane", &lane)])
}

/// Code that loads many lanes and returns them, zeros for inactive ones; few are left to `%loop`.
pub(super) fn load_lanes(elem: Elem, align: u32) -> String {
    let (t, all) = (Ty::scalar(elem), Ty::lanes(elem));
    let mut text = addresses();
    for lane in 0..32 {
        let before = if lane == 0 { "zeroinitializer".into() } else { format!("%row{}", lane - 1) };
        text += &before_half(lane, &format!("  ret {all} {before}\n"));
        text += &fill(
            include_str!("branchless/load.ll"),
            &[
                ("pointer", &pointer(lane)),
                ("lane", &lane),
                ("t", &t),
                ("all", &all),
                ("align", &align),
                ("before", &before),
            ],
        );
    }
    text + &format!("  ret {all} %row31\n")
}

/// Code that stores many lanes, the lowest one first, and returns; few are left to `%loop`. `spill` leaves the values of the lanes in `%in`.
pub(super) fn store_lanes(elem: Elem, align: u32, spill: &str) -> String {
    let (t, bytes) = (Ty::scalar(elem), elem.bits() / 8);
    let mut text = addresses() + spill;
    for lane in 0..32 {
        text += &before_half(lane, "  ret void\n");
        text += &fill(
            include_str!("branchless/store.ll"),
            &[("pointer", &pointer(lane)), ("lane", &lane), ("t", &t), ("bytes", &bytes), ("align", &align)],
        );
    }
    text + "  ret void\n"
}
