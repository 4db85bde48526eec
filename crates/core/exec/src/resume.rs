//! A CTA in the middle of a kernel, for an engine that takes it over ([`margay_ir::pass::Resume`]).

use crate::{
    Bug, Grid, Image, Kernel, LANES, Meter, Row, Stop,
    lanes::{set_u128s, u32s, u32s_mut, u64s, u64s_mut, u128s},
    mem::{self, Allocation, Kind},
};
use margay_ir::{
    BlockId, FuncId, VReg,
    pass::{Held, Layout, Resume, Slot, slot_bytes},
};
use margay_isa::Type;
use std::sync::Arc;

/// A CTA whose threads have all arrived at the header of one loop, or ended.
pub struct Snapshot {
    /// The loop's header, a block of the kernel.
    pub header: BlockId,
    /// Threads of the CTA in x, y, z.
    pub block: [u32; 3],
    /// The registers that are live there.
    pub registers: Vec<LiveRegister>,
    /// By warp.
    pub warps: Vec<StoppedWarp>,
    /// Its windows.
    pub windows: CtaWindows,
}

/// The memory of a CTA, which moves along with it: addresses of it stay valid.
#[derive(Clone)]
pub struct CtaWindows {
    /// The shared window.
    pub shared: Arc<Allocation>,
    /// The local windows of all threads, warp by warp, and the distance between two in bytes, a multiple of 64; `None` if the kernel
    /// uses none.
    pub local: Option<(Arc<Allocation>, u64)>,
}

/// A register of a [`Snapshot`].
#[derive(Clone, Debug)]
pub struct LiveRegister {
    /// The register.
    pub register: VReg,
    /// Its type.
    pub ty: Type,
    /// It keeps its value: nothing that the loop's header reaches writes it.
    pub keeps: bool,
}

/// A warp of a [`Snapshot`].
pub struct StoppedWarp {
    /// Lanes that have not ended.
    pub alive: u32,
    /// The rows of the registers of [`Snapshot::registers`].
    pub rows: Vec<Vec<Row>>,
}

/// A thread: warp and lane.
type Thread = (usize, usize);

impl Snapshot {
    /// How the threads hold the registers at present.
    pub fn describe(&self) -> Resume {
        let held = self.registers.iter().enumerate().map(|(i, r)| (r.register, self.held(i))).collect();
        let warps = self.warps.len() as u32;
        Resume { header: self.header, held, ended: self.some_ended(), warps, pauses: false }
    }

    /// A weaker description, which threads still match after they have continued and some have ended: registers that change are uniform over
    /// warps at most.
    pub fn describe_later(&self) -> Resume {
        let now = self.describe();
        let later = |((register, held), of): (&(VReg, Held), &LiveRegister)| match *held {
            Held::Shared { cta: true, steps } if !of.keeps => (*register, Held::Shared { cta: false, steps }),
            held => (*register, held),
        };
        Resume { held: now.held.iter().zip(&self.registers).map(later).collect(), ended: true, ..now }
    }

    /// The same with a weaker description where this one does not match it.
    pub fn weaken(&self, old: &Resume) -> Resume {
        let weaker = |(i, (r, held)): (usize, &(VReg, Held))| match self.base(i, *held).is_some() {
            true => (*r, *held),
            false => (*r, Held::Lane),
        };
        let held = old.held.iter().enumerate().map(weaker).collect();
        Resume { held, ended: old.ended || self.some_ended(), ..*old }
    }

    /// Whether a form made for this description can continue the CTA.
    pub fn matches(&self, resume: &Resume) -> bool {
        let same = self.header == resume.header && self.warps.len() == resume.warps as usize;
        let holds = |(i, (_, held)): (usize, &(VReg, Held))| self.base(i, *held).is_some();
        same && (resume.ended || !self.some_ended())
            && resume.held.len() == self.registers.len()
            && resume.held.iter().enumerate().all(holds)
    }

    /// Runs the CTA on code for the form of the kernel that `resume` describes, which the snapshot matches; `image` holds that form. `cta` is
    /// its linear index in `grid`, which runs the original kernel. If the form pauses, it does so after `turns` iterations, and the rest of the
    /// CTA is returned; otherwise the CTA runs to its end.
    pub fn run_rest(
        self,
        resume: &Resume,
        (code, image, kernel): (Arc<dyn Kernel>, &Image, FuncId),
        grid: &Grid<'_>,
        meter: &dyn Meter,
        (cta, turns): (u64, u32),
    ) -> Result<Option<Snapshot>, Stop> {
        let kernel = grid.image.ir.func(kernel);
        let layout = resume.layout(kernel);
        let size = layout.state.into();
        let state = grid.memory.alloc_in(grid.reach(), size, 256, Kind::Global, "").map_err(Stop::Exhausted)?;
        let ended = self.run_with(&state, (resume, &layout), (code, image), grid, meter, (cta, turns));
        grid.memory.free_own(state.block.base());
        ended
    }

