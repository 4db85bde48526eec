//! The memory and the processor of the host, or of the control group in which this process runs.

use std::{
    fs,
    io::{BufRead, BufReader},
};

/// Bytes of memory: the host's, or the limit of the control group.
pub fn memory() -> u64 {
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits = groups.iter().filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    limits.fold(meminfo("MemTotal:").unwrap_or(8 << 30), u64::min)
}

/// Bytes of free memory beyond what the system and the program itself need in order to continue; `None` if the host does not report it.
pub fn available() -> Option<u64> {
    let free = meminfo("MemAvailable:");
    let free = group_left().map_or(free, |group| Some(group.min(free.unwrap_or(0))))?;
    let reserve = (meminfo("MemTotal:")? / 16).min(1 << 30);
    Some(free.saturating_sub(reserve))
}

/// The name of the processor.
pub fn processor() -> String {
    let name = |line: String| Some(line.strip_prefix("model name")?.split_once(':')?.1.trim().to_string());
    // The first processor's is enough: it takes long to describe all.
    let lines = |file| BufReader::new(file).lines().map_while(Result::ok).find_map(name);
    fs::File::open("/proc/cpuinfo").ok().and_then(lines).unwrap_or_else(|| std::env::consts::ARCH.into())
}

/// A field of `/proc/meminfo` in bytes (proc_meminfo(5)).
fn meminfo(name: &str) -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// The memory that the process's control group may still use, including memory that caches would give up.
fn group_left() -> Option<u64> {
    let groups = [
        ("/sys/fs/cgroup/", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory/", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ];
    groups.iter().find_map(|(folder, limit, usage)| {
        let number = |name: &str| fs::read_to_string(format!("{folder}{name}")).ok()?.trim().parse::<u64>().ok();
        let (limit, usage) = (number(limit)?, number(usage)?);
        let stat = fs::read_to_string(format!("{folder}memory.stat")).unwrap_or_default();
        let cached = stat.lines().filter_map(|line| line.split_once(' '));
        let cached = cached.filter(|(name, _)| matches!(*name, "inactive_file" | "active_file"));
        let cached: u64 = cached.filter_map(|(_, bytes)| bytes.parse::<u64>().ok()).sum();
        Some(limit.saturating_sub(usage.saturating_sub(cached)))
    })
}
