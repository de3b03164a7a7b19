//! A host whose agent attends: what it has said so far, and what follows from it. Reads no clock and
//! no connection.

use std::time::Duration;

use fathom_core::experiment::Planned;
use fathom_core::facts::Host;
use fathom_core::hosts::{ClockOffset, LostHost};
use fathom_core::measure::Histogram;
use fathom_core::spec::{Point, Region};
use fathom_core::{Refusal, RefusalKind, Span};
use fathom_engine::{LastSecond, Progress};
use fathom_report::document::MEASUREMENT_VERSION;

use super::lines::FromHost;
use super::merging::{self, Measured};
use crate::agent::message::{AgentAnswer, PreparedHere, ProgressHere};
use crate::difference;
use crate::error::{Error, exit};

/// A lease is taken for at least and at most this long.
const LEASES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(600));
/// More I/Os than this in a second are a mistake.
const COUNT_MAX: u64 = 1 << 48;
/// How the lines of a host's result begin.
const HEADER: &str = r#"{"line":"header","#;
const TRIAL: &str = r#"{"line":"trial","#;

/// The version of fathom that all hosts must have.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A host whose agent attends.
pub struct Attending {
    /// The host.
    pub facts: Host,
    /// How long it may be silent.
    pub lease: Duration,
    /// The load that it is ready for, with its regions as they are before hosts divide them.
    pub prepared: Option<PreparedHere>,
    /// Its own part of them; empty if hosts do not divide them.
    pub regions: Vec<Region>,
    /// The header of its own result.
    pub header: Option<String>,
    /// Why its agent is not there any more.
    pub gone: Option<String>,
    /// What it did in the load that runs.
    pub course: HostCourse,
}

/// What a host did so far in a load.
#[derive(Default)]
pub struct HostCourse {
    /// How far its clock was from the one here when it was told to begin.
    offset: Option<ClockOffset>,
    /// When the load began, by the host's clock.
    began: Option<u64>,
    /// Its last message about its progress.
    pub progress: Option<ProgressHere>,
    trial: Option<String>,
    /// Whether it is over, and how.
    pub over: Option<Result<(), LostHost>>,
}

impl HostCourse {
    /// Nothing yet, of a host whose clock is so far from the one here.
    pub fn beginning(offset: Option<ClockOffset>) -> Self {
        Self { offset, ..Self::default() }
    }
}

impl Attending {
    /// The host of this name, whose agent has said what it is.
    ///
    /// # Errors
    ///
    /// When that is no hello, or one of another version.
    pub fn greeted(name: &str, what: FromHost) -> Result<Self, Error> {
        let said = match what {
            FromHost::Gone(why) => return Err(unusable(name, why)),
            FromHost::Result(_) => {
                return Err(unusable(name, "its agent says no hello".to_owned()));
            }
            FromHost::Said(said) => said,
        };
        match *said {
            AgentAnswer::Hello { fathom_version, measurement_version, lease_ns, host, .. } => {
                if fathom_version != VERSION || measurement_version != MEASUREMENT_VERSION {
                    let problem = format!(
                        "it has fathom {fathom_version} with measurement version {measurement_version}, and \
                         {VERSION} with {MEASUREMENT_VERSION} runs here"
                    );
                    return Err(Error::target(
                        name,
                        problem,
                        "install the same version on all hosts",
                    ));
                }
                Ok(Self {
                    facts: *host,
                    lease: Duration::from_nanos(lease_ns).clamp(LEASES.0, LEASES.1),
                    prepared: None,
                    regions: Vec::new(),
                    header: None,
                    gone: None,
                    course: HostCourse::default(),
                })
            }
            AgentAnswer::Refused { why, .. } => {
                Err(Error::target(name, why, "install the same version on all hosts"))
            }
            _ => Err(unusable(name, "its agent says no hello".to_owned())),
        }
    }

    /// Takes what came of it before a load began.
    ///
    /// # Errors
    ///
    /// When it refuses the load, or prepared an impossible one, or is gone.
    pub fn prepares(&mut self, name: &str, what: FromHost) -> Result<(), Error> {
        let said = match what {
            FromHost::Gone(why) => return Err(unusable(name, why)),
            FromHost::Result(_) => return Ok(()),
            FromHost::Said(said) => said,
        };
        match *said {
            AgentAnswer::Prepared(mut prepared) => {
                let is_possible = prepared.point.possible().is_ok();
                let regions = whole(&mut prepared);
                let targets = prepared.targets.len() as u32;
                let mut all = prepared.point.streams.iter().flat_map(|one| &one.regions);
                let is_possible = is_possible
                    && prepared.point.possible().is_ok()
                    && all.all(|region| region.target < targets);
                let Some(regions) = regions.filter(|_| is_possible) else {
                    let problem = "its agent prepared no possible load".to_owned();
                    return Err(unusable(name, problem));
                };
                self.regions = regions;
                self.prepared = Some(*prepared);
                Ok(())
            }
            AgentAnswer::Refused { why, exit_code } => {
                let remedy = "correct this; nothing began on any host";
                Err(Error::from(Refusal {
                    kind: kind(exit_code),
                    ..Refusal::denied(name, why, remedy)
                }))
            }
            // The end of a load before.
            _ => Ok(()),
        }
    }

