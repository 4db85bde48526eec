//! The arms of branches inside the code of one instruction. What is known before a branch is known in both arms and after them
//! ([`crate::emit::known`]).

use crate::emit::function::Emitter;

impl Emitter<'_> {
    /// Emits `f` as the block `inside` and continues in the block `after`. The code just emitted branches to either.
    pub fn detour<R>(&mut self, inside: &str, after: &str, f: impl FnOnce(&mut Self) -> R) -> R {
        self.leave(inside, after, after, f)
    }

    /// The same, but `inside` ends in a jump to the block `to`.
    pub fn leave<R>(&mut self, inside: &str, to: &str, after: &str, f: impl FnOnce(&mut Self) -> R) -> R {
        let mark = self.w.mark();
        self.w.follow(inside);
        let result = f(self);
        self.w.jump(to);
        self.w.join(after, mark);
        result
    }

    /// Emits `f` as the block `first` and `g` as the block `second`, to which the code just emitted branches; continues in the block `after`.
    pub fn diamond<R, S>(
        &mut self,
        [first, second, after]: [&str; 3],
        f: impl FnOnce(&mut Self) -> R,
        g: impl FnOnce(&mut Self) -> S,
    ) -> (R, S) {
        let result = self.leave(first, after, second, f);
        let mark = self.w.mark();
        let other = g(self);
        self.w.jump(after);
        self.w.join(after, mark);
        (result, other)
    }
}
