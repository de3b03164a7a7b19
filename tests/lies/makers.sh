# makers.sh: makes the lies. Each function sets $target, and notes with `later` how to undo its work.
# shellcheck disable=SC2034,SC2154

# A file with written data, made once for all lies, on the machine's disk and in memory.
fixtures() {
  run_fathom prepare "$FATHOM_BED/plain" --size 64m
  status_is 0 || cannot_run "no file can be prepared"
  mkdir -p "$FATHOM_BED/memory"
  mount -t tmpfs -o size=800m fathom-lies "$FATHOM_BED/memory" || cannot_run "tmpfs cannot be mounted"
  later "umount '$FATHOM_BED/memory'"
  run_fathom prepare "$FATHOM_BED/memory/plain" --size 64m
}
plain() { target=$FATHOM_BED/plain; }
copy_of_plain() { cp --sparse=never "$FATHOM_BED/plain" "$1" && sync "$1"; }
own_copy() { copy_of_plain "$here/data" && target=$here/data; }
zero_device() { target=/dev/zero; }
no_target() { target=; }

# A mount below the folder of the lie. $2 is the size of its image.
file_system() { # KIND SIZE MOUNT-OPTIONS
  local image=${images:-$here}/image mount=$here/mnt
  later "rm -f '$image'"
  truncate -s "$2" "$image"
  "mkfs.$1" -q "$image" >/dev/null || { unmade "no mkfs.$1"; return 1; }
  make_loop "$image" --direct-io=on || make_loop "$image" || return 1
  mkdir "$mount"
  mount -o "${3:-defaults}" "$loop" "$mount" || { unmade "$1 cannot be mounted so (${3:-})"; return 1; }
  later "umount '$mount' 2>/dev/null || umount -l '$mount'"
}
file_on() { # KIND SIZE MOUNT-OPTIONS: with a prepared file
  file_system "$@" && copy_of_plain "$here/mnt/data" && target=$here/mnt/data
}

# A block device over a prepared file. It is in memory, so that no other program uses its disk. It has its own
# copy of the file, because some lies write to it.
quiet_loop() { # OPTIONS OF losetup
  local own=$FATHOM_BED/memory/$name
  later "rm -f '$own'"
  cp "$FATHOM_BED/memory/plain" "$own" && make_loop "$own" "${@:---direct-io=on}" ||
    unmade "no loop device can be made"
  target=$loop
}

# ---- Files.
sparse() { truncate -s 64M "$here/data" && target=$here/data; }
preallocated() { fallocate -l 64M "$here/data" && target=$here/data; }
partly_sparse() { own_copy && fallocate -p -o 16M -l 8M "$target"; }
sliver_sparse() { own_copy && fallocate -p -o 16M -l 256K "$target"; }
hole_outside() { own_copy && fallocate -p -o 48M -l 16M "$target"; }
reflinked() { file_on xfs 320M && cp --reflink=always "$target" "$here/mnt/other"; }
reflinked_btrfs() { file_on btrfs 256M && cp --reflink=always "$target" "$here/mnt/other"; }
# Blocks are allocated in the order in which they are first written, which is random here.
many_extents() {
  file_system xfs 320M && target=$here/mnt/data && truncate -s 24M "$target" || return 1
  "$fathom" run "$target" -b 4k -q 32 --read-share 0% --no-repeat --passes 1 --overwrite --out "$here/fragment.jsonl" >/dev/null 2>&1 || [[ $? = 4 ]]
}
full_file_system() {
  file_on ext4 128M || return 1
  dd if=/dev/zero of="$here/mnt/filler" bs=64k status=none 2>/dev/null || true
}
zeros_file() { head -c 64M /dev/zero >"$here/data" && sync "$here/data" && target=$here/data; }
one_value_file() { head -c 64M /dev/zero | tr '\0' '\245' >"$here/data" && sync "$here/data" && target=$here/data; }
one_block_file() {
  head -c 4096 /dev/urandom >"$here/block"
  for _ in {1..256}; do cat "$here/block"; done >"$here/megabyte"
  for _ in {1..64}; do cat "$here/megabyte"; done >"$here/data"
  sync "$here/data" && target=$here/data
}
compress_mount() { file_on btrfs 256M compress-force=zstd; }
compress_property() {
  file_system btrfs 256M && mkdir "$here/mnt/folder" && chattr +c "$here/mnt/folder" || return 1
  head -c 64M /dev/zero | tr '\0' 'x' >"$here/mnt/folder/data" && sync -f "$here/mnt"
  target=$here/mnt/folder/data
}
btrfs_file() { file_on btrfs 256M; }
journaled_data() { file_on ext4 256M data=journal; }
xfs_file() { file_on xfs 320M; }
# On a disk that no other program uses.
quiet_ext4() { local images=$FATHOM_BED/memory; file_on ext4 256M; }
nobarrier() { file_on ext4 256M nobarrier; }

