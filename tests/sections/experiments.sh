# experiments.sh: experiments on devices with known answers. A throttled disk has a peak. A disk with a burst
# credit is not steady while the credit lasts. Every SNIA test runs to its end on a file.
source "$FATHOM_ROOT/tests/lib.sh"
require qemu-storage-daemon jq
[[ -w /dev/fuse ]] || cannot_run "/dev/fuse is missing or not writable"

limit=$FATHOM_BED/limit burst=$FATHOM_BED/burst
null="driver=null-co,size=1073741824,read-zeroes=on"
serve "$limit" "$burst" -- \
  --object throttle-group,id=g-limit,x-iops-total=2000 \
  --blockdev "$null,node-name=n-limit" \
  --blockdev driver=throttle,node-name=t-limit,throttle-group=g-limit,file=n-limit \
  --export "type=fuse,id=e-limit,node-name=t-limit,mountpoint=$limit,writable=on" \
  --object throttle-group,id=g-burst,x-iops-total=500,x-iops-total-max=3000,x-iops-total-max-length=5 \
  --blockdev "$null,node-name=n-burst" \
  --blockdev driver=throttle,node-name=t-burst,throttle-group=g-burst,file=n-burst \
  --export "type=fuse,id=e-burst,node-name=t-burst,mountpoint=$burst,writable=on"

# Runs an experiment with a new result file. The file is $result, and the status is in $status.
experiment() { # NAME ARGUMENTS
  results_made=$((results_made + 1))
  result=$FATHOM_BED/result-$results_made.jsonl
  LIMIT=${patience:-300} run_fathom "$@" --yes --out "$result"
}
# A value of the finding, by a jq expression; null if there is none.
found() { tail -n 2 "$result" | jq -r "select(.line == \"conclusion\") | .found | $1" 2>/dev/null; }
concludes() { tail -n 2 "$result" | jq -r 'select(.line == "conclusion") | .sentences[]' | grep -E -- "$1" >/dev/null; }

# With one I/O in flight, each late wake-up costs IOPS. So the search begins at four.
peak=(-d 2s --warm-up 1s --official 5s)
peak_is() { # LOW HIGH ARGUMENTS
  local low=$1 high=$2
  shift 2
  sleep 0.5
  experiment peak "$@" -b 4k "${peak[@]}"
  status_is 0 4 || return 1
  near "$(found .best.value)" "$low" "$high" && near "$(trial 'ios / seconds')" "$low" "$high"
}
reached "peak on a disk of 2000 IOPS: found within 2 %, and so is the official run" \
  peak_is 1960 2040 "$limit" --workers 4 --up-to 64
check "peak on a disk of 2000 IOPS: the last trial is the official run" \
  test "$(trial '.place.role')" = official
# On a busy machine the curve may scatter so much that the saturating depth is unknown.
says_what_saturates() {
  if concludes '^Queue depth [0-9]+ (saturates|may saturate)'; then return 0; fi
  sleep 0.5
  experiment peak "$limit" "${peak[@]}" --workers 4 --up-to 64 -b 4k
  concludes '^Queue depth [0-9]+ (saturates|may saturate)' || return 2
}
reached "peak on a disk of 2000 IOPS: and says what saturates it" says_what_saturates
reached "peak on a disk of 2000 IOPS by the number of workers: within 2 %" \
  peak_is 1960 2040 "$limit" --vary workers -q 4/worker --up-to 16
if [[ $EUID -eq 0 ]] && make_loop "$limit" --direct-io=on; then
  reached "peak on a block device of 2000 IOPS: within 2 %" peak_is 1960 2040 "$loop" --workers 4 --up-to 64
else
  skip "peak on a block device" "loop devices need root"
fi

# The highest load is the limit. A bucket of 200 I/Os is in front of it, so only a long probe shows a load
# that is little above the limit.
load_is() { # LOW HIGH
  # A disturbance that looks like the limit leads to lower loads, whose probes are longer.
  local patience=100 choice
  sleep 0.5
  experiment peak "$limit" -b 4k --objective 'p99<=50ms' -d 4s --warm-up 1s --rate 1k --up-to 4k \
    --tolerance 2% --official none
  # It took longer than it may: a slow machine, of which nothing can be told.
  ! status_is 124 || return 2
  status_is 0 4 || return 1
  choice=$(found .choice)
  # Not even the lowest load met the objective.
  [[ $choice != null ]] || return 2
  near "$choice" "$1" "$2"
}
reached "peak with an objective on a disk of 2000 IOPS: the highest load within 4 %" load_is 1920 2080

