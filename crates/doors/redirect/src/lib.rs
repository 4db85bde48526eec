//! `libmargay_redirect.so`: an auditing library of the dynamic linker (rtld-audit(7)) that redirects programs to
//! margay's CUDA libraries. `margay exec` names it in `LD_AUDIT`, so it also takes effect in every child process.
//!
//! * Lookups of `libcuda.so.1` and of the runtime libraries yield margay's, regardless of `RPATH`, `RUNPATH` or
//!   absolute paths.
//! * nvcc links the CUDA runtime statically by default, so a program or library contains the runtime API as ordinary
//!   functions with symbols. Before its constructors run, which register its kernels, each of these functions is
//!   overwritten at its start by a jump to the function of the same name in margay's runtime library of the same
//!   release ([`doors`]). The functions' own code is never executed.
//! * NVIDIA's run-time compiler NVRTC returns PTX when asked for machine code, by a jump from `nvrtcGetCUBIN` to the
//!   compiler's own `nvrtcGetPTX`. So does the run-time linker nvJitLink ([`linker`]).
//!
//! The dynamic linker calls the functions in [`raw`], the only file with `unsafe`. The library lives in a linker
//! namespace of its own with its own C library; it has no thread-local state and starts no thread.

mod doors;
mod linker;
mod raw;
mod undefined;
