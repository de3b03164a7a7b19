//! The machine that generates the load.

use fathom_core::Bytes;
use fathom_core::facts::{Clock, CpuPlace, Host, Rank};

use super::cgroup::Groups;
use super::system::System;
use crate::workplace;

/// The facts about a machine. The caller, who measures the clock, fills it in.
pub(crate) fn host(system: &System) -> Host {
    let uname = rustix::system::uname();
    let groups = Groups::read(system);
    let memory = memory(system);
    Host {
        name: uname.nodename().to_string_lossy().into_owned(),
        kernel: uname.release().to_string_lossy().into_owned(),
        os: os(system),
        cpu_model: cpu_model(system),
        cpus: cpus(),
        cpu_places: cpu_places(system),
        numa_nodes: numa_nodes(system),
        memory,
        memory_limit: groups.memory_limit().filter(|limit| *limit < memory),
        cpu_limit: groups.cpu_limit().filter(|limit| *limit < f64::from(cpus())),
        virtualization: virtualization(system),
        root: rustix::process::geteuid().is_root(),
        clock: Clock::default(),
        ceiling: None,
        rank: rank(system, &groups),
    }
}

/// The rank of this process among others.
fn rank(system: &System, groups: &Groups) -> Rank {
    // The name in brackets may contain anything; the fields begin behind its end.
    let stat = system.text("proc/self/stat").unwrap_or_default();
    let behind = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let field = |place: usize| behind.split_whitespace().nth(place)?.parse::<i32>().ok();
    let grouped = system.text("proc/sys/kernel/sched_autogroup_enabled");
    let session = system.text("proc/self/autogroup").filter(|_| grouped.as_deref() == Some("1"));
    Rank {
        nice: field(NICE).unwrap_or(0),
        policy: match field(POLICY) {
            Some(libc::SCHED_BATCH) => Some("batch".to_owned()),
            Some(libc::SCHED_IDLE) => Some("idle".to_owned()),
            _ => None,
        },
        io: workplace::own_io_priority(),
        // "/autogroup-11 nice 0".
        session_nice: session.and_then(|text| text.rsplit_once(' ')?.1.parse().ok()),
        cpu_weight: groups.cpu_weight(),
    }
}

/// The place of the nice value in a process's `stat`, counted behind the name.
const NICE: usize = 16;
/// The place of the scheduling policy there.
const POLICY: usize = 38;

/// The CPUs that this process may run on.
fn cpus() -> u32 {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => set.count(),
        // More CPUs than the set has room for.
        Err(_) => std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
    }
}

/// The numbers and the places of the CPUs that this process may run on.
fn cpu_places(system: &System) -> Vec<CpuPlace> {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    let most = rustix::thread::CpuSet::MAX_CPU;
    (0..most).filter(|&cpu| allowed.is_set(cpu)).map(|cpu| cpu_place(system, cpu as u32)).collect()
}

fn cpu_place(system: &System, number: u32) -> CpuPlace {
    let folder = format!("sys/devices/system/cpu/cpu{number}");
    let read =
        |name: &str| system.text(format!("{folder}/topology/{name}"))?.trim().parse::<u32>().ok();
    // Each CPU's folder has a link to its node's.
    let node = |name: &String| name.strip_prefix("node")?.parse::<u32>().ok();
    CpuPlace {
        number,
        package: read("physical_package_id"),
        core: read("core_id"),
        node: system.names(&folder).iter().find_map(node),
    }
}

fn os(system: &System) -> Option<String> {
    let text = system.text("etc/os-release").or_else(|| system.text("usr/lib/os-release"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches(['"', '\'']).to_owned())
}

fn cpu_model(system: &System) -> Option<String> {
    let text = system.text("proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name && !value.trim().is_empty()).then(|| value.trim().to_owned())
        })
    };
    field("model name").or_else(|| field("cpu")).or_else(|| field("cpu model")).or_else(|| {
        // Arm reports numbers only.
        let implementer = field("CPU implementer")?;
        Some(format!("CPU implementer {implementer}, part {}", field("CPU part")?))
    })
}

