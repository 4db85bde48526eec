//! Byte ranges of the text, and their lines.

/// A half-open byte range of the text. Files are limited to 4 GiB.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end`.
    pub const fn new(start: u32, end: u32) -> Span {
        Span { start, end }
    }

    /// The smallest range that holds both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// An empty range at the end of this one.
    pub const fn after(self) -> Span {
        Span { start: self.end, end: self.end }
    }

    /// As a range of `usize`, for slicing the text.
    pub const fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Length in bytes.
    pub const fn len(self) -> u32 {
        self.end - self.start
    }

    /// True for a range without bytes.
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// Where lines begin, for turning offsets into 1-based lines and columns (columns count characters).
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// Indexes a text; linear time.
    pub fn new(text: &str) -> LineIndex {
        let mut starts = vec![0];
        starts.extend(memchr::memchr_iter(b'\n', text.as_bytes()).map(|i| i as u32 + 1));
        LineIndex { starts }
    }

    /// 1-based line of an offset.
    pub fn line(&self, offset: u32) -> u32 {
        self.starts.partition_point(|s| *s <= offset) as u32
    }

    /// Offset of the first byte of a 1-based line, if the text has that many.
    pub fn start(&self, line: u32) -> Option<u32> {
        self.starts.get((line as usize).checked_sub(1)?).copied()
    }

    /// 1-based line and column (in characters) of an offset.
    pub fn line_column(&self, text: &str, offset: u32) -> (u32, u32) {
        let line = self.line(offset);
        let start = self.starts[line as usize - 1] as usize;
        let end = (offset as usize).min(text.len());
        let column = text.get(start..end).map_or(end - start, |s| s.chars().count());
        (line, column as u32 + 1)
    }
}
