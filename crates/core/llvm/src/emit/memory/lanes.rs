//! The text of LLVM functions that access memory lane by lane, each at an address of its own.

use crate::emit::{
    memory::{
        branchless::{SPARE, SPARSE, fewer, load_lanes, store_lanes},
        hardware::{begin, by_hardware, eights},
        together::{
            consecutive, few_loads, leave_few, load_all_together, load_together, may_be_together, store_rows,
            store_together,
        },
        unit::{Active, Direction, Strength},
    },
    text::{Elem, Ty, fill, per_lane},
};

/// How a helper for the lanes of a mask accesses them.
#[derive(Clone, Copy)]
pub(super) struct LaneCode {
    /// By the host's gathers and scatters, else by a loop.
    pub hardware: bool,
    /// With little code, which compiles quickly ([`crate::emit::Options::lean`]).
    pub lean: bool,
}

/// A lane in the code for single lanes.
#[derive(Clone, Copy)]
pub(in crate::emit) struct Lane<'a> {
    /// The suffix of the names of its values.
    pub n: &'a str,
    /// Its number, or the value that holds it.
    pub number: &'a str,
}

impl Lane<'_> {
    /// The current lane of a loop.
    pub const LOOP: Lane<'static> = Lane { n: "", number: "%lane" };
}

/// A helper that loops over the set bits of `%mask`; `step` is the code for lane `%lane` and its pointer `%p`. Vectors
/// are spilled first, since extracting elements one by one costs more.
pub(in crate::emit) fn lane_loop(header: &str, before: &str, step: impl Fn(Lane<'_>) -> String, after: &str) -> String {
    row_loop(header, before, "", &Step::of(&step(Lane::LOOP)), after)
}

/// The body of a loop over lanes.
pub(in crate::emit) struct Step<'a> {
    /// Code for the lane's pointer `%p`.
    pub pointer: &'a str,
    pub code: &'a str,
    /// The block in which the code ends.
    pub last: &'a str,
    /// The type of `%v`, the code's result for a lane; `%result` collects these, with zeros for inactive lanes.
    pub collects: Option<Elem>,
}

