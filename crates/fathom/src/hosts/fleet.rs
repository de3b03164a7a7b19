//! All hosts together: greets their agents, prepares a load on each, starts it everywhere at the same
//! time, and waits for what they measured.

use std::time::{Duration, Instant};

use fathom_core::Span;
use fathom_core::experiment::Planned;
use fathom_core::facts::{Host, Target};
use fathom_core::figures::number;
use fathom_core::hosts::{ClockOffset, bytes_in_words};
use fathom_core::spec::{Point, Region};
use fathom_core::trial::{Coordinate, Trial};
use fathom_report::document::HostOfMany;

use super::attending::{self, Attending, HostCourse, VERSION, difference_of, unusable};
use super::lines::FromHost;
use super::merging;
use super::pulse::Pulse;
use super::router::Router;
use super::words::{HostLoad, Variant};
use crate::agent::message::{AgentOrder, PROTOCOL, PreparedHere, ProgressHere};
use crate::cli::axes::HOSTS;
use crate::error::Error;
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
/// How soon a signal is seen.
const NAP: Duration = Duration::from_millis(50);
/// How long a host may be silent when its load has to be over: a trial may be long, and the way slow.
const ENDING: Duration = Duration::from_secs(120);
/// How long after its time the trial of a host may come. Agents give up targets that hang before that.
const LATEST: Duration = Duration::from_secs(300);
/// How long a host may take to prepare a load.
const PREPARING: Duration = Duration::from_secs(300);
/// Between two looks at the progress of all hosts.
const PERIOD: Duration = Duration::from_millis(950);

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
            hosts[host] = Some(Attending::greeted(name, what)?);
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
        self.hosts[host].prepares(&self.router.names()[host], what)
    }

    /// Orders the prepared load to begin on all hosts at the same time: that time, by the clock here.
    fn start(&mut self) -> u64 {
        let farthest = Duration::from_nanos(self.clock_bound().0);
        let at = unix_ns() + (LEAD + 4 * farthest).as_nanos() as u64;
        for host in 0..self.active {
            let offset = self.offset(host);
            let there = offset.map_or(at, |offset| offset.there(at));
            self.hosts[host].course = HostCourse::beginning(offset);
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
        let Some(progress) = attending::progress(all.iter().map(|(_, progress)| *progress)) else {
            return;
        };
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
        let hosts = self.router.names().iter().zip(&mut self.hosts[..self.active]);
        let parts = hosts.map(|(name, host)| host.measured(name, &planned)).collect();
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

/// The first message to an agent.
fn hello(points: u32) -> AgentOrder {
    AgentOrder::Hello { protocol: PROTOCOL, fathom_version: VERSION.to_owned(), points }
}

/// How many hosts apply the load at these coordinates; none if all do.
fn hosts_at(coordinates: &[Coordinate]) -> Option<usize> {
    let axis = coordinates.iter().find(|one| one.axis == HOSTS)?;
    axis.label.parse().ok()
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
