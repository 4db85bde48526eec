//! Command-line options of the programs that compare verdicts.

use std::path::{Path, PathBuf};

/// Options of `oracle-cases` and `oracle-mutants`.
pub struct Options {
    /// Number of modules to compare.
    pub count: usize,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of differences of each kind to print.
    pub show: usize,
    /// Restricts faults to declarations and directives.
    pub declarations: bool,
    /// The folder in which modules are kept; by default a temporary one.
    pub keep: Option<PathBuf>,
    /// Files and folders named.
    pub files: Vec<PathBuf>,
}

impl Options {
    /// Parses the command line of this process.
    pub fn of_process() -> Result<Options, String> {
        let mut options = Options { count: 1000, seed: 1, show: 3, declarations: false, keep: None, files: Vec::new() };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            let number = |v: String| v.parse::<u64>().map_err(|e| format!("{word}: {e}"));
            match word.as_str() {
                "--count" => options.count = number(value()?)? as usize,
                "--seed" => options.seed = number(value()?)?,
                "--declarations" => options.declarations = true,
                "--show" => options.show = number(value()?)? as usize,
                "--keep" => options.keep = Some(value()?.into()),
                _ if word.starts_with('-') => return Err(format!("unknown argument {word}")),
                _ => options.files.push(word.into()),
            }
        }
        Ok(options)
    }

    /// The folder for modules.
    pub fn folder(&self, program: &str) -> PathBuf {
        self.keep.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("{program}-{}", std::process::id())))
    }

    /// Removes the folder unless it is to be kept.
    pub fn clean(&self, folder: &Path) {
        if self.keep.is_none() {
            let _ = std::fs::remove_dir_all(folder); // a folder of the system's for what is temporary
        }
    }
}
