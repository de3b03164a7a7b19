//! All hosts together: greets their agents, prepares a load on each, starts it everywhere at the same
//! time, and waits for what they measured.

use std::time::{Duration, Instant};

use fathom_core::experiment::Planned;
use fathom_core::facts::{Host, Target};
use fathom_core::figures::number;
use fathom_core::hosts::{ClockOffset, LostHost, bytes_in_words};
use fathom_core::measure::Histogram;
use fathom_core::spec::{Point, Region};
use fathom_core::trial::{Coordinate, Trial};
use fathom_core::{Refusal, RefusalKind, Span};
use fathom_engine::{LastSecond, Progress};
use fathom_report::document::{HostOfMany, MEASUREMENT_VERSION};

use super::lines::FromHost;
use super::merging::{self, Measured};
use super::pulse::Pulse;
use super::router::Router;
use super::words::{HostLoad, Variant};
use crate::agent::message::{AgentAnswer, AgentOrder, PROTOCOL, PreparedHere, ProgressHere};
use crate::cli::axes::HOSTS;
use crate::difference;
use crate::error::{Error, exit};
use crate::live::Live;
use crate::session::{Carried, Carrier, ManyHosts, unix_ns};
use crate::signals;

/// How long an agent may take to begin, and to say hello.
const GREETING: Duration = Duration::from_secs(60);
/// The number of questions for the time that come before the first load.
const QUESTIONS: usize = 8;
/// How long they may take.
const ASKING: Duration = Duration::from_secs(5);
/// From the order to begin to the beginning, besides the way to the farthest host: workers have to be
/// made ready on each.
const LEAD: Duration = Duration::from_millis(500);
/// A lease is taken for at least and at most this long.
const LEASES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(600));
/// How soon a signal is seen.
const NAP: Duration = Duration::from_millis(50);
/// How long a host may be silent when its load has to be over: a trial may be long, and the way slow.
const ENDING: Duration = Duration::from_secs(120);
/// How long after its time the trial of a host may come. Agents give up targets that hang before that.
const LATEST: Duration = Duration::from_secs(300);
/// How long a host may take to prepare a load.
const PREPARING: Duration = Duration::from_secs(300);
/// More I/Os than this in a second are a mistake.
const COUNT_MAX: u64 = 1 << 48;
/// Between two looks at the progress of all hosts.
const PERIOD: Duration = Duration::from_millis(950);

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// All hosts.
pub struct Fleet {
    router: Router,
    load: HostLoad,
    hosts: Vec<Attending>,
    /// How many of the hosts apply the load, from the first one on.
    active: usize,
    /// Whether the points of the experiment are made of the load of the words, which cannot say them.
    makes_points: bool,
}

/// A host whose agent attends.
struct Attending {
    facts: Host,
    lease: Duration,
    /// The load that it is ready for, with its regions as they are before hosts divide them.
    prepared: Option<PreparedHere>,
    /// Its own part of them; empty if hosts do not divide them.
    regions: Vec<Region>,
    /// The header of its own result.
    header: Option<String>,
    /// Why its agent is not there any more.
    gone: Option<String>,
    /// What it did in the load that runs.
    course: HostCourse,
}

/// What a host did so far in a load.
#[derive(Default)]
struct HostCourse {
    /// How far its clock was from the one here when it was told to begin.
    offset: Option<ClockOffset>,
    /// When the load began, by the host's clock.
    began: Option<u64>,
    progress: Option<ProgressHere>,
    trial: Option<String>,
    /// Whether it is over, and how.
    over: Option<Result<(), LostHost>>,
}

impl Fleet {
    /// Greets all hosts behind a router, and finds out how far their clocks are from the one here.
    ///
    /// # Errors
    ///
    /// When one of them cannot be reached, or has another version.
    pub fn gather(router: Router, load: HostLoad, points: u32) -> Result<Self, Error> {
        if let Some((option, host)) =
            load.named().find(|(_, host)| router.names().iter().all(|name| name != host))
        {
            return Err(Error::option(
                format!("{option} {host}:..."),
                "there is no such host",
                format!("name one of {}", router.names().join(", ")),
            ));
        }
        let many = router.names().len();
        (0..many).for_each(|host| router.say(host, &hello(points)));
        let mut hosts: Vec<Option<Attending>> = (0..many).map(|_| None).collect();
        let until = Instant::now() + GREETING;
        while let Some(silent) = hosts.iter().position(Option::is_none) {
            let Some((host, what)) = wait(&router, until)? else {
                return Err(unusable(
                    &router.names()[silent],
                    format!("its agent said nothing for {} s", GREETING.as_secs()),
                ));
            };
            let name = &router.names()[host];
            hosts[host] = Some(greeted(name, what)?);
        }
        let hosts: Vec<Attending> = hosts.into_iter().flatten().collect();
        let mut fleet = Self { router, load, active: hosts.len(), hosts, makes_points: false };
        fleet.compare_clocks()?;
        Ok(fleet)
    }

