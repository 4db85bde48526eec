//! Host call stacks that findings show: of allocations (leaks, accesses out of bounds), of frees (uses after free), of launches and of other
//! work in streams.

use margay::render::demangled;
use parking_lot::{Mutex, MutexGuard};
use std::{
    backtrace::Backtrace,
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// Functions of a stack that a finding shows at most.
const LIMIT: usize = 8;
/// The same of one that leads to a launch.
const MAX_OF_LAUNCH: usize = 3;

fn stacks() -> MutexGuard<'static, BTreeMap<u64, Backtrace>> {
    static STACKS: Mutex<BTreeMap<u64, Backtrace>> = Mutex::new(BTreeMap::new());
    STACKS.lock()
}

/// Records the call that allocates at an address, if a check needs it.
pub fn allocated(address: u64) {
    if crate::checks::watch::wanted().is_some_and(|what| what.leaks || what.unused || what.memory) {
        stacks().insert(address, Backtrace::force_capture());
    }
}

/// Frees that are remembered.
const MAX_FREED: usize = 4096;

fn frees() -> MutexGuard<'static, VecDeque<(u64, Backtrace)>> {
    static FREES: Mutex<VecDeque<(u64, Backtrace)>> = Mutex::new(VecDeque::new());
    FREES.lock()
}

/// The calls that have submitted frees to streams.
fn submitted_frees() -> MutexGuard<'static, BTreeMap<u64, Backtrace>> {
    static FREES: Mutex<BTreeMap<u64, Backtrace>> = Mutex::new(BTreeMap::new());
    FREES.lock()
}

/// Records the call that makes a stream free the memory at an address, if a check needs it.
pub fn will_free(address: u64) {
    if crate::checks::watch::wanted().is_some_and(|what| what.memory || what.api) {
        submitted_frees().insert(address, Backtrace::force_capture());
    }
}

/// Forgets an allocation, and records the call that frees it, if a check needs that.
pub fn freed(address: u64) {
    let Some(what) = crate::checks::watch::wanted() else { return };
    stacks().remove(&address);
    if what.memory || what.api {
        let submitted = submitted_frees().remove(&address);
        let mut all = frees();
        if all.len() >= MAX_FREED {
            all.pop_front();
        }
        all.push_back((address, submitted.unwrap_or_else(Backtrace::force_capture)));
    }
}

/// The program's functions that led to the latest free of an address, as for [`allocation`].
pub fn free(address: u64) -> Vec<String> {
    let all = frees();
    let latest = all.iter().rev().find(|(at, _)| *at == address);
    format_stack("freed in", &latest.map_or(Vec::new(), |(_, stack)| program(&stack.to_string())))
}

/// The program's functions that led to an allocation, innermost first, for people; none if its symbols were stripped.
pub fn allocation(address: u64) -> Vec<String> {
    let frames = stacks().get(&address).map_or(Vec::new(), |stack| program(&stack.to_string()));
    format_stack("allocated in", &frames)
}

/// The same for the allocation at, before or after an address, if one of the texts names that allocation's address.
pub fn allocation_named(address: u64, texts: &[String]) -> Vec<String> {
    let is_named = |base: u64| texts.iter().any(|text| text.ends_with(&format!(" at {base:#x}")));
    let (below, above) = {
        let all = stacks();
        let at = |found: Option<(&u64, &Backtrace)>| found.map(|(base, _)| *base);
        (at(all.range(..=address).next_back()), at(all.range(address..).next()))
    };
    let named = [below, above].into_iter().flatten().find(|base| is_named(*base));
    named.map_or(Vec::new(), allocation)
}

/// The call that launches a kernel, if checks are requested.
pub fn launch() -> Option<Arc<Backtrace>> {
    crate::checks::watch::wanted().map(|_| Arc::new(Backtrace::force_capture()))
}

/// The program's functions that led to a launch of a kernel of that name, as for [`allocation`], without the function that stands for
/// the kernel.
pub fn launched(from: &Backtrace, kernel: &str) -> Vec<String> {
    let mut frames = program(&from.to_string());
    frames.retain(|frame| frame.split(" at ").next() != Some(kernel));
    frames.truncate(MAX_OF_LAUNCH);
    format_stack("launched in", &frames)
}

/// The function of the runtime library that the program has called, if it called one, and the program's functions that led to it, as for
/// [`allocation`].
pub fn call() -> (Option<String>, Vec<String>) {
    let text = Backtrace::force_capture().to_string();
    (runtime_function(&text), format_stack("called in", &program(&text)))
}

/// The outermost function of the runtime library in a stack.
fn runtime_function(text: &str) -> Option<String> {
    let functions =
        text.lines().filter_map(|line| line.trim().split_once(": ")).filter(|(n, _)| n.parse::<u32>().is_ok());
    let name = |(_, name): (_, &str)| name.trim_start_matches('_').to_owned();
    let is_api = |name: &String| name.starts_with("cuda") && !name.contains(":") && !name.ends_with("_helper");
    functions.map(name).rfind(is_api)
}

/// A stack for people, a line for each function.
pub fn format_stack(first: &str, frames: &[String]) -> Vec<String> {
    let verb = |depth| if depth == 0 { first } else { "called by" };
    frames.iter().enumerate().map(|(depth, frame)| format!("{} {}", verb(depth), named(frame))).collect()
}

/// A function of a stack, for people.
pub fn named(frame: &str) -> String {
    match frame.split_once(" at ") {
        Some((name, place)) => format!("`{}` at {place}", demangled(name)),
        None => format!("`{}`", demangled(frame)),
    }
}

/// The program's own frames in a stack as the standard library writes it: lines `3: name`, some followed by `at file:line`.
pub fn program(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        let function = line.split_once(": ").filter(|(number, _)| number.parse::<u32>().is_ok());
        if let Some((_, name)) = function {
            let own = ["cuda::", "cudart::", "margay", "std::", "core::", "__rust", "<", "cu", "__cuda"];
            // nvcc's code for a launch, in addition to a function with the kernel's name.
            let launch = ["__device_stub__", "cudaLaunchKernel"].iter().any(|part| name.contains(part));
            // The last of the library's own functions is the program's call: the frames after it belong to the program.
            inside = !launch && !own.iter().any(|prefix| name.starts_with(prefix)) && name != "<unknown>";
            if ["__libc_start", "_start"].iter().any(|prefix| name.starts_with(prefix)) || all.len() >= LIMIT {
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
    use super::{program, runtime_function};

    #[test]
    fn stacks_begin_with_the_program_and_end_with_main() {
        let text = "   0: cuda::stacks::allocated\n             at src/stacks.rs:1:1\n   1: cuMemAlloc_v2\n   2: cudaMalloc\n   \
            3: _ZN4work4makeEi\n   4: main\n             at ./a.cu:7:2\n   5: __libc_start_main\n   6: _start\n";
        assert_eq!(program(text), ["_ZN4work4makeEi", "main at ./a.cu:7:2"]);
        let text = "   0: cuLaunchKernel\n   1: cudaLaunchKernel\n   2: _ZL16cudaLaunchKernelIcE9cudaErrorPT_4dim3S3_PPvmP11CUstream_st\n   \
            3: __cudaLaunchKernel_helper\n             at cuda_runtime.h:1:2\n   4: _Z23__device_stub__Z1kPiPi\n   5: _Z1kPi\n   6: main\n";
        assert_eq!(program(text), ["_Z1kPi", "main"]);
        assert_eq!(runtime_function(text).as_deref(), Some("cudaLaunchKernel"));
        assert!(program("").is_empty() && runtime_function("").is_none());
    }
}
