//! Names the file that contains an image, for messages about code that margay cannot run.

use crate::raw::{Host, Text, callers};
use margay_image::{
    fatbin::{Entry, Kind},
    object::{self, Runtime},
};
use parking_lot::Mutex;
use std::{cell::RefCell, collections::BTreeSet, fs, path::Path};

/// How to obtain PTX.
const ADVICE: &str = "compile with `-gencode arch=compute_80,code=compute_80` (for example with NVCC_APPEND_FLAGS), with clang \
                      `--cuda-include-ptx=all`, or use a build with PTX";

/// PyTorch's own kernels, which are machine code in every build from PyPI; margay's Python package replaces the operators that call them.
const TORCH: &str = "libtorch_cuda";

/// What to do about a call of PyTorch's own kernels.
fn torch_advice(replaced: bool) -> &'static str {
    if replaced {
        "PyTorch called a kernel of its own that margay does not replace"
    } else {
        "PyTorch's operators need margay's Python package: run `pip install margay` in the environment of PyTorch, and start the program with \
         `margay exec`, or call `margay.enable()` before `import torch`"
    }
}

thread_local! {
    /// What the program calls the image that this thread reads.
    static NAME: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Reads an image that the program names: a file that it loads, or a part of a link.
pub fn named<T>(name: Option<String>, read: impl FnOnce() -> T) -> T {
    // It is destroyed as the process exits.
    let Ok(before) = NAME.try_with(|own| own.replace(name.filter(|name| !name.is_empty()))) else { return read() };
    let done = read();
    let _ = NAME.try_with(|own| own.replace(before));
    done
}

/// The name of the image that this thread reads, if it has one.
pub fn name() -> Option<String> {
    NAME.try_with(|own| own.borrow().clone()).ok().flatten()
}

/// The file that holds an image: the one that the program names, or the one mapped at the address.
pub fn holder(image: Host) -> Option<String> {
    if let Some(name) = name() {
        return Some(name);
    }
    mapped(&fs::read_to_string("/proc/self/maps").ok()?, image.address()).map(String::from)
}

/// The file mapped at an address, according to `/proc/self/maps`.
fn mapped(maps: &str, address: u64) -> Option<&str> {
    maps.lines().find_map(|line| {
        let (range, path) = (line.split(' ').next()?, &line[line.find('/')?..]);
        let (start, end) = range.split_once('-')?;
        let inside = u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?;
        inside.contains(&address).then_some(path)
    })
}

/// The file whose code called this library.
fn caller(maps: &str) -> Option<&str> {
    let mut files = callers().into_iter().map_while(|address| mapped(maps, address));
    let own = files.next()?;
    files.find(|file| *file != own)
}

/// Reports that a fat binary has no PTX, and what it contains instead.
pub fn no_ptx(entries: &[Entry<'_>], holder: Option<String>) {
    let mut kinds: Vec<String> = entries.iter().map(ToString::to_string).collect();
    kinds.sort();
    kinds.dedup();
    if let Some(path) = holder.as_deref().filter(|path| is_kernel_library(path)) {
        return report(&fails(&[path]));
    }
    if let Some(path) = holder.as_deref().filter(|path| stem(path) == TORCH) {
        let replaced = SEEN.lock().contains(TORCH);
        return report(&format!("margay: {path} contains no PTX; {}", torch_advice(replaced)));
    }
    let who = holder.unwrap_or_else(|| "this image".into());
    let intermediate = entries.iter().any(|e| e.kind == Kind::Lto);
    let advice = if intermediate {
        "its intermediate code for link-time optimization needs NVIDIA's linker; compile without `-dlto`, to PTX"
    } else {
        ADVICE
    };
    let only = if kinds.is_empty() { String::new() } else { format!(", only code for {}", kinds.join(", ")) };
    report(&format!("margay: {who} contains no PTX{only}; {advice}"));
}

/// Reports that an image is machine code.
pub fn machine_code(image: Host) {
    let who = holder(image).map_or_else(|| "this image".into(), |path| format!("an image of {path}"));
    report(&format!("margay: {who} is GPU machine code and contains no PTX; {ADVICE}"));
}

/// Prints a message once: every call that needs an image fails for the same reason.
fn report(words: &str) {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    crate::process::account::unloadable(words);
    match PRINTED.lock().insert(words.to_string()) {
        true => crate::api::report_error(words),
        false => crate::api::record_as("error", words),
    }
}

/// NVIDIA's kernel libraries, by the names of their files up to the first dot. They contain machine code, with a
/// static runtime or direct driver calls.
const KERNEL_LIBRARIES: [&str; 16] = [
    "libcublas",
    "libcublasLt",
    "libcudnn",
    "libcufft",
    "libcufile",
    "libcufftw",
    "libcurand",
    "libcusolver",
    "libcusolverMg",
    "libcusparse",
    "libcusparseLt",
    "libcutensor",
    "libcutensorMg",
    "libnccl",
    "libnppc",
    "libnvshmem_host",
];

/// The files that need no message, or had theirs, and kernel libraries whose functions were replaced by margay's, by `stem`.
static SEEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

crate::api::function! {
    /// Declares that the program does not call the runtime inside a file, or NVIDIA's functions in a kernel library such as
    /// `libcublas`, because they were replaced by margay's.
    margayReplaced(name: Text) {
        SEEN.lock().insert(name.text()?);
        Ok(())
    }
}

/// Messages for NVIDIA's own runtimes, which ask for the driver's undocumented tables: the file that contains each, and
/// what to do. A file is named in the first answer after it was loaded.
pub fn foreign_runtimes() -> Vec<String> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut seen = SEEN.lock();
    let paths = maps.lines().filter_map(|line| Some(line[line.find('/')?..].to_string()));
    let new: BTreeSet<String> = paths.filter(|path| !seen.contains(stem(path)) && seen.insert(path.clone())).collect();
    let (libraries, others): (Vec<&String>, Vec<&String>) = new.iter().partition(|path| is_kernel_library(path));
    let asks = caller(&maps);
    let mut found = Vec::new();
    for path in others {
        match foreign_runtime(path, asks == Some(path)) {
            Found::Nothing => {}
            Found::Words(words) => found.push(words),
            Found::Idle => drop(seen.remove(path)),
        }
    }
    drop(seen);
    if new.iter().any(|path| is_of_jax(path)) {
        found.push(JAX.into());
    } else if !libraries.is_empty() {
        found.push(fails(&libraries));
    }
    found
}

/// The message for JAX, which loads its plugin before any program can choose, and reports a failure of CUPTI.
const JAX: &str = "margay: JAX has no `cuda` device here: its CUDA plugin runs machine code and NVIDIA's libraries, which need NVIDIA's \
                   driver; it uses the CPU, and JAX_PLATFORMS=cpu asks for that";

/// Whether a file belongs to JAX's CUDA plugin.
fn is_of_jax(path: &str) -> bool {
    ["/jax_cuda12_plugin/", "/jax_cuda13_plugin/", "/xla_cuda_plugin.so"].iter().any(|part| path.contains(part))
}

/// The message for kernel libraries.
fn fails<P: AsRef<Path>>(libraries: &[P]) -> String {
    let names: Vec<_> = libraries.iter().filter_map(|path| path.as_ref().file_name()?.to_str()).collect();
    format!(
        "margay: calls to {} fail: NVIDIA's kernel libraries need NVIDIA's driver; PyTorch's operators and your own kernels \
         work without them",
        names.join(", ")
    )
}

/// Whether a file is one of NVIDIA's kernel libraries.
fn is_kernel_library(path: &str) -> bool {
    let stem = stem(path);
    path.contains(".so") && (KERNEL_LIBRARIES.contains(&stem) || stem.starts_with("libcudnn_"))
}

/// The name of a file up to the first dot.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.split('.').next().unwrap_or_default()
}

