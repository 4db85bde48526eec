//! Allocations: blocks of host memory with a kind and a name, and how messages describe them.

use super::Block;
use crate::Exhausted;
use std::sync::{Arc, atomic::AtomicBool};

/// The purpose of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Allocated through the host API.
    Global,
    /// On loan from the host, which lets device code only read it.
    ReadOnly,
    /// A `.global` variable of a module.
    Variable {
        /// Whether it lies in managed memory (`.attribute(.managed)`).
        managed: bool,
    },
    /// A `.const` variable of a module. PTX defines no stores to it, but GPUs permit them at the addresses that the host gives kernels.
    Const {
        /// Whether device code may write it.
        writable: bool,
    },
    /// A launch's parameter block: device code may not write it.
    Param,
    /// Allocated by `malloc` in device code.
    Heap,
    /// A CTA's shared window.
    Shared,
    /// The local windows of a warp.
    Local,
    /// A CUDA array, the image of textures and surfaces. Device code has no address of it.
    Array,
}

impl Kind {
    /// Whether device code may write there.
    pub const fn writable(self) -> bool {
        !matches!(self, Kind::Const { writable: false } | Kind::Param | Kind::ReadOnly)
    }
}

/// Where an allocation may be placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reach {
    /// Anywhere.
    #[default]
    Full,
    /// Below 4 GiB, for programs with addresses of 32 bits.
    Low,
}

/// Allocates a block, with its size and alignment.
type Make = fn(usize, usize) -> Option<Block>;

impl Reach {
    /// The reach of addresses of 32 or 64 bits.
    pub fn of(address_size: u32) -> Reach {
        if address_size == 32 { Reach::Low } else { Reach::Full }
    }
}

/// An allocation of device memory.
#[derive(Debug)]
pub struct Allocation {
    /// Its memory.
    pub block: Block,
    /// Its purpose.
    pub kind: Kind,
    /// Name of the variable; empty for others.
    pub name: Box<str>,
    /// Some engine may have cached its range ([`super::Memory::remember`]).
    pub(super) remembered: AtomicBool,
}

impl Allocation {
    /// An allocation outside any [`super::Memory`], such as a window.
    pub fn new(reach: Reach, size: u64, align: u32, kind: Kind, name: &str) -> Result<Arc<Allocation>, Exhausted> {
        // Of the stack of each thread, which local windows hold, most is never touched.
        let make = if kind == Kind::Local { Block::sparse } else { Block::new };
        Ok(Arc::new(Allocation::of(block_of(reach, size, align, make)?, kind, name)))
    }

    pub(super) fn of(block: Block, kind: Kind, name: &str) -> Allocation {
        Allocation { block, kind, name: name.into(), remembered: AtomicBool::new(false) }
    }

    /// Address after the last byte.
    pub fn end(&self) -> u64 {
        self.block.base() + self.block.len() as u64
    }
}

pub(super) fn new_block(reach: Reach, size: u64, align: u32) -> Result<Block, Exhausted> {
    block_of(reach, size, align, Block::new)
}

/// A block from `make`, unless it must be below 4 GiB.
fn block_of(reach: Reach, size: u64, align: u32, make: Make) -> Result<Block, Exhausted> {
    let (make, where_): (Make, _) = match reach {
        Reach::Full => (make, ""),
        Reach::Low => (Block::low, " below 4 GiB, the limit of 32-bit addresses"),
    };
    let block = usize::try_from(size).ok().and_then(|size| make(size, align as usize));
    block.ok_or_else(|| Exhausted(format!("the host cannot provide {size} bytes of device memory{where_}")))
}

impl std::fmt::Display for Allocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        describe(f, self.kind, &self.name, self.block.len(), self.block.base())
    }
}

pub(super) fn describe(
    f: &mut std::fmt::Formatter<'_>,
    kind: Kind,
    name: &str,
    len: usize,
    base: u64,
) -> Result<(), std::fmt::Error> {
    let what = match kind {
        Kind::Global => "allocation",
        Kind::ReadOnly => "read-only allocation",
        Kind::Variable { .. } => "variable",
        Kind::Const { .. } => "constant variable",
        Kind::Param => "parameter block",
        Kind::Heap => "device-heap allocation",
        Kind::Shared => "shared window",
        Kind::Local => "local window",
        Kind::Array => "array",
    };
    write!(f, "{what} ")?;
    if !name.is_empty() {
        write!(f, "`{name}` ")?;
    }
    write!(f, "of {len} bytes at {base:#x}")
}

/// From this distance in bytes on, an allocation is no hint of what an address was meant to be.
const FAR: u64 = 1 << 36;
/// Addresses below this are null pointers with an index or the offset of a field.
const NULL_END: u64 = 1 << 16;

/// Describes the position of an address relative to the nearest of some allocations.
pub fn nearest<'a>(address: u64, among: impl Iterator<Item = &'a Allocation>) -> String {
    let distance = |a: &Allocation| match () {
        _ if address < a.block.base() => a.block.base() - address,
        _ if address >= a.end() => address - a.end() + 1,
        _ => 0,
    };
    match among.min_by_key(|a| distance(a)) {
        None => "nothing is allocated".into(),
        Some(a) if distance(a) > FAR && address < NULL_END => "a null pointer, or near one".into(),
        Some(a) if distance(a) > FAR => "far from all allocations".into(),
        Some(a) if address < a.block.base() => format!("{} bytes before the {a}", a.block.base() - address),
        Some(a) if address >= a.end() => format!("{} bytes after the end of the {a}", address - a.end()),
        Some(a) => format!("{} bytes into the {a}", address - a.block.base()),
    }
}
