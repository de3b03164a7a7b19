//! The facts about this machine, for the resolver and for the document.

use fathom_core::Bytes;
use fathom_core::facts::Host;
use fathom_engine::clock::Clock;
use fathom_engine::host;

use crate::resolve::Machine;

/// The facts about this machine, including its clock.
pub fn this_host() -> Host {
    Host { clock: Clock::default().measure(), ..host::host() }
}

/// The facts about the machine that the resolver needs.
pub fn machine(host: &Host) -> Machine<'_> {
    let known = [Some(host.memory).filter(|memory| *memory > Bytes(0)), host.memory_limit];
    let memory = known.into_iter().flatten().min().unwrap_or(Bytes(u64::MAX));
    // A limit of the cgroup is a share of time; a fraction of a CPU is not a CPU to run on.
    let limit = host.cpu_limit.map_or(u32::MAX, |limit| limit as u32);
    let (cpus, cpu_places) = (host.cpus.min(limit), &host.cpu_places);
    Machine { memory, fresh_seed: fresh_seed(), cpus, cpu_places }
}

/// A random seed. It is short enough to be typed again.
pub fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() & 0xFFFF_FFFF
}
