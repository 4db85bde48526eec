//! What a program or a library has of CUDA: the runtime that it brings or asks for, and what its fat binaries hold.

use crate::{
    elf::{Elf, Symbol},
    fatbin,
};
use std::{fs::File, io, path::Path};

/// A release of the CUDA runtime API whose structures and names are its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Release {
    /// CUDA 11.0 to 11.8.
    Cuda11,
    /// CUDA 12.0 to 12.9.
    Cuda12,
    /// CUDA 13.
    Cuda13,
}

impl Release {
    /// All of them, the newest first.
    pub const ALL: [Release; 3] = [Release::Cuda13, Release::Cuda12, Release::Cuda11];

    /// The name under which programs ask for the runtime library.
    pub fn library(self) -> &'static str {
        match self {
            Release::Cuda11 => "libcudart.so.11.0",
            Release::Cuda12 => "libcudart.so.12",
            Release::Cuda13 => "libcudart.so.13",
        }
    }

    /// The number of the release.
    pub fn number(self) -> u32 {
        match self {
            Release::Cuda11 => 11,
            Release::Cuda12 => 12,
            Release::Cuda13 => 13,
        }
    }
}

/// How a file comes by the CUDA runtime.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Runtime {
    /// It has nothing to do with one.
    None,
    /// It asks other libraries for the runtime's functions.
    Shared,
    /// It has the functions in itself, by name.
    Inside(Release, Vec<Symbol>),
    /// It has the functions of a release before CUDA 11 in itself.
    TooOld,
    /// It was linked with the functions, and their names were taken out.
    Stripped,
}

/// A runtime has both, in every release.
const REGISTRATION: &str = "__cudaRegisterFatBinary";
const VERSION: &str = "cudaRuntimeGetVersion";
/// What nvcc makes of kernels stands in these.
const FAT_BINARIES: [&str; 2] = [".nv_fatbin", "__nv_relfatbin"];
/// What registers them: a file without it brings fat binaries for somebody else.
const REGISTERED: &str = ".nvFatBinSegment";

/// Whether a name may be a function of the runtime API, or one that nvcc's host code calls.
fn is_api(name: &str) -> bool {
    name.starts_with("cuda") || name.starts_with("__cuda")
}

/// Whether a table of names has one.
fn has_name(names: &[u8], name: &str) -> bool {
    let wanted = [name.as_bytes(), b"\0"].concat();
    names.windows(wanted.len()).any(|w| w == wanted)
}

/// Says how a file comes by the CUDA runtime.
pub fn runtime(elf: &Elf) -> Runtime {
    for table in [".symtab", ".dynsym"] {
        if !has_name(&elf.names(table), VERSION) {
            continue;
        }
        let functions = elf.functions(table, is_api);
        let has = |name: &str| functions.iter().any(|f| f.name == name);
        if has(REGISTRATION) && has(VERSION) {
            return match release(has) {
                Some(release) => Runtime::Inside(release, functions),
                None => Runtime::TooOld,
            };
        }
    }
    if has_name(&elf.names(".dynsym"), REGISTRATION) && elf.asks_for(".dynsym", REGISTRATION) {
        return Runtime::Shared;
    }
    match elf.section(REGISTERED) {
        Some(_) => Runtime::Stripped,
        None => Runtime::None,
    }
}

/// Functions of NVIDIA's run-time compiler NVRTC that yield machine code, and those of the same arguments that yield the PTX of
/// the same program (NVRTC, "Compilation").
const COMPILER: [(&str, &str); 2] = [("nvrtcGetCUBIN", "nvrtcGetPTX"), ("nvrtcGetCUBINSize", "nvrtcGetPTXSize")];

