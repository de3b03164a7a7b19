//! Tests a load of many hosts: fathom as the coordinator, real agents, and a router between them that
//! can shift a host's clock, cut it off or kill its agent. Nothing here depends on how fast the machine
//! is.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::{Place, Running, assert_has, code, fathom_in, read, stderr, stdout};
use fathom_core::Span;
use fathom_core::measure::{Direction, Record};
use fathom_report::document::{Document, Ended, Found, Role, Verdict};
use serde_json::{Value, json};

/// A host behind the router.
struct TestHost {
    agent: Arc<Mutex<Child>>,
    /// How far its clock is from the true one.
    shift_ns: i64,
    /// Whether nothing comes to it or from it.
    is_cut: Arc<AtomicBool>,
}

/// A router with its agents, each in a folder of its own.
struct TestRouter {
    hosts: BTreeMap<String, TestHost>,
    works: JoinHandle<()>,
    socket: PathBuf,
}

/// The settings of a host: its name, its shift, the lease of its agent.
type Setting<'a> = (&'a str, i64, &'a str);

impl TestRouter {
    /// Listens at `place/router`, for one fathom.
    fn start(place: &Place, settings: &[Setting<'_>]) -> Self {
        let socket = place.join("router");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut hosts = BTreeMap::new();
        let mut ends = Vec::new();
        for (name, shift_ns, lease) in settings {
            let folder = place.join(name);
            std::fs::create_dir_all(&folder).unwrap();
            let mut command =
                fathom_in(&folder, &["agent", "--lease", lease, "--out", "own.jsonl"]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut agent = command.spawn().unwrap();
            ends.push((
                (*name).to_owned(),
                agent.stdin.take().unwrap(),
                agent.stdout.take().unwrap(),
            ));
            let agent = Arc::new(Mutex::new(agent));
            let is_cut = Arc::new(AtomicBool::new(false));
            hosts.insert((*name).to_owned(), TestHost { agent, shift_ns: *shift_ns, is_cut });
        }
        let own: BTreeMap<String, (i64, Arc<AtomicBool>)> = hosts
            .iter()
            .map(|(name, host)| (name.clone(), (host.shift_ns, Arc::clone(&host.is_cut))))
            .collect();
        let works = std::thread::spawn(move || {
            let (socket, _) = listener.accept().unwrap();
            let to = Arc::new(Mutex::new(socket.try_clone().unwrap()));
            let names: Vec<&String> = ends.iter().map(|(name, ..)| name).collect();
            say(&to, &json!({ "router": 1, "hosts": names }).to_string());
            let mut inputs = BTreeMap::new();
            let mut readers = Vec::new();
            for (name, input, output) in ends {
                let (shift, is_cut) = own[&name].clone();
                let to = Arc::clone(&to);
                inputs.insert(name.clone(), input);
                readers.push(std::thread::spawn(move || {
                    for line in BufReader::new(output).lines().map_while(Result::ok) {
                        if !is_cut.load(Ordering::SeqCst) {
                            let line = shifted(&line, "unix_ns", shift);
                            say(&to, &format!("{{\"host\":\"{name}\",\"line\":{line}}}"));
                        }
                    }
                    if !is_cut.load(Ordering::SeqCst) {
                        say(&to, &json!({ "host": name, "gone": "its agent ended" }).to_string());
                    }
                }));
            }
            carry_on(socket, inputs, &own);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
        });
        Self { hosts, works, socket }
    }

    fn kill(&self, name: &str) {
        self.hosts[name].agent.lock().unwrap().kill().unwrap();
    }

    fn cut(&self, name: &str) {
        self.hosts[name].is_cut.store(true, Ordering::SeqCst);
    }

    /// Waits until all agents have ended by themselves.
    fn end(self) {
        // If fathom refused before it called.
        drop(UnixStream::connect(&self.socket));
        self.works.join().unwrap();
        for host in self.hosts.values() {
            host.agent.lock().unwrap().wait().unwrap();
        }
    }
}

/// Brings what fathom says to the agents, until it says no more.
fn carry_on(
    socket: UnixStream,
    mut inputs: BTreeMap<String, ChildStdin>,
    own: &BTreeMap<String, (i64, Arc<AtomicBool>)>,
) {
    for line in BufReader::new(socket).lines().map_while(Result::ok) {
        let json: Value = serde_json::from_str(&line).unwrap();
        let name = json["host"].as_str().unwrap();
        let (shift, is_cut) = &own[name];
        if !is_cut.load(Ordering::SeqCst) {
            let said = shifted(&json["line"].to_string(), "at_unix_ns", *shift);
            // An agent that was killed hears nothing.
            let _ = writeln!(inputs.get_mut(name).unwrap(), "{said}");
        }
    }
}

/// A message as a host with a shifted clock says it, or should have heard it: its own time is later by
/// the shift, so that what it is told is earlier for the true one.
fn shifted(line: &str, field: &str, shift: i64) -> String {
    let is_said = field == "unix_ns";
    if shift == 0 || !line.contains(&format!("\"{field}\":")) || line.starts_with("{\"line\"") {
        return line.to_owned();
    }
    let mut json: Value = serde_json::from_str(line).unwrap();
    let time = json[field].as_u64().unwrap();
    json[field] = json!(time.saturating_add_signed(if is_said { shift } else { -shift }));
    json.to_string()
}

fn say(to: &Mutex<UnixStream>, line: &str) {
    // A fathom that has ended hears nothing.
    let _ = writeln!(to.lock().unwrap(), "{line}");
}

/// fathom on all hosts of a router.
fn on_hosts(place: &Place, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command.args(["--hosts", "router", "--out", "all.jsonl"]);
    command
}

fn run(place: &Place, settings: &[Setting<'_>], args: &[&str]) -> (Output, Vec<Document>) {
    let router = TestRouter::start(place, settings);
    let output = on_hosts(place, args).output().unwrap();
    router.end();
    let own = settings.iter().map(|(name, ..)| place.join(name).join("own.jsonl"));
    let own = own.filter(|path| path.exists()).map(|path| read(&path)).collect();
    (output, own)
}

/// Gives each host a file of 4 MiB in its folder.
fn with_data(place: &Place, names: &[&str]) {
    for name in names {
        std::fs::create_dir_all(place.join(name)).unwrap();
        place.prepared(&format!("{name}/data"), 4);
    }
}

/// Waits until a host's load begins: then its own file has its header.
fn until_loaded(place: &Place, name: &str) {
    let own = place.join(name).join("own.jsonl");
    let until = Instant::now() + Duration::from_secs(120);
    while std::fs::metadata(&own).map_or(0, |facts| facts.len()) == 0 {
        assert!(Instant::now() < until, "{name} begins no load");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// When all of [`THREE`] have been under load for some seconds. One that has not begun has nothing to
/// tell when it is ended.
fn until_all_loaded(place: &Place) {
    for (name, ..) in THREE {
        until_loaded(place, name);
    }
    std::thread::sleep(Duration::from_secs(3));
}

/// fathom on hosts that all have a file of 4 MiB, when it has said something.
fn begun(
    place: &Place,
    settings: &[Setting<'_>],
    args: &[&str],
    said: &str,
) -> (TestRouter, Running) {
    with_data(place, &settings.iter().map(|(name, ..)| *name).collect::<Vec<_>>());
    let router = TestRouter::start(place, settings);
    let mut running = Running::start(&mut on_hosts(place, args));
    running.until(said);
    (router, running)
}

/// Goes on with these hosts, whose agents are new ones.
fn resumed(place: &Place, settings: &[Setting<'_>]) -> Output {
    for (name, ..) in &THREE {
        let own = place.join(name).join("own.jsonl");
        std::fs::rename(&own, own.with_extension("before")).ok();
    }
    std::fs::remove_file(place.join("router")).unwrap();
    let router = TestRouter::start(place, settings);
    let output = place.run(&["resume", "all.jsonl", "--hosts", "router"]);
    router.end();
    output
}

/// Long enough for a busy machine.
const PATIENT: &str = "2m";

const THREE: [Setting<'static>; 3] = [("a", 0, PATIENT), ("b", 0, PATIENT), ("c", 0, PATIENT)];

#[test]
fn the_result_of_all_hosts_is_the_sum_of_theirs_to_the_last_bit() {
    let place = Place::in_memory();
    let args = ["run", "sim:ssd", "-q", "4", "--seed", "7", "-d", "2s", "--warm-up", "100ms"];
    let (output, own) = run(&place, &THREE, &args);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    assert_has(&text, &["3 hosts: a, b, c", "on each of 3 hosts: ", "each host"]);
    let all = read(&place.join("all.jsonl"));
    let trial = &all.trials[0];
    let parts: Vec<Record> = own.iter().map(|one| one.trials[0].record()).collect();
    let merged = trial.record();
    assert_eq!(merged, Record::together(parts.clone()));
    let mut times = parts[0].total(None).service_time;
    times.merge(&parts[1].total(None).service_time);
    times.merge(&parts[2].total(None).service_time);
    assert_eq!(trial.total(None).service_time, times);
    let figures: Vec<f64> = trial.hosts.iter().map(|host| host.iops.unwrap().value).collect();
    let total = trial.total(None).ios() as f64 / trial.window().as_secs_f64();
    assert!((figures.iter().sum::<f64>() / total - 1.0).abs() < 1e-9, "{figures:?} {total}");
    // Each host does other I/Os than the others, and all begin with one seed.
    let seeds: Vec<u64> = own.iter().map(|one| one.trials[0].point.seed).collect();
    assert_eq!((seeds.as_slice(), trial.point.seed), (&[7, 1_000_007, 2_000_007][..], 7));
    let names: Vec<&str> = all.header.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!((names.as_slice(), all.header.host.is_none()), (&["a", "b", "c"][..], true));
    assert_eq!(all.conclusion.unwrap().ended, Ended::Completed);
    for one in own.iter().map(|one| one.conclusion.as_ref().unwrap()) {
        assert_eq!((one.ended, one.sentences.as_slice()), (Ended::Completed, &[][..]));
    }
    // What can be read can be shown.
    for form in
        [&["--details"][..], &["--html", "all.html"], &["--csv", "all.csv"], &["--svg", "all.svg"]]
    {
        let shown = place.run(&[&["report", "all.jsonl"], form].concat());
        assert_eq!(code(&shown), 0, "{form:?}: {}", stderr(&shown));
    }
}

#[test]
fn several_trials_of_all_hosts_are_one_result() {
    let place = Place::in_memory();
    let args = ["run", "sim:ssd", "-q", "4", "--seed", "7", "-d", "1s", "--warm-up=0s"];
    let (output, own) = run(&place, &THREE, &[&args[..], &["--repeats", "2"]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stdout(&output), &["all of this 2 times", "on each of 3 hosts, 2 trials: "]);
    let all = read(&place.join("all.jsonl"));
    let trials = all.trials.iter().map(|one| (one.place.repeat, one.point.seed, one.hosts.len()));
    assert_eq!(trials.collect::<Vec<_>>(), [(0, 7, 3), (1, 8, 3)]);
    assert!(own.iter().all(|one| one.trials.len() == 2));
}

#[test]
fn hosts_with_wrong_clocks_begin_together_as_far_as_can_be_known() {
    let place = Place::new();
    let hour = 3_600_000_000_000_i64;
    let settings = [
        ("a", 0, PATIENT),
        ("b", hour, PATIENT),
        ("c", -17_000_000, PATIENT),
        ("d", -hour, PATIENT),
    ];
    with_data(&place, &settings.map(|(name, ..)| name));
    let args = ["run", "data", "-q", "1", "-d", "1s", "--warm-up", "0s"];
    let (output, own) = run(&place, &settings, &args);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let trial = &read(&place.join("all.jsonl")).trials[0];
    // The clocks are in truth the same one: the record of each host has its true time.
    let began = |place: usize| own[place].trials[0].started_unix_ns as i64;
    for (one, host) in trial.hosts.iter().enumerate() {
        let start = host.began.unwrap();
        for (other, those) in trial.hosts.iter().enumerate() {
            let told = start.after_ns - those.began.unwrap().after_ns;
            let bound = start.bound.0 + those.began.unwrap().bound.0;
            let wrong = (began(one) - began(other) - told).unsigned_abs();
            // The window opens a moment after the start is told, on a busy machine some time later.
            assert!(
                wrong <= bound + 5_000_000_000,
                "{one} {other}: {wrong} ns, known to {bound} ns"
            );
        }
        // The start that was ordered is never before its time, by more than the clocks are known.
        assert!(-(start.bound.0 as i64) - 1_000_000 <= start.after_ns, "{start:?}");
    }
}

#[test]
fn a_host_that_is_killed_is_missing_and_the_others_go_on() {
    let place = Place::new();
    let args = ["run", "data", "-q", "1", "-d", "8s", "--warm-up", "0s", "--fail-if", "iops<1"];
    let (router, running) = begun(&place, &THREE, &args, "random read");
    // Its own file has its header as soon as its load begins.
    until_loaded(&place, "b");
    router.kill("b");
    let (status, _, said) = running.end();
    // Without a condition it would be 0, as for every result that is suspect.
    assert_eq!(status.code(), Some(6), "{said}");
    assert_has(&said, &["--fail-if 'iops<1': unknown, because a host was lost"]);
    router.end();
    let all = read(&place.join("all.jsonl"));
    assert_eq!(
        all.conclusion.as_ref().unwrap().ended,
        Ended::Completed,
        "there was no other point"
    );
    let trial = &all.trials[0];
    let lost: Vec<bool> = trial.hosts.iter().map(|host| host.lost.is_some()).collect();
    assert_eq!(lost, [false, true, false]);
    assert_eq!(trial.workers.len(), 2);
    assert_ne!(trial.verdict, Verdict::Sound);
    let finding = trial.findings.iter().find(|finding| finding.code == "host-lost").unwrap();
    assert_has(
        &finding.evidence,
        &["b was lost", "its agent ended", "33.3 % of the load is missing"],
    );
    for (name, ios) in [("a", 0), ("c", 1)] {
        let own = read(&place.join(name).join("own.jsonl"));
        assert!(!own.trials[0].interrupted, "{name} was ended");
        assert_eq!(own.trials[0].workers, trial.workers[ios..=ios], "{name}");
    }
}

#[test]
fn a_host_that_is_cut_off_ends_by_itself_and_keeps_what_it_did() {
    let place = Place::new();
    let settings = [("a", 0, PATIENT), ("b", 0, "5s")];
    let args = ["run", "data", "-q", "1", "-d", "20s", "--warm-up", "0s"];
    let (router, running) = begun(&place, &settings, &args, "random read");
    until_loaded(&place, "b");
    router.cut("b");
    router.hosts["b"].agent.lock().unwrap().wait().unwrap();
    let (status, _, said) = running.end();
    assert!([Some(0), Some(4)].contains(&status.code()), "{said}");
    router.end();
    let own = read(&place.join("b/own.jsonl"));
    assert!(own.trials[0].interrupted && own.trials[0].total(None).ios() > 0);
    assert_eq!(own.conclusion.unwrap().sentences, ["The coordinator was silent for 5 s."]);
    let all = read(&place.join("all.jsonl"));
    let why = &all.trials[0].hosts[1].lost.as_ref().unwrap().why;
    assert_eq!(why, "it was silent for 5 s");
    assert!(!read(&place.join("a/own.jsonl")).trials[0].interrupted, "the other host goes on");
}

#[test]
fn a_coordinator_that_is_killed_leaves_no_load_behind() {
    let place = Place::new();
    let args = ["run", "data", "-q", "1", "-d", "1h", "--warm-up", "0s"];
    let (router, running) = begun(&place, &THREE, &args, "IOPS");
    until_all_loaded(&place);
    running.kill();
    // All agents end, which the router waits for.
    router.end();
    for name in ["a", "b", "c"] {
        let own = read(&place.join(name).join("own.jsonl")).conclusion.unwrap();
        assert_eq!(own.ended, Ended::Interrupted, "{name}");
        assert_eq!(own.sentences, ["The coordinator is gone."], "{name}");
    }
}

#[test]
fn an_interrupted_load_ends_on_all_hosts_and_is_kept() {
    let place = Place::new();
    let args = ["run", "data", "-q", "1", "-d", "1h", "--warm-up", "0s"];
    let (router, running) = begun(&place, &THREE, &args, "IOPS");
    until_all_loaded(&place);
    running.signal("INT");
    let (status, _, said) = running.end();
    assert_eq!(status.code(), Some(130), "{said}");
    router.end();
    let all = read(&place.join("all.jsonl"));
    assert!(all.trials[0].interrupted && all.trials[0].hosts.iter().all(|one| one.lost.is_none()));
    assert_eq!(all.trials[0].workers.len(), 3);
    assert_eq!(all.conclusion.unwrap().ended, Ended::Interrupted);
    let own = read(&place.join("b/own.jsonl")).conclusion.unwrap();
    assert_eq!(
        (own.ended, own.sentences[0].as_str()),
        (Ended::Interrupted, "The coordinator said stop.")
    );
}

#[test]
fn nothing_begins_where_one_host_refuses_or_would_do_something_else() {
    let place = Place::new();
    with_data(&place, &["a", "b"]);
    std::fs::create_dir_all(place.join("c")).unwrap();
    place.prepared("c/data", 2);
    let before = std::fs::read(place.join("b/data")).unwrap();
    let refused = |args: &[&str], exit: i32, parts: &[&str]| {
        let (output, own) = run(&place, &THREE, args);
        assert_eq!(code(&output), exit, "{args:?}: {}", stderr(&output));
        assert_has(&stderr(&output), parts);
        assert!(own.is_empty() && !place.join("all.jsonl").exists(), "{args:?}");
        std::fs::remove_file(place.join("router")).unwrap();
    };
    refused(&["run", "data", "-q", "1"], 3, &["c: its load would not be that of a: ", "--size"]);
    refused(&["run", "nothing", "-q", "1"], 3, &["nothing", "does not exist"]);
    let write = ["run", "data", "--read-share", "0%", "--size", "1m"];
    refused(&write, 3, &["its data would be lost"]);
    refused(&["run", "data", "--destroy", "data"], 2, &["--destroy HOST:data"]);
    refused(&["run", "data", "--destroy", "x:data"], 2, &["--destroy x", "no such host"]);
    refused(&["run", "data", "--watch"], 2, &["--watch"]);
    assert!(std::fs::read(place.join("b/data")).unwrap() == before, "something was written");
    let args = [&write[..], &["-d", "200ms", "--warm-up", "0s", "--overwrite"]].concat();
    let (output, own) = run(&place, &THREE, &args);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    assert_eq!(own.len(), 3);
}

#[test]
fn a_host_with_another_version_is_refused_and_a_router_is_needed() {
    let place = Place::in_memory();
    let output = on_hosts(&place, &["run", "sim:ssd"]).output().unwrap();
    assert_eq!(code(&output), 3);
    assert_has(&stderr(&output), &["--hosts: no router answers at router", "fathom-hosts"]);
    let listener = UnixListener::bind(place.join("router")).unwrap();
    let other = std::thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        let to = Mutex::new(socket.try_clone().unwrap());
        say(&to, r#"{"router":1,"hosts":["old"]}"#);
        let mut line = String::new();
        BufReader::new(socket).read_line(&mut line).unwrap();
        assert!(line.contains("\"message\":\"hello\""), "{line}");
        let refusal = json!({ "message": "refused", "exit_code": 3,
            "why": "fathom agent: this host has fathom 0.0.1, and the coordinator has another" });
        say(&to, &json!({ "host": "old", "line": refusal }).to_string());
    });
    let output = on_hosts(&place, &["run", "sim:ssd"]).output().unwrap();
    other.join().unwrap();
    assert_eq!(code(&output), 3);
    assert_has(&stderr(&output), &["old: ", "fathom 0.0.1", "same version"]);
    assert_eq!(place.names(), ["router"]);
}

#[test]
fn a_sweep_over_the_number_of_hosts_says_how_it_scales() {
    let place = Place::in_memory();
    let args = [
        "sweep",
        "sim:ssd",
        "--axis",
        "hosts=1,2..N",
        "--axis",
        "queue-depth=1,4",
        "-d",
        "500ms",
        "--warm-up",
        "0s",
        "--repeats",
        "2",
        "--seed",
        "5",
    ];
    let (output, own) = run(&place, &THREE, &args);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stdout(&output), &["hosts: 1, 2, 3", "hosts    3: a, b, c", "from 1 to 3 hosts"]);
    let all = read(&place.join("all.jsonl"));
    assert_eq!((all.trials.len(), all.header.planned_points), (12, 12));
    let mut counts = BTreeMap::new();
    for trial in &all.trials {
        let at = |axis: &str| {
            let found = trial.place.coordinates.iter().find(|one| one.axis == axis).unwrap();
            found.label.parse::<usize>().unwrap()
        };
        assert_eq!(trial.hosts.len(), at("hosts"));
        assert_eq!(trial.workers.len(), at("hosts"));
        assert_eq!(trial.point.streams[0].pacing.queue_depth() as usize, at("queue-depth"));
        *counts.entry((at("hosts"), at("queue-depth"))).or_insert(0) += 1;
    }
    assert!(counts.len() == 6 && counts.values().all(|count| *count == 2), "{counts:?}");
    // The first host took part in all of them, the last one in a third; each with seeds of its own.
    let trials: Vec<usize> = own.iter().map(|one| one.trials.len()).collect();
    assert_eq!(trials, [12, 8, 4]);
    let mut seeds: Vec<u64> = own.iter().flat_map(|o| &o.trials).map(|t| t.point.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 24);
    let answer = all.conclusion.unwrap().sentences[0].clone();
    assert!(
        answer.starts_with("queue-depth 4: from 1 to 3 hosts throughput rises 3.0"),
        "{answer}"
    );
}

#[test]
fn a_sweep_that_was_cut_off_goes_on_where_it_was() {
    let place = Place::new();
    let args = [
        "sweep",
        "data",
        "--axis",
        "hosts=1,3",
        "--axis",
        "queue-depth=1,2",
        "--seed",
        "3",
        "-d",
        "1s",
        "--warm-up",
        "0s",
        "--yes",
    ];
    // One trial is there, and the second one runs.
    let (router, running) = begun(&place, &THREE, &args, "point 2/4");
    running.kill();
    router.end();
    let before = read(&place.join("all.jsonl"));
    assert!(before.conclusion.is_none() && before.trials.len() < 4, "it was killed");
    let refused = place.run(&["resume", "all.jsonl"]);
    assert_eq!(code(&refused), 5, "{}", stderr(&refused));
    assert_has(&stderr(&refused), &["many hosts measured it (a, b, c)", "fathom-hosts resume"]);
    let others = resumed(&place, &THREE[..2]);
    assert_ne!(code(&others), 0);
    assert_has(&stderr(&others), &["3 is no number of hosts from 1 to 2"]);
    let output = resumed(&place, &THREE);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let after = read(&place.join("all.jsonl"));
    assert_eq!(after.trials.len(), 4);
    assert_eq!(after.trials[..before.trials.len()], before.trials, "what was there stays");
    assert_eq!(after.conclusion.unwrap().ended, Ended::Completed);
}

#[test]
fn a_plan_reaches_every_host_and_starts_nothing() {
    let place = Place::new();
    with_data(&place, &["a", "b", "c"]);
    let settings = [("a", 0, PATIENT), ("b", 3_600_000_000_000, PATIENT), ("c", 0, PATIENT)];
    let router = TestRouter::start(&place, &settings);
    let args = ["plan", "data", "--read-share", "0%", "--overwrite", "--hosts", "router"];
    let output = place.run(&args);
    router.end();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    assert_has(
        &text,
        &["3 hosts: a, b, c", "b: ", "clock 60.0 min ahead", "OVERWRITTEN", "nothing started"],
    );
    let left = place.names().into_iter().chain(common::names(&place.join("a")));
    assert!(left.eq(["a", "b", "c", "router", "data"]));
}

#[test]
fn what_cannot_vary_over_hosts_is_refused() {
    let place = Place::in_memory();
    let refused = |axis: &str, parts: &[&str]| {
        let (output, own) = run(&place, &THREE, &["sweep", "sim:ssd", "--axis", axis]);
        assert!([2, 3].contains(&code(&output)), "{axis}: {}", stderr(&output));
        assert_has(&stderr(&output), parts);
        assert!(own.is_empty() && !place.join("all.jsonl").exists(), "{axis}");
        std::fs::remove_file(place.join("router")).unwrap();
    };
    refused("hosts=1,4", &["hosts=1,4", "4 is no number of hosts from 1 to 3"]);
    refused(
        "targets=sim:ssd,sim:hdd",
        &["--axis targets", "only options of `fathom run` and hosts"],
    );
    refused("block-size=4k,0", &["at block-size 0"]);
}

/// Kills a host while the second point runs: nothing that was finished is lost, and it goes on with all
/// hosts.
fn goes_on_after_a_lost_host(args: &[&str]) {
    let place = Place::new();
    let times = ["--seed", "3", "-d", "4s", "--warm-up", "0s", "--yes"];
    let (router, running) = begun(&place, &THREE, &[args, &times].concat(), "point 2/");
    // The load begins half a second later, and lasts for longer than this.
    std::thread::sleep(Duration::from_millis(1500));
    router.kill("b");
    let (_, _, said) = running.end();
    router.end();
    let before = read(&place.join("all.jsonl"));
    let conclusion = before.conclusion.unwrap();
    assert_eq!(conclusion.ended, Ended::Failed, "{said}");
    let why = conclusion.sentences.last().unwrap();
    // Where the machine is so busy that the load had not begun, there is no trial that lacks a host.
    assert!(
        why.contains("because a host was lost: `fathom-hosts resume`") || why.starts_with("b: ")
    );
    let whole: Vec<_> = before.trials.into_iter().filter(|trial| trial.is_whole()).collect();
    // On a machine that is busy enough the second one is over as well.
    assert!(!whole.is_empty(), "{said}");
    let output = resumed(&place, &THREE);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let after = read(&place.join("all.jsonl"));
    assert_eq!(after.conclusion.unwrap().ended, Ended::Completed);
    assert_eq!(after.trials[..whole.len()], whole);
    assert!(2 < after.trials.len() && after.trials.iter().all(|trial| trial.is_whole()));
    assert!(after.trials.iter().all(|trial| trial.hosts.len() == 3));
}

#[test]
fn a_sweep_that_lost_a_host_goes_on_with_all_of_them() {
    goes_on_after_a_lost_host(&["sweep", "data", "--axis", "queue-depth=1,2,3"]);
}

#[test]
fn a_search_that_lost_a_host_goes_on_with_all_of_them() {
    goes_on_after_a_lost_host(&["peak", "data", "--up-to", "2", "--official", "none"]);
}

#[test]
fn the_peak_of_several_hosts_is_the_setting_that_saturates_each() {
    let place = Place::in_memory();
    // Four servers of 1 ms on each host, whose last I/Os complete after the window.
    let target = "sim:queue,servers=4,service-time=1ms";
    let args =
        ["peak", target, "-d", "500ms", "--warm-up", "0s", "--official", "2s", "--seed", "5"];
    let (output, own) = run(&place, &THREE, &args);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stdout(&output), &["peak: the lowest queue depth on each host that gives 95 %"]);
    let all = read(&place.join("all.jsonl"));
    let conclusion = all.conclusion.unwrap();
    assert_has(
        &conclusion.sentences[0],
        &["Queue depth 4 on each of 3 hosts (12 in all) saturates their targets: 11,994 IOPS"],
    );
    let Some(Found::Peak(found)) = conclusion.found else { panic!("a peak was found") };
    assert_eq!(found.choice, Some(4.0));
    let official = all.trials.last().unwrap();
    assert_eq!((official.place.role, official.window()), (Role::Official, Span::from_secs(2)));
    for (host, own) in own.iter().enumerate() {
        let points = own.trials.iter().map(|trial| &trial.point);
        let planned = all.trials.iter().map(|trial| &trial.point);
        assert_eq!(own.trials.len(), all.trials.len());
        for (own, planned) in points.zip(planned) {
            assert_eq!(own.seed, planned.seed + 1_000_000 * host as u64);
            assert_eq!(own.streams, planned.streams, "{}", planned.name);
        }
    }
    let shown = place.run(&["report", "all.jsonl"]);
    assert_has(&stdout(&shown), &["queue depth on each host", "hosts   3: a, b, c"]);
}

#[test]
fn the_highest_load_of_several_hosts_is_that_of_each() {
    let place = Place::in_memory();
    let target = "sim:queue,servers=1,service-time=1ms,distribution=exponential";
    let words = "-d 10s --warm-up 0s --official none --seed 2 --rate 100 --objective p90<=10ms";
    let args: Vec<&str> = ["peak", target].into_iter().chain(words.split(' ')).collect();
    let (output, _) = run(&place, &THREE[..2], &args);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let conclusion = read(&place.join("all.jsonl")).conclusion.unwrap();
    let Some(Found::Peak(found)) = conclusion.found else { panic!("a peak was found") };
    // M/M/1: the response time is exponential, with p90 = ln 10 / (capacity - load).
    let truth = 1000.0 - std::f64::consts::LN_10 / 0.010;
    let choice = found.choice.unwrap();
    assert!((choice / truth - 1.0).abs() < 0.1, "{choice}, and not {truth}");
    assert_has(&conclusion.sentences[0], &[" IOPS on each of 2 hosts (1,", " in all)"]);
}

#[test]
fn rounds_on_several_hosts_are_steady_together() {
    let place = Place::in_memory();
    let target = "sim:queue,servers=4,service-time=1ms,size=4m";
    let words = "-q 4 --read-share 0% -d 1s --warm-up 0s --at-least 0s --precondition 2 --seed 5";
    let args: Vec<&str> = ["sustain", target].into_iter().chain(words.split(' ')).collect();
    let (output, own) = run(&place, &THREE[..2], &args);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let all = read(&place.join("all.jsonl"));
    let sentences = &all.conclusion.as_ref().unwrap().sentences;
    assert_has(
        &sentences[0],
        &["Steady throughout: IOPS of random write 4 KiB, on 2 hosts, 7,992 IOPS in rounds 1 to 5"],
    );
    let written = |document: &Document| {
        let before = document.trials.iter().take_while(|one| one.point.name.contains("pass"));
        before.map(|one| one.total(Some(Direction::Write)).bytes.0).sum::<u64>()
    };
    assert_eq!(own.iter().map(written).collect::<Vec<_>>(), [2 * (4 << 20); 2]);
    assert_eq!(written(&all), 2 * 2 * (4 << 20));
    assert_eq!(all.trials.iter().filter(|one| one.place.role == Role::Result).count(), 5);
}

#[test]
fn a_consent_is_for_what_an_experiment_writes_and_for_nothing_else() {
    let place = Place::new();
    with_data(&place, &["a", "b", "c"]);
    let before = std::fs::read(place.join("b/data")).unwrap();
    let refused = |args: &[&str], parts: &[&str]| {
        let (output, own) = run(&place, &THREE, args);
        assert!([2, 3].contains(&code(&output)), "{args:?}: {}", stderr(&output));
        assert_has(&stderr(&output), parts);
        assert!(own.is_empty() && !place.join("all.jsonl").exists(), "{args:?}");
        std::fs::remove_file(place.join("router")).unwrap();
    };
    let would_write = ["its data would be lost", "--overwrite"];
    refused(&["sustain", "data", "--precondition", "1", "--yes"], &would_write);
    refused(&["sustain", "data", "--test", "throughput", "--yes"], &would_write);
    refused(&["peak", "data", "--read-share", "0%", "--yes"], &would_write);
    refused(&["peak", "data", "--overwrite"], &["--overwrite: all I/Os are reads"]);
    refused(&["peak", "data", "--trace", "t.csv"], &["--trace: it is for one machine"]);
    assert!(std::fs::read(place.join("b/data")).unwrap() == before, "something was written");
    // One that reads in some of its points and writes in others.
    let words = "--axis read-share=100%,0% -d 200ms --warm-up 0s --yes --overwrite";
    let args: Vec<&str> = ["sweep", "data"].into_iter().chain(words.split(' ')).collect();
    let (output, own) = run(&place, &THREE, &args);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    assert_has(&stdout(&output), &["OVERWRITES on a: ", "OVERWRITES on c: "]);
    assert_eq!(own.iter().map(|one| one.trials.len()).collect::<Vec<_>>(), [2; 3]);
    assert!(std::fs::read(place.join("b/data")).unwrap() != before, "nothing was written");
}

#[test]
fn the_workload_of_an_experiment_is_that_experiment_on_hosts_too() {
    let place = Place::in_memory();
    let load = "block-size = '8k'\nduration = '200ms'\nwarm-up = '0s'\n";
    for (table, command) in [
        ("[peak]\nup-to = 4\nofficial = 'none'\n", "peak"),
        ("[sweep]\naxes.queue-depth = [1, 2]\n", "sweep"),
        ("[sustain]\nat-least = '0s'\nprecondition = 'none'\n", "sustain"),
    ] {
        std::fs::write(place.join("w.toml"), format!("{load}{table}")).unwrap();
        let (output, _) = run(&place, &THREE[..2], &["run", "w.toml", "sim:ssd"]);
        assert_eq!(code(&output), 2, "{}", stderr(&output));
        assert_has(&stderr(&output), &[&format!("run it with `fathom {command}`")]);
        std::fs::remove_file(place.join("router")).unwrap();
        let (output, own) = run(&place, &THREE[..2], &[command, "w.toml", "sim:ssd"]);
        assert!([0, 4].contains(&code(&output)), "{command}: {}", stderr(&output));
        let all = read(&place.join("all.jsonl"));
        assert!(1 < all.trials.len() && own[1].trials.len() == all.trials.len(), "{command}");
        std::fs::remove_file(place.join("router")).unwrap();
        std::fs::remove_file(place.join("all.jsonl")).unwrap();
        for name in ["a", "b"] {
            std::fs::remove_file(place.join(name).join("own.jsonl")).unwrap();
        }
    }
}

/// Three hosts with a file in common that is full of marks, each with a payload of its own letter.
fn with_one_file(place: &Place, blocks: usize) {
    for (name, letter) in [("a", b'a'), ("b", b'b'), ("c", b'c')] {
        std::fs::create_dir_all(place.join(name)).unwrap();
        std::fs::write(place.join(name).join("mine"), vec![letter; 64 << 10]).unwrap();
    }
    std::fs::write(place.join("data"), vec![b'.'; blocks * 4096]).unwrap();
}

/// A letter for each block of the file in common, which has to be of one letter.
fn letters(place: &Place) -> String {
    let data = std::fs::read(place.join("data")).unwrap();
    let letter = |block: &[u8]| {
        assert!(block.iter().all(|byte| *byte == block[0]), "a block has two writers");
        char::from(block[0])
    };
    data.chunks(4096).map(letter).collect()
}

#[test]
fn each_host_writes_its_own_bytes_of_one_file_and_no_others() {
    // Two blocks before the region, 152 in it, which three hosts cannot divide evenly, and five behind.
    let range = ["--offset", "8k", "--size", "608k", "--passes", "1", "--repeats", "2"];
    let writes = ["--read-share", "0%", "--payload", "pool:64k,mine", "--overwrite"];
    for (how, load, expected) in [
        ("zones", &["--pattern", "sequential", "-q", "4"][..], {
            "a".repeat(50) + &"b".repeat(51) + &"c".repeat(51)
        }),
        ("zones", &["--no-repeat", "-q", "4", "-w", "2"], {
            "a".repeat(50) + &"b".repeat(51) + &"c".repeat(51)
        }),
        ("blocks", &["--pattern", "sequential", "-q", "4"], "abc".repeat(50) + ".."),
        ("blocks", &["--no-repeat", "-q", "4", "-w", "2"], "abc".repeat(50) + ".."),
        ("blocks", &["--pattern", "interlocked", "-q", "4", "-w", "2"], "abc".repeat(50) + ".."),
    ] {
        let place = Place::new();
        with_one_file(&place, 159);
        let args = [&["run", "../data", "--by-host", how][..], load, &range, &writes].concat();
        let (output, own) = run(&place, &THREE, &args);
        assert!([0, 4].contains(&code(&output)), "{args:?}: {}", stderr(&output));
        assert_eq!(letters(&place), format!("..{expected}....."), "{args:?}");
        // The user is told which bytes, and the result has them.
        let told = match how {
            "zones" => "/data, bytes 212,992 to 421,887: ",
            _ => "/data, 1 of 3 blocks in bytes 12,288 to 618,495: ",
        };
        assert_has(&stdout(&output).replace("\n  ", " "), &["OVERWRITES on b: ", told]);
        let trials = read(&place.join("all.jsonl")).trials;
        assert_eq!(trials.len(), 2);
        for (repeat, trial) in trials.iter().enumerate() {
            let whole = trial.point.streams[0].regions[0];
            assert_eq!((whole.offset.0, whole.length.0), (8192, 622_592));
            assert_eq!(trial.hosts.len(), 3);
            for (host, own) in trial.hosts.iter().zip(&own) {
                assert_eq!(host.regions, own.trials[repeat].point.streams[0].regions);
                assert_eq!(host.regions, own.trials[0].point.streams[0].regions);
            }
        }
    }
}

#[test]
fn a_plan_says_which_bytes_are_whose_and_a_sweep_divides_among_those_that_take_part() {
    let place = Place::new();
    with_one_file(&place, 12);
    let router = TestRouter::start(&place, &THREE);
    let output = place.run(&["plan", "../data", "--by-host", "blocks", "--hosts", "router"]);
    router.end();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stdout(&output), &["only 1 of 3 blocks in bytes 8,192 to 49,151"]);
    std::fs::remove_file(place.join("router")).unwrap();
    let args = [
        "sweep",
        "../data",
        "--by-host",
        "zones",
        "--axis",
        "hosts=1,3",
        "-d",
        "200ms",
        "--warm-up",
        "0s",
        "--yes",
    ];
    let (output, own) = run(&place, &THREE, &args);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let lengths: Vec<Vec<u64>> = own
        .iter()
        .map(|one| {
            let mut all: Vec<u64> =
                one.trials.iter().map(|one| one.point.streams[0].regions[0].length.0).collect();
            all.sort_unstable();
            all
        })
        .collect();
    let part = 4 * 4096;
    assert_eq!(lengths, [vec![part, 3 * part], vec![part], vec![part]]);
}

#[test]
fn a_sweep_names_the_bytes_that_hosts_overwrite_only_if_they_are_those_of_all_its_points() {
    for (axis, told) in [
        ("queue-depth=1,2", "/data, bytes 0 to 49,151: "),
        ("size=24k,48k", "/data: "),
        ("size=48k,24k", "/data: "),
    ] {
        let place = Place::new();
        with_one_file(&place, 12);
        let words =
            "--by-host zones --read-share 0% -d 200ms --warm-up 0s --overwrite --yes --axis";
        let args: Vec<&str> =
            ["sweep", "../data"].into_iter().chain(words.split(' ')).chain([axis]).collect();
        let (output, own) = run(&place, &THREE, &args);
        assert!([0, 4].contains(&code(&output)), "{axis}: {}", stderr(&output));
        let said = stdout(&output).replace("\n  ", " ");
        for host in ["a", "b", "c"] {
            let start = format!("OVERWRITES on {host}: ");
            let lines: Vec<&str> = said.lines().filter(|line| line.starts_with(&start)).collect();
            assert!(lines.len() == 1 && lines[0].contains(told), "{axis}: {said}");
        }
        assert_eq!(own.iter().map(|one| one.trials.len()).collect::<Vec<_>>(), [2; 3]);
    }
}

#[test]
fn hosts_divide_no_file_for_an_experiment_whose_points_have_all_of_it() {
    let place = Place::new();
    with_one_file(&place, 12);
    let before = std::fs::read(place.join("data")).unwrap();
    std::fs::write(place.join("w.toml"), "[stream.users]\nby-host = 'blocks'\n").unwrap();
    let consent = ["-d", "200ms", "--warm-up", "0s", "--overwrite", "--yes"];
    let writes = ["--read-share", "0%"];
    let remedy = "drop it; run and sweep divide a file";
    for (args, option) in [
        (&["peak", "../data", "--by-host", "zones"][..], "error: --by-host zones: "),
        (&["sustain", "../data", "--by-host", "blocks"], "error: --by-host blocks: "),
        (&["sustain", "../data", "--by-host", "zones", "--test", "throughput"], "--by-host zones"),
        (&["peak", "w.toml", "../data"], "error: by-host blocks is refused"),
    ] {
        let throughput = args.contains(&"throughput");
        let args = [args, &consent, if throughput { &[] } else { &writes }].concat();
        let (output, own) = run(&place, &THREE, &args);
        let said = stderr(&output);
        assert_eq!(code(&output), 2, "{args:?}: {said}");
        assert!(said.contains(option), "{args:?}: {said}");
        assert_has(&said.split_whitespace().collect::<Vec<_>>().join(" "), &[remedy]);
        assert!(own.is_empty() && !place.join("all.jsonl").exists(), "{args:?}");
        assert!(std::fs::read(place.join("data")).unwrap() == before, "{args:?}: it was written");
        std::fs::remove_file(place.join("router")).unwrap();
    }
}