# ---- In the window, a second after fathom began.
in_window() { sleep "${1:-0.8}"; }
replace_it() { in_window && copy_of_plain "$here/other" && mv "$here/other" "$target"; }
replaced() { own_copy && meanwhile=replace_it; }
unmount_it() { in_window && umount -l "$here/mnt"; }
unmounted() { file_on ext4 256M && meanwhile=unmount_it; }
truncate_it() { in_window && truncate -s 1M "$target"; }
truncated() { own_copy && meanwhile=truncate_it; }
write_into_it() {
  in_window 0.5
  for _ in 1 2 3; do dd if=/dev/urandom of="$target" bs=1M count=16 conv=notrunc oflag=direct status=none || true; done
}
written_by_others() { own_copy && meanwhile=write_into_it; }
# Runs a command in the background until fathom ends.
background() { "$@" & local child=$!; later "kill $child 2>/dev/null; wait $child"; }
second_fathom() {
  own_copy
  background "$fathom" run "$target" -q 4 --read-share 0% --overwrite --warm-up 0s -d 20s --out "$here/other.jsonl" >/dev/null 2>&1
  sleep 1
}
reading_fathom() {
  own_copy
  background "$fathom" run "$target" -q 4 --warm-up 0s -d 20s --out "$here/other.jsonl" >/dev/null 2>&1
  sleep 1
}

# ---- Others at the same disk.
forever_dd() { while ((SECONDS < 900)); do dd status=none "$@" 2>/dev/null || true; done; }
foreign_reader() { quiet_loop && background forever_dd if="$target" of=/dev/null bs=1M iflag=direct; }
foreign_writer() { quiet_loop && background forever_dd of="$target" if=/dev/zero bs=1M count=32 oflag=direct conv=notrunc seek=32; }
foreign_small_reads() {
  quiet_loop
  background "$fathom" run "$target" -b 512 -q 16 --warm-up 0s -d 20s --out "$here/other.jsonl" >/dev/null 2>&1
  sleep 1
}
foreign_at_the_disk() {
  own_copy
  background forever_dd if="$FATHOM_BED/plain" of=/dev/null bs=1M iflag=direct
}
# Data that was written earlier reaches the disk in the window.
late_writeback() {
  file_on ext4 512M
  later "rm -f '$here/mnt/dirty'"
  meanwhile=dirty_and_sync
}
dirty_and_sync() { in_window 0.3 && head -c 128M /dev/zero >"$here/mnt/dirty" && sync "$here/mnt/dirty"; }