/// Where a file holds NVRTC: its functions that yield machine code, each with the address of the one that yields PTX.
pub fn compiler(elf: &Elf) -> Vec<(Symbol, u64)> {
    let wanted = |name: &str| COMPILER.iter().any(|(code, ptx)| name == *code || name == *ptx);
    let tables = [".dynsym", ".symtab"].into_iter().filter(|table| has_name(&elf.names(table), COMPILER[0].0));
    let found = tables.map(|table| elf.functions(table, wanted)).find(|found| !found.is_empty()).unwrap_or_default();
    let named = |name: &str| found.iter().find(|f| f.name == name);
    COMPILER.iter().filter_map(|(code, ptx)| Some((named(code)?.clone(), named(ptx)?.address))).collect()
}

/// The function of NVIDIA's run-time linker that begins a link.
const LINKER: &str = "nvJitLinkCreate";

/// Where a file is nvJitLink: its functions, by their documented names (`nvJitLinkCreate`) and by those that have a version at the
/// end (`__nvJitLinkCreate_13_0`), which programs in C call.
pub fn linker(elf: &Elf) -> Vec<Symbol> {
    if !has_name(&elf.names(".dynsym"), LINKER) || elf.asks_for(".dynsym", LINKER) {
        return Vec::new();
    }
    elf.functions(".dynsym", |name| name.trim_start_matches('_').starts_with("nvJitLink"))
}

/// Which release a runtime is, by functions that only some have; `None` where it is older than all.
fn release(has: impl Fn(&str) -> bool) -> Option<Release> {
    match () {
        // Texture references ended with CUDA 11; this function came with 11.0.
        () if has("cudaBindTexture") => has("cudaCtxResetPersistingL2Cache").then_some(Release::Cuda11),
        // In CUDA 12 a second form of the function stands beside the first.
        () if has("cudaGetDeviceProperties_v2") => Some(Release::Cuda12),
        () => Some(Release::Cuda13),
    }
}

/// What one entry of a fat binary is, in words: `compute_80`, `sm_90`.
pub type Name = String;

/// The entries of all fat binaries that nvcc put into a file, each named once: PTX first.
pub fn images(elf: &Elf) -> io::Result<Vec<Name>> {
    let mut found = Vec::new();
    for section in elf.sections.iter().filter(|s| FAT_BINARIES.contains(&s.name.as_str())) {
        let bytes = elf.read(section.offset, section.size)?;
        let entries = fatbin::inside(&bytes).into_iter().flatten();
        found.extend(entries.map(|e| (e.kind, e.architecture, e.to_string())));
    }
    found.sort();
    found.dedup();
    Ok(found.into_iter().map(|(.., name)| name).collect())
}

/// Opens a file; `None` where it is no program or library of 64 bits.
pub fn open(path: &Path) -> io::Result<Option<Elf>> {
    Elf::open(File::open(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_follows_from_the_names() {
        let of = |names: &[&str]| release(|name| names.contains(&name));
        assert_eq!(of(&["cudaMalloc", "cudaGetDeviceProperties"]), Some(Release::Cuda13));
        assert_eq!(of(&["cudaGetDeviceProperties_v2", "cudaGetDeviceProperties"]), Some(Release::Cuda12));
        assert_eq!(of(&["cudaBindTexture", "cudaCtxResetPersistingL2Cache"]), Some(Release::Cuda11));
        assert_eq!(of(&["cudaBindTexture", "cudaConfigureCall"]), None);
    }

    #[test]
    fn a_program_without_cuda_has_none() {
        let own = std::env::current_exe().unwrap();
        let elf = open(&own).unwrap().unwrap();
        assert_eq!(runtime(&elf), Runtime::None);
        assert!(images(&elf).unwrap().is_empty());
        // Its own functions are found by name, each inside the program's code.
        let text = elf.section(".text").unwrap();
        let own = elf.functions(".symtab", |name| name == "main");
        assert!(own.len() == 1 && own[0].size > 0 && text.size > 0, "{own:?}");
    }

    #[test]
    fn other_files_are_no_programs() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(open(Path::new(manifest)).unwrap().is_none());
    }
}
