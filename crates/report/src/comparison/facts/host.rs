//! The differences between two machines that generate the load.

use fathom_core::Bytes;
use fathom_core::figures::time;

use super::Differing;
use super::FactWeight::{Likely, Possible, Slight};
use crate::document::{Ceiling, Clock, CpuPlace, Host, Rank};

/// A calibration on a busy machine may find a cost that is higher by nearly this factor.
const DEARER: f64 = 1.5;

/// A kernel of another version keeps a little more or less of the memory to itself.
const MEMORY: f64 = 0.02;

/// Adds the differences between two hosts.
pub fn compare(found: &mut Differing, before: &Host, after: &Host) {
    let Host {
        name,
        kernel,
        os,
        cpu_model,
        cpus,
        cpu_places,
        numa_nodes,
        memory,
        memory_limit,
        cpu_limit,
        virtualization,
        root,
        clock,
        ceiling,
        rank,
    } = before;
    found.text(Possible, "host", name, &after.name);
    found.text(Likely, "kernel", kernel, &after.kernel);
    found.known(Likely, "CPU model", (cpu_model, &after.cpu_model), String::clone);
    found.value(Likely, "CPUs", (cpus, &after.cpus), u32::to_string);
    let places = (numbers(cpu_places), numbers(&after.cpu_places));
    if cpus == &after.cpus {
        found.text(Possible, "CPUs allowed", &places.0, &places.1);
    }
    found.optional(Likely, "CPU limit", (cpu_limit, &after.cpu_limit), |cpus| {
        format!("{cpus} CPUs' worth of time")
    });
    let virtual_before = (virtualization, &after.virtualization);
    found.optional(Likely, "virtualization", virtual_before, String::clone);
    found.value(Possible, "NUMA nodes", (numa_nodes, &after.numa_nodes), u32::to_string);
    if !memory.is_zero() && !after.memory.is_zero() && far_apart(*memory, after.memory) {
        found.value(Possible, "memory", (memory, &after.memory), Bytes::to_string);
    }
    let limits = (memory_limit, &after.memory_limit);
    found.optional(Possible, "memory limit", limits, Bytes::to_string);
    found.known(Possible, "operating system", (os, &after.os), String::clone);
    found.value(Slight, "user", (root, &after.root), |root| {
        if *root { "root" } else { "not root" }.to_owned()
    });
    of_ranks(found, rank, &after.rank);
    // Its step and its cost are measurements, which scatter.
    let Clock { source, resolution_ns: _, cost_ns: _ } = clock;
    found.text(Possible, "clock", source, &after.clock.source);
    if let (Some(one), Some(other)) = (ceiling, &after.ceiling) {
        of_ceilings(found, one, other);
    }
}

fn of_ranks(found: &mut Differing, before: &Rank, after: &Rank) {
    let Rank { nice, policy, io, session_nice, cpu_weight } = before;
    found.value(Likely, "nice value", (nice, &after.nice), i32::to_string);
    found.optional(Likely, "scheduling policy", (policy, &after.policy), String::clone);
    found.optional(Likely, "I/O priority", (io, &after.io), ToString::to_string);
    let sessions = (session_nice, &after.session_nice);
    found.known(Possible, "nice value of the session", sessions, i32::to_string);
    let weights = (cpu_weight, &after.cpu_weight);
    let words = |weight: &f64| format!("{weight} times the default");
    let default = |weight: &Option<f64>| weight.as_ref().map_or("the default".to_owned(), words);
    found.value(Likely, "CPU weight", weights, default);
}

/// The cost of an I/O with nothing behind the backend, at the first queue depth that both know.
fn of_ceilings(found: &mut Differing, before: &Ceiling, after: &Ceiling) {
    let Ceiling { backend, target, costs } = before;
    if (backend, target) != (&after.backend, &after.target) {
        return;
    }
    let both = costs.iter().find_map(|one| {
        let other = after.costs.iter().find(|other| other.queue_depth == one.queue_depth)?;
        Some((one.per_io_ns, other.per_io_ns))
    });
    if let Some((one, other)) =
        both.filter(|(one, other)| one.max(*other) > DEARER * one.min(*other))
    {
        found.add(Possible, "CPU time of an I/O without a target", time(one), time(other));
    }
}

fn far_apart(one: Bytes, other: Bytes) -> bool {
    one.0.abs_diff(other.0) as f64 > MEMORY * one.0.max(other.0) as f64
}

/// The numbers of CPUs as ranges: "0-3,8".
fn numbers(places: &[CpuPlace]) -> String {
    let mut numbers: Vec<u32> = places.iter().map(|place| place.number).collect();
    numbers.sort_unstable();
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let words = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(words).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_named_by_ranges() {
        let place = |number| CpuPlace { number, package: None, core: None, node: None };
        assert_eq!(numbers(&[8, 1, 0, 2, 10, u32::MAX].map(place)), "0-2,8,10,4294967295");
        assert_eq!(numbers(&[]), "");
    }
}