impl<'a> Step<'a> {
    /// A step without a result, for a lane whose address is in a list.
    pub fn of(code: &'a str) -> Step<'a> {
        Step { pointer: BY_ADDRESS, code, last: "each", collects: None }
    }

    /// The beginning and the end of the loop's body, and what follows the loop, which begins after the block `from`.
    ///
    /// Results are collected in registers: a vector that was just stored element by element can be loaded only after all stores have
    /// completed, which takes longer than loading a few lanes.
    fn collect(&self, from: &str) -> [String; 3] {
        let Some(elem) = self.collects else { return Default::default() };
        let all = Ty::lanes(elem);
        let sources = format!("[ zeroinitializer, %{from} ], [ %collected.next, %each ]");
        [format!("  %collected = phi {all} {sources}\n"), collect(elem), format!("  %result = phi {all} {sources}\n")]
    }

    /// A loop over the lanes of `%mask`, from the lowest one on, after the block `from`. What follows it is in the block `end`.
    pub(super) fn repeat(&self, from: &str) -> String {
        let [collected, collect, result] = self.collect(from);
        let Step { pointer, code, last, .. } = self;
        fill(
            include_str!("lanes/each.ll"),
            &[
                ("from", &from),
                ("last", last),
                ("collected", &collected),
                ("pointer", pointer),
                ("code", code),
                ("collect", &collect),
                ("result", &result),
            ],
        )
    }
}

/// Code that puts the element `%v` into a vector, at the place `%lane`.
fn collect(elem: Elem) -> String {
    let number = Elem::int(elem.bits());
    let (place, ty) = (number.bits(), Ty::scalar(number));
    let place = match place {
        32 => "add i32 %lane, 0".to_string(),
        bits => format!("{} i32 %lane to {ty}", if bits < 32 { "trunc" } else { "zext" }),
    };
    fill(
        include_str!("lanes/collect.ll"),
        &[
            ("place", &place),
            ("places", &per_lane(number, i128::from)),
            ("number", &ty),
            ("numbers", &Ty::lanes(number)),
            ("t", &Ty::scalar(elem)),
            ("all", &Ty::lanes(elem)),
        ],
    )
}

/// A loop over lanes, after code that may have handled all of them together, and goes to `%loop` or falls through otherwise.
pub(in crate::emit) fn row_loop(header: &str, before: &str, together: &str, step: &Step<'_>, after: &str) -> String {
    let from = if together.is_empty() { "entry" } else { "loop" };
    let jump = match together {
        "" => "",
        // The code has returned, or has gone to the loop.
        _ if together.trim_end().lines().last().is_some_and(|line| line.starts_with("  ret ")) => "loop:\n",
        _ => "  br label %loop\nloop:\n",
    };
    let (variables, before) = variables_apart(before);
    fill(
        include_str!("lanes/loop.ll"),
        &[
            ("header", &header),
            ("variables", &format_args!("{ADDRESSES}{variables}{SPILL}")),
            ("together", &together),
            ("before", &format_args!("{jump}{before}")),
            ("each", &step.repeat(from)),
            ("after", &after),
        ],
    )
}

/// The allocations of variables in a text, and the rest: only what the entry block allocates is part of the frame.
fn variables_apart(text: &str) -> (String, String) {
    let (variables, rest): (Vec<&str>, Vec<&str>) = text.split_inclusive('\n').partition(|l| l.contains(" alloca "));
    (variables.concat(), rest.concat())
}

/// A helper unrolled over all 32 lanes.
pub(in crate::emit) fn lane_list(header: &str, before: &str, step: impl Fn(Lane<'_>) -> String, after: &str) -> String {
    row_list(header, "", before, step, after)
}

/// The same after code that may have handled all lanes together.
fn row_list(header: &str, together: &str, before: &str, step: impl Fn(Lane<'_>) -> String, after: &str) -> String {
    let mut lanes = String::new();
    for lane in 0..32 {
        let n = &lane.to_string();
        lanes += &fill(include_str!("lanes/pointer.ll"), &[("n", n)]);
        lanes += &step(Lane { n, number: n });
    }
    let (variables, spills) = variables_apart(&format!("{ADDRESSES}{SPILL}{before}"));
    fill(
        include_str!("lanes/list.ll"),
        &[
            ("header", &header),
            ("variables", &variables),
            ("together", &together),
            ("before", &spills),
            ("lanes", &lanes),
            ("after", &after),
        ],
    )
}

/// The alignment in bytes that helpers assume: weak accesses may be several of smaller elements ([`super::fused`]).
pub(super) fn align_of(elem: Elem, strength: Strength) -> u32 {
    if strength == Strength::Weak { 1 } else { elem.bits() / 8 }
}

/// The variable in which code for single lanes finds their addresses, and the store to it.
pub(super) const ADDRESSES: &str = "  %addresses = alloca <32 x i64>, align 64\n";
pub(super) const SPILL: &str = "  store volatile <32 x i64> %at, ptr %addresses, align 64\n";

/// The pointer of a lane whose address is in a list.
const BY_ADDRESS: &str = "  %address.p = getelementptr i64, ptr %addresses, i32 %lane\n  \
                                              %a = load i64, ptr %address.p, align 8\n  %p = inttoptr i64 %a to ptr\n";

/// The functions of a text, and one that calls its first function with addresses as one number and a word for each lane
/// ([`crate::emit::text::Writer::base_and_words`]). The name ends with `.at`.
pub(super) fn at_words(text: &str) -> Option<String> {
    let (head, _) = text.split_once(") #")?;
    let (result, rest) = head.strip_prefix("define internal ")?.split_once(" @")?;
    let (name, args) = rest.split_once('(')?;
    let own = args.replace("<32 x i64> %at", "i64 %base, <32 x i32> %words");
    let (assign, value) = if result == "void" { ("", "") } else { ("%result = ", " %result") };
    Some(fill(
        include_str!("lanes/at_words.ll"),
        &[("name", &name), ("args", &args), ("own", &own), ("result", &result), ("assign", &assign), ("value", &value)],
    ))
}

/// The helper that loads the elements of the lanes of a mask; the others get zeros.
pub(super) fn gather_some(elem: Elem, strength: Strength, code: LaneCode) -> String {
    let LaneCode { hardware, lean } = code;
    let (t, align) = (Ty::scalar(elem), align_of(elem, strength));
    if hardware {
        let (together, rows) = load_together(elem, code);
        let (body, declared) = match lean {
            true => eights(elem, Direction::Load),
            false => by_hardware(elem, Direction::Load, Active::Masked),
        };
        let header = format!("<32 x {t}> @margay.gather.{t}(<32 x i64> %at, i32 %mask)");
        let begin = begin(elem, lean);
        return format!(
            "define internal {header} #1 {{\nentry:\n{begin}{together}{body}}}\n{declared}\n{rows}\n\
             declare i32 @llvm.cttz.i32(i32, i1)\ndeclare i32 @llvm.ctpop.i32(i32)"
        );
    }
    let load = strength.load(&t.to_string(), "%p", align);
    let collects = (elem.bits() <= 64).then_some(elem);
    let (before, step, after) = match collects {
        Some(_) => (String::new(), format!("  %v = {load}\n"), String::new()),
        None => (
            format!("  %out = alloca <32 x {t}>, align 64\n  store <32 x {t}> zeroinitializer, ptr %out, align 64\n"),
            fill(include_str!("lanes/wide_load.ll"), &[("t", &t), ("load", &load), ("align", &align)]),
            format!("  %result = load <32 x {t}>, ptr %out, align 64\n"),
        ),
    };
    let after = format!("{after}  ret <32 x {t}> %result\n");
    let together = (strength == Strength::Weak && elem.bits() <= 64).then(|| {
        let (text, declared) = load_together(elem, code);
        // Lean code is short: it only tests whether there are few lanes.
        let (few, many) = match lean {
            true => (leave_few(), String::new()),
            false => {
                let few = few_loads(Ty::scalar(elem), Ty::lanes(elem), align);
                (
                    format!("{SPARE}{}dense:\n{}{few}", fewer(SPARSE, ["loop", "dense"]), may_be_together(elem)),
                    load_lanes(elem, align),
                )
            }
        };
        (format!("{few}{text}{many}"), format!("{declared}\ndeclare i32 @llvm.ctpop.i32(i32)"))
    });
    let (together, declared) = together.unwrap_or_default();
    let text = row_loop(
        &format!("<32 x {t}> @margay.gather.{t}{}(<32 x i64> %at, i32 %mask)", strength.suffix()),
        &before,
        &together,
        &Step { collects, ..Step::of(&step) },
        &after,
    );
    format!("{text}{declared}")
}

/// The helper that loads the elements of all lanes.
pub(super) fn gather_all(elem: Elem, strength: Strength, hardware: bool) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, strength));
    if hardware {
        let (rows, (body, declared)) =
            (load_all_together(elem, hardware), by_hardware(elem, Direction::Load, Active::All));
        let header = format!("<32 x {t}> @margay.gather.all.{t}(<32 x i64> %at)");
        return format!("define internal {header} #1 {{\n{rows}{body}}}\n{declared}");
    }
    let step = |Lane { n, .. }: Lane<'_>| {
        let load = strength.load(&t.to_string(), &format!("%p{n}"), align);
        let before = match n.parse::<u32>() {
            Ok(lane @ 1..) => format!("%row{}", lane - 1),
            _ => "poison".into(),
        };
        format!("  %v{n} = {load}\n  %row{n} = insertelement <32 x {t}> {before}, {t} %v{n}, i32 {n}\n")
    };
    row_list(
        &format!("<32 x {t}> @margay.gather.all.{t}{}(<32 x i64> %at)", strength.suffix()),
        &if strength == Strength::Weak { load_all_together(elem, hardware) } else { String::new() },
        "",
        step,
        &format!("  ret <32 x {t}> %row31\n"),
    )
}

