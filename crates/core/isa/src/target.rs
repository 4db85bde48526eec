//! PTX ISA versions and targets (manual, sections 11.1.1 `.version` and 11.1.2 `.target`).

/// A PTX ISA version: `8.3` is `Version::new(8, 3)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Version(u16);

impl Version {
    /// The first version.
    pub const FIRST: Version = Version::new(1, 0);
    /// The newest version that margay knows.
    pub const LAST: Version = Version::new(9, 5);

    /// Every version there is.
    #[rustfmt::skip]
    pub const ALL: &'static [Version] = &[
        Version(10), Version(11), Version(12), Version(13), Version(14), Version(15),
        Version(20), Version(21), Version(22), Version(23),
        Version(30), Version(31), Version(32),
        Version(40), Version(41), Version(42), Version(43),
        Version(50), Version(51),
        Version(60), Version(61), Version(62), Version(63), Version(64), Version(65),
        Version(70), Version(71), Version(72), Version(73), Version(74), Version(75), Version(76), Version(77), Version(78),
        Version(80), Version(81), Version(82), Version(83), Version(84), Version(85), Version(86), Version(87), Version(88),
        Version(90), Version(91), Version(92), Version(93), Version(94), Version(95),
    ];

    /// `major.minor`; minor versions have one digit.
    pub const fn new(major: u16, minor: u16) -> Version {
        Version(major * 10 + minor)
    }

    /// The published version of that name (`8.3`), if there is one. ptxas reads two integers and counts the second one as tenths:
    /// `8.03` is 8.3, `7.10` is 8.0, and there is no `8.30`.
    pub fn parse(text: &str) -> Option<Version> {
        let (major, minor) = text.split_once('.')?;
        let number = |s: &str| s.parse::<u16>().ok().filter(|n| *n < 1000 && !s.starts_with('+'));
        let version = Version::new(number(major)?, number(minor)?);
        Version::ALL.contains(&version).then_some(version)
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

/// The suffix of a target's number: `sm_90a`, `sm_100f`.
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
    /// Every target that ptxas 13.5 takes, with the first PTX ISA version that has it. `sm_21` and `sm_82` are in no
    /// manual; `sm_101` became `sm_110` but is still taken.
    #[rustfmt::skip]
    pub const ALL: &'static [(Target, Version)] = {
        use Target as T;
        const fn v(major: u16, minor: u16) -> Version {
            Version::new(major, minor)
        }
        &[
            (T::sm(10), v(1, 0)), (T::sm(11), v(1, 0)), (T::sm(12), v(1, 2)), (T::sm(13), v(1, 2)),
            (T::sm(20), v(2, 0)), (T::sm(21), v(2, 0)),
            (T::sm(30), v(3, 0)), (T::sm(32), v(4, 0)), (T::sm(35), v(3, 1)), (T::sm(37), v(4, 1)),
            (T::sm(50), v(4, 0)), (T::sm(52), v(4, 1)), (T::sm(53), v(4, 2)),
            (T::sm(60), v(5, 0)), (T::sm(61), v(5, 0)), (T::sm(62), v(5, 0)),
            (T::sm(70), v(5, 1)), (T::sm(72), v(6, 1)), (T::sm(75), v(6, 3)),
            (T::sm(80), v(7, 0)), (T::sm(82), v(6, 2)), (T::sm(86), v(7, 1)), (T::sm(87), v(7, 4)), (T::sm(88), v(9, 0)), (T::sm(89), v(7, 8)),
            (T::sm(90), v(7, 8)), (T::arch(90), v(8, 0)),
            (T::sm(100), v(8, 6)), (T::arch(100), v(8, 6)), (T::family(100), v(8, 8)),
            (T::sm(101), v(8, 6)), (T::arch(101), v(8, 6)), (T::family(101), v(8, 8)),
            (T::sm(103), v(8, 8)), (T::arch(103), v(8, 8)), (T::family(103), v(8, 8)),
            (T::sm(107), v(9, 4)), (T::arch(107), v(9, 4)), (T::family(107), v(9, 4)),
            (T::sm(110), v(9, 0)), (T::arch(110), v(9, 0)), (T::family(110), v(9, 0)),
            (T::sm(120), v(8, 7)), (T::arch(120), v(8, 7)), (T::family(120), v(8, 8)),
            (T::sm(121), v(8, 8)), (T::arch(121), v(8, 8)), (T::family(121), v(8, 8)),
        ]
    };

    /// Reads `sm_90a` or its synonym `compute_90a`; `None` for what ptxas does not know.
    pub fn parse(text: &str) -> Option<Target> {
        let rest = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_"))?;
        let (digits, suffix) = match rest.as_bytes().last()? {
            b'a' => (&rest[..rest.len() - 1], Suffix::Arch),
            b'f' => (&rest[..rest.len() - 1], Suffix::Family),
            _ => (rest, Suffix::None),
        };
        let target = Target { sm: digits.parse().ok()?, suffix };
        (!digits.starts_with(['0', '+'])).then_some(target).filter(|t| t.since().is_some())
    }

    /// The first PTX ISA version that has this target; `None` for an unknown one.
    pub fn since(self) -> Option<Version> {
        Target::ALL.iter().find(|(t, _)| *t == self).map(|(_, v)| *v)
    }

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
        let (have, want) = (self.generation(), feature.generation());
        match feature.suffix {
            Suffix::None => self.sm >= feature.sm,
            Suffix::Family => !matches!(self.suffix, Suffix::None) && have >= want && have / 10 == want / 10,
            Suffix::Arch => matches!(self.suffix, Suffix::Arch) && have == want,
        }
    }

    /// The number within its family; `sm_101` is the old name of `sm_110`.
    const fn generation(self) -> u16 {
        if self.sm == 101 { 110 } else { self.sm }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Each as ptxas 13.5 has it.
    #[test]
    fn names_of_versions() {
        for (text, version) in [("8.3", 83), ("8.03", 83), ("08.3", 83), ("9.000", 90), ("7.10", 80), ("1.40", 50)] {
            assert_eq!(Version::parse(text), Some(Version(version)), "{text}");
        }
        for text in ["8.30", "7.80", "9.6", "9", "9.", ".5", "9.0.1", "-9.0", "9.+1", "1.6", "9.0e0"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
