//! Running ptxas and cuobjdump.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// The tools, and a folder for their files.
#[derive(Clone, Debug)]
pub struct Tools {
    folder: Option<PathBuf>,
    work: PathBuf,
}

/// What ptxas said.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// It accepted the module.
    pub accepted: bool,
    /// Its messages.
    pub messages: String,
}

impl Tools {
    /// The tools in the folder that `MARGAY_PTXAS` names, else those on the path. `work` is made if it is missing.
    pub fn find(work: &Path) -> io::Result<Tools> {
        let folder = std::env::var_os("MARGAY_PTXAS").map(PathBuf::from);
        // A path to ptxas itself will do as well as its folder.
        let folder = folder.map(|f| if f.is_file() { f.parent().map(Path::to_path_buf).unwrap_or(f) } else { f });
        std::fs::create_dir_all(work)?;
        let tools = Tools { folder, work: work.to_path_buf() };
        tools.command("ptxas").arg("--version").output()?;
        Ok(tools)
    }

    fn command(&self, name: &str) -> Command {
        match &self.folder {
            Some(folder) => Command::new(folder.join(name)),
            None => Command::new(name),
        }
    }

    /// Compiles a module; the object is `NAME.cubin` in the work folder.
    pub fn ptxas(&self, name: &str, text: &str, arguments: &[&str]) -> io::Result<Verdict> {
        let (source, object) = (self.work.join(format!("{name}.ptx")), self.object(name));
        std::fs::write(&source, text)?;
        let Output { status, stdout, stderr } =
            self.command("ptxas").args(arguments).arg(&source).arg("-o").arg(&object).output()?;
        let messages = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        Ok(Verdict { accepted: status.success(), messages })
    }

    /// The machine code of `NAME.cubin` as text.
    pub fn sass(&self, name: &str) -> io::Result<String> {
        let out = self.command("cuobjdump").arg("-sass").arg(self.object(name)).output()?;
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }

    fn object(&self, name: &str) -> PathBuf {
        self.work.join(format!("{name}.cubin"))
    }
}