/// The helper that stores the elements of the lanes of a mask.
pub(super) fn scatter_some(elem: Elem, strength: Strength, code: LaneCode) -> String {
    let LaneCode { hardware, lean } = code;
    let (t, align) = (Ty::scalar(elem), align_of(elem, strength));
    if hardware {
        let (together, rows) = store_together(elem, hardware);
        let (body, declared) = match lean {
            true => eights(elem, Direction::Store),
            false => by_hardware(elem, Direction::Store, Active::Masked),
        };
        let header = format!("void @margay.scatter.{t}(<32 x i64> %at, <32 x {t}> %values, i32 %mask)");
        let begin = begin(elem, lean);
        return format!("define internal {header} #1 {{\nentry:\n{begin}{together}{body}}}\n{declared}\n{rows}");
    }
    let before = format!("  %in = alloca <32 x {t}>, align 64\n  store <32 x {t}> %values, ptr %in, align 64\n");
    let step = |lane: Lane<'_>| store_lane(lane, elem, strength, "");
    let header =
        format!("void @margay.scatter.{t}{}(<32 x i64> %at, <32 x {t}> %values, i32 %mask)", strength.suffix());
    if strength == Strength::Strong || elem.bits() > 64 {
        return lane_loop(&header, &before, step, "  ret void\n");
    }
    let (together, declared) = store_together(elem, hardware);
    let (spare, likely, many) = match lean {
        true => ("", String::new(), String::new()),
        false => {
            let (_, spill) = variables_apart(&before);
            (SPARE, may_be_together(elem), store_lanes(elem, align, &spill))
        }
    };
    let text = row_loop(
        &header,
        &before,
        &format!("{spare}{}{likely}{together}{many}", leave_few()),
        &Step::of(&step(Lane::LOOP)),
        "  ret void\n",
    );
    format!("{text}{declared}")
}

