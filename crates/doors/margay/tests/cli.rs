//! The command line from outside: exit codes, formats, messages that name what is wrong.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap().to_path_buf()
}

fn margay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_margay")).args(args).current_dir(root()).output().unwrap()
}

fn with_input(args: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_margay"));
    let pipes = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    // Whoever refuses the command line ends without having read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder of its own for a test's files.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&path).unwrap();
    path
}

const GOOD: &str = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k() { ret; }\n";
const BAD: &str = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry k() { frob; ret; }\n";

#[test]
fn check_ends_with_the_documented_codes() {
    assert_eq!(code(&with_input(&["check", "-"], GOOD)), 0);
    let bad = with_input(&["check", "-"], BAD);
    assert_eq!(code(&bad), 1);
    assert!(out(&bad).contains("frob") && out(&bad).contains("<stdin>:4:"), "{}", out(&bad));
    assert_eq!(code(&margay(&["check", "no/such/file.ptx"])), 2);
    assert_eq!(code(&margay(&["check"])), 2);
    assert_eq!(code(&margay(&["frobnicate"])), 2);
}

#[test]
fn json_is_one_object_a_line_with_the_agreed_fields() {
    let output = with_input(&["check", "--message-format", "json", "-"], BAD);
    let line = out(&output);
    assert_eq!(line.lines().count(), 1, "{line}");
    let object: serde_json::Value = serde_json::from_str(line.trim()).unwrap();
    assert_eq!(object["severity"], "error");
    assert_eq!((object["line"].as_u64(), object["column"].as_u64()), (Some(4), Some(23)));
    assert_eq!(object["file"], "<stdin>");
    assert!(object["code"].as_str().unwrap().starts_with('E'));
    assert!(object["message"].as_str().unwrap().contains("frob"));
}

