# throttled.sh: devices with a known speed must be measured at that speed. A leaky bucket of limit/10 is in
# front of the limit, so limit x t + limit/10 get through in t seconds.
source "$FATHOM_ROOT/tests/lib.sh"
require qemu-storage-daemon jq
[[ -w /dev/fuse ]] || cannot_run "/dev/fuse is missing or not writable"

iops=$FATHOM_BED/iops bandwidth=$FATHOM_BED/bandwidth slow=$FATHOM_BED/slow
null="driver=null-co,size=1073741824,read-zeroes=on"
serve "$iops" "$bandwidth" "$slow" -- \
  --object throttle-group,id=g-iops,x-iops-total=2000 \
  --blockdev "$null,node-name=n-iops" \
  --blockdev driver=throttle,node-name=t-iops,throttle-group=g-iops,file=n-iops \
  --export "type=fuse,id=e-iops,node-name=t-iops,mountpoint=$iops,writable=on" \
  --object throttle-group,id=g-bandwidth,x-bps-total=52428800 \
  --blockdev "$null,node-name=n-bandwidth" \
  --blockdev driver=throttle,node-name=t-bandwidth,throttle-group=g-bandwidth,file=n-bandwidth \
  --export "type=fuse,id=e-bandwidth,node-name=t-bandwidth,mountpoint=$bandwidth,writable=on" \
  --blockdev "$null,node-name=n-slow,latency-ns=2000000" \
  --export "type=fuse,id=e-slow,node-name=n-slow,mountpoint=$slow,writable=on"

# Measures through all of fathom for 3 s. The result is 3.1 times the limit, or 3 times if the samples of the
# data that will be read have used up the bucket.
known_iops() { # TARGET DEPTH NAME [OPTIONS]
  local target=$1 depth=$2 name=$3
  shift 3
  reaches "2000 IOPS $name at depth $depth: 6200 I/Os in 3 s within 1 %" 5938 6262 \
    measure 'ios * 3 / seconds' "$target" -b 4k -q "$depth" --warm-up 0s -d 3s "$@"
}
known_bandwidth() { # TARGET DEPTH NAME
  reaches "50 MiB/s $3 at depth $2: 155 MiB in 3 s within 1 %" 148.5 156.55 \
    measure 'bytes * 3 / seconds / 1048576' \
    "$1" -b 64k -q "$2" --warm-up 0s -d 3s --pattern sequential
}
# A delay is never shorter than requested. How much longer it is depends on the other programs on the CPUs.
# One I/O at a time fills the window, whatever its delay: the service times add up to the window, less the
# time between one I/O and the next.
known_service_time() { # TARGET NAME
  local one_at_a_time=("$1" -b 4k -q 1 --warm-up 0s -d 2s)
  measure "${one_at_a_time[@]}"
  check "a delay of 2 ms $2: a service time of 2 ms and more" \
    between "$(trial 'quantile(0.5; .service_time) / 1e6')" 1.99 1e3
  reaches "a delay of 2 ms $2: one at a time, the service times fill the window within 10 %" 0.9 1 \
    measure 'total / .window_ns' "${one_at_a_time[@]}"
}

for depth in 1 4 32; do known_iops "$iops" $depth "through FUSE"; done
for depth in 1 4 32; do known_bandwidth "$bandwidth" $depth "through FUSE"; done
known_service_time "$slow" "through FUSE"

known_iops "$iops" 8 "of reads and writes together" --read-share 50% --overwrite

if [[ $EUID -eq 0 ]] && make_loop "$iops" --direct-io=on; then
  known_iops "$loop" 4 "as a block device"
  known_iops "$loop" 32 "as a block device"
  make_loop "$slow" --direct-io=on
  known_service_time "$loop" "as a block device"
else
  skip "the same as block devices" "loop devices need root"
fi
