//! A device memory allocation that is freed when dropped.

use crate::{Context, Error};
use margay_exec::mem::Kind;
use std::sync::Arc;

/// Device memory owned by the caller and freed on drop. A launch that accesses it afterwards faults; an access in
/// progress is harmless, since the bytes stay allocated until all launches running at the time have ended.
#[derive(Debug)]
pub struct Buffer {
    context: Arc<Context>,
    address: u64,
    bytes: u64,
}

impl Buffer {
    pub(crate) fn new(context: Arc<Context>, name: &str, bytes: u64) -> Result<Buffer, Error> {
        let memory = context.device().memory();
        let address = crate::image::allocate(memory, context.reach(), Kind::Global, name, (bytes, 256))?;
        Ok(Buffer { context, address, bytes })
    }

    /// The address of its first byte, as kernels see it.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Size in bytes.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether it has zero bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Copies host data to an offset.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.within(offset, data.len())?;
        self.context.write(self.address + offset, data)
    }

    /// Copies bytes at an offset to the host.
    pub fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.within(offset, data.len())?;
        self.context.read(self.address + offset, data)
    }

    /// Copies the whole buffer to the host.
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let mut data = vec![0; self.bytes as usize];
        self.read(0, &mut data)?;
        Ok(data)
    }

    fn within(&self, offset: u64, len: usize) -> Result<(), Error> {
        let end = offset.checked_add(len as u64).filter(|end| *end <= self.bytes);
        end.map(drop).ok_or(Error::BadAddress { address: self.address.wrapping_add(offset), size: len as u64 })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // Cannot fail: only this value frees the allocation.
        let _ = self.context.device().memory().free(self.address);
    }
}
