//! fathom in a container: what it says where io_uring is forbidden, and the files that put it there.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{Place, assert_has, code, stderr, stdout};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use yaml_rust2::{Yaml, YamlLoader};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(name)).unwrap()
}

/// The system calls of io_uring: setup, enter and register, by their numbers on every architecture.
const URING: [i64; 3] = [425, 426, 427];
/// Those of native AIO that it begins with: io_setup.
const AIO: i64 = if cfg!(target_arch = "x86_64") { 206 } else { 0 };

/// Runs fathom where these system calls fail with EPERM, as the profiles of container runtimes make
/// them fail.
fn forbidden(place: &Place, calls: &[i64], args: &[&str]) -> std::process::Output {
    let rules: BTreeMap<i64, Vec<_>> = calls.iter().map(|call| (*call, Vec::new())).collect();
    const EPERM: u32 = 1;
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(EPERM),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    let program: BpfProgram = filter.unwrap().try_into().unwrap();
    // A filter stays with its thread and with what the thread starts.
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            apply_filter(&program).unwrap();
            place.run(args)
        });
        run.join().unwrap()
    })
}

/// What fathom says of io_uring: the sysctl that switches it off comes before the filter.
fn cause() -> String {
    let level = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match level.trim() {
        "" | "0" => "io_uring is forbidden here by a seccomp filter, as in many containers".into(),
        level => format!("io_uring is switched off here (kernel.io_uring_disabled = {level})"),
    }
}

#[test]
fn where_io_uring_is_forbidden_fathom_says_what_it_uses_instead_and_why() {
    let place = Place::new();
    place.prepared("f", 1);
    let run = |calls: &[i64], more: &[&str]| {
        let run = ["run", "f", "-d", "100ms", "--warm-up", "0s", "--out", "r.jsonl"];
        let output = forbidden(&place, calls, &[&run[..], more].concat());
        let reason = place.join("r.jsonl").exists().then(|| {
            let document = common::read(&place.join("r.jsonl"));
            document.trials[0].backend_reason.clone()
        });
        let _ = std::fs::remove_file(place.join("r.jsonl"));
        (output, reason)
    };
    let said = |output: &std::process::Output| {
        stdout(output).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let cause = cause();

    let (output, reason) = run(&URING, &[]);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let native = format!("{cause}: using native AIO");
    assert_has(&said(&output), &[&format!("backend aio: {native}")]);
    assert_eq!(reason.unwrap(), native);

    // Quick and experiments say it as well, and so do their reports.
    let quick = ["quick", "--size", "64m", "-d", "100ms", "--warm-up", "0s", "--no-probe"];
    let sweep = ["sweep", "f", "--axis", "queue-depth=1,2", "-d", "100ms", "--warm-up", "0s"];
    for words in [&quick[..], &[&sweep[..], &["--yes"]].concat()] {
        let output = forbidden(&place, &URING, words);
        assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
        assert_has(&said(&output), &[&format!("backend aio: {native}")]);
        if words[0] == "quick" {
            assert_has(&said(&output), &[&format!("direct I/O through aio ({native})")]);
        }
    }

    let (output, reason) = run(&[&URING[..], &[AIO]].concat(), &[]);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    assert_has(&said(&output), &["backend sync: ", &cause, "using pread and pwrite"]);
    assert_has(&reason.unwrap(), &["native AIO is forbidden here by a seccomp filter"]);

    let (output, reason) = run(&URING, &["--backend", "uring"]);
    assert_eq!((code(&output), reason), (3, None), "{}", stderr(&output));
    assert_has(&stderr(&output), &["the uring backend", &cause, "--backend auto"]);
}

/// The strings below a list.
fn strings(list: &Yaml) -> Vec<&str> {
    list.as_vec().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

#[test]
fn the_job_for_kubernetes_measures_the_volume_that_it_claims() {
    let documents = YamlLoader::load_from_str(&read("examples/kubernetes-job.yaml")).unwrap();
    let [claim, job] = documents.as_slice() else { panic!("two objects: {documents:?}") };
    let kind = |object: &Yaml| {
        let text = |key: &str| object[key].as_str().unwrap().to_owned();
        (text("apiVersion"), text("kind"))
    };
    assert_eq!(kind(claim), ("v1".to_owned(), "PersistentVolumeClaim".to_owned()));
    assert_eq!(kind(job), ("batch/v1".to_owned(), "Job".to_owned()));
    assert_eq!(strings(&claim["spec"]["accessModes"]), ["ReadWriteOnce"]);
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"].as_str(), Some("20Gi"));

    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["restartPolicy"].as_str(), Some("Never"));
    let profile = &pod["securityContext"]["seccompProfile"]["type"];
    assert_eq!(profile.as_str(), Some("RuntimeDefault"));
    let volume = &pod["volumes"][0];
    assert_eq!(volume["persistentVolumeClaim"]["claimName"], claim["metadata"]["name"]);
    let container = &pod["containers"][0];
    let mount = &container["volumeMounts"][0];
    assert_eq!(mount["name"], volume["name"]);
    assert_eq!(mount["mountPath"], container["workingDir"]);
    let version = format!("fathom:{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(container["image"].as_str(), Some(version.as_str()));

    // The volume is the current folder, as the container's working folder is.
    let place = Place::new();
    let args = strings(&container["args"]);
    let short = ["--size", "64m", "--duration", "100ms", "--warm-up", "0s", "--no-probe"];
    let output = place.run(&[&args[..], &short].concat());
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    assert_eq!(place.result().trials.len(), 6);
}

#[test]
fn the_image_holds_what_dist_makes_and_nothing_else() {
    let image = read("Dockerfile");
    let lines: Vec<&str> = image.lines().filter(|line| !line.starts_with('#')).collect();
    let built = "target/dist/fathom";
    let copy = format!("COPY {built} /fathom");
    assert_eq!(lines[..2], ["FROM scratch", copy.as_str()]);
    assert!(lines.contains(&"ENTRYPOINT [\"/fathom\"]"), "{image}");
    assert!(image.contains(&format!("fathom:{}", env!("CARGO_PKG_VERSION"))), "{image}");
    let ignored = read(".dockerignore");
    let ignored: Vec<&str> = ignored.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(ignored, ["*", &format!("!{built}")]);
}

#[test]
fn the_pipeline_is_yaml_and_has_the_commands_of_its_page() {
    let text = read("examples/ci-github.yaml");
    let documents = YamlLoader::load_from_str(&text).unwrap();
    let steps = documents[0]["jobs"]["compare"]["steps"].as_vec().unwrap();
    let runs: Vec<&str> = steps.iter().filter_map(|step| step["run"].as_str()).collect();
    let joined = |text: &str| {
        let text = text.replace("\\\n", " ");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let script = joined(&runs.join("\n"));
    let page = read("docs/ci.md");
    let measured = page.lines().find(|line| line.starts_with("fathom run ")).unwrap();
    assert!(script.contains(measured), "{measured}\n{script}");
    let compared = page.lines().find(|line| line.starts_with("fathom compare ")).unwrap();
    for word in compared.split_whitespace() {
        assert!(script.contains(word), "{word}\n{script}");
    }
    // Undecided is a warning; every other code is passed on.
    assert!(script.contains("\"$ended\" = 7") && script.contains("exit \"$ended\""), "{script}");
}
