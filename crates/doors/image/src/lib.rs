//! Inspection of programs and libraries that use CUDA, from bytes and files that are never executed: [`fatbin`] parses
//! the containers in which nvcc embeds PTX and machine code, [`elf`] reads sections and symbols, and [`object`] finds
//! which CUDA runtime a file contains and what its fat binaries hold. [`archive`] opens wheels, [`dump`] parses the
//! output of `cuobjdump -ptx`.
//!
//! All parsers are bounded by their input: a damaged file yields less, or an error, but never a panic.
#![forbid(unsafe_code)]

pub mod archive;
pub mod dump;
pub mod elf;
pub mod fatbin;
pub mod linked;
pub mod object;
