//! The device that CUDA programs see: margay's own, or one that the user describes by `MARGAY_DEVICE` or `margay exec --device`.
//!
//! ```text
//! h100                          a GPU by name
//! t4,count=2                    two of them
//! name=My GPU,capability=8.6,sms=16,memory=8G
//! ```
//!
//! Numbers of known GPUs are those of NVIDIA's data sheets; limits of a multiprocessor follow from the compute capability (CUDA C++
//! Programming Guide, "Compute Capabilities", technical specifications).

use crate::host;
use std::fmt;

/// The properties of a device that programs see. `None` means margay's own: as many multiprocessors as the host has threads, and the host's
/// memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Its name.
    pub name: Option<String>,
    /// Major and minor number of the compute capability.
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: Option<u32>,
    /// Bytes of memory: no program gets more.
    pub memory: Option<u64>,
    /// The number of devices.
    pub count: u32,
    /// The limits of one multiprocessor.
    pub limits: Limits,
}

/// What one multiprocessor holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of shared memory.
    pub shared: u32,
    /// Bytes of shared memory that one CTA may ask for.
    pub shared_of_cta: u32,
    /// Threads.
    pub threads: u32,
    /// CTAs.
    pub ctas: u32,
    /// Bytes of the second-level cache, of the whole device.
    pub cache: u32,
}

/// The version of the driver API that programs see: 13.5.
pub const CUDA: i32 = 13050;
/// The release of the driver that tools see: the first one that runs programs of every CUDA 13 (CUDA Toolkit Release Notes, "CUDA
/// Toolkit and Minimum Required Driver Version for CUDA Minor Version Compatibility").
pub const DRIVER: &str = "580.00";
/// The clocks of multiprocessors and memory, in kHz: a nominal value, since there is nothing to measure.
pub const CLOCK: u32 = 1_000_000;

/// The UUID of a device: it identifies margay and the device's number before `CUDA_VISIBLE_DEVICES` is applied, and is the same on every
/// machine.
pub fn uuid(device: u32) -> [u8; 16] {
    let mut uuid = *b"margay-cpu-0\0\0\0\0";
    uuid[11] += device as u8;
    uuid
}

/// The UUID of a device as tools print it: 8, 4, 4, 4 and 12 hexadecimal digits.
pub fn uuid_text(device: u32) -> String {
    let part = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let uuid = uuid(device);
    [&uuid[..4], &uuid[4..6], &uuid[6..8], &uuid[8..10], &uuid[10..]].map(part).join("-")
}

/// The place of a device on the PCI bus: bus, device and function. Devices have consecutive places, in domain 0.
pub fn bus_place(device: u32) -> String {
    format!("00:{device:02x}.0")
}

/// Why a description of a device is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadProfile(String);

impl fmt::Display for BadProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadProfile {}

const MIB: u64 = 1 << 20;
const KIB: u32 = 1 << 10;

/// GPUs by name: name, compute capability, multiprocessors, MiB of memory, MiB of second-level cache.
type Known = (&'static str, &'static str, (u32, u32), u32, u64, u32);

#[rustfmt::skip]
const KNOWN: &[Known] = &[
    ("v100",    "Tesla V100-SXM2-16GB",        (7, 0),   80,  16_384,   6),
    ("t4",      "Tesla T4",                    (7, 5),   40,  15_360,   4),
    ("a100",    "NVIDIA A100-SXM4-40GB",       (8, 0),  108,  40_960,  40),
    ("a10",     "NVIDIA A10",                  (8, 6),   72,  24_576,   6),
    ("rtx3090", "NVIDIA GeForce RTX 3090",     (8, 6),   82,  24_576,   6),
    ("rtx4090", "NVIDIA GeForce RTX 4090",     (8, 9),  128,  24_576,  72),
    ("l4",      "NVIDIA L4",                   (8, 9),   58,  24_576,  48),
    ("l40s",    "NVIDIA L40S",                 (8, 9),  142,  49_152,  96),
    ("h100",    "NVIDIA H100 80GB HBM3",       (9, 0),  132,  81_920,  50),
    ("h200",    "NVIDIA H200",                 (9, 0),  132, 144_384,  50),
    ("b200",    "NVIDIA B200",                 (10, 0), 148, 184_320, 126),
    ("rtx5090", "NVIDIA GeForce RTX 5090",     (12, 0), 170,  32_768,  96),
];

