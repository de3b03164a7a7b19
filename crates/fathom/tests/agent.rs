//! Tests `fathom agent` as a coordinator sees it: messages in, messages and the lines of the result
//! out. Nothing here depends on how fast the machine is.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use common::{Place, read};
use fathom_report::document::{Ended, Verdict};
use serde_json::{Value, json};

/// Long enough for a busy machine.
const PATIENT: &str = "2m";

/// A coordinator with its agent.
struct Coordinator {
    agent: Child,
    says: Option<ChildStdin>,
    hears: BufReader<ChildStdout>,
    /// The lines of the result file that came so far.
    result: String,
}

impl Coordinator {
    fn start(place: &Place, lease: &str) -> Self {
        let mut command = place.command(&["agent", "--lease", lease, "--out", "own.jsonl"]);
        let mut agent = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let hears = BufReader::new(agent.stdout.take().unwrap());
        let says = agent.stdin.take();
        Self { agent, says, hears, result: String::new() }
    }

    /// The same after the first exchange.
    fn greeted(place: &Place, lease: &str) -> Self {
        let mut one = Self::start(place, lease);
        one.say(&hello(env!("CARGO_PKG_VERSION")));
        assert_eq!(one.until("hello")["protocol"], 1);
        one
    }

    fn say(&mut self, message: &Value) {
        self.say_text(&message.to_string());
    }

