//! The facts of other machines, laid out in tests/data/hosts.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use fathom_core::facts::{
    ArrayState, Counters, FileSystem, InUse, IoLimit, Layer, Memory, Rank, Target, TargetKind,
};
use fathom_core::{Bytes, Span};

use super::cgroup::Groups;
use super::system::{DeviceFolder, System};
use super::{counters, machine, mounts, nvme, stack, usage};
use crate::target_error::TargetError;

/// A machine in a temporary folder. Dropping it removes the folder.
struct Machine {
    system: System,
    root: PathBuf,
    _folder: tempfile::TempDir,
}

impl Machine {
    fn unpack(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hosts").join(name);
        let machine = Self { system: System::at(&root), root, _folder: folder };
        let text = fs::read_to_string(source).unwrap();
        let mut at = PathBuf::new();
        let mut later = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(folder) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                at = machine.root.join(folder);
                fs::create_dir_all(&at).unwrap();
            } else if let Some((name, text)) = line.split_once(" =") {
                machine.write(&at.join(name), text.trim_start_matches(' '));
            } else {
                later.push((at.clone(), line.to_owned()));
            }
        }
        // Links come last, when their destinations exist.
        for (at, line) in &later {
            machine.link(at, line);
        }
        machine
    }

    fn write(&self, path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = text.replace("\\n", "\n").replace("\\t", "\t");
        fs::write(path, format!("{text}\n")).unwrap();
        let folder = path.parent().unwrap();
        if path.file_name().is_some_and(|name| name == "dev") {
            let name = folder.file_name().unwrap().to_str().unwrap();
            self.make_link(folder, &format!("sys/dev/block/{}", text.trim()));
            self.make_link(folder, &format!("sys/class/block/{name}"));
            let parent = folder.parent().unwrap();
            // A partition's folder lies in its disk's folder, which has a `dev` too.
            if !parent.join("dev").exists() {
                self.make_link(folder, &format!("sys/block/{name}"));
            }
        }
    }

    fn make_link(&self, to: &Path, at: &str) {
        let at = self.root.join(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(to, at).unwrap();
    }

    fn link(&self, at: &Path, line: &str) {
        let class = self.root.join("sys/class/block");
        if let Some((name, to)) = line.split_once(" -> ") {
            symlink(self.root.join(to), at.join(name)).unwrap();
        } else if let Some((kind, names)) = line.split_once(": ") {
            let folder = at.join(kind);
            fs::create_dir_all(&folder).unwrap();
            for name in names.split(' ') {
                let member = class.join(name).canonicalize().unwrap();
                symlink(&member, folder.join(name)).unwrap();
                if kind == "slaves" {
                    fs::create_dir_all(member.join("holders")).unwrap();
                    symlink(at, member.join("holders").join(at.file_name().unwrap())).unwrap();
                }
            }
        } else {
            panic!("neither a folder, a file nor a link: {line}");
        }
    }

    fn device(&self, name: &str) -> DeviceFolder {
        DeviceFolder::at(&self.root.join("sys/class/block").join(name)).unwrap()
    }

    fn layers(&self, name: &str) -> Vec<Layer> {
        stack::of_device(&self.system, &self.device(name))
    }

    fn layers_of_mount(&self, point: &str) -> Vec<Layer> {
        let mounts = mounts::mounts(&self.system);
        let mount = mounts.iter().find(|mount| mount.point == point).unwrap();
        stack::of_mount(&self.system, Some(mount), mount.device)
    }

    /// The users of a device. The node of a device is not laid out and cannot be read; these
    /// unknowns are left out.
    fn in_use(&self, name: &str) -> Vec<InUse> {
        let mut found = self.in_use_and_unknown(name);
        found.retain(|usage| !matches!(usage, InUse::Unknown { .. }));
        found
    }

    fn in_use_and_unknown(&self, name: &str) -> Vec<InUse> {
        usage::of_device(&self.system, &self.device(name), Path::new("/no/such/node"))
    }
}

/// One line per layer: its index, name, kind, size, detail and stripe, and the indexes of the
/// layers below.
fn outline(layers: &[Layer]) -> Vec<String> {
    let line = |(place, layer): (usize, &Layer)| {
        let mut line = format!("{place} {} {}", layer.name, layer.kind.name());
        if let Some(detail) = &layer.detail {
            line += &format!(" ({detail})");
        }
        if let Some(stripe) = layer.stripe {
            line += &format!(" stripe {} of {}", stripe.full, stripe.chunk);
        }
        for member in &layer.members {
            assert!(place < *member, "a layer comes before what it consists of");
            line += &format!(" >{member}");
        }
        line
    };
    layers.iter().enumerate().map(line).collect()
}

