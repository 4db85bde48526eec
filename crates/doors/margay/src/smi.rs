//! `nvidia-smi`, by which scripts look for a GPU, its name and its memory: lists and queries about margay's devices.

use crate::{
    host,
    profile::{CLOCK, CUDA, DRIVER, Profile, bus_place, uuid_text},
};

/// The name under which programs call it.
pub const NAME: &str = "nvidia-smi";

/// The beginnings of the names of fields without a counterpart on a CPU.
const NOT_AVAILABLE: [&str; 18] = [
    "accounting.",
    "clocks",
    "compute_mode",
    "display_",
    "ecc.",
    "encoder.",
    "enforced.",
    "fan.",
    "gpu_serial",
    "inforom.",
    "mig.mode.",
    "pcie.",
    "persistence_mode",
    "power.",
    "pstate",
    "serial",
    "temperature.",
    "utilization.",
];

const HELP: &str = "usage: nvidia-smi [-L | --query-gpu=FIELDS --format=csv[,noheader][,nounits]] [-i DEVICE]

margay's devices, as programs see them. FIELDS: index, name, uuid, compute_cap, memory.total, memory.free, memory.used,
driver_version, count, pci.bus_id, those of clocks (clocks.max.sm), and those of sensors, which are [N/A].
";

/// The output for a command line; an error message if it has unsupported options.
pub fn run(words: &[String], profile: &Profile) -> Result<String, String> {
    let mut fields = None;
    let mut format = String::new();
    let mut devices: Vec<u32> = (0..profile.count).collect();
    let (mut list, mut processes) = (false, false);
    let mut words = words.iter().flat_map(|word| match word.split_once('=') {
        Some((name, value)) if name.starts_with("--") => vec![name, value],
        _ => vec![word.as_str()],
    });
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("Option {word} is missing its value."));
        match word {
            "-h" | "--help" => return Ok(HELP.into()),
            "-L" | "--list-gpus" => list = true,
            "--query-gpu" => fields = Some(value()?.to_string()),
            "--query-compute-apps" => {
                value()?;
                processes = true;
            }
            "--format" => format = value()?.to_string(),
            "-i" | "--id" => devices = selected(value()?, &devices)?,
            _ => {
                return Err(format!("Invalid combination of input arguments: margay does not support {word}.\n{HELP}"));
            }
        }
    }
    let formats: Vec<&str> = format.split(',').map(str::trim).collect();
    let has = |word: &str| formats.contains(&word);
    if processes {
        return Ok(String::new()); // other processes' use of memory is not known
    }
    match fields {
        Some(_) if !has("csv") => Err("\"--format=\" switch is missing. It has to contain csv.".into()),
        Some(fields) => {
            let fields: Vec<&str> = fields.split(',').map(str::trim).collect();
            let units = !has("nounits");
            let header = fields.iter().map(|field| titled(field, units)).collect::<Vec<_>>().join(", ");
            let mut lines = if has("noheader") { Vec::new() } else { vec![header] };
            for device in devices {
                let values = fields.iter().map(|field| value(profile, device, field, units));
                lines.push(values.collect::<Result<Vec<_>, _>>()?.join(", "));
            }
            Ok(lines.join("\n") + "\n")
        }
        None if list => {
            let line = |device| format!("GPU {device}: {} (UUID: GPU-{})\n", profile.shown_name(), uuid_text(device));
            Ok(devices.into_iter().map(line).collect())
        }
        None => Ok(table(profile, &devices)),
    }
}

/// The devices that a list names by number or UUID.
fn selected(list: &str, all: &[u32]) -> Result<Vec<u32>, String> {
    let find =
        |word: &str| all.iter().copied().find(|n| word == n.to_string() || word == format!("GPU-{}", uuid_text(*n)));
    list.split(',').map(|word| find(word.trim()).ok_or_else(|| "No devices were found".to_string())).collect()
}

const MIB: u64 = 1 << 20;

fn is_memory(field: &str) -> bool {
    field.starts_with("memory.")
}

/// Whether a field is the current or maximum rate of a clock, as opposed to the reasons for throttling (`clocks_event_reasons`).
fn is_clock(field: &str) -> bool {
    let Some(clock) = field.strip_prefix("clocks.") else { return false };
    let (when, clock) = clock.split_once('.').unwrap_or(("current", clock));
    ["current", "max", "applications"].contains(&when)
        && ["gr", "graphics", "mem", "memory", "sm", "video"].contains(&clock)
}

