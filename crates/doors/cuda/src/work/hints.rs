//! Hints that the driver adds to a kernel's fault: that an argument is a host address, or null; how to set a larger stack.

use margay_exec::{FaultKind, Memory, Stop};
use margay_runtime::{Error, Kernel};
use std::{backtrace::Backtrace, fs};

/// Addresses below this one come from a null pointer and an offset.
const NULL_PAGE: u64 = 4096;

/// Adds the call that launched the kernel to its fault, if it is known.
pub fn launched(mut error: Error, kernel: &Kernel, from: Option<&Backtrace>) -> Error {
    if let (Error::Stopped(report), Some(from)) = (&mut error, from)
        && let Stop::Fault(fault) = &mut report.stop
    {
        fault.notes.extend(crate::checks::stacks::launched(from, kernel.name()));
    }
    error
}

/// Adds notes to an access outside any allocation: where the adjacent allocation was made, or which argument explains the address.
pub fn explain(mut error: Error, kernel: &Kernel, params: &[u8], memory: &Memory) -> Error {
    let Error::Stopped(report) = &mut error else { return error };
    let Stop::Fault(fault) = &mut report.stop else { return error };
    let access = match &fault.kind {
        FaultKind::OutOfBounds(access) => access,
        FaultKind::UseAfterFree(access) => {
            fault.notes.extend(memory.freed(access.address).map_or(Vec::new(), crate::checks::stacks::free));
            return error;
        }
        FaultKind::Stack(_) => {
            fault.notes.push("`cudaDeviceSetLimit(cudaLimitStackSize, BYTES)` sets a larger stack".into());
            return error;
        }
        _ => return error,
    };
    // A freed allocation explains it already.
    if fault.notes.iter().any(|note| note.contains("freed")) {
        return error;
    }
    let maps = || fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let starts: Vec<u32> = kernel.params().iter().map(|param| param.offset).collect();
    let Some(hint) = hint(access.address, (&starts, params), |a| memory.find(a).is_some(), maps) else {
        fault.notes.extend(crate::checks::stacks::allocation_named(access.address, &fault.notes));
        return error;
    };
    if hint.elsewhere {
        let nearest = memory.describe(access.address);
        fault.notes.retain(|note| *note != nearest);
    }
    fault.notes.push(hint.text);
    error
}

/// What an argument says about an access.
struct Hint {
    text: String,
    /// No allocation has to do with the access, such as the nearest one.
    elsewhere: bool,
}

/// How near an address must be to an allocation to be meant for it.
const NEAR: u64 = 4096;
/// The least size of an allocation.
const LEAST: usize = 256;

/// The note for an address, given where the arguments begin and their bytes. Pointers are aligned, also those in structures, and
/// the address was most likely computed from the nearest one below it.
fn hint(
    address: u64,
    (starts, params): (&[u32], &[u8]),
    is_device: impl Fn(u64) -> bool,
    maps: impl Fn() -> String,
) -> Option<Hint> {
    let words = params.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    let arguments = words.enumerate().filter(|(_, argument)| *argument <= address);
    let (place, argument) = arguments.max_by_key(|(_, argument)| *argument)?;
    let number = starts.iter().filter(|start| **start as usize <= 8 * place).count();
    if argument == 0 {
        let text = format!("argument {number} of the kernel is a null pointer");
        return (address < NULL_PAGE).then_some(Hint { text, elsewhere: true });
    }
    if is_device(argument) {
        return None; // the access is past its end
    }
    let within = region(&maps(), argument, address)?;
    // Device memory lies among the host's, so an address near an allocation may also be a pointer into it that went out of bounds.
    let mut around = (0..=NEAR).step_by(LEAST).flat_map(|by| [argument.wrapping_sub(by), argument.wrapping_add(by)]);
    let near = around.any(is_device);
    let or = if near { "points beside that allocation, or " } else { "" };
    let text = format!(
        "argument {number} of the kernel, {argument:#x}, {or}is an address of the host{within}: kernels access memory of `cudaMalloc` or \
         `cudaMallocManaged`"
    );
    Some(Hint { text, elsewhere: !near })
}

/// Says which part of the host's memory contains both addresses.
fn region(maps: &str, from: u64, to: u64) -> Option<&'static str> {
    maps.lines().find_map(|line| {
        let mut columns = line.split_whitespace();
        let (start, end) = columns.next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let holds = (number(start)?..number(end)?).contains(&from) && to < number(end)?;
        holds.then_some(match columns.nth(4) {
            Some("[stack]") => " (on its stack)",
            Some("[heap]") => " (on its heap)",
            _ => "",
        })
    })
}

#[cfg(test)]
mod tests {
    use super::hint;

    const MAPS: &str = "5000-6000 r-xp 00000000 00:00 0\n55880000-55890000 rw-p 00000000 00:00 0    [heap]\n\
                        7fff0000-7fff8000 rw-p 00000000 00:00 0    [stack]\n";

    fn hinted(address: u64, arguments: &[u64]) -> Option<super::Hint> {
        let bytes: Vec<u8> = arguments.iter().flat_map(|a| a.to_le_bytes()).collect();
        hint(address, (&[0, 8, 16], &bytes), |a| (0x5588_8000..0x5588_9000).contains(&a), || MAPS.into())
    }

    fn message(address: u64, arguments: &[u64]) -> Option<String> {
        hinted(address, arguments).map(|hint| hint.text)
    }

    #[test]
    fn an_argument_of_the_host_is_named() {
        let heap = message(0x5588_1010, &[7, 0x5588_8000, 0x5588_1000]).unwrap();
        assert!(
            heap.starts_with("argument 3 of the kernel, 0x55881000, is an address of the host (on its heap)"),
            "{heap}"
        );
        assert!(message(0x7fff_4000, &[0x7fff_4000]).unwrap().contains("stack"));
        assert_eq!(message(8, &[0x5588_8000, 0]).unwrap(), "argument 2 of the kernel is a null pointer");
    }

    #[test]
    fn what_is_near_an_allocation_may_be_meant_for_it() {
        let before = hinted(0x5588_7f00, &[0x5588_7f00]).unwrap();
        assert!(!before.elsewhere && before.text.contains("points beside that allocation, or is"), "{}", before.text);
        let behind = hinted(0x5588_9010, &[0x5588_9000]).unwrap();
        assert!(!behind.elsewhere && behind.text.contains("points beside that allocation, or is"), "{}", behind.text);
        assert!(hinted(0x5588_1010, &[0x5588_1000]).unwrap().elsewhere);
    }

    #[test]
    fn what_no_argument_explains_is_left_alone() {
        assert_eq!(message(0x5588_9004, &[0x5588_8000, 0x5588_1000]), None); // past the end of the device's memory
        assert_eq!(message(0x9000_0000, &[0x5588_1000]), None); // far away
        assert_eq!(message(0x9000_0000, &[0]), None);
        assert_eq!(message(0x9000_0000, &[]), None);
    }
}