/// By compute capability: shared memory of a multiprocessor and the maximum of one CTA in KiB, threads and CTAs of a multiprocessor.
/// A capability between two entries has the lower one's values.
#[rustfmt::skip]
const SPECIFICATIONS: &[((u32, u32), [u32; 4])] = &[
    ((5, 0),  [64, 48, 2048, 32]),
    ((5, 2),  [96, 48, 2048, 32]),
    ((6, 0),  [64, 48, 2048, 32]),
    ((6, 1),  [96, 48, 2048, 32]),
    ((7, 0),  [96, 96, 2048, 32]),
    ((7, 5),  [64, 64, 1024, 16]),
    ((8, 0),  [164, 163, 2048, 32]),
    ((8, 6),  [100, 99, 1536, 16]),
    ((8, 9),  [100, 99, 1536, 24]),
    ((9, 0),  [228, 227, 2048, 32]),
    ((12, 0), [100, 99, 1536, 24]),
];

impl Limits {
    /// margay's own device: the maximum of each limit among all devices.
    const OWN: Limits =
        Limits { shared: 228 * KIB, shared_of_cta: 227 * KIB, threads: 2048, ctas: 32, cache: 32 << 20 };

    fn of(capability: (u32, u32)) -> Limits {
        let found = SPECIFICATIONS.iter().rev().find(|(from, _)| *from <= capability).unwrap_or(&SPECIFICATIONS[0]);
        let [shared, of_cta, threads, ctas] = found.1;
        Limits { shared: shared * KIB, shared_of_cta: of_cta * KIB, threads, ctas, ..Limits::OWN }
    }
}

impl Default for Profile {
    /// Margay's own device.
    fn default() -> Profile {
        Profile { name: None, capability: (8, 9), multiprocessors: None, memory: None, count: 1, limits: Limits::OWN }
    }
}

