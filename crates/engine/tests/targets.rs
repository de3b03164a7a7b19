//! Tests opening and refusing, on real files and on devices made for the test. A test that needs
//! root or a missing tool says so and is skipped.

mod loops;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use fathom_core::Bytes;
use fathom_core::facts::{InUse, LayerKind, Target, TargetKind};
use fathom_core::spec::{Access, SyncMode};
use fathom_engine::target::{OpenTarget, Opening, Overwrite, TargetError, open};
use fathom_engine::{found, host};
use loops::{Loop, NUMBERS, Undo, text};
use rustix::fs::{OFlags, fcntl_getfl};

const MIB: u64 = 1 << 20;
const DIRECT: Access = Access::DIRECT;
const BUFFERED: Access = Access::BUFFERED;

fn to_read(access: Access) -> Opening {
    Opening { access, writes: false, claimed: false, overwrite: Overwrite::default() }
}

fn to_write(allowed: bool, destroy: &[&str]) -> Opening {
    let destroy = destroy.iter().map(|name| (*name).to_owned()).collect();
    Opening {
        access: DIRECT,
        writes: true,
        claimed: false,
        overwrite: Overwrite { allowed, destroy, ..Overwrite::default() },
    }
}

/// The same for a target that is in use.
fn to_write_in_use(name: &str) -> Opening {
    let destroy_in_use = Vec::from([name.to_owned()]);
    Opening {
        overwrite: Overwrite { destroy_in_use, ..Overwrite::default() },
        ..to_write(false, &[])
    }
}

fn refused(result: Result<OpenTarget, TargetError>) -> String {
    let error = result.map(|open| open.name).unwrap_err();
    let protects = matches!(error, TargetError::NotNamed { .. } | TargetError::InUse { .. });
    assert!(protects, "{error}");
    error.to_string()
}

/// Runs a tool. Returns false and prints the reason if it cannot.
fn run(tool: &str, arguments: &[&str]) -> bool {
    match Command::new(tool).args(arguments).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr);
            println!("skipped: {tool} {}: {}", arguments.join(" "), error.trim());
            false
        }
        Err(cause) => {
            println!("skipped: {tool}: {cause}");
            false
        }
    }
}

fn written_file(folder: &Path, size: u64) -> PathBuf {
    let path = folder.join("data");
    let file = File::create(&path).unwrap();
    file.write_all_at(&Vec::from_iter((0..size).map(|n| n as u8)), 0).unwrap();
    path
}

#[test]
fn a_disk_that_got_the_number_of_another_or_another_size_is_not_opened() {
    let Some(disk) = Loop::new(4 * MIB, &[]) else { return };
    let refusal = |target| match open(target, &to_read(BUFFERED)) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error.to_string(),
    };
    let was = disk.look();
    std::fs::OpenOptions::new().write(true).open(disk.file()).unwrap().set_len(2 * MIB).unwrap();
    losetup(&["--set-capacity", disk.name()]);
    let text = refusal(&was);
    assert!(text.contains("it has another size"), "{text}");
    let was = disk.look();
    let other = disk.folder.path().join("other");
    File::create(&other).unwrap().set_len(2 * MIB).unwrap();
    let alone = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    losetup(&["--detach", disk.name()]);
    losetup(&[disk.name(), self::text(&other)]);
    drop(alone);
    let text = refusal(&was);
    assert!(text.contains("another disk has got its device number"), "{text}");
    assert!(open(&disk.look(), &to_read(BUFFERED)).is_ok());
}

#[test]
fn a_file_of_an_overlays_lower_layer_is_known_before_and_after_it_is_copied_up() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(at(name)).unwrap();
    }
    for name in ["first", "second"] {
        fs::write(at("lower").join(name), [7; 4096]).unwrap();
    }
    let options = ["lower", "upper", "work"].map(|name| format!("{name}dir={}", text(&at(name))));
    let mount = Command::new("mount")
        .args(["-t", "overlay", "overlay", "-o", &options.join(",")])
        .arg(at("merged"))
        .output();
    if !mount.is_ok_and(|mount| mount.status.success()) {
        println!("skipped: no overlay can be mounted");
        return;
    }
    let _undo = Undo("umount", Vec::from([text(&at("merged")).to_owned()]));
    let [first, second] = ["first", "second"].map(|name| at("merged").join(name));
    let write = Opening { access: BUFFERED, ..to_write(true, &[]) };
    let look = |path: &Path| host::target(path).unwrap();
    let (before, other) = (look(&first), look(&second));
    for _ in 0..2 {
        assert!(open(&before, &write).is_ok(), "copied up, and its copy again");
    }
    assert!(at("upper/first").exists());
    fs::rename(&first, &second).unwrap();
    let error = open(&other, &write).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("another file has taken its place"), "{error}");
}

