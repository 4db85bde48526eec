//! Pages of address space and what lies behind them: the other room of this crate that needs `unsafe`, for `mmap`.
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

/// Memory that can be mapped at several places and in several processes: a file without a name.
#[derive(Debug)]
pub struct Backing {
    file: OwnedFd,
    /// Bytes.
    pub len: usize,
}

impl Backing {
    /// So many zeros.
    pub fn new(len: usize) -> Result<Backing, Code> {
        let file = memfd_create("margay", MemfdFlags::CLOEXEC).map_err(|_| Code::OUT_OF_MEMORY)?;
        ftruncate(&file, len as u64).map_err(|_| Code::OUT_OF_MEMORY)?;
        Ok(Backing { file, len })
    }

    /// A file descriptor of its own for somebody else.
    pub fn export(&self) -> Result<i32, Code> {
        self.file.try_clone().map(IntoRawFd::into_raw_fd).map_err(|_| Code::OPERATING_SYSTEM)
    }

    /// What another process exported.
    pub fn import(descriptor: i32) -> Result<Backing, Code> {
        if descriptor < 0 {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the program says that this descriptor is open; it is only looked at to make one of our own.
        let file =
            unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned().map_err(|_| Code::INVALID_VALUE)?;
        let len = rustix::fs::fstat(&file).map_err(|_| Code::INVALID_VALUE)?.st_size;
        Ok(Backing { file, len: usize::try_from(len).map_err(|_| Code::INVALID_VALUE)? })
    }
}

/// A range of addresses that is nobody else's. Its pages can be touched where something is mapped and access was granted.
#[derive(Debug)]
pub struct Reserved {
    start: usize,
    len: usize,
}

impl Reserved {
    /// Its first address.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// A range whose first address is a multiple of `align`, a power of two.
    pub fn new(len: usize, align: usize) -> Result<Reserved, Code> {
        let more = len.checked_add(align).ok_or(Code::OUT_OF_MEMORY)?;
        // SAFETY: a new mapping, at an address that the system chooses.
        let at = unsafe {
            mmap_anonymous(ptr::null_mut(), more, ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE)
        };
        let at = at.map_err(|_| Code::OUT_OF_MEMORY)?.expose_provenance();
        let start = at.next_multiple_of(align);
        for (from, to) in [(at, start), (start + len, at + more)] {
            if from < to {
                // SAFETY: a part of the mapping just made that nothing uses.
                let _ = unsafe { munmap(pointer(from), to - from) }; // address space stays taken at the worst
            }
        }
        Ok(Reserved { start, len })
    }

    fn within(&self, start: usize, len: usize) -> Result<*mut c_void, Code> {
        let inside = start >= self.start && len <= self.len && start - self.start <= self.len - len;
        if inside { Ok(pointer(start)) } else { Err(Code::INVALID_VALUE) }
    }

    /// Puts a part of some memory behind a part of the range; nobody may touch it yet.
    pub fn map(&self, start: usize, len: usize, backing: &Backing, offset: usize) -> Result<(), Code> {
        let at = self.within(start, len)?;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: replaces pages of a range that belongs to us.
        let made = unsafe { mmap(at, len, ProtFlags::empty(), flags, &backing.file, offset as u64) };
        made.map(drop).map_err(|_| Code::MAP_FAILED)
    }

    /// Takes away what lies behind a part of the range.
    pub fn unmap(&self, start: usize, len: usize) -> Result<(), Code> {
        let at = self.within(start, len)?;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: as above; the program promises that nothing uses the memory.
        unsafe { mmap_anonymous(at, len, ProtFlags::empty(), flags) }.map(drop).map_err(|_| Code::UNMAP_FAILED)
    }

    /// Lets the pages of a part be read and written, or not touched at all.
    pub fn grant(&self, start: usize, len: usize, access: bool) -> Result<(), Code> {
        let flags = if access { MprotectFlags::READ | MprotectFlags::WRITE } else { MprotectFlags::empty() };
        // SAFETY: pages of a range that belongs to us.
        unsafe { mprotect(self.within(start, len)?, len, flags) }.map_err(|_| Code::OPERATING_SYSTEM)
    }

    /// A part to which access was granted, as device memory.
    pub fn lend(&self, start: usize, len: usize) -> Result<Block, Code> {
        self.within(start, len)?;
        // SAFETY: mapped and accessible; the program promises to unmap it only when nothing uses it, which ends the loan.
        unsafe { Block::on_loan(start as u64, len) }.ok_or(Code::INVALID_VALUE)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // SAFETY: the range is ours alone.
        let _ = unsafe { munmap(pointer(self.start), self.len) }; // address space stays taken at the worst
    }
}

fn pointer(address: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address)
}