    /// The names of the hosts.
    pub fn names(&self) -> &[String] {
        self.router.names()
    }

    /// The largest uncertainty about the clock of a host.
    pub fn clock_bound(&self) -> Span {
        let bounds = (0..self.hosts.len()).filter_map(|host| self.offset(host));
        bounds.map(|offset| offset.bound).max().unwrap_or_default()
    }

    /// How far a host's clock is from the one here.
    pub fn offset(&self, host: usize) -> Option<ClockOffset> {
        self.router.pulse(host, Pulse::offset)
    }

    /// Asks for the time several times, all hosts together.
    fn compare_clocks(&mut self) -> Result<(), Error> {
        let until = Instant::now() + ASKING;
        for question in 1..=QUESTIONS {
            (0..self.hosts.len()).for_each(|host| self.router.ask(host));
            let is_open = |router: &Router, host: usize| {
                router.pulse(host, |pulse| pulse.answered() < question)
            };
            while (0..self.hosts.len()).any(|host| is_open(&self.router, host))
                && Instant::now() < until
            {
                if let Some((host, what)) = self.router.hear(Duration::from_millis(1))? {
                    self.takes(host, what)?;
                }
            }
        }
        match (0..self.hosts.len()).find(|&host| self.offset(host).is_none()) {
            None => Ok(()),
            Some(host) => {
                let problem = format!("it did not tell its time for {} s", ASKING.as_secs());
                Err(unusable(&self.names()[host], problem))
            }
        }
    }

    /// Prepares the load at these coordinates on every host, for the plan: what each of them prepared,
    /// in their order.
    ///
    /// # Errors
    ///
    /// When a host refuses it, or would apply another load than the first one.
    pub fn plan(&mut self, at: &[Coordinate]) -> Result<Vec<PreparedHere>, Error> {
        self.active = self.hosts.len();
        let hosts = hosts_at(at).unwrap_or(self.active);
        self.prepare(Variant::Words(at), self.load.seed(), hosts)?;
        Ok(self.hosts.iter().filter_map(|host| host.prepared.clone()).collect())
    }

    /// Prepares a point on every host that is made of the load of the words, as [`Fleet::plan`] does.
    /// From here on all points are.
    ///
    /// # Errors
    ///
    /// When a host refuses it.
    pub fn plan_made(&mut self, point: &Point) -> Result<Vec<PreparedHere>, Error> {
        self.makes_points = true;
        self.active = self.hosts.len();
        self.prepare(Variant::Made(point), point.seed, self.active)?;
        Ok(self.hosts.iter().filter_map(|host| host.prepared.clone()).collect())
    }

    /// Tells all hosts how many points are planned.
    pub fn plans(&self, points: u32) {
        (0..self.hosts.len()).for_each(|host| self.router.say(host, &hello(points)));
    }

    /// The hosts for the header of a result, as they prepared the first load.
    pub fn described(&self) -> Vec<HostOfMany> {
        let described = |(name, host): (&String, &Attending)| {
            let prepared = host.prepared.as_ref()?;
            let targets = prepared.targets.iter();
            Some(HostOfMany {
                name: name.clone(),
                host: host.facts.clone(),
                targets: targets.clone().map(|target| target.facts.clone()).collect(),
                identities: targets.map(|target| target.identity.clone()).collect(),
                result: prepared.result.display().to_string(),
            })
        };
        self.names().iter().zip(&self.hosts).filter_map(described).collect()
    }

