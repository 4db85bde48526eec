//! Replaces NVIDIA's compiler driver: where a program asks it for machine code, the real one is asked for PTX. PyCUDA and others call it
//! at run time and pass its output to the driver.

use std::{
    env,
    ffi::OsString,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// The name under which programs call it.
pub const NAME: &str = "nvcc";
const MACHINE_CODE: [&str; 2] = ["-cubin", "--cubin"];
const OUTPUT: [&str; 2] = ["-o", "--output-file"];
/// Endings of the files that nvcc compiles for a GPU.
const SOURCES: [&str; 2] = ["cu", "ptx"];

/// Variables that name the folder of NVIDIA's toolkit, for programs that do not look into PATH.
const TOOLKITS: [&str; 2] = ["CUDA_PATH", "CUDA_HOME"];

/// The folders in which programs look for the compiler: those of PATH, and that of the toolkit.
pub fn places() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let toolkits = TOOLKITS.into_iter().filter_map(env::var_os).map(|root| Path::new(&root).join("bin"));
    env::split_paths(&path).chain(toolkits).collect()
}

/// Names the compiler that `programs` found, for the command that stands in for it.
pub const REAL: &str = "MARGAY_NVCC";

/// The folders of NVIDIA's compilers among the Python packages of the environments whose commands are in these folders. CuPy looks there;
/// they are not in PATH.
pub fn packaged(commands: &[PathBuf]) -> Vec<PathBuf> {
    let entries = |folder: PathBuf| {
        let mut all: Vec<PathBuf> =
            std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
        all.sort();
        all
    };
    let is_python =
        |place: &PathBuf| place.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"));
    let libraries = commands.iter().filter_map(|folder| folder.parent()).flat_map(|root| entries(root.join("lib")));
    let packages = libraries.filter(is_python).flat_map(|python| entries(python.join("site-packages/nvidia")));
    packages.map(|package| package.join("bin")).filter(|bin| bin.join(NAME).is_file()).collect()
}

/// The first compiler in these folders that is not `own`, margay's command.
pub fn behind(places: &[PathBuf], own: &Path) -> Option<PathBuf> {
    let own = own.canonicalize().ok();
    let mut compilers = places.iter().map(|folder| folder.join(NAME));
    compilers.find(|p| p.is_file() && p.canonicalize().ok() != own)
}

/// Makes `root/bin` a copy of the compiler's folder by links, except for `nvcc`, which is margay's: programs find the toolkit's headers
/// and libraries relative to the compiler.
pub fn mirror(compiler: &Path, root: &Path, own: &Path) -> std::io::Result<PathBuf> {
    let bin = root.join("bin");
    std::fs::create_dir_all(&bin)?;
    link(own, &bin.join(NAME))?;
    let folder = compiler.parent().unwrap_or(Path::new("."));
    let toolkit = compiler.canonicalize().ok().and_then(|c| Some(c.parent()?.parent()?.to_path_buf()));
    let others = toolkit.iter().map(|toolkit| (toolkit.as_path(), root)).chain([(folder, bin.as_path())]);
    for (from, to) in others {
        for entry in std::fs::read_dir(from)?.flatten() {
            let place = to.join(entry.file_name());
            if entry.file_name() != "bin" && place != bin.join(NAME) {
                link(&entry.path(), &place)?;
            }
        }
    }
    Ok(bin)
}

/// Creates or corrects a symbolic link, which is renamed into place so that other processes never find it missing.
pub fn link(target: &Path, link: &Path) -> std::io::Result<()> {
    if std::fs::read_link(link).is_ok_and(|to| to == target) {
        return Ok(());
    }
    let name = link.file_name().unwrap_or_default().to_string_lossy();
    let fresh = link.with_file_name(format!(".{name}.{}", std::process::id()));
    let _ = std::fs::remove_file(&fresh);
    symlink(target, &fresh).and_then(|()| std::fs::rename(&fresh, link))
}

/// The arguments that produce PTX in place of machine code, in a file of the same name.
pub fn translated(words: &[OsString]) -> Vec<OsString> {
    if !words.iter().any(|word| MACHINE_CODE.iter().any(|m| word == m)) {
        return words.to_vec();
    }
    let mut new: Vec<OsString> = words.iter().filter(|word| MACHINE_CODE.iter().all(|m| *word != m)).cloned().collect();
    new.push("--ptx".into());
    if !new.iter().any(|word| OUTPUT.iter().any(|o| word == o)) {
        let source = new.iter().map(Path::new).find(|p| p.extension().is_some_and(|e| SOURCES.iter().any(|s| e == *s)));
        let output = source.and_then(Path::file_stem).map(|stem| Path::new(stem).with_extension("cubin"));
        new.extend(output.into_iter().flat_map(|output| ["-o".into(), output.into_os_string()]));
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_compiler_is_the_first_that_is_not_margays() {
        let root = env::temp_dir().join(format!("margay-nvcc-{}", std::process::id()));
        let [own, none, first, second] = ["own", "none", "first", "second"].map(|name| root.join(name));
        for folder in [&own, &none, &first, &second] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let command = root.join("margay");
        for file in [&command, &first.join(NAME), &second.join(NAME)] {
            std::fs::write(file, "").unwrap();
        }
        link(&command, &own.join(NAME)).unwrap();
        let found = behind(&[own.clone(), none, first.clone(), second], &command);
        let nothing = behind(&[own], &command);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!((found, nothing), (Some(first.join(NAME)), None));
    }

    #[test]
    fn compilers_of_python_environments_are_found() {
        let root = env::temp_dir().join(format!("margay-packaged-{}", std::process::id()));
        let bin = root.join("lib/python3.11/site-packages/nvidia/cu13/bin");
        for folder in [&bin, &root.join("lib/python3.11/site-packages/nvidia/cublas/bin"), &root.join("bin")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(bin.join(NAME), "").unwrap();
        let found = packaged(&[root.join("none/bin"), root.join("bin")]);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, [bin]);
    }

    #[test]
    fn machine_code_becomes_ptx_under_its_name() {
        assert_eq!(translated(&words("--cubin -arch sm_80 dir/k.cu")), words("-arch sm_80 dir/k.cu --ptx -o k.cubin"));
        assert_eq!(translated(&words("-cubin k.cu -o x")), words("k.cu -o x --ptx"));
        assert_eq!(translated(&words("--version")), words("--version"));
    }
}