impl Profile {
    /// The name that programs see.
    pub fn shown_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("margay ({})", host::processor()))
    }

    /// Bytes of memory: by default seven eighths of the host's.
    pub fn total_memory(&self) -> u64 {
        self.memory.unwrap_or_else(|| host::memory() / 8 * 7)
    }

    /// Bytes that a program that begins now could allocate.
    pub fn free_memory(&self) -> u64 {
        host::available().map_or(self.total_memory(), |left| left.min(self.total_memory()))
    }

    /// Bytes of shared memory of a multiprocessor that programs see: no more than devices of the capability have. margay's own
    /// device has more, but CUDA's occupancy calculator (`cuda_occupancy.h`), which programs contain, fails for any size that it does not
    /// know of the capability.
    pub fn shown_shared(&self) -> u32 {
        self.limits.shared.min(Limits::of(self.capability).shared)
    }

    /// Parses a description: a known name, single values, or both, separated by commas.
    pub fn parse(text: &str) -> Result<Profile, BadProfile> {
        let mut profile = Profile::default();
        for (i, word) in text.split(',').map(str::trim).enumerate() {
            match word.split_once('=') {
                Some((key, value)) => profile.set(key.trim(), value.trim())?,
                None if i == 0 && !word.is_empty() => profile = Profile::known(word)?,
                None => return Err(unknown(word)),
            }
        }
        Ok(profile)
    }

    fn known(name: &str) -> Result<Profile, BadProfile> {
        let wanted = name.to_lowercase().replace(['-', ' ', '_'], "");
        let found = KNOWN.iter().find(|(known, ..)| *known == wanted).ok_or_else(|| unknown(name))?;
        let (_, name, capability, multiprocessors, memory, cache) = *found;
        Ok(Profile {
            name: Some(name.into()),
            capability,
            multiprocessors: Some(multiprocessors),
            memory: Some(memory * MIB),
            limits: Limits { cache: cache << 20, ..Limits::of(capability) },
            ..Profile::default()
        })
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), BadProfile> {
        let bad = |wanted: &str| BadProfile(format!("`{key}={value}`: expected {wanted}"));
        let number = |most: u32| value.parse().ok().filter(|n| (1..=most).contains(n));
        match key {
            "name" if !value.is_empty() && value.len() < 256 => self.name = Some(value.into()),
            "name" => return Err(bad("a name of 1 to 255 bytes")),
            "capability" => {
                let parts = value.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                self.capability = parts.filter(|(a, b)| *a >= 1 && *b < 10).ok_or_else(|| bad("one like 9.0"))?;
                self.limits = Limits { cache: self.limits.cache, ..Limits::of(self.capability) };
            }
            "sms" => self.multiprocessors = Some(number(1 << 16).ok_or_else(|| bad("a number like 16"))?),
            "memory" => self.memory = Some(bytes(value).ok_or_else(|| bad("bytes, or a number like 512M or 8G"))?),
            "count" => self.count = number(16).ok_or_else(|| bad("a number from 1 to 16"))?,
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    /// The device that the environment requests: `MARGAY_DEVICE`, with the capability in `MARGAY_COMPUTE_CAPABILITY` if that is set.
    pub fn from_environment() -> Result<Profile, BadProfile> {
        let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let in_variable = |name: &str, e: BadProfile| BadProfile(format!("{name}: {e}"));
        let mut profile = match set("MARGAY_DEVICE") {
            Some(text) => Profile::parse(&text).map_err(|e| in_variable("MARGAY_DEVICE", e))?,
            None => Profile::default(),
        };
        if let Some(text) = set("MARGAY_COMPUTE_CAPABILITY") {
            let limits = profile.limits;
            profile.set("capability", &text).map_err(|e| in_variable("MARGAY_COMPUTE_CAPABILITY", e))?;
            profile.limits = limits;
        }
        Ok(profile)
    }
}

fn unknown(word: &str) -> BadProfile {
    let names: Vec<&str> = KNOWN.iter().map(|(name, ..)| *name).collect();
    BadProfile(format!(
        "`{word}` is not a device; expected one of {}, or name=…, capability=9.0, sms=16, memory=8G, count=2",
        names.join(", ")
    ))
}

/// `512M`, `8G`, `8GiB`, or plain bytes.
fn bytes(text: &str) -> Option<u64> {
    let text = text.trim_end_matches("iB").trim_end_matches('B');
    let (digits, shift) = match text.char_indices().last()? {
        (at, 'K' | 'k') => (&text[..at], 10),
        (at, 'M' | 'm') => (&text[..at], 20),
        (at, 'G' | 'g') => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: u64 = digits.trim().parse().ok()?;
    number.checked_mul(1 << shift).filter(|n| *n >= MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_gpu_sets_all_properties() {
        let t4 = Profile::parse("T4").unwrap();
        assert_eq!((t4.capability, t4.multiprocessors, t4.memory, t4.count), ((7, 5), Some(40), Some(15 << 30), 1));
        // Compute capability 7.5: 64 KiB of shared memory, 1024 threads and 16 CTAs of a multiprocessor.
        assert_eq!((t4.limits.shared_of_cta, t4.limits.threads, t4.limits.ctas), (64 << 10, 1024, 16));
        assert!(KNOWN.iter().all(|(name, ..)| Profile::parse(name).is_ok()));
    }

    #[test]
    fn single_values_override_single_properties() {
        let small = Profile::parse("h100,sms=4,memory=512M,count=2").unwrap();
        assert_eq!((small.capability, small.multiprocessors, small.memory), ((9, 0), Some(4), Some(512 << 20)));
        assert_eq!(small.count, 2);
        let own = Profile::parse("name=My GPU,capability=8.6").unwrap();
        assert_eq!((own.name.as_deref(), own.capability, own.multiprocessors), (Some("My GPU"), (8, 6), None));
        assert_eq!(own.limits.shared_of_cta, 99 << 10);
        assert_eq!(bytes("2GiB"), Some(2 << 30));
    }

    #[test]
    fn a_multiprocessor_has_the_shared_memory_of_its_capability() {
        // CUDA Programming Guide, "Compute Capabilities": 8.9 and 9.0.
        assert_eq!(Profile::default().shown_shared(), 100 << 10);
        assert_eq!(Profile::parse("capability=9.0").unwrap().shown_shared(), 228 << 10);
        assert!(KNOWN.iter().all(|(name, ..)| Profile::parse(name).is_ok_and(|p| p.shown_shared() == p.limits.shared)));
    }

    #[test]
    fn unknown_words_are_errors_that_name_them() {
        for (text, wanted) in [
            ("h1000", "`h1000`"),
            ("sms=0", "a number like 16"),
            ("h100,fast", "`fast`"),
            ("capability=nine", "one like 9.0"),
            ("memory=12", "512M"),
            ("color=red", "`color`"),
            ("", "``"),
        ] {
            let error = Profile::parse(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
