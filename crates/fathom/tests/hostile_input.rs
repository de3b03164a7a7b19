//! Files that have no end, or that would be gigabytes in memory, are refused, or read as far as
//! they are valid. A limit of memory replaces the machine's.

mod common;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::{Command, Output};

use common::{Place, assert_has, code, stderr, stdout};

/// Far more than fathom needs, and far less than it would take without limits.
const MEMORY_KIB: u64 = 1 << 20;

/// Runs fathom with little memory and a time limit.
fn limited(place: &Place, args: &[&str]) -> Output {
    let limits = format!("ulimit -v {MEMORY_KIB}; exec timeout 300 \"$@\"");
    let mut command = Command::new("bash");
    command.args(["-c", &limits, "bash", env!("CARGO_BIN_EXE_fathom")]).args(args);
    command.current_dir(place.path()).output().unwrap()
}

/// Checks that the input was refused with the exit code of unreadable input, in one line that names
/// it.
fn assert_refused(output: &Output, parts: &[&str]) {
    let told = stderr(output);
    assert_eq!(code(output), 5, "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    assert_has(&told, parts);
}

fn result(place: &Place) -> String {
    let output = place.run(&["run", "sim:queue", "-d", "1s", "--out", "a.jsonl"]);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let shown = place.run(&["report", "a.jsonl"]);
    stdout(&shown)
}

#[test]
fn a_pipe_that_nobody_writes_to_is_refused_and_one_with_a_late_writer_is_read() {
    let place = Place::in_memory();
    let shown = result(&place);
    assert!(Command::new("mkfifo").arg(place.join("pipe")).status().unwrap().success());
    const SILENT: &str = "nothing came out of the pipe";
    let commands: [(&[&str], &str); 5] = [
        (&["report", "pipe"], SILENT),
        (&["export", "pipe", "--format", "diskplorer"], SILENT),
        (&["resume", "pipe"], "it is no file"),
        (&["import", "pipe"], SILENT),
        (&["diskspd", "-Xpipe"], SILENT),
    ];
    for (args, said) in commands {
        let output = limited(&place, args);
        assert!([2, 5].contains(&code(&output)), "{args:?}: {}", stderr(&output));
        assert_has(&stderr(&output), &["pipe", said]);
    }
    let late = "(sleep 1; cat a.jsonl >pipe) & exec \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", late, "bash", env!("CARGO_BIN_EXE_fathom"), "report", "pipe"]);
    let output = command.current_dir(place.path()).output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(stdout(&output), shown);
}

#[test]
fn a_result_with_a_tail_of_terabytes_that_take_no_room_is_read_as_a_torn_one() {
    let place = Place::new();
    result(&place);
    let file = OpenOptions::new().append(true).open(place.join("a.jsonl")).unwrap();
    // The largest size that the file system accepts: 15 TB if possible.
    let sizes = [15 << 40, 1 << 40, 100 << 30];
    assert!(sizes.into_iter().any(|size| file.set_len(size).is_ok()));
    let output = limited(&place, &["report", "a.jsonl"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stdout(&output), &["was torn"]);
    let sparse = place.join("all.jsonl");
    std::fs::File::create(&sparse).unwrap().set_len(100 << 30).unwrap();
    assert_refused(&limited(&place, &["report", "all.jsonl"]), &["all.jsonl"]);
    assert_refused(&limited(&place, &["import", "all.jsonl"]), &["all.jsonl", "64 MiB"]);
}

#[test]
fn what_is_imported_takes_no_gigabytes() {
    let place = Place::new();
    assert_refused(&limited(&place, &["import", "/dev/zero"]), &["/dev/zero", "a device"]);
    let string = "{\"jobs\": [{\"jobname\": \"";
    std::fs::write(place.join("string"), string).unwrap();
    let file = OpenOptions::new().append(true).open(place.join("string")).unwrap();
    file.set_len(1 << 30).unwrap();
    assert_refused(&limited(&place, &["import", "string"]), &["string", "64 MiB"]);
    // One name that is as long as all that is read.
    let text = format!("{string}{}\"}}]}}", "x".repeat(60 << 20));
    std::fs::write(place.join("long"), text).unwrap();
    assert_refused(&limited(&place, &["import", "long"]), &["long", "more values in a job"]);
    let mut jobs = std::fs::File::create(place.join("jobs")).unwrap();
    jobs.write_all(format!("{{\"jobs\": [{}{{}}]}}", "{},".repeat(2_000_000)).as_bytes()).unwrap();
    assert_refused(&limited(&place, &["import", "jobs"]), &["jobs", "more jobs"]);
}

#[test]
fn a_target_that_looks_like_a_workload_is_not_read_into_memory() {
    let place = Place::new();
    let file = std::fs::File::create(place.join("huge.toml")).unwrap();
    file.set_len(1 << 40).unwrap();
    let output = limited(&place, &["plan", "huge.toml"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stdout(&output), &["huge.toml", "1 TiB"]);
    let output = limited(&place, &["plan", "--workload", "huge.toml", "sim:queue"]);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert_has(&stderr(&output), &["at most 1 MiB"]);
}
