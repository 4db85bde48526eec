//! Builds a C program against the library and runs it: the API as programs meet it.

mod common;

use margay::capture::Capture;
use std::{
    env,
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Command, Stdio},
};

/// Builds a program in a folder of its own, beside the library under its name.
fn build(name: &str) -> (PathBuf, PathBuf) {
    let folder = common::folder(&format!("cuda-{name}"), &[("libcuda.so.1", "libcuda.so")]);
    let client = folder.join(name);
    common::compile(&format!("{name}.c"), &client, [folder.join("libcuda.so.1")]);
    (folder, client)
}

#[test]
fn the_device_is_the_one_that_the_user_describes() {
    let (folder, client) = build("device");
    let run = |variable: &str, value: &str| {
        let output = Command::new(&client).env("LD_LIBRARY_PATH", &folder).env(variable, value).output().unwrap();
        let text = [output.stdout, output.stderr].map(|s| String::from_utf8_lossy(&s).into_owned()).concat();
        (output.status.success(), text)
    };
    let (ended_well, text) = run("MARGAY_DEVICE", "t4,sms=3,memory=64M,count=2");
    assert!(ended_well && text == "right\n", "{text}");
    // What nobody understands is an error that names it.
    for (variable, value) in [("MARGAY_DEVICE", "voodoo2"), ("MARGAY_CHECK", "everything"), ("MARGAY_ENGINE", "diesel")]
    {
        let (ended_well, text) = run(variable, value);
        assert!(!ended_well && text.contains(variable) && text.contains(&format!("`{value}`")), "{variable}: {text}");
    }
    // `CUDA_VISIBLE_DEVICES` selects and orders devices; the first invalid one ends its list.
    let run = |selected: &str| {
        let mut command = Command::new(&client);
        command.env("LD_LIBRARY_PATH", &folder).env("MARGAY_DEVICE", "t4,sms=3,memory=64M,count=3");
        let output = command.env("CUDA_VISIBLE_DEVICES", selected).output().unwrap();
        let text = [output.stdout, output.stderr].map(|s| String::from_utf8_lossy(&s).into_owned()).concat();
        (output.status.success(), text)
    };
    for two in ["2,0", "1,2,-1,0"] {
        assert_eq!(run(two), (true, "right\n".into()), "{two}");
    }
    for none in ["", "3"] {
        let (ended_well, text) = run(none);
        let why = format!("CUDA_VISIBLE_DEVICES={none} selects none of margay's devices: there are 3, from 0");
        assert!(!ended_well && text.contains(&why), "{none}: {text}");
    }
}

#[test]
fn images_without_ptx_are_named() {
    let (folder, client) = build("images");
    let image = folder.join("code.cubin");
    std::fs::write(&image, b"\x7fELF: machine code").unwrap();
    let output = Command::new(&client).arg(&image).env("LD_LIBRARY_PATH", &folder).output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(said, "right\n", "{errors}");
    let whole = format!("an image of {} is GPU machine code and contains no PTX", image.display());
    assert!(errors.contains(&whole) && errors.contains("part of it: only PTX can be linked"), "{errors}");
    // Each of the two compilers that leave PTX out by an option has one that includes it.
    assert!(errors.contains("code=compute_80") && errors.contains("--cuda-include-ptx=all"), "{errors}");
}

#[test]
fn devices_have_parts_and_streams_of_their_own() {
    let (folder, client) = build("parts");
    let mut command = Command::new(&client);
    command.env("LD_LIBRARY_PATH", &folder).env("MARGAY_DEVICE", "h100,sms=16,count=2");
    let ended = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success() && out == "right\n", "{out}{err}");
    assert!(err.contains("is too large: 16 multiprocessors hold 8 of them each"), "{err}");
}

#[test]
fn texture_references_are_bound() {
    let (folder, client) = build("references");
    for engine in ["reference", "tiered"] {
        let ended =
            Command::new(&client).env("LD_LIBRARY_PATH", &folder).env("MARGAY_ENGINE", engine).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert!(ended.status.success() && out == "right\n", "{engine}: {out}{err}");
    }
}

#[test]
fn streams_run_beside_the_program() {
    let (folder, client) = build("streams");
    let run = |engine: &str, arguments: &[&str]| {
        let mut command = Command::new(&client);
        command.args(arguments).env("LD_LIBRARY_PATH", &folder).env("MARGAY_ENGINE", engine);
        command.env("XDG_CACHE_HOME", folder.join("cache")).output().unwrap()
    };
    for engine in margay::engines().iter().map(|e| e.name()).filter(|name| *name != "simd-full") {
        let ended = run(engine, &[]);
        let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
        assert!(ended.status.success() && out == "right\n", "{engine}:\n{out}{err}");
        assert_eq!(err.matches("error: ").count(), 1, "the fault is reported once:\n{err}");
        // A program ends although its work does not, nor what compiles its kernels.
        let _ = std::fs::remove_dir_all(folder.join("cache"));
        let left = run(engine, &["leave"]);
        assert!(left.status.success() && left.stderr.is_empty(), "{engine}: {left:?}");
    }
}

