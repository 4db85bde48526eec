//! CTAs that move to compiled code while they run.
//!
//! A CTA may run for so long on the reference engine that compiling code just for its rest pays: all CTAs of a small grid have started
//! before anything is compiled. It is stopped at a loop's header, and a form of the kernel that begins there, for registers held like
//! this ([`margay_ir::pass::Resume`]), is compiled in the background while the CTA runs on. When it is done, the CTA is stopped there
//! again. If its registers still match the form, its rest is a range of one CTA that has the old shared window. If not, a weaker form
//! is compiled. A CTA that has left the loop by then, or has run for as long as compiling takes, is *held* at a loop's header until the
//! code is there: kernels with one short loop after another would always be too late, and the compiler needs a processor.

use super::{Ready, Tier, Tiers, queue::Queue, slot::Slot};
use crate::engine::Policy;
use margay_exec::{Bug, CodeShape, Cta, Effort, Grid, Image, Kernel, Meter, Snapshot, Stop};
use margay_ir::{
    BlockId,
    pass::{Pausing, Resume, pausing},
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

/// Warp instructions in which a CTA should arrive at the loop's header.
const FUEL: u64 = 1 << 18;
/// Forms that are tried for one CTA.
const MAX_FORMS: u32 = 6;
/// Time on the reference engine below which a CTA is not moved.
const SHORT: Duration = Duration::from_millis(4);
/// How long a CTA in light code should run without a pause; it begins with one turn of the loop.
const UNTIL_PAUSE: Duration = Duration::from_millis(5);
/// Pauses before full code takes over where everything is to be tried.
const PAUSES: u32 = 3;

/// The attempts to move one CTA.
#[derive(Default)]
pub(crate) struct Attempt {
    /// Time on the reference engine so far.
    pub ran: Duration,
    /// When the next attempt is made.
    next: Duration,
    form: Option<Arc<Form>>,
    forms: u32,
    /// The CTA had left the loop of a form when its code was there.
    missed: bool,
    /// It is on its way to the loop of a form that was made for another CTA, which it tries until it has run for this long.
    follows: Option<Duration>,
    /// Loops of such forms where it did not arrive.
    avoided: Vec<BlockId>,
    /// Until when it is held.
    held: Option<Instant>,
}

/// The forms of a kernel in which CTAs were taken over.
#[derive(Default)]
pub(super) struct Forms(Mutex<HashMap<Key, Option<Arc<Form>>>>);

type Key = (CodeShape, Resume);

/// A form of a kernel that continues at a loop's header.
struct Form {
    resume: Resume,
    image: Arc<Image>,
    slot: Arc<Slot>,
}

/// A CTA that compiled code can continue.
pub(crate) struct Moved<'t> {
    tiers: &'t Tiers,
    form: Arc<Form>,
    kernel: Arc<dyn Kernel>,
    tier: Tier,
    snapshot: Snapshot,
}

impl Attempt {
    /// Whether the CTA waits for its code.
    pub fn is_held(&self) -> bool {
        self.held.is_some_and(|until| Instant::now() < until)
    }

    /// Holds the CTA, which has run for longer than compiling costs, while its code is probably made; on a busy host that takes longer.
    pub fn hold(&mut self, cost: Duration) {
        self.held = Some(Instant::now() + 3 * cost);
    }

    /// Waits for half as long as the CTA has run so far.
    fn delay(&mut self) {
        self.next = self.ran + self.ran / 2;
    }

    /// The CTA did not arrive at the header. Where there is a form, the loop may be over, so another one is chosen, at once the first time.
    fn misses(&mut self, is_over: bool) {
        let Some(form) = &self.form else { return self.delay() };
        if self.follows.is_some_and(|until| !is_over && self.ran < until) {
            return;
        }
        match self.follows.take() {
            Some(_) => self.avoided.push(form.resume.header),
            None if self.missed => self.delay(),
            None => self.missed = true,
        }
        self.form = None;
    }

    /// Tries the form of another CTA first, for as long as this one has run so far.
    fn follow(&mut self, form: Arc<Form>) {
        self.follows = Some(self.ran * 2);
        self.form = Some(form);
    }

    fn give_up(&mut self) {
        self.next = Duration::MAX;
        self.form = None;
        self.held = None;
    }
}

