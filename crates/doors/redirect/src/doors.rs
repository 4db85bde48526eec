//! Which objects a process has, which of them bring a CUDA runtime, and which jumps lead from there to margay's.

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

/// The file under which this library is named in `LD_AUDIT`, beside the libraries that programs are led to.
const OWN_NAME: &str = "libmargay_redirect.so";
/// Libraries that are looked for by name, and whose place is taken.
const TAKEN: [&str; 5] = ["libcuda.so.1", "libcuda.so", "libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13"];
/// What margay's runtime libraries have and no other.
const MARK: &str = "margay_runtime_release";

/// A jump to write over the beginning of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Jump {
    /// The function's address.
    pub at: usize,
    /// Bytes of its code.
    pub size: usize,
    /// Where to go.
    pub to: usize,
}

/// What there is to do for one object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Work {
    /// The object's file.
    pub path: PathBuf,
    /// The jumps into the runtime of its release.
    pub jumps: Vec<Jump>,
    /// What it is and how it is served, in words.
    pub words: String,
}

/// An object that was announced and whose constructors have not run.
#[derive(Debug)]
struct Object {
    path: PathBuf,
    base: usize,
    runtime: Runtime,
    /// Functions of a compiler that yield machine code, and those that yield PTX.
    compiler: Vec<(Symbol, u64)>,
    /// Functions of a linker.
    linker: Vec<Symbol>,
    images: Vec<String>,
}

/// What is known of a process.
#[derive(Debug, Default)]
pub struct Doors {
    /// Where margay's libraries are; nowhere if the environment does not say.
    folder: Option<PathBuf>,
    /// Whether people want to know what is loaded.
    tells: bool,
    /// The functions of margay's runtime libraries.
    own: BTreeMap<Release, BTreeMap<String, usize>>,
    announced: Vec<Object>,
    /// Whether a run-time linker was met; a second one in a process is left alone.
    has_linker: bool,
}

impl Doors {
    /// As the environment says: `LD_AUDIT` names this library, `MARGAY_DOORS` asks for a list.
    pub fn new() -> Doors {
        let audit = env::var_os("LD_AUDIT").unwrap_or_default();
        let own = env::split_paths(&audit).find(|p| p.file_name().is_some_and(|name| name == OWN_NAME));
        Doors {
            folder: own.and_then(|own| Some(own.parent()?.to_path_buf())),
            tells: env::var_os("MARGAY_DOORS").is_some_and(|v| !v.is_empty() && v != "0"),
            ..Doors::default()
        }
    }

    /// Whether people want to know what is loaded.
    pub fn tells(&self) -> bool {
        self.tells
    }

    /// The file to take where a library is looked for: margay's for CUDA's.
    pub fn instead_of(&self, wanted: &Path) -> Option<PathBuf> {
        let name = wanted.file_name()?.to_str().filter(|name| TAKEN.contains(name))?;
        let own = self.folder.as_ref()?.join(name);
        (own != wanted && own.is_file()).then_some(own)
    }

    /// Takes note of an object that was mapped at some address.
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

    /// What there is to do for the objects that were announced.
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
            Runtime::None if !linker.is_empty() => "a run-time linker, which yields PTX for machine code".into(),
            Runtime::None if !jumps.is_empty() => "a run-time compiler, which yields PTX for machine code".into(),
            Runtime::None => "no runtime".into(),
            Runtime::Shared => "asks for a shared CUDA runtime".into(),
            Runtime::Stripped => "a CUDA runtime inside without the names of its functions: out of reach".into(),
            Runtime::TooOld => "a runtime before CUDA 11 inside: out of reach".into(),
            Runtime::Inside(release, functions) => {
                let own = self.own.get(&release);
                let led = functions
                    .iter()
                    .filter_map(|f| Some(Jump { at: at(f.address), size: f.size as usize, to: *own?.get(&f.name)? }));
                jumps.extend(led);
                let (number, library) = (release.number(), release.library());
                match own {
                    Some(_) => format!("the CUDA {number} runtime inside, {} functions led to margay's", jumps.len()),
                    None => format!("the CUDA {number} runtime inside, and margay's {library} is not loaded"),
                }
            }
        };
        jumps.extend(linker);
        let holds = if images.is_empty() { String::new() } else { format!("; holds {}", images.join(", ")) };
        Work { path, jumps, words: words + &holds }
    }
}

/// The name of one of nvJitLink's functions without the version at its end, and whether there is one.
fn versioned(name: &str) -> (&str, bool) {
    let base = name.trim_start_matches('_');
    match base.find('_').filter(|_| name.starts_with("__")) {
        Some(end) => (&base[..end], true),
        None => (base, false),
    }
}

impl Doors {
    /// Jumps from the functions of a run-time linker to those that stand in for them. Each has one name for every version of the
    /// interface; the second oldest stays as it is, to be called from here.
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

/// The program's own file, which the dynamic linker does not name.
pub fn program() -> PathBuf {
    let own = Path::new("/proc/self/exe");
    fs::read_link(own).unwrap_or_else(|_| own.into())
}
