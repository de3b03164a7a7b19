# hangs.sh: a target that hangs in the middle, with every backend, even if the thread that makes the call
# hangs too. The measured part is judged and in the result file, with each lost I/O and its place. The user
# does not have to wait for the target.
source "$FATHOM_ROOT/tests/lib.sh"
require jq
[[ -w /dev/fuse ]] || cannot_run "/dev/fuse is missing or not writable"

# The number of I/Os before the hang. It is above the 256 samples of the data that will be read.
AFTER=2000
# A hanging loop device cannot be asked for its file, so fathom rightly refuses to write to any file of
# exactly its size. No other section has a file of this size, and no two attempts here have the same size.
SIZE=71303168
process=
# The number of attempts that wait at the same time. Each has its own shell, folder and server.
BESIDE=24
attempts=0
pids=() logs=()

# Makes an attempt beside others. Its output is printed at the end. Its status is in a file, because bash
# forgets the status of a child when a later one gets the same process ID.
beside() { # COMMAND...
  attempts=$((attempts + 1))
  SIZE=$((SIZE + 1048576))
  while [[ $(jobs -rp | wc -l) -ge $BESIDE ]]; do sleep 0.1; done
  local log=$FATHOM_BED/attempt-$attempts.log
  {
    # Bash ignores errors inside an attempt whose status is tested (`attempt || ...`), so the block uses `set
    # +e`.
    set +e
    attempt "$@" >"$log" 2>&1
    echo $? >"$log.status"
  } &
  pids+=($!) logs+=("$log")
}
attempt() ( # COMMAND...
  set -e
  undo=()
  trap undo_all EXIT
  trap 'exit 143' TERM INT HUP
  mkdir "$FATHOM_BED/attempt-$attempts"
  cd "$FATHOM_BED/attempt-$attempts"
  out=$FATHOM_BED/attempt-$attempts.out
  hanging=$FATHOM_BED/attempt-$attempts.hangs
  result=$FATHOM_BED/attempt-$attempts.jsonl
  "$@"
)
# Waits for all attempts.
end_attempts() {
  local pid log status
  for pid in "${pids[@]}"; do wait "$pid" || true; done
  for log in "${logs[@]}"; do
    cat "$log"
    status=$(cat "$log.status" || echo unknown)
    [[ $status = 0 ]] || fail "an attempt of this section" "its shell ended with $status, see $log"
  done
  pids=() logs=()
}
# Whether the target is a loop device over the hanging file, rather than the file itself.
on_loop=0

lines() { [[ -f $result ]] && [[ $(wc -l <"$result") -ge $1 ]]; }
of_trial() { sed -n 2p "$result" | jq -r "$1"; }
it_hangs() { grep -q hangs "$hanging"; }

# Starts fathom on a file that hangs after a while.
hang() { # NAME FAULTS -- OPTIONS...
  local faults=() folder=$FATHOM_BED/hangs-$1
  shift
  while [[ $1 != -- ]]; do faults+=("$1"); shift; done
  shift
  serve_faults "$folder" "size=$SIZE" "${faults[@]}" 2>"$hanging"
  local target=$folder/data
  if [[ $on_loop -eq 1 ]]; then
    make_loop "$target" --direct-io=on || make_loop "$target"
    target=$loop
  fi
  env --default-signal=INT "$fathom" run "$target" --out "$result" --warm-up 0s --seed 1 "$@" >"$out" 2>"$out.err" &
  process=$!
}

# Checks what must be in the file, long before the target releases anything.
kept() { # NAME LOST
  check "$1: the trial and a conclusion are in the file while the target hangs" lines 3
  check "$1: lost I/Os are counted" test "$(of_trial '[.workers[].ledger.lost] | add')" -eq "$2"
  check "$1: each of them is there with its offset and with when it started" test "$(of_trial \
    '[.workers[].errors.first[]? | select(.failure == "lost") | select(.offset_bytes >= 0 and .at_ns >= 0)] | length')" -eq "$2"
  check "$1: what was done before is in it" test "$(of_trial '[.workers[].ledger | .completed] | add')" -gt 0
  check "$1: every I/O is accounted for" test "$(of_trial '[.workers[].ledger | .due ==
    .completed_in_warm_up + .completed + .failed + .in_flight + .lost + .unstarted] | all')" = true
  check "$1: void" test "$(of_trial .verdict)" = void
}