    /// Takes what came of it while a load runs.
    pub fn hear(&mut self, what: FromHost, was_stopped: bool) {
        match what {
            FromHost::Gone(why) => {
                self.loses(why.clone());
                self.gone = Some(why);
            }
            FromHost::Result(line) if line.starts_with(HEADER) => self.header = Some(line),
            FromHost::Result(line) if line.starts_with(TRIAL) => self.course.trial = Some(line),
            // Its conclusion, which the coordinator has one of its own for.
            FromHost::Result(_) => {}
            FromHost::Said(said) => match *said {
                AgentAnswer::Began { unix_ns } => self.course.began = Some(unix_ns),
                AgentAnswer::Progress(progress) if is_possible(&progress) => {
                    self.course.progress = Some(progress);
                }
                AgentAnswer::Progress(_) => {}
                AgentAnswer::Ended { completed } if completed || was_stopped => {
                    self.course.over.get_or_insert(Ok(()));
                }
                AgentAnswer::Ended { .. } => {
                    self.loses("its load ended before its time".to_owned())
                }
                AgentAnswer::Refused { why, .. } => {
                    self.loses(why.clone());
                    self.gone = Some(why);
                }
                AgentAnswer::Hello { .. }
                | AgentAnswer::Clock { .. }
                | AgentAnswer::Prepared(_) => {}
            },
        }
    }

    /// Its load is lost, unless it is over.
    pub fn loses(&mut self, why: String) {
        let after = self.course.progress.as_ref().map(|progress| Span(progress.elapsed_ns));
        self.course.over.get_or_insert(Err(LostHost { why, after }));
    }

    /// Its part of the planned load, which is over: leaves it ready for the next one.
    pub fn measured(&mut self, name: &str, planned: &Planned) -> Measured {
        let course = std::mem::take(&mut self.course);
        let lost = |why: String| LostHost { why, after: None };
        let measured = match (course.over, &self.header, course.trial) {
            (Some(Err(lost)), ..) => Err(lost),
            (_, Some(header), Some(trial)) => {
                let mut expected = planned.point.clone();
                if !self.regions.is_empty() {
                    replace_regions(&mut expected, &self.regions);
                }
                let is_planned = |own: &Point| difference_of(&expected, own).is_none();
                merging::read(header, &trial, is_planned).map_err(lost)
            }
            _ => Err(lost("it measured nothing".to_owned())),
        };
        let began = course.began.zip(course.offset);
        Measured { name: name.to_owned(), began, regions: self.regions.clone(), measured }
    }
}

/// Gives a prepared load its regions as they are before hosts divide them: returns the host's part of
/// them, empty if they do not. None if they do not fit.
fn whole(prepared: &mut PreparedHere) -> Option<Vec<Region>> {
    match std::mem::take(&mut prepared.undivided) {
        none if none.is_empty() => Some(Vec::new()),
        undivided => replace_regions(&mut prepared.point, &undivided),
    }
}

/// Replaces the regions of all streams, in their order: returns those that were there. None if they
/// are not as many.
fn replace_regions(point: &mut Point, by: &[Region]) -> Option<Vec<Region>> {
    let own = point.streams.iter_mut().flat_map(|stream| &mut stream.regions);
    let own: Vec<&mut Region> = own.collect();
    let fits = own.len() == by.len() && own.iter().zip(by).all(|(own, by)| own.target == by.target);
    fits.then(|| own.into_iter().zip(by).map(|(own, by)| std::mem::replace(own, *by)).collect())
}

/// A point without what may differ from host to host.
fn comparable(point: &Point) -> Point {
    Point { name: String::new(), seed: 0, ..point.clone() }
}

/// "streams.0.regions.0.length is 2, and not 4": where a point is not the wanted one, but for what may
/// differ from host to host.
pub fn difference_of(wanted: &Point, point: &Point) -> Option<String> {
    let (wanted, point) = (comparable(wanted), comparable(point));
    if wanted == point {
        return None;
    }
    let json = |point: &Point| serde_json::to_value(point).expect("a point is plain data");
    let (wanted, point) = (json(&wanted), json(&point));
    let (field, wanted, here) = difference::first_of(&wanted, &point)?;
    Some(format!("{field} is {here}, and not {wanted}"))
}

/// Whether figures can be added up: what a host says may be anything.
fn is_possible(progress: &ProgressHere) -> bool {
    let ios: u128 = progress.response_time.buckets.iter().map(|(_, ios)| u128::from(*ios)).sum();
    ios < u128::from(COUNT_MAX)
        && progress.failed < COUNT_MAX
        && progress.response_time.sum_ns < u128::from(u64::MAX)
        && [progress.iops, progress.bytes_per_second, progress.trims_per_second]
            .iter()
            .all(|rate| (0.0..1e18).contains(rate))
}

/// The progress of several hosts together; none without any.
pub fn progress<'a>(all: impl Iterator<Item = &'a ProgressHere>) -> Option<Progress> {
    let mut times = Histogram::default();
    let mut sum: Option<Progress> = None;
    for one in all {
        times.merge_sparse(&one.response_time.to_sparse());
        let sum = sum.get_or_insert(Progress {
            in_window: one.in_window,
            elapsed: Span(one.elapsed_ns),
            total: Span(one.total_ns),
            last_second: LastSecond::default(),
            failed: 0,
        });
        // They are told at different times of a second.
        sum.elapsed = sum.elapsed.max(Span(one.elapsed_ns));
        sum.in_window &= one.in_window;
        sum.last_second.iops += one.iops;
        sum.last_second.bandwidth += one.bytes_per_second;
        sum.last_second.trims += one.trims_per_second;
        sum.failed = sum.failed.saturating_add(one.failed);
    }
    let sum = sum?;
    Some(Progress { last_second: sum.last_second.with_times(&times), ..sum })
}

/// A host without which nothing can be measured.
pub fn unusable(name: &str, problem: String) -> Error {
    Error::target(name, problem, "look at that host, or leave it out")
}

/// The kind of a refusal with this exit code.
fn kind(exit_code: u8) -> RefusalKind {
    match exit_code {
        exit::USAGE => RefusalKind::Usage,
        exit::OUTPUT => RefusalKind::File,
        _ => RefusalKind::Denied,
    }
}