#[test]
fn a_volume_is_followed_through_encryption_and_raid_to_the_disks() {
    let machine = Machine::unpack("raid.txt");
    let layers = machine.layers("dm-1");
    assert_eq!(
        outline(&layers),
        [
            "0 dm-1 device mapper (lvm vg-data) >1",
            "1 dm-0 device mapper (crypt crypt) >2",
            "2 md0 md array (raid6, 4 disks) stripe 1 MiB of 512 KiB >3 >5 >7 >9",
            "3 sda2 partition >4",
            "4 sda disk",
            "5 sdb2 partition >6",
            "6 sdb disk",
            "7 sdc2 partition >8",
            "8 sdc disk",
            "9 sdd2 partition >10",
            "10 sdd disk",
        ]
    );
    assert_eq!(outline(&machine.layers_of_mount("/srv")), outline(&layers));
    assert_eq!(super::sector(&layers), Some(Bytes(4096)), "the largest sector of all layers");
}

#[test]
fn a_disk_tells_its_queue_and_its_hardware() {
    let machine = Machine::unpack("raid.txt");
    let layers = machine.layers("sda1");
    assert_eq!(outline(&layers), ["0 sda1 partition >1", "1 sda disk"]);
    assert_eq!(layers[0].queue, None);
    assert_eq!(layers[1].size, Bytes(15_628_053_168 * 512));
    let queue = layers[1].queue.as_ref().unwrap();
    assert_eq!(queue.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!((queue.nr_requests, queue.hardware_queues), (Some(64), Some(1)));
    assert_eq!(queue.logical_sector, Some(Bytes(512)));
    assert_eq!(queue.physical_sector, Some(Bytes(4096)));
    assert_eq!((queue.minimum_io, queue.optimal_io), (Some(Bytes(4096)), None));
    assert_eq!(queue.max_request, Some(Bytes(1280 << 10)));
    assert_eq!(queue.volatile_write_cache, Some(true));
    assert_eq!(queue.discard_max, Some(Bytes(0)));
    assert_eq!(queue.polling, Some(false));
    let disk = layers[1].disk.as_ref().unwrap();
    assert_eq!(disk.model.as_deref(), Some("ST8000NM000A-2KE"));
    assert_eq!(disk.firmware.as_deref(), Some("SN02"));
    assert_eq!(disk.rotational, Some(true));
    assert_eq!(disk.numa_node, Some(1));
    assert_eq!(disk.transport.as_deref(), Some("sata"));
    assert_eq!(disk.device_queue_depth, Some(32));
    // A value that the machine does not report is unknown.
    let usb = machine.layers("sde");
    assert_eq!(usb[0].disk.as_ref().unwrap().transport.as_deref(), Some("usb"));
    assert_eq!(usb[0].disk.as_ref().unwrap().model, None);
    assert_eq!(usb[0].queue.as_ref().unwrap().volatile_write_cache, None);
}

#[test]
fn a_device_is_found_where_a_container_hides_the_folder_of_numbers() {
    let machine = Machine::unpack("raid.txt");
    let layers = machine.layers_of_mount("/srv");
    fs::remove_dir_all(machine.root.join("sys/dev/block")).unwrap();
    fs::create_dir(machine.root.join("sys/dev/block")).unwrap();
    assert_eq!(outline(&machine.layers_of_mount("/srv")), outline(&layers));
    for name in ["sda", "sda1", "dm-1"] {
        let device = machine.device(name);
        assert_eq!(machine.system.device(device.number), Some(device));
    }
    assert_eq!(machine.system.device((254, 99)), None);

    let generic = machine.root.join("sys/devices/virtual/nvme-generic/ng0n1");
    fs::create_dir_all(&generic).unwrap();
    fs::write(generic.join("dev"), "240:0\n").unwrap();
    machine.make_link(&generic, "sys/class/nvme-generic/ng0n1");
    assert_eq!(nvme::generic_name(&machine.system, (240, 0)).as_deref(), Some("ng0n1"));
    assert_eq!(nvme::generic_name(&machine.system, (240, 1)), None);
}

#[test]
fn an_array_that_recovers_says_so() {
    let machine = Machine::unpack("raid.txt");
    assert_eq!(
        outline(&machine.layers("md1"))[0],
        "0 md1 md array (raid1, 2 disks, degraded: 1 missing, recover is going on) >1 >3"
    );
}

#[test]
fn each_kind_of_array_has_its_stripe() {
    let machine = Machine::unpack("arrays.txt");
    let first = |name: &str| outline(&machine.layers(name))[0].clone();
    assert_eq!(first("md0"), "0 md0 md array (raid0, 2 disks) stripe 128 KiB of 64 KiB >1 >2");
    assert_eq!(
        first("md5"),
        "0 md5 md array (raid5, 4 disks) stripe 192 KiB of 64 KiB >1 >2 >3 >4"
    );
    assert_eq!(
        first("md10"),
        "0 md10 md array (raid10, 4 disks) stripe 128 KiB of 64 KiB >1 >2 >3 >4"
    );
    assert_eq!(first("md11"), "0 md11 md array (raid10, 3 disks) stripe 96 KiB of 64 KiB >1 >2 >3");
    assert_eq!(first("md100"), "0 md100 md array (linear, 2 disks) >1 >2");
    assert_eq!(first("md127"), "0 md127 md array");
    assert_eq!(first("dm-0"), "0 dm-0 device mapper (lvm vg-fast) stripe 128 KiB of 64 KiB >1 >2");
    assert_eq!(first("dm-1"), "0 dm-1 device mapper (multipath mpatha) >1 >2");
}

#[test]
fn two_partitions_of_one_disk_lead_to_it_once() {
    let machine = Machine::unpack("raid.txt");
    // An array over both partitions of one disk, as careless users make it.
    let md = machine.root.join("sys/devices/virtual/block/md7");
    for (name, text) in [("dev", "9:7"), ("md/level", "raid0"), ("md/raid_disks", "2")] {
        machine.write(&md.join(name), text);
    }
    machine.link(&md, "slaves: sda1 sda2 sdb1");
    assert_eq!(
        outline(&machine.layers("md7")),
        [
            "0 md7 md array (raid0, 2 disks) >1 >2 >4",
            "1 sda1 partition >3",
            "2 sda2 partition >3",
            "3 sda disk",
            "4 sdb1 partition >5",
            "5 sdb disk",
        ]
    );
}

#[test]
fn nvme_is_described_by_its_controller_and_its_paths() {
    let machine = Machine::unpack("nvme.txt");
    let layers = machine.layers("nvme0n1p2");
    assert_eq!(outline(&layers), ["0 nvme0n1p2 partition >1", "1 nvme0n1 disk"]);
    let disk = layers[1].disk.as_ref().unwrap();
    assert_eq!(disk.model.as_deref(), Some("SAMSUNG MZQL23T8HCLS-00A07"));
    assert_eq!(disk.firmware.as_deref(), Some("GDC5602Q"));
    assert_eq!((disk.numa_node, disk.rotational), (Some(2), Some(false)));
    assert_eq!(disk.transport.as_deref(), Some("nvme"));
    let queue = layers[1].queue.as_ref().unwrap();
    assert_eq!((queue.hardware_queues, queue.nr_requests), (Some(3), Some(1023)));
    assert_eq!(queue.volatile_write_cache, Some(false));
    assert_eq!(queue.polling, Some(true));
    let remote = machine.layers("nvme1n1");
    assert_eq!(outline(&remote), ["0 nvme1n1 disk (2 paths: nvme1c1n1, nvme1c2n1)"]);
    let disk = remote[0].disk.as_ref().unwrap();
    assert_eq!(disk.transport.as_deref(), Some("nvme over tcp"));
    assert_eq!(disk.model.as_deref(), Some("Linux"));
}

/// Reads the facts of the NVMe generic device with this name.
fn generic(machine: &Machine, name: &str) -> Result<Target, TargetError> {
    let path = format!("/dev/{name}");
    nvme::generic(&machine.system, Target::simulated(&path, Bytes(0)), (240, 0), name)
}

#[test]
fn an_nvme_generic_device_is_known_by_the_block_device_beside_it() {
    let machine = Machine::unpack("nvme.txt");
    let disk = machine.root.join("sys/block/nvme0n1");
    machine.write(&disk.join("nsid"), "7");
    machine.write(&disk.join("queue/max_hw_sectors_kb"), "2048");
    let target = generic(&machine, "ng0n1").unwrap();
    assert_eq!((target.kind, target.size), (TargetKind::NvmeGeneric, Bytes(7_501_476_528 * 512)));
    assert_eq!(target.direct_alignment, Some(Bytes(512)));
    let namespace = target.namespace.as_ref().unwrap();
    assert_eq!((namespace.device, namespace.id), ((240, 0), 7));
    assert_eq!(namespace.block_device, "/dev/nvme0n1");
    assert_eq!(namespace.logical_block, Bytes(512));
    assert_eq!((namespace.largest, namespace.limit), (Bytes(2 << 20), "queue/max_hw_sectors_kb"));
    // A file system mounted from the block device forbids writes to the generic device too.
    let mounted = |usage: &InUse| matches!(usage, InUse::Mounted { .. });
    assert!(target.in_use.iter().any(mounted), "{:?}", target.in_use);
    // Each page of a buffer may be a separate segment.
    machine.write(&disk.join("queue/max_segments"), "127");
    let namespace = generic(&machine, "ng0n1").unwrap().namespace.unwrap();
    assert_eq!((namespace.largest, namespace.limit), (Bytes(127 * 4096), "queue/max_segments"));
}

#[test]
fn an_nvme_generic_device_that_commands_cannot_serve_is_refused_with_what_can() {
    let machine = Machine::unpack("nvme.txt");
    let disk = machine.root.join("sys/block/nvme0n1");
    let refused = |name: &str, parts: &[&str]| {
        let told = generic(&machine, name).unwrap_err().to_string();
        for part in parts {
            assert!(told.contains(part), "{told} lacks {part}");
        }
    };
    refused("ng7n1", &["/dev/ng7n1", "no block device nvme7n1 beside it", "nvme list"]);
    refused("ng0n1", &["/sys/block/nvme0n1 does not tell its number", "measure /dev/nvme0n1"]);
    machine.write(&disk.join("nsid"), "1");
    machine.write(&disk.join("queue/logical_block_size"), "520");
    refused("ng0n1", &["the size of its blocks"]);
    machine.write(&disk.join("queue/logical_block_size"), "512");
    // Before Linux 6.8 the kernel does not report the number of bytes.
    machine.write(&disk.join("integrity/format"), "T10-DIF-TYPE1-CRC");
    refused(
        "ng0n1",
        &["carry metadata (T10-DIF-TYPE1-CRC)", "measure /dev/nvme0n1", "nvme format"],
    );
    machine.write(&disk.join("metadata_bytes"), "8");
    refused("ng0n1", &["carry 8 bytes of metadata"]);
    machine.write(&disk.join("metadata_bytes"), "0");
    assert!(generic(&machine, "ng0n1").is_ok());
}

#[test]
fn a_btrfs_is_one_layer_over_its_members() {
    let machine = Machine::unpack("btrfs.txt");
    let layers = machine.layers_of_mount("/pool");
    assert_eq!(
        outline(&layers),
        [
            "0 pool btrfs (raid5, 3 devices) stripe 128 KiB of 64 KiB >1 >2 >3",
            "1 sda disk",
            "2 sdb disk",
            "3 sdc disk",
        ]
    );
    assert_eq!(layers[0].device, None);
    assert_eq!(layers[0].size, Bytes(3 * 7_501_476_528 * 512));
    let disk = layers[1].disk.as_ref().unwrap();
    assert_eq!(disk.model.as_deref(), Some("SEAGATE XS3840SE70084"));
    assert_eq!(disk.transport.as_deref(), Some("sas"));
    // On one device it is not a separate layer.
    let single = machine.layers_of_mount("/");
    assert_eq!(outline(&single), ["0 vda1 partition >1", "1 vda disk"]);
    let disk = single[1].disk.as_ref().unwrap();
    assert_eq!((disk.transport.as_deref(), &disk.model), (Some("virtio"), &None));
}

#[test]
fn a_file_system_knows_whether_it_copies_on_write_and_compresses() {
    let machine = Machine::unpack("btrfs.txt");
    let mounts = mounts::mounts(&machine.system);
    let described = |point: &str| {
        let mount = mounts.iter().find(|mount| mount.point == point).unwrap();
        super::file_system(mount, &machine.root)
    };
    let pool = described("/pool");
    assert!(pool.copy_on_write);
    assert_eq!(pool.compression.as_deref(), Some("zstd:3"));
    let root = described("/");
    assert!(!root.copy_on_write, "nodatacow");
    assert_eq!(root.compression, None);
}

#[test]
fn a_disk_is_in_use_by_all_that_is_made_of_its_partitions() {
    let machine = Machine::unpack("raid.txt");
    let device = |name: &str| name.to_owned();
    let holder = |device: &str, holder: &str| InUse::Holder {
        device: device.to_owned(),
        holder: holder.to_owned(),
    };
    let above = [
        holder("/dev/md0", "/dev/mapper/crypt"),
        holder("/dev/mapper/crypt", "/dev/mapper/vg-data"),
        InUse::Mounted { device: device("/dev/mapper/vg-data"), mount_point: device("/srv") },
        holder("/dev/mapper/crypt", "/dev/mapper/vg-swap"),
        InUse::Swap { device: device("/dev/mapper/vg-swap") },
    ];
    let boot = [
        holder("/dev/sda1", "/dev/md1"),
        InUse::Mounted { device: device("/dev/md1"), mount_point: device("/boot") },
    ];
    let data = [holder("/dev/sda2", "/dev/md0")];
    assert_eq!(machine.in_use("sda"), [&boot[..], &data, &above].concat());
    // A partition is in use by the devices on it, whatever uses the disk's other partitions.
    assert_eq!(machine.in_use("sda1"), boot);
    assert_eq!(machine.in_use("md0"), above);
    assert_eq!(machine.in_use("dm-2"), above[4..]);
    assert_eq!(machine.in_use("sde"), []);
}

#[test]
fn a_device_whose_marks_cannot_be_read_is_not_taken_for_an_empty_one() {
    let machine = Machine::unpack("raid.txt");
    let unknown = |usage: &InUse| match usage {
        InUse::Unknown { device, why } => Some((device.clone(), why.clone())),
        _ => None,
    };
    let found: Vec<_> = machine.in_use_and_unknown("sde").iter().filter_map(unknown).collect();
    let why = "/no/such/node: No such file or directory";
    assert_eq!(found, [("/dev/sde".to_owned(), why.to_owned())]);
    // A partition without a node, as in a container, may have contents that the disk's own marks do
    // not show.
    let found: Vec<_> = machine.in_use_and_unknown("sda").iter().filter_map(unknown).collect();
    let devices: Vec<&str> = found.iter().map(|(device, _)| device.as_str()).collect();
    assert_eq!(devices, ["/dev/sda", "/dev/sda1", "/dev/sda2"]);
}

#[test]
fn a_member_of_a_btrfs_is_mounted_even_if_mountinfo_names_another() {
    let machine = Machine::unpack("btrfs.txt");
    for name in ["sda", "sdb", "sdc"] {
        let mounted =
            InUse::Mounted { device: format!("/dev/{name}"), mount_point: "/pool".to_owned() };
        assert_eq!(machine.in_use(name), [mounted]);
    }
    let mounted = InUse::Mounted { device: "/dev/vda1".to_owned(), mount_point: "/".to_owned() };
    assert_eq!(machine.in_use("vda"), [mounted]);
    // Mounted in a place that this process cannot see. The kernel still lists the members.
    fs::write(machine.root.join("proc/self/mountinfo"), "").unwrap();
    assert!(matches!(machine.in_use("sdc")[..], [InUse::Mounted { .. }]));
}

/// The users of a file of a machine.
fn used_in(machine: &Machine, path: &str) -> Vec<InUse> {
    let metadata = fs::metadata(machine.system.path(path)).ok();
    usage::of_file(&machine.system, Path::new(path), metadata.as_ref())
}

#[test]
fn an_active_swap_file_and_the_file_of_a_loop_device_are_in_use() {
    let machine = Machine::unpack("raid.txt");
    let swap = used_in(&machine, "/srv/my swap");
    assert_eq!(swap, [InUse::Swap { device: "/srv/my swap".to_owned() }]);
    let device = machine.root.join("sys/devices/virtual/block/loop3");
    machine.write(&device.join("dev"), "7:3");
    machine.write(&device.join("loop/backing_file"), "/srv/image");
    let looped = used_in(&machine, "/srv/image");
    let holder = "/dev/loop3".to_owned();
    assert_eq!(looped, [InUse::Holder { device: "/srv/image".to_owned(), holder }]);
    assert_eq!(used_in(&machine, "/srv/other"), []);
}

#[test]
fn a_file_that_a_file_system_is_mounted_from_without_a_loop_device_is_in_use() {
    let machine = Machine::unpack("raid.txt");
    let mounts = "30 1 0:39 / /mnt/layer ro - erofs /srv/image ro,device=/srv/blob\n\
                  31 1 0:40 / /mnt/other rw - tmpfs /srv/other rw";
    machine.write(&machine.root.join("proc/self/mountinfo"), mounts);
    for name in ["image", "blob", "free"] {
        machine.write(&machine.root.join("srv").join(name), name);
    }
    fs::hard_link(machine.root.join("srv/image"), machine.root.join("srv/image too")).unwrap();
    for name in ["/srv/image", "/srv/image too", "/srv/blob"] {
        let mounted =
            InUse::Mounted { device: name.to_owned(), mount_point: "/mnt/layer".to_owned() };
        assert_eq!(used_in(&machine, name), [mounted]);
    }
    assert_eq!(used_in(&machine, "/srv/free"), []);
    // The same file through a loop device.
    let device = machine.root.join("sys/devices/virtual/block/loop3");
    machine.write(&device.join("dev"), "7:3");
    machine.write(&device.join("loop/backing_file"), "/srv/image");
    let mounted =
        InUse::Mounted { device: "/srv/image".to_owned(), mount_point: "/mnt/layer".to_owned() };
    assert!(machine.in_use("loop3").contains(&mounted));
}

#[test]
fn a_partition_is_in_use_by_what_is_made_of_one_that_shares_sectors_with_it() {
    let machine = Machine::unpack("raid.txt");
    let place = |name: &str, start: &str, size: &str| {
        let folder = machine.device(name).folder;
        machine.write(&folder.join("start"), start);
        machine.write(&folder.join("size"), size);
    };
    let boot = InUse::Mounted { device: "/dev/md1".to_owned(), mount_point: "/boot".to_owned() };
    place("sda1", "2048", "4096");
    place("sda2", "6144", "4096");
    assert!(!machine.in_use("sda2").contains(&boot), "they only touch");
    place("sda2", "6143", "4096");
    assert!(machine.in_use("sda2").contains(&boot));
}

#[test]
fn what_cannot_be_seen_without_proc_and_sys_is_not_taken_for_nothing() {
    let machine = Machine::unpack("raid.txt");
    let unknown = |found: &[InUse], part: &str| {
        let is_it = |one: &InUse| matches!(one, InUse::Unknown { why, .. } if why.contains(part));
        found.iter().any(is_it)
    };
    let mounts = "is mounted stands in /proc/self/mountinfo";
    assert!(!unknown(&machine.in_use_and_unknown("sda"), mounts));
    fs::rename(machine.root.join("proc"), machine.root.join("no-proc")).unwrap();
    assert!(unknown(&machine.in_use_and_unknown("sda"), mounts));
    let of_file = "is mounted without a loop device stands in /proc/self/mountinfo";
    assert!(unknown(&used_in(&machine, "/srv/file"), of_file));
    let loops = "backs a loop device stands in /sys/block";
    assert!(!unknown(&used_in(&machine, "/srv/file"), loops));
    fs::rename(machine.root.join("sys"), machine.root.join("no-sys")).unwrap();
    assert!(unknown(&used_in(&machine, "/srv/file"), loops));
}

#[test]
fn another_name_of_a_file_in_use_is_as_much_in_use() {
    let machine = Machine::unpack("raid.txt");
    let at = |path: &str| machine.root.join(path);
    let used = |path: &str| used_in(&machine, path);
    machine.write(&at("srv/my swap"), "swap");
    machine.write(&at("srv/image"), "image");
    machine.write(&at("srv/unused"), "image");
    fs::hard_link(at("srv/my swap"), at("srv/swap too")).unwrap();
    fs::hard_link(at("srv/image"), at("srv/image too")).unwrap();
    let device = machine.root.join("sys/devices/virtual/block/loop3");
    machine.write(&device.join("dev"), "7:3");
    machine.write(&device.join("loop/backing_file"), "/srv/image");
    assert_eq!(used("/srv/swap too"), [InUse::Swap { device: "/srv/swap too".to_owned() }]);
    let holder = "/dev/loop3".to_owned();
    assert_eq!(
        used("/srv/image too"),
        [InUse::Holder { device: "/srv/image too".to_owned(), holder }]
    );
    assert_eq!(used("/srv/unused"), []);
}

#[test]
fn a_file_that_fits_a_loop_device_whose_file_is_gone_is_not_taken_for_free() {
    let machine = Machine::unpack("raid.txt");
    let device = machine.root.join("sys/devices/virtual/block/loop3");
    machine.write(&device.join("dev"), "7:3");
    machine.write(&device.join("size"), "8");
    machine.write(&device.join("loop/backing_file"), "/srv/image (deleted)");
    let used = |length: u64| {
        fs::create_dir_all(machine.root.join("srv")).unwrap();
        fs::File::create(machine.root.join("srv/file")).unwrap().set_len(length).unwrap();
        used_in(&machine, "/srv/file")
    };
    assert!(matches!(&used(4096)[..], [InUse::Unknown { why, .. }] if why.contains("/dev/loop3")));
    assert!(matches!(used(4100)[..], [InUse::Unknown { .. }]), "half a sector is not shown");
    assert_eq!(used(8192), []);
    assert_eq!(used(0), []);
    machine.write(&device.join("loop/offset"), "4096");
    assert_eq!(used(4096), []);
    assert!(matches!(used(8192)[..], [InUse::Unknown { .. }]));
    machine.write(&device.join("loop/sizelimit"), "4096");
    assert!(matches!(used(1 << 20)[..], [InUse::Unknown { .. }]));
}

#[test]
fn a_machine_is_described() {
    let raid = machine::host(&Machine::unpack("raid.txt").system);
    assert_eq!(raid.os.as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
    assert_eq!(raid.cpu_model.as_deref(), Some("Intel(R) Xeon(R) Silver 4210 CPU @ 2.20GHz"));
    assert_eq!(raid.numa_nodes, 2);
    assert_eq!(raid.memory, Bytes(65_536_000 << 10));
    assert_eq!((raid.memory_limit, raid.cpu_limit), (None, None));
    assert_eq!(raid.virtualization, None);
    assert!(0 < raid.cpus && !raid.kernel.is_empty() && !raid.name.is_empty());
    // A machine without any readable file is no reason to fail.
    let folder = tempfile::tempdir().unwrap();
    let empty = machine::host(&System::at(folder.path()));
    assert_eq!((empty.os, empty.cpu_model, empty.numa_nodes), (None, None, 1));
}

#[test]
fn limits_of_control_groups_count_on_every_level() {
    let container = Machine::unpack("container.txt");
    let host = machine::host(&container.system);
    assert_eq!(host.memory_limit, Some(Bytes(4 << 30)));
    assert_eq!(host.cpu_limit, Some(0.5));
    assert_eq!(host.virtualization.as_deref(), Some("Amazon EC2, docker container"));
    assert_eq!(host.cpu_model.as_deref(), Some("CPU implementer 0x41, part 0xd0c"));
    let throttled = counters::counters(&container.system, &[]).throttled;
    assert_eq!(throttled, Some(Span::from_us(3040)));
    let first = Machine::unpack("cgroup1.txt");
    let host = machine::host(&first.system);
    assert_eq!(host.memory_limit, Some(Bytes(1 << 30)));
    assert_eq!(host.cpu_limit, Some(0.25));
    let throttled = counters::counters(&first.system, &[]).throttled;
    assert_eq!(throttled, Some(Span(123_456_789)));
}

#[test]
fn controllers_of_version_1_may_share_a_hierarchy() {
    let machine = Machine::unpack("container.txt");
    machine.write(&machine.root.join("proc/self/cgroup"), "3:cpu,memory,blkio:/a");
    let mount = "35 31 0:32 / /shared rw - cgroup cgroup rw,cpu,memory,blkio";
    machine.write(&machine.root.join("proc/self/mountinfo"), mount);
    let group = machine.root.join("shared/a");
    machine.write(&group.join("memory.limit_in_bytes"), "1073741824");
    machine.write(&group.join("cpu.cfs_quota_us"), "50000");
    machine.write(&group.join("cpu.cfs_period_us"), "100000");
    let host = machine::host(&machine.system);
    assert_eq!((host.memory_limit, host.cpu_limit), (Some(Bytes(1 << 30)), Some(0.5)));
}

#[test]
fn limits_of_devices_are_those_of_the_groups_that_the_kernel_looks_at() {
    let disk = |name: &str, minor| Layer {
        name: name.to_owned(),
        device: Some((8, minor)),
        ..Layer::default()
    };
    let partition = Layer { members: Vec::from([1]), ..disk("sda1", 1) };
    let layers = [partition, disk("sda", 0)];
    let found = |machine: &str| {
        let machine = Machine::unpack(machine);
        let limits = Groups::read(&machine.system).io_limits(&layers);
        let root = machine.root.display().to_string();
        let line = |limit: &IoLimit| {
            let file = limit.file.strip_prefix(&root).unwrap();
            format!("{} {} {} {file}", limit.device, limit.kind.name(), limit.value)
        };
        limits.iter().map(line).collect::<Vec<_>>()
    };
    // In version 1 only the group itself counts: the kernel ignores the limits of its parents.
    assert_eq!(
        found("cgroup1.txt"),
        [
            "sda read-bandwidth 10485760 /sys/fs/cgroup/blkio/a/blkio.throttle.read_bps_device",
            "sda write-iops 500 /sys/fs/cgroup/blkio/a/blkio.throttle.write_iops_device",
        ]
    );
    assert_eq!(
        found("container.txt"),
        [
            "sda read-bandwidth 2097152 /sys/fs/cgroup/inner/io.max",
            "sda read-iops 120 /sys/fs/cgroup/inner/io.max",
            "sda latency 75000 /sys/fs/cgroup/inner/io.latency",
            "sda weight 50 /sys/fs/cgroup/inner/io.weight",
            "sda write-bandwidth 1048576 /sys/fs/cgroup/io.max",
        ]
    );
    assert_eq!(found("raid.txt"), [""; 0]);
}

#[test]
fn counters_are_those_of_the_target_and_of_the_disks_below() {
    let machine = Machine::unpack("raid.txt");
    let target = |name: &str| Target {
        layers: machine.layers(name),
        ..Target::simulated(name, Bytes(1 << 30))
    };
    let partition = counters::counters(&machine.system, &[target("sda2"), target("sda2")]);
    let names: Vec<&str> = partition.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["sda", "sda2"], "each once");
    let disk = &partition.devices[0];
    assert_eq!((disk.reads, disk.read_bytes), (100, Bytes(2048 * 512)));
    assert_eq!((disk.writes, disk.written_bytes), (200, Bytes(4096 * 512)));
    assert_eq!(disk.merged, Some([5, 6]));
    assert_eq!((disk.flushes, disk.device), (17, (8, 0)));
    assert!(disk.under_way.is_some(), "every line has the time of its I/Os");
    assert_eq!(partition.devices[1].flushes, 0, "an older kernel's line ends before the flushes");
    // Nothing between the volume and the disk is counted twice. Disks without counters are left
    // out.
    let volume = counters::counters(&machine.system, &[target("dm-1")]);
    let names: Vec<&str> = volume.devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["sda", "dm-1"]);
}

