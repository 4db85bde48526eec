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
    /// A reduction (`red`): its read forms no acquire pattern (manual, section 8.11.1).
    pub reduction: bool,
}

impl Ordering {
    /// The ordering of an access by an instruction. `.volatile` is relaxed with system scope (manual, section 8.4.2);
    /// atomics are relaxed at `.gpu` scope by default (section 9.7.13.5).
    pub fn of(v: &Variant, access: AccessKind) -> Ordering {
        let volatile = v.has(Mod::Volatile);
        let asynchronous = match v.op {
            Opcode::Cp | Opcode::Clusterlaunchcontrol => true,
            Opcode::St | Opcode::Red => v.has(Mod::MbarrierCompleteTxBytes),
            Opcode::Multimem => v.has(Mod::Cp),
            _ => false,
        };
        let proxy = asynchronous && (v.has(Mod::Bulk) || v.op == Opcode::Multimem);
        let scope = || Scope::of(v).unwrap_or(Scope::Gpu);
        let (semantics, scope) = match Semantics::of(v) {
            _ if volatile || v.has(Mod::Mmio) => (Semantics::Relaxed, Scope::Sys),
            Some(semantics) => (semantics, scope()),
            None if access == AccessKind::Atomic => (Semantics::Relaxed, scope()),
            None => (Semantics::Weak, Scope::Cta),
        };
        let reduction = access == AccessKind::Atomic && v.op != Opcode::Atom;
        Ordering { semantics, scope, volatile, asynchronous, proxy, reduction }
    }
}
