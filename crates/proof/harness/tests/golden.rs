//! margay reproduces recorded results of GPUs (`make golden`), where there are recordings.

use margay_harness::{files, golden, root};
use margay_runtime::Device;

#[test]
fn recorded_results_are_repeated() {
    let device = Device::new().expect("a device");
    let mut wrong = Vec::new();
    for (name, path) in files("tests/run") {
        let Ok(recorded) = std::fs::read_to_string(root().join("tests/golden").join(format!("{name}.txt"))) else {
            continue;
        };
        let lines: String = recorded.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
        match golden::record(&path, &mut golden::Simulated::new(device.context())) {
            Ok(ours) if ours.text == lines => {}
            Ok(ours) => {
                let first = ours.text.lines().zip(lines.lines()).find(|(a, b)| a != b);
                wrong.push(format!("{name}: {first:?}"));
            }
            Err(why) => wrong.push(format!("{name}: {why:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} cases differ from the GPU:\n{}", wrong.len(), wrong.join("\n"));
}

/// Every suitable case can be recorded, and its expectations hold as in the runner.
#[test]
fn cases_run_on_a_machine_of_kernels_and_buffers() {
    let device = Device::new().expect("a device");
    let mut done = 0;
    for (name, path) in files("tests/run/atomic") {
        match golden::record(&path, &mut golden::Simulated::new(device.context())) {
            Ok(recording) => {
                assert!(recording.unmet.is_empty(), "{name}: {:?}", recording.unmet);
                assert!(!recording.text.is_empty());
                done += 1;
            }
            Err(golden::Left::Skipped(_)) => {}
            Err(golden::Left::Failed(why)) => panic!("{name}: {why}"),
        }
    }
    assert!(done > 3);
}
