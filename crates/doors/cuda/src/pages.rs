//! Reservation and mapping of address space; besides `raw.rs` the only file of this crate with `unsafe`, for `mmap`.
#![allow(unsafe_code)]

use crate::code::Code;
use margay_exec::mem::Block;
use rustix::{
    fs::{MemfdFlags, ftruncate, memfd_create},
    mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap},
};
use std::{
    ffi::c_void,
    os::fd::{BorrowedFd, IntoRawFd, OwnedFd},
    ptr,
};

/// Memory that can be mapped several times and in several processes: an anonymous file.
#[derive(Debug)]
pub struct Backing {
    file: OwnedFd,
    /// Size in bytes.
    pub len: usize,
}

impl Backing {
    /// Creates `len` zeroed bytes.
    pub fn new(len: usize) -> Result<Backing, Code> {
        let file = memfd_create("margay", MemfdFlags::CLOEXEC).map_err(|_| Code::OUT_OF_MEMORY)?;
        ftruncate(&file, len as u64).map_err(|_| Code::OUT_OF_MEMORY)?;
        Ok(Backing { file, len })
    }

    /// A new file descriptor for the memory, to be owned by the caller.
    pub fn export(&self) -> Result<i32, Code> {
        self.file.try_clone().map(IntoRawFd::into_raw_fd).map_err(|_| Code::OPERATING_SYSTEM)
    }

    /// Memory exported by another process.
    pub fn import(descriptor: i32) -> Result<Backing, Code> {
        if descriptor < 0 {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the program guarantees that the descriptor is open; it is only borrowed to duplicate it.
        let file =
            unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned().map_err(|_| Code::INVALID_VALUE)?;
        let len = rustix::fs::fstat(&file).map_err(|_| Code::INVALID_VALUE)?.st_size;
        Ok(Backing { file, len: usize::try_from(len).map_err(|_| Code::INVALID_VALUE)? })
    }
}

/// A reserved address range. Its pages are accessible where memory is mapped and access was granted.
#[derive(Debug)]
pub struct Reserved {
    start: usize,
    len: usize,
}

impl Reserved {
    /// First address.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Size in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Reserves a range whose first address is a multiple of `align`, a power of two.
    pub fn new(len: usize, align: usize) -> Result<Reserved, Code> {
        let more = len.checked_add(align).ok_or(Code::OUT_OF_MEMORY)?;
        // SAFETY: a new mapping at an address chosen by the system.
        let at = unsafe {
            mmap_anonymous(ptr::null_mut(), more, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE)
        };
        let at = at.map_err(|_| Code::OUT_OF_MEMORY)?.expose_provenance();
        let start = at.next_multiple_of(align);
        for (from, to) in [(at, start), (start + len, at + more)] {
            if from < to {
                // SAFETY: an unused part of the mapping just made.
                let _ = unsafe { munmap(pointer(from), to - from) }; // address space stays taken at the worst
            }
        }
        Ok(Reserved { start, len })
    }

    fn within(&self, start: usize, len: usize) -> Result<*mut c_void, Code> {
        let inside = start >= self.start && len <= self.len && start - self.start <= self.len - len;
        if inside { Ok(pointer(start)) } else { Err(Code::INVALID_VALUE) }
    }

    /// Maps a part of `backing` to a part of the range, without access.
    pub fn map(&self, start: usize, len: usize, backing: &Backing, offset: usize) -> Result<(), Code> {
        let at = self.within(start, len)?;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: replaces pages of a range that `self` owns.
        let made = unsafe { mmap(at, len, ProtFlags::empty(), flags, &backing.file, offset as u64) };
        made.map(drop).map_err(|_| Code::MAP_FAILED)
    }

    /// Unmaps a part of the range, which stays reserved.
    pub fn unmap(&self, start: usize, len: usize) -> Result<(), Code> {
        let at = self.within(start, len)?;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: as above; the program guarantees that the memory is no longer in use.
        unsafe { mmap_anonymous(at, len, ProtFlags::empty(), flags) }.map(drop).map_err(|_| Code::UNMAP_FAILED)
    }

    /// Grants or revokes access to the pages of a part.
    pub fn grant(&self, start: usize, len: usize, access: bool) -> Result<(), Code> {
        let flags = if access { MprotectFlags::READ | MprotectFlags::WRITE } else { MprotectFlags::empty() };
        // SAFETY: pages of a range that `self` owns.
        unsafe { mprotect(self.within(start, len)?, len, flags) }.map_err(|_| Code::OPERATING_SYSTEM)
    }

    /// A part to which access was granted, as device memory on loan.
    pub fn lend(&self, start: usize, len: usize) -> Result<Block, Code> {
        self.within(start, len)?;
        // SAFETY: mapped and accessible; the program guarantees to unmap it only when unused, which ends the loan.
        unsafe { Block::on_loan(start as u64, len) }.ok_or(Code::INVALID_VALUE)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // SAFETY: `self` is the only owner of the range.
        let _ = unsafe { munmap(pointer(self.start), self.len) }; // address space stays taken at the worst
    }
}

fn pointer(address: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address)
}
