//! The pages of `docs/codes/`, for `margay explain`: the meaning of a code, its reason, the manual section, a wrong and a right example.

macro_rules! pages {
    ($($number:literal)*) => {
        /// Numbers and pages, in order of number (letters aside).
        const PAGES: &[(&str, &str)] = &[$(($number, include_str!(concat!("../../../../../docs/codes/", $number, ".md"))),)*];
    };
}

#[rustfmt::skip] // one range of numbers a line
pages! {
    "E0001" "E0002" "E0003" "E0004" "E0005" "E0006" "E0007" "E0008" "E0009" "W0010"
    "E0101" "E0104" "E0105" "E0106" "E0108" "E0110" "E0111" "E0112" "E0120" "E0121" "E0122" "E0123" "E0124" "E0125" "E0126" "E0127" "E0128" "E0129" "E0130" "E0131" "E0132" "E0133"
    "E0201" "E0202" "E0203" "E0204" "E0205" "E0206" "E0207"
    "E0301" "E0302" "E0303" "E0304" "E0305" "E0306" "E0307" "E0308" "E0309" "E0310" "E0311" "E0312" "E0313" "E0314" "E0315" "E0316" "E0317" "E0318" "E0319"
    "E0401" "E0402" "E0403" "E0404" "E0405" "E0406" "E0407"
    "E0501" "E0502" "E0503" "E0504" "E0505" "E0506" "E0507" "E0508" "E0509" "E0510" "E0511" "E0512" "E0513" "E0514" "E0515" "E0520" "E0521" "E0522" "E0523" "E0524" "E0525" "E0526" "E0527" "E0528" "E0529" "E0540" "E0541" "E0542" "E0543" "E0544" "E0545" "E0550" "E0551" "E0552" "E0553"
    "E0601" "E0602" "E0603" "E0604" "E0605"
    "E0701" "E0702" "E0703" "E0704"
    "E0801"
    "W0901" "W0902" "W0903" "W0904" "W0905" "W0906" "W0907" "W0908" "W0909"
}

impl super::Code {
    /// The Markdown page of the code; empty if it is not written yet.
    pub fn page(self) -> &'static str {
        let number = self.info().number;
        PAGES.iter().find(|(n, _)| *n == number).map_or("", |(_, page)| page)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Code;

    /// Codes whose page is not written yet. This list may only shrink.
    #[rustfmt::skip]
    const UNWRITTEN: &[&str] = &[];

    #[test]
    fn every_code_has_a_page_with_its_parts() {
        let complete = |code: &Code| {
            let (info, page) = (code.info(), code.page());
            let title = format!("# {}: {}\n", info.number, info.name);
            page.starts_with(&title) && ["Manual:", "Wrong", "Right"].iter().all(|part| page.contains(part))
        };
        let incomplete: Vec<&str> = Code::ALL.iter().filter(|c| !complete(c)).map(|c| c.info().number).collect();
        let new: Vec<&&str> = incomplete.iter().filter(|n| !UNWRITTEN.contains(n)).collect();
        assert!(
            new.is_empty(),
            "no page in docs/codes and pages.rs, or no title, `Manual:`, `Wrong`, `Right`: {new:?}"
        );
        let written: Vec<&&str> = UNWRITTEN.iter().filter(|n| !incomplete.contains(n)).collect();
        assert!(written.is_empty(), "take out of UNWRITTEN what is written: {written:?}");
    }

    #[test]
    fn codes_are_in_order_and_unique() {
        let numbers: Vec<&str> = Code::ALL.iter().map(|c| &c.info().number[1..]).collect();
        assert!(numbers.windows(2).all(|w| w[0] < w[1]), "{numbers:?}");
        let mut names: Vec<&str> = Code::ALL.iter().map(|c| c.info().name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|w| w[0] != w[1]), "duplicate name");
    }
}