    /// The targets of all hosts, as they prepared the load before.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        let prepared = self.hosts.iter().filter_map(|host| host.prepared.as_ref());
        prepared.flat_map(|prepared| &prepared.targets).map(|target| &target.facts)
    }

    /// The facts about a host.
    pub fn facts(&self, host: usize) -> &Host {
        &self.hosts[host].facts
    }

    /// For each host the bytes that it addresses of each target, in words, as they are prepared; empty
    /// if hosts do not divide the regions.
    pub fn bytes(&self) -> Vec<Vec<String>> {
        match self.divides() {
            true => {
                let own = self.applying().iter().map(|host| host.regions.as_slice());
                bytes_in_words(&own.collect::<Vec<_>>())
            }
            false => Vec::new(),
        }
    }

    /// The bytes of each target that they divide, for each of them: none of any other number of hosts
    /// has more.
    pub fn undivided_bytes(&self) -> Vec<Vec<String>> {
        let whole = |host: &Attending| {
            let point = host.prepared.as_ref().map(|prepared| &prepared.point);
            let streams = point.into_iter().flat_map(|point| &point.streams);
            let regions: Vec<Region> = streams.flat_map(|one| one.regions.clone()).collect();
            bytes_in_words(&[&regions]).concat()
        };
        match self.divides() {
            true => self.applying().iter().map(whole).collect(),
            false => Vec::new(),
        }
    }

    /// Whether hosts divide the regions.
    fn divides(&self) -> bool {
        self.applying().iter().all(|host| !host.regions.is_empty())
    }

    /// Prepares a load on every host, as one of this many hosts.
    fn prepare(&mut self, variant: Variant<'_>, seed: u64, hosts: usize) -> Result<(), Error> {
        for host in 0..self.active {
            self.hosts[host].prepared = None;
            let name = (self.names()[host].as_str(), host);
            let words = self.load.for_host(name, hosts, variant, seed);
            self.router.say(host, &AgentOrder::Prepare(words));
        }
        let until = Instant::now() + PREPARING;
        while let Some(host) = self.applying().iter().position(|host| host.prepared.is_none()) {
            if let Some(signal) = signals::came() {
                return Err(Error::nothing_measured(signal));
            }
            if self.hosts[host].lease < self.router.pulse(host, Pulse::silent) {
                let problem = format!("it was silent for {} s", self.hosts[host].lease.as_secs());
                return Err(unusable(&self.names()[host], problem));
            }
            if until < Instant::now() {
                let problem = format!("it prepared no load for {} s", PREPARING.as_secs());
                return Err(unusable(&self.names()[host], problem));
            }
            if let Some((host, what)) = self.router.hear(NAP)? {
                self.takes(host, what)?;
            }
        }
        self.same_load()
    }

    /// Refuses hosts whose load would be another one than that of the first host.
    fn same_load(&self) -> Result<(), Error> {
        let names = self.names();
        let points = self.applying().iter().filter_map(|host| Some(&host.prepared.as_ref()?.point));
        let mut points = names.iter().zip(points);
        let Some((_, first)) = points.next() else { return Ok(()) };
        for (name, own) in points {
            let Some(differs) = difference_of(first, own) else { continue };
            return Err(Error::target(
                name.as_str(),
                format!("its load would not be that of {}: {differs}", names[0]),
                "give all hosts targets of one size, or choose the region with --offset and --size",
            ));
        }
        Ok(())
    }

    /// The hosts that apply the load.
    fn applying(&self) -> &[Attending] {
        &self.hosts[..self.active]
    }

    /// Takes what came of a host before a load began.
    fn takes(&mut self, host: usize, what: FromHost) -> Result<(), Error> {
        let name = &self.names()[host];
        match what {
            FromHost::Gone(why) => return Err(unusable(name, why)),
            FromHost::Said(said) => match *said {
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
                    self.hosts[host].regions = regions;
                    self.hosts[host].prepared = Some(*prepared);
                }
                AgentAnswer::Refused { why, exit_code } => {
                    let remedy = "correct this; nothing began on any host";
                    return Err(Error::from(Refusal {
                        kind: kind(exit_code),
                        ..Refusal::denied(name.as_str(), why, remedy)
                    }));
                }
                // The end of a load before.
                _ => {}
            },
            FromHost::Result(_) => {}
        }
        Ok(())
    }

    /// Orders the prepared load to begin on all hosts at the same time: that time, by the clock here.
    fn start(&mut self) -> u64 {
        let farthest = Duration::from_nanos(self.clock_bound().0);
        let at = unix_ns() + (LEAD + 4 * farthest).as_nanos() as u64;
        for host in 0..self.active {
            let offset = self.offset(host);
            let there = offset.map_or(at, |offset| offset.there(at));
            self.hosts[host].course = HostCourse { offset, ..HostCourse::default() };
            self.router.say(host, &AgentOrder::Start { at_unix_ns: there });
        }
        at
    }

    /// Waits until the load is over on every host.
    fn attend(&mut self, live: &mut Live) -> Result<(), Error> {
        let mut told = Instant::now();
        let mut looked = Instant::now();
        let mut said_stop = false;
        let takes = self.applying().iter().filter_map(|host| host.prepared.as_ref());
        let takes = Duration::from_nanos(takes.map(|one| one.takes_ns).max().unwrap_or(0));
        let begun = Instant::now();
        while self.applying().iter().any(|host| host.course.over.is_none()) {
            if signals::came().is_some() && !said_stop {
                (0..self.hosts.len()).for_each(|host| self.router.say(host, &AgentOrder::Stop {}));
                said_stop = true;
            }
            if signals::hurries() {
                break;
            }
            if let Some((host, what)) = self.router.hear(NAP)? {
                self.hosts[host].hear(what, said_stop);
            }
            // Not at each message: a thousand hosts say a thousand a second.
            if NAP <= looked.elapsed() {
                looked = Instant::now();
                self.give_up(takes, begun.elapsed());
            }
            if PERIOD <= told.elapsed() {
                told = Instant::now();
                self.show(live);
            }
        }
        Ok(())
    }

    /// Gives up the hosts that are silent, or that go on long after the time that the load takes.
    fn give_up(&mut self, takes: Duration, since: Duration) {
        for (host, one) in self.hosts[..self.active].iter_mut().enumerate() {
            if one.course.over.is_some() {
                continue;
            }
            // Its trial is on its way then, and may keep everything else of it waiting.
            let is_ending = takes + LEAD < since;
            let patience = if is_ending { one.lease.max(ENDING) } else { one.lease };
            if patience < self.router.pulse(host, Pulse::silent) {
                one.loses(format!("it was silent for {} s", patience.as_secs()));
            } else if takes + LATEST < since {
                one.loses("its load did not end".to_owned());
            }
        }
    }

    /// Shows the progress of all hosts together.
    fn show(&self, live: &mut Live) {
        let all: Vec<(&str, &ProgressHere)> = self
            .names()
            .iter()
            .zip(self.applying())
            .filter(|(_, host)| host.course.over.is_none())
            .filter_map(|(name, host)| Some((name.as_str(), host.course.progress.as_ref()?)))
            .collect();
        let Some(progress) = together(all.iter().map(|(_, progress)| *progress)) else { return };
        let lost = self.applying().iter().filter(|host| matches!(host.course.over, Some(Err(_))));
        let slowest = all.iter().min_by(|one, other| one.1.iops.total_cmp(&other.1.iops));
        let mut remark = match slowest {
            Some((name, slowest)) if 1 < all.len() => {
                format!("slowest {name}: {}", number(slowest.iops))
            }
            _ => String::new(),
        };
        match lost.count() {
            0 => {}
            lost => remark += &format!(", {lost} lost"),
        }
        live.remark(remark);
        live.progress(&progress);
    }

    /// The trials of all hosts as one.
    fn merged(&mut self, planned: Planned, at: u64) -> Result<Trial, Error> {
        let names = self.router.names()[..self.active].to_vec();
        let mut parts = Vec::with_capacity(names.len());
        for (place, name) in names.into_iter().enumerate() {
            let host = &mut self.hosts[place];
            let course = std::mem::take(&mut host.course);
            let measured = match course.over {
                Some(Err(lost)) => Err(lost),
                _ => match (&host.header, course.trial) {
                    (Some(header), Some(trial)) => {
                        let mut expected = planned.point.clone();
                        if !host.regions.is_empty() {
                            replace_regions(&mut expected, &host.regions);
                        }
                        let is_planned = |own: &Point| difference_of(&expected, own).is_none();
                        merging::read(header, &trial, is_planned)
                            .map_err(|why| LostHost { why, after: None })
                    }
                    _ => {
                        let why = "it measured nothing".to_owned();
                        Err(LostHost { why, after: None })
                    }
                },
            };
            let began = course.began.zip(course.offset);
            parts.push(Measured { name, began, regions: host.regions.clone(), measured });
        }
        merging::together(planned, at, parts)
    }
}

