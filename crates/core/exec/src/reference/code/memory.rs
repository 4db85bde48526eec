//! Decoded memory operations: loads, stores, atomics, asynchronous copies, barrier objects.

use super::{Dst, Src};
use crate::{object::MbarrierKind, sem::atomic::Rmw};
use margay_ir::MemSpace;
use margay_isa::Type;

/// The base of a memory operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// A register of 32 or 64 bits.
    Reg(Src),
    /// None: the same address in all lanes.
    Fixed,
    /// The lane's frame in local memory.
    Frame,
    /// The caller's outgoing area, where the unsized parameter starts.
    Incoming,
    /// The lane's frame, in a `.param` variable of that many bytes that the access leaves.
    Outside(u32),
}

/// A memory operand.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// State space.
    pub space: MemSpace,
    /// The base.
    pub base: Base,
    /// Offset added to the base.
    pub offset: i64,
}

/// Memory ordering of an access, as far as it matters to the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Weak, relaxed, volatile.
    Relaxed,
    /// Acquire.
    Acquire,
    /// Release.
    Release,
}

/// A load, store, atomic, or another operation with a single address.
pub struct MemOp {
    /// The address.
    pub address: Address,
    /// Element type.
    pub ty: Type,
    /// Size of an element in memory, in bytes.
    pub size: u32,
    /// Number of elements.
    pub count: u32,
    /// Destinations, one per element.
    pub dst: Vec<Dst>,
    /// Values, one per element; for atomics `b` of all elements, then `c`.
    pub src: Vec<Src>,
    /// Ordering.
    pub order: Order,
    /// The operation on an element, for atomics.
    pub atomic: Rmw,
    /// Bytes are moved one by one where they are not aligned ([`margay_ir::explicit::Access::Straddling`]).
    pub straddles: bool,
}

/// An asynchronous copy, which is done at issue: a correct program cannot depend on its being late.
pub struct CopyOp {
    /// Destination.
    pub to: Address,
    /// Source; `None` for [`CopyKind::Zero`], [`CopyKind::Cancel`] and values from registers.
    pub from: Option<Address>,
    /// The barrier object to be signalled.
    pub mbarrier: Option<Address>,
    /// Size in bytes.
    pub size: Src,
    /// The number of bytes read if fewer than written (the rest is zero), the mask of destination CTAs, or the byte
    /// mask.
    pub extra: Option<Src>,
    /// Kind.
    pub kind: CopyKind,
}

impl CopyOp {
    /// Whether it is a `cp.async` of 4 to 16 bytes.
    pub fn is_small(&self) -> bool {
        matches!(self.kind, CopyKind::Small | CopyKind::SmallIgnored)
    }
}

/// The kind of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyKind {
    /// `cp.async`; `extra` is the number of bytes read.
    Small,
    /// `cp.async` with a predicate `extra` that suppresses the read.
    SmallIgnored,
    /// Bulk copy.
    Bulk,
    /// Bulk copy to the CTAs of the mask `extra`.
    Multicast,
    /// Bulk copy of those bytes of each 16 that are in the mask `extra`.
    Masked,
    /// Bulk copy that leaves out `extra` bytes at the front, and some at the end.
    Trimmed {
        /// Bytes left out at the end.
        right: Src,
    },
    /// Bulk reduction.
    Reduce(Rmw),
    /// The response to a request to cancel a cluster.
    Cancel {
        /// To all CTAs of the own cluster.
        multicast: bool,
    },
    /// `st.bulk`
    Zero,
}

/// An operation on barrier objects in shared memory.
pub struct MbarrierOp {
    /// Address of the object.
    pub address: Address,
    /// The operand: arrival count, transaction count, state or parity.
    pub operand: Option<Src>,
    /// Mask of the CTAs of the cluster whose objects are addressed, instead of the one at `address`.
    pub ctas: Option<Src>,
    /// Destination of the result.
    pub dst: Option<Dst>,
    pub kind: MbarrierKind,
}