/// Each name begins with what its program is. The order of calls alone decides, so nothing depends on time.
#[test]
fn races_between_streams_are_found() {
    let (folder, client) = build("order");
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/order.c")).unwrap();
    let mut names: Vec<&str> = text.split("IS(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    names.push("wrong graph");
    assert!(names.len() > 20);
    let all = margay::engines();
    let engines = all.iter().map(|e| e.name()).filter(|name| ["reference", "simd"].contains(name));
    for (engine, name) in engines.flat_map(|engine| names.iter().map(move |name| (engine, name))) {
        let mut command = Command::new(&client);
        let command = command.arg(name).env("LD_LIBRARY_PATH", &folder).env("MARGAY_CHECK", "races");
        let run = command.env("MARGAY_ENGINE", engine).env("XDG_CACHE_HOME", folder.join("cache")).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert_eq!(out, "done\n", "{engine}, {name}: {err}");
        assert_eq!(
            err.matches("error: race: ").count(),
            usize::from(name.starts_with("wrong")),
            "{engine}, {name}:\n{err}"
        );
    }
    // Of 128 words, the kernels write 64 at an address: what no launch, copy or fill touches is unused.
    for (name, unused) in [("right halves", None), ("wrong writes", Some("unused: 252 of the 512 bytes at "))] {
        let run =
            Command::new(&client).arg(name).env("LD_LIBRARY_PATH", &folder).env("MARGAY_CHECK", "unused").output();
        let err = String::from_utf8_lossy(&run.unwrap().stderr).into_owned();
        assert_eq!(err.matches("error: ").count(), usize::from(unused.is_some()), "{name}:\n{err}");
        assert!(unused.is_none_or(|words| err.contains(words)), "{name}:\n{err}");
    }
}

#[test]
fn processes_share_memory_and_events() {
    let (folder, client) = build("processes");
    let run = Command::new(&client).env("LD_LIBRARY_PATH", &folder).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out == "right\n", "{out}{err}");
}

/// What `margay exec` reports at the end is reported also if a signal ends the program, unless the program handles the signal itself.
#[test]
fn the_end_by_a_signal_is_told() {
    let (folder, client) = build("interrupted");
    let run = |what: &str, signal: Option<&str>, stats: &str| {
        let mut command = Command::new(&client);
        command.arg(what).env("LD_LIBRARY_PATH", &folder).env("MARGAY_STATS", stats).env("MARGAY_FAULT_EXIT", "1");
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        if let Some(signal) = signal {
            let mut line = String::new();
            BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "runs\n");
            let killed = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
            assert!(killed.unwrap().success());
        }
        let ended = child.wait_with_output().unwrap();
        (ended.status.signal().or(ended.status.code()), String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    for (what, signal, number) in [("", Some("TERM"), 15), ("", Some("INT"), 2), ("abort", None, 6)] {
        let (ended, text) = run(what, signal, "1");
        assert_eq!(ended, Some(number), "{text}");
        assert!(
            text.contains(": 0 launches") && text.contains("\n  under way for ") && text.contains(": waits"),
            "{text}"
        );
        assert_eq!(run(what, signal, ""), (Some(number), String::new()), "nothing was asked for");
    }
    assert_eq!(run("own", Some("TERM"), "1"), (Some(3), String::new()), "the program has a handler of its own");
    let (ended, text) = run("fault", Some("TERM"), "");
    assert!(
        ended == Some(15) && text.contains("1 launch failed: ") && text.contains("; SIGTERM ended the process"),
        "{text}"
    );
}

#[test]
fn functions_can_be_called_at_exit() {
    let (folder, client) = build("ending");
    let run = Command::new(&client).env("LD_LIBRARY_PATH", &folder).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out == "right\n" && err.is_empty(), "{out}{err}");
}

/// By any thread, at any moment: `exit` destroys a library's data, and LLVM's must outlive the threads that compile.
#[test]
fn processes_end_while_kernels_compile() {
    let (folder, client) = build("leaving");
    for milliseconds in [5, 100, 250, 400, 500] {
        let mut command = Command::new(&client);
        command.arg(milliseconds.to_string()).env("LD_LIBRARY_PATH", &folder);
        let run = command.env("MARGAY_ENGINE", "simd").env("MARGAY_CACHE", "off").output().unwrap();
        let err = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.code() == Some(7) && err.is_empty(), "{milliseconds} ms: {}\n{err}", run.status);
    }
}

