//! The lines by which reports name accesses.

use crate::{Sanitizer, site::Site};

impl Sanitizer {
    /// The lines of two accesses: those of the kernel itself, unless both are in one call of a function of the same file; then those in it.
    pub(crate) fn lines(&self, first: &Site, second: &Site) -> (String, String) {
        let (a, b) = (self.chain(first), self.chain(second));
        let differing = a.iter().zip(&b).find(|(x, y)| x != y).filter(|pair| {
            let file = a.first().map(|(file, _)| file);
            file == Some(&pair.0.0) && file == Some(&pair.1.0)
        });
        let name = |(file, line): &(String, u32)| format!("{}:{line}", file.rsplit('/').next().unwrap_or(""));
        match differing {
            Some((x, y)) => (name(x), name(y)),
            None => (self.line(first.in_kernel()), self.line(second.in_kernel())),
        }
    }

    /// File and line of an access and of the calls that lead to it, inlined or not, outermost first.
    fn chain(&self, site: &Site) -> Vec<(String, u32)> {
        let places = site.callers.iter().rev().map(|frame| (frame.func, frame.at)).chain([site.at]);
        let lines = places.flat_map(|(func, at)| {
            let origins = self.image.ir.func(func).source.tree.origins(at.span.start);
            origins.into_iter().rev().map(|o| (o.file.to_owned(), o.line)).collect::<Vec<_>>()
        });
        lines.collect()
    }
}