impl Ready<'_> {
    /// Whether a CTA that has arrived at a form's header should wait there for its code: it and others like it have run for longer than the
    /// compiler takes, so they take twice as long as necessary at most, or they were too late before.
    fn waiting_pays(slot: &Slot, attempt: &Attempt) -> bool {
        let (cost, together) = (cost(slot), Duration::from_nanos(slot.spent_interpreting()));
        attempt.missed || attempt.ran > cost || together > 2 * cost
    }

    /// Waits for the code that a CTA is held for, but no longer than `most`.
    pub(super) fn wait_for_form(&self, attempt: &Attempt, most: Duration) {
        match &attempt.form {
            Some(form) => form.slot.wait(most),
            None => std::thread::sleep(most),
        }
    }

    /// See [`super::CodeSource::take_over`].
    pub(super) fn try_take_over(&self, attempt: &mut Attempt, cta: &mut dyn Cta) -> Result<Option<Moved<'_>>, Stop> {
        let Some(slot) = self.slot.as_ref().filter(|_| self.takes_over) else { return Ok(None) };
        let eager = self.tiers.engine.policy == Policy::TakeOver;
        if attempt.ran < attempt.next || !eager && attempt.ran < takeover_delay(slot) {
            return Ok(None);
        }
        if attempt.form.is_none()
            && attempt.forms < MAX_FORMS
            && let Some(form) = self
                .tiers
                .form_ahead(slot.shape(), |header| cta.cannot_reach(header) || attempt.avoided.contains(&header))
        {
            attempt.follow(form);
        }
        let ready = match &attempt.form {
            Some(form) => self.tiers.best(form),
            None => None,
        };
        let failed = |slot: &Slot| slot.failed().is_some();
        let refused = failed(slot) || attempt.form.as_ref().is_some_and(|f| failed(&f.slot));
        if refused {
            attempt.give_up();
            return Ok(None);
        }
        let header = attempt.form.as_ref().map(|f| f.resume.header);
        if header.is_some() && ready.is_none() {
            // Once per form: it is held no longer when that has passed.
            if eager || attempt.held.is_some() || !Ready::waiting_pays(slot, attempt) {
                return Ok(None);
            }
            match cta.pause(FUEL, header)? {
                Some(_) => attempt.hold(cost(slot)),
                None => attempt.misses(header.is_some_and(|header| cta.cannot_reach(header))),
            }
            return Ok(None);
        }
        let Some(snapshot) = cta.pause(FUEL, header)? else {
            attempt.held = None;
            if !eager {
                attempt.misses(header.is_some_and(|header| cta.cannot_reach(header)));
            }
            return Ok(None);
        };
        if let Some((form, kernel, tier)) = ready
            && snapshot.matches(&form.resume)
        {
            return Ok(Some(Moved { tiers: self.tiers, form, kernel, tier, snapshot }));
        }
        if attempt.forms == MAX_FORMS {
            attempt.give_up();
            return Ok(None);
        }
        attempt.forms += 1;
        attempt.follows = None;
        attempt.form = match &attempt.form {
            Some(form) => self.tiers.form(slot.shape(), snapshot.weaken(&form.resume)),
            None => self.tiers.first_form(slot.shape(), &snapshot),
        };
        match &attempt.form {
            None => attempt.give_up(),
            Some(form) if eager => _ = form.slot.make(Effort::Light, &self.tiers.log),
            Some(form) => {
                form.slot.ask(Effort::Light, attempt.ran.as_nanos() as u64);
                attempt.held = None;
                if Ready::waiting_pays(slot, attempt) {
                    attempt.hold(cost(slot));
                }
            }
        }
        Ok(None)
    }
}

/// What compiling the kernel, or a form of it, probably costs.
fn cost(slot: &Slot) -> Duration {
    Duration::from_nanos(slot.cost(Effort::Light))
}

/// Time on the reference engine after which moving a CTA is considered: a fraction of what compiling costs.
fn takeover_delay(slot: &Slot) -> Duration {
    SHORT.max(cost(slot) / 4)
}

impl Tiers {
    fn form(&self, shape: CodeShape, resume: Resume) -> Option<Arc<Form>> {
        let compiler = self.engine.compiler.as_ref()?;
        let mut forms = self.forms.0.lock();
        let make = || {
            let image = Arc::new(self.image.with(resume.rewrite(&self.image.ir, self.kernel)?));
            let program = compiler.program(image.clone(), self.kernel);
            let queue: Arc<Queue> = self.queue.clone();
            let slot = Arc::new(Slot::new(shape, program, queue, &self.log, self.engine.policy));
            slot.load_cached(&self.log);
            Some(Arc::new(Form { resume: resume.clone(), image, slot }))
        };
        forms.entry((shape, resume.clone())).or_insert_with(make).clone()
    }

    /// A form that was made for another CTA and that one may still arrive at, the best code first.
    fn form_ahead(&self, shape: CodeShape, mut is_behind: impl FnMut(BlockId) -> bool) -> Option<Arc<Form>> {
        if self.engine.policy == Policy::TakeOver {
            return None;
        }
        let forms = self.forms.0.lock();
        let firsts = forms.iter().filter(|((of, _), _)| *of == shape).filter_map(|(_, form)| form.as_ref());
        let ahead = firsts.filter(|form| form.slot.is_wanted() && !is_behind(form.resume.header));
        ahead.max_by_key(|form| form.slot.code().map(|(_, tier)| tier)).cloned()
    }