#[test]
fn sarif_and_github_annotations() {
    let log: serde_json::Value =
        serde_json::from_slice(&with_input(&["check", "--message-format", "sarif", "-"], BAD).stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["level"], "error");
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 4);
    let rule = result["ruleIndex"].as_u64().unwrap() as usize;
    assert_eq!(log["runs"][0]["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
    let github = out(&with_input(&["check", "--message-format", "github", "-"], BAD));
    assert!(github.starts_with("::error file=<stdin>,line=4,col=23,"), "{github}");
}

#[test]
fn several_files_are_reported_in_their_order() {
    let folder = scratch("several");
    let names: Vec<String> = (0..6)
        .map(|i| {
            let path = folder.join(format!("{i}.ptx"));
            std::fs::write(&path, if i % 2 == 0 { BAD } else { GOOD }).unwrap();
            path.display().to_string()
        })
        .collect();
    let mut args = vec!["check", "--message-format", "github"];
    args.extend(names.iter().map(String::as_str));
    let output = margay(&args);
    let files: Vec<String> = out(&output).lines().map(|l| l.split(['=', ',']).nth(1).unwrap().to_string()).collect();
    assert_eq!(files, [&names[0], &names[2], &names[4]].map(String::clone));
}

#[test]
fn levels_of_lints() {
    assert!(err(&with_input(&["check", "-D", "no-such-lint", "-"], GOOD)).contains("unknown lint `no-such-lint`"));
    assert!(err(&with_input(&["check", "-A", "E0001", "-"], GOOD)).contains("is an error, not a lint"));
    assert_eq!(code(&with_input(&["check", "--deny", "warnings", "-"], GOOD)), 0);
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{ .reg .b32 a, b; add.u32 a, b, 1; ret; }\n";
    let check = |levels: &[&str]| {
        let output = with_input(&[&["check", "--message-format", "github"], levels, &["-"]].concat(), text);
        (code(&output), out(&output).split([' ', ',']).next().unwrap_or_default().to_string())
    };
    let (warning, error, none) = ((0, "::warning".into()), (1, "::error".into()), (0, String::new()));
    assert_eq!(check(&[]), warning);
    assert_eq!(check(&["-D", "warnings"]), error);
    assert_eq!(check(&["-A", "warnings"]), none);
    assert_eq!(check(&["-A", "warnings", "-W", "never-written"]), warning);
    assert_eq!(check(&["-D", "warnings", "-A", "never-written"]), none);
}

#[test]
fn fmt_is_idempotent_and_lists_files_that_it_would_change() {
    let once = out(&with_input(&["fmt", "-"], GOOD));
    let twice = out(&with_input(&["fmt", "-"], &once));
    assert_eq!(once, twice);
    let file = scratch("fmt").join("k.ptx");
    std::fs::write(&file, ".version 7.0\n.target sm_50\n\n\n\n.entry k(){ret;}\n").unwrap();
    let path = file.display().to_string();
    assert_eq!(code(&margay(&["fmt", "--check", &path])), 1);
    assert_eq!(code(&margay(&["fmt", &path])), 0);
    assert_eq!(code(&margay(&["fmt", "--check", &path])), 0);
}

#[test]
fn abi_bindgen_explain_doc_and_completions_answer() {
    let table = out(&margay(&["abi", "examples/structs.ptx", "--function", "step"]));
    assert!(table.contains("step_param_2") && table.contains("40"), "{table}");
    let json: serde_json::Value =
        serde_json::from_slice(&margay(&["abi", "examples/structs.ptx", "--json"]).stdout).unwrap();
    assert_eq!(json["abi"], "ptx");
    assert!(out(&margay(&["abi", "examples/structs.ptx", "--html"])).contains("</html>"));
    assert!(err(&margay(&["abi", "examples/structs.ptx", "--abi", "vax"])).contains("`sysv`"));
    // Declarations that nothing defines, which the manual allows and ptxas rejects, can be explained like a header.
    let header = scratch("abi").join("header.ptx");
    let declared = ".version 8.0\n.target sm_80\n.address_size 64\n.func f(.param .align 8 .b8 s[24]);\n";
    std::fs::write(&header, declared).unwrap();
    assert!(out(&margay(&["abi", &header.display().to_string()])).contains("function f (declared)"));
    assert!(out(&margay(&["bindgen", "examples/structs.ptx"])).contains("step_param_1) == 32"));
    assert!(out(&margay(&["bindgen", "--lang", "rust", "examples/structs.ptx"])).contains("pub struct StepParams"));
    assert!(out(&margay(&["explain", "E0001"])).contains("E0001"));
    assert_eq!(code(&margay(&["explain", "E9999"])), 2);
    assert!(out(&margay(&["doc", "add.rn.f32"])).contains("add{.rn"));
    assert_eq!(code(&margay(&["doc", "frob"])), 2);
    assert!(out(&margay(&["completions", "bash"])).contains("margay"));
}

fn run_saxpy(extra: &[&str]) -> Output {
    let mut args = vec!["run", "examples/saxpy.ptx", "--grid", "1", "--block", "32"];
    args.extend(extra);
    margay(&args)
}

#[test]
fn mismatched_arguments_are_reported_by_name() {
    let count = run_saxpy(&["--arg", "3"]);
    assert_eq!(code(&count), 2);
    assert!(err(&count).contains("takes 4 arguments, found 1"), "{}", err(&count));
    let cases: [(&[&str], &str); 6] = [
        (&["1.5", "2", "f32[8]=iota", "f32[8]=iota"], "argument 0 (`saxpy_param_0`, .u32): `1.5`"),
        (&["8", "two", "f32[8]=iota", "f32[8]=iota"], "argument 1 (`saxpy_param_1`, .f32): `two`: expected a number"),
        (&["8", "f32[8]=iota", "f32[8]=iota", "f32[8]=iota"], "a buffer requires a pointer parameter"),
        (&["8", "2", "no.npy", "f32[8]=iota"], "cannot read no.npy"),
        (&["8", "2", "f32[8]=iota", "hex:00"], "found 1 bytes for a parameter of 8 bytes"),
        (&["8", "2", "f32[8]=iota", "f99[8]=iota"], "`f99` is not an element type"),
    ];
    for (specs, wanted) in cases {
        let args: Vec<&str> = specs.iter().flat_map(|s| ["--arg", s]).collect();
        let output = run_saxpy(&args);
        assert_eq!(code(&output), 2, "{specs:?}");
        assert!(err(&output).contains(wanted), "{specs:?}: {}", err(&output));
    }
    let other = run_saxpy(&["--kernel", "nope"]);
    assert!(err(&other).contains("no kernel `nope`; there is `saxpy`"), "{}", err(&other));
}

const SAXPY: [&str; 8] = ["--arg", "32", "--arg", "-2", "--arg", "f32[32]=iota", "--arg", "f32[32]=fill:1"];

#[test]
fn results_are_printed_saved_and_compared() {
    let folder = scratch("results");
    let (saved, reference) = (folder.join("y.npy"), folder.join("ref.npy"));
    let y = format!("f32[32]=fill:1:{}", saved.display());
    let mut args = SAXPY.to_vec();
    args[7] = &y;
    let printed = run_saxpy(&[&args[..], &["--print", "3[0..4]", "--stats", "json", "--repeat", "1"]].concat());
    assert_eq!(code(&printed), 0, "{}", err(&printed));
    let text = out(&printed);
    assert!(text.contains("argument 3: f32[32]\n  [0] 1 -1 -3 -5\n"), "{text}");
    let stats: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(stats["launches"], 1);
    assert!(["compile_ns", "kernel_ns_min", "kernel_ns_median"].iter().all(|k| stats[k].is_u64()), "{stats}");

    let array = margay::npy::Array::load(&saved).unwrap();
    let values: Vec<f32> = array.data.chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    assert!(values.iter().enumerate().all(|(i, v)| *v == 1.0 - 2.0 * i as f32));
    let mut wrong = array;
    wrong.data[0] = 1;
    wrong.save(&reference).unwrap();
    let expect = format!("3={}", reference.display());
    let compared = run_saxpy(&[&SAXPY[..], &["--expect", &expect]].concat());
    assert_eq!(code(&compared), 1);
    assert!(err(&compared).contains("1 of 32 elements"), "{}", err(&compared));
    let close = run_saxpy(&[&SAXPY[..], &["--expect", &expect, "--rtol", "1e-6"]].concat());
    assert_eq!(code(&close), 0);
    assert!(err(&run_saxpy(&[&SAXPY[..], &["--print", "0"]].concat())).contains("argument 0 is not a buffer"));
}

#[test]
fn a_fault_shows_the_ptx_line_the_source_line_and_the_callers() {
    let specs = ["--arg", "f32[8,24]=zeros", "--arg", "{s32=24, s32=8}"];
    let output = margay(
        &[&["run", "examples/fault.ptx", "--grid", "2,8", "--block", "16", "--threads", "1"], &specs[..]].concat(),
    );
    assert_eq!(code(&output), 1);
    let text = err(&output);
    for part in ["out of bounds", "st.global", "fault.cu:8", "argument 0", "called by `fill`", "thread ("] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn commands_for_one_kernel_ask_which() {
    let head = GOOD.split_once(".visible").unwrap().0;
    let two = format!("{GOOD}.visible .entry other() {{ ret; }}\n");
    for command in [&["run", "-"][..], &["ir", "-", "--stage", "llvm"]] {
        let none = with_input(command, head);
        assert_eq!((code(&none), err(&none).contains("has no kernel")), (2, true), "{}", err(&none));
        let both = with_input(command, &two);
        assert_eq!((code(&both), err(&both).contains("`--kernel`: k, other")), (2, true), "{}", err(&both));
    }
}

#[test]
fn launches_beyond_the_limits_are_refused() {
    let refused = |extra: &[&str]| err(&margay(&[&["run", "examples/saxpy.ptx"], extra, &SAXPY[..]].concat()));
    assert!(refused(&["--block", "2000"]).contains("2000 threads; the limit is 1024"));
    assert!(refused(&["--grid", "0"]).contains("size of zero"));
    assert!(refused(&["--shared", "999999"]).contains("shared memory"));
    assert!(refused(&["--block", "1,2,3,4"]).contains("at most three"));
}

/// Neighbors 32 threads apart exchange words of shared memory, with a barrier in between or without one; a shuffle reads a
/// lane that does not participate.
fn exchange(between: &str, source: u32) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.shared .align 4 .b32 x[64];\n.visible .entry k()\n{{\n\
         .reg .b32 %i, %v, %at;\nmov.u32 %i, %tid.x;\nmov.u32 %at, x;\nmad.lo.u32 %at, %i, 4, %at;\n\
         st.shared.u32 [%at], %i;\n{between}\nxor.b32 %at, %at, 128;\nld.shared.u32 %v, [%at];\n\
         shfl.sync.idx.b32 %v, %v, {source}, 0x1f, 0xffffffff;\nret;\n}}\n"
    )
}

