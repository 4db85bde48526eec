//! Lookup of functions by name (CUDA Driver API, "Driver Entry Point Access"), which newer clients use for everything.

use crate::{
    api::{Entry, api, logged},
    code::Code,
    raw::{Out, Text},
};

/// The lists of all files: the only list of all functions.
const LISTS: &[&[Entry]] = &[
    ENTRIES,
    crate::memory::advice::ENTRIES,
    crate::memory::attributes::ENTRIES,
    crate::memory::batch::ENTRIES,
    crate::context::functions::ENTRIES,
    crate::memory::copy::ENTRIES,
    crate::device::ENTRIES,
    crate::work::event::ENTRIES,
    crate::module::function::ENTRIES,
    crate::green::ENTRIES,
    crate::work::launch::ENTRIES,
    crate::memory::ipc::ENTRIES,
    crate::module::library::ENTRIES,
    crate::module::link::ENTRIES,
    crate::process::logs::ENTRIES,
    crate::memory::ENTRIES,
    crate::work::memory_operation::ENTRIES,
    crate::module::ENTRIES,
    crate::work::old_launch::ENTRIES,
    crate::memory::pool::ENTRIES,
    crate::memory::references::ENTRIES,
    crate::work::stream::functions::ENTRIES,
    crate::memory::tensor::ENTRIES,
    crate::memory::texture::ENTRIES,
    crate::memory::virtual_memory::ENTRIES,
];

/// Every function of the library.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    LISTS.iter().chain(&crate::work::graph::LISTS).chain(&crate::absent::LISTS).copied().flatten()
}

/// A name without the suffix of the form for the thread's default stream.
fn ordinary(name: &str) -> &str {
    name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name)
}

/// A name without its version suffix: `cuMemAlloc` for `cuMemAlloc_v2`.
fn base(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((base, version)) if !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit()) => base,
        _ => name,
    }
}

/// Functions whose name denotes another function since some version, as `cuda.h` renames them.
const RENAMED: &[(&str, i32, &str)] = &[("cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags")];

/// The newest form of a function for a program of this version.
fn find(name: &str, version: i32, per_thread: bool) -> Result<&'static Entry, bool> {
    let renamed = RENAMED.iter().find(|(old, since, _)| *old == name && *since <= version);
    let name = renamed.map_or(name, |(.., new)| new);
    let forms = || entries().filter(|e| base(ordinary(e.name)) == name || e.name == name);
    // Newest first; among forms of one version, the one with the requested default stream.
    let wanted = |e: &&Entry| (e.since, (ordinary(e.name) != e.name) == per_thread);
    let known = forms().filter(|e| e.since <= version).max_by_key(wanted);
    known.ok_or_else(|| forms().next().is_some())
}

/// `CUdriverProcAddressQueryResult`
mod found {
    pub const YES: u32 = 0;
    pub const NO: u32 = 1;
    pub const NOT_YET: u32 = 2;
}

/// Sets the address of a function, or null, and says in the result whether it was found.
fn look_up(name: Text, out: Out<usize>, version: i32, flags: u64, status: Out<u32>) -> Result<bool, Code> {
    const PER_THREAD: u64 = 2; // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
    let name = name.text()?;
    match find(&name, version, flags & PER_THREAD != 0) {
        Ok(entry) => {
            status.offer(found::YES);
            out.set((entry.address)().expose_provenance())?;
            Ok(true)
        }
        Err(newer) => {
            if logged() {
                eprintln!("margay: unknown function `{name}`");
            }
            status.offer(if newer { found::NOT_YET } else { found::NO });
            out.set(0)?;
            Ok(false)
        }
    }
}

api! {
    // Without a status, the result says that there is no such function (CUDA 11.3 to 11.8).
    11030 fn cuGetProcAddress(name: Text, out: Out<usize>, version: i32, flags: u64) {
        let found = look_up(name, out, version, flags, Out::null())?;
        if found { Ok(()) } else { Err(Code::NOT_FOUND) }
    }
    // "The API will return CUDA_SUCCESS and set the returned pfn to NULL": clients then look for the library's symbol.
    12000 + ptsz fn cuGetProcAddress_v2(name: Text, out: Out<usize>, version: i32, flags: u64, status: Out<u32>) {
        look_up(name, out, version, flags, status).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_form_that_a_program_knows_is_found() {
        assert_eq!(find("cuMemAlloc", 12000, false).unwrap().name, "cuMemAlloc_v2");
        assert_eq!(find("cuCtxCreate", 2000, false).unwrap().name, "cuCtxCreate");
        assert_eq!(find("cuCtxCreate", 4000, false).unwrap().name, "cuCtxCreate_v2");
        assert_eq!(find("cuCtxCreate", 13000, false).unwrap().name, "cuCtxCreate_v4");
        assert_eq!(find("cuGetProcAddress", 13000, false).unwrap().name, "cuGetProcAddress_v2");
        assert_eq!(find("cuGraphInstantiate", 11000, false).unwrap().name, "cuGraphInstantiate_v2");
        assert_eq!(find("cuGraphInstantiate", 12000, false).unwrap().name, "cuGraphInstantiateWithFlags");
        assert_eq!(find("cuLaunchKernelEx", 11000, false).err(), Some(true));
        assert_eq!(find("cuMemcpyHtoD", 13000, true).unwrap().name, "cuMemcpyHtoD_v2_ptds");
        assert_eq!(find("cuLaunchKernel", 13000, true).unwrap().name, "cuLaunchKernel_ptsz");
        assert_eq!(find("cuLaunchKernel", 13000, false).unwrap().name, "cuLaunchKernel");
        assert_eq!(find("cuMemAlloc", 13000, true).unwrap().name, "cuMemAlloc_v2");
        assert_eq!(find("cuMulticastCreate", 13000, false).unwrap().name, "cuMulticastCreate");
        assert_eq!(find("cuMemAlloc", 13000, false).unwrap().name, "cuMemAlloc_v2", "older forms come last");
        assert_eq!(find("cuMakeCoffee", 13000, false).err(), Some(false));
    }

    #[test]
    fn no_function_is_listed_twice() {
        let mut names: Vec<&str> = entries().map(|e| e.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(all, names.len());
    }
}
