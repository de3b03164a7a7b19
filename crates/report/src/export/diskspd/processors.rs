//! How the CPUs spent the window, and their sockets, nodes and cores.

use crate::document::{Counters, Host};

/// How a CPU spent the window, in percent. Time that a hypervisor took for other guests counts for
/// neither.
pub struct CpuShares {
    pub number: u32,
    pub user: f64,
    pub kernel: f64,
    pub idle: f64,
}

impl CpuShares {
    pub fn usage(&self) -> f64 {
        self.user + self.kernel
    }
}

/// Which CPUs are in which socket, node and core, each by its place in a list.
pub struct Topology {
    /// By their packages' numbers.
    pub sockets: Vec<Group>,
    /// By their numbers.
    pub nodes: Vec<Group>,
    /// By their packages' and their own numbers.
    pub cores: Vec<Group>,
}

/// CPUs that are together somewhere.
pub struct Group {
    /// The system's number: for a core its package first.
    name: (u32, u32),
    pub cpus: Vec<u32>,
}

impl Topology {
    /// None if it is not known for every CPU.
    pub fn of(host: &Host) -> Option<Self> {
        let mut topology = Self { sockets: Vec::new(), nodes: Vec::new(), cores: Vec::new() };
        for place in &host.cpu_places {
            let (package, core) = (place.package?, place.core?);
            for (groups, name) in [
                (&mut topology.sockets, (package, 0)),
                (&mut topology.nodes, (place.node.unwrap_or(0), 0)),
                (&mut topology.cores, (package, core)),
            ] {
                match groups.iter_mut().find(|group| group.name == name) {
                    Some(group) => group.cpus.push(place.number),
                    None => groups.push(Group { name, cpus: Vec::from([place.number]) }),
                }
            }
        }
        let lists = [&mut topology.sockets, &mut topology.nodes, &mut topology.cores];
        lists.into_iter().for_each(|groups| groups.sort_by_key(|group| group.name));
        (!topology.cores.is_empty()).then_some(topology)
    }

    /// The places of the socket, the node and the core that hold this CPU.
    pub fn place(&self, cpu: u32) -> Option<[usize; 3]> {
        let of = |groups: &[Group]| groups.iter().position(|group| group.cpus.contains(&cpu));
        Some([of(&self.sockets)?, of(&self.nodes)?, of(&self.cores)?])
    }
}

/// Every CPU, and the mean of all.
pub fn cpus(counters: &Counters) -> (Vec<CpuShares>, CpuShares) {
    let share = |part: u64, all: u64| if all == 0 { 0.0 } else { part as f64 * 100.0 / all as f64 };
    let cpus: Vec<CpuShares> = counters
        .cpus
        .iter()
        .map(|cpu| {
            let all = cpu.user_ns + cpu.kernel_ns + cpu.idle_ns;
            CpuShares {
                number: cpu.cpu,
                user: share(cpu.user_ns, all),
                kernel: share(cpu.kernel_ns, all),
                idle: share(cpu.idle_ns, all),
            }
        })
        .collect();
    let mean =
        |part: fn(&CpuShares) -> f64| cpus.iter().map(part).sum::<f64>() / cpus.len().max(1) as f64;
    let average = CpuShares {
        number: 0,
        user: mean(|cpu| cpu.user),
        kernel: mean(|cpu| cpu.kernel),
        idle: mean(|cpu| cpu.idle),
    };
    (cpus, average)
}
