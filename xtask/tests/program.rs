//! Tests the program as developers call it.

use std::process::Command;

/// This test also makes cargo build the program with everything else that is tested.
#[test]
fn what_it_does_not_know_is_refused_by_name() {
    for words in [&["nonsense"][..], &["bench", "nonsense"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(words).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains("nonsense"), "{words:?}: {told}");
    }
}
