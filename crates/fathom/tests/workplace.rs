//! Tests where workers run, from outside during the run: the CPUs, priorities and pages that the
//! kernel reports, and the values in the result file.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Place, Running, assert_has, code, stderr, stdout};

/// The CPUs that this process may run on, in the kernel's list.
fn cpus() -> Vec<u32> {
    listed(&field(Path::new("/proc/self/status"), "Cpus_allowed_list:"))
}

/// "0-2,5" as numbers.
fn listed(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse::<u32>().unwrap()..=last.parse().unwrap()
    };
    text.split(',').flat_map(range).collect()
}

fn field(path: &Path, name: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim().to_owned()
}

/// The workers of a process in order: the name of each thread, its CPUs, and the priority of its
/// I/Os.
fn workers(process: u32) -> Vec<(String, Vec<u32>, String)> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let worker = |task: std::fs::DirEntry| {
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?.trim().to_owned();
        // The ring's own threads have other names.
        name.strip_prefix("fathom-")?.parse::<u32>().ok()?;
        let number = task.file_name().into_string().unwrap();
        let priority = Command::new("ionice").args(["-p", &number]).output().ok()?.stdout;
        let priority = String::from_utf8(priority).unwrap().trim().to_owned();
        Some((name, listed(&field(&task.path().join("status"), "Cpus_allowed_list:")), priority))
    };
    let mut found: Vec<_> = tasks.filter_map(|task| worker(task.unwrap())).collect();
    found.sort();
    found
}

#[test]
fn workers_of_each_stream_are_where_it_says_and_their_ios_have_its_priority() {
    let place = Place::new();
    std::fs::write(place.join("data"), vec![7; 1 << 20]).unwrap();
    let all = cpus();
    let (first, last) = (all[0], *all.last().unwrap());
    let text = format!(
        "targets = 'data'\nbuffered = true\nbackend = 'sync'\nduration = '10m'\nqueue-depth = 2\n\
         think-time = '10ms'\n\
         [stream.a]\ncpus = '{first}'\nio-priority = 'idle'\nworkers = 2\n\
         [stream.b]\ncpus = '{last}'\nio-priority = 'best-effort:6'\n\
         [stream.c]\ncpus = 'cores'\n[stream.d]\ncpus = 'cores'\n\
         [stream.e]\n"
    );
    std::fs::write(place.join("w.toml"), text).unwrap();
    let mut command = place.command(&["run", "w.toml", "--warm-up", "0", "--out", "r.jsonl"]);
    let mut running = Running::start(&mut command);
    running.until("a, b, c, d, e");
    let settled = |all: &[(String, Vec<u32>, String)]| {
        let tied = |(_, cpus, _): &(String, Vec<u32>, String)| cpus.len() == 1;
        let ranked = |(_, _, priority): &(String, Vec<u32>, String)| !priority.starts_with("none");
        all.len() == 6 && all[..5].iter().all(tied) && all[..3].iter().all(ranked)
    };
    let mut seen = workers(running.id());
    while !settled(&seen) && !running.has_ended() {
        std::thread::sleep(std::time::Duration::from_millis(20));
        seen = workers(running.id());
    }
    if !running.has_ended() {
        running.signal("INT");
    }
    let (_, said, told) = running.end();
    assert!(settled(&seen), "{seen:?}\n{said}{told}");
    let on = |worker: usize| seen[worker].1.as_slice();
    assert_eq!([on(0), on(1), on(2)], [[first].as_slice(), &[first], &[last]]);
    // Streams that name the same CPUs use them in turn.
    assert_eq!((on(3).len(), on(4).len(), on(5)), (1, 1, all.as_slice()));
    assert!(all.len() == 1 || on(3) != on(4), "{seen:?}");
    let with_priority = |worker: usize| seen[worker].2.as_str();
    assert_eq!([with_priority(0), with_priority(1)], ["idle", "idle"]);
    assert_eq!(with_priority(2), "best-effort: prio 6");
    assert!(with_priority(5).starts_with("none"), "{seen:?}");
    let document = common::read(&place.join("r.jsonl"));
    if let Some(trial) = document.trials.first() {
        let pinned: Vec<Option<u32>> = trial.workers.iter().map(|one| one.pinned_cpu).collect();
        let expected = [Some(first), Some(first), Some(last), Some(on(3)[0]), Some(on(4)[0]), None];
        assert_eq!(pinned, expected);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_has(&said, &[&format!("workers tied to CPU {first}, I/O priority idle")]);
    }
}

#[test]
fn plan_shows_where_workers_would_run() {
    let place = Place::new();
    std::fs::write(place.join("data"), vec![7; 1 << 20]).unwrap();
    let cpu = cpus()[0];
    let plan = |cpus: &str| place.run(&["plan", "data", "--cpus", cpus, "--large-pages"]);
    let output = plan(&cpu.to_string());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stdout(&output), &[&format!("workers tied to CPU {cpu}, large pages")]);
    let output = plan("4095");
    assert_eq!(code(&output), 2);
    assert_has(&stderr(&output), &["--cpus 4095", "the process may use CPU", "taskset"]);
}

/// As root the test reserves huge pages. Otherwise the error has to be helpful.
#[test]
fn buffers_are_in_large_pages_or_the_run_says_what_is_missing() {
    const RESERVED: &str = "/proc/sys/vm/nr_hugepages";
    let place = Place::new();
    std::fs::write(place.join("data"), vec![7; 1 << 20]).unwrap();
    let run = ["run", "data", "--buffered", "--backend", "sync", "--large-pages", "--warm-up", "0"];
    let before = std::fs::read_to_string(RESERVED).unwrap_or_default();
    let free = field(Path::new("/proc/meminfo"), "HugePages_Free:");
    if free == "0" {
        for (queue_depth, needed) in [("1", "need 1 page of"), ("32", "need 32 pages of")] {
            let output = place.run(&[&run[..], &["-d", "100ms", "-q", queue_depth]].concat());
            assert_eq!(code(&output), 3);
            let told = stderr(&output);
            assert_has(&told, &["--large-pages:", needed, "vm.nr_hugepages=", "drop it"]);
            assert!(!told.contains("--backend"), "{told}");
        }
    }
    let more = before.trim().parse::<u64>().unwrap_or(0) + 8;
    if std::fs::write(RESERVED, more.to_string()).is_err() {
        eprintln!("skipped: this user may not reserve large pages");
        return;
    }
    let long = ["-q", "1", "-d", "10m", "--think-time", "10ms"];
    let mut command = place.command(&[&run[..], &long].concat());
    let mut running = Running::start(&mut command);
    running.until("random read");
    let maps = format!("/proc/{}/smaps", running.id());
    let has_large = || {
        let maps = std::fs::read_to_string(&maps).unwrap_or_default();
        let sizes = maps.lines().filter_map(|line| line.strip_prefix("Private_Hugetlb:"));
        let kib = |size: &str| size.trim().trim_end_matches(" kB").parse::<u64>().ok();
        sizes.filter_map(kib).sum::<u64>() > 0
    };
    let mut large = has_large();
    while !large && !running.has_ended() {
        std::thread::sleep(std::time::Duration::from_millis(20));
        large = has_large();
    }
    if !running.has_ended() {
        running.signal("INT");
    }
    let (_, said, told) = running.end();
    let _ = std::fs::write(RESERVED, before);
    assert!(large, "{said}{told}");
}
