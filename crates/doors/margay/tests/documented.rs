//! Every command that the README and the help texts show does what they say.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap().to_path_buf()
}

const MARGAY: &str = env!("CARGO_BIN_EXE_margay");

/// Whether `margay exec` can work: its libraries are other packages, which a test of the whole workspace has built beside it.
fn has_libraries() -> bool {
    Path::new(MARGAY).with_file_name("libmargay_redirect.so").is_file()
}

/// Runs a line as a shell does, with this `margay` first in its path; the exit code, and all that it printed.
fn shell(line: &str, folder: &Path) -> (i32, String) {
    let own = Path::new(MARGAY).parent().unwrap();
    let path = std::env::join_paths(
        [own.to_path_buf(), folder.join("bin")]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    // Files of compiled code stay with the test.
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", path.unwrap())
        .env("MARGAY_CACHE_DIR", folder.join("cache"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = [output.stdout, output.stderr].map(|s| String::from_utf8_lossy(&s).into_owned()).concat();
    (output.status.code().unwrap_or(-1), printed)
}

/// A folder with the files that the examples name.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("bin")).unwrap();
    folder
}

#[test]
fn readme_commands_run() {
    let folder = scratch("readme");
    for file in fs::read_dir(root().join("examples")).unwrap().flatten() {
        if file.path().extension().is_some_and(|e| e == "ptx") {
            fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
    }
    program(&folder.join("a.out"));
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let lines: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("$ margay ")).collect();
    assert!(lines.len() >= 5, "{lines:?}");
    for line in lines {
        if line.starts_with("exec ") && !has_libraries() {
            continue;
        }
        let (code, printed) = shell(&format!("margay {line}"), &folder);
        assert_eq!(code, 0, "margay {line}\n{printed}");
    }
}

/// A captured launch of [`KERNEL`].
fn captured(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("0.ptx"), KERNEL).unwrap();
    fs::write(folder.join("memory.bin"), [0; 64]).unwrap();
    let description = r#"{
        "format": 1, "kernel": "main", "grid": [1, 1, 1], "block": [16, 1, 1], "cluster": null, "shared": 0,
        "cooperative": false, "stack": 1024, "heap": 8388608, "device": "test", "parameters": "0010000000700000",
        "modules": ["k.ptx"], "memory": [{ "kind": "allocation", "address": "0x700000001000", "bytes": 64 }]
    }"#;
    fs::write(folder.join("launch.json"), description).unwrap();
}

#[test]
fn a_captured_launch_replays_equally_on_every_engine() {
    let folder = scratch("replay");
    captured(&folder.join("launches/0007"));
    let mut digests = Vec::new();
    for engine in ["reference", "tiered"] {
        let (code, printed) = shell(&format!("margay replay launches/0007 --engine {engine} --output after"), &folder);
        assert_eq!(code, 0, "{printed}");
        // Thread 0 writes 0, which was there; the others change one byte each.
        assert!(printed.contains("allocation of 64 bytes at 0x700000001000: 15 bytes changed"), "{printed}");
        let after: Vec<u8> = (0u32..16).flat_map(u32::to_le_bytes).collect();
        assert_eq!(fs::read(folder.join("after")).unwrap(), after);
        digests.push(printed.lines().last().unwrap().to_owned());
    }
    assert_eq!(digests[0], digests[1]);
    let (code, printed) = shell("margay replay launches/0008", &folder);
    assert!(code == 2 && printed.contains("launch.json"), "{code}: {printed}");
}

/// A program that does nothing, in the place of a user's.
fn program(path: &Path) {
    fs::write(path, "#!/bin/sh\nexit 0\n").unwrap();
    let status = Command::new("chmod").arg("+x").arg(path).status().unwrap();
    assert!(status.success());
}

const KERNEL: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .entry main(.param .u64 out) {
    .reg .b32 %i;
    .reg .b64 %p, %o;
    mov.u32 %i, %tid.x;
    ld.param.u64 %p, [out];
    mul.wide.u32 %o, %i, 4;
    add.s64 %p, %p, %o;
    st.global.u32 [%p], %i;
    ret;
}
";

const EMPTY: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

