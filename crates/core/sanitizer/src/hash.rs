//! A fast hash for trusted keys: page addresses, indices, hashes of places.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A map with such keys.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Hashes by multiplication and folding.
#[derive(Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64((*b).into()));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0.rotate_left(23) ^ value ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}