#[test]
fn kernels_launch_kernels() {
    let (folder, client) = build("launches");
    for engine in margay::engines().iter().map(|e| e.name()).filter(|name| *name != "simd-full") {
        let mut command = Command::new(&client);
        let run = command.arg("deep").env("LD_LIBRARY_PATH", &folder).env("MARGAY_ENGINE", engine).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success() && out == "right\n", "{engine}:\n{out}{err}");
        assert!(err.contains("launches from device code are nested more than 24 deep: `deeper`"), "{err}");
    }
    // They are compared with the grids that launch them.
    for (argument, races) in [("waits", 0), ("hasty", 1), ("looks", 1), ("tails", 0)] {
        let mut command = Command::new(&client);
        let command = command.arg(argument).env("LD_LIBRARY_PATH", &folder).env("MARGAY_CHECK", "races");
        let err = String::from_utf8_lossy(&command.output().unwrap().stderr).into_owned();
        let pair = format!("by `append` and a {} by `{argument}`", if argument == "hasty" { "write" } else { "read" });
        assert_eq!(
            (err.matches("error: ").count() > 0, err.contains(&pair)),
            (races > 0, races > 0),
            "{argument}: {err}"
        );
    }
    // Grids that kernels launch are checked as others are.
    for (argument, races) in [("right", 0), ("careless", 1)] {
        let mut command = Command::new(&client);
        let command = command.arg(argument).env("LD_LIBRARY_PATH", &folder).env("MARGAY_CHECK", "races");
        let err = String::from_utf8_lossy(&command.output().unwrap().stderr).into_owned();
        assert_eq!(
            (err.matches("error: ").count(), err.matches("in `clash`").count()),
            (races, 2 * races),
            "{argument}: {err}"
        );
    }
}

#[test]
fn captures_forbid_what_they_cannot_see() {
    let (folder, client) = build("captures");
    let run = Command::new(&client).env("LD_LIBRARY_PATH", &folder).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out == "right\n", "{out}{err}");
}

#[test]
fn operations_limits_and_names_are_as_documented() {
    let (folder, client) = build("operations");
    let launches = folder.join("launches");
    let _ = std::fs::remove_dir_all(&launches);
    let mut command = Command::new(&client);
    command.env("LD_LIBRARY_PATH", &folder).env("MARGAY_DEVICE", "memory=64M,count=2");
    let run = command.env("MARGAY_CAPTURE", &launches).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && out == "right\n", "{out}{err}");

    // Its launches were captured, and run alone.
    let capture = Capture::read(&launches.join("0001")).unwrap();
    assert_eq!((&*capture.kernel, capture.regions.len()), ("twice", 1));
    assert_eq!(capture.regions[0].bytes[..4], 21u32.to_le_bytes());
    let context = margay::device().unwrap().context();
    let module = margay::Module::parse(&capture.modules[0].1).unwrap().check().unwrap().load(&context).unwrap();
    let kernel = module.kernel("twice").unwrap();
    let (params, restored) = capture.restore(&context, &kernel).unwrap();
    kernel.launch(&margay::LaunchConfig::of(capture.shape), &params).unwrap();
    let after = restored.contents(&capture, context.device().memory()).unwrap();
    assert_eq!(after[0][..4], 42u32.to_le_bytes());
    assert_eq!(Capture::read(&launches.join("0002")).unwrap().kernel, "increment");
    assert_eq!(Capture::read(&launches.join("0003")).unwrap().kernel, "decide");
    assert!(!launches.join("0004").exists());

    // A wait that nobody ends is reported, and does not keep the program from its end.
    let run = command.env_remove("MARGAY_CAPTURE").arg("wait").output().unwrap();
    let err = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(3), "{err}");
    assert!(err.contains("`cuStreamWaitValue32`") && err.contains("is 0x2b, expected at least 0x3e8"), "{err}");
}

#[test]
fn a_c_program_runs() {
    let (folder, client) = build("client");
    // A sanitizer may be unable to follow one of them.
    let chosen = env::var("MARGAY_TEST_ENGINE").ok();
    let tried = |name: &&str| *name != "simd-full" && chosen.as_ref().is_none_or(|c| c.split(' ').any(|c| c == *name));
    for engine in margay::engines().iter().map(|e| e.name()).filter(tried) {
        let mut run = Command::new(&client);
        let run = run.env("LD_LIBRARY_PATH", &folder).env("MARGAY_ENGINE", engine).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success(), "{engine}:\n{out}{err}");
        assert!(err.contains("out of bounds") && err.contains("[%d1]"), "the fault is reported with its place:\n{err}");
        let opting_in =
            "65536 bytes of dynamic shared memory exceeds the 49152 that the kernel may have; `cudaFuncSetAttribute`";
        assert!(err.contains(opting_in), "{err}");
    }
}
