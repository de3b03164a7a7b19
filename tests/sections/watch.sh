# watch.sh: what `fathom watch` says about a device, beside what the load itself says. Counts and bytes must
# agree exactly. A time in the block layer is never shorter than the device's delay, and never longer than the
# time that fio has seen.
source "$FATHOM_ROOT/tests/lib.sh"
require jq fio qemu-storage-daemon
require_root
[[ -w /dev/fuse ]] || cannot_run "/dev/fuse is missing or not writable"

slow=$FATHOM_BED/slow
serve "$slow" -- \
  --blockdev "driver=null-co,size=1073741824,read-zeroes=on,node-name=n-slow,latency-ns=2000000" \
  --export "type=fuse,id=e-slow,node-name=n-slow,mountpoint=$slow,writable=on"
make_loop "$slow" --direct-io=on || cannot_run "no loop device is free"
disk=${loop#/dev/}

# A figure of all stretches of the first disk, by a jq expression over an array of them.
watched() { # EXPRESSION
  jq -rs "[.[] | select(.line == \"stretch\" and .disk == 0)] | $1" "$watch"
}
all_reads='[.[].counted.reads.ios[]] | add'
all_bytes='[.[].counted.reads.bytes[]] | add'
# The time of all reads and their number, by the events.
mean_ms='[.[].observed[]?.reads // empty] | (map(.response_time.sum_ns) | add) / (map(.ios) | add) / 1e6'

ios=1500
watch=$FATHOM_BED/fio.jsonl
run_fathom watch "$loop" --out "$watch" --csv fio.csv -- \
  fio --name=load --filename="$loop" --rw=randrw --rwmixread=70 --bs=8k --iodepth=4 --ioengine=libaio \
  --direct=1 --number_ios=$ios --size=512m --output-format=json --output=fio.json
check "the watch of a command ends with its exit code" status_is 0
by_fio() { jq -r ".jobs[0].$1" fio.json; }
reads=$(by_fio read.total_ios) writes=$(by_fio write.total_ios)
equal() { echo "$1, expected $2"; [[ $1 == "$2" ]]; }
check "fio did all of it" equal $((reads + writes)) $ios
if [[ $(jq -r 'select(.line == "header") | .without_events // ""' "$watch") == "" ]]; then
  check "fio caused as many reads as it says" equal \
    "$(watched '[.[].programs[]? | select(.name == "fio") | .reads] | add')" "$reads"
  check "fio caused as many writes as it says" equal \
    "$(watched '[.[].programs[]? | select(.name == "fio") | .writes] | add')" "$writes"
  check "a delay of 2 ms takes 2 ms and more in the block layer" between "$(watched "$mean_ms")" 1.99 1e4
  check "and not more than fio has seen" between "$(watched "$mean_ms")" 0 \
    "$(by_fio 'read.lat_ns.mean / 1e6 * 1.02')"
  check "the queue's and the device's time add up to the whole" jq -es '
    [.[] | select(.line == "stretch") | .observed[]?.reads // empty
      | .response_time.sum_ns - .queue_time.sum_ns - .device_time.sum_ns] | all(. == 0)' "$watch"
else
  skip "what events say" "$(jq -r 'select(.line == "header") | .without_events' "$watch")"
fi
check "no read of fio is missing in the counters" between "$(watched "$all_reads")" "$reads" 1e9
check "nor a byte of them" between "$(watched "$all_bytes")" $((reads * 8192)) 1e15
check "the summary names what it did" says "^$disk: busy"
rows() { tail -n +2 fio.csv | cut -d, -f 3 | awk '{ sum += $1 } END { print NR, sum }'; }
echo "rows and reads per second: $(rows)"
check "the table has a row for each interval" equal "$(rows | cut -d' ' -f 1)" \
  "$(watched '[.[].counted.start_ns[]] | length')"

run_fathom report "$watch"
check "the report says who did it" says 'fio'
check "its last line is the answer" bash -c "tail -n 3 '$out' | grep -q '$disk: .*IOPS'"
run_fathom report "$watch" --html watch.html
check "its page is written" grep -q 'Response times over time' watch.html
run_fathom report "$watch" --csv table.csv
check "an option that needs trials is refused" status_is 2
head -c $(($(stat -c %s "$watch") - 100)) "$watch" >torn.jsonl
run_fathom report torn.jsonl
check "a torn file is still reported on" status_is 0
run_fathom watch "$loop" -c 1 --out "$watch"
check "an existing file is not overwritten" status_is 5
check "and has not changed" test "$(watched "$all_reads")" -ge "$reads"

run_fathom watch "$loop" -- sh -c 'exit 7'
check "another exit code is passed on" status_is 7
run_fathom watch "$loop" -- sh -c 'kill -9 $$'
check "and so is a signal" status_is 137
run_fathom watch "$loop" -- "$FATHOM_BED/no-such-program"
check "a command that is not there is named" says 'no-such-program.*cannot be started'

run_fathom watch "$loop" -c 2 -i 200ms
check "a loop device is told from a disk" says "$disk is a file as a device"
check "a line for each interval" equal "$(grep -c "^[0-9:]* $disk " "$out")" 2
run_fathom watch "$loop" -c 2 -i 200ms --csv perfmon.csv --typeperf-names
check "typeperf's names" grep -q 'PhysicalDisk('"$disk"')\\Avg. Disk sec/Read' perfmon.csv

head_of_watch() { timeout 20 "$fathom" watch "$loop" -i 100ms 2>/dev/null | head -n 2; }
check "it ends when its reader has gone" head_of_watch
run_fathom watch "$loop" -i 1ms
check "an interval that is too short is refused" says '1 ms is too short'

# Without root there are counters, and what is missing is said.
cp "$fathom" "$FATHOM_BED/fathom-of-all" && chmod 755 "$FATHOM_BED" "$FATHOM_BED/fathom-of-all"
nobody() { (cd / && setpriv --reuid=65534 --regid=65534 --clear-groups "$FATHOM_BED/fathom-of-all" "$@"); }
status=0
nobody watch "$disk" -c 2 -i 200ms >"$out" 2>&1 || status=$?
sed 's/^/  /' "$out"
if says 'Permission denied|cannot execute'; then
  skip "a watch without root" "this user cannot run the program"
else
  check "a watch without root goes on" status_is 0
  check "it says what is missing" says 'note: (tracefs|the kernel).*root.*no percentiles'
  check "it has the counters" equal "$(grep -c "^[0-9:]* $disk " "$out")" 2
fi

# A device that disappears.
if [[ -e /sys/class/zram-control/hot_add ]] && zram=$(cat /sys/class/zram-control/hot_add); then
  later "[[ ! -e /sys/block/zram$zram ]] || echo $zram >/sys/class/zram-control/hot_remove"
  echo 64M >"/sys/block/zram$zram/disksize"
  LIMIT=30 run_fathom watch "zram$zram" "$disk" -i 200ms -c 10 -- \
    sh -c "sleep 0.5 && echo $zram >/sys/class/zram-control/hot_remove && sleep 0.7"
  check "a watch goes on when a device disappears" status_is 0
  check "and still has the others" says "^$disk: "
else
  skip "a device that disappears" "there is no zram"
fi
run_fathom watch no-such-disk
check "a disk that is not there is named" says 'no-such-disk'
check "with exit code 3" status_is 3
