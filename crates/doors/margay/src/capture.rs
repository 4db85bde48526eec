//! Captured launches (`margay exec --capture`): a launch with everything that it needs, in a folder, so that it can run alone
//! (`margay replay`).
//!
//! ```text
//! launch.json    kernel, shape, parameters, limits, device, the list of modules and of memory
//! 0.ptx, 1.ptx   the modules
//! memory.bin     the contents of memory, one after the other
//! ```
//!
//! The memory is all that the launch can reach: variables of the module, allocations whose addresses are in parameters, and in turn everything
//! that pointers in these lead to. A word of 8 bytes counts as a pointer if it is an address inside reachable memory. Memory has other addresses
//! in a replay, so pointers are relocated, but values computed from addresses, such as parts or differences, are not.

use margay_exec::{
    Memory,
    mem::{Kind, Reach},
};
use margay_isa::Space;
use margay_runtime::{Context, Kernel, LaunchConfig, LaunchShape, Module};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

/// The description of a launch in its folder.
const DESCRIPTION: &str = "launch.json";
/// The contents of memory.
const MEMORY: &str = "memory.bin";
/// The version of the format.
const FORMAT: u64 = 1;

/// A captured launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Capture {
    /// Name of the kernel.
    pub kernel: String,
    /// Its shape.
    pub shape: LaunchShape,
    /// Stack of a thread in bytes.
    pub stack: u32,
    /// Limit of the device heap in bytes.
    pub heap: u64,
    /// A description of the device that the program saw.
    pub device: String,
    /// The parameter block.
    pub params: Vec<u8>,
    /// Names and texts of the modules.
    pub modules: Vec<(String, String)>,
    /// Memory, by ascending address.
    pub regions: Vec<Region>,
}

/// The first launch in a folder of captured launches.
fn first_launch(folder: &Path) -> Option<PathBuf> {
    let launches = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    launches.filter(|path| path.join(DESCRIPTION).is_file()).min()
}

/// A piece of memory of a captured launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Region {
    /// Its role.
    pub role: Role,
    /// Its address when it was captured.
    pub address: u64,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// The role of a piece of memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// An allocation.
    Allocation,
    /// An allocation that kernels may only read.
    ReadOnly,
    /// An allocation of the device heap.
    Heap,
    /// A variable of the module: its number and name.
    Variable(usize, String),
}

impl Role {
    fn word(&self) -> &'static str {
        match self {
            Role::Allocation => "allocation",
            Role::ReadOnly => "read-only",
            Role::Heap => "heap",
            Role::Variable(..) => "variable",
        }
    }
}

impl std::fmt::Display for Region {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (bytes, address) = (self.bytes.len(), self.address);
        match &self.role {
            Role::Variable(_, name) => write!(f, "variable `{name}` ({bytes} bytes)"),
            Role::Heap => write!(f, "device-heap allocation of {bytes} bytes at {address:#x}"),
            Role::Allocation | Role::ReadOnly => write!(f, "allocation of {bytes} bytes at {address:#x}"),
        }
    }
}

/// The 8-byte words of memory that starts at an address, with their offsets: possible pointers.
fn words(address: u64, bytes: &[u8]) -> impl Iterator<Item = (usize, u64)> + '_ {
    let first = (address.wrapping_neg() % 8) as usize;
    let words = bytes.get(first..).unwrap_or_default().chunks_exact(8).enumerate();
    words.map(move |(i, word)| (first + 8 * i, u64::from_le_bytes(word.try_into().unwrap_or_default())))
}

/// A relocation: ranges of addresses, and their new places.
#[derive(Default)]
struct Map(Vec<(u64, u64, u64)>);

impl Map {
    fn new(mut ranges: Vec<(u64, u64, u64)>) -> Map {
        ranges.sort_unstable();
        Map(ranges)
    }

    /// The relocated address; the end of a range counts as part of it.
    fn get(&self, address: u64) -> Option<u64> {
        let after = self.0.partition_point(|(start, ..)| *start <= address);
        let (start, len, to) = *self.0.get(after.checked_sub(1)?)?;
        (address - start <= len).then(|| to + (address - start))
    }

