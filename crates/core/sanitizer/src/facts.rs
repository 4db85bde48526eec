//! What is known of a program's code, once for all of its launches.

use crate::{decision, hash::Map, lost, provenance::reads_variables};
use margay_exec::{AccessKind, Image, Ordering};
use margay_ir::{
    FuncId,
    pass::{Cfg, is_quiet, reachable, shares_work, tests_and_sets},
};
use margay_isa::{Opcode, Variant};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock, Weak};

/// Programs of which something is kept.
const LIMIT: usize = 64;

static KEPT: Mutex<Vec<(Weak<Image>, Arc<Facts>)>> = Mutex::new(Vec::new());

/// What is known of a program, each once it is asked.
#[derive(Default)]
pub struct Facts {
    proxies: OnceLock<bool>,
    updates: OnceLock<bool>,
    decides: OnceLock<bool>,
    kernels: Mutex<Map<u32, Arc<Kernel>>>,
}

/// What is known of a kernel, each once it is asked.
#[derive(Default)]
struct Kernel {
    grows: OnceLock<bool>,
    multiplies: OnceLock<bool>,
    shares: OnceLock<bool>,
    tables: OnceLock<bool>,
}

impl Facts {
    pub fn of(image: &Arc<Image>) -> Arc<Facts> {
        let mut kept = KEPT.lock();
        // As long as there is a reference to it, no other image has its address.
        if let Some((_, facts)) = kept.iter().find(|(known, _)| Weak::as_ptr(known) == Arc::as_ptr(image)) {
            return facts.clone();
        }
        kept.retain(|(known, _)| known.strong_count() > 0);
        if kept.len() >= LIMIT {
            kept.remove(0);
        }
        let facts = Arc::new(Facts::default());
        kept.push((Arc::downgrade(image), facts.clone()));
        facts
    }

    fn kernel(&self, kernel: FuncId) -> Arc<Kernel> {
        self.kernels.lock().entry(kernel.0).or_default().clone()
    }

    /// Whether some instruction accesses memory in the async proxy.
    pub fn proxies(&self, image: &Image) -> bool {
        let in_proxy = |v: &Variant| Ordering::of(v, AccessKind::Load).proxy;
        let any = || image.ir.funcs.iter().any(|f| f.insts.iter().any(|i| in_proxy(f.variant(i))));
        *self.proxies.get_or_init(any)
    }

    /// See [`lost::has_updates`].
    pub fn updates(&self, image: &Image) -> bool {
        *self.updates.get_or_init(|| lost::has_updates(image))
    }

    /// See [`decision::has_decisions`].
    pub fn decides(&self, image: &Image) -> bool {
        *self.decides.get_or_init(|| decision::has_decisions(image))
    }

    /// Whether the frame of a kernel grows.
    pub fn grows(&self, image: &Image, kernel: FuncId) -> bool {
        let func = image.ir.func(kernel);
        let any = || func.insts.iter().any(|i| func.variant(i).op == Opcode::Alloca);
        *self.kernel(kernel).grows.get_or_init(any)
    }

    /// Whether a kernel starts asynchronous products of the tensor cores.
    pub fn multiplies(&self, image: &Image, kernel: FuncId) -> bool {
        let func = image.ir.func(kernel);
        let any = || func.insts.iter().any(|i| matches!(func.variant(i).op, Opcode::Wgmma | Opcode::Tcgen05));
        *self.kernel(kernel).multiplies.get_or_init(any)
    }

    /// Whether threads of a kernel take work from others, or find a place free.
    pub fn shares(&self, image: &Image, kernel: FuncId) -> bool {
        let tests = || image.ir.funcs.iter().any(|func| !tests_and_sets(func).is_empty());
        let func = image.ir.func(kernel);
        *self.kernel(kernel).shares.get_or_init(|| shares_work(func, &Cfg::new(func, |_, _| false)) || tests())
    }

    /// Whether all that quiet functions read that a kernel reaches are tables of the program.
    pub fn tables(&self, image: &Image, kernel: FuncId) -> bool {
        let all = || {
            let callees = reachable(&image.ir, kernel).into_iter().filter(|f| *f != kernel && is_quiet(&image.ir, *f));
            callees.into_iter().all(|f| reads_variables(&image.ir, f))
        };
        *self.kernel(kernel).tables.get_or_init(all)
    }
}
