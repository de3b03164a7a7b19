#!/bin/bash
# fio-times.sh: compares fathom's service time with fio's slat, clat and lat, on targets with a known delay.
# The result is the table "Beside fio's times" of docs/performance.md. It is not a part of ./test, because it
# checks no times: its figures are for a reader.
#
#   cargo build --release && tests/fio-times.sh [SECONDS]
#
# It runs as root, needs fio, jq and qemu-storage-daemon, and removes what it makes.
set -euo pipefail
fathom=${FATHOM_BIN:-$(dirname "${BASH_SOURCE[0]}")/../target/release/fathom}
fathom=$(realpath "$fathom")
seconds=${1:-2}
folder=$(mktemp -d "${FATHOM_TEST_FOLDER:-/var/tmp}/fathom-times.XXXXXX")
server=
finish() {
  [[ -z $server ]] || { kill "$server"; wait "$server"; } 2>/dev/null || true
  umount "$folder/memory" 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT
cd "$folder"

# Nanoseconds as microseconds with about three digits.
us() { awk '{ for (i = 1; i <= NF; i++) printf " %.*f |", ($i < 10000 ? 2 : $i < 100000 ? 1 : 0), $i / 1000; print "" }'; }

# The middle of the bucket that contains the median, and the mean.
fathom_times() { # TARGET DEPTH BACKEND OPTIONS...
  local target=$1 depth=$2 backend=$3
  shift 3
  rm -f run.jsonl
  "$fathom" run "$target" -b 4k --queue-depth "$depth" --backend "$backend" --warm-up 300ms \
    -d "${seconds}s" --size 1g "$@" --out run.jsonl >/dev/null 2>run.err || [[ $? -eq 4 ]] || {
    cat run.err >&2
    return 1
  }
  jq -r 'select(.line == "trial") | .workers[0].cells[0].read.service_time as $t
    | [$t.buckets[][1]] | add as $all
    | (reduce $t.buckets[] as $b ({sum: 0, at: null};
        if .at == null then .sum += $b[1] | if .sum >= $all / 2 then .at = $b[0] else . end else . end) | .at) as $median
    | "\($median) \($t.sum_ns / $all)"' run.jsonl
}

fio_times() { # TARGET DEPTH ENGINE DIRECT
  fio --name=times --filename="$1" --rw=randread --bs=4k --size=1g --iodepth="$2" --ioengine="$3" \
    --direct="$4" --time_based --ramp_time=300ms --runtime="$seconds" --thread --norandommap \
    --invalidate=0 --output-format=json 2>/dev/null |
    jq -r '.jobs[0].read | "\(.clat_ns.percentile["50.000000"]) \(.slat_ns.mean) \(.clat_ns.mean) \(.lat_ns.mean)"'
}

row() { # NAME TARGET DEPTH ENGINE BACKEND DIRECT OPTIONS...
  local name=$1 target=$2 depth=$3 engine=$4 backend=$5 direct=$6
  shift 6
  echo "| $name | $depth | $engine |$(fathom_times "$target" "$depth" "$backend" "$@" | us)$(fio_times "$target" "$depth" "$engine" "$direct" | us)"
}

mkdir memory
mount -t tmpfs -o size=1100m fathom-times memory
"$fathom" prepare memory/data --size 1g >/dev/null 2>&1
echo "| target | queue depth | engine | fathom p50 | mean | fio clat p50 | slat mean | clat mean | lat mean |"
echo "| --- | --: | --- | --: | --: | --: | --: | --: | --: |"
for depth in 1 32; do
  row "/dev/zero" /dev/zero "$depth" io_uring uring 0 --buffered
done
row "/dev/zero" /dev/zero 1 psync sync 0 --buffered
row "tmpfs file" "$PWD/memory/data" 1 psync sync 1
for delay in 100 2000; do
  truncate -s 1G slow
  qemu-storage-daemon \
    --blockdev "driver=null-co,node-name=b0,size=1073741824,read-zeroes=on,latency-ns=${delay}000" \
    --export "type=fuse,id=e0,node-name=b0,mountpoint=$PWD/slow,writable=on" &
  server=$!
  until grep -q " $PWD/slow " /proc/self/mountinfo; do sleep 0.1; done
  for depth in 1 32; do
    row "a delay of $delay us (FUSE)" "$PWD/slow" "$depth" io_uring uring 1
  done
  row "a delay of $delay us (FUSE)" "$PWD/slow" 1 psync sync 1
  kill "$server"
  wait "$server" || true
  server=
  rm -f slow
done
