# stack.sh: fathom sees what is below a target and beside the load: limits, layers, holes, shared extents,
# other fathoms, and files that others change or replace. No check depends on speed.
source "$FATHOM_ROOT/tests/lib.sh"
require losetup jq
require_root

severity() { trial ".findings[] | select(.code == \"$1\") | .severity"; }
evidence() { trial ".findings[] | select(.code == \"$1\") | .evidence"; }
found() { echo "$1: $(severity "$1")"; [[ $(severity "$1") == "${2:-$(severity "$1")}" && -n $(severity "$1") ]]; }
not_found() { [[ -z $(severity "$1") ]]; }
unchecked() { [[ $(trial "[.unchecked[].code] | index(\"$1\") != null") == true ]]; }
mount_loop() { # KIND SIZE: a file system of its own, mounted on ./KIND
  truncate -s "$2" "$1.img"
  "mkfs.$1" -q "$1.img" || return 1
  mkdir -p "$1"
  mount -o loop "$1.img" "$FATHOM_BED/$1" || return 1
  later "umount -l '$FATHOM_BED/$1'"
}
short=(--warm-up 0s -d 500ms)

run_fathom prepare data --size 64m
check "a file is prepared" status_is 0
make_loop "$FATHOM_BED/data"
name=$(basename "$loop")
measure "$loop" "${short[@]}"
check "a loop device without direct I/O is called that" found loop-buffered note
check "the report says so of the layer" says "through the page cache to its file"

# A device that does not count its I/Os.
echo 0 >"/sys/block/$name/queue/iostats"
losetup --direct-io=on "$loop" 2>/dev/null || true
measure "$loop" --warm-up 0s --stop-after 1000ios
check "a device that counts nothing is not void" status_is 0
check "it is said that nothing could be compared" unchecked cached-below
echo 1 >"/sys/block/$name/queue/iostats"

# A hole outside the region, and one inside it.
truncate -s 128m data
measure data --size 64m "${short[@]}"
check "a hole beside the region is none of it" not_found unwritten-reads
measure data --size 80m "${short[@]}"
check "a hole in the region is" found unwritten-reads void
truncate -s 64m data

# A limit of the control group.
blkio=/sys/fs/cgroup/blkio
group=$blkio/$cgroup_name
if [[ -e $blkio/cgroup.procs ]] && mkdir "$group" 2>/dev/null; then
  later "rmdir $group"
  if [[ -e $group/blkio.throttle.read_iops_device ]]; then
    echo "$(cat "/sys/class/block/$name/dev") 200" >"$group/blkio.throttle.read_iops_device"
    in_group() {
      results_made=$((results_made + 1)) status=0
      result=$FATHOM_BED/result-$results_made.jsonl
      bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" "$fathom" run "$@" --out "$result" >"$out" 2>&1 || status=$?
      cat "$out"
    }
    governs() {
      in_group "$loop" -q 4 --warm-up 1s -d 3s
      if found cgroup-limit suspect; then return 0; fi
      # On a busy machine it is further away.
      if found cgroup-limit note; then return 2; fi
      return 1
    }
    reached "a limit that governs is suspect" governs
    check "it is named with its figure and its file" bash -c \
      "grep -q '200 reads/s at $name ($group/blkio.throttle.read_iops_device)' '$result'"
    in_group "$loop" --rate 20 --warm-up 0s -d 1s
    check "a limit that is far is a note" found cgroup-limit note
    measure "$loop" "${short[@]}"
    check "outside of the group there is none" not_found cgroup-limit
  else
    skip "a limit of the control group" "the kernel has no throttling of block devices"
  fi
else
  skip "a limit of the control group" "no blkio controller of cgroup v1 here"
fi

# A loop device that begins in the middle of a sector of another device.
truncate -s 64m sectors
if make_loop "$FATHOM_BED/sectors" --sector-size 4096 && below=$loop &&
  make_loop "$below" --offset 512 --sizelimit 33554432 --sector-size 512; then
  measure "$loop" -b 4k "${short[@]}"
  check "a device that begins in the middle of a sector is misaligned" bash -c \
    "grep -q 'begins at byte 512 of $(basename "$below")' '$result'"
else
  skip "a device that begins in the middle of a sector" "losetup sets no sector sizes here"