/// Stores the element of a lane, which lies in `%in`.
fn store_lane(Lane { n, number }: Lane<'_>, elem: Elem, strength: Strength, volatile: &str) -> String {
    let (t, align) = (Ty::scalar(elem), align_of(elem, strength));
    let store = strength.store(&t.to_string(), &format!("%v{n}"), &format!("%p{n}"), align);
    fill(
        include_str!("lanes/store.ll"),
        &[("n", &n), ("lane", &number), ("t", &t), ("align", &align), ("volatile", &volatile), ("store", &store)],
    )
}

/// The helper that stores the elements of all lanes.
pub(super) fn scatter_all(elem: Elem, strength: Strength, hardware: bool) -> String {
    let (t, bytes) = (Ty::scalar(elem), elem.bits() / 8);
    if hardware {
        let (rows, (body, declared)) =
            (consecutive(bytes, &store_rows(elem)), by_hardware(elem, Direction::Store, Active::All));
        let header = format!("void @margay.scatter.all.{t}(<32 x i64> %at, <32 x {t}> %values)");
        return format!("define internal {header} #1 {{\n{rows}{body}}}\n{declared}");
    }
    let before =
        format!("  %in = alloca <32 x {t}>, align 64\n  store volatile <32 x {t}> %values, ptr %in, align 64\n");
    row_list(
        &format!("void @margay.scatter.all.{t}{}(<32 x i64> %at, <32 x {t}> %values)", strength.suffix()),
        &if strength == Strength::Weak { consecutive(bytes, &store_rows(elem)) } else { String::new() },
        &before,
        |lane| store_lane(lane, elem, strength, " volatile"),
        "  ret void\n",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::assert_names;

    #[test]
    fn helpers_define_what_they_use() {
        let elems = [Elem::I8, Elem::I16, Elem::I32, Elem::I64, Elem::I128, Elem::F16, Elem::F32, Elem::F64];
        for (elem, lean) in elems.into_iter().flat_map(|elem| [(elem, false), (elem, true)]) {
            for strength in [Strength::Weak, Strength::Strong] {
                let code = LaneCode { hardware: false, lean };
                let some = [gather_some(elem, strength, code), scatter_some(elem, strength, code)];
                some.iter().for_each(|text| assert_names(text));
                some.iter().for_each(|text| assert_names(&at_words(text).unwrap()));
                assert_names(&gather_all(elem, strength, false));
                assert_names(&scatter_all(elem, strength, false));
            }
            if matches!(elem.bits(), 32 | 64) {
                let code = LaneCode { hardware: true, lean };
                assert_names(&gather_some(elem, Strength::Weak, code));
                assert_names(&scatter_some(elem, Strength::Weak, code));
                assert_names(&scatter_all(elem, Strength::Weak, true));
            }
            if matches!(elem.bits(), 8 | 32 | 64) {
                assert_names(&gather_all(elem, Strength::Weak, true));
            }
        }
    }
}