# ---- Memory.
memory_file() { target=$FATHOM_BED/memory/plain; }
ram_file() {
  mkdir "$here/ram" && mount -t ramfs fathom-lies "$here/ram" || { unmade "no ramfs"; return 1; }
  later "umount '$here/ram'"
  cp "$FATHOM_BED/memory/plain" "$here/ram/data" && target=$here/ram/data
}
new_zram() { # SIZE: its name in $zram
  [[ -r /sys/class/zram-control/hot_add ]] || { unmade "no zram in this kernel"; return 1; }
  local number
  number=$(cat /sys/class/zram-control/hot_add)
  zram=/dev/zram$number
  later "echo 1 >/sys/block/zram$number/reset; echo $number >/sys/class/zram-control/hot_remove; rm -f '$FATHOM_BED/zram$number'"
  # tests/cleanup.sh finds the device by this file.
  : >"$FATHOM_BED/zram$number"
  echo "$1" >"/sys/block/zram$number/disksize"
  if [[ ! -b $zram ]]; then
    IFS=: read -r major minor <"/sys/block/zram$number/dev"
    mknod "$zram" b "$major" "$minor"
    later "rm -f $zram"
  fi
}
compressed_memory() { new_zram 64M && dd if="$FATHOM_BED/memory/plain" of="$zram" bs=1M status=none && target=$zram; }
loop_buffered() {
  cat "$FATHOM_BED/plain" >/dev/null
  make_loop "$FATHOM_BED/plain" --direct-io=off && target=$loop
}
loop_direct() { make_loop "$FATHOM_BED/plain" --direct-io=on && target=$loop; }
loop_in_memory() { quiet_loop; }
# Settings of a loop device's queue remain after its file is gone, so they are restored.
say_of_queue() { # NAME VALUE
  local file
  file=/sys/block/$(basename "$loop")/queue/$1
  later "echo $(cat "$file") >$file"
  echo "$2" >"$file"
}
shallow_loop() { loop_direct && say_of_queue nr_requests 4; }
uncounted_loop() { loop_direct && say_of_queue iostats 0; }
shifted_loop() { make_loop "$FATHOM_BED/plain" --direct-io=on --offset 512 && target=$loop; }
# A partition that begins at sector 63, as old partitions did.
odd_partition() {
  local name
  copy_of_plain "$here/disk"
  printf 'label: dos\nstart=63, size=65536\n' | sfdisk -q "$here/disk" || return 1
  make_loop "$here/disk" -P --direct-io=on || return 1
  name=$(basename "$loop")p1
  [[ -e /sys/class/block/$name ]] || partx -a "$loop"
  wait_until 5 test -e "/sys/class/block/$name/dev" || return 1
  target=/dev/$name
  if [[ ! -b $target ]]; then
    IFS=: read -r major minor <"/sys/class/block/$name/dev"
    mknod "$target" b "$major" "$minor"
    later "rm -f $target"
  fi
}
overlay() { # Where the file is: lower or upper
  mkdir "$here/lower" "$here/upper" "$here/work" "$here/mnt"
  copy_of_plain "$here/$1/data"
  mount -t overlay fathom-lies -o "lowerdir=$here/lower,upperdir=$here/upper,workdir=$here/work" "$here/mnt" ||
    { unmade "no overlay"; return 1; }
  later "umount '$here/mnt'"
  target=$here/mnt/data
}
overlay_lower() { overlay lower; }
overlay_upper() { overlay upper; }

