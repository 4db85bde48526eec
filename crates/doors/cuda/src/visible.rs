//! The devices that a program sees (`CUDA_VISIBLE_DEVICES`; CUDA C++ Programming Guide, "CUDA Environment Variables").

use crate::device::profile;
use margay::profile::uuid_text;
use std::sync::OnceLock;

/// `CUDA_VISIBLE_DEVICES`
const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";

/// The numbers that margay's devices have without the variable, by the numbers that they have for the program.
pub fn visible() -> &'static [i32] {
    static VISIBLE: OnceLock<Vec<i32>> = OnceLock::new();
    VISIBLE.get_or_init(|| {
        let all = profile().count as i32;
        match std::env::var(VARIABLE) {
            Ok(list) => selected(&list, all),
            Err(_) => (0..all).collect(),
        }
    })
}

/// Number of devices that the program sees.
pub fn count() -> i32 {
    visible().len() as i32
}

/// Why the program sees no device, if so.
pub fn why_none() -> Option<String> {
    let list = std::env::var(VARIABLE).unwrap_or_default();
    let remedy = match profile().count {
        1 => "unset it, or set it to 0; `--device count=4` makes more than one device".into(),
        count => format!("there are {count}, from 0"),
    };
    (count() == 0).then(|| format!("{VARIABLE}={list} selects none of margay's devices: {remedy}"))
}

/// The devices that a list selects: numbers or UUIDs. The first that is invalid ends it, and one that occurs twice makes it empty. Drivers
/// read numbers as `strtoul` does, so `1x` is 1.
fn selected(list: &str, all: i32) -> Vec<i32> {
    let mut found = Vec::new();
    for word in list.split(',') {
        let Some(device) = device(word.trim(), all) else { break };
        if found.contains(&device) {
            return Vec::new();
        }
        found.push(device);
    }
    found
}

fn device(word: &str, all: i32) -> Option<i32> {
    if let Some(prefix) = word.strip_prefix("GPU-") {
        let mut matching =
            (0..all).filter(|number| !prefix.is_empty() && uuid_text(*number as u32).starts_with(prefix));
        return matching.next().filter(|_| matching.next().is_none());
    }
    let word = word.strip_prefix('+').unwrap_or(word);
    let end = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    word[..end].parse().ok().filter(|number| *number < all)
}

#[cfg(test)]
mod tests {
    use super::{selected, uuid_text};

    #[test]
    fn a_list_selects_and_orders_devices() {
        assert_eq!(selected("2,0", 4), [2, 0]);
        assert_eq!(selected("1, 3 ,7,2", 4), [1, 3], "an invalid one ends it");
        assert_eq!(selected("0,-1,1", 4), [0]);
        assert_eq!(selected("1gpu,+2", 4), [1, 2]);
        for none in ["", "-1", "4", "NoDevFiles", "1,1", "99999999999", "MIG-1"] {
            assert!(selected(none, 4).is_empty(), "{none}");
        }
    }

    #[test]
    fn a_list_names_devices_by_uuid() {
        assert_eq!(selected(&format!("GPU-{},GPU-{}", uuid_text(1), uuid_text(0)), 2), [1, 0]);
        assert_eq!(selected("GPU-6d617267", 1), [0]);
        for none in ["GPU-6d617267", "GPU-", "GPU-00"] {
            assert!(selected(none, 2).is_empty(), "{none}: none, or several");
        }
    }
}
