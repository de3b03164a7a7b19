//! The messages of the protocol: one JSON object in a line. Besides these, an agent sends the lines
//! of its result file as they are written.

use std::path::PathBuf;

use fathom_core::facts::{Host, Target};
use fathom_core::spec::{Point, Region};
use fathom_core::{printable, typed_path};
use fathom_report::document::Distribution;
use serde::{Deserialize, Serialize};

use crate::cli::described::HostPlace;

/// The version of the protocol. An agent refuses every other one.
pub const PROTOCOL: u32 = 1;

/// What a coordinator says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case", deny_unknown_fields)]
pub enum AgentOrder {
    /// The first one.
    Hello {
        /// Its version of the protocol.
        protocol: u32,
        /// Its version of fathom.
        fathom_version: String,
        /// The number of loads that it has planned: it may say hello again when it knows.
        #[serde(default)]
        points: u32,
    },
    /// Asks for the time here. Answered at once, also under load.
    Clock {
        /// Comes back.
        id: u64,
    },
    /// Says nothing but that the coordinator is there.
    Renew {},
    /// Describes the next load. Nothing begins.
    Prepare(LoadInWords),
    /// Begins the load that was prepared.
    Start {
        /// When, in nanoseconds since 1970 by the clock of this host; at once if it is past.
        at_unix_ns: u64,
    },
    /// Ends the load, if there is one, and the agent.
    Stop {},
}

/// A load, as on a command line of `fathom run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadInWords {
    /// The words behind `fathom run`: targets and options, without a consent, and without outputs.
    pub words: Vec<String>,
    /// The load in full, if no words say it: one of those that an experiment makes of the load that the
    /// words describe. It addresses nothing else, and in no other way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<Box<Point>>,
    /// Whether it is one of several of an experiment: another one may need the consent, if this one
    /// does not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub experiment: bool,
    /// A workload, if it is not one that comes with fathom. Files of this host are not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadText>,
    /// What may be written to on this host.
    #[serde(default)]
    pub consent: Allowed,
    /// Which of the hosts this is, for a load whose regions hosts divide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostPlace>,
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A workload file that the coordinator has read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadText {
    /// Its name in messages.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The consent of the user, for this host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Allowed {
    /// As `--overwrite`.
    pub overwrite: bool,
    /// As `--destroy`.
    pub destroy: Vec<String>,
    /// As `--destroy-in-use`.
    pub destroy_in_use: Vec<String>,
}

/// What an agent says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum AgentAnswer {
    /// The answer to the first message.
    Hello {
        /// The version of the protocol.
        protocol: u32,
        /// The version of fathom.
        fathom_version: String,
        /// The version of the measurement: trials of different ones cannot be compared.
        measurement_version: u32,
        /// How long the coordinator may be silent.
        lease_ns: u64,
        /// This host.
        host: Box<Host>,
    },
    /// The time here.
    Clock {
        /// That of the question.
        id: u64,
        /// Nanoseconds since 1970.
        unix_ns: u64,
    },
    /// The load is ready to begin.
    Prepared(Box<PreparedHere>),
    /// What was asked for does not happen. Nothing was touched.
    Refused {
        /// Why, and the remedy.
        why: String,
        /// The exit code that `fathom run` would have had.
        exit_code: u8,
    },
    /// The load has begun. Never said of a simulated device.
    Began {
        /// When, in nanoseconds since 1970.
        unix_ns: u64,
    },
    /// The load goes on: said about once a second. Figures are those of the last second.
    Progress(ProgressHere),
    /// The load is over. Its trial was said before, as the line of the result file.
    Ended {
        /// Whether it ran to its end.
        completed: bool,
    },
}

/// A load that is ready to begin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreparedHere {
    /// What it does, line by line, for people.
    pub plan: Vec<String>,
    /// The targets, as they are here.
    pub targets: Vec<TargetHere>,
    /// The load in full, as it is in the result.
    pub point: Point,
    /// The regions of all its streams before hosts divided them; empty if they do not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undivided: Vec<Region>,
    /// Warm-up, window and cool-down together.
    pub takes_ns: u64,
    /// The result file of this host.
    pub result: PathBuf,
}

/// A target on this host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetHere {
    /// What it is, as in a result.
    pub facts: Target,
    /// What makes it this very target, beyond its name; empty if that is unknown.
    pub identity: String,
    /// Whether the load writes to it, so that the data there is lost.
    pub is_overwritten: bool,
}

