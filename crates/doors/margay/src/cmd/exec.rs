//! `margay exec -- PROGRAM ARGUMENTS`: runs a CUDA program with margay's `libcuda.so.1` in the place of NVIDIA's.

use super::{Result, nvcc};
use crate::{
    args::ExecArgs,
    exit::{Failure, Outcome},
};
use std::{
    env,
    ffi::{OsStr, OsString},
    hash::{DefaultHasher, Hash, Hasher},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

/// Under this name the command is NVIDIA's assembler ([`super::ptxas`]); Triton finds it by the variable.
const ASSEMBLER: (&str, &str) = ("ptxas", "TRITON_PTXAS_PATH");
/// The libraries as they are built or installed, beside the command or in `../lib`, and the names under which programs ask for
/// them.
const LIBRARIES: [(&str, &[&str]); 5] = [
    ("libcuda.so", &["libcuda.so.1", "libcuda.so"]),
    ("libcudart.so", &["libcudart.so.13", "libcudart.so"]),
    ("libcudart12.so", &["libcudart.so.12"]),
    ("libcudart11.so", &["libcudart.so.11.0"]),
    (REDIRECT, &[REDIRECT]),
];
/// The auditing library, which leads programs to the others.
const REDIRECT: &str = "libmargay_redirect.so";
/// Runtime libraries that are loaded before the program asks: it may hold one of its own, whose functions lead there.
const PRELOADED: [&str; 3] = ["libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"];

/// Runs the command: this process becomes the program, so it ends as the program ends.
pub fn run(args: &ExecArgs) -> Result {
    let folder = folder()?;
    if args.print_path {
        crate::report::emit(&format!("{}\n", folder.display()));
        return Ok(Outcome::Clean);
    }
    if args.print_env {
        let lines = linking(&folder).map(|(name, value)| format!("export {name}='{}'\n", value.to_string_lossy()));
        crate::report::emit(&lines.concat());
        return Ok(Outcome::Clean);
    }
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Failure::usage("no program was given: margay exec -- PROGRAM ARGUMENTS"));
    };
    let mut command = Command::new(program);
    command.args(rest).env(ASSEMBLER.1, folder.join(ASSEMBLER.0)).envs(linking(&folder));
    if args.doors {
        command.env("MARGAY_DOORS", "1");
    }
    // Programs that call nvcc at run time get PTX from it.
    let search = env::var_os("PATH").unwrap_or_default();
    if let Some(compiler) = nvcc::behind(Some(&search)) {
        let bin = nvcc::mirror(&compiler, &folder.join("toolkit"), &own()?);
        let bin = bin.map_err(|e| Failure::usage(format!("cannot link to {}: {e}", compiler.display())))?;
        let path = env::join_paths([bin].into_iter().chain(env::split_paths(&search)));
        command.env("PATH", path.unwrap_or(search));
    }
    let chosen = [("MARGAY_ENGINE", &args.engine), ("MARGAY_DEVICE", &args.device), ("MARGAY_CHECK", &args.check)];
    for (variable, value) in chosen {
        value.as_ref().map(|value| command.env(variable, value));
    }
    if args.stats {
        command.env("MARGAY_STATS", "1");
    }
    if !args.keep_exit_code {
        command.env("MARGAY_FAULT_EXIT", args.fault_exit_code.to_string());
    }
    let error = command.exec(); // comes back only if it failed
    Err(Failure::usage(format!("cannot run {}: {error}", program.to_string_lossy())))
}

/// What the dynamic linker is told: where the libraries are, which come first, and who watches. Programs that the program starts
/// inherit it.
fn linking(folder: &Path) -> [(&'static str, OsString); 3] {
    let preloaded: Vec<_> = PRELOADED.iter().map(|name| folder.join(name)).collect();
    [
        ("LD_LIBRARY_PATH", before("LD_LIBRARY_PATH", &[folder.to_path_buf()])),
        ("LD_PRELOAD", before("LD_PRELOAD", &preloaded)),
        ("LD_AUDIT", before("LD_AUDIT", &[folder.join(REDIRECT)])),
    ]
}

/// A list of paths with others in front, each of which it has once.
fn before(variable: &str, first: &[PathBuf]) -> OsString {
    let old = env::var_os(variable).unwrap_or_default();
    let rest = old.as_bytes().split(|b| b": ".contains(b)).map(|p| PathBuf::from(OsStr::from_bytes(p)));
    let rest = rest.filter(|p| !p.as_os_str().is_empty() && !first.contains(p));
    let all: Vec<PathBuf> = first.iter().cloned().chain(rest).collect();
    env::join_paths(&all).unwrap_or(old)
}

/// This program's own file.
fn own() -> Result<PathBuf> {
    let own = env::current_exe().and_then(|p| p.canonicalize());
    own.map_err(|e| Failure::usage(format!("cannot find this program's own file: {e}")))
}

/// A folder in which the library and the assembler have the names that programs ask for.
fn folder() -> Result<PathBuf> {
    let own = own()?;
    let mut links = vec![(ASSEMBLER.0, own.clone())];
    for (built, names) in LIBRARIES {
        let file = library(&own, built)?;
        links.extend(names.iter().map(|name| (*name, file.clone())));
    }
    let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    let base = base.unwrap_or_else(env::temp_dir).join("margay");
    // Two builds on one machine do not take each other's place.
    let mut place = DefaultHasher::new();
    own.hash(&mut place);
    let folder = base.join(format!("lib-{}-{:016x}", env!("CARGO_PKG_VERSION"), place.finish()));
    let failed = |e: std::io::Error| Failure::usage(format!("cannot make {}: {e}", folder.display()));
    std::fs::create_dir_all(&folder).map_err(failed)?;
    for (name, target) in &links {
        nvcc::link(target, &folder.join(name)).map_err(failed)?;
    }
    Ok(folder)
}

fn library(own: &Path, file: &str) -> Result<PathBuf> {
    let beside = own.parent().unwrap_or(Path::new("."));
    let places = [beside.join(file), beside.join("../lib").join(file)];
    let found = places.iter().find(|p| p.is_file());
    found.and_then(|p| p.canonicalize().ok()).ok_or_else(|| {
        let missing = own.display();
        Failure::usage(format!("there is no {file} beside {missing}; `make release` makes it"))
    })
}