impl Drop for Fleet {
    /// However it ends here, the agents are told: the end of their stdin alone would look like a
    /// coordinator that was killed.
    fn drop(&mut self) {
        (0..self.hosts.len()).for_each(|host| self.router.say(host, &AgentOrder::Stop {}));
    }
}

impl Carrier for Fleet {
    fn carry(&mut self, _: &Planned) -> Result<Carried<'_>, Error> {
        Ok(Carried::Hosts(self))
    }

    fn is_elsewhere(&self) -> bool {
        true
    }
}

impl ManyHosts for Fleet {
    fn trial(&mut self, planned: Planned, live: &mut Live) -> Result<Trial, Error> {
        if let Some(place) = self.hosts.iter().position(|host| host.gone.is_some()) {
            let why = self.hosts[place].gone.clone().unwrap_or_default();
            return Err(unusable(&self.names()[place], why));
        }
        let coordinates = &planned.place.coordinates;
        self.active = hosts_at(coordinates).unwrap_or(self.hosts.len()).min(self.hosts.len());
        let variant = match self.makes_points {
            true => Variant::Made(&planned.point),
            false => Variant::Words(coordinates),
        };
        self.prepare(variant, planned.point.seed, self.active)?;
        let told = self.hosts[0].prepared.as_ref();
        if let Some(differs) = told.and_then(|told| difference_of(&planned.point, &told.point)) {
            let problem = format!("its load is not the planned one: {differs}");
            return Err(unusable(&self.names()[0], problem));
        }
        let at = self.start();
        self.attend(live)?;
        self.merged(planned, at)
    }
}

