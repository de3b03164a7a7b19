# kill.sh: whatever ends fathom, its measured trials stay readable, and no scratch file remains.
source "$FATHOM_ROOT/tests/lib.sh"
require jq

mkdir work
small=(--size 32m --duration 300ms --warm-up 100ms)
trials_in() { grep -c '"line":"trial"' "$1" 2>/dev/null || true; }
scratch_files() { find "$1" -name '.fathom-scratch-*'; }
# The journal is readable, with at least the given number of trials.
readable() { # FILE TRIALS
  run_fathom report "$1"
  status_is 0 && jq -se 'length > 0' <(head -n "$(($2 + 1))" "$1") >/dev/null &&
    [[ $(trials_in "$1") -ge $2 ]]
}
start() { # RESULT ARGUMENTS...: fathom in the background, as $pid
  local result=$1
  shift
  # A shell without job control starts its background jobs with SIGINT ignored, and fathom rightly leaves it
  # ignored. env restores the default.
  env --default-signal=INT,QUIT "$fathom" "$@" --out "$result" >"$out" 2>&1 &
  pid=$!
}
ended() {
  status=0
  wait "$pid" || status=$?
  sed 's/^/  /' "$out"
  echo "  status $status"
}

for signal in INT TERM INT INT; do
  # A moment between before the scratch file and the third trial.
  moment=$((RANDOM % 2500))
  name="SIG$signal after $moment ms of quick"
  rm -f r.jsonl r.html
  start r.jsonl quick work "${small[@]}"
  sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
  kill -"$signal" "$pid" 2>/dev/null || true
  ended
  check "$name: exit code" status_is 130 143 0 4
  check "$name: the scratch file is gone" test -z "$(scratch_files work)"
  if [[ -s r.jsonl ]]; then check "$name: the result is readable" readable r.jsonl 0; fi
done

run_fathom prepare data --size 32m
start run.jsonl run data -d 60s --warm-up 0s
# The first line is there before the window begins.
wait_until 60 test -s run.jsonl
sleep 3
kill -INT "$pid"
ended
check "Ctrl-C in a run: exit code 130" status_is 130
check "Ctrl-C in a run: what was measured is kept" readable run.jsonl 1
check "Ctrl-C in a run: and says that it was cut short" test \
  "$(jq -s '[.[] | select(.line == "trial")] | last | .interrupted' run.jsonl)" = true

for round in 1 2; do
  rm -f killed.jsonl
  start killed.jsonl quick work "${small[@]}"
  wait_until 60 test -s killed.jsonl
  [[ $round -eq 1 ]] || wait_until 60 bash -c 'grep -q "\"line\":\"trial\"" killed.jsonl'
  sleep "0.$((RANDOM % 900 + 100))"
  kill -KILL "$pid" || true
  before=$(trials_in killed.jsonl)
  ended
  check "kill -9, round $round: the result is readable with its $before trials" readable killed.jsonl "$((round - 1))"
done
left=$(scratch_files work)
check "kill -9: a scratch file is left" test -n "$left"
rm -f next.jsonl
run_fathom quick work "${small[@]}" --out next.jsonl
# Its windows are short: on a busy disk one may have no I/O at all.
check "kill -9: the next quick works" status_is 0 4
check "kill -9: the next quick names the leftover" says "$(basename "$(head -n 1 <<<"$left")")"
check "kill -9: and leaves it alone unasked" test "$(scratch_files work)" = "$left"
rm -f next.jsonl next.html
run_fathom quick work "${small[@]}" --out next.jsonl --remove-leftovers
check "kill -9: it removes the leftovers when asked to" test -z "$(scratch_files work)"
check "a torn last line is accepted" bash -c "head -c -100 next.jsonl >torn.jsonl && '$fathom' report torn.jsonl >/dev/null"

