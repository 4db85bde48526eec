//! Where in the program calls were made: allocations, for those who look for leaks, and work in streams.

use margay::render::demangled;
use std::{
    backtrace::Backtrace,
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Functions of a stack that are told of.
const MOST: usize = 8;

fn stacks() -> MutexGuard<'static, BTreeMap<u64, Backtrace>> {
    static STACKS: Mutex<BTreeMap<u64, Backtrace>> = Mutex::new(BTreeMap::new());
    STACKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records the call that allocates at an address, if a check needs it.
pub fn allocated(address: u64) {
    if crate::watch::wanted().is_some_and(|what| what.leaks || what.unused) {
        stacks().insert(address, Backtrace::force_capture());
    }
}

/// Forgets it.
pub fn freed(address: u64) {
    if crate::watch::wanted().is_some_and(|what| what.leaks || what.unused) {
        stacks().remove(&address);
    }
}

/// The program's functions that led to an allocation, innermost first, for people; none if its symbols were stripped.
pub fn allocation(address: u64) -> Vec<String> {
    let frames = stacks().get(&address).map_or(Vec::new(), |stack| program(&stack.to_string()));
    let verb = |depth| if depth == 0 { "allocated in" } else { "called by" };
    frames.iter().enumerate().map(|(depth, frame)| format!("{} {}", verb(depth), named(frame))).collect()
}

/// A function of a stack, for people.
pub fn named(frame: &str) -> String {
    match frame.split_once(" at ") {
        Some((name, place)) => format!("`{}` at {place}", demangled(name)),
        None => format!("`{}`", demangled(frame)),
    }
}

/// What belongs to the program in a stack as the standard library writes it: lines `3: name`, some followed by `at file:line`.
pub fn program(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        let function = line.split_once(": ").filter(|(number, _)| number.parse::<u32>().is_ok());
        if let Some((_, name)) = function {
            let own = ["cuda::", "cudart::", "margay", "std::", "core::", "__rust", "<", "cu", "__cudart"];
            // The last of the library's own functions is the program's call: the frames after it belong to the program.
            inside = !own.iter().any(|prefix| name.starts_with(prefix)) && name != "<unknown>";
            if ["__libc_start", "_start"].iter().any(|prefix| name.starts_with(prefix)) || all.len() >= MOST {
                break;
            }
            if inside {
                all.push(name.to_owned());
            }
        } else if let (true, Some(place), Some(last)) = (inside, line.strip_prefix("at "), all.last_mut()) {
            *last += &format!(" at {place}");
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::program;

    #[test]
    fn stacks_begin_with_the_program_and_end_with_main() {
        let text = "   0: cuda::stacks::allocated\n             at src/stacks.rs:1:1\n   1: cuMemAlloc_v2\n   2: cudaMalloc\n   \
            3: _ZN4work4makeEi\n   4: main\n             at ./a.cu:7:2\n   5: __libc_start_main\n   6: _start\n";
        assert_eq!(program(text), ["_ZN4work4makeEi", "main at ./a.cu:7:2"]);
        assert!(program("").is_empty());
    }
}
