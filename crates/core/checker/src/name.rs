//! Names of addresses for messages: variables with an index, demangled.

use margay_exec::{Image, Memory};
use margay_isa::Space;

/// The identifier in a mangled name; other names are returned as they are.
pub fn plain(name: &str) -> String {
    let name = name.rsplit("::").next().unwrap_or(name);
    let Some(rest) = name.strip_prefix("_Z") else { return name.to_owned() };
    // `_ZZ4kernPiE1s`: a variable of a function; `_ZN2ns4nameE...`: nested; `_Z4kernPi`: a function.
    if let Some(local) = rest.strip_prefix('Z').and_then(local) {
        return local.to_owned();
    }
    let rest = rest.trim_start_matches(['Z', 'L']);
    let nested = rest.starts_with('N');
    let mut rest = rest.trim_start_matches(['N', 'K', 'L']);
    let mut last = None;
    while let Some(digits) = rest.find(|c: char| !c.is_ascii_digit()).filter(|at| *at > 0) {
        let Ok(length) = rest[..digits].parse::<usize>() else { break };
        let Some(part) = rest.get(digits..digits + length) else { break };
        last = Some(part);
        rest = &rest[digits + length..];
        if !nested {
            break;
        }
    }
    last.unwrap_or(name).to_owned()
}

/// The variable in a mangled local name: it follows the `E` that ends the function's name.
fn local(rest: &str) -> Option<&str> {
    rest.match_indices('E').find_map(|(at, _)| {
        let name = &rest[at + 1..];
        let digits = name.find(|c: char| !c.is_ascii_digit())?;
        let end = digits + name[..digits].parse::<usize>().ok()?;
        let whole = end == name.len() || name.get(end..).is_some_and(|more| more.starts_with('_'));
        name.get(digits..end).filter(|_| whole)
    })
}

fn indexed(name: &str, offset: u64, size: u64, element: u32) -> String {
    let element = u64::from(element.max(1));
    match () {
        _ if size == element && offset == 0 => format!("`{name}`"),
        _ if offset.is_multiple_of(element) => format!("`{name}[{}]`", offset / element),
        _ => format!("`{name}` + {offset} bytes"),
    }
}

/// Names an offset in a CTA's shared memory.
pub fn shared(image: &Image, offset: u64, element: u32) -> String {
    let named = image.ir.globals.iter().zip(&image.addresses).filter(|(g, _)| g.space == Space::Shared);
    let mut dynamic = None;
    for (g, at) in named {
        if g.size > 0 && offset.wrapping_sub(*at) < g.size {
            return format!("{} in shared memory", indexed(&plain(&g.name), offset - at, g.size, element));
        }
        if g.size == 0 && offset >= u64::from(image.static_shared) {
            dynamic = Some((g, *at));
        }
    }
    match dynamic {
        Some((g, at)) => format!("{} in shared memory", indexed(&plain(&g.name), offset.wrapping_sub(at), 0, element)),
        None => format!("byte {offset:#x} of shared memory"),
    }
}

/// Names an address in global memory.
pub fn global(memory: &Memory, address: u64, element: u32) -> String {
    let Some(a) = memory.find(address) else { return format!("address {address:#x}") };
    let (offset, size) = (address - a.block.base(), a.block.len() as u64);
    if a.name.is_empty() {
        return format!("byte {offset:#x} of the {a}");
    }
    let name = plain(&a.name);
    match name.contains(' ') {
        true => format!("element {} of {name}", offset / u64::from(element.max(1))),
        false => format!("{} in global memory", indexed(&name, offset, size, element)),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn mangled_names_end_in_what_the_programmer_wrote() {
        let names = [
            "_Z4kernPi",
            "_ZZ4kernPiiE4tile",
            "_ZN2ns5outer3runEPf",
            "saxpy",
            "k::_ZZ1kPiE1s",
            "_ZL7counter",
            "_ZZ1kILi4EEvPiE5tileE_0",
        ];
        assert_eq!(names.map(plain), ["kern", "tile", "run", "saxpy", "s", "counter", "tileE"]);
    }
}
