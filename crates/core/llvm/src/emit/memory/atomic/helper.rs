//! The text of the helpers that perform atomic operations lane after lane.

use super::{Code, Flush, Operation};
use crate::emit::{
    memory::lanes::{Lane, Step, lane_list, row_loop},
    text::{Elem, Ty, fill},
};
use margay_exec::sem::fp;

impl Code {
    /// Whether `atomicrmw` does not suffice: NaNs must be canonical, and subnormals may have to be flushed.
    pub fn sums(self) -> bool {
        self.locked && self.op == Operation::FAdd && self.elem == Elem::F32
    }

    pub fn function(self, all: bool, one: bool) -> String {
        let word = |on: bool, word: &'static str| if on { word } else { "" };
        format!(
            "margay.{}{}{}{}{}{}.{}",
            self.op.word(),
            word(all, ".all"),
            word(one, ".one"),
            word(self.locked, ".locked"),
            word(self.locked, self.flush.suffix()),
            word(self.result, ".old"),
            Ty::scalar(self.elem)
        )
    }

    /// The code of one lane with the operand `v`; `n` ends the names.
    fn step(self, n: &str, v: &str) -> String {
        let (i, t, align) = (Ty::scalar(self.integer), Ty::scalar(self.elem), self.elem.bits() / 8);
        if self.sums() {
            let (name, window) = (sum_name(self.flush), self.window());
            return format!("  %old{n} = call float @{name}(ptr %p{n}, float {v}{window})\n");
        }
        if self.locked {
            return match self.op {
                Operation::Cas => fill(include_str!("helper/cas.ll"), &[("n", &n), ("i", &i), ("v", &v)]),
                op => {
                    format!("  %old{n} = atomicrmw {} ptr %p{n}, {t} {v} acq_rel, align {align}\n", op.word())
                }
            };
        }
        let new = |template: &str| fill(template, &[("n", &n), ("i", &i), ("v", &v)]);
        let pick = |compare: &str| {
            fill(include_str!("helper/pick.ll"), &[("n", &n), ("i", &i), ("v", &v), ("compare", &compare)])
        };
        let new = match self.op {
            Operation::Cas => new(include_str!("helper/swap_equal.ll")),
            Operation::Xchg => format!("  %new{n} = add {i} {v}, 0\n"),
            Operation::Min => pick("slt"),
            Operation::Max => pick("sgt"),
            Operation::UMin => pick("ult"),
            Operation::UMax => pick("ugt"),
            Operation::Inc => new(include_str!("helper/inc.ll")),
            Operation::Dec => new(include_str!("helper/dec.ll")),
            Operation::FAdd if self.elem == Elem::F32 => {
                fill(include_str!("helper/add_single.ll"), &[("n", &n), ("v", &v), ("nan", &fp::NAN32)])
            }
            Operation::Add | Operation::FAdd | Operation::And | Operation::Or | Operation::Xor => {
                format!("  %new{n} = {} {t} %old{n}, {v}\n", self.op.word())
            }
        };
        fill(include_str!("helper/plain.ll"), &[("n", &n), ("t", &t), ("align", &align), ("new", &new)])
    }

