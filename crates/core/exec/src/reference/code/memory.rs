//! What accesses memory: loads, stores, atomics, copies that are asynchronous by the text, barrier objects.

use super::{Dst, Src};
use crate::sem::atomic::Rmw;
use margay_ir::MemSpace;
use margay_isa::Type;

/// Base of a memory operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// A register of 32 or 64 bits.
    Reg(Src),
    /// The same address in all lanes.
    Fixed,
    /// The frame: local address of every lane's frame.
    Frame,
    /// What the caller put where the unsized formal starts.
    Incoming,
}

/// A memory operand.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// Where it goes.
    pub space: MemSpace,
    /// The base.
    pub base: Base,
    /// Added to the base.
    pub offset: i64,
}

/// Memory ordering of an access, as far as the host must know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Weak, relaxed, volatile.
    Relaxed,
    /// Acquire.
    Acquire,
    /// Release.
    Release,
}

/// A load, a store, an atomic, or anything else with an address.
pub struct MemOp {
    /// Where.
    pub address: Address,
    /// Element type.
    pub ty: Type,
    /// Bytes of an element in memory.
    pub size: u32,
    /// Elements.
    pub count: u32,
    /// Destinations, one an element.
    pub dst: Vec<Dst>,
    /// Values: one an element; for atomics `b` of all elements, then `c`.
    pub src: Vec<Src>,
    /// Ordering.
    pub order: Order,
    /// For atomics: what they do to an element.
    pub atomic: Rmw,
    /// An access to a `.param` variable by name, whose address nobody takes: on the GPU such a variable is registers, and an
    /// access that straddles elements is harmless. ptxas says nothing about it.
    pub straddles: bool,
}

/// A copy that is asynchronous by the text. It is done at once here: nothing may count on its being late.
pub struct CopyOp {
    /// To where.
    pub to: Address,
    /// From where; for [`CopyKind::Zero`] and values from registers, nowhere.
    pub from: Option<Address>,
    /// The barrier object that hears of it.
    pub mbarrier: Option<Address>,
    /// Bytes.
    pub size: Src,
    /// Fewer bytes to read than to write (the rest is zero), the mask of destination CTAs, or the mask of bytes.
    pub extra: Option<Src>,
    /// What it does.
    pub kind: CopyKind,
}

/// What a copy does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyKind {
    /// `cp.async`; `extra` is the number of bytes that are read.
    Small,
    /// `cp.async` with a predicate as `extra`: nothing is read where it is true.
    SmallIgnored,
    /// Bulk copy.
    Bulk,
    /// Bulk copy to the CTAs of the mask `extra`.
    Multicast,
    /// Bulk copy of the bytes of each 16 that the mask `extra` names.
    Masked,
    /// Bulk copy less `extra` bytes at the front and those at the end, which are left as they are.
    Trimmed {
        /// Bytes at the end.
        right: Src,
    },
    /// Bulk reduction.
    Reduce(Rmw),
    /// `st.bulk`
    Zero,
}

/// An operation on barrier objects in shared memory.
pub struct ObjectOp {
    /// Where the object lies.
    pub address: Address,
    /// Its operand: count, transaction count, state or parity.
    pub operand: Option<Src>,
    /// Mask of the CTAs of the cluster whose objects are meant, instead of the one at the address.
    pub ctas: Option<Src>,
    /// Where the result goes.
    pub dst: Option<Dst>,
    /// What it does.
    pub kind: ObjectKind,
}

/// What an operation on a barrier object does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectKind {
    /// `mbarrier.init`
    Init,
    /// `mbarrier.inval`
    Inval,
    /// `mbarrier.expect_tx`
    Expect,
    /// `mbarrier.complete_tx`
    Complete,
    /// `mbarrier.arrive` (with `.noComplete`, too)
    Arrive,
    /// `mbarrier.arrive_drop`
    Drop,
    /// `mbarrier.arrive.expect_tx`
    ArriveExpect,
    /// `mbarrier.arrive_drop.expect_tx`
    DropExpect,
    /// `mbarrier.test_wait`, `mbarrier.try_wait`
    Wait,
    /// The same with `.parity`
    WaitParity,
    /// `mbarrier.pending_count`; the operand is the state, and there is no object.
    Pending,
    /// `cp.async.mbarrier.arrive`: the copies are done, so it arrives; with `.noinc` that counts.
    AfterCopies(bool),
}
