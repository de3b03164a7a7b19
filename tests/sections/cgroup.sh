# cgroup.sh: a device that a cgroup throttles. The kernel lets the I/Os through in slices, so only
# the mean is exact.
source "$FATHOM_ROOT/tests/lib.sh"
require losetup jq
require_root
blkio=/sys/fs/cgroup/blkio
[[ -e $blkio/blkio.throttle.read_iops_device || -e $blkio/cgroup.procs ]] ||
  cannot_run "no blkio controller of cgroup v1 here"
group=$blkio/$cgroup_name
mkdir "$group" 2>/dev/null || cannot_run "no cgroup can be made in $blkio"
later "rmdir $group"
[[ -e $group/blkio.throttle.read_iops_device ]] ||
  cannot_run "the kernel has no throttling of block devices"

# In memory, so that only the limit matters, however busy the machine's disks are.
mkdir memory
mount -t tmpfs -o size=272m fathom-test "$FATHOM_BED/memory"
later "umount '$FATHOM_BED/memory'"
# The file has written data. No read of a sparse file would reach the disk, and fathom would call it void.
run_fathom prepare memory/disk --size 256m
check "the device's file is prepared" status_is 0
make_loop "$FATHOM_BED/memory/disk" --direct-io=on || make_loop "$FATHOM_BED/memory/disk"
number=$(cat "/sys/class/block/$(basename "$loop")/dev")
in_group() { # COMMAND...
  bash -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$group" "$@"
}
measure_in_group() {
  results_made=$((results_made + 1))
  result=$FATHOM_BED/result-$results_made.jsonl
  status=0
  in_group timeout 60 "$fathom" run "$@" --out "$result" >"$out" 2>&1 || status=$?
  cat "$out"
}

echo "$number 500" >"$group/blkio.throttle.read_iops_device"
for depth in 1 16; do
  reaches "500 IOPS by a cgroup at depth $depth: the mean within 2 %" 490 510 \
    measure_in_group 'ios / seconds' "$loop" -b 4k -q $depth --warm-up 2s -d 5s
done
echo "$number 0" >"$group/blkio.throttle.read_iops_device"
echo "$number 10485760" >"$group/blkio.throttle.read_bps_device"
reaches "10 MiB/s by a cgroup: the mean within 3 %" 9.7 10.3 \
  measure_in_group 'bytes / seconds / 1048576' "$loop" -b 64k -q 4 --warm-up 2s -d 5s