# An experiment that is killed repeatedly continues each time. The content of the file stays there unchanged.
# In the end it has every trial once, like an experiment that was not killed.
kills=0
launch() { # WORDS
  "$fathom" "$@" >"$out" 2>&1 &
  pid=$!
}
killed_until_done() { # LONGEST-MS WORDS...: leaves killed.jsonl
  local longest=$1 patience=$1 moment size=0 consent=()
  shift
  # A result file gives no consent.
  [[ " $* " != *" --overwrite "* ]] || consent=(--overwrite)
  rm -f killed.jsonl
  launch "$@" --out killed.jsonl
  while true; do
    moment=$((RANDOM % patience))
    sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
    kill -KILL "$pid" 2>/dev/null || true
    status=0
    wait "$pid" 2>/dev/null || status=$?
    if [[ $size -gt 0 ]] && ! cmp -n "$size" whole-lines killed.jsonl; then return 1; fi
    case $status in
      137) kills=$((kills + 1)) ;;
      0 | 4) return 0 ;;
      *) cat "$out"; return 1 ;;
    esac
    if [[ ! -s killed.jsonl || $(wc -l <killed.jsonl) -eq 0 ]]; then
      # The experiment had not begun.
      rm -f killed.jsonl
      patience=$((patience * 3 / 2))
      launch "$@" --out killed.jsonl
      continue
    fi
    head -n "$(wc -l <killed.jsonl)" killed.jsonl >whole-lines
    # On a busy machine it might otherwise never get any further.
    if [[ $(stat -c %s whole-lines) -eq $size ]]; then patience=$((patience * 3 / 2)); else patience=$longest; fi
    size=$(stat -c %s whole-lines)
    ! grep -q '"line":"conclusion"' whole-lines || return 0
    launch resume killed.jsonl "${consent[@]}"
  done
}
# The trials without the time of day. For real targets: only what the trials were.
trials_of() { jq -c 'select(.line == "trial") | del(.started, .started_unix_ns)' "$1"; }
places_of() { jq -c 'select(.line == "trial") | [.place, .point, .interrupted]' "$1"; }
# Where the next point depends on a real target, this compares only that the experiment ended, and that each
# trial has its own place or repeat.
end_of() {
  jq -r 'select(.line == "conclusion") | .ended' "$1"
  jq -c 'select(.line == "trial") | [.place, .point.seed]' "$1" | sort | uniq -d
}
until_killed() { # KILLS LONGEST-MS COMPARED-BY NAMES-OF-ARRAYS...: each experiment in turn
  local most=$1 longest=$2 compared=$3 name
  shift 3
  for name in "$@"; do
    local -n words=$name
    run_fathom "${words[@]}" --out "unkilled-$name.jsonl"
    status_is 0 4 || return 1
    $compared "unkilled-$name.jsonl" >"unkilled-$name"
  done
  kills=0
  while [[ $kills -lt $most ]]; do
    for name in "$@"; do
      local -n words=$name
      killed_until_done "$longest" "${words[@]}" || return 1
      $compared killed.jsonl | cmp - "unkilled-$name" || return 1
      # A resume cuts off a torn last line. A finished file has none.
      [[ $(tail -n 2 killed.jsonl | jq -r .line | grep -c conclusion) = 1 ]] || return 1
    done
  done
  echo "$kills kills"
}
sweep=(sweep sim:ssd --axis queue-depth=1,2,4,8 --axis read-share=0%,100% --repeats 2 -d 500ms --seed 7 --prepare 1 --size 32m)
peak=(peak sim:queue,servers=8,service-time=100us,noise=3% -d 1s --official 2s --seed 7)
load=(peak sim:queue,servers=8,service-time=100us --objective 'p99<=2ms' -d 500ms --tolerance 20% --official 2s --seed 7)
sustain=(sustain sim:ssd --read-share 0% --size 64m -d 500ms --warm-up 0s --at-least 6s --seed 7)
shared=sim:queue,servers=1,service-time=1ms,distribution=exponential
cell=(--write-block-size 4k --queue-depth 64 --write-queue-depth 16 --cell-time 2s --seed 7)
map=(map $shared --grid 5x5 "${cell[@]}")
# More cells than are started before their turn.
cells=(map sim:grid --grid 5x5 --exhaustive --write-max 500MB/s --read-max 100k --cell-time 1s --ramp 100ms --seed 7)
burst=(sustain sim:burst -d 500ms --warm-up 0s --at-least 6s --precondition none --seed 7)
check "200 kills on the simulator: it goes on, nothing is lost and nothing measured twice" \
  until_killed 200 400 trials_of sweep peak load sustain burst map cells
# Two depths are not a curve. A restless point of a curve would be measured again.
on_file=(sweep data --axis queue-depth=1,2 --repeats 3 -d 300ms --warm-up 0s --seed 7 --read-share 50% --prepare 1 --size 8m --overwrite --yes)
real=(--warm-up 0s --seed 7 --size 8m --overwrite --yes)
rounds=(sustain data -d 200ms --at-least 0s --rounds 5 --read-share 0% "${real[@]}")
corners=(map data --grid 2x2 --exhaustive --write-max 4MB/s --read-max 100 --cell-time 1s --cell-time-max 1s
  --ramp 100ms --seed 7 --size 8m --overwrite --yes)