/// How a load goes on. Figures are those of the last second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProgressHere {
    /// The time since the load began.
    pub elapsed_ns: u64,
    /// Warm-up, window and cool-down together.
    pub total_ns: u64,
    /// Whether it is measured now.
    pub in_window: bool,
    /// Reads and writes per second.
    pub iops: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Trims per second.
    pub trims_per_second: f64,
    /// The response times of all reads and writes, as distributions are in a result: those of several
    /// hosts can be added up, which no percentile can.
    pub response_time: Distribution,
    /// I/Os that failed so far.
    pub failed: u64,
}

/// Reads a line.
///
/// # Errors
///
/// When it is no message: says why.
pub fn read(line: &str) -> Result<AgentOrder, String> {
    serde_json::from_str(line).map_err(|cause| {
        let start: String = line.chars().take(60).collect();
        format!(
            "{}: it is no message of protocol {PROTOCOL} ({cause})",
            typed_path(&printable(&start))
        )
    })
}

/// How a message about the progress begins: an agent says what it is first.
const PROGRESS: &str = r#"{"message":"progress","#;

/// Reads a line of an agent.
///
/// # Errors
///
/// When it is no message.
pub fn read_answer(line: &str) -> serde_json::Result<AgentAnswer> {
    #[derive(Deserialize)]
    struct Tag {
        message: String,
    }
    // A tagged enum is read by way of values that have no integer of 128 bits, as the sum of a
    // distribution is. Nearly all lines are of this kind, and long: they are read once.
    let is_progress = match line.starts_with(PROGRESS) {
        true => true,
        false => serde_json::from_str::<Tag>(line)?.message == "progress",
    };
    match is_progress {
        true => serde_json::from_str(line).map(AgentAnswer::Progress),
        false => serde_json::from_str(line),
    }
}

#[cfg(test)]
mod tests {
    use fathom_core::measure::Histogram;

    use super::*;

    #[test]
    fn what_a_coordinator_says_is_read() {
        let load = |words: &[&str]| LoadInWords {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            point: None,
            experiment: false,
            workload: None,
            consent: Allowed::default(),
            host: None,
        };
        for (line, meaning) in [
            (r#"{"message":"renew"}"#, AgentOrder::Renew {}),
            (r#"{"message":"clock","id":7}"#, AgentOrder::Clock { id: 7 }),
            (r#"{"message":"start","at_unix_ns":5}"#, AgentOrder::Start { at_unix_ns: 5 }),
            (
                r#"{"message":"prepare","words":["a","-q","4"]}"#,
                AgentOrder::Prepare(load(&["a", "-q", "4"])),
            ),
            (
                r#"{"message":"hello","protocol":1,"fathom_version":"0.1.0"}"#,
                AgentOrder::Hello { protocol: 1, fathom_version: "0.1.0".to_owned(), points: 0 },
            ),
        ] {
            assert_eq!(read(line), Ok(meaning));
        }
    }

    #[test]
    fn a_progress_is_read_whatever_comes_first() {
        let progress = ProgressHere {
            elapsed_ns: 5,
            total_ns: 9,
            in_window: true,
            iops: 1.5,
            bytes_per_second: 0.0,
            trims_per_second: 0.0,
            response_time: Distribution::from(&Histogram::default()),
            failed: 0,
        };
        let said = AgentAnswer::Progress(progress);
        let line = serde_json::to_string(&said).unwrap();
        assert!(line.starts_with(PROGRESS), "{line}");
        assert_eq!(read_answer(&line).unwrap(), said);
        // As another program might write it.
        let other = line.replacen(r#""message":"progress","#, "", 1);
        let other = format!("{},\"message\":\"progress\"}}", other.trim_end_matches('}'));
        assert!(!other.starts_with(PROGRESS));
        assert_eq!(read_answer(&other).unwrap(), said);
        assert!(read_answer(r#"{"message":"progress","elapsed_ns":5}"#).is_err());
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_beginning() {
        for line in [
            "",
            "[]",
            "ls -l /",
            r#"{"message":"run"}"#,
            r#"{"message":"renew","more":1}"#,
            r#"{"message":"prepare","words":[],"consent":{"all":true}}"#,
        ] {
            let why = read(line).unwrap_err();
            assert!(why.contains("it is no message of protocol 1"), "{why}");
        }
        let why = read(&format!("\u{1b}[2J{}", "x".repeat(500))).unwrap_err();
        assert!(!why.contains('\u{1b}') && why.len() < 250, "{why}");
    }
}
