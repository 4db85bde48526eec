//! Sections that the lanes of a warp may run one after another.
//!
//! Without gathers, a row of loads at scattered addresses takes about as long as its lanes take one by one. So a loop over such loads gains
//! little from being executed for all lanes together, and loses whenever lanes leave it early: a warp takes as long as its longest list of
//! neighbours. Such loops get a second, scalar version. Which one runs is decided each time at the entry: both versions count what they
//! execute, from which a model tells whether the scalar one might pay. If so, it is tried, and what each takes is measured, since lanes
//! together wait for memory less often than one after another.

mod choose;
mod find;
mod lane;

use crate::ctx::{SECTION_SUMS, at};
use crate::emit::{
    function::{Emitter, Slot},
    text::{Elem, Ty, Val, int},
};
use margay_ir::{BlockId, VReg, pass::Shape};
use std::{collections::HashMap, fmt::Write};

pub(super) use find::find;

/// Sixths of a cycle that a lane alone takes to begin and end, by the model.
const LANE: u32 = 60;

/// What an iteration of a loop costs, without those of the loops in it.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// For a warp.
    together: u32,
    /// For a lane alone.
    apart: u32,
}

/// A section with one entry, which is not the target of an edge inside, and one exit.
pub(in crate::emit) struct Section {
    entry: BlockId,
    /// The block at whose end lanes enter the section, if they do not at its entry, which is a loop's header.
    before: Option<BlockId>,
    /// Where all lanes go on; `None` if their threads exit.
    exit: Option<BlockId>,
    /// In layout order.
    blocks: Vec<BlockId>,
    /// Registers whose values lanes bring, that they leave with another value which is read later, and all that occur.
    inputs: Vec<VReg>,
    outputs: Vec<VReg>,
    registers: Vec<VReg>,
    /// By header.
    loops: HashMap<BlockId, Cost>,
}

/// A point of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::emit) enum Point {
    Start,
    /// Before the terminator.
    End,
}

/// The sections of a function, with their variables.
#[derive(Default)]
pub(in crate::emit) struct Serial {
    sections: Vec<(Section, Variables)>,
    /// Those that the blocks emitted last may enter.
    entered: Vec<usize>,
    /// Code for a single lane is being emitted.
    single_lane: bool,
}

/// Addresses of sums of a section in the context, of 64 bits each.
#[derive(Clone)]
struct Past {
    /// What the section has cost by the model: for all lanes together, had it been so, and for one after another.
    together: Val,
    apart: Val,
    /// The time of the last entry in cycles, and whether it led to single lanes.
    entered: Val,
    alone: Val,
    /// The number of entries.
    entries: Val,
    /// By version, the scalar one last: cycles, and what was done in them.
    times: [Val; 2],
    works: [Val; 2],
}

/// Of a section, in the function's frame.
struct Variables {
    /// What lanes have done since the last entry, by the model: had they been together, and one after another. 64 bits each.
    together: Val,
    apart: Val,
    /// What is known from earlier entries.
    past: Past,
    /// The lanes that run the section, and those of them that have not begun.
    lanes: Val,
    left: Val,
    /// What the current lane would have cost the warp had it been alone, and the most of all lanes so far.
    own: Val,
    most: Val,
    /// By register of [`Section::inputs`] and [`Section::outputs`]: a row of all lanes.
    rows: HashMap<VReg, Val>,
}

impl Serial {
    /// The section that lanes enter at a point of a block.
    fn entered_at(&self, b: BlockId, point: Point) -> Option<usize> {
        let enters = |section: &Section| match section.before {
            Some(before) => (before, Point::End) == (b, point),
            None => (section.entry, Point::Start) == (b, point),
        };
        self.sections.iter().position(|(section, _)| enters(section))
    }
}