    fn run_with(
        self,
        state: &Allocation,
        (resume, layout): (&Resume, &Layout),
        (code, image): (Arc<dyn Kernel>, &Image),
        grid: &Grid<'_>,
        meter: &dyn Meter,
        (cta, turns): (u64, u32),
    ) -> Result<Option<Snapshot>, Stop> {
        let base = state.block.base();
        let Some((parameters, mut bytes)) = self.pack(resume, layout, base, turns) else {
            return Err(Stop::Bug(Bug("a CTA that does not match its form".into())));
        };
        mem::store_bytes(&state.block, base, &bytes);
        let mut launch = grid.launch.clone();
        launch.params.resize(layout.address as usize, 0);
        launch.params.extend(parameters);
        let rest = Grid::new(&launch, image, grid.memory, grid.output)?.with_units_of(grid);
        let ended = code.take_over(&rest, meter, cta, self.windows.clone());
        if let Some(fault) = rest.undefined() {
            grid.note_undefined(|| fault.clone());
        }
        ended?;
        if !resume.pauses {
            return Ok(None);
        }
        mem::load_bytes(&state.block, base, &mut bytes);
        Ok(self.paused(layout, &bytes))
    }

    /// The CTA after a pause, from what its threads have stored; `None` if all have ended.
    fn paused(mut self, layout: &Layout, bytes: &[u8]) -> Option<Snapshot> {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        for (w, warp) in self.warps.iter_mut().enumerate() {
            let flag = |lane: &usize| word(layout.paused.flags as usize + 4 * (w * LANES + lane)) != 0;
            warp.alive = (0..LANES).filter(flag).fold(0, |all, lane| all | 1 << lane);
            for (i, at) in layout.paused.rows.iter().enumerate() {
                let (Some(at), ty) = (*at, self.registers[i].ty) else { continue };
                let size = slot_bytes(ty) as usize;
                let value = |lane: usize| &bytes[at as usize + (w * LANES + lane) * size..][..size];
                store_row(&mut warp.rows[i], ty, warp.alive, value);
            }
        }
        self.warps.iter().any(|w| w.alive != 0).then_some(self)
    }

    /// The bytes that follow the kernel's own in the parameter block, and the state, which will be at `address`; `None` if the
    /// description does not match.
    fn pack(&self, resume: &Resume, layout: &Layout, address: u64, turns: u32) -> Option<(Vec<u8>, Vec<u8>)> {
        let Layout { address: start, parameters, ref slots, state, .. } = *layout;
        let mut block = vec![0; (parameters - start) as usize];
        let mut bytes = vec![0; state as usize];
        put(&mut block, 0, 8, address.into());
        put(&mut block, (layout.turns - start) as usize, 4, turns.into());
        for (w, warp) in self.warps.iter().enumerate() {
            put(&mut bytes, 4 * w, 4, warp.alive.into());
        }
        for (i, ((_, held), slot)) in resume.held.iter().zip(slots).enumerate() {
            let size = slot_bytes(self.registers[i].ty) as usize;
            let bases = self.base(i, *held)?;
            match *slot {
                Slot::Parameter(at) => {
                    put(&mut block, (at - start) as usize, size, bases.iter().flatten().next().copied().unwrap_or(0));
                }
                Slot::Warp(at) => {
                    for (w, base) in bases.iter().enumerate() {
                        put(&mut bytes, at as usize + w * size, size, base.unwrap_or(0));
                    }
                }
                Slot::Lane(at) => {
                    for (w, lane) in self.threads() {
                        put(&mut bytes, at as usize + (w * LANES + lane) * size, size, self.value(i, (w, lane)));
                    }
                }
            }
        }
        Some((block, bytes))
    }