# Ends the server, so that the kernel releases the I/Os, and checks how fathom ended.
let_go() { # NAME STATUS
  local status=0
  umount -l "$FATHOM_BED/hangs-$1" 2>/dev/null || true
  end_server "$server"
  wait "$process" || status=$?
  check "$1: the exit code is $2" test "$status" -eq "$2"
  check "$1: it says that something hangs" grep -q "as soon as the kernel lets go" "$out.err"
  check "$1: no panic" test "$(grep -c panicked "$out.err")" -eq 0
}

# Two Ctrl-C end fathom at once.
twice() { # NAME LOST FAULTS... -- OPTIONS...
  local name=$1 lost=$2
  shift 2
  hang "$name" "$@" -d 10m
  wait_until 600 it_hangs || true
  # An interval ends in which no I/O comes back.
  sleep 2
  kill -INT "$process"
  sleep 0.2
  kill -INT "$process"
  wait_until 30 lines 3 || true
  kept "$name" "$lost"
  let_go "$name" 130
}

beside twice sync-1 1 hang-at=$AFTER -- -q 1 --backend sync
beside twice sync-4 4 hang-at=$AFTER -- -q 4 --backend sync
beside twice uring 4 hang-at=$AFTER -- -q 4 --backend uring
beside twice uring-buffered 4 hang-at=$AFTER cached=1 -- -q 4 --backend uring --buffered
beside twice aio 4 hang-at=$AFTER -- -q 4 --backend aio
beside twice aio-buffered 4 hang-at=$AFTER cached=1 -- -q 4 --backend aio --buffered
beside twice mmap 1 hang-at=600 cached=1 -- -q 1 --mmap
beside twice fsync 1 hang-fsync=1 -- -q 1 --backend sync --read-share 0% --overwrite --fsync 200

# A block device: the kernel releases nothing until the device does.
if [[ $EUID -eq 0 ]] && command -v losetup >/dev/null; then
  on_loop=1
  beside twice loop-sync 1 hang-at=4000 -- -q 1 --backend sync
  beside twice loop-uring 4 hang-at=4000 -- -q 4 --backend uring
  on_loop=0
else
  skip "a block device that hangs" "loop devices need root and losetup"
fi

# Patience: fathom waits as long as it waits for any I/O in flight at the end. No signal is sent.
patience() { # NAME LOST FAULT -- OPTIONS...
  local name=$1 lost=$2
  shift 2
  # Long enough for the I/O that hangs, also on a busy machine.
  hang "$name" "$@" -d 20s
  wait_until 120 lines 3 || true
  kept "$name" "$lost"
  let_go "$name" 4
}
beside patience patience 1 hang-at=$AFTER -- -q 1 --backend sync

# A target that cannot be opened gives no trial, but an error message.
opening() {
  hang opening hang-open=1 -- -q 1 -d 1s
  wait_until 120 grep -q error: "$out.err" || true
  check "a file whose opening hangs: an error says so" grep -q "the kernel did not answer" "$out.err"
  let_go opening 3
}
beside opening

# A server that has stopped completely does not answer other questions either: whether the target is still the
# same file, or where it ends.
beside twice gone-uring 4 hang-all-at=$AFTER -- -q 4 --backend uring
beside twice gone-sync 1 hang-all-at=$AFTER -- -q 1 --backend sync
beside patience gone 4 hang-all-at=$AFTER -- -q 4 --backend aio

