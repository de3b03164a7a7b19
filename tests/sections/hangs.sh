# hangs.sh: a target that hangs in the middle. Whatever carries the I/Os, also where the thread that
# makes the call is gone with it: what was measured is judged and in the result file, each lost I/O
# with its place, and nobody has to wait for the target.
source "$FATHOM_ROOT/tests/lib.sh"
require jq
[[ -w /dev/fuse ]] || cannot_run "/dev/fuse is missing or not writable"

# The 256 samples of what will be read come before.
AFTER=2000
# A loop device that hangs cannot be asked what it shows, and fathom rightly refuses to write to any file
# of just its size: no other section has one of this size.
SIZE=71303168
result=$FATHOM_BED/hangs.jsonl
process=
# Whether the target is a loop device over the file that hangs, instead of that file.
on_loop=0

lines() { [[ -f $result ]] && [[ $(wc -l <"$result") -ge $1 ]]; }
of_trial() { sed -n 2p "$result" | jq -r "$1"; }
it_hangs() { grep -q hangs "$FATHOM_BED/hangs.log"; }

# Starts fathom on a file that hangs after a while.
hang() { # NAME FAULTS -- OPTIONS...
  local faults=() folder=$FATHOM_BED/hangs-$1
  shift
  while [[ $1 != -- ]]; do faults+=("$1"); shift; done
  shift
  serve_faults "$folder" "size=$SIZE" "${faults[@]}" 2>"$FATHOM_BED/hangs.log"
  rm -f "$result"
  local target=$folder/data
  if [[ $on_loop -eq 1 ]]; then
    make_loop "$target" --direct-io=on || make_loop "$target"
    target=$loop
  fi
  env --default-signal=INT "$fathom" run "$target" --out "$result" --warm-up 0s --seed 1 "$@" >"$out" 2>"$out.err" &
  process=$!
}

# What must be in the file, long before the target lets go of anything.
kept() { # NAME LOST
  check "$1: the trial and a conclusion are in the file while the target hangs" lines 3
  check "$1: lost I/Os are counted" test "$(of_trial '[.workers[].ledger.lost] | add')" -eq "$2"
  check "$1: each of them is there with its offset and with when it started" test "$(of_trial \
    '[.workers[].errors.first[]? | select(.failure == "lost") | select(.offset_bytes >= 0 and .at_ns >= 0)] | length')" -eq "$2"
  check "$1: what was done before is in it" test "$(of_trial '[.workers[].ledger | .completed] | add')" -gt 100
  check "$1: every I/O is accounted for" test "$(of_trial '[.workers[].ledger | .due ==
    .completed_in_warm_up + .completed + .failed + .in_flight + .lost + .unstarted] | all')" = true
  check "$1: void" test "$(of_trial .verdict)" = void
}

# Ends the server, so that the kernel lets go, and looks how fathom ended.
let_go() { # NAME STATUS
  local status=0
  umount -l "$FATHOM_BED/hangs-$1" 2>/dev/null || true
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  wait "$process" || status=$?
  check "$1: the exit code is $2" test "$status" -eq "$2"
  check "$1: it says that something hangs" grep -q "as soon as the kernel lets go" "$out.err"
  check "$1: no panic" test "$(grep -c panicked "$out.err")" -eq 0
}

# Ctrl-C twice ends it at once.
twice() { # NAME LOST FAULTS... -- OPTIONS...
  local name=$1 lost=$2
  shift 2
  hang "$name" "$@" -d 10m
  wait_until 60 it_hangs || true
  # So that an interval ends in which nothing comes back.
  sleep 0.5
  kill -INT "$process"
  sleep 0.2
  kill -INT "$process"
  wait_until 30 lines 3 || true
  kept "$name" "$lost"
  let_go "$name" 130
}

twice sync-1 1 hang-at=$AFTER -- -q 1 --backend sync
twice sync-4 4 hang-at=$AFTER -- -q 4 --backend sync
twice uring 4 hang-at=$AFTER -- -q 4 --backend uring
twice uring-buffered 4 hang-at=$AFTER cached=1 -- -q 4 --backend uring --buffered
twice aio 4 hang-at=$AFTER -- -q 4 --backend aio
twice aio-buffered 4 hang-at=$AFTER cached=1 -- -q 4 --backend aio --buffered
twice mmap 1 hang-at=600 cached=1 -- -q 1 --mmap
twice fsync 1 hang-fsync=1 -- -q 1 --backend sync --read-share 0% --overwrite --fsync 200

# A block device: there the kernel lets go of nothing until the device does.
if [[ $EUID -eq 0 ]] && command -v losetup >/dev/null; then
  on_loop=1
  twice loop-sync 1 hang-at=4000 -- -q 1 --backend sync
  twice loop-uring 4 hang-at=4000 -- -q 4 --backend uring
  on_loop=0
else
  skip "a block device that hangs" "loop devices need root and losetup"
fi

# Patience: as long as any I/O in flight at the end is waited for, and nobody touches the keyboard.
hang patience hang-at=$AFTER -- -q 1 --backend sync -d 1s
wait_until 90 lines 3 || true
kept patience 1
let_go patience 4

# What cannot be opened is no trial, and an error in words.
hang opening hang-open=1 -- -q 1 -d 1s
wait_until 90 grep -q error: "$out.err" || true
check "a file whose opening hangs: an error says so" grep -q "the kernel did not answer" "$out.err"
let_go opening 3

# A server that is gone as a whole answers no question either: not the one whether the target is still
# the same file, nor that of its end.
twice gone-uring 4 hang-all-at=$AFTER -- -q 4 --backend uring
twice gone-sync 1 hang-all-at=$AFTER -- -q 1 --backend sync
hang gone hang-all-at=$AFTER -- -q 4 --backend aio -d 1s
wait_until 90 lines 3 || true
kept gone 4
let_go gone 4

# Nothing is answered from the first question on, whatever the command asks.
asked=$FATHOM_BED/asked
serve_faults "$asked" hang-all-at=0 2>"$FATHOM_BED/hangs.log"
servers=("$server")
# Here only the opening, or only what is read, is not answered.
opens=$FATHOM_BED/opens reads=$FATHOM_BED/reads
serve_faults "$opens" hang-open=1 2>"$FATHOM_BED/hangs.log"
servers+=("$server")
serve_faults "$reads" hang-at=0 2>"$FATHOM_BED/hangs.log"
servers+=("$server")
head -c 4M /dev/urandom >here
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
ask page 5 run here -d 1s --warm-up 0s --out page.jsonl --html "$asked/new.html"
# Where a thread hangs in the kernel, the process is there until its server lets it go.
has_ended() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null; }
for name in "${!asks[@]}"; do
  check "$name, which hangs at the first look: it ends" wait_until 60 has_ended "${asks[$name]}"
done
# The first Ctrl-C is the end where there is nothing to keep.
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

# Nobody reads what is said.
mkfifo unread
exec 5<>unread
dd if=/dev/zero of=unread bs=4k count=64 oflag=nonblock 2>/dev/null || true
env --default-signal=INT "$fathom" run here -d 10m --out unread.jsonl >"$out" 2>unread &
process=$!
sleep 2
kill -INT "$process"
sleep 0.5
kill -INT "$process"
check "Ctrl-C twice where nobody reads what is said" wait_until 30 has_ended "$process"
wait "$process" || true
exec 5>&-