    fn relocate(&self, address: u64, bytes: &mut [u8]) {
        let moved: Vec<_> = words(address, bytes).filter_map(|(at, word)| Some((at, self.get(word)?))).collect();
        for (at, word) in moved {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
    }
}

impl Capture {
    /// Captures a launch that is about to begin.
    pub fn new(
        module: &Module,
        kernel: &Kernel,
        context: &Context,
        config: &LaunchConfig<'_>,
        params: &[u8],
        device: String,
    ) -> Capture {
        let modules = module.files().iter().map(|(source, _)| (source.name.clone(), source.tree.text.to_string()));
        let memory = context.device().memory();
        let limits = context.limits();
        Capture {
            kernel: kernel.name().into(),
            shape: config.shape,
            stack: limits.stack,
            heap: memory.heap_limit(),
            device,
            params: params.to_vec(),
            modules: modules.collect(),
            regions: reachable(kernel, memory, params),
        }
    }

    /// Writes it to a folder of its own, numbered on from `number`, inside another; returns the folder.
    pub fn write(&self, folder: &Path, number: &mut u32) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let own = loop {
            let own = folder.join(format!("{number:04}"));
            *number += 1;
            match fs::create_dir(&own) {
                Ok(()) => break own,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {} // another process's
                Err(e) => return Err(e),
            }
        };
        for (i, (_, text)) in self.modules.iter().enumerate() {
            fs::write(own.join(format!("{i}.ptx")), text)?;
        }
        let mut file = io::BufWriter::new(File::create(own.join(MEMORY))?);
        for region in &self.regions {
            file.write_all(&region.bytes)?;
        }
        file.flush()?;
        fs::write(own.join(DESCRIPTION), format!("{:#}\n", self.description()))?;
        Ok(own)
    }

    fn description(&self) -> Value {
        let region = |r: &Region| match &r.role {
            Role::Variable(number, name) => json!({
                "kind": r.role.word(), "address": format!("{:#x}", r.address), "bytes": r.bytes.len(),
                "number": number, "name": name,
            }),
            role => json!({ "kind": role.word(), "address": format!("{:#x}", r.address), "bytes": r.bytes.len() }),
        };
        let hex: String = self.params.iter().map(|b| format!("{b:02x}")).collect();
        json!({
            "format": FORMAT,
            "kernel": self.kernel,
            "grid": self.shape.grid,
            "block": self.shape.block,
            "cluster": self.shape.cluster,
            "shared": self.shape.shared,
            "cooperative": self.shape.cooperative,
            "stack": self.stack,
            "heap": self.heap,
            "device": self.device,
            "parameters": hex,
            "modules": self.modules.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            "memory": self.regions.iter().map(region).collect::<Vec<_>>(),
        })
    }