#[test]
fn arrays_and_journals_are_looked_at_beside_the_counters() {
    let machine = Machine::unpack("raid.txt");
    let on = |kind: &str, name: &str| Target {
        layers: machine.layers(name),
        file_system: Some(FileSystem { kind: kind.to_owned(), ..FileSystem::default() }),
        ..Target::simulated(name, Bytes(1 << 30))
    };
    let info = "12 transactions (9 requested), each up to 8192 blocks\\naverage: \\n  0ms waiting\\n\
                  4 handles per transaction\\n  5 blocks per transaction\\n  \
                  6 logged blocks per transaction";
    machine.write(&machine.root.join("proc/fs/jbd2/sda2-8/info"), info);
    machine.write(
        &machine.root.join("sys/fs/xfs/dm-1/stats/stats"),
        "ig 1 2\\nlog 3 40 0 1 2\\nrw 1 2",
    );
    let targets = [on("ext4", "sda2"), on("ext4", "sda2"), on("xfs", "dm-1"), on("btrfs", "sda2")];
    let journals = counters::counters(&machine.system, &targets).journals;
    let told: Vec<_> = journals.iter().map(|j| (&*j.device, j.commits, j.bytes.0)).collect();
    assert_eq!(told, [("sda2", 12, 12 * 7 * 4096), ("dm-1", 3, 40 * 512)]);
    // An array that was resynchronized during part of the time was not at rest in that time.
    let array = |missing, action: Option<&str>| Counters {
        arrays: Vec::from([ArrayState {
            name: "md0".to_owned(),
            missing,
            action: action.map(ToOwned::to_owned),
        }]),
        ..Counters::default()
    };
    let over = |then: &Counters, now: &Counters| now.since(then).arrays;
    let (idle, busy) = (array(0, None), array(1, Some("recover")));
    assert_eq!(over(&busy, &idle), busy.arrays);
    assert_eq!(over(&idle, &busy), busy.arrays);
    assert_eq!(over(&idle, &idle), idle.arrays);
}

