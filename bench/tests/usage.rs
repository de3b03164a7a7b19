//! Tests the program as it is started. This test also makes `cargo test` build the program, which
//! the bench of instructions runs.

use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fathom-bench"));
    command.args(arguments).output().expect("it was built")
}

#[test]
fn its_help_lists_the_benches_and_an_unknown_one_is_refused() {
    let help = bench(&["--help"]);
    let told = String::from_utf8_lossy(&help.stdout);
    assert!(help.status.success() && help.stderr.is_empty(), "{help:?}");
    for name in ["engine", "instructions", "peers", "conclusions", "maps FOLDER"] {
        assert!(told.contains(name), "{name} is missing in:\n{told}");
    }
    let unknown = bench(&["nonsense"]);
    let told = String::from_utf8_lossy(&unknown.stderr);
    assert!(!unknown.status.success() && told.contains("nonsense"), "{unknown:?}");
}
