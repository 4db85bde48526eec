//! `libmargay_redirect.so`: an auditing library of the dynamic linker (rtld-audit(7)) that leads programs to margay's CUDA
//! libraries. `margay exec` names it in `LD_AUDIT`, so it also stands in every program that the program starts.
//!
//! * Whoever looks for `libcuda.so.1` or for one of the runtime libraries gets margay's, whatever `RPATH`, `RUNPATH` or an
//!   absolute path say.
//! * nvcc links the CUDA runtime into a program unless it is told otherwise. Such a program or library has the runtime API as
//!   ordinary functions with names. Before its constructors run, which register its kernels, a jump to the function of the same
//!   name in margay's runtime library of the same release is written over the beginning of each ([`doors`]). The functions'
//!   own code is never executed.
//! * NVIDIA's run-time compiler NVRTC yields the PTX of a program where it is asked for machine code: a jump leads from
//!   `nvrtcGetCUBIN` to the compiler's own `nvrtcGetPTX`. So does the run-time linker nvJitLink ([`linker`]).
//!
//! The dynamic linker calls the functions in [`raw`], the only file here that touches memory. The library lives in a namespace of
//! its own and has a C library of its own; it keeps no thread-local state and starts no thread.

mod doors;
mod linker;
mod raw;
