//! Names of addresses: a variable with an index. The caller decides how names are displayed.

use crate::Names;
use margay_exec::{Image, Memory};
use margay_isa::Space;

fn indexed(name: &str, offset: u64, size: u64, element: u32) -> String {
    let element = u64::from(element.max(1));
    match () {
        _ if size == element && offset == 0 => format!("`{name}`"),
        _ if offset.is_multiple_of(element) => format!("`{name}[{}]`", offset / element),
        _ => format!("`{name}` + {offset} bytes"),
    }
}

/// Names an offset in a CTA's shared memory.
pub fn shared(image: &Image, names: Names, offset: u64, element: u32) -> String {
    let named = image.ir.globals.iter().zip(&image.addresses).filter(|(g, _)| g.space == Space::Shared);
    let mut dynamic = None;
    for (g, at) in named {
        if g.size > 0 && offset.wrapping_sub(*at) < g.size {
            return format!("{} in shared memory", indexed(&names(&g.name), offset - at, g.size, element));
        }
        if g.size == 0 && offset >= u64::from(image.static_shared) {
            dynamic = Some((g, *at));
        }
    }
    match dynamic {
        Some((g, at)) => format!("{} in shared memory", indexed(&names(&g.name), offset.wrapping_sub(at), 0, element)),
        None => format!("byte {offset:#x} of shared memory"),
    }
}

/// Names an address in global memory.
pub fn global(memory: &Memory, names: Names, address: u64, element: u32) -> String {
    let Some(a) = memory.find(address) else { return format!("address {address:#x}") };
    let (offset, size) = (address - a.block.base(), a.block.len() as u64);
    if a.name.is_empty() {
        return format!("byte {offset:#x} of the {a}");
    }
    // A description, such as "argument 0", and no name of the program.
    match a.name.contains(' ') {
        true => format!("element {} of {}", offset / u64::from(element.max(1)), a.name),
        false => format!("{} in global memory", indexed(&names(&a.name), offset, size, element)),
    }
}
