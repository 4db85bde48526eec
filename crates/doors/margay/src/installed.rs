//! Finds the files installed with this program: libraries next to the command, in `../lib`, or in the Python package whose wheel
//! installed the command.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// The name of the library in wheels that contains the part of LLVM that the SIMD engine uses.
pub const LLVM: &str = "libmargay_llvm.so";

/// The file that this code was loaded from: the command, or a library in any process.
pub fn own_file() -> Option<&'static Path> {
    static OWN: OnceLock<Option<PathBuf>> = OnceLock::new();
    OWN.get_or_init(|| {
        let mapped = fs::read_to_string("/proc/self/maps").ok()?;
        file_at(&mapped, own_file as fn() -> Option<&'static Path> as usize)?.canonicalize().ok()
    })
    .as_deref()
}

/// The file that is mapped at an address, from the lines of `/proc/self/maps` (proc_pid_maps(5)): `from-to flags offset device inode
/// path`.
fn file_at(maps: &str, address: usize) -> Option<PathBuf> {
    let at = |text: &str| usize::from_str_radix(text, 16).ok();
    let holds = |line: &&str| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        range.and_then(|(from, to)| Some((at(from)?..at(to)?).contains(&address))) == Some(true)
    };
    let line = maps.lines().find(holds)?;
    line.find('/').map(|start| PathBuf::from(&line[start..]))
}

/// A file of that name that was installed with `own`, which is the command or one of its libraries.
pub fn beside(own: &Path, name: &str) -> Option<PathBuf> {
    let folder = own.parent()?;
    let near = [folder.to_path_buf(), folder.join("lib"), folder.join("../lib")];
    let found = near.into_iter().chain(packages(folder)).map(|place| place.join(name)).find(|file| file.is_file());
    found.and_then(|file| file.canonicalize().ok())
}

/// Folders of libraries of a Python package whose command lies in a folder: `bin/margay` belongs to
/// `lib/python3.11/site-packages/margay/lib`, and after `pip install --target` to `margay/lib`.
fn packages(bin: &Path) -> Vec<PathBuf> {
    let prefix = bin.parent().unwrap_or(bin);
    let mut found = vec![prefix.join("margay/lib")];
    for lib in ["lib", "lib64"] {
        let entries = fs::read_dir(prefix.join(lib)).into_iter().flatten().flatten();
        let pythons = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
        found.extend(pythons.flat_map(|python| {
            ["site-packages", "dist-packages"].map(|packages| python.path().join(packages).join("margay/lib"))
        }));
    }
    found
}

/// LLVM's library, if one was installed with this code.
pub fn llvm() -> Option<PathBuf> {
    beside(own_file()?, LLVM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_file_is_the_test_program() {
        assert_eq!(own_file().unwrap(), std::env::current_exe().unwrap().canonicalize().unwrap());
    }

    #[test]
    fn an_address_belongs_to_one_file() {
        let maps = "1000-2000 r-xp 00000000 08:01 1 /lib/a b.so\n2000-3000 rw-p 00000000 00:00 0 \n3000-4000 r-xp 0 08:01 2 /x";
        assert_eq!(file_at(maps, 0x1fff).unwrap(), Path::new("/lib/a b.so"));
        assert_eq!(file_at(maps, 0x2000), None);
        assert_eq!(file_at(maps, 0x3000).unwrap(), Path::new("/x"));
        assert_eq!(file_at(maps, 0x4000), None);
    }

    #[test]
    fn a_command_finds_the_libraries_of_its_package() {
        let root = std::env::temp_dir().join(format!("margay-installed-{}", std::process::id()));
        for (command, package) in [
            ("venv/bin/margay", "venv/lib/python3.13/site-packages/margay/lib"),
            ("usr/local/bin/margay", "usr/local/lib/python3.12/dist-packages/margay/lib"),
            ("target/bin/margay", "target/margay/lib"),
            ("plain/bin/margay", "plain/lib"),
            ("wheel/margay/_margay.abi3.so", "wheel/margay/lib"),
        ] {
            let (command, package) = (root.join(command), root.join(package));
            fs::create_dir_all(command.parent().unwrap()).unwrap();
            fs::create_dir_all(&package).unwrap();
            fs::write(package.join(LLVM), "").unwrap();
            assert_eq!(beside(&command, LLVM), package.join(LLVM).canonicalize().ok());
            assert_eq!(beside(&command, "libother.so"), None);
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