    /// Reads a captured launch from its folder.
    pub fn read(folder: &Path) -> Result<Capture, String> {
        let path = |name: &str| folder.join(name);
        let failed = |path: &Path, e: &dyn std::fmt::Display| format!("cannot read {}: {e}", path.display());
        let at = path(DESCRIPTION);
        let text = fs::read_to_string(&at).map_err(|e| match first_launch(folder) {
            Some(launch) => {
                format!("{} has captured launches, such as {}; replay one of them", folder.display(), launch.display())
            }
            None => failed(&at, &e),
        })?;
        let json: Value = serde_json::from_str(&text).map_err(|e| failed(&at, &e))?;
        let lacking = |name: &str| failed(&at, &format!("`{name}` is missing or invalid"));
        if json["format"].as_u64() != Some(FORMAT) {
            return Err(failed(&at, &format!("its format is not {FORMAT}, which this version of margay requires")));
        }
        let number = |name: &str| json[name].as_u64().ok_or_else(|| lacking(name));
        let small = |name: &str| u32::try_from(number(name)?).map_err(|_| lacking(name));
        let word = |name: &str| json[name].as_str().map(str::to_owned).ok_or_else(|| lacking(name));
        let three = |name: &str| triple(&json[name]).ok_or_else(|| lacking(name));
        let list = |name: &str| json[name].as_array().ok_or_else(|| lacking(name));
        let mut modules = Vec::new();
        for (i, name) in list("modules")?.iter().enumerate() {
            let at = path(&format!("{i}.ptx"));
            let text = fs::read_to_string(&at).map_err(|e| failed(&at, &e))?;
            modules.push((name.as_str().ok_or_else(|| lacking("modules"))?.to_owned(), text));
        }
        let at_memory = path(MEMORY);
        let mut memory = File::open(&at_memory).map_err(|e| failed(&at_memory, &e))?;
        // Sizes in the description are limited by the file's size.
        let mut left = memory.metadata().map_err(|e| failed(&at_memory, &e))?.len();
        let mut regions = Vec::new();
        for entry in list("memory")? {
            let mut region = described(entry, &mut left).ok_or_else(|| lacking("memory"))?;
            memory.read_exact(&mut region.bytes).map_err(|e| failed(&at_memory, &e))?;
            regions.push(region);
        }
        Ok(Capture {
            kernel: word("kernel")?,
            shape: LaunchShape {
                cluster: if json["cluster"].is_null() { None } else { Some(three("cluster")?) },
                shared: small("shared")?,
                cooperative: json["cooperative"].as_bool().ok_or_else(|| lacking("cooperative"))?,
                ..LaunchShape::new(three("grid")?, three("block")?)
            },
            stack: small("stack")?,
            heap: number("heap")?,
            device: word("device")?,
            params: bytes_of(&word("parameters")?).ok_or_else(|| lacking("parameters"))?,
            modules,
            regions,
        })
    }

    /// Sets limits and memory up for a replay. Returns the parameter block, and where everything lies.
    pub fn restore(&self, context: &Context, kernel: &Kernel) -> Result<(Vec<u8>, Restored), String> {
        let memory = context.device().memory();
        context.set_limits(margay_runtime::Limits { stack: self.stack, ..context.limits() });
        memory.set_heap_limit(self.heap);
        let mut places = Vec::new();
        for region in &self.regions {
            places.push(place(region, memory, kernel)?);
        }
        let ranges = self.regions.iter().zip(&places).map(|(r, to)| (r.address, r.bytes.len() as u64, *to));
        let map = Map::new(ranges.collect());
        for (region, to) in self.regions.iter().zip(&places) {
            let mut bytes = region.bytes.clone();
            map.relocate(region.address, &mut bytes);
            memory.write(*to, &bytes).map_err(|e| format!("cannot restore {:#x}: {e:?}", region.address))?;
            memory.writes().mark(*to, bytes.len() as u64);
        }
        let mut params = self.params.clone();
        map.relocate(0, &mut params);
        Ok((params, Restored { places }))
    }
}

/// Where the memory of a launch lies in a replay.
pub struct Restored {
    places: Vec<u64>,
}

impl Restored {
    /// The current contents of memory, with pointers as they were captured.
    pub fn contents(&self, capture: &Capture, memory: &Memory) -> Result<Vec<Vec<u8>>, String> {
        let ranges = capture.regions.iter().zip(&self.places).map(|(r, to)| (*to, r.bytes.len() as u64, r.address));
        let map = Map::new(ranges.collect());
        let read = |(region, at): (&Region, &u64)| {
            let mut bytes = vec![0; region.bytes.len()];
            memory.read(*at, &mut bytes).map_err(|_| format!("{:#x} was freed by the kernel", region.address))?;
            map.relocate(region.address, &mut bytes);
            Ok(bytes)
        };
        capture.regions.iter().zip(&self.places).map(read).collect()
    }
}