fn titled(field: &str, units: bool) -> String {
    match field {
        _ if units && is_memory(field) => format!("{field} [MiB]"),
        _ if units && is_clock(field) => format!("{field} [MHz]"),
        _ => field.into(),
    }
}

fn value(profile: &Profile, device: u32, field: &str, units: bool) -> Result<String, String> {
    let mib = |bytes: u64| format!("{}{}", bytes / MIB, if units { " MiB" } else { "" });
    let (total, free) = (profile.total_memory(), profile.free_memory());
    Ok(match field {
        "index" => device.to_string(),
        "name" | "gpu_name" => profile.shown_name(),
        "uuid" | "gpu_uuid" => format!("GPU-{}", uuid_text(device)),
        "compute_cap" => format!("{}.{}", profile.capability.0, profile.capability.1),
        "memory.total" => mib(total),
        "memory.free" => mib(free),
        "memory.used" => mib(total - free),
        "memory.reserved" => mib(0),
        "driver_version" => DRIVER.into(),
        "count" => profile.count.to_string(),
        "pci.bus_id" | "gpu_bus_id" => format!("00000000:{}", bus_place(device).to_uppercase()),
        // Programs compute the device's rate of operations from it, so it is a number, as NVML's is.
        _ if is_clock(field) => format!("{}{}", CLOCK / 1000, if units { " MHz" } else { "" }),
        _ if NOT_AVAILABLE.iter().any(|begin| field.starts_with(begin)) => "[N/A]".into(),
        _ => return Err(format!("Field \"{field}\" is not a valid field to query.")),
    })
}

fn table(profile: &Profile, devices: &[u32]) -> String {
    let (major, minor) = (CUDA / 1000, CUDA % 1000 / 10);
    let mut text = format!(
        "margay {} on {}    Driver Version: {DRIVER}    CUDA Version: {major}.{minor}\n\n",
        env!("CARGO_PKG_VERSION"),
        host::processor(),
    );
    text.push_str("GPU  Compute  Memory used / total       Name\n");
    for device in devices {
        let (total, free) = (profile.total_memory(), profile.free_memory());
        let memory = format!("{}MiB / {}MiB", (total - free) / MIB, total / MIB);
        let (major, minor) = profile.capability;
        let capability = format!("{major}.{minor}");
        text.push_str(&format!("{device:>3}  {capability:<7}  {memory:<24}  {}\n", profile.shown_name()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(words: &str) -> Result<String, String> {
        let profile = Profile::parse("t4,count=2").unwrap();
        run(&words.split_whitespace().map(String::from).collect::<Vec<_>>(), &profile)
    }

    #[test]
    fn queries_have_a_header_and_units_unless_told_otherwise() {
        let all = answer("--query-gpu=index,name,memory.total,utilization.gpu --format=csv").unwrap();
        assert_eq!(
            all,
            "index, name, memory.total [MiB], utilization.gpu\n0, Tesla T4, 15360 MiB, [N/A]\n1, Tesla T4, 15360 MiB, [N/A]\n"
        );
        let bare = answer("-i 1 --query-gpu compute_cap,memory.total --format=csv,noheader,nounits").unwrap();
        assert_eq!(bare, "7.5, 15360\n");
    }

    #[test]
    fn clocks_are_those_of_the_driver_and_of_nvml() {
        let all = answer("-i 0 --query-gpu=clocks.max.sm,clocks.mem --format=csv").unwrap();
        assert_eq!(all, "clocks.max.sm [MHz], clocks.mem [MHz]\n1000 MHz, 1000 MHz\n");
        let bare = answer(
            "-i 0 --query-gpu=clocks.max.sm,clocks.current.graphics,clocks_event_reasons.active --format=csv,noheader,nounits",
        );
        assert_eq!(bare.unwrap(), "1000, 1000, [N/A]\n");
    }

    #[test]
    fn lists_name_and_uuid() {
        let list = answer("-L").unwrap();
        assert!(
            list.starts_with("GPU 0: Tesla T4 (UUID: GPU-6d617267-6179-2d63-7075-2d3000000000)\nGPU 1: "),
            "{list}"
        );
        assert!(answer("").unwrap().contains("CUDA Version: 13.5"));
    }

    #[test]
    fn what_is_not_supported_is_an_error_that_names_it() {
        for (words, wanted) in [
            ("--query-gpu=colour --format=csv", "\"colour\""),
            ("--query-gpu=name", "--format="),
            ("-q", "-q"),
            ("-i 2", "No devices"),
            ("-i", "-i"),
        ] {
            let error = answer(words).unwrap_err();
            assert!(error.contains(wanted), "{words}: {error}");
        }
    }
}
