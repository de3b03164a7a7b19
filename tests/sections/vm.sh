# vm.sh: devices that a test machine does not have, in a temporary virtual machine: NVMe, a disk with a known
# limit, RAID, device-mapper faults, disks that are pulled out.
source "$FATHOM_ROOT/tests/lib.sh"
require qemu-system-x86_64 jq
vm=$FATHOM_ROOT/tests/vm
"$vm/boot.sh" prepare || cannot_run "the guest's kernel or tools cannot be fetched from Debian"

# Boots with one of the guest's scripts. Its results are in $guest.
guest=
in_guest() { # SCRIPT QEMU-ARGUMENTS BOOT-OPTIONS...
  guest=$FATHOM_BED/$1
  mkdir -p "$guest"
  cat "$vm/guest-prelude.sh" "$vm/$1.sh" >"$1.sh"
  local status script=$1 drives=$2
  shift 2
  # Each fathom in the guest has a limit of one or seven minutes, so only the guest itself can take longer. In
  # one of many runs a guest did not end, for an unknown reason. It ended after a second boot.
  for _ in 1 2; do
    status=0
    "$vm/boot.sh" run -t 500 -f "$fathom:/bin/fathom" -q "$drives" "$@" -o "$guest" "$script.sh" ||
      status=$?
    [[ $status -ge 124 ]] || return 0
    echo "the guest of $script.sh did not come to its end: status $status"
  done
  fail "the guest of $script.sh lives to its end" "status $status"
}
# Loads one of the guest's runs for the checks of lib.sh.
look_at() { # NAME
  out=$guest/$1.txt result=$guest/$1.jsonl
  status=$(cat "$guest/$1.status" 2>/dev/null || echo none)
  echo "+ in the guest: $1 (status $status)"
  [[ -e $out ]] || : >"$out"
  [[ -e $result ]] || : >"$result"
  sed 's/^/  /' "$out"
}

null="driver=null-co,size=1G,read-zeroes=on"
in_guest known "-drive if=none,id=t0,$null,throttling.iops-total=2000 -device virtio-blk-pci,drive=t0,serial=limit
  -drive if=none,id=n0,$null -device nvme,id=nv0,serial=nv0,drive=n0"
# No measurement exceeds the limit, whatever the machine does. The guest's kernel counts the same reads: those
# of the run, the samples of the data that will be read (256), and a few before them that inspect the disk.
limit_holds() { # DEPTH HIGH
  local try
  for try in 1 2 3; do
    look_at limit$1-$try
    between "$(trial 'ios * 3 / seconds')" 1 "$2" || return 1
  done
}
kernel_agrees() { # DEPTH
  local try counted
  for try in 1 2 3; do
    look_at limit$1-$try
    counted=$(trial 'ledger | .completed_in_warm_up + .completed + .in_flight')
    between "$(cat "$guest/limit$1-$try.reads")" "$counted" "$((counted + 320))" || return 1
  done
}
# Reaching the limit takes CPU time that the guest may not get. If it is not reached, this shows nothing.
limit_is_reached() { # DEPTH LOW
  local try sentence="virtio-blk of 2000 IOPS at depth $1: the limit is reached within 1 %"
  for try in 1 2 3; do
    look_at limit$1-$try
    if [[ $(trial "ios * 3 / seconds >= $2") = true ]]; then pass "$sentence"; return; fi
  done
  skip "$sentence" "the emulated machine was slower than that three times"
}
# The burst of 200 is for the first I/Os, which may be the samples of the data that will be read. One I/O at a
# time may be slower than the limit here, because an emulated machine is slow.
for depth in 1 4 32; do
  check "virtio-blk of 2000 IOPS at depth $depth: at most 6200 I/Os in 3 s, within 1 %" \
    limit_holds $depth 6262
  check "virtio-blk of 2000 IOPS at depth $depth: the guest's kernel counts the same reads" \
    kernel_agrees $depth
done
for depth in 4 32; do limit_is_reached $depth 5938; done
look_at inspect-nvme
check "inspect knows an NVMe disk: exit code" status_is 0
check "inspect knows an NVMe disk: its model" says 'QEMU NVMe'
check "inspect knows an NVMe disk: its size" says '1 GiB'
look_at nvme
check "NVMe is read without failures" test "$(trial 'ios > 0 and failures == 0')" = true
look_at inspect-null
check "inspect knows null_blk" says 'nullb0'
look_at null
check "null_blk of 2 ms: the service time holds it" between "$(trial 'quantile(0.5; .service_time) / 1e6')" 2 1e3
look_at write
check "null_blk is written: exit code" status_is 0 4
check "null_blk is written" test "$(trial 'ios > 0 and failures == 0')" = true