impl Emitter<'_> {
    /// Allocates the variables of sections.
    pub fn allocate_serial(&mut self, sections: Vec<Section>) {
        for section in sections {
            let [own, most] = [(); 2].map(|()| self.w.alloca("i64", 8));
            let [lanes, left] = [(); 2].map(|()| self.w.alloca("i32", 4));
            let mut sum = || {
                let sum = self.w.alloca("i64", 8);
                let _ = writeln!(self.w.entry, "  store i64 0, ptr {sum}, align 8");
                sum
            };
            let [together, apart] = [(); 2].map(|()| sum());
            let past = self.past(self.serial.sections.len());
            let mut rows = HashMap::new();
            for r in section.inputs.iter().chain(&section.outputs) {
                let Slot { shape, elem, .. } = self.slots[r.0 as usize];
                if shape != Shape::Uniform && !rows.contains_key(r) {
                    let row = if elem == Elem::I1 { "i32".into() } else { Ty::lanes(elem).to_string() };
                    rows.insert(*r, self.w.alloca(&row, 64));
                }
            }
            self.serial.sections.push((section, Variables { together, apart, past, lanes, left, own, most, rows }));
        }
    }

    /// The sums of a section in the context.
    fn past(&mut self, section: usize) -> Past {
        let first = at::SECTIONS + (section * SECTION_SUMS * 8) as u64;
        let ty = Ty::scalar(Elem::Ptr);
        let sums: [Val; SECTION_SUMS] = std::array::from_fn(|i| {
            self.w.at_entry(ty, format_args!("getelementptr i8, ptr %ctx, i64 {}", first + 8 * i as u64))
        });
        let [together, apart, entered, alone, entries, time, time_alone, work, work_alone] = sums;
        Past { together, apart, entered, alone, entries, times: [time, time_alone], works: [work, work_alone] }
    }

    /// Whether the code that is being emitted runs for a single lane.
    pub fn runs_single_lane(&self) -> bool {
        self.serial.single_lane
    }

    fn variables(&self, k: usize) -> &Variables {
        &self.serial.sections[k].1
    }

    fn section_at(&self, k: usize) -> &Section {
        &self.serial.sections[k].0
    }

    /// Adds to a sum of 64 bits.
    fn add_cost(&mut self, sum: &Val, cost: &Val) {
        let before = self.w.load(Ty::scalar(Elem::I64), sum, 8);
        let cost = self.w.resize(cost, Elem::I64, false);
        let after = self.w.op("add", &before, &cost);
        self.w.store(&after, sum, 8);
    }

    /// Counts an iteration of a loop of a section by all active lanes together.
    pub(super) fn count_together(&mut self, b: BlockId) {
        let found = (0..self.serial.sections.len()).find_map(|k| Some((k, *self.section_at(k).loops.get(&b)?)));
        let Some((k, cost)) = found else { return };
        let (together, apart) = (self.variables(k).together.clone(), self.variables(k).apart.clone());
        self.add_cost(&together, &int(Elem::I64, cost.together.into()));
        let lanes = self.active_bits();
        let lanes = self.w.intrinsic("llvm.ctpop", Ty::scalar(Elem::I32), &[&lanes]);
        let each = self.w.op_const("mul", &lanes, cost.apart.into());
        self.add_cost(&apart, &each);
    }

    /// Where lanes enter a section, at a point of a block: goes to the code for single lanes if that takes less time.
    pub(super) fn enter_serial(&mut self, b: BlockId, point: Point) {
        let Some(k) = self.serial.entered_at(b, point) else { return };
        let (lanes, left) = (self.variables(k).lanes.clone(), self.variables(k).left.clone());
        let bits = self.active_bits();
        let pays = self.alone_pays(k, &bits);
        let (alone, on) = (self.w.label("alone"), self.w.label("all"));
        self.w.branch(&pays, &alone, &on);
        let mark = self.w.mark();
        self.w.follow(&alone);
        self.w.store(&bits, &lanes, 4);
        self.w.store(&bits, &left, 4);
        for r in self.section_at(k).inputs.clone() {
            let Some(row) = self.variables(k).rows.get(&r).cloned() else { continue };
            let v = self.read(r);
            let v = self.w.splat(&v);
            match v.ty.elem {
                Elem::I1 => {
                    let bits = self.bits(&v);
                    self.w.store(&bits, &row, 4);
                }
                // LLVM would extract the elements from the vector one by one otherwise.
                _ => self.w.line(format_args!("store volatile {} {v}, ptr {row}, align 64", v.ty)),
            }
        }
        let label = self.serial_label(k, "begin");
        self.w.jump(&label);
        self.w.join(&on, mark);
        if !self.serial.entered.contains(&k) {
            self.serial.entered.push(k);
        }
    }
}
