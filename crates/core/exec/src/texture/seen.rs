//! The objects that a launch has used.

use super::{Object, Objects};
use std::{borrow::Cow, sync::OnceLock};

/// The first objects that a launch looks up, found again without a lock or a count of references, for which its threads would wait for
/// each other. They live as long as the launch: a program must not destroy or rebind what a running kernel uses (CUDA driver API,
/// "Texture Object Management"). Most launches use none.
#[derive(Debug, Default)]
pub struct Seen(OnceLock<Box<[Place; 8]>>);

/// A handle and its object.
type Place = OnceLock<(u64, Object)>;

impl Seen {
    /// The object of a handle.
    pub fn get(&self, objects: &Objects, handle: u64) -> Option<Cow<'_, Object>> {
        for place in &**self.0.get_or_init(Box::default) {
            let (known, object) = match place.get() {
                Some(found) => found,
                None => match objects.get(handle)? {
                    unbound @ Object::Unbound(_) => return Some(Cow::Owned(unbound)),
                    object => place.get_or_init(|| (handle, object)),
                },
            };
            if *known == handle {
                return Some(Cow::Borrowed(object));
            }
        }
        objects.get(handle).map(Cow::Owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texture::{Kind, Sampler};

    #[test]
    fn objects_are_found_also_beyond_those_that_are_kept() {
        let objects = Objects::default();
        let first = objects.add(std::iter::repeat_n(Object::Sampler(Sampler::default()), 20));
        let unbound = objects.add([Object::Unbound(Kind::Texture)]);
        let seen = Seen::default();
        for _ in 0..2 {
            for i in 0..20 {
                let found = seen.get(&objects, first + 8 * i);
                assert_eq!(matches!(found, Some(Cow::Borrowed(Object::Sampler(_)))), i < 8);
                assert!(found.is_some_and(|o| o.kind() == Kind::Sampler));
            }
            assert!(seen.get(&objects, 1).is_none());
        }
        let seen = Seen::default();
        assert!(matches!(seen.get(&objects, unbound).as_deref(), Some(Object::Unbound(Kind::Texture))));
        objects.bind(unbound, Object::Unbound(Kind::Texture));
        assert!(matches!(seen.get(&objects, unbound), Some(Cow::Owned(_))));
    }
}
