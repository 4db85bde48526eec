//! Runs ptxas and cuobjdump.

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

/// The verdict of ptxas.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Whether it accepted the module.
    pub accepted: bool,
    /// Its messages.
    pub messages: String,
}

impl Tools {
    /// Finds the tools in the folder named by `MARGAY_PTXAS`, else on the path. Creates `work` if necessary.
    pub fn find(work: &Path) -> io::Result<Tools> {
        let folder = std::env::var_os("MARGAY_PTXAS").map(PathBuf::from);
        // Accepts the path of ptxas itself, too.
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

    /// Disassembles `NAME.cubin`.
    pub fn sass(&self, name: &str) -> io::Result<String> {
        let out = self.command("cuobjdump").arg("-sass").arg(self.object(name)).output()?;
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }

    fn object(&self, name: &str) -> PathBuf {
        self.work.join(format!("{name}.cubin"))
    }
}
