//! The environment in which CUDA programs run on margay: variables for the dynamic linker and for CUDA's own tools, with which programs
//! find margay's libraries in place of NVIDIA's. Used by `margay exec`, and by `margay.enable()` in Python.

use crate::{installed, nvcc, smi};
use std::{
    env,
    ffi::{OsStr, OsString},
    hash::{DefaultHasher, Hash, Hasher},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// The name under which the command acts as NVIDIA's assembler.
const ASSEMBLER: &str = "ptxas";
/// The variables that tell Triton where the assembler is, for older and for newer architectures.
const TRITON: [&str; 2] = ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"];
/// The variable that tells Python processes with margay's package that they run under margay ([`Programs::environment`]).
pub const PYTHON: &str = "MARGAY_PYTHON";
/// The variable that tells CuPy and makefiles where NVIDIA's compiler driver is.
const COMPILER: &str = "NVCC";
/// The auditing library, which redirects programs to the others.
const REDIRECT: &str = "libmargay_redirect.so";
/// The libraries as they are built or installed, and the names under which programs ask for them.
const LIBRARIES: [(&str, &[&str]); 5] = [
    ("libcuda.so", &["libcuda.so.1", "libcuda.so"]),
    ("libcudart.so", &["libcudart.so.13", "libcudart.so"]),
    ("libcudart12.so", &["libcudart.so.12"]),
    ("libcudart11.so", &["libcudart.so.11.0"]),
    (REDIRECT, &[REDIRECT]),
];
/// NVML as it is built or installed, and its name for programs, which do without it if it was not built.
const MANAGEMENT: (&str, &str) = ("libnvml.so", "libnvidia-ml.so.1");
/// The folder, below that of the libraries, with the commands that programs find in PATH.
const COMMANDS: &str = "bin";
/// Runtime libraries that are preloaded: a program may contain a static runtime, whose functions are redirected to them.
const PRELOADED: [&str; 3] = ["libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"];

/// The folder in which programs find margay's libraries.
#[derive(Clone, Debug)]
pub struct Programs {
    command: PathBuf,
    folder: PathBuf,
}

impl Programs {
    /// Makes a folder, in the user's cache, in which margay's libraries and commands have the names that programs ask for. `command` is
    /// margay's own command, and the libraries were installed with it.
    pub fn new(command: &Path) -> Result<Programs, String> {
        let missing = |e: io::Error| format!("cannot find margay's command {}: {e}", command.display());
        let command = command.canonicalize().map_err(missing)?;
        let mut links = vec![(ASSEMBLER, command.clone())];
        for (built, names) in LIBRARIES {
            let file = installed::beside(&command, built)
                .ok_or_else(|| format!("{built} is missing next to {}; `make release` builds it", command.display()))?;
            links.extend(names.iter().map(|name| (*name, file.clone())));
        }
        links.extend(installed::beside(&command, MANAGEMENT.0).map(|file| (MANAGEMENT.1, file)));
        let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let base = base.or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
        let base = base.unwrap_or_else(env::temp_dir).join("margay");
        // Different builds on one machine use different folders.
        let mut place = DefaultHasher::new();
        command.hash(&mut place);
        let folder = base.join(format!("lib-{}-{:016x}", env!("CARGO_PKG_VERSION"), place.finish()));
        let failed = |e: io::Error| format!("cannot create {}: {e}", folder.display());
        std::fs::create_dir_all(&folder).map_err(failed)?;
        for (name, target) in &links {
            nvcc::link(target, &folder.join(name)).map_err(failed)?;
        }
        let commands = folder.join(COMMANDS);
        std::fs::create_dir_all(&commands).map_err(failed)?;
        nvcc::link(&command, &commands.join(smi::NAME)).map_err(failed)?;
        Ok(Programs { command, folder })
    }

    /// The folder with the libraries.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The environment variables for the dynamic linker: the library path, preloaded libraries and the auditing library. Child processes
    /// inherit them.
    pub fn linking(&self) -> Vec<(&'static str, OsString)> {
        let preloaded: Vec<_> = PRELOADED.iter().map(|name| self.folder.join(name)).collect();
        vec![
            ("LD_LIBRARY_PATH", before("LD_LIBRARY_PATH", std::slice::from_ref(&self.folder))),
            ("LD_PRELOAD", before("LD_PRELOAD", &preloaded)),
            ("LD_AUDIT", before("LD_AUDIT", &[self.folder.join(REDIRECT)])),
        ]
    }

    /// All environment variables of a program: [`Programs::linking`], the assembler, a PATH with `nvidia-smi` (and with a compiler driver
    /// that produces PTX, if NVIDIA's is in it), and the variable for Python processes. `program` may be a command of a Python environment.
    pub fn environment(&self, program: &Path) -> Result<Vec<(&'static str, OsString)>, String> {
        let mut all = self.linking();
        all.extend(TRITON.map(|variable| (variable, self.folder.join(ASSEMBLER).into_os_string())));
        all.push((PYTHON, "1".into()));
        let search = env::var_os("PATH").unwrap_or_default();
        let mut first = vec![self.folder.join(COMMANDS)];
        let toolkit = self.folder.join("toolkit");
        let beside = program.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut commands: Vec<PathBuf> =
            beside.and_then(|folder| std::path::absolute(folder).ok()).into_iter().collect();
        commands.extend(env::split_paths(&search));
        let in_path = nvcc::behind(&nvcc::places(), &self.command);
        let is_in_path = in_path.is_some();
        if let Some(compiler) = in_path.or_else(|| nvcc::behind(&nvcc::packaged(&commands), &self.command)) {
            let bin = nvcc::mirror(&compiler, &toolkit, &self.command);
            let bin = bin.map_err(|e| format!("cannot link to {}: {e}", compiler.display()))?;
            // CuPy searches the folder of NVRTC before PATH. A compiler that the user has chosen stays.
            if env::var_os(COMPILER).is_none() {
                all.push((COMPILER, bin.join(nvcc::NAME).into_os_string()));
            }
            all.push((nvcc::REAL, compiler.into_os_string()));
            if is_in_path {
                first.push(bin);
            }
        }
        let others = env::split_paths(&search).filter(|folder| !first.contains(folder));
        let path = env::join_paths(first.iter().cloned().chain(others));
        all.push(("PATH", path.unwrap_or_else(|_| search.clone())));
        Ok(all)
    }
}

/// A list of paths, with others prepended and duplicates removed.
fn before(variable: &str, first: &[PathBuf]) -> OsString {
    let old = env::var_os(variable).unwrap_or_default();
    let rest = old.as_bytes().split(|b| b": ".contains(b)).map(|p| PathBuf::from(OsStr::from_bytes(p)));
    let rest = rest.filter(|p| !p.as_os_str().is_empty() && !first.contains(p));
    let all: Vec<PathBuf> = first.iter().cloned().chain(rest).collect();
    env::join_paths(&all).unwrap_or(old)
}