# Whether the fault begins only when the result file has a header.
late=0
# A call hangs that is not an I/O to the target: a close, a stat, a removal, or the write of a result. The
# command ends by itself, or after the given number of Ctrl-C, while the server still hangs.
ends() { # NAME CODES SIGNALS FAULT -- ARGUMENTS, where @ is the folder that hangs
  local name=$1 codes=$2 signals=$3 fault=$4 folder=$FATHOM_BED/hangs-$1 status=0
  shift 5
  ln -s ../here here
  cp ../begun.jsonl here.jsonl
  serve_faults "$folder" "size=$SIZE" armed=0 "$fault" 2>"$hanging"
  cp here.jsonl "$folder/begun.jsonl"
  [[ $late -eq 1 || ! -e $folder/arm ]]
  env --default-signal=INT "$fathom" "${@//@/$folder}" >"$out" 2>&1 &
  process=$!
  if [[ $late -eq 1 ]]; then
    wait_until 60 test -s r.jsonl || true
    [[ ! -e $folder/arm ]]
    # Waits until there is something to keep.
    sleep 3
  fi
  if [[ $signals -gt 0 && $late -eq 0 ]]; then
    wait_until 600 it_hangs || true
    sleep 0.3
  fi
  for ((; signals > 0; signals--)); do
    kill -INT "$process" || true
    sleep 0.2
  done
  check "$name: it ends while its server hangs" wait_until 120 has_ended "$process"
  umount -l "$folder" 2>/dev/null || true
  kill "$server" 2>/dev/null || true
  wait "$process" || status=$?
  sed 's/^/  /' "$out"
  check "$name: the exit code $status is one of $codes" test -z "${codes##*" $status "*}"
  check "$name: no panic" test "$(grep -c panicked "$out")" -eq 0
}
# The same. The measured trials are in FILE, whose name may be a pattern.
keeps() { # NAME TRIALS FILE CODES SIGNALS FAULT -- ARGUMENTS
  local name=$1 trials=$2 file=$3
  shift 3
  ends "$name" "$@"
  check "$name: $trials trials are kept" test "$(cat $file | grep -c '"line":"trial"')" -ge "$trials"
}
head -c 4M /dev/urandom >here
run_fathom sweep here --axis queue-depth=1,2 -d 100ms --warm-up 0s --seed 1 --yes --out begun.whole
head -n 2 begun.whole >begun.jsonl
brief=(-d 300ms --warm-up 0s)
# The target.
late=1
beside keeps close-run 1 r.jsonl " 0 4 " 0 hang-close=1 -- run @/data "${brief[@]}" --out r.jsonl
beside keeps close-run-signals 1 r.jsonl " 130 " 2 hang-close=1 -- run @/data -d 10m --warm-up 0s --out r.jsonl
beside keeps unlink-quick 1 r.jsonl " 0 4 " 0 hang-unlink=1 -- quick @ --size 8m "${brief[@]}" --out r.jsonl
late=0
beside ends close-look " 3 " 0 hang-close=1 -- run @/data "${brief[@]}" --out r.jsonl
beside ends close-prepare " 0 130 " 2 hang-close=1 -- prepare @/new --size 1m
beside ends close-quick " 130 " 2 hang-close=1 -- quick @ --size 8m "${brief[@]}" --out r.jsonl
beside ends write-prepare " 3 5 130 " 2 hang-kept-at=1 -- prepare @/new --size 1m
# Without a signal, fathom's patience ends.
beside ends write-prepare-alone " 3 " 0 hang-kept-at=1 -- prepare @/new --size 1m
beside ends fsync-prepare-alone " 3 " 0 hang-fsync=1 -- prepare @/new --size 1m
beside ends write-quick-alone " 3 " 0 hang-kept-at=1 -- quick @ --size 8m "${brief[@]}" --out r.jsonl
# Longer than its patience, a process that is stopped waits for nothing.
stopped_prepare() {
  local folder=$FATHOM_BED/hangs-stopped-prepare status=0
  # It grows to three times its size, which takes at least nine writes.
  serve_faults "$folder" size=4194304 delay-us=1000000 2>"$hanging"
  "$fathom" prepare "$folder/data" --overwrite --size 12m >"$out" 2>&1 &
  process=$!
  sleep 2
  check "prepare that is stopped: it was under way" kill -STOP "$process"
  sleep 66
  kill -CONT "$process"
  wait "$process" || status=$?
  sed 's/^/  /' "$out"
  check "prepare that is stopped: it goes on to its end" test "$status" -eq 0
}
beside stopped_prepare
for time in 1 3 6; do
  beside ends "stat-run-$time" " 0 3 4 " 0 "hang-stat=$time" -- run @/data "${brief[@]}" --out r.jsonl
  beside ends "stat-quick-$time" " 0 3 4 130 " 2 "hang-stat=$time" -- quick @ --size 8m "${brief[@]}" --out r.jsonl
  beside ends "stat-prepare-$time" " 0 3 130 " 2 "hang-stat=$time" -- prepare @/new --size 1m
  beside ends "stat-result-$time" " 0 4 5 " 0 "hang-stat=$time" -- run here "${brief[@]}" --out @/r.jsonl
  beside ends "stat-resume-$time" " 0 3 4 5 130 " 2 "hang-stat=$time" -- resume @/begun.jsonl
