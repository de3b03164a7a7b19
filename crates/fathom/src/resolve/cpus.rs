//! The CPUs to which a stream's workers are tied: the typed list, as numbers of CPUs of this
//! machine that the process may use. Pure.

use std::collections::BTreeMap;

use fathom_core::facts::{CpuPlace, Target};
use fathom_core::plan::worker_count;
use fathom_core::spec::{Region, Stream};

use crate::cli::options::LoadArgs;
use crate::cli::values::Cpus;
use crate::error::Error;

/// The CPUs in the order in which workers take them; none if they may run on any.
///
/// # Errors
///
/// When one does not exist or may not be used, or the list cannot be determined.
pub fn cpus(
    load: &LoadArgs,
    targets: &[Target],
    regions: &[Region],
    places: &[CpuPlace],
) -> Result<Vec<u32>, Error> {
    let Some(typed) = &load.cpus else { return Ok(Vec::new()) };
    if places.is_empty() {
        let problem = "this machine does not tell which CPUs the process may use";
        return Err(Error::option("--cpus", problem, "drop it"));
    }
    match typed {
        Cpus::List(list) => listed(list, places),
        Cpus::Node(node) => of_nodes(&[*node], places, format!("--cpus node:{node}")),
        Cpus::Nodes => Ok(alternating(places)),
        Cpus::Cores => Ok(cores_first(places)),
        Cpus::Device => {
            let mut nodes = device_nodes(targets, regions);
            if nodes.is_empty() {
                // If there is but one node, everything is attached to it.
                nodes = known_nodes(places).filter(|nodes| nodes.len() == 1).unwrap_or_default();
            }
            match nodes.is_empty() {
                true => Err(Error::option(
                    "--cpus device",
                    "the devices below the targets do not tell their NUMA node",
                    "name CPUs, as in --cpus 0-3",
                )),
                false => of_nodes(&nodes, places, "--cpus device".to_owned()),
            }
        }
    }
}

fn listed(list: &[u32], places: &[CpuPlace]) -> Result<Vec<u32>, Error> {
    let known = |cpu: &&u32| places.iter().any(|place| place.number == **cpu);
    match list.iter().find(|cpu| !known(cpu)) {
        None => Ok(list.to_vec()),
        Some(cpu) => Err(Error::option(
            format!("--cpus {cpu}"),
            format!(
                "the process may use CPU {} of this machine, not CPU {cpu}",
                ranges(places.iter().map(|place| place.number))
            ),
            "choose among them, or widen its cpuset (taskset, systemd's AllowedCPUs)",
        )),
    }
}

