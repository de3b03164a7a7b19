# watch.sh: what `fathom watch` says about a device, beside what the load itself says. Counts and bytes must
# agree exactly. A time in the block layer is never shorter than the device's delay, and never longer than the
# time that fio has seen.
source "$FATHOM_ROOT/tests/lib.sh"
require jq fio qemu-storage-daemon
require_root
[[ -w /dev/fuse ]] || cannot_run "/dev/fuse is missing or not writable"

slow=$FATHOM_BED/slow slower=$FATHOM_BED/slower
serve "$slow" "$slower" -- \
  --blockdev "driver=null-co,size=1073741824,read-zeroes=on,node-name=n-slow,latency-ns=2000000" \
  --export "type=fuse,id=e-slow,node-name=n-slow,mountpoint=$slow,writable=on" \
  --blockdev "driver=null-co,size=1073741824,read-zeroes=on,node-name=n-slower,latency-ns=10000000" \
  --export "type=fuse,id=e-slower,node-name=n-slower,mountpoint=$slower,writable=on"
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
# Beside programs that keep all CPUs busy, the kernel misses one or two of a hundred completions (ADR 28).
nearly_all() { echo "$1, expected at most $2, and 90 of 100"; [[ $1 -le $2 && $((100 * $1)) -ge $((90 * $2)) ]]; }
if [[ $(jq -r 'select(.line == "header") | .without_events // ""' "$watch") == "" ]]; then
  check "fio caused as many reads as it says" nearly_all \
    "$(watched '[.[].programs[]? | select(.name == "fio") | .reads] | add')" "$reads"
  check "fio caused as many writes as it says" nearly_all \
    "$(watched '[.[].programs[]? | select(.name == "fio") | .writes] | add')" "$writes"
  check "a delay of 2 ms takes 2 ms and more in the block layer" between "$(watched "$mean_ms")" 1.99 1e4
  check "and not more than fio has seen" between "$(watched "$mean_ms")" 0 \
    "$(by_fio 'read.lat_ns.mean / 1e6 * 1.02')"
  # The kernel's own busy time is an estimate, which can be above or below.
  busy='[.[].counted.busy_ns[]] | add / 1e6' queue='[.[].counted.weighted_ns[]] | add / 1e6'
  check "a disk is not busy for longer than the times of all its requests" between "$(watched "$busy")" 0 \
    "$(watched "($queue) + 2 * ([.[].counted.busy_ns[]] | length)")"
  check "and a delay of 2 ms keeps it busy, with four requests in flight at most" between \
    "$(watched "$busy")" $((ios * 199 / 400)) 1e9
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
check "the report says who did it" bash -c "tr -s ' \n' ' ' <'$out' | grep -q 'fio caused [0-9.]* % of the observed I/Os'"
check "its last line is the answer" bash -c "tail -n 3 '$out' | grep -q '$disk: .*IOPS'"
# The summary has what the lines have, and conditions are about reads and writes together.
run_fathom report "$watch" --summary
in_summary() { jq -e "$1" "$out"; }
check "the summary is one of a whole watch" in_summary '.is_complete and .exit_code == 0 and .disks[0].name == "'"$disk"'"'
check "and has the answer" in_summary '.answer | startswith("'"$disk"': ")'
check "its IOPS are the counters'" equal "$(jq '.disks[0].reads.iops.value * 1000 | round' "$out" || echo none)" \
  "$(watched '([.[].counted.reads.ios[]] | add) * 1e9 / ([.[].counted.length_ns[]] | add) * 1000 | round')"
run_fathom report "$watch" --fail-if 'iops<1'
check "a watch within its conditions has exit code 0" status_is 0
check "and the report says that it is" bash -c "tr -s ' \n' ' ' <'$out' | grep -q \"is not the case: IOPS are [0-9.,]* on $disk\""
run_fathom report "$watch" --fail-if 'iops>1'
check "a condition that holds has exit code 6" status_is 6
failing() { { "$fathom" report "$watch" --fail-if 'iops>1' --summary 2>/dev/null || true; } | jq -e "$1"; }
check "the summary says so, for the disk" failing '.conditions[0] | .applies == "yes" and (.text | endswith("on '"$disk"'"))'
run_fathom report "$watch" --fail-if suspect
check "a watch has no verdict" says '^error: --fail-if suspect: a watch has no verdict'
check "and the refusal has exit code 2" status_is 2
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