/// Finds or allocates the place of a region in a replay.
fn place(region: &Region, memory: &Memory, kernel: &Kernel) -> Result<u64, String> {
    let size = region.bytes.len() as u64;
    let no_room = || format!("cannot allocate {size} bytes for the memory of the launch");
    let align = 1 << region.address.trailing_zeros().clamp(3, 21);
    let allocate = |kind| memory.alloc_as(size, align, kind, "").map(|a| a.block.base()).map_err(|_| no_room());
    match &region.role {
        Role::Allocation => allocate(Kind::Global),
        Role::ReadOnly => allocate(Kind::ReadOnly),
        Role::Heap => match memory.heap_alloc(Reach::Full, size) {
            0 => Err(no_room()),
            address => Ok(address),
        },
        Role::Variable(number, name) => {
            let image = kernel.image();
            let found = image.ir.globals.get(*number).filter(|g| *g.name == **name && g.size == size);
            let address = found.and(image.addresses.get(*number).copied());
            address.ok_or_else(|| format!("the module has no variable `{name}` of {size} bytes"))
        }
    }
}

/// The memory that a launch can reach, by ascending address.
fn reachable(kernel: &Kernel, memory: &Memory, params: &[u8]) -> Vec<Region> {
    let image = kernel.image();
    let mut known: Vec<(u64, u64, Role)> = Vec::new();
    for allocation in memory.allocations() {
        let role = match allocation.kind {
            Kind::Global | Kind::Variable { .. } | Kind::Const { .. } => Role::Allocation,
            Kind::ReadOnly => Role::ReadOnly,
            Kind::Heap => Role::Heap,
            Kind::Param | Kind::Shared | Kind::Local | Kind::Array => continue,
        };
        known.push((allocation.block.base(), allocation.block.len() as u64, role));
    }
    known.sort_unstable_by_key(|(base, ..)| *base);
    let mut found = vec![false; known.len()];
    let mut work = Vec::new();
    for (number, global) in image.ir.globals.iter().enumerate() {
        let base = image.addresses.get(number).copied().unwrap_or(0);
        let in_memory = matches!(global.space, Space::Global | Space::Const) && global.size > 0;
        if let (true, Ok(at)) = (in_memory, known.binary_search_by_key(&base, |(base, ..)| *base)) {
            known[at].2 = Role::Variable(number, global.name.to_string());
            known[at].1 = global.size;
            found[at] = true;
            work.push(at);
        }
    }
    let index_of = |address: u64, known: &[(u64, u64, Role)]| {
        let after = known.partition_point(|(base, ..)| *base <= address);
        let at = after.checked_sub(1)?;
        (address - known[at].0 <= known[at].1).then_some(at)
    };
    for (_, word) in words(0, params) {
        work.extend(index_of(word, &known).filter(|at| !std::mem::replace(&mut found[*at], true)));
    }
    let mut regions = Vec::new();
    while let Some(at) = work.pop() {
        let (address, size, role) = known[at].clone();
        let mut bytes = vec![0; size as usize];
        if memory.read(address, &mut bytes).is_err() {
            continue; // freed meanwhile
        }
        for (_, word) in words(address, &bytes) {
            work.extend(index_of(word, &known).filter(|at| !std::mem::replace(&mut found[*at], true)));
        }
        regions.push(Region { role, address, bytes });
    }
    regions.sort_unstable_by_key(|r| r.address);
    regions
}

fn triple(value: &Value) -> Option<[u32; 3]> {
    let list: Vec<u32> = value.as_array()?.iter().filter_map(|n| u32::try_from(n.as_u64()?).ok()).collect();
    list.try_into().ok()
}

/// A region as the description has it, with room for its contents.
fn described(entry: &Value, left: &mut u64) -> Option<Region> {
    let address = u64::from_str_radix(entry["address"].as_str()?.strip_prefix("0x")?, 16).ok()?;
    let size = entry["bytes"].as_u64()?;
    *left = left.checked_sub(size)?;
    let role = match entry["kind"].as_str()? {
        "allocation" => Role::Allocation,
        "read-only" => Role::ReadOnly,
        "heap" => Role::Heap,
        "variable" => Role::Variable(entry["number"].as_u64()? as usize, entry["name"].as_str()?.to_owned()),
        _ => return None,
    };
    address.checked_add(size)?;
    Some(Region { role, address, bytes: vec![0; usize::try_from(size).ok()?] })
}

fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok().filter(|_| pair.len() == 2)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of two nodes, a variable that counts, and a parameter that points to the first node.
    const MODULE: &str = "
        .version 7.0
        .target sm_50
        .address_size 64
        .global .u32 nodes;
        .visible .entry walk(.param .u64 list, .param .u64 out) {
            .reg .b64 %at, %out;
            .reg .b32 %n, %sum;
            .reg .pred %p;
            ld.param.u64 %at, [list];
            ld.param.u64 %out, [out];
            mov.u32 %sum, 0;
        next:
            ld.global.u32 %n, [%at];
            add.u32 %sum, %sum, %n;
            atom.global.add.u32 %n, [nodes], 1;
            ld.global.u64 %at, [%at+8];
            setp.ne.u64 %p, %at, 0;
            @%p bra next;
            st.global.u32 [%out], %sum;
            ret;
        }";

    #[test]
    fn a_replayed_launch_has_all_memory_that_it_reaches() {
        let device = crate::device().unwrap();
        let context = device.context();
        let module = crate::Module::parse(MODULE).unwrap().check().unwrap().load(&context).unwrap();
        let kernel = module.kernel("walk").unwrap();
        let [first, second, out, other] = [16, 16, 4, 64].map(|size| context.buffer(size).unwrap());
        first.write(0, &[5u64.to_le_bytes(), second.address().to_le_bytes()].concat()).unwrap();
        second.write(0, &[37u64.to_le_bytes(), 0u64.to_le_bytes()].concat()).unwrap();
        let mut arguments = kernel.arguments();
        arguments.push_address(first.address()).unwrap();
        arguments.push_address(out.address()).unwrap();
        let params = arguments.finish().unwrap();
        let config = LaunchConfig::new([1; 3], [1; 3]);
        let capture = Capture::new(&module, &kernel, &context, &config, &params, "test".into());
        assert_eq!(capture.regions.len(), 4, "two nodes, the result and the variable, not the other buffer");
        assert!(capture.regions.iter().all(|r| r.address != other.address()));

        let folder = std::env::temp_dir().join(format!("margay-capture-{}", std::process::id()));
        let own = capture.write(&folder, &mut 7).unwrap();
        assert!(own.ends_with("0007"));
        let again = Capture::read(&own).unwrap();
        assert_eq!(again, capture);
        assert!(Capture::read(&folder).unwrap_err().contains("0007"), "the folder of the launches is not one of them");
        fs::remove_dir_all(&folder).unwrap();

        // In another context, in addition to the captured memory.
        let fresh = crate::device().unwrap().context();
        let module = crate::Module::parse(&again.modules[0].1).unwrap().check().unwrap().load(&fresh).unwrap();
        let kernel = module.kernel(&again.kernel).unwrap();
        let (params, restored) = again.restore(&fresh, &kernel).unwrap();
        kernel.launch(&config, &params).unwrap();
        let after = restored.contents(&again, fresh.device().memory()).unwrap();
        let of = |address: u64| {
            let at = again.regions.iter().position(|r| r.address == address).unwrap();
            (&again.regions[at].bytes, &after[at])
        };
        assert_eq!(of(out.address()).1[..4], 42u32.to_le_bytes());
        assert_eq!(of(first.address()).0, of(first.address()).1, "pointers are as they were captured");
        let variable = again.regions.iter().position(|r| matches!(r.role, Role::Variable(..))).unwrap();
        assert_eq!(after[variable], 2u32.to_le_bytes());
    }

    #[test]
    fn damaged_captures_are_errors() {
        let folder = std::env::temp_dir().join(format!("margay-damaged-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert!(Capture::read(&folder).unwrap_err().contains("launch.json"));
        for (text, wanted) in [
            ("{", "launch.json"),
            ("{\"format\": 99}", "format"),
            (
                "{\"format\": 1, \"modules\": [], \"memory\": [{\"kind\": \"allocation\", \"address\": \"0x10\", \"bytes\": 99}]}",
                "memory",
            ),
        ] {
            fs::write(folder.join(DESCRIPTION), text).unwrap();
            fs::write(folder.join(MEMORY), [0; 8]).unwrap();
            assert!(Capture::read(&folder).unwrap_err().contains(wanted), "{text}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