fi

# Other programs at the target. The checks wait for the lock that a run has on its file.
marked() { grep -q "OFDLCK.*:$(stat -c %i data) " /proc/locks; }
beside() { # COMMAND...: while data is read for 15 s
  results_made=$((results_made + 1))
  result=$FATHOM_BED/result-$results_made.jsonl
  "$fathom" run data --warm-up 0s -d 15s --interval 500ms --out "$result" >"$out" 2>&1 &
  local reader=$!
  wait_until 60 marked
  sleep 1.5
  "$@"
  wait "$reader" || true
  cat "$out"
}
beside true
check "alone, nobody is seen" bash -c "! grep -qE 'concurrent-fathom|target-written-by-others|target-replaced' '$result'"
other() { "$fathom" run data --warm-up 0s -d 1s --out "$FATHOM_BED/other.jsonl" >/dev/null 2>&1 || true; }
beside other
check "a run sees another one that came and went" found concurrent-fathom suspect
result=$FATHOM_BED/other.jsonl
check "the other one sees it too" found concurrent-fathom suspect
beside touch data
check "a file that others write is told" found target-written-by-others suspect
cp data data.new
replace() { mv data data.old && mv data.new data; }
beside replace
check "a file that was replaced is void" found target-replaced void

# Layers of file systems.
mkdir -p lower upper work merged
cp --reflink=never data lower/old
cp --reflink=never data upper/new
if mount -t overlay overlay -o "lowerdir=$FATHOM_BED/lower,upperdir=$FATHOM_BED/upper,workdir=$FATHOM_BED/work" merged; then
  later "umount -l '$FATHOM_BED/merged'"
  measure merged/new --read-share 0% --overwrite "${short[@]}"
  check "a file of the upper layer is not copied" not_found copy-up
  measure merged/old "${short[@]}"
  check "nor is one that is only read" not_found copy-up
  measure merged/old --read-share 0% --overwrite "${short[@]}"
  check "a file of the lower layer is copied up" found copy-up suspect
  run_fathom inspect merged/new
  check "the overlay is followed to its disk" says "$(basename "$(findmnt -no SOURCE -T "$FATHOM_BED/upper")")"
else
  skip "an overlay" "none can be mounted here"
fi

if mount_loop ext4 128m; then
  # Reserved and never written: each durable write causes writes of the journal.
  fallocate -l 32m ext4/fresh
  measure ext4/fresh --read-share 0% --overwrite --sync dsync --size 32m --warm-up 0s -d 2s
  # Whatever neighbors do to the disk below, the loop device has only the journal's additional writes.
  journal_is_told() {
    local told device
    told=$(tr -s ' \n' ' ' <"$out")
    device=$(basename "$(findmnt -no SOURCE -T "$FATHOM_BED/ext4")")
    ! grep -q "that $device moved in the window were not" <<<"$told" || grep -q journal <<<"$told"
  }
  check "what the journal writes is not laid to other programs alone" journal_is_told
  fallocate -l 60m ext4/fill 2>/dev/null || true
  dd if=/dev/zero of=ext4/fill2 bs=1M status=none 2>/dev/null || true
  measure ext4/fresh "${short[@]}"
  check "a full file system is told" found file-system-full note
else
  skip "ext4 on a loop device" "it cannot be made or mounted here"
fi

if command -v mkfs.btrfs >/dev/null && mount_loop btrfs 256m; then
  cp --reflink=never data btrfs/one
  sync -f btrfs/one
  measure btrfs/one "${short[@]}"
  check "a file that shares nothing is not called shared" not_found shared-extents
  cp --reflink=always btrfs/one btrfs/two
  sync -f btrfs/two
  measure btrfs/one "${short[@]}"
  check "shared extents that are read are a note" found shared-extents note
  measure btrfs/one --read-share 0% --overwrite "${short[@]}"
  check "shared extents that are written are suspect" found shared-extents suspect
else
  skip "btrfs on a loop device" "it cannot be made or mounted here"
fi

if [[ -n $faults_bin && -w /dev/fuse ]]; then
  serve_faults "$FATHOM_BED/fuse"
  measure fuse/data "${short[@]}"
  check "of FUSE only the top is seen" found top-of-stack note
fi
