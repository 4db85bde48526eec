//! The text of the functions that compiled code calls where the comparison before an access fails, which need not be a fault: lanes may be
//! inactive, the site may not have accessed the allocation before, or addresses may be those of `.local` memory.

use crate::{
    ctx::{Helper, at},
    emit::text::{Elem, Ty, fill, per_lane},
};
use margay_exec::mem;

/// Declares the intrinsic that finds the first lane of a mask.
const FIRST: &str = "declare i32 @llvm.cttz.i32(i32, i1)";

/// Lanes whose addresses are not in their own local windows, with room for an access of `bytes` bytes.
fn foreign() -> String {
    fill(
        include_str!("slow/foreign.ll"),
        &[
            ("local", &at::LOCAL),
            ("local_stride", &at::LOCAL_STRIDE),
            ("local_size", &at::LOCAL_SIZE),
            ("lanes", &per_lane(Elem::I64, i128::from)),
        ],
    )
}

/// Lanes of the mask whose access of `bytes` bytes lies in none of the device heap's small objects ([`mem::Arena`]).
fn no_object() -> String {
    fill(
        include_str!("slow/no_object.ll"),
        &[
            ("heap", &at::HEAP),
            ("heap_size", &at::HEAP_SIZE),
            ("heap_table", &at::HEAP_TABLE),
            ("granule", &mem::Arena::GRANULE.ilog2()),
            ("over_one", &over_object(Lanes::One, "%lead", "%bytes")),
            ("over_each", &over_object(Lanes::Each, "%safe", "%bytes.all")),
        ],
    )
}

/// Whose accesses are compared with objects of the heap.
enum Lanes {
    /// Those of one lane, in scalars.
    One,
    /// Those of each lane, in vectors.
    Each,
}

/// Whether an access of this many bytes at an offset in the device heap leaves the object there; `%granule.x` and `%entry.x` are the
/// offset's granule and the table's entry for it ([`mem::Arena`]), where `x` is the name of the lanes.
fn over_object(lanes: Lanes, offset: &str, bytes: &str) -> String {
    let (x, vector) = match lanes {
        Lanes::One => ("one", false),
        Lanes::Each => ("each", true),
    };
    let constant = |n: u64| if vector { format!("splat (i64 {n})") } else { n.to_string() };
    fill(
        include_str!("slow/over_object.ll"),
        &[
            ("x", &x),
            ("ty", &Ty { elem: Elem::I64, vector }),
            ("offset", &offset),
            ("bytes", &bytes),
            ("length", &constant(mem::Arena::LENGTH)),
            ("shift", &constant(32)),
            ("index", &constant(mem::Arena::INDEX)),
            ("granule", &constant(mem::Arena::GRANULE.ilog2().into())),
        ],
    )
}

/// Asks a helper of the host about the lanes of a mask; defines `%status`. Functions that do so have a buffer for the addresses in their entry
/// block. `more` are further arguments.
fn ask_host(helper: Helper, more: &str) -> String {
    fill(include_str!("slow/helper.ll"), &[("helpers", &at::HELPERS), ("entry", &(helper as u64 * 8)), ("more", &more)])
}

/// Asks a helper of the host about all lanes of one access: `@margay.ask`, which asks [`Helper::Check`] about an access that may fail,
/// `@margay.ask.earlier`, which asks [`Helper::CheckEarlier`] about one before an access that has failed, or `@margay.ask.group`, which asks
/// [`Helper::CheckGroup`].
pub(super) fn ask(name: &str, helper: Helper) -> String {
    fill(include_str!("slow/ask.ll"), &[("name", &name), ("ask_host", &ask_host(helper, ""))])
}

/// Checks a group as the host would, and asks the host if that fails.
pub(super) fn group() -> String {
    let ask = ask_host(Helper::CheckGroup, "");
    fill(include_str!("slow/group.ll"), &[("sites", &at::SITES), ("ask_host", &ask)])
}

/// The functions that check one access, except the one that asks the host.
pub(super) fn check() -> Vec<String> {
    lane_by_lane(fill(include_str!("slow/check.ll"), &[]))
}

/// The function that checks a group, and what it calls.
pub(super) fn together() -> Vec<String> {
    lane_by_lane(fill(include_str!("slow/together.ll"), &[("ask_host", &ask_together())]))
}

/// The function that checks lines of a matrix.
pub(super) fn lines() -> String {
    fill(include_str!("slow/lines.ll"), &[("ask_host", &ask_together())])
}

fn ask_together() -> String {
    ask_host(Helper::CheckTogether, ", i64 %bytes")
}

/// A function that compares lane by lane, and what it calls.
fn lane_by_lane(function: String) -> Vec<String> {
    vec![foreign(), no_object(), fill(include_str!("slow/outside.ll"), &[]), function, FIRST.into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::assert_names;

    #[test]
    fn helpers_define_what_they_use() {
        let host = [ask("@margay.ask", Helper::Check), group(), lines()];
        host.into_iter().chain(check()).chain(together()).for_each(|text| assert_names(&text));
    }
}
