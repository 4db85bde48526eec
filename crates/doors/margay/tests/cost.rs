//! What `margay run` says about its cost: statistics, counts, traces; and the code that it keeps on disk.

use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap().to_path_buf()
}

/// 32 threads, of which 20 do `y[i] = 2 * x[i] + y[i]`.
fn saxpy(engine: &str, cache: Option<&Path>, extra: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_margay"));
    command.current_dir(root()).env("MARGAY_CACHE", "0");
    if let Some(cache) = cache {
        command.env("MARGAY_CACHE", "1").env("MARGAY_CACHE_DIR", cache);
    }
    command.args(["run", "examples/saxpy.ptx", "--block", "32", "--engine", engine]);
    for argument in ["20", "2", "f32[32]=iota", "f32[32]=fill:1"] {
        command.args(["--arg", argument]);
    }
    let output = command.args(extra).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stats(output: &Output) -> Value {
    serde_json::from_str(text(output).lines().last().unwrap()).unwrap()
}

fn engines() -> &'static [&'static str] {
    if cfg!(feature = "simd") { &["reference", "simd", "tiered"] } else { &["reference"] }
}

#[test]
fn engines_count_the_same_accesses() {
    for engine in engines() {
        let stats = stats(&saxpy(engine, None, &["--stats", "json", "--count", "--repeat", "3"]));
        let counts = &stats["counts"];
        // Two loads and a store of 4 bytes by 20 lanes, one behind the other.
        assert_eq!(counts["contiguous"], 3, "{engine}: {stats}");
        assert_eq!((&counts["uniform"], &counts["scattered"]), (&0.into(), &0.into()), "{engine}: {stats}");
        assert_eq!(counts["bytes"]["global"], 3 * 20 * 4, "{engine}: {stats}");
        assert!(counts["instructions"].as_u64() > Some(5), "{engine}: {stats}");
        assert_eq!(stats["launches"], 2, "the launch that is counted is not among the times: {stats}");
    }
}

#[test]
fn text_statistics_show_the_counters() {
    let output = text(&saxpy("reference", None, &["--stats"]));
    assert!(output.contains("3 contiguous, 0 to one address, 0 gathers and scatters"), "{output}");
    assert!(output.contains("bytes         global 240 B"), "{output}");
}

#[test]
fn a_trace_has_rows_for_threads_and_spans_of_time() {
    let folder = scratch("trace");
    let path = folder.join("trace.json");
    saxpy("reference", None, &["--trace", path.to_str().unwrap(), "--repeat", "2"]);
    let trace: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let named = |phase: &str, name: &str| {
        events.iter().filter(|e| e["ph"] == phase && (e["name"] == name || e["args"]["name"] == name)).count()
    };
    assert_eq!(named("M", "worker 0"), 1);
    assert_eq!(named("X", "saxpy"), 2, "one span a launch");
    assert!(named("X", "CTA 0") >= 2);
    assert!(events.iter().filter(|e| e["ph"] == "X").all(|e| e["dur"].as_f64() >= Some(0.0)));
}

#[cfg(feature = "simd")]
#[test]
fn cached_code_is_reused_and_damaged_files_are_replaced() {
    let cache = scratch("cache");
    let print = ["--print", "3[0..32]", "--stats", "json"];
    let compiled = |output: &Output| stats(output)["compile_steps_ns"]["generate"].is_u64();
    let values = |output: &Output| text(output).lines().rev().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let first = saxpy("simd", Some(&cache), &print);
    assert!(compiled(&first), "nothing was on disk");
    let second = saxpy("simd", Some(&cache), &print);
    assert!(!compiled(&second), "{}", stats(&second));
    assert_eq!(values(&first), values(&second));
    for broken in [&b""[..], b"margay02", &[0xff; 4096]] {
        for file in std::fs::read_dir(&cache).unwrap().flatten() {
            std::fs::write(file.path(), broken).unwrap();
        }
        let again = saxpy("simd", Some(&cache), &print);
        assert!(compiled(&again), "{}", stats(&again));
        assert_eq!(values(&first), values(&again));
    }
    // One byte in the middle of the code.
    for file in std::fs::read_dir(&cache).unwrap().flatten() {
        let mut bytes = std::fs::read(file.path()).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(file.path(), bytes).unwrap();
    }
    assert!(compiled(&saxpy("simd", Some(&cache), &print)));
}

/// An empty folder of this test's own.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cost").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
