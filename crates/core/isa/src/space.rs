//! State spaces (manual, section 5.1).

/// A state space as written in a declaration or on an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Space {
    /// Registers.
    Reg,
    /// Special registers.
    Sreg,
    /// Read-only constant banks.
    Const,
    /// Device memory shared by all threads.
    Global,
    /// Memory private to a thread.
    Local,
    /// Parameters: of kernels, of functions, of calls.
    Param,
    /// Memory of a CTA.
    Shared,
    /// Texture references (deprecated as a space).
    Tex,
    /// No space named: the address carries it.
    Generic,
}

impl Space {
    /// The name without its dot; `generic` for [`Space::Generic`], which is never written.
    pub const fn name(self) -> &'static str {
        match self {
            Space::Reg => "reg",
            Space::Sreg => "sreg",
            Space::Const => "const",
            Space::Global => "global",
            Space::Local => "local",
            Space::Param => "param",
            Space::Shared => "shared",
            Space::Tex => "tex",
            Space::Generic => "generic",
        }
    }

    /// The space of that name (no dot, no sub-qualifier).
    pub fn from_name(name: &str) -> Option<Space> {
        Some(match name {
            "reg" => Space::Reg,
            "sreg" => Space::Sreg,
            "const" => Space::Const,
            "global" => Space::Global,
            "local" => Space::Local,
            "param" => Space::Param,
            "shared" => Space::Shared,
            "tex" => Space::Tex,
            _ => return None,
        })
    }
}

impl std::fmt::Display for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, ".{}", self.name())
    }
}
