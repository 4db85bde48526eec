//! Things of one kind, by place.

/// What lines keep, by place.
pub(super) struct Pool<T> {
    pub all: Vec<T>,
    /// As many were used since the pool was cleared; the others are free.
    used: usize,
    /// Places among these that are free again.
    pub free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool { all: Vec::new(), used: 0, free: Vec::new() }
    }
}

impl<T: Default> Pool<T> {
    /// A free place, where there may be something from before.
    #[inline]
    pub fn place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            if self.used == self.all.len() {
                self.all.push(T::default());
            }
            self.used += 1;
            self.used as u32 - 1
        })
    }

    /// Makes all places free.
    pub fn clear(&mut self) {
        self.used = 0;
        self.free.clear();
    }
}