fn numa_nodes(system: &System) -> u32 {
    let is_node = |name: &String| {
        name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let nodes = system.names("sys/devices/system/node").iter().filter(|name| is_node(name)).count();
    nodes.max(1) as u32
}

fn memory(system: &System) -> Bytes {
    let text = system.text("proc/meminfo").unwrap_or_default();
    let kib = text.lines().find_map(|line| {
        line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    // If /proc is not mounted or may not be read, the system call still answers; for a laid-out
    // machine there is no such answer.
    let told = || {
        let system = rustix::system::sysinfo();
        system.totalram.saturating_mul(u64::from(system.mem_unit))
    };
    let bytes = kib.map(|kib| kib.saturating_mul(1024));
    Bytes(bytes.unwrap_or_else(|| if system.is_real() { told() } else { 0 }))
}

/// The hypervisor and the container in which the process seems to run.
fn virtualization(system: &System) -> Option<String> {
    let found: Vec<String> =
        [hypervisor(system), container(system)].into_iter().flatten().collect();
    (!found.is_empty()).then(|| found.join(", "))
}

fn hypervisor(system: &System) -> Option<String> {
    if system.text("proc/sys/kernel/osrelease").is_some_and(|text| text.contains("icrosoft")) {
        return Some("WSL".to_owned());
    }
    if system.text("sys/hypervisor/type").is_some_and(|kind| kind == "xen") {
        return Some("Xen".to_owned());
    }
    let virtual_cpu = system.text("proc/cpuinfo").unwrap_or_default().lines().any(|line| {
        line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor")
    });
    let vendor = ["sys_vendor", "product_name", "board_vendor", "bios_vendor"]
        .iter()
        .filter_map(|name| system.text(format!("sys/class/dmi/id/{name}")))
        .collect::<Vec<_>>()
        .join(" ");
    let known = [
        ("QEMU", "QEMU"),
        ("KVM", "KVM"),
        ("OpenStack", "KVM"),
        ("VMware", "VMware"),
        ("VirtualBox", "VirtualBox"),
        ("innotek", "VirtualBox"),
        ("Parallels", "Parallels"),
        ("Xen", "Xen"),
        ("Bochs", "Bochs"),
        ("Virtual Machine", "Hyper-V"),
    ];
    // Clouds sell bare machines too, so their names count only with a virtual CPU.
    let clouds = [
        ("Amazon EC2", "Amazon EC2"),
        ("Google", "Google Compute Engine"),
        ("DigitalOcean", "KVM"),
        ("Hetzner", "KVM"),
        ("Alibaba", "KVM"),
    ];
    if let Some((_, name)) = known.iter().find(|(mark, _)| vendor.contains(mark)) {
        return Some((*name).to_owned());
    }
    let clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource";
    let clocks = system.text(clocks).unwrap_or_default();
    if !virtual_cpu {
        // Arm has no such flag; the clock and the device tree tell.
        let tree = system.text("proc/device-tree/hypervisor/compatible")?;
        return Some(if tree.contains("kvm") { "KVM".to_owned() } else { tree });
    }
    if let Some((_, name)) = clouds.iter().find(|(mark, _)| vendor.contains(mark)) {
        return Some((*name).to_owned());
    }
    Some(match clocks {
        clocks if clocks.contains("kvm-clock") => "KVM".to_owned(),
        clocks if clocks.contains("hyperv") => "Hyper-V".to_owned(),
        clocks if clocks.contains("xen") => "Xen".to_owned(),
        _ => "a virtual machine".to_owned(),
    })
}

fn container(system: &System) -> Option<String> {
    if let Some(kind) = system.text("run/systemd/container").filter(|kind| !kind.is_empty()) {
        return Some(format!("{kind} container"));
    }
    if system.path(".dockerenv").exists() {
        return Some("docker container".to_owned());
    }
    if system.path("run/.containerenv").exists() {
        return Some("podman container".to_owned());
    }
    if system.path("var/run/secrets/kubernetes.io").exists() {
        return Some("kubernetes container".to_owned());
    }
    let environment = system.text("proc/1/environ")?;
    let kind = environment.split('\0').find_map(|entry| entry.strip_prefix("container="))?;
    Some(format!("{kind} container"))
}