done
# The result: a header alone has no value, and a trial is saved in another place.
beside ends header " 5 " 0 hang-kept-at=1 -- run here "${brief[@]}" --out @/r.jsonl
beside ends header-signal " 5 130 " 1 hang-kept-at=1 -- run here "${brief[@]}" --out @/r.jsonl
beside ends header-fsync " 5 130 " 2 hang-fsync=1 -- run here "${brief[@]}" --out @/r.jsonl
beside keeps trial 1 r.jsonl.saved-1 " 5 " 0 hang-kept-at=2 -- run here "${brief[@]}" --out @/r.jsonl
beside keeps trial-signals 1 r.jsonl.saved-1 " 5 130 " 2 hang-kept-at=2 -- run here -d 2s --warm-up 0s --out @/r.jsonl
beside keeps trial-quick 1 r.jsonl.saved-1 " 5 130 " 2 hang-kept-at=2 -- quick here "${brief[@]}" --out @/r.jsonl
beside keeps resumed 1 '../begun.jsonl.saved-*' " 5 130 " 2 hang-kept-at=1 -- resume @/begun.jsonl
beside ends result-close " 0 4 " 0 hang-close=1 -- run here "${brief[@]}" --out @/r.jsonl
# A trace: its lines have less value than the trial.
beside keeps trace 1 r.jsonl " 5 " 0 hang-kept-at=1 -- run here "${brief[@]}" --out r.jsonl --trace @/t.csv
beside keeps trace-signals 1 r.jsonl " 5 130 " 2 hang-kept-at=1 -- run here -d 10m --warm-up 0s --out r.jsonl --trace @/t.csv
beside keeps trace-simulated 1 r.jsonl " 5 " 0 hang-kept-at=1 -- run sim:ssd "${brief[@]}" --out r.jsonl --trace @/t.csv
beside keeps trace-fsync 1 r.jsonl " 5 " 0 hang-fsync=1 -- run here "${brief[@]}" --out r.jsonl --trace @/t.csv
beside keeps trace-close 1 r.jsonl " 0 4 " 0 hang-close=1 -- run here "${brief[@]}" --out r.jsonl --trace @/t.csv
# A result that is saved in another place begins in the middle. It cannot be resumed like a whole one.
in_parts() {
  # Two depths are not a curve. A restless point of a curve would be measured again.
  local sweep=(sweep here --axis queue-depth=1,2 --repeats 2 -d 100ms --warm-up 0s --seed 1 --yes)
  keeps in-parts 3 r.jsonl.saved-1 " 5 " 0 hang-kept-at=3 -- "${sweep[@]}" --out @/r.jsonl
  run_fathom "${sweep[@]}" --out whole.jsonl
  places() { jq -c 'select(.line == "trial") | .place' "$1"; }
  check "a result in parts: the second one has what the first has not" \
    diff <(places whole.jsonl | tail -n 3) <(places r.jsonl.saved-1)
  mkdir killed
  head -n 2 r.jsonl.saved-1 >killed/r.jsonl.saved-1
  cp killed/r.jsonl.saved-1 before
  run_fathom resume killed/r.jsonl.saved-1
  check "a result in parts: the second one alone is refused" status_is 5
  check "a result in parts: says what to do" says 'lacks the trials before.*whole lines of a copy of r.jsonl'
  check "a result in parts: not a byte differs" cmp before killed/r.jsonl.saved-1
  { head -n 2 whole.jsonl; tail -n +2 killed/r.jsonl.saved-1; } >joined.jsonl
  run_fathom resume joined.jsonl
  check "a result in parts: both together go on to their end" status_is 0 4
  check "a result in parts: each trial is there once" diff <(places whole.jsonl) <(places joined.jsonl)
}
beside in_parts
# Reports.
beside ends read-close " 0 " 0 hang-close=1 -- report @/begun.jsonl
beside ends svg-close " 0 " 0 hang-close=1 -- report here.jsonl --svg @/new.svg --chart iops
beside ends svg-write " 5 " 0 hang-kept-at=1 -- report here.jsonl --svg @/new.svg --chart iops
beside ends svg-stat " 0 5 " 0 hang-stat=2 -- report here.jsonl --svg @/new.svg --chart iops