# The same beside fathom's own load: each I/O finds its request.
run_fathom run "$loop" --queue-depth 2 --duration 3s --warm-up 500ms --watch --out own.jsonl
check "a run is watched" status_is 0
# A jq expression over the trial; .all is all that was seen of its reads, as one band.
own() { # EXPRESSION
  jq -r "select(.line == \"trial\") | .all = ([.breakdown.flows[].bands[].sum] | {
    submission: (map(.submission_ns) | add), queue: (map(.queue_ns) | add),
    device: (map(.device_ns) | add), completion: (map(.completion_ns) | add)}) | $1" own.jsonl
}
if [[ $(own '.breakdown.missing // ""') == "" ]]; then
  seen=$(own '.breakdown.flows[0].ios')
  check "every read in the window is accounted for" equal \
    "$(own '.breakdown.flows[0] | .ios + .without_request')" "$(own '[.workers[].ledger.completed] | add')"
  # Not all, because the kernel may drop events on a busy machine.
  check "and nearly every one has found its request" between "$seen" \
    "$(own '.breakdown | (.flows[0].ios + .flows[0].without_request) * 0.95 - .lost_events')" 1e9
  check "a delay of 2 ms is with the device" between "$(own ".all.device / $seen / 1e6")" 1.99 1e4
  if [[ $(own '.breakdown.flows[0].without_request') == 0 ]]; then
    check "the parts add up to the service time, to the nanosecond" equal "$(own '.all | add')" \
      "$(own '[.workers[].cells[].read.service_time.sum_ns] | add')"
  fi
  echo "the block layer has $(own '(.all.queue + .all.device) / (.all | add) * 100') % of the service time"
  check "the slowest come first, a hundred if there are that many" own '([.workers[].ledger.completed] | add) as $all
    | [.breakdown.slowest[].service_time_ns]
    | (length == ([100, $all] | min) and . == (sort | reverse)) or error("they do not")'
  check "the longest of all is the first of them" equal "$(own '.breakdown.slowest[0].service_time_ns')" \
    "$(own '[.workers[].cells[].read.service_time.max_ns] | max')"
  run_fathom report own.jsonl
  check "the report says where the time went" says 'Reads spent .* of their time at the device'
else
  skip "where the time of a run goes" "$(own .breakdown.missing)"
fi
# What the kernel says of the mean and of p50 is what fathom says: within 1 % if nothing else wants the CPUs,
# as what lies between the two takes some 50 us.
first=$loop
make_loop "$slower" --direct-io=on || cannot_run "no loop device is free"
slower=$loop loop=$first
agrees() {
  rm -f whole.jsonl whole.csv
  run_fathom watch "$slower" -i 60s --csv whole.csv -- \
    "$fathom" run "$slower" --queue-depth 1 --duration 3s --warm-up 0s --out whole.jsonl
  status_is 0 || return 1
  by_kernel() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i ~ name) at = i } NR == 2 { print $at }' whole.csv; }
  by_fathom() { run_fathom report whole.jsonl --summary >&2 && jq ".results[0].figures.$1.value" "$out"; }
  near "$(awk "BEGIN { print $(by_kernel ' read_mean_ns') / $(by_fathom mean_ns) }")" 0.99 1.001 &&
    near "$(awk "BEGIN { print $(by_kernel ' read_p50_ns') / $(by_fathom p50_ns) }")" 0.99 1.001
}
if [[ $(own '.breakdown.missing // ""') == "" ]]; then
  reached "kernel and fathom agree on mean and p50 of a delay of 10 ms, within 1 %" agrees
fi
run_fathom run sim:ssd --duration 1s --watch
check "a simulated device has nothing to watch" says '^error: --watch: a simulated device has no requests'
check "and the refusal has exit code 2" status_is 2

run_fathom watch "$loop" -- sh -c 'exit 7'
check "another exit code is passed on" status_is 7
run_fathom watch "$loop" -- sh -c 'kill -9 $$'
check "and so is a signal" status_is 137
run_fathom watch "$loop" --fail-if 'iops<10M' -- sh -c 'exit 9'
check "it comes before a condition that holds" status_is 9
run_fathom watch "$loop" --fail-if 'iops<10M' -- true
check "a command without I/O is below a rate" status_is 6
check "the answer says so" says "fails by --fail-if 'iops<10M': IOPS are [0-9.,]* on $disk"
run_fathom watch "$loop" --fail-if 'mean>1h' -- true
check "and a time of an hour is not crossed" status_is 0 7
run_fathom watch "$loop" --counters --fail-if 'p99>1us' -- dd if="$loop" of=/dev/null bs=4k count=8 iflag=direct
check "without events a percentile is undecided" status_is 7
check "and the answer says why" says "undecided: --fail-if 'p99>1us': without events of its requests, p99 is unknown on $disk"
run_fathom watch "$loop" --fail-if 'p99 worse than 5%' -- true
check "a watch has no two sides" says 'it compares two sides, and a watch has one'
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

# The full screen ends with its terminal, also where the signal of that is ignored, as under nohup.
mkfifo keys && exec {keys}<>keys
(trap '' HUP && exec script -q -c "exec '$fathom' watch '$loop' -i 200ms --csv '$FATHOM_BED/hung-up.csv'" /dev/null) \
  <keys >/dev/null 2>&1 &
terminal=$!
seen() { [[ $(grep -c . "$FATHOM_BED/hung-up.csv" 2>/dev/null) -gt 2 ]]; }
still_there() { grep -ls 'hung-up[.]csv' /proc/[0-9]*/cmdline | cut -d/ -f 3 || true; }
ended() { [[ -z $(still_there) ]]; }
if wait_until 60 seen; then
  kill -9 $terminal
  check "the full screen ends when its terminal is gone" wait_until 60 ended
  still_there | xargs -r kill -9
else
  fail "the full screen in a terminal shows intervals" "no rows"
fi
exec {keys}>&-

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
check "a disk that is not there is named, with what to do" says '^error: no-such-disk: no disk.*lsblk'
check "with exit code 3" status_is 3