#[test]
fn cpu_time_is_split_as_the_kernel_counts_it() {
    let machine = Machine::unpack("raid.txt");
    let found = counters::counters(&machine.system, &[]);
    // Tools that print ticks assume 100 per second. Every kernel reports that value to programs.
    assert_eq!(rustix::param::clock_ticks_per_second(), 100);
    let ms = Span::from_ms;
    let (number, cpu) = found.cpus[0];
    assert_eq!((number, found.cpus[1].0, found.cpus.len()), (0, 3, 2));
    assert_eq!((cpu.user, cpu.kernel), (ms(5000), ms(2500)));
    assert_eq!((cpu.idle, cpu.steal), (ms(35_000), ms(70)));
    assert!(Span(0) < found.process_user + found.process_kernel);
}

#[test]
fn how_a_process_ranks_is_read_from_itself_and_its_groups() {
    let container = Machine::unpack("container.txt");
    let rank = |machine: &Machine| machine::host(&machine.system).rank;
    assert_eq!(rank(&container), Rank { io: rank(&container).io, ..Rank::default() });
    // Nice is field 19 and the policy is field 41. The name may contain anything.
    let between = vec!["0"; 21].join(" ");
    let stat = format!("1 (a) 9 (b) S {} 5 {between} {} 0 0", vec!["0"; 15].join(" "), 3);
    let own = container.root.join("proc/self");
    container.write(&own.join("stat"), &stat);
    container.write(&own.join("autogroup"), "/autogroup-11 nice 7");
    assert_eq!(rank(&container).session_nice, None, "the kernel does not group");
    let kernel = container.root.join("proc/sys/kernel");
    container.write(&kernel.join("sched_autogroup_enabled"), "1");
    let groups = container.root.join("sys/fs/cgroup");
    container.write(&groups.join("cpu.weight"), "100");
    container.write(&groups.join("inner/cpu.weight"), "10");
    let found = rank(&container);
    assert_eq!((found.nice, found.session_nice), (5, Some(7)));
    assert_eq!(found.policy.as_deref(), Some("batch"));
    assert_eq!(found.cpu_weight, Some(0.1));
    container.write(&groups.join("cpu.idle"), "1");
    assert_eq!(rank(&container).cpu_weight, Some(0.0));
    let first = Machine::unpack("cgroup1.txt");
    let mounts = mounts::mounts(&first.system);
    let mount = mounts.iter().find(|mount| mount.option("cpu").is_some()).unwrap();
    let shares = first.system.path(&mount.point).join("cpu.shares");
    first.write(&shares, "256");
    assert_eq!(rank(&first).cpu_weight, Some(0.25));
}

