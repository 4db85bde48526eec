//! A fast hash for trusted keys: page addresses, indices, hashes of places.

use std::{
    collections::HashMap,
    hash::{BuildHasher, BuildHasherDefault, Hasher},
};

/// A map with such keys.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Removes what is kept of addresses in a range. CTAs begin more often than maps may be searched that have an entry for each location
/// of a graph.
pub fn forget<V, S: BuildHasher>(map: &mut HashMap<u64, V, S>, base: u64, size: u64) {
    if map.len() as u64 <= size {
        map.retain(|at, _| at.wrapping_sub(base) >= size);
    } else {
        (base..base.saturating_add(size)).for_each(|at| drop(map.remove(&at)));
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_forgotten_in_small_maps_and_in_large_ones() {
        for entries in [10u64, 1000] {
            let mut map: Map<u64, ()> = (0..entries).map(|i| (4096 + 8 * i, ())).collect();
            forget(&mut map, 4096 + 16, 32);
            let mut left: Vec<u64> = map.into_keys().filter(|at| *at < 4096 + 64).collect();
            left.sort_unstable();
            assert_eq!(left, [4096, 4104, 4144, 4152], "{entries} entries");
        }
    }
}