# From the first request on, nothing is answered, whatever the command asks.
asked=$FATHOM_BED/asked
serve_faults "$asked" hang-all-at=0
servers=("$server")
# The first of these servers does not answer opens. The second one does not answer reads.
opens=$FATHOM_BED/opens reads=$FATHOM_BED/reads
serve_faults "$opens" hang-open=1
servers+=("$server")
serve_faults "$reads" hang-at=0
servers+=("$server")
declare -A asks=() codes=()
ask() { # NAME CODE ARGUMENTS...
  local name=$1
  codes[$name]=$2
  shift 2
  "$fathom" "$@" >"$FATHOM_BED/asks.$name" 2>&1 &
  asks[$name]=$!
}
ask target 3 run "$asked/data" -d 1s --warm-up 0s
ask inspect 3 inspect "$asked/data"
ask quick 3 quick "$asked/data"
ask prepare 3 prepare "$asked/new" --size 1m
ask opened 3 prepare "$opens/data" --size 1m --overwrite
ask samples 3 inspect "$reads/data"
ask report 5 report "$asked/data"
ask result 5 run here -d 1s --warm-up 0s --out "$asked/new.jsonl"
ask trace 5 run here -d 1s --warm-up 0s --out traced.jsonl --trace "$asked/new.csv"
ask page 5 run here -d 1s --warm-up 0s --out page.jsonl --html "$asked/new.html"
for name in "${!asks[@]}"; do
  check "$name, which hangs at the first look: it ends" wait_until 60 has_ended "${asks[$name]}"
done
# If there is nothing to keep, the first Ctrl-C ends the command.
env --default-signal=INT "$fathom" report "$asked/data" >"$out" 2>&1 &
process=$!
sleep 1
kill -INT "$process"
check "Ctrl-C in a call that hangs" wait_until 30 has_ended "$process"
umount -l "$asked" "$opens" "$reads"
kill "${servers[@]}"
status=0
wait "$process" || status=$?
check "Ctrl-C in a call that hangs: the exit code" test "$status" -eq 130
for name in "${!asks[@]}"; do
  status=0
  wait "${asks[$name]}" || status=$?
  cp "$FATHOM_BED/asks.$name" "$out"
  sed "s/^/  $name: /" "$out"
  check "$name, which hangs at the first look: the exit code" test "$status" -eq "${codes[$name]}"
  check "$name, which hangs at the first look: it says what does not answer" \
    says "$FATHOM_BED/(asked|opens|reads)/?(data|new)?.*the kernel did not answer"
done

# The output of fathom is not read.
mkfifo unread
exec 5<>unread
dd if=/dev/zero of=unread bs=4k count=64 oflag=nonblock 2>/dev/null || true
env --default-signal=INT "$fathom" run here -d 10m --out unread.jsonl >"$out" 2>unread &
process=$!
# Two signals at once may be one to a process that had no CPU in between.
ends_by_signals() {
  kill -INT "$process" 2>/dev/null || true
  sleep 1
  has_ended "$process"
}
sleep 2
check "Ctrl-C, again if need be, where nobody reads what is said" wait_until 30 ends_by_signals
wait "$process" || true
exec 5>&-
# The same from the middle of a run: the trial is saved before anything is printed about it.
mkfifo silent
exec 5<>silent
env --default-signal=INT "$fathom" run here -d 2s --warm-up 0s --out silent.jsonl >"$out" 2>silent &
process=$!
has_workers() { has_ended "$process" || cat "/proc/$process/task/"*/comm | grep -qE '^fathom-[0-9]+$'; }
check "a run whose output will not be read" wait_until 60 has_workers
dd if=/dev/zero of=silent bs=4k count=64 oflag=nonblock 2>/dev/null || true
dd if=/dev/zero of=silent bs=1 count=8192 oflag=nonblock 2>/dev/null || true
check "nobody reads what is said: the trial is in the file" \
  wait_until 60 bash -c '[[ $(grep -c "\"line\":\"trial\"" silent.jsonl) -eq 1 ]]'
check "nobody reads what is said: Ctrl-C, again if need be, ends it" wait_until 30 ends_by_signals
wait "$process" || true
exec 5>&-
end_attempts
