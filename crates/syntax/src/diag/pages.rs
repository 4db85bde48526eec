//! The pages of `docs/codes/`, for `margay explain`: what a code means, why, the manual's section, a wrong and a right example.

macro_rules! pages {
    ($($number:literal)*) => {
        /// Numbers and pages, in order of number (letters aside).
        const PAGES: &[(&str, &str)] = &[$(($number, include_str!(concat!("../../../../docs/codes/", $number, ".md"))),)*];
    };
}

#[rustfmt::skip] // one range of numbers a line
pages! {
    "E0001" "E0002" "E0003" "E0004" "E0005" "E0006" "E0007" "E0008" "E0009" "W0010"
    "E0101"
}

impl super::Code {
    /// The page about the code, in Markdown; empty if nobody has written it.
    pub fn page(self) -> &'static str {
        let number = self.info().number;
        PAGES.iter().find(|(n, _)| *n == number).map_or("", |(_, page)| page)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Code;

    #[test]
    fn every_code_has_a_page_with_its_parts() {
        let incomplete: Vec<&str> = Code::ALL
            .iter()
            .filter(|code| {
                let (info, page) = (code.info(), code.page());
                let title = format!("# {}: {}\n", info.number, info.name);
                !page.starts_with(&title) || !["Manual:", "Wrong", "Right"].iter().all(|part| page.contains(part))
            })
            .map(|code| code.info().number)
            .collect();
        assert!(
            incomplete.is_empty(),
            "no page in docs/codes and pages.rs, or no title, `Manual:`, `Wrong`, `Right`: {incomplete:?}"
        );
    }

    #[test]
    fn codes_are_in_order_and_unique() {
        let numbers: Vec<&str> = Code::ALL.iter().map(|c| &c.info().number[1..]).collect();
        assert!(numbers.windows(2).all(|w| w[0] < w[1]), "{numbers:?}");
        let mut names: Vec<&str> = Code::ALL.iter().map(|c| c.info().name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|w| w[0] != w[1]), "a name stands twice");
    }
}
