//! The settings of `margay exec --check`, which the program gets in environment variables.

use super::{Format, Suppressions, suppress::fits};
use margay_sanitizer::Checks;
use std::path::PathBuf;

/// The checks, the launches that they cover, and the format of findings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The checks.
    pub what: Checks,
    /// Patterns of the kernels to check; all kernels if there are none. A pattern after `!` excludes kernels.
    pub kernels: Vec<String>,
    /// The number of launches of these kernels to skip.
    pub skip: u64,
    /// The number of launches to check after that.
    pub count: u64,
    /// The output format.
    pub format: Format,
    /// The output file; `None` for standard error.
    pub output: Option<PathBuf>,
    /// The suppressed findings.
    pub suppress: Option<PathBuf>,
    /// The first finding ends the launches of its context.
    pub stop: bool,
    /// Races are checked in one CTA of this many.
    pub sample: u32,
    /// The seed of the interleaving; 0 for the natural order.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            what: Checks::NONE,
            kernels: Vec::new(),
            skip: 0,
            count: u64::MAX,
            format: Format::Human,
            output: None,
            suppress: None,
            stop: false,
            sample: 1,
            seed: 0,
        }
    }
}

/// Parses `SKIP:COUNT`: the number of launches to skip, and to check after that.
pub fn launches(text: &str) -> Result<(u64, u64), String> {
    let (skip, count) = text.split_once(':').unwrap_or((text, ""));
    let number = |text: &str, otherwise| match text.trim() {
        "" => Ok(otherwise),
        text => text.parse().map_err(|_| format!("`{text}` is not of the form SKIP:COUNT")),
    };
    Ok((number(skip, 0)?, number(count, u64::MAX)?))
}

impl Settings {
    /// Reads `MARGAY_CHECK` and the variables that belong to it; `None` if nothing is to be checked.
    pub fn from_environment(get: impl Fn(&str) -> Option<String>) -> Result<Option<Settings>, String> {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let Some(words) = get("MARGAY_CHECK") else { return Ok(None) };
        let named = |name: &'static str| move |e| format!("{name}: {e}");
        let mut settings =
            Settings { what: Checks::parse(&words).map_err(named("MARGAY_CHECK"))?, ..Settings::default() };
        if let Some(list) = get("MARGAY_CHECK_KERNELS") {
            settings.kernels = list.split(',').map(|k| k.trim().to_owned()).filter(|k| !k.is_empty()).collect();
        }
        if let Some(text) = get("MARGAY_CHECK_LAUNCHES") {
            (settings.skip, settings.count) = launches(&text).map_err(named("MARGAY_CHECK_LAUNCHES"))?;
        }
        if let Some(word) = get("MARGAY_CHECK_FORMAT") {
            settings.format = Format::parse(&word).map_err(named("MARGAY_CHECK_FORMAT"))?;
        }
        if let Some(text) = get("MARGAY_CHECK_SAMPLE") {
            let one_in = text.parse().ok().filter(|n| *n > 0);
            settings.sample = one_in.ok_or_else(|| format!("MARGAY_CHECK_SAMPLE: `{text}` is not a number of CTAs"))?;
        }
        if let Some(text) = get("MARGAY_CHECK_SEED") {
            settings.seed = text.parse().map_err(|_| format!("MARGAY_CHECK_SEED: `{text}` is not a number"))?;
        }
        settings.output = get("MARGAY_CHECK_OUTPUT").map(PathBuf::from);
        settings.suppress = get("MARGAY_CHECK_SUPPRESS").map(PathBuf::from);
        settings.stop = get("MARGAY_CHECK_STOP").is_some_and(|v| v != "0");
        Ok(Some(settings))
    }

    /// Whether launches of a kernel are checked, by its mangled name.
    pub fn watches(&self, kernel: &str) -> bool {
        let demangled = crate::render::demangled(kernel);
        let plain = demangled.split(['(', '<']).next().unwrap_or("").rsplit([' ', ':']).next().unwrap_or("");
        let names = |p: &str| fits(p, kernel) || fits(p, &demangled) || fits(p, plain);
        let (without, with): (Vec<&str>, Vec<&str>) =
            self.kernels.iter().map(|p| &**p).partition(|p| p.starts_with('!'));
        (with.is_empty() || with.into_iter().any(names)) && !without.into_iter().any(|p| names(&p[1..]))
    }

    /// Reads the file of suppressions.
    pub fn suppressions(&self) -> Result<Suppressions, String> {
        self.suppress.as_deref().map_or(Ok(Suppressions::default()), Suppressions::read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<Option<Settings>, String> {
        Settings::from_environment(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn settings_come_from_the_environment() {
        assert!(of(&[]).unwrap().is_none());
        let s =
            of(&[("MARGAY_CHECK", "races,leaks"), ("MARGAY_CHECK_LAUNCHES", "2:5"), ("MARGAY_CHECK_FORMAT", "sarif")]);
        let s = s.unwrap().unwrap();
        assert!(s.what.races && s.what.leaks && !s.what.init && s.format == Format::Sarif);
        assert_eq!((s.skip, s.count), (2, 5));
        for wrong in [("MARGAY_CHECK", "everything"), ("MARGAY_CHECK_FORMAT", "yaml"), ("MARGAY_CHECK_LAUNCHES", "x")] {
            assert!(
                of(&[("MARGAY_CHECK", "all"), wrong][usize::from(wrong.0 == "MARGAY_CHECK")..]).is_err(),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn kernels_match_by_mangled_and_demangled_name() {
        let chosen = |pattern: &str| Settings { kernels: vec![pattern.into()], ..Settings::default() };
        for pattern in ["_Z3sumPii", "sum", "sum(int*, int)", "*sum*"] {
            assert!(chosen(pattern).watches("_Z3sumPii"), "{pattern}");
        }
        assert!(!chosen("!sum").watches("_Z3sumPii") && chosen("!su").watches("_Z3sumPii"));
        assert!(!chosen("su").watches("_Z3sumPii") && Settings::default().watches("k"));
    }
}