/// Waits for a moment, and says that nothing is reached.
fn wait() -> bool {
    thread::sleep(Duration::from_millis(100));
    false
}

/// Runs losetup until it succeeds: a device is busy as long as any process has it open.
fn losetup(arguments: &[&str]) {
    for _ in 0..600 {
        if Command::new("losetup").args(arguments).output().unwrap().status.success() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("losetup {arguments:?} does not work");
}

#[test]
fn a_file_is_opened_past_the_page_cache_and_never_created_or_cut() {
    let folder = tempfile::tempdir().unwrap();
    let path = written_file(folder.path(), MIB);
    let target = host::target(&path).unwrap();
    assert_eq!((target.kind, target.size), (TargetKind::File, Bytes(MIB)));
    let file_system = target.file_system.clone().unwrap();
    assert!(Bytes(0) < file_system.size && !file_system.read_only, "{file_system:?}");
    let opened = match open(&target, &to_read(DIRECT)) {
        Err(TargetError::DirectUnsupported { .. }) => {
            println!("skipped: no direct I/O on {}", file_system.kind);
            return;
        }
        opened => opened.unwrap(),
    };
    let flags = fcntl_getfl(&opened.file).unwrap();
    assert!(flags.contains(OFlags::DIRECT) && !flags.intersects(OFlags::RDWR), "{flags:?}");
    assert_eq!(Some(opened.alignment), target.direct_alignment);
    let opened = open(&target, &to_read(BUFFERED)).unwrap();
    assert!(!fcntl_getfl(&opened.file).unwrap().contains(OFlags::DIRECT));
    assert_eq!(opened.alignment, Bytes(1));
    let mut durable = to_write(true, &[]);
    durable.access.sync = SyncMode::Dsync;
    let opened = open(&target, &durable).unwrap();
    let bits = fcntl_getfl(&opened.file).unwrap().bits() as i32;
    assert_eq!(bits & libc::O_DSYNC, libc::O_DSYNC);
    assert_eq!(bits & libc::O_ACCMODE, libc::O_RDWR);
    assert_eq!(fs::read(&path).unwrap()[..3], [0, 1, 2]);
    assert_eq!(fs::metadata(&path).unwrap().len(), MIB);
}

#[test]
fn an_existing_file_is_written_to_only_when_that_was_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = written_file(folder.path(), MIB);
    let target = host::target(&path).unwrap();
    let access = |opening: Opening| Opening { access: BUFFERED, ..opening };
    let message = refused(open(&target, &access(to_write(false, &[]))));
    assert!(message.contains(text(&path)) && message.contains("--overwrite"), "{message}");
    open(&target, &access(to_write(true, &[]))).unwrap();
    // Through a link, under either name.
    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    let through = host::target(&link).unwrap();
    assert_eq!(through.path, target.path);
    refused(open(&through, &access(to_write(false, &["/other"]))));
    open(&through, &access(to_write(false, &[text(&path)]))).unwrap();
    open(&through, &access(to_write(false, &[text(&link)]))).unwrap();
}

