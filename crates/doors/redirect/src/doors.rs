//! Which objects a process has, which of them bring a CUDA runtime, and which jumps lead from there to margay's.

use margay_image::object::{self, Release, Runtime};
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
        let images = if self.tells { object::images(&elf).unwrap_or_default() } else { Vec::new() };
        if runtime != Runtime::None || !images.is_empty() {
            self.announced.push(Object { path: path.into(), base, runtime, images });
        }
    }

    /// What there is to do for the objects that were announced.
    pub fn settle(&mut self) -> Vec<Work> {
        std::mem::take(&mut self.announced).into_iter().map(|object| self.work(object)).collect()
    }

    fn work(&self, object: Object) -> Work {
        let Object { path, base, runtime, images } = object;
        let mut jumps = Vec::new();
        let words = match runtime {
            Runtime::None => "no runtime".into(),
            Runtime::Shared => "asks for a shared CUDA runtime".into(),
            Runtime::Stripped => "a CUDA runtime inside without the names of its functions: out of reach".into(),
            Runtime::TooOld => "a runtime before CUDA 11 inside: out of reach".into(),
            Runtime::Inside(release, functions) => {
                let own = self.own.get(&release);
                let led = functions.iter().filter_map(|f| {
                    let to = *own?.get(&f.name)?;
                    Some(Jump { at: base.wrapping_add(f.address as usize), size: f.size as usize, to })
                });
                jumps.extend(led);
                let (number, library) = (release.number(), release.library());
                match own {
                    Some(_) => format!("the CUDA {number} runtime inside, {} functions led to margay's", jumps.len()),
                    None => format!("the CUDA {number} runtime inside, and margay's {library} is not loaded"),
                }
            }
        };
        let holds = if images.is_empty() { String::new() } else { format!("; holds {}", images.join(", ")) };
        Work { path, jumps, words: words + &holds }
    }
}

/// The program's own file, which the dynamic linker does not name.
pub fn program() -> PathBuf {
    let own = Path::new("/proc/self/exe");
    fs::read_link(own).unwrap_or_else(|_| own.into())
}