/// What is to be said of a file.
enum Found {
    /// It holds no runtime that margay cannot replace.
    Nothing,
    /// A message.
    Words(String),
    /// A message once it asks for the tables: most programs never call the runtimes in NVIDIA's Python bindings.
    Idle,
}

/// The message for a file with a runtime that margay cannot replace. `asks`: whether it asks for the tables now.
fn foreign_runtime(path: &str, asks: bool) -> Found {
    let Ok(Some(elf)) = object::open(Path::new(path)) else { return Found::Nothing };
    let why = match object::runtime(&elf) {
        Runtime::None if own(path) || !object::hides_runtime(&elf).unwrap_or(false) => return Found::Nothing,
        Runtime::None if !asks => return Found::Idle,
        Runtime::None => {
            "contains a CUDA runtime without symbols, which margay cannot replace; use the driver API or a `libcudart.so` instead, or, \
             for NVIDIA's Python bindings, run `pip install margay` in their environment"
        }
        Runtime::Stripped if in_package(path) => {
            "brings a CUDA runtime without the names of its functions, so margay cannot take its place: this package's CUDA \
             functions fail; use its CPU device, or build it from source with `-cudart shared` (NVCC_APPEND_FLAGS='-cudart shared')"
        }
        Runtime::Stripped => {
            "contains a CUDA runtime without symbols, which margay cannot replace; link it with `-cudart shared` \
             (NVCC_APPEND_FLAGS='-cudart shared' needs no change to the build system), or do not strip it"
        }
        Runtime::TooOld => "contains a CUDA runtime from before CUDA 11; build it with CUDA 11, 12 or 13",
        Runtime::Inside(..) if own(path) || redirected() => return Found::Nothing,
        Runtime::Inside(..) => {
            "contains a static CUDA runtime; start the program with `margay exec`, which replaces it"
        }
        Runtime::Shared => return Found::Nothing,
    };
    Found::Words(format!("margay: {path} {why}"))
}