#[test]
fn what_cannot_be_measured_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    symlink(at("nothing"), at("dangling")).unwrap();
    assert!(run("mkfifo", &[text(&at("pipe"))]));
    let _socket = UnixListener::bind(at("socket")).unwrap();
    symlink(at("circle"), at("circle")).unwrap();
    written_file(folder.path(), 10);
    for (path, part) in [
        (at("missing"), "fathom prepare "),
        (PathBuf::from("/dev/nothing"), "lsblk"),
        (at("dangling"), "is a link to"),
        (folder.path().to_owned(), "fathom quick "),
        (at("pipe"), "is a pipe"),
        (at("socket"), "is a socket"),
        (PathBuf::from("/dev/tty"), "is a character device"),
        (at("circle"), "in a circle"),
        (at("data/below"), "is no folder"),
    ] {
        let error = host::target(&path).unwrap_err();
        let message = error.to_string();
        assert!(message.contains(text(&path)) && message.contains(part), "{message}");
    }
    let error = host::folder(&at("data")).unwrap_err();
    assert!(matches!(error, TargetError::NoFolder { .. }), "{error}");
}

#[test]
fn the_kernels_own_files_are_no_storage() {
    for (file, folder, kind) in
        [("/proc/cpuinfo", "/proc", "proc"), ("/sys/kernel/uevent_seqnum", "/sys", "sysfs")]
    {
        for looked in [host::target(Path::new(file)), host::folder(Path::new(folder))] {
            let error = looked.unwrap_err();
            let text = error.to_string();
            assert!(text.contains(&format!("is no storage: it is on {kind}, ")), "{text}");
        }
    }
}

#[test]
fn an_empty_file_and_one_without_direct_access_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty");
    File::create(&path).unwrap();
    let error = open(&host::target(&path).unwrap(), &to_read(DIRECT)).unwrap_err();
    assert!(error.to_string().contains("is empty: fill it with `fathom prepare"), "{error}");
    if !run("mount", &["-t", "ramfs", "ramfs", text(folder.path())]) {
        return;
    }
    let _unmount = Undo("umount", Vec::from([text(folder.path()).to_owned()]));
    let target = host::target(&written_file(folder.path(), MIB)).unwrap();
    let error = open(&target, &to_read(DIRECT)).unwrap_err();
    assert!(error.to_string().contains("ramfs has no direct I/O: add --buffered"), "{error}");
    open(&target, &to_read(BUFFERED)).unwrap();
}

#[test]
fn character_devices_serve_for_calibration_only() {
    let zero = host::target(Path::new("/dev/zero")).unwrap();
    assert_eq!((zero.kind, zero.size), (TargetKind::CharacterDevice, host::CHARACTER_DEVICE_SIZE));
    let opened = open(&zero, &to_read(DIRECT)).unwrap();
    assert_eq!(opened.alignment, Bytes(1));
    let mut bytes = [1; 16];
    opened.file.read_exact_at(&mut bytes, 4096).unwrap();
    assert_eq!(bytes, [0; 16]);
    open(&zero, &to_write(true, &["/dev/zero"])).unwrap_err();
    let null = host::target(Path::new("/dev/null")).unwrap();
    open(&null, &to_write(false, &[])).unwrap();
}

#[test]
fn what_changed_after_it_was_looked_at_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = written_file(folder.path(), MIB);
    let target = host::target(&path).unwrap();
    let changed = || {
        let error = open(&target, &to_read(BUFFERED)).unwrap_err();
        assert!(matches!(error, TargetError::Changed { .. }), "{error}");
    };
    File::options().write(true).open(&path).unwrap().set_len(MIB / 2).unwrap();
    changed();
    fs::remove_file(&path).unwrap();
    assert!(run("mkfifo", &[text(&path)]));
    changed();
    fs::remove_file(&path).unwrap();
    symlink("/dev/zero", &path).unwrap();
    changed();
    fs::remove_file(&path).unwrap();
    let error = open(&target, &to_read(BUFFERED)).unwrap_err();
    assert!(matches!(error, TargetError::Missing { .. }), "{error}");
}

#[test]
fn a_read_only_mount_is_refused_for_writing() {
    let folder = tempfile::tempdir().unwrap();
    let path = written_file(folder.path(), MIB);
    let point = text(folder.path());
    if !run("mount", &["--bind", point, point]) {
        return;
    }
    let _unmount = Undo("umount", Vec::from([point.to_owned()]));
    if !run("mount", &["-o", "remount,ro,bind", point]) {
        return;
    }
    let target = host::target(&path).unwrap();
    assert!(target.file_system.as_ref().unwrap().read_only);
    let error = open(&target, &to_write(true, &[point, text(&path)])).unwrap_err();
    assert!(matches!(error, TargetError::ReadOnly { .. }), "{error}");
    let expected = format!("{point} is mounted read-only");
    assert!(error.to_string().contains(&expected), "{error}");
    open(&target, &to_read(BUFFERED)).unwrap();
}

