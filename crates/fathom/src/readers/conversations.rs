//! The readers of both sides of a test over many hosts.

use fathom_core::experiment::Planned;
use fathom_core::facts::{Host, Target};
use fathom_core::hosts::ClockOffset;
use fathom_core::trial::Trial;
use fathom_core::{Span, verdict};
use fathom_report::document::{self, Line};

use super::results::show;
use super::told;
use crate::agent::message::{self, AgentOrder};
use crate::agent::words;
use crate::hosts::{self, Attending, HostCourse, RouterHosts};

/// Reads what a coordinator says to an agent, line by line, and the words of its loads.
pub fn agent(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        match message::read(&String::from_utf8_lossy(line)) {
            Ok(AgentOrder::Prepare(load)) => drop(words::asked(&load)),
            Ok(_) => {}
            Err(why) => assert!(!why.is_empty()),
        }
    }
}

/// Reads what a router says to a coordinator, and makes one trial of what its agents measured. The
/// planned load is that which the first of them prepared.
pub fn router(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let behind = match RouterHosts::read(lines.next().unwrap_or_default()) {
        Ok(behind) => behind,
        Err(error) => return told(&error),
    };
    let mut all: Vec<Option<Attending>> = behind.names.iter().map(|_| None).collect();
    for line in lines {
        let Some(understood) = behind.understand(line) else { break };
        let Some((place, what)) = understood else { continue };
        let name = &behind.names[place];
        let taken = match &mut all[place] {
            Some(host) if host.prepared.is_some() => {
                host.hear(what, false);
                Ok(())
            }
            Some(host) => host.prepares(name, what).map(|()| host.course = beginning()),
            new => Attending::greeted(name, what).map(|host| *new = Some(host)),
        };
        if let Err(error) = taken {
            return told(&error);
        }
    }
    let mut hosts: Vec<Attending> = all.into_iter().flatten().collect();
    let Some(prepared) = hosts.iter().find_map(|host| host.prepared.clone()) else { return };
    let _ = hosts::progress(hosts.iter().filter_map(|host| host.course.progress.as_ref()));
    let planned = Planned::from(prepared.point);
    let named = behind.names.iter().zip(&mut hosts);
    let parts: Vec<_> = named.map(|(name, host)| host.measured(name, &planned)).collect();
    // The result has a header of its own. That of a host whose trial can be read with it is as good.
    let usable = parts.iter().position(|part| part.measured.is_ok()).unwrap_or_default();
    match hosts::together(planned, 0, parts) {
        Ok(trial) => {
            let targets: Vec<Target> = prepared.targets.into_iter().map(|one| one.facts).collect();
            let header = hosts[usable].header.as_deref().unwrap_or_default();
            recorded(header, &trial, &hosts[usable].facts, &targets);
        }
        Err(error) => told(&error),
    }
}

/// A host whose clock is 1 ms ahead.
fn beginning() -> HostCourse {
    HostCourse::beginning(Some(ClockOffset { ns: 1_000_000, bound: Span::from_us(50) }))
}

/// Judges the trial of all hosts, and shows a result with it.
fn recorded(header: &str, trial: &Trial, host: &Host, targets: &[Target]) {
    let told = document::Trial::new(trial, &verdict::judge(trial, host, targets));
    let text = format!("{header}\n{}\n", Line::Trial(Box::new(told)).to_json());
    match document::read(text.as_bytes()) {
        Ok(document) => show(&document),
        Err(error) => panic!("{error}\n{text}"),
    }
}

#[cfg(test)]
mod tests {
    /// Agents of another version are refused with their first message, and nothing behind it is read.
    #[test]
    fn the_seeds_are_of_agents_of_this_version() {
        for seed in [
            include_str!("../../../../tests/data/fuzz/router/two-hosts"),
            include_str!("../../../../tests/data/fuzz/router/divided"),
        ] {
            let version = format!(r#""fathom_version":"{}""#, env!("CARGO_PKG_VERSION"));
            let hellos = seed.lines().filter(|line| line.contains(r#""message":"hello""#));
            let (own, other) = hellos.partition::<Vec<_>, _>(|line| line.contains(&version));
            assert_eq!((own.len(), other.len()), (2, 0), "write {version} into the seeds");
        }
    }
}
