//! Measures what the coordinator of a load on many hosts costs: hosts that do not exist say what a real
//! agent has said, each second, and in the end each has the trial of a real one.
//!
//! A smoke size runs in `cargo test`. No test checks the times.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::peers::{Profile, Scratch, build, folder};

/// The goal for the memory of a coordinator of 1,000 hosts, in MiB.
const MEMORY_GOAL: f64 = 1024.0;
/// The goal for what it merges of each second, in milliseconds of CPU time.
const MERGING_GOAL: f64 = 100.0;

/// The amount of work of the bench.
#[derive(Clone, Copy, Debug)]
pub struct HostsSize {
    /// The numbers of hosts.
    hosts: &'static [usize],
    /// How long the load takes.
    seconds: u64,
}

impl HostsSize {
    /// Long enough for reliable figures.
    pub const FULL: Self = Self { hosts: &[10, 100, 1000], seconds: 10 };
    /// Just enough to run every row.
    #[cfg(test)]
    const SMOKE: Self = Self { hosts: &[3], seconds: 1 };
}

/// What a real agent has said.
struct RealAgent {
    hello: Value,
    prepared: Value,
    /// A message about the progress, byte for byte.
    progress: String,
    header: String,
    trial: String,
}

/// The cost with this number of hosts.
#[derive(Debug)]
struct HostsRow {
    hosts: usize,
    /// CPU time for each second of load, in milliseconds.
    each_second: f64,
    /// CPU time from the end of the load to the end of the program, in milliseconds.
    at_the_end: f64,
    /// The most memory, in MiB.
    memory: f64,
    /// The size of the result file, in MiB.
    result: f64,
}

/// Measures every number of hosts, and returns the table.
pub fn all(size: HostsSize, profile: Profile) -> Result<String, String> {
    let fathom = build("fathom", profile)?;
    let scratch = Scratch::new(folder(), 1)?;
    let real = RealAgent::listen_to(&fathom, scratch.folder(), size.seconds)?;
    let rows: Result<Vec<HostsRow>, String> = size
        .hosts
        .iter()
        .map(|hosts| row(&fathom, scratch.folder(), &real, *hosts, size.seconds))
        .collect();
    Ok(table(&rows?, size.seconds))
}

impl RealAgent {
    /// Has an agent apply a load on a simulated device, and keeps what it says.
    fn listen_to(fathom: &Path, folder: &Path, seconds: u64) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("fathom agent: {error}");
        let mut agent = Command::new(fathom)
            .args(["agent", "--out", "real.jsonl"])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut says = agent.stdin.take().ok_or("no stdin")?;
        let hears = BufReader::new(agent.stdout.take().ok_or("no stdout")?);
        for message in [
            json!({ "message": "hello", "protocol": 1, "fathom_version": env!("CARGO_PKG_VERSION"), "points": 1 }),
            json!({ "message": "prepare", "words": words(seconds) }),
            json!({ "message": "start", "at_unix_ns": 0 }),
        ] {
            writeln!(says, "{message}").map_err(failed)?;
        }
        let mut said: Vec<(String, Value)> = Vec::new();
        let mut progress = None;
        let mut lines = Vec::new();
        for line in hears.lines() {
            let line = line.map_err(failed)?;
            let json: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
            match json["message"].as_str() {
                Some("ended") => break,
                Some("refused") => return Err(line),
                Some("progress") => progress = Some(line),
                Some(name) => said.push((name.to_owned(), json)),
                None => lines.push(line),
            }
        }
        drop(says);
        agent.wait().map_err(failed)?;
        let mut message = |name: &str| {
            let place = said.iter().rposition(|(known, _)| known == name);
            place.map(|place| said.swap_remove(place).1).ok_or(format!("it said no {name}"))
        };
        let (hello, prepared) = (message("hello")?, message("prepared")?);
        let progress = progress.ok_or("it said no progress")?;
        let line = |start: &str| lines.iter().find(|line| line.starts_with(start)).cloned();
        let header = line("{\"line\":\"header\"").ok_or("it said no header")?;
        let trial = line("{\"line\":\"trial\"").ok_or("it said no trial")?;
        Ok(Self { hello, prepared, progress, header, trial })
    }
}

fn words(seconds: u64) -> [String; 6] {
    ["sim:ssd", "-q", "32", "-d", &format!("{seconds}s"), "--warm-up=0s"].map(str::to_owned)
}

