//! Finding functions by name (CUDA Driver API, "Driver Entry Point Access"): newer clients ask for everything here.

use crate::{
    api::{Entry, api, logged},
    code::{Code, Outcome},
    raw::{Out, Text},
};

/// The lists of all files: the one place that knows which functions there are.
const LISTS: &[&[Entry]] = &[
    ENTRIES,
    crate::context::ENTRIES,
    crate::copy::ENTRIES,
    crate::device::ENTRIES,
    crate::event::ENTRIES,
    crate::function::ENTRIES,
    crate::graph::ENTRIES,
    crate::graph::OBJECT_ENTRIES,
    crate::launch::ENTRIES,
    crate::library::ENTRIES,
    crate::link::ENTRIES,
    crate::memory::ENTRIES,
    crate::module::ENTRIES,
    crate::old_launch::ENTRIES,
    crate::pool::ENTRIES,
    crate::stream::ENTRIES,
    crate::tensor::ENTRIES,
    crate::texture::ENTRIES,
    crate::virtual_memory::ENTRIES,
];

/// Every function of the library.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    LISTS.iter().copied().flatten()
}

/// A name without the version at its end: `cuMemAlloc` for `cuMemAlloc_v2`.
fn base(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((base, version)) if !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit()) => base,
        _ => name,
    }
}

/// Functions whose name went to another one in some version, as `cuda.h` renames them.
const RENAMED: &[(&str, i32, &str)] = &[("cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags")];

/// The newest form of a function that a program of some version knows.
fn find(name: &str, version: i32) -> Result<&'static Entry, bool> {
    let renamed = RENAMED.iter().find(|(old, since, _)| *old == name && *since <= version);
    let name = renamed.map_or(name, |(.., new)| new);
    let forms = || entries().filter(|e| base(e.name) == name || e.name == name);
    let known = forms().filter(|e| e.since <= version).max_by_key(|e| e.since);
    known.ok_or_else(|| forms().next().is_some())
}

/// `CUdriverProcAddressQueryResult`
mod found {
    pub const YES: u32 = 0;
    pub const NO: u32 = 1;
    pub const NOT_YET: u32 = 2;
}

fn look_up(name: Text, out: Out<usize>, version: i32, status: Out<u32>) -> Outcome {
    let name = name.text()?;
    match find(&name, version) {
        Ok(entry) => {
            status.offer(found::YES);
            out.set((entry.address)().expose_provenance())
        }
        Err(newer) => {
            if logged() {
                eprintln!("margay: there is no `{name}`");
            }
            status.offer(if newer { found::NOT_YET } else { found::NO });
            out.set(0)?;
            Err(Code::NOT_FOUND)
        }
    }
}

api! {
    11030 fn cuGetProcAddress(name: Text, out: Out<usize>, version: i32, _flags: u64) {
        look_up(name, out, version, Out::null())
    }
    12000 fn cuGetProcAddress_v2(name: Text, out: Out<usize>, version: i32, _flags: u64, status: Out<u32>) {
        look_up(name, out, version, status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_form_that_a_program_knows_is_found() {
        assert_eq!(find("cuMemAlloc", 12000).unwrap().name, "cuMemAlloc_v2");
        assert_eq!(find("cuCtxCreate", 2000).unwrap().name, "cuCtxCreate");
        assert_eq!(find("cuCtxCreate", 4000).unwrap().name, "cuCtxCreate_v2");
        assert_eq!(find("cuCtxCreate", 13000).unwrap().name, "cuCtxCreate_v4");
        assert_eq!(find("cuGetProcAddress", 13000).unwrap().name, "cuGetProcAddress_v2");
        assert_eq!(find("cuGraphInstantiate", 11000).unwrap().name, "cuGraphInstantiate_v2");
        assert_eq!(find("cuGraphInstantiate", 12000).unwrap().name, "cuGraphInstantiateWithFlags");
        assert_eq!(find("cuLaunchKernelEx", 11000).err(), Some(true));
        assert_eq!(find("cuMakeCoffee", 13000).err(), Some(false));
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