#[test]
fn undefined_uses_are_reported_when_asked() {
    let run = |text: &str, extra: &[&str]| with_input(&[&["run", "-", "--block", "64"], extra].concat(), text);
    let check = ["--check", "undefined"];
    let race = exchange("", 0);
    assert_eq!(code(&run(&race, &[])), 0);
    let output = run(&race, &check);
    assert_eq!(code(&output), 1);
    assert!(
        err(&output).contains("of `x[32]` in shared memory are not ordered") && err(&output).contains("<stdin>:11"),
        "{}",
        err(&output)
    );
    let ordered = run(&exchange("bar.sync 0;", 0), &check);
    assert_eq!(code(&ordered), 0, "{}", err(&ordered));
    // What is loaded counts once it is used.
    let dropped = exchange("bar.sync 0;\nadd.u32 %at, %at, 0;", 0).replace("st.shared.u32 [%at], %i;", "");
    assert_eq!(code(&run(&dropped, &check)), 0);
    let used = dropped
        .replace("\nret;", "\nsetp.eq.u32 %p, %v, 0;\n@%p exit;\nret;")
        .replace(".reg .b32", ".reg .pred %p;\n.reg .b32");
    let unwritten = run(&used, &check);
    assert_eq!(code(&unwritten), 1);
    assert!(err(&unwritten).contains("uninitialized: reads `x["), "{}", err(&unwritten));
    let absent = exchange("bar.sync 0;", 20)
        .replace("shfl", "and.b32 %at, %i, 31;\nsetp.ge.u32 %p, %at, 16;\n@%p ret;\nshfl")
        .replace("0xffffffff", "0xffff")
        .replace(".reg .b32", ".reg .pred %p;\n.reg .b32");
    assert_eq!(code(&run(&absent, &check)), 0, "nobody uses what it reads");
    let output = run(&absent.replace("\nret;\n}", "\nsetp.eq.u32 %p, %v, 0;\n@%p exit;\nret;\n}"), &check);
    assert_eq!(code(&output), 1);
    assert!(err(&output).contains("of lane 20, which is inactive"), "{}", err(&output));
}