#[test]
fn what_memory_cost_is_that_of_the_own_group_where_it_tells() {
    let machine = Machine::unpack("container.txt");
    let memory = || counters::counters(&machine.system, &[]).memory;
    assert_eq!(memory(), Memory::default());
    let page = rustix::param::page_size() as u64;
    machine.write(&machine.root.join("proc/vmstat"), "pgfault 9\\npswpin 3\\npswpout 70");
    let stat = format!("1 (a) S {} 42 0 0 0", ["0"; 8].join(" "));
    machine.write(&machine.root.join("proc/self/stat"), &stat);
    let pressure = |total: u32| {
        format!("some avg10=0.00 avg60=1.00 avg300=0.00 total={total}\\nfull avg10=0 total=1")
    };
    machine.write(&machine.root.join("proc/pressure/memory"), &pressure(5000));
    let expected = Memory {
        major_faults: Some(42),
        swapped_in: Some(Bytes(3 * page)),
        swapped_out: Some(Bytes(70 * page)),
        stalled: Some(Span::from_ms(5)),
    };
    assert_eq!(memory(), expected);
    let own = machine.root.join("sys/fs/cgroup/inner/memory.pressure");
    machine.write(&own, &pressure(7));
    assert_eq!(memory().stalled, Some(Span::from_us(7)));
}