    /// The form for a CTA that was stopped for the first time: one that pauses, if it can.
    fn first_form(&self, shape: CodeShape, snapshot: &Snapshot) -> Option<Arc<Form>> {
        let form = self.form(shape, snapshot.describe())?;
        // Compiled code may hold local variables elsewhere than the windows of a snapshot.
        let moves = snapshot.windows.local.is_none();
        let resume = match pausing(form.image.ir.func(self.kernel), shape.block).filter(|_| moves) {
            Some(Pausing::Apart) => snapshot.describe_later(),
            Some(Pausing::Together) => form.resume.clone(),
            None => return Some(form),
        };
        self.form(shape, Resume { pauses: true, ..resume })
    }

    /// The form of the same CTAs for full code, which runs to the end.
    fn full_form(&self, form: &Form) -> Option<Arc<Form>> {
        self.form(form.slot.shape(), Resume { pauses: false, ..form.resume.clone() })
    }

    /// The best code for CTAs of a form: full code, or that of the form itself.
    fn best(&self, form: &Arc<Form>) -> Option<(Arc<Form>, Arc<dyn Kernel>, Tier)> {
        let full = || {
            let full = self.full_form(form)?;
            let (kernel, tier) = full.slot.code()?;
            (tier == Tier::Full).then_some((full, kernel, tier))
        };
        let paused = if form.resume.pauses && self.engine.policy != Policy::TakeOver { full() } else { None };
        paused.or_else(|| form.slot.code().map(|(kernel, tier)| (form.clone(), kernel, tier)))
    }
}

impl Moved<'_> {
    /// Runs the CTA with this linear index to its end; returns how long on light code, and then on full code if that was there in time.
    pub fn run(mut self, grid: &Grid<'_>, meter: &dyn Meter, cta: u64) -> Result<Vec<(Tier, Duration)>, Stop> {
        let eager = self.tiers.engine.policy == Policy::TakeOver;
        let (mut turns, mut pauses) = (1, 0);
        let mut times: Vec<(Tier, Duration)> = Vec::new();
        loop {
            let Moved { tiers, form, kernel, tier, snapshot } = self;
            let started = Instant::now();
            let code = (kernel.clone(), &*form.image, tiers.kernel);
            let left = snapshot.run_rest(&form.resume, code, grid, meter, (cta, turns))?;
            let took = started.elapsed();
            match times.last_mut().filter(|(last, _)| *last == tier) {
                Some((_, time)) => *time += took,
                None => times.push((tier, took)),
            }
            let Some(snapshot) = left else { return Ok(times) };
            pauses += 1;
            if !eager && took < UNTIL_PAUSE {
                turns = turns.saturating_mul(if took < UNTIL_PAUSE / 4 { 4 } else { 2 });
            }
            let spent = times.iter().map(|(_, time)| *time).sum();
            self = tiers.after_pause(form, (kernel, tier), snapshot, (spent, pauses))?;
        }
    }
}

impl Tiers {
    /// The code and form with which a paused CTA continues; it has run for `spent` and paused `pauses` times.
    fn after_pause(
        &self,
        form: Arc<Form>,
        (kernel, tier): (Arc<dyn Kernel>, Tier),
        snapshot: Snapshot,
        (spent, pauses): (Duration, u32),
    ) -> Result<Moved<'_>, Stop> {
        let lost = |why: &str| Stop::Bug(Bug(format!("no code for a CTA that has paused: {why}")));
        if !snapshot.matches(&form.resume) {
            // It cannot go back to the reference engine, so it waits for code.
            let weaker = self.form(form.slot.shape(), snapshot.weaken(&form.resume)).ok_or_else(|| lost("no form"))?;
            let made = weaker.slot.make(Effort::Light, &self.log);
            let (kernel, tier) = made.map_err(|why| lost(&self.explain(&why)))?;
            return Ok(Moved { tiers: self, form: weaker, kernel, tier, snapshot });
        }
        if let Some(full) = self.full_form(&form) {
            match self.engine.policy {
                Policy::TakeOver if pauses < PAUSES => {}
                Policy::TakeOver => _ = full.slot.make(Effort::Full, &self.log),
                _ => {
                    let spent = spent.as_nanos() as u64;
                    // The kernel itself gets full code in a later process: this one needs it for what is left.
                    if full.slot.ask_full(spent)
                        && let Some(program) = &self.program
                    {
                        self.slot(form.slot.shape(), program).note_demand(Effort::Full, spent);
                    }
                }
            }
            if let Some((kernel, tier)) = full.slot.code().filter(|(_, tier)| *tier == Tier::Full) {
                return Ok(Moved { tiers: self, form: full, kernel, tier, snapshot });
            }
        }
        Ok(Moved { tiers: self, form, kernel, tier, snapshot })
    }
}