#[test]
fn findings_come_as_json_and_over_seeds_and_wrong_words_are_errors() {
    let run = |text: &str, extra: &[&str]| with_input(&[&["run", "-", "--block", "64"], extra].concat(), text);
    let race = exchange("", 0);
    let output = run(&race, &["--check", "races", "--message-format", "json"]);
    assert_eq!(code(&output), 1, "{}", err(&output));
    let found: Vec<serde_json::Value> = out(&output).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(found.len(), 1, "one pair of places: {found:?}");
    assert_eq!(found[0]["kind"], "race");
    assert_eq!(found[0]["times"], 64);
    let lines: Vec<_> = found[0]["threads"].as_array().unwrap().iter().map(|t| t["ptx"]["line"].as_u64()).collect();
    assert!(lines.contains(&Some(11)) && lines.contains(&Some(14)), "{lines:?}");
    let seeds = run(&race, &["--check", "all", "--seeds", "1..3"]);
    assert_eq!(code(&seeds), 1);
    assert!(err(&seeds).contains("first seen with --seed 1"), "{}", err(&seeds));
    assert_eq!(code(&run(&exchange("bar.sync 0;", 0), &["--check", "all", "--seeds", "1..3"])), 0);
    for words in ["rases", "races,", "memory;init"] {
        assert_eq!(code(&run(&race, &["--check", words])), 2, "{words}");
    }
    assert_eq!(code(&run(&race, &["--seeds", "1..3"])), 2, "seeds are for checks");
}

