//! Lines of the files that PTX was compiled from, if these files exist.

use std::{
    collections::{HashMap, hash_map::Entry},
    fs,
    path::Path,
};

/// Files beyond this size, in bytes, are not read: no source is that large.
const LIMIT: u64 = 16 << 20;

/// Texts of files that lines are quoted from.
#[derive(Default)]
pub struct Files(HashMap<String, Option<Vec<String>>>);

impl Files {
    /// A line (counted from 1) of a file, under the name that the compiler of a module recorded, without its line ending; `None` if the
    /// file does not exist or has no such line.
    pub fn line(&mut self, module: &str, file: &str, line: u32) -> Option<String> {
        let index = line.checked_sub(1)? as usize;
        let path = beside(module, file).into_iter().find(|path| self.lines(path).is_some())?;
        self.lines(&path)?.get(index).cloned()
    }

    fn lines(&mut self, path: &str) -> Option<&Vec<String>> {
        match self.0.entry(path.to_owned()) {
            Entry::Occupied(known) => known.into_mut().as_ref(),
            Entry::Vacant(new) => new.insert(read(path)).as_ref(),
        }
    }
}

fn read(path: &str) -> Option<Vec<String>> {
    fs::metadata(path).ok().filter(|about| about.is_file() && about.len() <= LIMIT)?;
    let whole = fs::read(path).ok()?;
    let line = |line: &[u8]| String::from_utf8_lossy(line).trim_end().to_string();
    Some(whole.split(|b| *b == b'\n').map(line).collect())
}

/// Possible paths of a source file: as the compiler named it, or next to the module.
fn beside(module: &str, file: &str) -> [String; 2] {
    let folder = Path::new(module).parent().unwrap_or(Path::new(""));
    let name = Path::new(file).file_name().unwrap_or_default();
    [file.to_owned(), folder.join(name).display().to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_as_named_or_beside_the_module() {
        let folder = std::env::temp_dir().join(format!("margay-lines-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("k.cu"), b"first\r\n  second \xff\n").unwrap();
        let (module, named) = (folder.join("k.ptx").display().to_string(), folder.join("k.cu").display().to_string());
        let mut files = Files::default();
        assert_eq!(files.line("", &named, 1).as_deref(), Some("first"));
        assert_eq!(files.line(&module, "/build/of/another/k.cu", 2).as_deref(), Some("  second \u{fffd}"));
        assert_eq!(files.line(&module, "k.cu", 9), None);
        assert_eq!(files.line(&module, "k.cu", 0), None);
        assert_eq!(files.line(&module, "other.cu", 1), None);
        fs::remove_dir_all(&folder).unwrap();
    }
}