#[test]
fn a_clean_device_is_claimed_while_it_is_written_to() {
    let Some(disk) = Loop::new(16 * MIB, &[]) else { return };
    let target = disk.look();
    assert_eq!((target.kind, target.size), (TargetKind::BlockDevice, Bytes(16 * MIB)));
    assert_eq!(target.layers[0].kind, LayerKind::Loop);
    assert_eq!(target.layers[0].detail.as_deref(), Some(text(&disk.file())));
    assert_eq!(target.direct_alignment, Some(Bytes(512)));
    assert_eq!(target.in_use, []);
    let message = refused(open(&target, &to_write(false, &[])));
    assert!(message.contains("repeat its name in --destroy"), "{message}");
    let held = open(&target, &to_write(false, &[disk.name()])).unwrap();
    // No other process can claim it, nor can we or a mount. Reading it is no conflict.
    let message = refused(open(&target, &to_write(false, &[disk.name()])));
    assert!(message.contains("another program has claimed"), "{message}");
    assert!(matches!(disk.look().in_use[..], [InUse::Exclusive { .. }]));
    open(&target, &to_read(DIRECT)).unwrap();
    drop(held);
    // A tool that another test starts at this moment holds our claim until its exec.
    let free = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        open(&target, &to_write(false, &[disk.name()])).is_ok()
    });
    assert!(free, "the claim outlived its file");
}

#[test]
fn a_device_is_written_to_only_by_its_name_whatever_is_found_on_it() {
    let Some(disk) = Loop::new(16 * MIB, &[]) else { return };
    let message = refused(open(&disk.look(), &to_write(true, &[])));
    let parts = ["no known mark", "no proof", &format!("--destroy {}", disk.name())];
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    // A Sun disk label, which blkid recognizes and we do not.
    let device = File::options().write(true).open(&disk.device).unwrap();
    let mut label = [0; 512];
    label[128..132].copy_from_slice(&1u32.to_be_bytes());
    label[140..142].copy_from_slice(&8u16.to_be_bytes());
    label[188..192].copy_from_slice(&0x600d_deee_u32.to_be_bytes());
    label[508..510].copy_from_slice(&0xdabe_u16.to_be_bytes());
    let sum = label.chunks(2).fold(0, |sum, word| sum ^ u16::from_be_bytes([word[0], word[1]]));
    label[510..].copy_from_slice(&sum.to_be_bytes());
    device.write_all_at(&label, 0).unwrap();
    drop(device);
    let message = refused(open(&disk.look(), &to_write(true, &[])));
    assert!(message.contains("sun partition table, as blkid says"), "{message}");
    open(&disk.look(), &to_write(false, &[disk.name()])).unwrap();
}

#[test]
fn a_device_that_a_loop_device_shows_is_in_use() {
    let Some(below) = Loop::new(32 * MIB, &[]) else { return };
    // From 1 MiB on, as a user does who knows where the file system begins.
    let alone = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    let shown = Command::new("losetup").args(["-f", "--show", "-o", "1M", below.name()]).output();
    drop(alone);
    let above = String::from_utf8(shown.unwrap().stdout).unwrap().trim().to_owned();
    assert!(above.starts_with("/dev/loop"), "{above:?}");
    let _detach = Undo("losetup", Vec::from(["-d".to_owned(), above.clone()]));
    let message = refused(open(&below.look(), &to_write(true, &[below.name()])));
    let parts = [format!("is part of {above}"), format!("--destroy-in-use {}", below.name())];
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    if run("mkfs.ext4", &["-q", "-F", &above]) {
        let point = below.folder.path().join("mount point");
        fs::create_dir(&point).unwrap();
        assert!(run("mount", &[&above, text(&point)]));
        let _unmount = Undo("umount", Vec::from([text(&point).to_owned()]));
        let message = refused(open(&below.look(), &to_write(true, &[below.name()])));
        assert!(message.contains("is mounted on"), "{message}");
        let message = refused(open(&host::target(&below.file()).unwrap(), &to_write(true, &[])));
        assert!(message.contains("is part of"), "{message}");
    }
    open(&below.look(), &to_write_in_use(below.name())).unwrap();
}