/// A kernel of one warp around a body, for `--check init,sync`.
fn one_warp(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.func (.reg .b32 %r) f(.reg .b32 %a) {{ add.u32 %r, %a, 1; ret; }}\n\
         .visible .entry k(.param .u64 out)\n{{\n.local .align 8 .b8 l[16];\n.reg .b32 %i, %u, %v;\n.reg .b64 %o;\n.reg .pred %p;\n\
         ld.param.u64 %o, [out];\nmov.u32 %i, %tid.x;\n{body}\nret;\n}}\n"
    )
}

#[test]
fn undefined_registers_local_memory_and_ended_lanes_are_reported_when_asked() {
    let check = |body: &str| {
        let arguments = ["run", "-", "--block", "32", "--arg", "u32[32]=zeros", "--check", "init,sync"];
        let output = with_input(&arguments, &one_warp(body));
        (code(&output), err(&output))
    };
    let cases = [
        ("st.global.u32 [%o], %u;", "makes known `%u`"),
        ("add.u32 %v, %u, 1;\nst.global.u32 [%o], %v;", "makes known `%v`"),
        ("setp.eq.u32 %p, %i, 3;\n@%p mov.u32 %u, 1;\nst.global.u32 [%o], %u;", "makes known `%u`"),
        ("@%p st.global.u32 [%o], %i;", "is guarded by `%p`"),
        ("ld.local.u32 %v, [l+4];\nst.global.u32 [%o], %v;", "reads local memory, which the thread has not written"),
        // The lane that is read ends after the others have come.
        (
            "setp.eq.u32 %p, %i, 20;\n@!%p bra W;\nbar.warp.sync 0x100000;\nexit;\n\
             W: shfl.sync.idx.b32 %v, %i, 20, 0x1f, 0xffffffff;",
            "has member mask 0xffffffff, which includes the exited lane 20",
        ),
    ];
    for (body, what) in cases {
        let (code, text) = check(body);
        assert_eq!(code, 1, "{body}");
        assert!(text.contains(what), "{body}:\n{text}");
    }
    let quiet = [
        "ld.local.u32 %v, [l+4];",
        "call (%v), f, (%i);\nst.global.u32 [%o], %v;",
        "st.local.u32 [l], %u;\nst.local.u32 [l+4], %i;\nld.local.u64 %o, [l];",
        "bfi.b32 %v, %i, %u, 0, 8;\nst.global.u32 [%o], %v;",
    ];
    for body in quiet {
        let (code, text) = check(body);
        assert_eq!(code, 0, "{body}:\n{text}");
    }
}

#[test]
fn a_mask_that_leaves_the_lane_out_is_a_warning_and_a_finding_when_asked() {
    // Manual, section 9.7.9.6: undefined. GPUs continue.
    let module = one_warp("shfl.sync.bfly.b32 %v, %i, 1, 31, 0xffff;\nst.global.u32 [%o], %v;");
    let run = |more: &[&str]| {
        let arguments = [&["run", "-", "--block", "32", "--arg", "u32[32]=zeros", "--repeat", "2"], more].concat();
        let output = with_input(&arguments, &module);
        (code(&output), err(&output))
    };
    for engine in ["reference", "simd"] {
        let (code, text) = run(&["--engine", engine]);
        assert_eq!(code, 0, "{text}");
        assert_eq!(text.matches("warning: lane 16 executes `shfl.sync.bfly.b32`").count(), 1, "{text}");
    }
    let (code, text) = run(&["--check", "sync"]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("member mask 0x0000ffff, which omits the executing lane 16"), "{text}");
    assert!(!text.contains("warning:"), "{text}");
}