/// Whether a file belongs to an installed Python package, which its user did not build.
fn in_package(path: &str) -> bool {
    Path::new(path)
        .components()
        .any(|part| ["site-packages", "dist-packages"].iter().any(|name| part.as_os_str() == *name))
}

/// Whether a file is one of margay's libraries, which are installed in one folder.
fn own(path: &str) -> bool {
    let name = Path::new(path).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = Path::new(path).with_file_name("libmargay_redirect.so");
    (name.starts_with("libcuda") || name.starts_with("libmargay")) && beside.is_file()
}

/// Whether runtimes linked into programs are redirected to margay's in this process.
fn redirected() -> bool {
    cfg!(target_arch = "x86_64")
        && std::env::var_os("LD_AUDIT").is_some_and(|v| v.to_string_lossy().contains("libmargay_redirect"))
}

#[cfg(test)]
mod tests {
    use super::{TORCH, in_package, is_kernel_library, is_of_jax, stem, torch_advice};

    #[test]
    fn files_of_python_packages_are_known_by_their_folder() {
        assert!(in_package("/opt/a/lib/python3.12/site-packages/warp/bin/warp.so"));
        assert!(in_package("/usr/lib/python3/dist-packages/x.so"));
        assert!(!in_package("/opt/a/site-packages.so") && !in_package("/opt/a.out"));
    }

    #[test]
    fn the_file_of_torchs_kernels_has_advice_of_its_own() {
        let path = "/opt/a/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so";
        assert_eq!((stem(path), is_kernel_library(path)), (TORCH, false));
        assert!(torch_advice(false).contains("pip install margay"));
        assert!(!torch_advice(true).contains("pip install"));
    }

    #[test]
    fn jax_is_known_by_its_plugin() {
        let packages = "/opt/a/lib/python3.12/site-packages";
        assert!(is_of_jax(&format!("{packages}/jax_cuda13_plugin/_solver.so")));
        assert!(is_of_jax(&format!("{packages}/jax_plugins/xla_cuda12/xla_cuda_plugin.so")));
        assert!(!is_of_jax(&format!("{packages}/jaxlib/_jax.so")));
    }

    #[test]
    fn libraries_of_kernels_are_known_by_their_files() {
        for path in ["/usr/lib/libcublasLt.so.13", "/opt/x/libcufft.so.12.0.1", "/a/libcudnn_ops.so.9", "libnccl.so"] {
            assert!(is_kernel_library(path), "{path}");
        }
        for path in ["/usr/lib/libcudart.so.13", "/usr/lib/libc.so.6", "/a/libcublas_of_mine.so", "/a/libcufft.a", ""] {
            assert!(!is_kernel_library(path), "{path}");
        }
    }
}