    fn say_text(&mut self, line: &str) {
        writeln!(self.says.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next message; none at the end.
    fn hear(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.hears.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            let json: Value = serde_json::from_str(&line).unwrap();
            if json.get("message").is_some() {
                return Some(json);
            }
            self.result += &line;
        }
    }

    /// Waits for a message of this name.
    fn until(&mut self, name: &str) -> Value {
        loop {
            let message = self.hear().unwrap_or_else(|| panic!("it ended without '{name}'"));
            if message["message"] == name {
                return message;
            }
            assert!(
                ["progress", "began"].contains(&message["message"].as_str().unwrap()),
                "{message}"
            );
        }
    }

    /// Asks, and expects a refusal that says this.
    fn refused(&mut self, message: &Value, why: &str) {
        self.say(message);
        let answer = self.until("refused");
        assert!(answer["why"].as_str().unwrap().contains(why), "{answer}");
    }

    /// Says no more, and waits for the end. Checks that the lines it told are those of its file.
    fn leave(mut self, place: &Place) -> ExitStatus {
        drop(self.says.take());
        while self.hear().is_some() {}
        let status = self.agent.wait().unwrap();
        let file = std::fs::read_to_string(place.join("own.jsonl")).unwrap_or_default();
        assert!(self.result == file, "it told other lines than those of its file");
        status
    }
}

impl Drop for Coordinator {
    fn drop(&mut self) {
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

fn hello(version: &str) -> Value {
    json!({ "message": "hello", "protocol": 1, "fathom_version": version, "points": 2 })
}

fn prepare(words: &[&str]) -> Value {
    json!({ "message": "prepare", "words": words })
}

fn start() -> Value {
    json!({ "message": "start", "at_unix_ns": 0 })
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
fn a_load_is_prepared_begins_when_it_is_told_to_and_is_recorded_here_and_there() {
    let place = Place::new();
    let data = place.prepared("data", 8);
    let mut one = Coordinator::greeted(&place, PATIENT);
    one.say(&prepare(&["data", "-q", "2", "-d", "3s", "--warm-up", "0s", "--seed", "7"]));
    let prepared = one.until("prepared");
    let target = &prepared["targets"][0];
    assert_eq!(target["facts"]["path"], data.canonicalize().unwrap().to_str().unwrap());
    assert_eq!(
        (&target["facts"]["size_bytes"], &target["is_overwritten"]),
        (&json!(8 << 20), &json!(false))
    );
    assert!(target["identity"].as_str().unwrap().contains("inode"), "{target}");
    assert!(prepared["plan"][0].as_str().unwrap().contains("random read 4 KiB"), "{prepared}");
    assert!(1_000_000_000 <= prepared["takes_ns"].as_u64().unwrap(), "{prepared}");
    let at = now_ns() + 300_000_000;
    one.say(&json!({ "message": "start", "at_unix_ns": at }));
    let began = one.until("began")["unix_ns"].as_u64().unwrap();
    // Both ends read their clock at some time: here a microsecond matters to nobody.
    assert!(at <= began + 1_000_000, "{at} {began}");
    // Under load too, the time is told at once.
    let before = now_ns();
    one.say(&json!({ "message": "clock", "id": 42 }));
    let clock = one.until("clock");
    assert_eq!(clock["id"], 42);
    let told = clock["unix_ns"].as_u64().unwrap();
    assert!(before <= told && told <= now_ns());
    assert_eq!(one.until("ended")["completed"], true);

    one.say(&json!({
        "message": "prepare",
        "words": ["data", "-d", "200ms", "--warm-up", "0s", "--read-share", "0%"],
        "consent": { "overwrite": true },
    }));
    assert_eq!(one.until("prepared")["targets"][0]["is_overwritten"], true);
    one.say(&start());
    assert_eq!(one.until("ended")["completed"], true);
    one.say(&json!({ "message": "stop" }));
    let status = one.leave(&place);
    assert!([0, 4].contains(&status.code().unwrap()), "{status}");

    let result = read(&place.join("own.jsonl"));
    assert_eq!((result.trials.len(), result.header.planned_points), (2, 2));
    assert_eq!(result.trials[0].point.seed, 7);
    let read = &result.trials[0];
    assert!(read.total(None).ios() > 0 || read.verdict == Verdict::Void);
    assert!(result.trials[1].point.streams[0].destroys());
    let conclusion = result.conclusion.unwrap();
    assert_eq!(conclusion.ended, Ended::Completed);
    assert!(conclusion.sentences.is_empty(), "a normal end: {:?}", conclusion.sentences);
}

#[test]
fn what_is_not_allowed_is_refused_and_nothing_is_touched() {
    let place = Place::new();
    let data = place.prepared("data", 1);
    place.prepared("other", 1);
    std::fs::write(place.join("secret.toml"), "a secret\n").unwrap();
    let before = std::fs::read(&data).unwrap();
    let names = place.names();
    let mut one = Coordinator::start(&place, PATIENT);
    one.refused(&prepare(&["data"]), "the first message has to be hello");
    one.refused(&hello("0.0.1"), "the coordinator has fathom 0.0.1");
    one.say(&hello(env!("CARGO_PKG_VERSION")));
    one.until("hello");
    for (words, why) in [
        (&["data", "--read-share", "0%"][..], "its data would be lost"),
        (&["data", "--read-share", "0%", "--overwrite"], "a consent: it is not one of the words"),
        (&["data", "--out", "x"], "--out: it is not one of the words"),
        (&["data", "--html", "x.html"], "a report: it is not one of the words"),
        (&["data", "--watch"], "--watch: it is not one of the words"),
        (&["data", "--bogus"], "unexpected argument '--bogus'"),
        (&["--help"], "words"),
        (&["secret.toml", "data"], "reads no workload file of its host"),
        (&["data", "--workload", "secret.toml"], "reads no workload file of its host"),
        (&["nothing-here"], "it does not exist"),
        (&["data", "-b", "3"], "3"),
        (&[], "TARGET: there is none"),
    ] {
        one.say(&prepare(words));
        let answer = one.until("refused").to_string();
        assert!(answer.contains(why) && !answer.contains("a secret"), "{words:?}: {answer}");
    }
    one.refused(&start(), "no load is ready");
    for line in ["", "rm -rf /", "{\"message\":\"shell\",\"command\":\"id\"}", "[1]"] {
        one.say_text(line);
        assert!(one.until("refused")["why"].as_str().unwrap().contains("it is no message"));
    }
    let consent = json!({ "destroy": ["other"] });
    let elsewhere = json!({ "message": "prepare", "words": ["data", "--read-share", "0%"],
        "consent": consent });
    one.refused(&elsewhere, "it is not one of the targets");
    let status = one.leave(&place);
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(std::fs::read(&data).unwrap() == before, "something was written");
    assert_eq!(place.names(), names, "something was left");
}

#[test]
fn a_point_that_has_all_of_a_file_is_refused_where_hosts_divide_it() {
    let place = Place::new();
    let data = place.prepared("data", 1);
    let before = std::fs::read(&data).unwrap();
    let names = place.names();
    let mut one = Coordinator::greeted(&place, PATIENT);
    let words = ["data", "--read-share", "0%", "-d", "200ms", "--warm-up", "0s"];
    let load = |words: &[&str], point: &Value, text: &str| {
        let mut load = prepare(words);
        load["consent"] = json!({ "overwrite": true });
        load["host"] = json!({ "number": 1, "hosts": 2 });
        load["workload"] = json!({ "name": "theirs.toml", "text": text });
        load["point"] = point.clone();
        load
    };
    let stream = "[stream.users]\n";
    one.say(&load(&words, &Value::Null, stream));
    let whole = one.until("prepared")["point"].clone();
    assert_eq!(whole["streams"][0]["regions"][0]["length_bytes"], 1 << 20);
    // It is a possible one, but for the words that divide.
    one.say(&load(&words, &whole, stream));
    assert_eq!(one.until("prepared")["point"], whole);
    let remedy = "drop it; run and sweep divide a file";
    let typed = [&words[..], &["--by-host", "zones"]].concat();
    one.refused(&load(&typed, &whole, stream), remedy);
    one.refused(&load(&words, &whole, &format!("{stream}by-host = 'blocks'\n")), remedy);
    // Before a target is looked at.
    let nowhere = [&["nothing-here", "--by-host", "zones"], &words[1..]].concat();
    one.refused(&load(&nowhere, &whole, stream), remedy);
    one.refused(&start(), "no load is ready");
    // Without a point, the words have this host's half.
    one.say(&load(&typed, &Value::Null, stream));
    let prepared = one.until("prepared");
    let half = &prepared["point"]["streams"][0]["regions"][0];
    assert_eq!((&half["offset_bytes"], &half["length_bytes"]), (&json!(1 << 19), &json!(1 << 19)));
    assert_eq!(prepared["undivided"], whole["streams"][0]["regions"]);
    let status = one.leave(&place);
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(std::fs::read(&data).unwrap() == before, "something was written");
    assert_eq!(place.names(), names, "something was left");
}

#[test]
fn a_workload_comes_as_text_and_the_targets_stay_the_same() {
    let place = Place::in_memory();
    let mut one = Coordinator::greeted(&place, PATIENT);
    let load = |text: &str, target: &str| {
        json!({
            "message": "prepare",
            "words": [target],
            "workload": { "name": "theirs.toml", "text": text },
        })
    };
    one.refused(&load("[stream\n", "sim:queue"), "theirs.toml");
    let text = "duration = \"1s\"\nwarm-up = \"0s\"\n[stream.users]\nqueue-depth = 3\n";
    std::fs::write(place.join("secret.toml"), "a secret\n").unwrap();
    one.say(&load("extends = \"secret.toml\"\n", "sim:queue"));
    let answer = one.until("refused").to_string();
    assert!(answer.contains("extends no file") && !answer.contains("a secret"), "{answer}");
    one.say(&load(text, "sim:queue"));
    one.until("prepared");
    one.say(&start());
    assert_eq!(one.until("ended")["completed"], true);
    one.refused(&load(text, "sim:ssd"), "the loads before were on");
    one.leave(&place);
    let result = read(&place.join("own.jsonl"));
    assert_eq!(result.trials[0].point.streams[0].name, "users");
    assert_eq!(result.conclusion.unwrap().sentences, ["The coordinator is gone."]);
}

#[test]
fn a_load_ends_by_itself_when_the_coordinator_is_silent() {
    let place = Place::new();
    place.prepared("data", 8);
    let mut one = Coordinator::greeted(&place, "6s");
    let begun = Instant::now();
    one.say(&prepare(&["data", "-q", "1", "-d", "1h", "--warm-up", "0s"]));
    one.until("prepared");
    one.say(&start());
    one.until("began");
    // The time that it listens to is not silence.
    for _ in 0..35 {
        std::thread::sleep(Duration::from_millis(200));
        one.say(&json!({ "message": "renew" }));
    }
    let last = Instant::now();
    assert_eq!(one.until("ended")["completed"], false);
    assert!(Duration::from_secs(5) <= last.elapsed() && Duration::from_secs(12) <= begun.elapsed());
    let status = one.leave(&place);
    assert_eq!(status.code(), Some(143), "{status}");
    let result = read(&place.join("own.jsonl"));
    assert!(result.trials[0].interrupted && result.trials[0].total(None).ios() > 0);
    let conclusion = result.conclusion.unwrap();
    assert_eq!(conclusion.ended, Ended::Interrupted);
    assert_eq!(conclusion.sentences, ["The coordinator was silent for 6 s."]);
}

#[test]
fn a_load_ends_when_the_coordinator_is_gone() {
    let place = Place::new();
    place.prepared("data", 8);
    let mut one = Coordinator::greeted(&place, PATIENT);
    one.say(&prepare(&["data", "-q", "1", "-d", "1h", "--warm-up", "0s"]));
    one.until("prepared");
    one.say(&start());
    one.until("progress");
    let status = one.leave(&place);
    assert_eq!(status.code(), Some(143), "{status}");
    let result = read(&place.join("own.jsonl"));
    assert!(result.trials[0].interrupted);
    assert_eq!(result.conclusion.unwrap().sentences, ["The coordinator is gone."]);
}

#[test]
fn an_agent_whose_words_nobody_reads_ends_all_the_same() {
    let place = Place::in_memory();
    let mut one = Coordinator::start(&place, "2s");
    one.say(&hello(env!("CARGO_PKG_VERSION")));
    // More answers than a pipe holds. The questions behind them are not read any more.
    let mut says = one.says.take().unwrap();
    let asks = std::thread::spawn(move || {
        let question = "{\"message\":\"clock\",\"id\":1}\n".repeat(100_000);
        // It ends when the agent does.
        says.write_all(question.as_bytes()).is_err()
    });
    let status = one.agent.wait().unwrap();
    // On a busy machine the questions fill the pipe before the first answer is in it. Then the agent ends
    // after its patience.
    assert!([Some(0), Some(143)].contains(&status.code()), "nothing was measured: {status}");
    assert!(asks.join().unwrap(), "all was read");
    assert!(place.names().is_empty(), "{:?}", place.names());
}
