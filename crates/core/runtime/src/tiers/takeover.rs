//! CTAs that move to compiled code while they run.
//!
//! A CTA may run for so long on the reference engine that compiling code just for its rest pays: all CTAs of a small grid have started
//! before anything is compiled. It is stopped at a loop's header, and a form of the kernel that begins there, for registers held like
//! this ([`margay_ir::pass::Resume`]), is compiled in the background while the CTA runs on. When it is done, the CTA is stopped there
//! again. If its registers still match the form, its rest is a range of one CTA that has the old shared window. If not, a weaker form
//! is compiled.

use super::{Ready, Tiers, queue::Queue, slot::Slot};
use crate::engine::Policy;
use margay_exec::{CodeShape, Cta, Effort, Grid, Image, Kernel, Meter, Snapshot, Stop};
use margay_ir::{FuncId, pass::Resume};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Warp instructions in which a CTA should arrive at the loop's header.
const FUEL: u64 = 1 << 18;
/// Forms that are tried for one CTA.
const MOST_FORMS: u32 = 3;
/// Time on the reference engine below which a CTA is not moved.
const SHORT: Duration = Duration::from_millis(4);

/// The attempts to move one CTA.
#[derive(Default)]
pub(crate) struct Attempt {
    /// Time on the reference engine so far.
    pub ran: Duration,
    /// When the next attempt is made.
    next: Duration,
    form: Option<Arc<Form>>,
    forms: u32,
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
pub(crate) struct Moved {
    form: Arc<Form>,
    kernel: Arc<dyn Kernel>,
    func: FuncId,
    snapshot: Snapshot,
}

impl Attempt {
    /// Waits for half as long as the CTA has run so far.
    fn delay(&mut self) {
        self.next = self.ran + self.ran / 2;
    }

    fn give_up(&mut self) {
        self.next = Duration::MAX;
        self.form = None;
    }
}

impl Ready<'_> {
    /// See [`super::CodeSource::take_over`].
    pub(super) fn try_take_over(&self, attempt: &mut Attempt, cta: &mut dyn Cta) -> Result<Option<Moved>, Stop> {
        let Some(slot) = self.slot.as_ref().filter(|_| self.takes_over) else { return Ok(None) };
        let eager = self.tiers.engine.policy == Policy::TakeOver;
        if attempt.ran < attempt.next || !eager && attempt.ran < self.tiers.patience() {
            return Ok(None);
        }
        let ready = match &attempt.form {
            Some(form) => form.slot.code().map(|(kernel, _)| (form.clone(), kernel)),
            None => None,
        };
        let failed = |slot: &Slot| slot.failed().is_some();
        let refused = failed(slot) || attempt.form.as_ref().is_some_and(|f| failed(&f.slot));
        if refused {
            attempt.give_up();
            return Ok(None);
        }
        if attempt.form.is_some() && ready.is_none() {
            return Ok(None);
        }
        let Some(snapshot) = cta.pause(FUEL, attempt.form.as_ref().map(|f| f.resume.header))? else {
            if !eager {
                attempt.delay();
            }
            return Ok(None);
        };
        if let Some((form, kernel)) = ready
            && snapshot.matches(&form.resume)
        {
            return Ok(Some(Moved { form, kernel, func: self.tiers.kernel, snapshot }));
        }
        if attempt.forms == MOST_FORMS {
            attempt.give_up();
            return Ok(None);
        }
        let resume = match &attempt.form {
            Some(form) => snapshot.weaken(&form.resume),
            None => snapshot.describe(),
        };
        attempt.forms += 1;
        attempt.form = self.tiers.form(slot.shape(), resume);
        match &attempt.form {
            None => attempt.give_up(),
            Some(form) if eager => _ = form.slot.make(Effort::Light, &self.tiers.log),
            Some(form) => form.slot.ask(Effort::Light, attempt.ran.as_nanos() as u64),
        }
        Ok(None)
    }
}

impl Tiers {
    /// Time on the reference engine after which moving a CTA is considered: a fraction of what compiling costs.
    fn patience(&self) -> Duration {
        let cost = self.program.as_ref().map_or(0, |p| self.queue.cost(Effort::Light, p.estimate(Effort::Light)));
        SHORT.max(Duration::from_nanos(cost / 4))
    }

    fn form(&self, shape: CodeShape, resume: Resume) -> Option<Arc<Form>> {
        let compiler = self.engine.compiler.as_ref()?;
        let mut forms = self.forms.0.lock().unwrap_or_else(PoisonError::into_inner);
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
}

impl Moved {
    /// Runs the CTA with this linear index to its end.
    pub fn run(self, grid: &Grid<'_>, meter: &dyn Meter, cta: u64) -> Result<(), Stop> {
        let Moved { form, kernel, func, snapshot } = self;
        snapshot.run_rest(&form.resume, (kernel, &form.image, func), grid, meter, cta)
    }
}
