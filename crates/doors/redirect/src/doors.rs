//! Tracks the objects of a process: which of them contain a CUDA runtime, and which jumps redirect it to margay's.

use crate::raw::{stand_ins, with_linker};
use margay_image::{
    elf::Symbol,
    object::{self, Release, Runtime},
};
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

/// The file name of this library in `LD_AUDIT`; margay's other libraries are in the same folder.
const OWN_NAME: &str = "libmargay_redirect.so";
/// Libraries that are replaced when they are looked up.
const TAKEN: [&str; 5] = ["libcuda.so.1", "libcuda.so", "libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"];
/// A symbol that only margay's runtime libraries define.
const MARK: &str = "margay_runtime_release";

/// A jump to be written over the start of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Jump {
    /// The function's address.
    pub at: usize,
    /// Size of its code in bytes.
    pub size: usize,
    /// Target address.
    pub to: usize,
}

/// The redirections of one object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// The object's file.
    pub path: PathBuf,
    /// Jumps into margay's runtime library of the same release.
    pub jumps: Vec<Jump>,
    /// A description of the object and of how it is served.
    pub words: String,
}

/// A mapped object whose constructors have not run yet.
#[derive(Debug)]
struct Object {
    path: PathBuf,
    base: usize,
    runtime: Runtime,
    /// Functions of NVRTC that return machine code, and the addresses of those that return PTX.
    compiler: Vec<(Symbol, u64)>,
    /// Functions of nvJitLink.
    linker: Vec<Symbol>,
    images: Vec<String>,
}

/// The state of redirection in a process.
#[derive(Debug, Default)]
pub struct Doors {
    /// The folder of margay's libraries, if the environment says.
    folder: Option<PathBuf>,
    /// Whether loaded objects are listed on standard error.
    tells: bool,
    /// The functions of margay's runtime libraries.
    own: BTreeMap<Release, BTreeMap<String, usize>>,
    announced: Vec<Object>,
    /// Whether nvJitLink was found; a second copy in a process is left alone.
    has_linker: bool,
}

impl Doors {
    /// Reads the environment: `LD_AUDIT` names this library, `MARGAY_DOORS` requests a list.
    pub fn new() -> Doors {
        let audit = env::var_os("LD_AUDIT").unwrap_or_default();
        let own = env::split_paths(&audit).find(|p| p.file_name().is_some_and(|name| name == OWN_NAME));
        Doors {
            folder: own.and_then(|own| Some(own.parent()?.to_path_buf())),
            tells: env::var_os("MARGAY_DOORS").is_some_and(|v| !v.is_empty() && v != "0"),
            ..Doors::default()
        }
    }

    /// Whether loaded objects are listed.
    pub fn is_verbose(&self) -> bool {
        self.tells
    }

    /// The file to load instead of `wanted`: margay's library for CUDA's.
    pub fn instead_of(&self, wanted: &Path) -> Option<PathBuf> {
        let name = wanted.file_name()?.to_str().filter(|name| TAKEN.contains(name))?;
        let own = self.folder.as_ref()?.join(name);
        (own != wanted && own.is_file()).then_some(own)
    }

    /// Records an object mapped at `base`.
    pub fn announce(&mut self, path: &Path, base: usize) {
        let Ok(Some(elf)) = object::open(path) else { return };
        let runtime = object::runtime(&elf);
        if let Runtime::Inside(release, functions) = &runtime
            && !elf.functions(".dynsym", |name| name == MARK).is_empty()
        {
            let own = functions.iter().map(|f| (f.name.clone(), base.wrapping_add(f.address as usize)));
            self.own.insert(*release, own.collect());
            return;
        }
        let (compiler, linker) = (object::compiler(&elf), object::linker(&elf));
        let images = if self.tells { object::images(&elf).unwrap_or_default() } else { Vec::new() };
        if runtime != Runtime::None || !compiler.is_empty() || !linker.is_empty() || !images.is_empty() {
            self.announced.push(Object { path: path.into(), base, runtime, compiler, linker, images });
        }
    }

    /// The redirections for the objects recorded since the last call.
    pub fn settle(&mut self) -> Vec<Work> {
        std::mem::take(&mut self.announced).into_iter().map(|object| self.work(object)).collect()
    }

    fn work(&mut self, object: Object) -> Work {
        let Object { path, base, runtime, compiler, linker, images } = object;
        let at = |address: u64| base.wrapping_add(address as usize);
        let swapped =
            compiler.iter().map(|(code, ptx)| Jump { at: at(code.address), size: code.size as usize, to: at(*ptx) });
        let mut jumps: Vec<Jump> = swapped.collect();
        let linker = self.take_over(&linker, base);
        let words = match runtime {
            Runtime::None if !linker.is_empty() => {
                "a run-time linker, which produces PTX instead of machine code".into()
            }
            Runtime::None if !jumps.is_empty() => {
                "a run-time compiler, which produces PTX instead of machine code".into()
            }
            Runtime::None => "no runtime".into(),
            Runtime::Shared => "uses a shared CUDA runtime".into(),
            Runtime::Stripped => "a static CUDA runtime without symbols, which cannot be replaced".into(),
            Runtime::TooOld => "a static runtime from before CUDA 11, which cannot be replaced".into(),
            Runtime::Inside(release, functions) => {
                let own = self.own.get(&release);
                let led = functions
                    .iter()
                    .filter_map(|f| Some(Jump { at: at(f.address), size: f.size as usize, to: *own?.get(&f.name)? }));
                jumps.extend(led);
                let (number, library) = (release.number(), release.library());
                match own {
                    Some(_) => {
                        format!("a static CUDA {number} runtime, {} functions redirected to margay's", jumps.len())
                    }
                    None => format!("a static CUDA {number} runtime, and margay's {library} is not loaded"),
                }
            }
        };
        jumps.extend(linker);
        let holds = if images.is_empty() { String::new() } else { format!("; holds {}", images.join(", ")) };
        Work { path, jumps, words: words + &holds }
    }
}

/// The name of an nvJitLink function without its version suffix, and whether it has one.
fn versioned(name: &str) -> (&str, bool) {
    let base = name.trim_start_matches('_');
    match base.find('_').filter(|_| name.starts_with("__")) {
        Some(end) => (&base[..end], true),
        None => (base, false),
    }
}

impl Doors {
    /// Jumps from the functions of nvJitLink to their replacements. Each function has one symbol per interface version;
    /// the second oldest one is left alone, so that replacements can call it.
    fn take_over(&mut self, functions: &[Symbol], base: usize) -> Vec<Jump> {
        if functions.is_empty() || self.has_linker {
            return Vec::new();
        }
        self.has_linker = true;
        let at = |address: u64| base.wrapping_add(address as usize);
        let mut jumps = Vec::new();
        for (name, to) in stand_ins() {
            let forms = || functions.iter().filter(|f| versioned(&f.name).0 == name);
            // In order of address, which is the order of versions.
            let mut versions = forms().filter(|f| versioned(&f.name).1);
            let (first, second) = (versions.next(), versions.next());
            let Some(kept) = second.or(first).map(|f| f.address) else { continue };
            with_linker(|linker| linker.real.insert(name, at(kept)));
            let others = forms().filter(|f| f.address != kept);
            jumps.extend(others.map(|f| Jump { at: at(f.address), size: f.size as usize, to }));
        }
        jumps
    }
}

/// The program's own file, whose name the dynamic linker leaves empty.
pub fn program() -> PathBuf {
    let own = Path::new("/proc/self/exe");
    fs::read_link(own).unwrap_or_else(|_| own.into())
}
