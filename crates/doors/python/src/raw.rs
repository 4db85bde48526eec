//! Memory of Python's objects as memory on loan to the device: the one file here that may use `unsafe`.
#![allow(unsafe_code)]

use margay_exec::mem::Block;

/// Memory that Python's caller owns, as a block on loan. `None` for a null address.
///
/// `len` bytes at `address` are readable, and writable unless the device is told otherwise: [`crate::loans`] has tried both ends, and
/// Python keeps the object alive until the loan has ended ([`crate::loans::LoanGuard`]).
pub fn on_loan(address: u64, len: usize) -> Option<Block> {
    // SAFETY: as above. Whoever else uses the memory meanwhile is Python's caller, who has handed it to a kernel, and other threads of the
    // host see what any foreign code does to an array that it was given.
    unsafe { Block::on_loan(address, len) }
}