# ---- Servers: a disk through FUSE that is as slow and as broken as requested.
null="driver=null-co,size=1073741824,read-zeroes=on"
throttled() { # OPTIONS OF THE GROUP
  target=$here/disk
  truncate -s 1G "$target"
  qemu-storage-daemon --object "throttle-group,id=g0,$1" --blockdev "$null,node-name=n0" \
    --blockdev driver=throttle,node-name=t0,throttle-group=g0,file=n0 \
    --export "type=fuse,id=e0,node-name=t0,mountpoint=$target,writable=on" &
  local server=$!
  later "end_server $server; umount -l '$target' 2>/dev/null || true"
  wait_until 20 mounted "$target" || unmade "qemu-storage-daemon exports nothing through FUSE here"
}
limited_iops() { throttled x-iops-total=3000; }
limited_bandwidth() { throttled x-bps-total=12288000; }
slow_bandwidth() { throttled x-bps-total=20971520; }
limited_loop() { limited_iops && make_loop "$target" --direct-io=on && target=$loop; }
# With a length of 1 the credit would be spent at the speed of the disk.
credit() { throttled x-iops-total=300,x-iops-total-max=3000,x-iops-total-max-length=2; }
faulty() { # OPTIONS OF fuse-faults
  [[ -x $faults_bin ]] || { unmade "fuse-faults was not built"; return 1; }
  mkdir -p "$here/faults"
  "$faults_bin" "$here/faults" "$@" &
  local server=$!
  later "umount -l '$here/faults' 2>/dev/null; end_server $server"
  wait_until 20 mounted "$here/faults" || { unmade "no FUSE file system can be mounted here"; return 1; }
  target=$here/faults/data
}
bad_sector() { faulty eio-at=8388608 eio-length=65536; }
short_reads() { faulty short-at=33554432; }
unplugged() { faulty empty-at=0; }
no_space() { faulty full-after=8388608; }
dying() { faulty die-after=500 delay-us=200; }
serialized() { faulty serial=1 delay-us=300; }
slow() { faulty delay-us=2000; }
steps_down() { faulty delay-us=4000 step-after-ms=2200 step-us=100000; }
steps_up() { faulty delay-us=100000 step-after-ms=2200 step-us=4000; }
stalls_once() { faulty delay-us=500 stall-every-ms=2000 stall-ms=600; }
stalls_again() { faulty delay-us=500 stall-every-ms=700 stall-ms=150; }
drifts() { faulty delay-us=4000 ramp-us=20000; }
# Its content is sampled for about a second before the window.
warms_up() { faulty delay-us=100000 step-after-ms=1900 step-us=4000; }

