//! Low limits of system resources cause a clear refusal before anything starts, without a panic or
//! a signal. And a small load takes few resources.

mod common;

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::{Place, assert_has, code, stderr};

const SHORT: [&str; 4] = ["--duration", "200ms", "--warm-up", "0"];

/// Runs fathom after a shell command that limits it.
fn after(place: &Place, limit: &str, args: &[&str]) -> Output {
    let line = format!("{limit}; exec timeout 300 \"$@\"");
    let mut command = Command::new("bash");
    command.args(["-c", &line, "bash", env!("CARGO_BIN_EXE_fathom")]).args(args).args(SHORT);
    command.current_dir(place.path()).stdin(Stdio::null()).output().unwrap()
}

/// Checks that fathom ended by itself, refused for the reason in `parts`, and left no files.
fn assert_refused(output: &Output, parts: &[&str]) {
    let told = stderr(output);
    assert!(output.status.signal().is_none(), "{:?}: {told}", output.status);
    assert!([2, 3, 5].contains(&code(output)), "{:?}: {told}", output.status);
    assert!(!told.contains("mistake in fathom"), "{told}");
    assert_has(&told, parts);
}

#[test]
fn few_files_threads_or_memory_are_a_refusal_that_names_the_limit() {
    let place = Place::new();
    place.prepared("data", 8);
    let before = place.names();
    // With fewer than four files, not even the program's libraries can be opened.
    for files in 4..16 {
        let output = after(&place, &format!("ulimit -n {files}"), &["run", "data", "--out", "r"]);
        assert_refused(&output, &["ulimit -n"]);
        assert_eq!(place.names(), before, "ulimit -n {files}");
    }
    for kib in [40_000, 60_000, 80_000] {
        let output = after(&place, &format!("ulimit -v {kib}"), &["run", "data", "--out", "r"]);
        assert_refused(&output, &["ulimit -v"]);
        assert_eq!(place.names(), before, "ulimit -v {kib}");
    }
    let deep = ["run", "data", "--backend", "sync", "--queue-depth", "32768", "--out", "r"];
    assert_refused(
        &after(&place, ":", &deep),
        &["threads", "--queue-depth", "nothing was started"],
    );
    assert_eq!(place.names(), before);
}

#[test]
fn a_limit_of_file_sizes_is_an_error_of_the_result_and_no_signal() {
    let place = Place::new();
    place.prepared("data", 8);
    let limit = |blocks: u32| format!("ulimit -f {blocks}");
    assert_refused(
        &after(&place, &limit(0), &["run", "data", "--out", "r"]),
        &["r: ", "File too large"],
    );
    assert_refused(
        &after(&place, &limit(4), &["run", "data", "--out", "r"]),
        &["r: ", "File too large"],
    );
}

#[test]
fn a_user_without_a_thread_is_refused() {
    let place = Place::in_memory();
    let open = Command::new("chmod").arg("777").arg(place.path()).status().unwrap();
    assert!(open.success());
    // A user with no other processes. Another process copies the program to a folder that this user
    // can read. A file that this process has open for writing could not be executed if another test
    // forked at that moment.
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_fathom"))
        .arg(place.join("fathom"))
        .status()
        .unwrap();
    assert!(copied.success());
    let user = "setpriv --reuid 64971 --regid 64971 --clear-groups";
    for (threads, args) in
        [(1, "run sim:queue"), (1, "inspect fathom"), (2, "run fathom --block-size 4k")]
    {
        let line = format!("{user} bash -c 'ulimit -u {threads}; exec ./fathom {args}'");
        let mut command = Command::new("bash");
        let output = command.args(["-c", &line]).current_dir(place.path()).output().unwrap();
        let told = stderr(&output);
        if told.contains("setpriv") {
            eprintln!("skipped: this user cannot be another one");
            return;
        }
        assert_refused(&output, &["ulimit -u"]);
    }
}

/// A control group. Dropping it removes it.
struct Group(String);

impl Drop for Group {
    fn drop(&mut self) {
        // If it stays, it is empty.
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_group_that_may_have_one_process_is_refused() {
    let place = Place::new();
    place.prepared("data", 8);
    let bases = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new);
    let is_base = |base: &&Path| base.join("cgroup.procs").exists();
    let made = bases.into_iter().find(is_base).and_then(|base| {
        let path = base.join(format!("fathom-limits-{}", std::process::id()));
        std::fs::create_dir(&path).ok().map(|()| Group(path.display().to_string()))
    });
    let limit = |group: &Group| std::fs::write(format!("{}/pids.max", group.0), "1").is_ok();
    let Some(group) = made.filter(limit) else {
        eprintln!("skipped: no control group of pids can be made here");
        return;
    };
    for args in [["run", "data"], ["quick", "data"], ["run", "sim:queue"]] {
        let line = format!("echo $$ >{}/cgroup.procs; exec \"$@\"", group.0);
        let mut command = Command::new("bash");
        command.args(["-c", &line, "bash", env!("CARGO_BIN_EXE_fathom")]).args(args);
        let output = command.current_dir(place.path()).output().unwrap();
        assert_refused(&output, &["pids.max"]);
    }
}

#[test]
fn without_proc_the_memory_is_asked_of_the_kernel_and_never_zero() {
    let place = Place::new();
    place.prepared("data", 8);
    let line = "mount -t tmpfs none /proc && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "bash", "-c", line, "bash", env!("CARGO_BIN_EXE_fathom")]);
    command.args(["run", "data", "--out", "r"]).args(SHORT).current_dir(place.path());
    let Some(output) = command.output().ok().filter(|output| output.status.code() != Some(1))
    else {
        eprintln!("skipped: this user may not mount");
        return;
    };
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    assert!(!stderr(&output).contains("memory of 0"), "{}", stderr(&output));
    assert!(common::read(&place.join("r")).header.host.unwrap().memory.0 > 0);
}

/// Its peak memory in KiB and its exit code.
fn peak_of(place: &Place, args: &[&str]) -> (u64, Option<i32>) {
    let mut command = place.command(args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        peak = peak.max(kib.unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            return (peak, status.code());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn memory_is_in_proportion_to_what_is_used_and_not_to_what_is_named() {
    let place = Place::in_memory();
    let folder = place.join("folder");
    std::fs::create_dir(&folder).unwrap();
    for number in 0..4096 {
        std::fs::write(folder.join(number.to_string()), [7; 4096]).unwrap();
    }
    let many: Vec<String> = (0..500).map(|number| format!("folder/{number}")).collect();
    let mut args = Vec::from(["run"]);
    args.extend(many.iter().map(String::as_str));
    let load = ["--buffered", "--workers", "4/total", "--rate", "2000", "--out", "r500"];
    args.extend(load.iter().chain(&SHORT));
    // It once took 2.8 GB and 11 GB. 38 MB and 72 MB are enough.
    let (kib, code) = peak_of(&place, &args);
    assert!([Some(0), Some(4)].contains(&code), "{code:?}");
    assert!(kib < 128 << 10, "500 targets took {kib} KiB");
    let load = ["run", "folder", "--buffered", "--workers", "2/total", "--rate", "2000"];
    let (kib, code) = peak_of(&place, &[&load[..], &["--out", "r4096"], &SHORT].concat());
    assert!([Some(0), Some(4)].contains(&code), "{code:?}");
    assert!(kib < 320 << 10, "4,096 files took {kib} KiB");
    assert!(Path::new(&place.join("r4096")).exists());
}
