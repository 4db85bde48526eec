//! `margay exec -- PROGRAM ARGUMENTS`: runs a CUDA program with margay's `libcuda.so.1` in the place of NVIDIA's.

use super::Result;
use crate::{
    args::ExecArgs,
    exit::{Failure, Outcome},
};
use std::{
    env,
    ffi::OsString,
    os::unix::{fs::symlink, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

/// What the library is called where it is built or installed, beside the command or in `../lib`.
const BUILT: &str = "libcuda.so";
/// The names under which programs ask for it.
const ASKED: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// Runs the command: this process becomes the program, so it ends as the program ends.
pub fn run(args: &ExecArgs) -> Result {
    let folder = folder()?;
    if args.print_path {
        crate::report::emit(&format!("{}\n", folder.display()));
        return Ok(Outcome::Clean);
    }
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Failure::usage("no program was given: margay exec -- PROGRAM ARGUMENTS"));
    };
    let mut path = OsString::from(&folder);
    if let Some(old) = env::var_os("LD_LIBRARY_PATH").filter(|old| !old.is_empty()) {
        path.push(":");
        path.push(old);
    }
    let mut command = Command::new(program);
    command.args(rest).env("LD_LIBRARY_PATH", path);
    if let Some(engine) = &args.engine {
        command.env("MARGAY_ENGINE", engine);
    }
    let error = command.exec(); // comes back only if it failed
    Err(Failure::usage(format!("cannot run {}: {error}", program.to_string_lossy())))
}

/// A folder in which the library has the names that programs ask for, and nothing else is.
fn folder() -> Result<PathBuf> {
    let library = library()?;
    let version = env!("CARGO_PKG_VERSION");
    let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    let folder = base.unwrap_or_else(env::temp_dir).join("margay").join(format!("lib-{version}"));
    let failed = |e: std::io::Error| Failure::usage(format!("cannot make {}: {e}", folder.display()));
    std::fs::create_dir_all(&folder).map_err(failed)?;
    for name in ASKED {
        let link = folder.join(name);
        if std::fs::read_link(&link).is_ok_and(|to| to == library) {
            continue;
        }
        // Renamed into place, so that another process never finds it missing.
        let fresh = folder.join(format!(".{name}.{}", std::process::id()));
        let _ = std::fs::remove_file(&fresh);
        symlink(&library, &fresh).and_then(|()| std::fs::rename(&fresh, &link)).map_err(failed)?;
    }
    Ok(folder)
}

fn library() -> Result<PathBuf> {
    let own = env::current_exe().and_then(|p| p.canonicalize());
    let own = own.map_err(|e| Failure::usage(format!("cannot find this program's own file: {e}")))?;
    let beside = own.parent().unwrap_or(Path::new("."));
    let places = [beside.join(BUILT), beside.join("../lib").join(BUILT)];
    let found = places.iter().find(|p| p.is_file());
    found.and_then(|p| p.canonicalize().ok()).ok_or_else(|| {
        Failure::usage(format!("there is no {BUILT} beside {}; `cargo build -p margay-cuda` makes it", own.display()))
    })
}