    /// Parameters that describe the shared window.
    fn window(self) -> &'static str {
        if self.flush == Flush::OutsideShared { ", i64 %low, i64 %size" } else { "" }
    }

    /// Loads the operands of a lane from where they were spilled.
    fn operands(self, Lane { n, number }: Lane<'_>) -> String {
        let (t, align) = (Ty::scalar(self.elem), self.elem.bits() / 8);
        let load = |template| fill(template, &[("n", &n), ("lane", &number), ("t", &t), ("align", &align)]);
        let text = load(include_str!("helper/operand.ll"));
        match self.op {
            Operation::Cas => text + &load(include_str!("helper/operand_new.ll")),
            _ => text,
        }
    }

    /// The helper for the lanes of a mask.
    pub fn walk(self) -> String {
        let (i, t, align) = (Ty::scalar(self.integer), Ty::scalar(self.elem), self.elem.bits() / 8);
        let cas = self.op == Operation::Cas;
        let mut before =
            format!("  %in = alloca <32 x {i}>, align 64\n  store volatile <32 x {i}> %values, ptr %in, align 64\n");
        if cas {
            before.push_str(&format!(
                "  %ins = alloca <32 x {i}>, align 64\n  store volatile <32 x {i}> %others, ptr %ins, align 64\n"
            ));
        }
        // A failing comparison is only a load, which need not wait for earlier lanes.
        let looks = cas && self.locked && self.elem.bits() <= 64;
        let one = if looks { self.look_and_swap() } else { self.step("", "%v") };
        let mut step = self.operands(Lane::LOOP) + &one;
        let (result, after) = if self.result {
            before.push_str(&format!(
                "  %out = alloca <32 x {i}>, align 64\n  store <32 x {i}> zeroinitializer, ptr %out, align 64\n"
            ));
            step += &fill(include_str!("helper/result.ll"), &[("t", &t), ("align", &align)]);
            let after = format!("  %result = load <32 x {i}>, ptr %out, align 64\n  ret <32 x {i}> %result\n");
            (format!("<32 x {i}>"), after)
        } else {
            ("void".into(), "  ret void\n".into())
        };
        let others = if cas { format!(", <32 x {i}> %others") } else { String::new() };
        let header = format!(
            "{result} @{}(<32 x i64> %at, i32 %mask, <32 x {i}> %values{others}{})",
            self.function(false, false),
            self.window()
        );
        let last = if looks { "next" } else { "each" };
        row_loop(&header, &before, "", &Step { last, ..Step::of(&step) }, &after)
    }

    /// A locked `cas` of one lane that compares before it locks: if it fails, it only reads memory, as an acquiring load.
    fn look_and_swap(self) -> String {
        let (i, align) = (Ty::scalar(self.integer), self.elem.bits() / 8);
        fill(include_str!("helper/look_and_swap.ll"), &[("i", &i), ("align", &align)])
    }

    /// The helper for all lanes, without results; with `one`, they share an operand.
    pub fn list(self, one: bool) -> String {
        let (i, t) = (Ty::scalar(self.integer), Ty::scalar(self.elem));
        let name = self.function(true, one);
        if one {
            let before = format!("  %v = bitcast {i} %value to {t}\n");
            let header = format!("void @{name}(<32 x i64> %at, {i} %value{})", self.window());
            return lane_list(&header, &before, |lane| self.step(lane.n, "%v"), "  ret void\n");
        }
        let before =
            format!("  %in = alloca <32 x {i}>, align 64\n  store volatile <32 x {i}> %values, ptr %in, align 64\n");
        let header = format!("void @{name}(<32 x i64> %at, <32 x {i}> %values{})", self.window());
        let step = |lane: Lane<'_>| self.operands(lane) + &self.step(lane.n, &format!("%v{}", lane.n));
        lane_list(&header, &before, step, "  ret void\n")
    }
}

impl Flush {
    fn suffix(self) -> &'static str {
        match self {
            Flush::Never => "",
            Flush::Always => ".flush",
            Flush::OutsideShared => ".generic",
        }
    }
}

fn sum_name(flush: Flush) -> String {
    format!("margay.sum{}", flush.suffix())
}

/// A single-precision addition to a location that other threads may change concurrently.
pub(super) fn sum(flush: Flush) -> String {
    let name = sum_name(flush);
    if flush == Flush::OutsideShared {
        let (inside, outside) = (sum_name(Flush::Never), sum_name(Flush::Always));
        return fill(
            include_str!("helper/sum_generic.ll"),
            &[("name", &name), ("inside", &inside), ("outside", &outside)],
        );
    }
    let flushes = flush == Flush::Always;
    let flushed = |v: &str| if flushes { fill(include_str!("helper/flushed.ll"), &[("v", &v)]) } else { String::new() };
    let [a, b, new] = if flushes { ["seen.flat", "bits.flat", "kept.flat"] } else { ["seen", "bits", "kept"] };
    fill(
        include_str!("helper/sum.ll"),
        &[
            ("name", &name),
            ("nan", &fp::NAN32),
            ("flush_operand", &flushed("bits")),
            ("flush_seen", &flushed("seen")),
            ("flush_sum", &flushed("kept")),
            ("a", &a),
            ("b", &b),
            ("new", &new),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::assert_names;
    use margay_exec::sem::atomic::{AtomicOp, Rmw};

    #[test]
    fn helpers_define_what_they_use() {
        use Operation::{Add, Cas, Dec, FAdd, Inc, Max, Xchg};
        let rmw = Rmw { op: AtomicOp::Add, ty: margay_isa::Type::U32 };
        let integers = [Add, Max, Inc, Dec, Xchg, Cas].map(|op| (op, Elem::I32, Elem::I32));
        let floats = [(FAdd, Elem::F32, Elem::I32), (FAdd, Elem::F64, Elem::I64)];
        for (op, elem, integer) in integers.into_iter().chain(floats) {
            for flush in [Flush::Never, Flush::Always, Flush::OutsideShared] {
                for (locked, result) in [(false, false), (false, true), (true, false), (true, true)] {
                    // Generic addresses need locks.
                    if !locked && flush == Flush::OutsideShared {
                        continue;
                    }
                    let code = Code { rmw, op, elem, integer, locked, flush, result };
                    assert_names(&code.walk());
                    // Lists are for operations without results and with one operand.
                    if op != Cas && !result {
                        assert_names(&code.list(true));
                        assert_names(&code.list(false));
                    }
                }
                assert_names(&sum(flush));
            }
        }
    }
}