depth=(peak data -d 300ms --up-to 8 --official 500ms --read-share 50% "${real[@]}")
check "20 kills on a file: it goes on, nothing is lost and nothing measured twice" \
  until_killed 20 1500 places_of on_file rounds corners
check "10 kills of a search on a file: it goes on to its end, and no probe is measured twice" \
  until_killed 10 1000 end_of depth

# Whatever happens to a result file while it is written, everything that is known is saved. The run continues
# and is shown, and its exit code says that the result is not in its place.
mkdir moved
harmed() { # NAME OF THE HARM, THE HARM...
  local name=$1
  shift
  rm -rf r.jsonl.saved-* results moved/results
  mkdir results
  start results/r.jsonl sweep data --axis queue-depth=1,2,3,4 -d 2s --warm-up 0s
  # Two trials: the first one is in the file for good.
  wait_until 60 bash -c '[[ $(wc -l <results/r.jsonl) -ge 3 ]]'
  "$@"
  ended
  check "a result that is $name: exit code 5" status_is 5
  check "a result that is $name: it is said where it is" says 'error: results/r.jsonl.*saved in .*/r.jsonl.saved-1'
  check "a result that is $name: it is shown" says '^result .*r.jsonl.saved-1'
  lost=$(sed -nE 's/^error: .* ([0-9]+) lines? that w.* lost.*/\1/p' "$out")
  mv results/r.jsonl.saved-1 . 2>/dev/null || true
  check "a result that is $name: all trials but ${lost:-0} are saved" test \
    "$(($(trials_in r.jsonl.saved-1) + ${lost:-0}))" -ge 4
  check "a result that is $name: it can be read" readable r.jsonl.saved-1 1
}
harmed "removed with its folder" rm -r results
check "a result that is removed with its folder: no trial is lost" test "$(trials_in r.jsonl.saved-1)" -ge 4
harmed "moved with its folder" mv results moved/results
check "a result that is moved with its folder: no trial is lost" test "$(trials_in r.jsonl.saved-1)" -ge 4
harmed "cut off" truncate -s 0 results/r.jsonl
check "a result that is cut off: what is lost is said" test "${lost:-0}" -ge 1

if [[ $EUID -ne 0 ]]; then
  skip "full disks" "mounts need root"
  exit 0
fi
rm r.jsonl.saved-1
mkdir full
mount -t tmpfs -o size=8m tmpfs full
later "umount $FATHOM_BED/full"
start full/r.jsonl quick work --size 32m --duration 3s --warm-up 100ms
wait_until 60 bash -c 'grep -q "\"line\":\"trial\"" full/r.jsonl'
dd if=/dev/zero of=full/filler bs=64k status=none 2>/dev/null || true
ended
check "the result's disk is full: exit code 5" status_is 5
check "the result's disk is full: names the file" says 'full/r\.'
check "the result's disk is full: finished trials are readable" readable full/r.jsonl 1
check "the result's disk is full: all of them are saved where there is room" test "$(trials_in r.jsonl.saved-1)" = 6
check "the result's disk is full: the scratch file is gone" test -z "$(scratch_files work)"

truncate -s 64M small
mkfs.ext4 -q -F small
mkdir mnt
mount -o loop small mnt
later "umount $FATHOM_BED/mnt"
dd if=/dev/zero of=mnt/filler bs=1M status=none 2>/dev/null || true
run_fathom quick mnt "${small[@]}" --out none.jsonl
check "no room for the scratch file: refused" status_is 2 3
check "no room for the scratch file: says so" says 'space|free|room'
check "no room for the scratch file: nothing is left of it" test -z "$(scratch_files mnt)"
check "no room for the scratch file: no empty result" test ! -e none.jsonl
rm mnt/filler
start late.jsonl quick mnt --size 24m --duration 300ms --warm-up 100ms
wait_until 60 bash -c '[[ -n $(find mnt -name ".fathom-scratch-*") || -s late.jsonl ]]'
dd if=/dev/zero of=mnt/filler bs=1M status=none 2>/dev/null || true
ended
check "the disk fills while the scratch file is written: no panic" status_is 0 3 4 5
check "the disk fills while the scratch file is written: it is gone" test -z "$(scratch_files mnt)"