#[test]
fn the_file_of_a_loop_device_is_refused_under_every_name() {
    // A size that no file of another test has.
    let Some(disk) = Loop::new(16 * MIB + 512, &[]) else { return };
    let refusal = |path: &Path| refused(open(&host::target(path).unwrap(), &to_write(true, &[])));
    let link = disk.folder.path().join("link");
    fs::hard_link(disk.file(), &link).unwrap();
    let message = refusal(&link);
    assert!(message.contains(&format!("is part of {}", disk.name())), "{message}");
    let point = disk.folder.path().join("point");
    fs::create_dir(&point).unwrap();
    if run("mount", &["--bind", text(disk.folder.path()), text(&point)]) {
        let _unmount = Undo("umount", Vec::from([text(&point).to_owned()]));
        let message = refusal(&point.join("disk"));
        assert!(message.contains(&format!("is part of {}", disk.name())), "{message}");
    }
    // The kernel knows which file it is, even if its name and its size have changed.
    fs::remove_file(disk.file()).unwrap();
    File::options().write(true).open(&link).unwrap().set_len(20 * MIB).unwrap();
    let message = refusal(&link);
    assert!(message.contains(&format!("is part of {}", disk.name())), "{message}");
}

#[test]
fn a_device_whose_marks_cannot_be_read_is_refused() {
    let Some(disk) = Loop::new(16 * MIB, &[]) else { return };
    // A loop device cannot read what lies beyond the end of its file.
    File::options().write(true).open(disk.file()).unwrap().set_len(8 * MIB).unwrap();
    let target = disk.look();
    assert!(
        matches!(&target.in_use[..], [InUse::Unknown { device, why }]
            if device == disk.name() && why.contains("Input/output error")),
        "{:?}",
        target.in_use
    );
    let message = refused(open(&target, &to_write(true, &[])));
    assert!(message.contains("it cannot be seen whether"), "{message}");
    assert!(message.contains(&format!("--destroy-in-use {}", disk.name())), "{message}");
    // It was clean when its facts were read. When it is opened, this is not known.
    let before = Target { in_use: Vec::new(), ..target.clone() };
    refused(open(&before, &to_write(true, &[])));
    open(&target, &to_read(DIRECT)).unwrap();
    refused(open(&target, &to_write(false, &[disk.name()])));
    open(&target, &to_write_in_use(disk.name())).unwrap();
}