if [[ ! -x ${FATHOM_NVME_BIN:-} ]]; then
  skip "NVMe commands, polled queues, submission threads" "nvme-check was not built"
else
  truncate -s 64M "$FATHOM_BED"/nvme{0,1}.img
  in_guest modes "-drive if=none,id=n0,format=raw,cache=unsafe,file=$FATHOM_BED/nvme0.img -device nvme,id=nv0,serial=nv0,drive=n0
    -drive if=none,id=n1,format=raw,cache=unsafe,file=$FATHOM_BED/nvme1.img -device nvme,id=nv1,serial=nv1,drive=n1" \
    -a nvme.poll_queues=1 -f "$FATHOM_NVME_BIN:/bin/nvme-check"
  look_at check
  check "NVMe commands carry data to where it belongs, in every mode" status_is 0
  look_at inspect
  check "inspect knows an NVMe generic device" says 'NVMe generic device of 64 MiB'
  for run in read read-polled block-polled read-threaded; do
    look_at $run
    check "$run: measured without failures" test "$(trial 'ios > 0 and failures == 0')" = true
  done
  look_at read-polled
  check "the document says that it was polled" test "$(trial '.point.streams[0].access.ring.polled')" = true
  check "the report says that commands passed by the block layer" says 'NVMe commands past'
  look_at write
  before=$(cat "$guest/before") after=$(cat "$guest/after")
  if [[ $before && $after ]]; then
    check "every write by command reached the device, and no other" \
      test "$((after - before))" -eq "$(trial 'ledger.due')"
  else
    skip "every write by command reached the device" "the emulator's monitor did not answer"
  fi
  # A hash for each 4 KiB of the block device's content after the run. If it gave up before the end of the
  # 256 blocks, the rest is zeros, which are one additional piece.
  pieces=$(split -b 4096 --filter=md5sum "$guest/written" | sort -u | wc -l)
  written=$(trial ledger.due)
  check "every block that was written holds data of its own" \
    test "$pieces" -eq "$((written < 256 ? written + 1 : 256))"
  look_at large
  check "a block beyond the device's limit is refused: exit code 3" status_is 3
  check "a block beyond the device's limit is refused: names the limit" says 'queue/max_'
  for run in cached aio mixed; do
    look_at $run
    check "$run: what commands cannot do is refused" test "$status" -ne 0 -a ! -s "$result"
  done
  look_at unpolled
  check "a device without poll queues is refused: exit code 3" status_is 3
  check "a device without poll queues is refused: says so" says 'cannot be polled'
  look_at used
  check "what is mounted is not written to by commands either: exit code 3" status_is 3
  check "what is mounted is not written to by commands either: says so" says 'is mounted on'
fi
in_guest stack ""
look_at inspect0
check "inspect knows RAID 0: level" says 'raid ?0'
check "inspect knows RAID 0: chunk of 64 KiB" says '64 KiB'
check "inspect knows RAID 0: a full stripe of 128 KiB" says '128 KiB'
check "inspect knows RAID 0: its members" says 'ram0'
look_at inspect5
check "inspect knows RAID 5: level" says 'raid ?5'
check "inspect knows RAID 5: chunk of 32 KiB" says '32 KiB'
check "inspect knows RAID 5: a full stripe of 64 KiB without parity" says '64 KiB'
look_at md0
check "an md array is read and written" test "$(trial 'ios > 0 and failures == 0')" = true
look_at member
check "a member of an array is refused: exit code 3" status_is 3
check "a member of an array is refused: names the array" says 'md5|md array'
check "a member of an array is refused: not a byte differs" cmp "$guest/before" "$guest/after"
if [[ -e $guest/no-dm ]]; then
  skip "a volume's disk is refused" "dmsetup is missing"
else
  look_at held
  check "a volume's disk is refused: exit code 3" status_is 3
  check "a volume's disk is refused: names the volume" says 'dm-0|volume'
  look_at inspect-dm
  check "inspect knows the disk below a volume" says 'ram5'
fi
look_at swap
check "an active swap is refused: exit code 3" status_is 3
check "an active swap is refused: says swap" says 'swap'
# Another kernel than that of this machine: without block_io_start, if it is older than Linux 6.5.
look_at watched
check "a run is watched: nearly every read has found its request" test \
  "$(jq -r 'select(.line == "trial") | .breakdown.flows[0] | .ios >= 0.9 * (.ios + .without_request)' "$result")" = true