const BLUR: &str = "\
.version 8.0
.target sm_80
.address_size 64
.visible .entry blur(.param .u64 from, .param .u64 to) {
    .reg .b32 %x, %y, %n, %k;
    .reg .f32 %u, %v, %r, %g, %b, %a;
    .reg .b64 %t, %s;
    ld.param.u64 %t, [from];
    ld.param.u64 %s, [to];
    mov.u32 %x, %ctaid.x;
    mov.u32 %n, %ntid.x;
    mov.u32 %k, %tid.x;
    mad.lo.u32 %x, %x, %n, %k;
    mov.u32 %y, %ctaid.y;
    mov.u32 %n, %ntid.y;
    mov.u32 %k, %tid.y;
    mad.lo.u32 %y, %y, %n, %k;
    cvt.rn.f32.u32 %u, %x;
    cvt.rn.f32.u32 %v, %y;
    mul.f32 %u, %u, 0f3D000000;
    mul.f32 %v, %v, 0f3D000000;
    tex.2d.v4.f32.f32 {%r, %g, %b, %a}, [%t, {%u, %v}];
    shl.b32 %x, %x, 2;
    sust.b.2d.b32.trap [%s, {%x, %y}], %r;
    ret;
}
";

/// The examples of a help text: lines below "Examples:", those that were wrapped joined, what explains them cut off.
fn examples(help: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in help.lines().skip_while(|l| *l != "Examples:").skip(1).take_while(|l| l.starts_with("  ")) {
        let text = line.trim();
        let command = text.split("   ").next().unwrap_or_default().trim_end_matches('\\').trim();
        let begins = ["margay ", "nvcc ", "export ", "eval "].iter().any(|w| text.starts_with(w));
        match found.last_mut() {
            _ if begins => found.push(command.to_string()),
            // The explanation of the line before, wrapped: it names no option.
            Some(_) if !text.starts_with("--") && !text.contains('=') && !text.contains('-') => {}
            Some(last) => *last = format!("{last} {command}"),
            None => {}
        }
    }
    found
}

#[test]
fn help_examples_run() {
    let folder = scratch("help");
    for (name, text) in
        [("kernel", KERNEL), ("k", KERNEL), ("a", KERNEL), ("b", KERNEL), ("lib", EMPTY), ("blur", BLUR)]
    {
        fs::write(folder.join(name).with_extension("ptx"), text).unwrap();
    }
    fs::copy(root().join("examples/saxpy.ptx"), folder.join("saxpy.ptx")).unwrap();
    for name in ["vector_add", "a.out", "bin/python", "train.py", "app.py"] {
        program(&folder.join(name));
    }
    captured(&folder.join("launches/0007"));
    // nvcc is not here: what it would print.
    fs::write(folder.join("bin/nvcc"), "#!/bin/sh\ncat k.ptx\n").unwrap();
    Command::new("chmod").arg("+x").arg(folder.join("bin/nvcc")).status().unwrap();
    let (code, printed) = shell("margay run k.ptx --block 32 --arg u32[32]=zeros:ref.npy", &folder);
    assert_eq!(code, 0, "{printed}");
    fs::copy(folder.join("ref.npy"), folder.join("x.npy")).unwrap();
    let (_, top) = shell("margay --help", &folder);
    let list = top.lines().skip_while(|l| *l != "Commands:").skip(1).take_while(|l| !l.is_empty());
    let commands: Vec<&str> =
        list.filter(|l| !l.starts_with("     ")).filter_map(|l| l.split_whitespace().next()).collect();
    assert!(commands.contains(&"run") && commands.contains(&"check"), "{commands:?}");
    let mut tried = 0;
    // `margay ptxas` takes the options of ptxas and no others.
    for command in commands.into_iter().filter(|c| !["help", "ptxas"].contains(c)).chain([""]) {
        let (code, help) = shell(&format!("margay {command} --help"), &folder);
        assert_eq!(code, 0, "{help}");
        for line in examples(&help) {
            // Placeholders of the top page, which `run --help` shows with everything.
            let placeholder = command.is_empty() && line.starts_with("margay run");
            if placeholder || line.contains("margay exec") && !has_libraries() {
                continue;
            }
            let quoted = line.replace("tex:u8[32,32]=rand:1", "'tex:u8[32,32]=rand:1'");
            let quoted = quoted.split(' ').map(quote).collect::<Vec<_>>().join(" ");
            let (code, printed) = shell(&quoted, &folder);
            assert!(matches!(code, 0 | 1) && !printed.contains("panicked"), "{line}: {code}\n{printed}");
            assert!(!printed.contains("error: "), "{line}\n{printed}");
            tried += 1;
        }
    }
    assert!(tried >= 12, "only {tried} examples found");
}

/// Brackets and braces reach `margay` as they are.
fn quote(word: &str) -> String {
    let special = word.contains(['[', ']', '{', '}']) && !word.contains('\'');
    if special { format!("'{word}'") } else { word.to_string() }
}