# ---- Cgroups of version 1. Their names contain the testbed's, so cleanup.sh finds them.
cgroup() { # CONTROLLER: its folder in $group_folder; fathom is started in it
  group_folder=/sys/fs/cgroup/$1/$cgroup_name-$name
  mkdir "$group_folder" 2>/dev/null || { unmade "no cgroup of $1 can be made"; return 1; }
  later "rmdir '$group_folder' 2>/dev/null || { sleep 0.3; rmdir '$group_folder'; }"
  # shellcheck disable=SC2016
  wrap+=(bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group_folder")
}
number_of() { cat "/sys/class/block/$(basename "$1")/dev"; }
blkio() { # FILE LIMIT, on a quiet loop device
  quiet_loop && cgroup blkio || return 1
  [[ -e $group_folder/blkio.throttle.$1 ]] || { unmade "this kernel does not throttle by blkio"; return 1; }
  echo "$(number_of "$target") $2" >"$group_folder/blkio.throttle.$1"
}
blkio_reads() { blkio read_iops_device 500; }
blkio_read_bytes() { blkio read_bps_device 10485760; }
blkio_writes() { blkio write_iops_device 500; }
blkio_write_bytes() { blkio write_bps_device 10485760; }
# The limit is set in the window.
limit_it() { in_window 1.5 && echo "$(number_of "$target") 200" >"$group_folder/blkio.throttle.read_iops_device"; }
blkio_late() { blkio read_iops_device 5000 && meanwhile=limit_it; }
quota() { memory_file && cgroup cpu && echo 10000 >"$group_folder/cpu.cfs_quota_us"; }
# The hogs also end by themselves if nothing ends them.
hog() { background "$@" bash -c 'while ((SECONDS < 20)); do :; done'; }
# A small share of the CPUs beside programs that want all of them.
starved() { # TARGET-MAKER
  "$1" && cgroup cpu || return 1
  # A hog has 1024 shares.
  echo 150 >"$group_folder/cpu.shares"
  local each
  for ((each = 0; each < 2 * $(nproc); each++)); do hog; done
}
starved_memory() { starved memory_file; }
starved_slow() { starved plain; }
# One CPU for fathom and for four other programs.
one_cpu() {
  plain && cgroup cpuset || return 1
  cat /sys/fs/cgroup/cpuset/cpuset.mems >"$group_folder/cpuset.mems" && echo 0 >"$group_folder/cpuset.cpus" || return 1
  local each
  for each in 1 2 3 4; do hog taskset -c 0; done
}
crowded_cpuset() {
  plain && cgroup cpuset || return 1
  cat /sys/fs/cgroup/cpuset/cpuset.mems >"$group_folder/cpuset.mems" && echo 0 >"$group_folder/cpuset.cpus"
}
stop_it() { in_window 1 && kill -STOP "$fathom_pid" && sleep 0.7 && kill -CONT "$fathom_pid"; }
stopped() { quiet_loop && meanwhile=stop_it; }
freeze_it() {
  in_window 1 && echo FROZEN >"$group_folder/freezer.state" && sleep 0.7
  echo THAWED >"$group_folder/freezer.state"
}
frozen() { quiet_loop && cgroup freezer && later "echo THAWED >'$group_folder/freezer.state'" && meanwhile=freeze_it; }
interrupt_it() { in_window 1 && kill -INT "$fathom_pid"; }
interrupted() { plain && meanwhile=interrupt_it; }
niced() { quiet_loop && wrap=(nice -n 15); }
idle_io() { quiet_loop && wrap=(ionice -c 3); }
# A trace that is larger than its disk.
traced() {
  plain && mkdir "$here/small" && mount -t tmpfs -o size=64k fathom-lies "$here/small" || return 1
  later "umount '$here/small'"
  extra=(--trace "$here/small/trace.csv")
}
# The cgroup allows its real-time programs a hundredth of each second.
real_time_quota() {
  quiet_loop && cgroup cpu || return 1
  echo 10000 2>/dev/null >"$group_folder/cpu.rt_runtime_us" || unmade "the kernel has no real-time quota of cgroups"
}
# Swap in compressed memory, and a program that exceeds the limit of its memory cgroup.
swapping() {
  quiet_loop && new_zram 256M && mkswap -q "$zram" && swapon "$zram" || { unmade "no swap in compressed memory"; return 1; }
  later "swapoff $zram"
  local folder
  folder=/sys/fs/cgroup/memory/$(basename "$(dirname "$FATHOM_BED")")-$name
  mkdir "$folder" && later "sleep 0.2; rmdir '$folder'"
  echo 48M >"$folder/memory.limit_in_bytes"
  # shellcheck disable=SC2016
  background bash -c 'echo $$ >"$0/cgroup.procs"; exec perl -e '\''my $s = "ab" x (64 << 20); my $n = 0; my $end = time + 20; while (time < $end) { for (my $i = 0; $i < length $s; $i += 4096) { $n += ord substr $s, $i, 1; substr($s, $i, 1) = "c" } }'\''' "$folder"
  sleep 1
}

# ---- The virtual machine, booted once: the results are in $guest.
guest=
why_not_in_guest=
longest_guest=240
boot_guest() {
  local vm=$FATHOM_ROOT/tests/vm status=0 null="driver=null-co,size=256M,read-zeroes=on"
  guest=$FATHOM_BED/guest
  mkdir -p "$guest"
  [[ ${FATHOM_LIES:-.} = . || ${FATHOM_LIES:-.} = *guest* ]] || { why_not_in_guest="the guest is not selected"; return 0; }
  command -v qemu-system-x86_64 >/dev/null || { why_not_in_guest="qemu-system-x86_64 is missing"; return 0; }
  "$vm/boot.sh" prepare || { why_not_in_guest="the guest's kernel or tools cannot be fetched from Debian"; return 0; }
  cat "$vm/guest-prelude.sh" "$vm/lies.sh" >"$FATHOM_BED/lies-in-guest.sh"
  # One boot. Lies that a busy machine does not finish in this time are left out.
  "$vm/boot.sh" run -t "$longest_guest" -f "$fathom:/bin/fathom" -o "$guest" -q "-drive if=none,id=l0,$null,throttling.iops-total=500
    -device virtio-blk-pci,drive=l0,serial=limited -drive if=none,id=p0,$null -device virtio-blk-pci,drive=p0,serial=plain
    -drive if=none,id=g0,$null -device virtio-blk-pci,id=gone,drive=g0,serial=gone" "$FATHOM_BED/lies-in-guest.sh" || status=$?
  [[ $status -ge 124 ]] || return 0
  why_not_in_guest="the guest did not come to its end: status $status"
}