check "a run is watched: the device takes its 2 ms" between \
  "$(jq -r 'select(.line == "trial") | .breakdown.flows[0] | ([.bands[].sum.device_ns] | add) / .ios / 1e6' "$result")" \
  1.99 1e4
if [[ ! -e $guest/no-dm ]]; then
  look_at watch-layers
  check "a watch names the layer without requests" says 'mapper/layered is a volume .*only its counters are known'
  layers=$guest/layers.jsonl
  check "a watch sees the volume's reads on the disk below" test "$(jq -rs '
    ([.[] | select(.line == "header") | .disks[].name] | index("nullb0")) as $below
    | [.[] | select(.line == "stretch" and .disk == $below) | .observed[]?.reads // empty | .ios] | add > 0' "$layers")" = true
  check "and who made them" grep -q '"name":"fathom"' "$layers"
  look_at watched-volume
  check "a run on a volume is watched on the disk below it" status_is 0 4
  check "and each I/O finds its request there" says 'Reads spent .* of their time at the device'
fi
look_at watch-md
check "a watch names an array and its members" says 'md0 is a software RAID array.*'

in_guest arrays ""
look_at arrays
check "the multi-stream study runs over md arrays: measured" status_is 0 4
check "the multi-stream study runs over md arrays: every point of every array, without failures" \
  test "$(jq -s '[.[] | select(.line == "trial")] | all([.workers[].errors.count] | add == 0) and
    (group_by([.place.coordinates[].label]) | length == 48 and
      all([.[].workers[].cells[] | .read.ios + .write.ios] | add > 0))' "$result")" = true
# Lines are wrapped at the width of the terminal.
tells() { tr -s ' \n' ' ' <"$out" | grep -qE -- "$1"; }
# A grep that ends early would break the pipe, and with it the check.
concludes() { jq -r 'select(.line == "conclusion") | .sentences[]' "$result" | grep -E -- "$1" >/dev/null; }
for array in "md0 .raid0, 4 disks, chunk 64 KiB, full stripe 256 KiB" "md1 .raid1, 2 disks" \
  "md5 .raid5, 3 disks, chunk 64 KiB, full stripe 128 KiB" \
  "md6 .raid6, 4 disks, chunk 64 KiB, full stripe 128 KiB" \
  "md10 .raid10, 4 disks, chunk 64 KiB, full stripe 128 KiB"; do
  check "the multi-stream study prints the geometry: ${array%% *}" tells "md array $array"
  check "the multi-stream study has a table: ${array%% *}" tells "MiB/s, targets /dev/${array%% *}, read-share 0%"
  check "the multi-stream study compares: ${array%% *}" concludes "/dev/${array%% *} .raid[^;]* reads [^;]* times /dev/ram0"
done

in_guest broken "-drive if=none,id=u0,$null -device virtio-blk-pci,id=unplug0,drive=u0,serial=unplug
  -drive if=none,id=u1,$null -device nvme,id=unplug1,serial=nv1,drive=u1"
survived() { # NAME SENTENCE
  look_at "$1"
  check "$2: no panic, and the exit code says that it was measured" status_is 0 4
  check "$2: not called sound" test "$(trial .verdict)" != sound
  check "$2: counted, and what came before too" test "$(trial 'failures > 0 and ios > 0')" = true
}
if [[ -e $guest/no-dm ]]; then
  skip "device-mapper faults" "dmsetup is missing"
else
  survived error "a bad block of dm-error"
  check "a bad block of dm-error: EIO at its place" test "$(trial \
    'kept | length > 0 and all(.offset_bytes == 524288 and .failure.errno == 5)')" = true
  survived flakey "a flaky disk"
  check "a flaky disk: EIO" test "$(trial 'kept | length > 0 and all(.failure.errno == 5)')" = true
  look_at delay
  check "dm-delay of 20 ms: the service time holds it" between "$(trial 'quantile(0.5; .service_time) / 1e6')" 20 1e3
fi
survived virtio "a virtio disk is pulled out"
survived nvme "an NVMe disk is pulled out"
check "an NVMe disk is pulled out: each failure has its errno or its missing bytes" test "$(trial \
  'kept | length > 0 and all(.failure == "lost" or .failure.errno > 0 or .failure.short_bytes == 0)')" = true