#[test]
fn a_listing_of_several_modules_is_read() {
    let module = |arch: u32, name: &str| {
        format!(
            "Fatbin ptx code:\n================\narch = sm_{arch}\ncode version = [7,0]\nhost = linux\n\n\
             .version 7.0\n.target sm_{arch}\n.address_size 64\n.visible .entry {name}() {{ ret; }}\n\n"
        )
    };
    let file = scratch("listing").join("all.txt");
    std::fs::write(&file, [module(50, "k"), module(70, "k"), module(70, "l")].concat()).unwrap();
    let path = file.display().to_string();
    let checked = margay(&["check", &path]);
    assert_eq!(code(&checked), 0, "{}{}", out(&checked), err(&checked));
    // Both modules for the newest architecture are linked; the older one is the same program again.
    for kernel in ["k", "l"] {
        let ran = margay(&["run", &path, "--kernel", kernel]);
        assert_eq!(code(&ran), 0, "{}", err(&ran));
    }
    let tables = margay(&["abi", &path]);
    assert!(["kernel k\n", "kernel l\n"].iter().all(|k| out(&tables).matches(k).count() == 1), "{}", out(&tables));
    let listed = margay(&["extract", &path]);
    assert!(code(&listed) == 0 && out(&listed).matches("PTX").count() == 3, "{}", out(&listed));
    let formatted = margay(&["fmt", &path]);
    assert!(code(&formatted) == 2 && err(&formatted).contains("margay extract"), "{}", err(&formatted));
    std::fs::write(&file, [module(50, "k"), module(70, "l").replace("ret;", "frob;")].concat()).unwrap();
    let wrong = margay(&["check", &path]);
    assert!(code(&wrong) == 1 && out(&wrong).contains("#2:sm_70"), "{}", out(&wrong));
    std::fs::write(&file, "\nFatbin elf code:\n================\narch = sm_70\n").unwrap();
    let empty = margay(&["check", &path]);
    assert!(code(&empty) == 1 && err(&empty).contains("machine code only"), "{}", err(&empty));
}

#[test]
fn exec_and_extract_name_arguments_that_they_reject() {
    for words in
        [["--engine", "diesel"], ["--device", "voodoo2"], ["--check", "everything"], ["--fault-exit-code", "256"]]
    {
        let output = margay(&[&["exec"][..], &words[..], &["--", "true"][..]].concat());
        assert!(code(&output) == 2 && err(&output).contains(words[1]), "{words:?}: {}", err(&output));
    }
    let none = margay(&["extract", "Cargo.toml"]);
    assert!(code(&none) == 1 && err(&none).contains("Cargo.toml: no PTX inside"), "{}", err(&none));
    assert_eq!(code(&margay(&["extract", "no/such/file"])), 2);
}

#[test]
fn extract_lists_and_writes_what_a_file_holds() {
    // An object file, as it were, with a fat binary of one entry in it.
    let mut file = b"some other bytes".to_vec();
    file.extend([0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0]);
    file.extend((64 + GOOD.len() as u64).to_le_bytes());
    let mut entry = [0u8; 64];
    (entry[0], entry[4], entry[28]) = (1, 64, 50);
    entry[8..16].copy_from_slice(&(GOOD.len() as u64).to_le_bytes());
    file.extend(entry.iter().copied().chain(GOOD.bytes()));
    let folder = scratch("extract");
    let path = folder.join("program");
    std::fs::write(&path, file).unwrap();
    let texts = folder.join("texts");
    let listed = margay(&["extract", &path.display().to_string(), "--output", &texts.display().to_string()]);
    assert!(
        code(&listed) == 0 && out(&listed).contains("compute_50") && out(&listed).contains(": k"),
        "{}",
        out(&listed)
    );
    assert_eq!(std::fs::read_to_string(texts.join("program.1.1.compute_50.ptx")).unwrap(), GOOD);
}
