//! What programs and libraries hold of CUDA, read from bytes and files and never executed: [`fatbin`] takes the containers apart
//! in which nvcc embeds PTX and machine code, [`elf`] finds sections and symbols, and [`object`] says of a file which CUDA
//! runtime it brings and what stands in its fat binaries. [`archive`] opens wheels, [`dump`] reads what `cuobjdump -ptx` prints.
//!
//! Everything here is bounded by the bytes that are there: a damaged file yields less, or an error, and never a panic.
#![forbid(unsafe_code)]

pub mod archive;
pub mod dump;
pub mod elf;
pub mod fatbin;
pub mod linked;
pub mod object;