    /// Threads that have not ended.
    fn threads(&self) -> impl Iterator<Item = Thread> + '_ {
        let lanes = |(w, warp): (usize, &StoppedWarp)| {
            let alive = warp.alive;
            (0..LANES).filter(move |l| alive >> l & 1 == 1).map(move |l| (w, l))
        };
        self.warps.iter().enumerate().flat_map(lanes)
    }

    fn some_ended(&self) -> bool {
        self.threads().count() < self.block.iter().product::<u32>() as usize
    }

    fn index(&self, (warp, lane): Thread) -> [u32; 2] {
        let t = (warp * LANES + lane) as u32;
        [t % self.block[0], t / self.block[0] % self.block[1]]
    }

    fn value(&self, register: usize, (warp, lane): Thread) -> u128 {
        let rows = &self.warps[warp].rows[register];
        match self.registers[register].ty {
            Type::Pred => u128::from(rows[0].0[0] >> lane & 1),
            ty if ty.bits() <= 32 => u32s(rows)[lane].into(),
            ty if ty.bits() <= 64 => u64s(rows)[lane].into(),
            _ => u128s(rows)[lane],
        }
    }

    /// A value without the steps of its thread.
    fn without_steps(&self, register: usize, thread: Thread, steps: [i64; 2]) -> u128 {
        let value = self.value(register, thread);
        if steps == [0; 2] {
            return value;
        }
        let [x, y] = self.index(thread).map(u64::from);
        let offset = (steps[0] as u64).wrapping_mul(x).wrapping_add((steps[1] as u64).wrapping_mul(y));
        let base = (value as u64).wrapping_sub(offset);
        if self.registers[register].ty.bits() <= 32 { (base as u32).into() } else { base.into() }
    }

    /// By warp, its base ([`Held`]); `None` if some thread deviates. Warps that have ended have none.
    fn base(&self, register: usize, held: Held) -> Option<Vec<Option<u128>>> {
        let mut bases = vec![None; self.warps.len()];
        let Held::Shared { cta, steps } = held else { return Some(bases) };
        let mut common = None;
        for thread in self.threads() {
            let base = self.without_steps(register, thread, steps);
            let known = if cta { &mut common } else { &mut bases[thread.0] };
            if *known.get_or_insert(base) != base {
                return None;
            }
        }
        if cta {
            bases.fill(common);
        }
        Some(bases)
    }

    fn held(&self, register: usize) -> Held {
        let LiveRegister { ty, keeps, .. } = self.registers[register];
        let number = !ty.is_float() && ty != Type::Pred;
        // What others have in common at the moment may differ a little later, and is hardly worth knowing.
        if !number && !keeps {
            return Held::Lane;
        }
        let stepped = number && matches!(ty.bits(), 32 | 64);
        let x = if stepped { self.step(register, [1, 0]) } else { 0 };
        let y = if stepped { self.step(register, [0, 1]) } else { 0 };
        let forms = [(true, [x, y]), (false, [x, y]), (false, [x, 0])];
        let matching = forms.map(|(cta, steps)| Held::Shared { cta, steps });
        matching.into_iter().find(|held| self.base(register, *held).is_some()).unwrap_or(Held::Lane)
    }

    /// The difference between two threads that are neighbors in this direction; 0 if there are none.
    fn step(&self, register: usize, [x, y]: [u32; 2]) -> i64 {
        let distance = (x + y * self.block[0]) as usize;
        if x == 1 && self.block[0] == 1 || y == 1 && self.block[1] == 1 {
            return 0;
        }
        let alive = |t: usize| self.warps.get(t / LANES).is_some_and(|w| w.alive >> (t % LANES) & 1 == 1);
        let inside = |t: usize| {
            let [here, row] = self.index((t / LANES, t % LANES));
            here + x < self.block[0] && row + y < self.block[1]
        };
        let first = self.threads().map(|(w, l)| w * LANES + l).find(|t| inside(*t) && alive(t + distance));
        let Some(first) = first else { return 0 };
        let [a, b] = [first, first + distance].map(|t| self.value(register, (t / LANES, t % LANES)) as u64);
        let step = b.wrapping_sub(a);
        if self.registers[register].ty.bits() <= 32 { i64::from(step as i32) } else { step as i64 }
    }
}

/// Stores the values of some lanes to the rows of a register.
fn store_row<'b>(rows: &mut [Row], ty: Type, lanes: u32, value: impl Fn(usize) -> &'b [u8]) {
    for lane in (0..LANES).filter(|lane| lanes >> lane & 1 != 0) {
        let mut wide = [0; 16];
        let bytes = value(lane);
        wide[..bytes.len()].copy_from_slice(bytes);
        let number = u128::from_le_bytes(wide);
        match ty {
            Type::Pred => {
                let (word, bit) = (&mut rows[0].0[0], 1 << lane);
                *word = if number == 0 { *word & !bit } else { *word | bit };
            }
            ty if ty.bits() <= 32 => u32s_mut(rows)[lane] = number as u32,
            ty if ty.bits() <= 64 => u64s_mut(rows)[lane] = number as u64,
            _ => {
                let mut all = u128s(rows);
                all[lane] = number;
                set_u128s(rows, &all);
            }
        }
    }
}

fn put(to: &mut [u8], at: usize, size: usize, value: u128) {
    to[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
}
