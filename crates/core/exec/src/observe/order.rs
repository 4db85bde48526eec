//! Kinds of accesses, and their memory ordering: semantics, scopes, proxies (manual, chapter 8).

use margay_isa::{Mod, Opcode, Variant};

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    /// Load.
    Load,
    /// Store.
    Store,
    /// Atomic read-modify-write.
    Atomic,
    /// The end of an allocation of the device's heap, of all of its bytes.
    Free,
}

impl AccessKind {
    /// Whether it writes.
    pub fn writes(self) -> bool {
        self != AccessKind::Load
    }
}

/// Semantics of an access or a fence (manual, section 8.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Semantics {
    /// `.weak`, or nothing.
    Weak,
    /// `.relaxed`, `.volatile`, `.mmio`, an atomic without semantics
    Relaxed,
    /// `.acquire`
    Acquire,
    /// `.release`
    Release,
    /// `.acq_rel`, `.sc`
    AcquireRelease,
}

impl Semantics {
    /// The semantics that an instruction names.
    pub fn of(v: &Variant) -> Option<Semantics> {
        match () {
            _ if v.has(Mod::AcqRel) || v.has(Mod::Sc) => Some(Semantics::AcquireRelease),
            _ if v.has(Mod::Acquire) => Some(Semantics::Acquire),
            _ if v.has(Mod::Release) => Some(Semantics::Release),
            _ if v.has(Mod::Relaxed) => Some(Semantics::Relaxed),
            _ => None,
        }
    }

    /// Whether it is, or starts, an acquire pattern.
    pub fn acquires(self) -> bool {
        matches!(self, Semantics::Acquire | Semantics::AcquireRelease)
    }

    /// Whether it is, or ends, a release pattern.
    pub fn releases(self) -> bool {
        matches!(self, Semantics::Release | Semantics::AcquireRelease)
    }
}

/// Scopes, from narrow to wide (manual, section 8.5).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    /// `.cta`
    Cta,
    /// `.cluster`
    Cluster,
    /// `.gpu`
    Gpu,
    /// `.sys`
    Sys,
}

impl Scope {
    /// The scope that an instruction names.
    pub fn of(v: &Variant) -> Option<Scope> {
        match () {
            _ if v.has(Mod::Cta) => Some(Scope::Cta),
            _ if v.has(Mod::Cluster) => Some(Scope::Cluster),
            _ if v.has(Mod::Gpu) || v.has(Mod::Gl) => Some(Scope::Gpu),
            _ if v.has(Mod::Sys) => Some(Scope::Sys),
            _ => None,
        }
    }
}

/// What the tensor cores do (manual, sections 9.7.15 and 9.7.16).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tensor {
    /// Nothing.
    No,
    /// A product: `wgmma.mma_async`, `tcgen05.mma`.
    Product,
    /// `tcgen05.cp`
    Copy,
    /// `tcgen05.shift`
    Shift,
    /// `tcgen05.ld`
    Load,
    /// `tcgen05.st`
    Store,
    /// `tcgen05.dealloc`
    Free,
}

impl Tensor {
    fn of(v: &Variant) -> Tensor {
        match v.op {
            Opcode::Wgmma => Tensor::Product,
            Opcode::Tcgen05 if v.has(Mod::Mma) => Tensor::Product,
            Opcode::Tcgen05 if v.has(Mod::Cp) => Tensor::Copy,
            Opcode::Tcgen05 if v.has(Mod::Shift) => Tensor::Shift,
            Opcode::Tcgen05 if v.has(Mod::Ld) => Tensor::Load,
            Opcode::Tcgen05 if v.has(Mod::St) => Tensor::Store,
            Opcode::Tcgen05 if v.has(Mod::Dealloc) => Tensor::Free,
            _ => Tensor::No,
        }
    }

    /// Whether groups (`wgmma`) or barrier objects (`tcgen05.commit`) signal its completion.
    pub fn is_product(self) -> bool {
        matches!(self, Tensor::Product | Tensor::Copy | Tensor::Shift)
    }

    /// Whether `tcgen05.wait` waits for its completion.
    pub fn is_move(self) -> bool {
        matches!(self, Tensor::Load | Tensor::Store)
    }

    /// Whether a later operation of the same thread is performed after it without a wait (section 9.7.16.6.2).
    pub fn precedes(self, later: Tensor) -> bool {
        use Tensor::{Copy, Product, Shift};
        matches!((self, later), (Product | Copy | Shift, Product) | (Product, Shift) | (Shift, Copy))
    }
}

/// The memory ordering of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ordering {
    /// Its semantics.
    pub semantics: Semantics,
    /// Its scope; meaningless for weak operations.
    pub scope: Scope,
    /// `.volatile`
    pub volatile: bool,
    /// Performed by an asynchronous copy or reduction, which is not in the thread's program order (manual, section
    /// 8.9.1.1).
    pub asynchronous: bool,
    /// Performed in the async proxy (manual, section 8.6): a bulk copy. What the generic proxy has written it sees only behind a proxy
    /// fence.
    pub proxy: bool,
    /// Performed by the tensor cores, or an access to tensor memory: completion is waited for in ways of their own.
    pub tensor: Tensor,
    /// A reduction (`red`): its read forms no acquire pattern (manual, section 8.11.1).
    pub reduction: bool,
    /// A load that may find an old value in the non-coherent cache, whatever it is ordered with: `ld.global.nc` (section 9.7.9.9).
    pub cached: bool,
}

impl Ordering {
    /// The ordering of an access by an instruction. `.volatile` is relaxed with system scope (manual, section 8.4.2);
    /// atomics are relaxed at `.gpu` scope by default (section 9.7.13.5).
    pub fn of(v: &Variant, access: AccessKind) -> Ordering {
        let volatile = v.has(Mod::Volatile);
        let tensor = Tensor::of(v);
        let asynchronous = match v.op {
            _ if tensor.is_product() || tensor.is_move() => true,
            Opcode::Cp | Opcode::Clusterlaunchcontrol => true,
            Opcode::St | Opcode::Red => v.has(Mod::MbarrierCompleteTxBytes),
            Opcode::Multimem => v.has(Mod::Cp),
            _ => false,
        };
        let proxy = asynchronous && (tensor.is_product() || v.has(Mod::Bulk) || v.op == Opcode::Multimem);
        let scope = || Scope::of(v).unwrap_or(Scope::Gpu);
        let (semantics, scope) = match Semantics::of(v) {
            _ if volatile || v.has(Mod::Mmio) => (Semantics::Relaxed, Scope::Sys),
            Some(semantics) => (semantics, scope()),
            None if access == AccessKind::Atomic => (Semantics::Relaxed, scope()),
            None => (Semantics::Weak, Scope::Cta),
        };
        let reduction = access == AccessKind::Atomic && v.op != Opcode::Atom;
        let cached = v.has(Mod::Nc);
        Ordering { semantics, scope, volatile, asynchronous, proxy, tensor, reduction, cached }
    }
}