#[test]
fn who_traces_the_process_is_named() {
    let machine = Machine::unpack("container.txt");
    let tracer = || counters::counters(&machine.system, &[]).tracer;
    assert_eq!(tracer(), None);
    let status = machine.root.join("proc/self/status");
    machine.write(&status, "Name:\\tfathom\\nTracerPid:\\t0");
    assert_eq!(tracer(), None);
    machine.write(&status, "Name:\\tfathom\\nTracerPid:\\t4711");
    assert_eq!(tracer().as_deref(), Some("a process (4711)"));
    machine.write(&machine.root.join("proc/4711/comm"), "gdb");
    assert_eq!(tracer().as_deref(), Some("gdb (4711)"));
}

#[test]
fn this_machine_is_described_without_a_panic() {
    let host = super::host();
    assert!(0 < host.cpus && Bytes(0) < host.memory && 0 < host.numa_nodes, "{host:?}");
    let folder = super::folder(Path::new("/")).unwrap();
    assert!(folder.file_system.is_some_and(|found| found.mount_point == "/"));
    for name in fs::read_dir("/sys/class/block").into_iter().flatten().flatten() {
        let name = name.file_name().into_string().unwrap();
        let layers = DeviceFolder::at(&Path::new("/sys/class/block").join(&name))
            .map(|device| stack::of_device(&System::real(), &device));
        if let Some(layers) = layers {
            assert_eq!(layers[0].name, name.replace('!', "/"));
            outline(&layers);
        }
    }
}

#[test]
fn blocks_are_counted_in_fragments_where_there_are_such() {
    assert_eq!(super::block_unit(4096, 1 << 20), 4096);
    assert_eq!(super::block_unit(0, 4096), 4096);
}