/// A coordinator with this many invented hosts.
fn row(
    fathom: &Path,
    folder: &Path,
    real: &RealAgent,
    hosts: usize,
    seconds: u64,
) -> Result<HostsRow, String> {
    let failed = |error: std::io::Error| format!("{hosts} hosts: {error}");
    let (socket, result) = (folder.join("router"), folder.join("all.jsonl"));
    drop(fs::remove_file(&socket));
    drop(fs::remove_file(&result));
    let (mut coordinator, connection) =
        call(fathom, (&socket, &result), seconds).map_err(failed)?;
    let started = Arc::new((Mutex::new(0_usize), Condvar::new()));
    let to = Arc::new(Mutex::new(connection.try_clone().map_err(failed)?));
    let names: Vec<String> = (0..hosts).map(|host| format!("host-{host}")).collect();
    say(&to, &json!({ "router": 1, "hosts": names }).to_string());
    let answers = {
        let (to, started) = (Arc::clone(&to), Arc::clone(&started));
        let (hello, prepared) = (real.hello.to_string(), real.prepared.to_string());
        thread::spawn(move || answer(&connection, &to, &hello, &prepared, &started))
    };
    let (count, changed) = &*started;
    let count = count.lock().map_err(|error| error.to_string())?;
    let patience = Duration::from_secs(120);
    let (_count, waited) = changed
        .wait_timeout_while(count, patience, |count| *count < hosts)
        .map_err(|error| error.to_string())?;
    if waited.timed_out() {
        end(&mut coordinator);
        return Err(format!("{hosts} hosts: not all of them were told to begin"));
    }
    let mut memory = 0.0_f64;
    let before = cpu_ms(coordinator.id())?;
    for _ in 0..seconds {
        let begun = Instant::now();
        names.iter().for_each(|name| say(&to, &line_of(name, &real.progress)));
        thread::sleep(Duration::from_secs(1).saturating_sub(begun.elapsed()));
        memory = memory.max(peak_mib(coordinator.id()).unwrap_or(0.0));
    }
    let after = cpu_ms(coordinator.id())?;
    for name in &names {
        say(&to, &line_of(name, &real.header));
        say(&to, &line_of(name, &real.trial));
        say(&to, &line_of(name, "{\"message\":\"ended\",\"completed\":true}"));
    }
    let mut last = after;
    while coordinator.try_wait().map_err(failed)?.is_none() {
        memory = memory.max(peak_mib(coordinator.id()).unwrap_or(0.0));
        last = cpu_ms(coordinator.id()).unwrap_or(last).max(last);
        thread::sleep(Duration::from_millis(5));
    }
    answers.join().map_err(|_| "the answering thread failed".to_owned())?;
    let status = coordinator.wait().map_err(failed)?;
    if !status.success() {
        return Err(format!("{hosts} hosts: fathom ended with {status}"));
    }
    let bytes = fs::metadata(&result).map_err(failed)?.len();
    Ok(HostsRow {
        hosts,
        each_second: (after - before) / seconds as f64,
        at_the_end: last - after,
        memory,
        result: bytes as f64 / f64::from(1 << 20),
    })
}

/// Starts a coordinator, and waits until it calls.
fn call(
    fathom: &Path,
    (socket, result): (&Path, &Path),
    seconds: u64,
) -> std::io::Result<(Child, UnixStream)> {
    let listener = UnixListener::bind(socket)?;
    let coordinator = Command::new(fathom)
        .arg("run")
        .args(words(seconds))
        .arg("--hosts")
        .arg(socket)
        .arg("--out")
        .arg(result)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let (connection, _) = listener.accept()?;
    Ok((coordinator, connection))
}

fn end(coordinator: &mut Child) {
    drop(coordinator.kill());
    drop(coordinator.wait());
}

fn line_of(host: &str, line: &str) -> String {
    format!("{{\"host\":\"{host}\",\"line\":{line}}}")
}

fn say(to: &Mutex<UnixStream>, line: &str) {
    if let Ok(mut to) = to.lock() {
        // A coordinator that has ended hears nothing.
        drop(writeln!(to, "{line}"));
    }
}

/// Answers what the coordinator says, until it says no more.
fn answer(
    from: &UnixStream,
    to: &Mutex<UnixStream>,
    hello: &str,
    prepared: &str,
    started: &(Mutex<usize>, Condvar),
) {
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        let Ok(json) = serde_json::from_str::<Value>(&line) else { return };
        let host = json["host"].as_str().unwrap_or_default();
        let said = &json["line"];
        match said["message"].as_str().unwrap_or_default() {
            "hello" => say(to, &line_of(host, hello)),
            "prepare" => say(to, &line_of(host, prepared)),
            "clock" => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let answer = json!({ "message": "clock", "id": said["id"], "unix_ns": now.as_nanos() as u64 });
                say(to, &line_of(host, &answer.to_string()));
            }
            "start" => {
                if let Ok(mut count) = started.0.lock() {
                    *count += 1;
                    started.1.notify_all();
                }
            }
            _ => {}
        }
    }
}

/// The CPU time of a process so far, in milliseconds.
fn cpu_ms(id: u32) -> Result<f64, String> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).map_err(|error| error.to_string())?;
    // The name before may contain anything.
    let fields: Vec<&str> =
        text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok());
    let spent = ticks(11).zip(ticks(12)).map(|(user, kernel)| user + kernel);
    // A tick is 10 ms on all machines that Linux runs on.
    spent.map(|ticks| ticks * 10.0).ok_or(format!("/proc/{id}/stat cannot be read"))
}

/// The most memory that a process has had, in MiB.
fn peak_mib(id: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<f64>().ok()? / 1024.0)
}

fn table(rows: &[HostsRow], seconds: u64) -> String {
    let mut text = format!(
        "A load of {seconds} s on invented hosts, each with the words of a real agent: a message about the \
         progress each second with its distribution, and a trial at the end.\n\n\
         | hosts | CPU time for each second of load | at the end, with the report | most memory | result file |\n\
         | --: | --: | --: | --: | --: |\n"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "| {} | {:.1} ms | {:.0} ms | {:.0} MiB | {:.1} MiB |",
            row.hosts, row.each_second, row.at_the_end, row.memory, row.result
        );
    }
    let _ = writeln!(
        text,
        "\nThe goals for 1,000 hosts: less than {MERGING_GOAL} ms for each second of load, and less than \
         {MEMORY_GOAL} MiB. The CPU time is read in steps of 10 ms."
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coordinator_of_invented_hosts_makes_one_result() {
        let table = all(HostsSize::SMOKE, Profile::Debug).unwrap();
        assert!(table.contains("| 3 | "), "{table}");
    }
}