/// Numbers in rising order as text: "0-3, 8".
fn ranges(numbers: impl Iterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let shown = |&(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn of_nodes(nodes: &[u32], places: &[CpuPlace], option: String) -> Result<Vec<u32>, Error> {
    let near = |place: &&CpuPlace| place.node.is_some_and(|node| nodes.contains(&node));
    let near: Vec<CpuPlace> = places.iter().filter(near).copied().collect();
    if near.is_empty() {
        let problem = match known_nodes(places) {
            None => "this machine does not tell the NUMA nodes of its CPUs".to_owned(),
            Some(known) => format!(
                "the process may use no CPU of NUMA node {}, only of {}",
                ranges(nodes.iter().copied()),
                ranges(known.into_iter())
            ),
        };
        return Err(Error::option(option, problem, "name CPUs, as in --cpus 0-3"));
    }
    Ok(cores_first(&near))
}

/// The NUMA nodes of the usable CPUs, in rising order; none if the node of one of them is unknown.
fn known_nodes(places: &[CpuPlace]) -> Option<Vec<u32>> {
    let mut known: Vec<u32> = places.iter().map(|place| place.node).collect::<Option<_>>()?;
    known.sort_unstable();
    known.dedup();
    Some(known)
}

/// The NUMA nodes of the disks below the targets, in rising order.
fn device_nodes(targets: &[Target], regions: &[Region]) -> Vec<u32> {
    let disks = regions.iter().flat_map(|region| targets[region.target as usize].disks());
    let mut nodes: Vec<u32> = disks.filter_map(|layer| layer.disk.as_ref()?.numa_node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// The first CPU of each core, then the second of each. A CPU with an unknown core counts as a
/// separate core.
pub fn cores_first(places: &[CpuPlace]) -> Vec<u32> {
    let mut seen: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    in_order(places, |place| {
        place.whole_core().map_or(0, |core| count(seen.entry(core).or_default()))
    })
}

/// The first CPU of each node, then the second of each.
fn alternating(places: &[CpuPlace]) -> Vec<u32> {
    // In each node the cores come before their siblings.
    let order = cores_first(places);
    let place = |cpu: &u32| places.iter().find(|place| place.number == *cpu).copied();
    let sorted: Vec<CpuPlace> = order.iter().filter_map(place).collect();
    let mut seen: BTreeMap<Option<u32>, u32> = BTreeMap::new();
    in_order(&sorted, |place| count(seen.entry(place.node).or_default()))
}

/// The number of those before this one.
fn count(seen: &mut u32) -> u32 {
    *seen += 1;
    *seen - 1
}

fn in_order(places: &[CpuPlace], rank: impl FnMut(&CpuPlace) -> u32) -> Vec<u32> {
    let ranks: Vec<u32> = places.iter().map(rank).collect();
    let mut ranked: Vec<(u32, u32)> =
        ranks.into_iter().zip(places.iter().map(|place| place.number)).collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, number)| number).collect()
}

/// Makes streams that name the same CPUs share one sequence of them: the workers of the second
/// stream get the CPUs after those of the first, so that none is crowded while others are free. If
/// a stream's first worker has a given number, that is its place in the sequence.
pub fn take_turns(streams: &mut [Stream], first_workers: impl IntoIterator<Item = Option<u32>>) {
    let mut taken: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    let tied = streams.iter_mut().zip(first_workers);
    for (stream, first_worker) in tied.filter(|(stream, _)| !stream.workplace.cpus.is_empty()) {
        let workers = worker_count(stream) as usize;
        let cpus = &mut stream.workplace.cpus;
        let before = taken.entry(cpus.clone()).or_default();
        let first = first_worker.map_or(*before, |first| first as usize) % cpus.len();
        *before += workers;
        cpus.rotate_left(first);
    }
}

/// Refuses real-time workers that would have to share a CPU: each would keep the other off it.
///
/// # Errors
///
/// When there are fewer CPUs than such workers.
pub fn own_cpus(streams: &[Stream]) -> Result<(), Error> {
    let realtime = |stream: &&Stream| stream.pacing.is_realtime();
    let cpus = |stream| (0..worker_count(stream)).filter_map(|worker| stream.workplace.cpu(worker));
    let mut cpus: Vec<u32> = streams.iter().filter(realtime).flat_map(cpus).collect();
    let workers = cpus.len();
    cpus.sort_unstable();
    cpus.dedup();
    if workers == cpus.len() {
        return Ok(());
    }
    Err(Error::option(
        "--cpus",
        format!(
            "{workers} workers with real-time priority would share {} of them, and make each other \
             late",
            cpus.len()
        ),
        "name a CPU for each worker, or drop --realtime",
    ))
}

#[cfg(test)]
mod tests {
    use fathom_core::spec::{Arrivals, Loop, OfferedLoad, Pacing, Workers};
    use fathom_core::{Bytes, Rate};

    use super::*;

    /// Two nodes of two cores with two siblings each. Siblings are four apart, as usual.
    fn places() -> Vec<CpuPlace> {
        let place = |number| {
            let core = number % 4;
            CpuPlace { number, package: Some(core / 2), core: Some(core), node: Some(core / 2) }
        };
        (0..8).map(place).collect()
    }

    fn told<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn each_core_is_used_before_its_siblings() {
        assert_eq!(cores_first(&places()), [0, 1, 2, 3, 4, 5, 6, 7]);
        let mut neighbors = places();
        neighbors.iter_mut().for_each(|place| {
            (place.package, place.core) = (Some(0), Some(place.number / 2));
        });
        assert_eq!(cores_first(&neighbors), [0, 2, 4, 6, 1, 3, 5, 7]);
        neighbors.iter_mut().for_each(|place| place.core = None);
        assert_eq!(cores_first(&neighbors), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn nodes_take_turns_or_are_chosen() {
        assert_eq!(alternating(&places()), [0, 2, 1, 3, 4, 6, 5, 7]);
        assert_eq!(of_nodes(&[1], &places(), String::new()).unwrap(), [2, 3, 6, 7]);
        let problem = told(of_nodes(&[5], &places(), "--cpus node:5".to_owned()));
        assert!(problem.contains("no CPU of NUMA node 5, only of 0-1"), "{problem}");
    }

    #[test]
    fn a_cpu_that_may_not_be_used_is_refused_with_those_that_may() {
        assert_eq!(listed(&[3, 0, 3], &places()).unwrap(), [3, 0, 3]);
        let mut some = places();
        some.remove(1);
        let problem = told(listed(&[0, 1], &some));
        assert!(problem.contains("--cpus 1") && problem.contains("CPU 0, 2-7"), "{problem}");
    }

    #[test]
    fn streams_that_name_the_same_cpus_take_them_in_turn() {
        let stream = |cpus: &[u32], workers| {
            let region = Region { target: 0, offset: Bytes(0), length: Bytes(1 << 20) };
            let mut stream = Stream::reading("any", Vec::from([region]));
            stream.workers = Workers::Total(workers);
            stream.workplace.cpus = cpus.to_vec();
            stream
        };
        let all = [0, 1, 2, 3];
        let mut streams =
            [stream(&all, 3), stream(&[0], 1), stream(&all, 2), stream(&[], 1), stream(&all, 1)];
        let mut numbered = streams.clone();
        take_turns(&mut streams, [None; 5]);
        let cpu = |stream: &Stream| stream.workplace.cpu(0);
        assert_eq!(streams.each_ref().map(cpu), [Some(0), Some(0), Some(3), None, Some(1)]);
        assert_eq!(streams[2].workplace.cpu(1), Some(0));
        take_turns(&mut numbered, [None, None, Some(5), None, Some(0)]);
        assert_eq!(numbered.each_ref().map(cpu), [Some(0), Some(0), Some(1), None, Some(0)]);
        // Only workers with real-time priority must not share a CPU.
        assert!(own_cpus(&streams).is_ok());
        for stream in &mut streams {
            stream.pacing = Pacing::of(Loop::Open {
                load: OfferedLoad::Steady(Rate(1.0)),
                arrivals: Arrivals::Poisson,
                queue_depth_max: 8,
                realtime: true,
            });
        }
        assert!(own_cpus(&streams[..1]).is_ok());
        let problem = own_cpus(&streams).unwrap_err().to_string();
        assert!(problem.contains("7 workers") && problem.contains("share 4"), "{problem}");
    }

    #[test]
    fn on_one_node_every_cpu_is_at_the_device() {
        let load = |words: &[&str]| {
            #[derive(clap::Parser)]
            struct Line {
                #[command(flatten)]
                load: LoadArgs,
            }
            let line = ["fathom"].iter().chain(words);
            <Line as clap::Parser>::parse_from(line).load
        };
        let device = load(&["--cpus", "device"]);
        let two = told(cpus(&device, &[], &[], &places()));
        assert!(two.contains("do not tell their NUMA node"), "{two}");
        let mut one = places();
        one.iter_mut().for_each(|place| place.node = Some(0));
        assert_eq!(cpus(&device, &[], &[], &one).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