impl Attending {
    /// Takes what came of the host while a load runs.
    fn hear(&mut self, what: FromHost, was_stopped: bool) {
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
    fn loses(&mut self, why: String) {
        let after = self.course.progress.as_ref().map(|progress| Span(progress.elapsed_ns));
        self.course.over.get_or_insert(Err(LostHost { why, after }));
    }
}

/// The first message to an agent.
fn hello(points: u32) -> AgentOrder {
    AgentOrder::Hello { protocol: PROTOCOL, fathom_version: VERSION.to_owned(), points }
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

/// How many hosts apply the load at these coordinates; none if all do.
fn hosts_at(coordinates: &[Coordinate]) -> Option<usize> {
    let axis = coordinates.iter().find(|one| one.axis == HOSTS)?;
    axis.label.parse().ok()
}

/// How the lines of a host's result begin.
const HEADER: &str = r#"{"line":"header","#;
const TRIAL: &str = r#"{"line":"trial","#;

/// A point without what may differ from host to host.
fn comparable(point: &Point) -> Point {
    Point { name: String::new(), seed: 0, ..point.clone() }
}

/// "streams.0.regions.0.length is 2, and not 4": where a point is not the wanted one, but for what may
/// differ from host to host.
fn difference_of(wanted: &Point, point: &Point) -> Option<String> {
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
fn together<'a>(all: impl Iterator<Item = &'a ProgressHere>) -> Option<Progress> {
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

/// What comes next before a time; none if nothing does.
fn wait(router: &Router, until: Instant) -> Result<Option<(usize, FromHost)>, Error> {
    while Instant::now() < until {
        if let Some(signal) = signals::came() {
            return Err(Error::nothing_measured(signal));
        }
        if let Some(heard) = router.hear(NAP)? {
            return Ok(Some(heard));
        }
    }
    Ok(None)
}

/// A host whose agent has said what it is.
fn greeted(name: &str, what: FromHost) -> Result<Attending, Error> {
    let said = match what {
        FromHost::Gone(why) => return Err(unusable(name, why)),
        FromHost::Result(_) => return Err(unusable(name, "its agent says no hello".to_owned())),
        FromHost::Said(said) => said,
    };
    match *said {
        AgentAnswer::Hello { fathom_version, measurement_version, lease_ns, host, .. } => {
            if fathom_version != VERSION || measurement_version != MEASUREMENT_VERSION {
                let problem = format!(
                    "it has fathom {fathom_version} with measurement version {measurement_version}, and \
                     {VERSION} with {MEASUREMENT_VERSION} runs here"
                );
                return Err(Error::target(name, problem, "install the same version on all hosts"));
            }
            Ok(Attending {
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

fn unusable(name: &str, problem: String) -> Error {
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
