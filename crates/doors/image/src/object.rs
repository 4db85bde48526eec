//! Finds which CUDA runtime a program or library contains or imports, and what its fat binaries hold.

use crate::{
    elf::{Elf, Symbol},
    fatbin,
};
use memchr::memmem;
use std::{fs::File, io, path::Path};

/// A release of the CUDA runtime API with its own structures and symbols.
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
    /// All releases, newest first.
    pub const ALL: [Release; 3] = [Release::Cuda13, Release::Cuda12, Release::Cuda11];

    /// The soname of the runtime library.
    pub fn library(self) -> &'static str {
        match self {
            Release::Cuda11 => "libcudart.so.11.0",
            Release::Cuda12 => "libcudart.so.12",
            Release::Cuda13 => "libcudart.so.13",
        }
    }

    /// The major version.
    pub fn number(self) -> u32 {
        match self {
            Release::Cuda11 => 11,
            Release::Cuda12 => 12,
            Release::Cuda13 => 13,
        }
    }
}

/// How a file uses the CUDA runtime.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Runtime {
    /// Not at all.
    None,
    /// Imports it from a shared library.
    Shared,
    /// Contains it, with symbols.
    Inside(Release, Vec<Symbol>),
    /// Contains a release before CUDA 11.
    TooOld,
    /// Contains it, without symbols.
    Stripped,
}

/// Every release of the runtime defines both.
const REGISTRATION: &str = "__cudaRegisterFatBinary";
const VERSION: &str = "cudaRuntimeGetVersion";
/// Sections in which nvcc places fat binaries.
const FAT_BINARIES: [&str; 2] = [".nv_fatbin", "__nv_relfatbin"];
/// The section that registers them; a file without it holds fat binaries for others to load.
const REGISTERED: &str = ".nvFatBinSegment";

/// Whether a name may be a function of the runtime API, or one that nvcc's host code calls.
fn is_api(name: &str) -> bool {
    name.starts_with("cuda") || name.starts_with("__cuda")
}

/// Determines how a file uses the CUDA runtime.
pub fn runtime(elf: &Elf) -> Runtime {
    for table in [".symtab", ".dynsym"] {
        if !elf.names_contain(table, VERSION) {
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
    if elf.names_contain(".dynsym", REGISTRATION) && elf.asks_for(".dynsym", REGISTRATION) {
        return Runtime::Shared;
    }
    match elf.section(REGISTERED) {
        Some(_) => Runtime::Stripped,
        None => Runtime::None,
    }
}

/// The beginning of the names of shared memory that NVIDIA's runtime asks the system for.
const SHARED_MEMORY: &[u8] = b"/cudart.shm.";

/// Whether a file that registers no device code contains a runtime without symbols, as Python's bindings of the runtime API do. Reads
/// all constants of the file.
pub fn hides_runtime(elf: &Elf) -> io::Result<bool> {
    let Some(constants) = elf.section(".rodata") else { return Ok(false) };
    let bytes = elf.read(constants.offset, constants.size)?;
    Ok(memmem::find(&bytes, SHARED_MEMORY).is_some())
}

/// Functions of NVIDIA's run-time compiler NVRTC that return machine code, and those with the same arguments that
/// return PTX (NVRTC, "Compilation").
const COMPILER: [(&str, &str); 2] = [("nvrtcGetCUBIN", "nvrtcGetPTX"), ("nvrtcGetCUBINSize", "nvrtcGetPTXSize")];

/// If a file contains NVRTC: its functions that return machine code, each with the address of the one that returns PTX.
pub fn compiler(elf: &Elf) -> Vec<(Symbol, u64)> {
    let wanted = |name: &str| COMPILER.iter().any(|(code, ptx)| name == *code || name == *ptx);
    let tables = [".dynsym", ".symtab"].into_iter().filter(|table| elf.names_contain(table, COMPILER[0].0));
    let found = tables.map(|table| elf.functions(table, wanted)).find(|found| !found.is_empty()).unwrap_or_default();
    let named = |name: &str| found.iter().find(|f| f.name == name);
    COMPILER.iter().filter_map(|(code, ptx)| Some((named(code)?.clone(), named(ptx)?.address))).collect()
}

/// The function of nvJitLink that starts a link.
const LINKER: &str = "nvJitLinkCreate";

/// If a file is nvJitLink: its functions, by their documented names (`nvJitLinkCreate`) and by the versioned ones
/// (`__nvJitLinkCreate_13_0`) that C programs call.
pub fn linker(elf: &Elf) -> Vec<Symbol> {
    if !elf.names_contain(".dynsym", LINKER) || elf.asks_for(".dynsym", LINKER) {
        return Vec::new();
    }
    elf.functions(".dynsym", |name| name.trim_start_matches('_').starts_with("nvJitLink"))
}

/// The release of a runtime, by functions that only some define; `None` if it is older than all.
fn release(has: impl Fn(&str) -> bool) -> Option<Release> {
    match () {
        // Texture references were removed after CUDA 11; the other function was added in 11.0.
        () if has("cudaBindTexture") => has("cudaCtxResetPersistingL2Cache").then_some(Release::Cuda11),
        // Only CUDA 12 has two versions of this function.
        () if has("cudaGetDeviceProperties_v2") => Some(Release::Cuda12),
        () => Some(Release::Cuda13),
    }
}

/// Name of a fat binary's entry: `compute_80`, `sm_90`.
pub type Name = String;

/// The entries of all fat binaries in a file, each once, PTX first.
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

/// Opens a file; `None` if it is not a 64-bit program or library.
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
        // Its own functions are found by name, with code inside `.text`.
        let text = elf.section(".text").unwrap();
        let own = elf.functions(".symtab", |name| name == "main");
        assert!(own.len() == 1 && own[0].size > 0 && text.size > 0, "{own:?}");
    }

    #[test]
    fn other_files_are_not_programs() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(open(Path::new(manifest)).unwrap().is_none());
    }
}