#[test]
fn a_device_with_a_file_system_is_refused_mounted_and_unmounted() {
    let Some(disk) = Loop::new(16 * MIB, &[]) else { return };
    let before = fs::read(disk.file()).unwrap();
    if !run("mkfs.ext4", &["-q", "-F", disk.name()]) {
        return;
    }
    let signature = InUse::Signature { device: disk.name().to_owned(), kind: "ext4".to_owned() };
    assert_eq!(disk.look().in_use, std::slice::from_ref(&signature));
    let message = refused(open(&disk.look(), &to_write(true, &[])));
    assert!(message.contains(&format!("found on it: {}: ext4", disk.name())), "{message}");
    let point = disk.folder.path().join("mount point");
    fs::create_dir(&point).unwrap();
    if run("mount", &[disk.name(), text(&point)]) {
        let _unmount = Undo("umount", Vec::from([text(&point).to_owned()]));
        let target = disk.look();
        let mount_point = text(&point.canonicalize().unwrap()).to_owned();
        let mounted = InUse::Mounted { device: disk.name().to_owned(), mount_point };
        assert_eq!(target.in_use, [mounted, signature]);
        for named in ["/dev/other", disk.name()] {
            let message = refused(open(&target, &to_write(true, &[named])));
            let parts = ["is mounted on", "--destroy-in-use"];
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
        // From a file on it, the layers lead down to the loop device and to the disk of the
        // device's file.
        let file = host::target(&written_file(&point, MIB)).unwrap();
        assert_eq!(format!("/dev/{}", file.layers[0].name), disk.name());
        assert_eq!(file.file_system.unwrap().kind, "ext4");
    }
    // Repeating its name is consent. A namespace that was made meanwhile holds a copy of the mount, and
    // the device is claimed as long as that exists.
    let consented =
        || (0..600).any(|_| open(&disk.look(), &to_write(false, &[disk.name()])).is_ok() || wait());
    assert!(consented(), "{:?}", open(&disk.look(), &to_write(false, &[disk.name()])).err());
    // The file of a loop device must not be written behind the device's back.
    let message = refused(open(&host::target(&disk.file()).unwrap(), &to_write(true, &[])));
    assert!(message.contains(&format!("is part of {}", disk.name())), "{message}");
    assert_ne!(fs::read(disk.file()).unwrap(), before, "mkfs wrote, so the test tested something");
}

#[test]
fn a_disk_is_refused_for_what_is_on_its_partitions() {
    let Some(disk) = Loop::new(32 * MIB, &[]) else { return };
    let device = File::options().write(true).open(&disk.device).unwrap();
    // One partition that starts at 1 MiB and is 16 MiB long.
    let mut sector = [0; 512];
    sector[446..462].copy_from_slice(&[0, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0x80, 0, 0]);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    device.write_all_at(&sector, 0).unwrap();
    device.write_all_at(b"LABELONE", MIB + 512).unwrap();
    device.sync_all().unwrap();
    drop(device);
    let table =
        InUse::Signature { device: disk.name().to_owned(), kind: "MBR partition table".to_owned() };
    assert_eq!(disk.look().in_use, std::slice::from_ref(&table));
    let partition = PathBuf::from(format!("{}p1", disk.name()));
    if !run("partx", &["--add", disk.name()]) || !partition.exists() {
        println!("skipped: the kernel makes no partitions of {}", disk.name());
        return;
    }
    let _remove = Undo("partx", Vec::from(["--delete".to_owned(), disk.name().to_owned()]));
    let mark = InUse::Signature {
        device: text(&partition).to_owned(),
        kind: "LVM physical volume".to_owned(),
    };
    assert_eq!(disk.look().in_use, [table, mark.clone()]);
    let target = host::target(&partition).unwrap();
    assert_eq!(target.in_use, [mark]);
    assert_eq!(target.size, Bytes(16 * MIB));
    let kinds: Vec<LayerKind> = target.layers.iter().take(2).map(|layer| layer.kind).collect();
    assert_eq!(kinds, [LayerKind::Partition, LayerKind::Loop]);
}

#[test]
fn what_takes_the_name_of_a_target_after_it_was_looked_at_is_not_opened() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let root = folder.path().canonicalize().unwrap();
    let victim = written_file(&root, MIB);
    let theirs = fs::read(&victim).unwrap();
    let at = |name: &str| root.join(name);
    let made = |name: &str| {
        fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        fs::write(at(name), vec![1; MIB as usize]).unwrap();
        host::target(&at(name)).unwrap()
    };
    let open_changed = |target: &Target| match open(target, &to_write(true, &[])) {
        Err(error @ TargetError::Changed { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let by_name = made("by-name");
    fs::hard_link(&victim, at("other")).unwrap();
    fs::rename(at("other"), at("by-name")).unwrap();
    assert!(open_changed(&by_name).contains("another file has taken its place"));
    let by_link = made("by-link");
    fs::remove_file(at("by-link")).unwrap();
    symlink(&victim, at("by-link")).unwrap();
    assert!(open_changed(&by_link).contains("a link has taken its place"));
    let by_folder = made("in/disk");
    fs::rename(at("in"), at("was")).unwrap();
    symlink(&root, at("in")).unwrap();
    assert!(open_changed(&by_folder).contains("a link has taken its place"));
    // The inode number is reused.
    let again = made("again");
    fs::remove_file(at("again")).unwrap();
    fs::write(at("again"), vec![1; MIB as usize]).unwrap();
    assert!(open_changed(&again).contains("another file has taken its place"));
    // Opening a pipe would block.
    let pipe = made("pipe");
    fs::remove_file(at("pipe")).unwrap();
    assert!(run("mkfifo", &[text(&at("pipe"))]));
    assert!(open_changed(&pipe).contains("it was a file"));
    assert_eq!(fs::read(&victim).unwrap(), theirs);
}

#[test]
fn what_is_open_is_what_was_judged_while_somebody_exchanges_it() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let root = folder.path().canonicalize().unwrap();
    let [one, other] = ["one", "other"].map(|name| root.join(name));
    fs::write(&one, vec![1; MIB as usize]).unwrap();
    fs::write(&other, vec![2; MIB as usize]).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut opened = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for _ in 0..2000 {
            let Ok(target) = host::target(&one) else { continue };
            match open(&target, &to_write(true, &[])) {
                Ok(open) => {
                    assert_eq!(found::identity(&open.file).ok(), target.identity);
                    opened += 1;
                }
                Err(TargetError::Changed { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(0 < opened);
}

#[test]
fn active_swap_is_refused() {
    // This test has its own device. The kernel could really swap to a loop device over a file on
    // the machine's disk.
    let control = Path::new("/sys/class/zram-control/hot_add");
    let Ok(number) = fs::read_to_string(control) else {
        println!("skipped: no zram");
        return;
    };
    let number = number.trim().to_owned();
    struct Zram(String);
    impl Drop for Zram {
        fn drop(&mut self) {
            let _ = Command::new("swapoff").arg(format!("/dev/zram{}", self.0)).output();
            let _ = fs::write(format!("/sys/block/zram{}/reset", self.0), "1");
            let _ = fs::write("/sys/class/zram-control/hot_remove", &self.0);
        }
    }
    let zram = Zram(number);
    fs::write(format!("/sys/block/zram{}/disksize", zram.0), "16M").unwrap();
    let device = format!("/dev/zram{}", zram.0);
    let look = || host::target(Path::new(&device)).unwrap();
    assert_eq!((look().in_use, look().layers[0].kind), (Vec::new(), LayerKind::Zram));
    if !run("mkswap", &[&device]) {
        return;
    }
    let message = refused(open(&look(), &to_write(true, &[])));
    assert!(message.contains(&format!("found on it: {device}: swap")), "{message}");
    if !run("swapon", &[&device]) {
        return;
    }
    let message = refused(open(&look(), &to_write(true, &[])));
    assert!(message.contains("is swap") && message.contains("swapoff"), "{message}");
}

#[test]
fn a_device_that_refuses_writes_or_has_no_data_is_refused() {
    let Some(disk) = Loop::new(3 * MIB, &["--read-only"]) else { return };
    let target = disk.look();
    let error = open(&target, &to_write(true, &[disk.name()])).unwrap_err();
    assert!(error.to_string().contains("blockdev --setrw"), "{error}");
    open(&target, &to_read(DIRECT)).unwrap();
    let Some(empty) = Loop::new(0, &[]) else { return };
    let error = open(&empty.look(), &to_read(DIRECT)).unwrap_err();
    assert!(matches!(error, TargetError::Empty { .. }), "{error}");
}

#[test]
fn the_kernel_counts_what_is_written_to_a_device() {
    let Some(disk) = Loop::new(16 * MIB, &[]) else { return };
    let target = disk.look();
    let targets = [target];
    let opened = open(&targets[0], &to_write(false, &[disk.name()])).unwrap();
    let number = targets[0].layers[0].device.unwrap();
    // Direct I/O needs aligned memory. In memory of two sectors, one sector begins on a boundary.
    let memory = Vec::from([7u8; 8192]);
    let from = memory.as_ptr().align_offset(4096);
    let before = host::counters(&targets);
    for block in 0..256 {
        opened.file.write_all_at(&memory[from..from + 4096], block * 8192).unwrap();
    }
    let counted = host::counters(&targets).since(&before);
    let device = counted.devices.iter().find(|device| device.device == number).unwrap();
    assert_eq!((device.writes, device.written_bytes), (256, Bytes(MIB)));
    assert_eq!(device.reads, 0);
    assert!(!counted.cpus.is_empty());
}
