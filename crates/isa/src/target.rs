//! PTX ISA versions and targets (manual, sections 11.1.1 `.version` and 11.1.2 `.target`).

/// A PTX ISA version: `8.3` is `Version::new(8, 3)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Version(u16);

impl Version {
    /// The first version.
    pub const FIRST: Version = Version::new(1, 0);
    /// The newest version that margay knows.
    pub const LAST: Version = Version::new(9, 5);

    /// `major.minor`; minor versions have one digit.
    pub const fn new(major: u16, minor: u16) -> Version {
        Version(major * 10 + minor)
    }

    /// The number before the dot.
    pub const fn major(self) -> u16 {
        self.0 / 10
    }

    /// The number after the dot.
    pub const fn minor(self) -> u16 {
        self.0 % 10
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major(), self.minor())
    }
}

/// What follows the number of a target: `sm_90a`, `sm_100f`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Suffix {
    /// Plain: runs on this and all later architectures.
    None,
    /// `f`: family-specific features.
    Family,
    /// `a`: architecture-specific features.
    Arch,
}

/// An `sm_NN` target with its suffix.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Target {
    /// The number: 90 for `sm_90a`.
    pub sm: u16,
    /// `a`, `f` or none.
    pub suffix: Suffix,
}

impl Target {
    /// A plain target.
    pub const fn sm(sm: u16) -> Target {
        Target { sm, suffix: Suffix::None }
    }

    /// An architecture-specific target such as `sm_90a`.
    pub const fn arch(sm: u16) -> Target {
        Target { sm, suffix: Suffix::Arch }
    }

    /// Whether a module for this target may use a feature that needs `feature`: a plain one needs its number or more, a
    /// family-specific one the family with that number or more (`sm_103a` has what `sm_100f` has), an architecture-specific
    /// one exactly itself.
    pub const fn provides(self, feature: Target) -> bool {
        match feature.suffix {
            Suffix::None => self.sm >= feature.sm,
            Suffix::Family => {
                !matches!(self.suffix, Suffix::None) && self.sm >= feature.sm && self.sm / 10 == feature.sm / 10
            }
            Suffix::Arch => matches!(self.suffix, Suffix::Arch) && self.sm == feature.sm,
        }
    }

    /// A family-specific target such as `sm_100f`.
    pub const fn family(sm: u16) -> Target {
        Target { sm, suffix: Suffix::Family }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = match self.suffix {
            Suffix::None => "",
            Suffix::Family => "f",
            Suffix::Arch => "a",
        };
        write!(f, "sm_{}{s}", self.sm)
    }
}
