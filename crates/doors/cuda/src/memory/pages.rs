//! Reservation, mapping and protection of address space. One of the three files of this crate with `unsafe` (with `raw.rs` and `faults.rs`),
//! because of `mmap`.
#![allow(unsafe_code)]

use crate::code::{Code, Outcome};
use margay_exec::mem::Block;
use rustix::{
    fs::{MemfdFlags, Mode, OFlags, ftruncate, memfd_create},
    mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap},
};
use std::{
    ffi::c_void,
    os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd},
    ptr,
    sync::atomic::AtomicU64,
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

    /// Creates memory with the bytes that `read` gives for a part from an offset on, in as many pages as `len` bytes need.
    pub fn filled(len: usize, mut read: impl FnMut(usize, &mut [u8]) -> Outcome) -> Result<Backing, Code> {
        let backing = Backing::new(len.next_multiple_of(PAGE))?;
        let mut part = vec![0; len.min(1 << 20)];
        for at in (0..len).step_by(part.len().max(1)) {
            let part = &mut part[..(len - at).min(1 << 20)];
            read(at, part)?;
            let mut written = 0;
            // Pages that are zero already take no memory.
            while written < part.len() && part.iter().any(|b| *b != 0) {
                let more = rustix::io::pwrite(&backing.file, &part[written..], (at + written) as u64);
                written += more.map_err(|_| Code::OUT_OF_MEMORY)?;
            }
        }
        Ok(backing)
    }

    /// Where other processes of the same user find the memory.
    pub fn address(&self) -> Result<FileAddress, Code> {
        let stat = rustix::fs::fstat(&self.file).map_err(|_| Code::OPERATING_SYSTEM)?;
        let descriptor = self.file.as_raw_fd();
        Ok(FileAddress { process: std::process::id(), descriptor, device: stat.st_dev, file: stat.st_ino })
    }

    /// The memory at an address that another process gave, if it is still there.
    pub fn find(at: FileAddress) -> Result<Backing, Code> {
        let path = format!("/proc/{}/fd/{}", at.process, at.descriptor);
        let file =
            rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|_| Code::MAP_FAILED)?;
        let stat = rustix::fs::fstat(&file).map_err(|_| Code::MAP_FAILED)?;
        match (stat.st_dev, stat.st_ino) == (at.device, at.file) {
            true => Ok(Backing { file, len: usize::try_from(stat.st_size).map_err(|_| Code::MAP_FAILED)? }),
            false => Err(Code::INVALID_HANDLE),
        }
    }

    /// The file.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
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

/// A file of this machine by the process that holds it open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileAddress {
    /// Number of the process.
    pub process: u32,
    /// Number of its file descriptor.
    pub descriptor: i32,
    /// Device and number of the file, since descriptors are reused.
    pub device: u64,
    /// See `device`.
    pub file: u64,
}

/// Words that several processes share: a page.
#[derive(Debug)]
pub struct SharedWords {
    pages: Reserved,
    /// The page.
    pub backing: Backing,
}

impl SharedWords {
    /// Maps the first page of `backing`.
    pub fn new(backing: Backing) -> Result<SharedWords, Code> {
        if backing.len < PAGE {
            return Err(Code::INVALID_VALUE);
        }
        let pages = Reserved::new(PAGE, PAGE)?;
        pages.map(pages.start(), PAGE, &backing, 0)?;
        pages.grant(pages.start(), PAGE, true)?;
        Ok(SharedWords { pages, backing })
    }

    /// A word.
    pub fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < PAGE / 8);
        // SAFETY: an aligned word of a page that is mapped while `self` lives; every process accesses it atomically.
        unsafe { AtomicU64::from_ptr(pointer(self.pages.start()).cast::<u64>().add(index)) }
    }
}

/// The page size of the processors that margay knows.
pub const PAGE: usize = 4096;

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

/// The accesses that the program may make to pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Nothing.
    None,
    /// Read.
    Read,
    /// Read and write.
    All,
}

/// Sets what may be done with the pages of an allocation; whether the system has agreed.
pub fn allow(start: usize, len: usize, access: Access) -> bool {
    let flags = match access {
        Access::None => MprotectFlags::empty(),
        Access::Read => MprotectFlags::READ,
        Access::All => MprotectFlags::READ | MprotectFlags::WRITE,
    };
    // SAFETY: whoever meets the protection is in the handler of `faults.rs`, which ends it and repeats the access.
    unsafe { mprotect(pointer(start), len, flags) }.is_ok()
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