# 3000 IOPS for six seconds, then 500. Five rounds of a second each pass SNIA's rule on the credit.
attempts=0
steady_is() { # LOW HIGH ROUND
  # The credit of 15,000 refills at 500 per second.
  [[ $attempts -eq 0 ]] || sleep 31
  attempts=$((attempts + 1))
  experiment sustain "$burst" -b 4k -q 8 -d 1s --warm-up 0s --at-least 8s
  status_is 0 4 || return 1
  # Rounds that scatter are not steady.
  [[ $(found .steadiness.mean) != null ]] || return 2
  # Well above 500: 3,000 if the machine keeps up, and up to 300 more after each pause between two rounds.
  near "$(found '.rounds[4].value.value')" 2700 3400 && near "$(found .steadiness.mean)" "$1" "$2" &&
    between "$(found '.steady_from // 0')" "$3" 1000
}
reached "sustain on a burst credit: the burst is not called steady, what follows is" steady_is 480 520 7
if [[ $held -eq 1 ]]; then
  check "sustain on a burst credit: names the fall" concludes '^It fell from [0-9],?[0-9]{3} IOPS to [45][0-9]{2} IOPS'
fi
sleep 8
experiment sustain "$burst" -b 4k -q 8 -d 500ms --warm-up 0s --at-least 4s --rounds 8
# On a busy machine, rounds that scatter are not called steady, and then there is nothing to be cautious about.
check "sustain that ends within the credit: comes to a conclusion" \
  concludes "^(Steady|Level so far|Level since|Not steady|No steady state|Whether it is steady is unknown)"
cautious() { ! concludes '^Steady' || concludes 'A credit or a cache that lasts for longer than'; }
check "sustain that ends within the credit: says what it cannot know" cautious

run_fathom prepare data --size 16m
small=(--overwrite -d 100ms --warm-up 0s)
patience=1200
rounds=(--at-least 0s --rounds 5)
for test in iops throughput latency demand-intensity; do
  experiment sustain data "${small[@]}" "${rounds[@]}" --test $test
  check "sustain --test $test on a file: comes to its end" status_is 0 4
  # On a busy machine, rounds that scatter are neither shown to be steady nor shown to be anything else.
  check "sustain --test $test on a file: and to a conclusion" \
    concludes "^(Steady|Level so far|Level since|Not steady|No steady state|Whether it is steady is unknown)"
  check "sustain --test $test on a file: has written everything twice before" test "$(jq -s \
    '[.[] | select(.line == "trial" and .place.role == "preparation") | .workers[].cells[].write.bytes] | add' \
    "$result")" = $((32 << 20))
done
for test in write-saturation cross-stimulus-recovery; do
  experiment sustain data "${small[@]}" --test $test --for 1s
  check "sustain --test $test on a file: comes to its end" status_is 0 4
done
run_fathom sustain data "${small[@]}" --test host-idle-recovery --for 1m --plan
check "sustain --test host-idle-recovery on a file: can be planned" status_is 0
check "sustain --test host-idle-recovery on a file: says what it writes" says 'OVERWRITES data: writes at most'

run_fathom prepare first --size 16m
run_fathom prepare second --size 16m
experiment sweep first --axis targets=first,second,first+second --axis block-size=4k,64k --repeats 2 \
  --prepare 1 --read-share 50% --overwrite --rest 100ms -d 200ms --warm-up 0s
check "a sweep over targets by themselves and together, prepared: comes to its end" status_is 0 4
check "a sweep over targets: each combination twice" test \
  "$(jq -s '[.[] | select(.line == "trial" and .place.role == "result")] | length' "$result")" = 12
check "a sweep over targets: everything is written before each point" test "$(jq -s \
  '[.[] | select(.line == "trial" and .place.role == "preparation") | .workers[].cells[].write.bytes] | add' \
  "$result")" = $((16 * (16 << 20)))
