# kill.sh: whatever ends fathom, what it has measured stays readable, and no scratch file stays.
source "$FATHOM_ROOT/tests/lib.sh"
require jq

mkdir work
small=(--size 32m --duration 300ms --warm-up 100ms)
trials_in() { grep -c '"line":"trial"' "$1" 2>/dev/null || true; }
scratch_files() { find "$1" -name '.fathom-scratch-*'; }
# The journal is readable, with at least so many trials.
readable() { # FILE TRIALS
  run_fathom report "$1"
  status_is 0 && jq -se 'length > 0' <(head -n "$(($2 + 1))" "$1") >/dev/null &&
    [[ $(trials_in "$1") -ge $2 ]]
}
start() { # RESULT ARGUMENTS...: fathom in the background, as $pid
  local result=$1
  shift
  # A shell without job control starts its background jobs with SIGINT ignored, and fathom would
  # rightly leave it ignored: env gives it the default.
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
  # Anywhere from before the scratch file to the third trial.
  moment=$((RANDOM % 2500))
  name="SIG$signal after $moment ms of quick"
  rm -f r.jsonl r.html
  start r.jsonl quick work "${small[@]}"
  sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
  kill -"$signal" "$pid" 2>/dev/null || true
  ended
  check "$name: exit code" status_is 130 143 0
  check "$name: the scratch file is gone" test -z "$(scratch_files work)"
  if [[ -s r.jsonl ]]; then check "$name: the result is readable" readable r.jsonl 0; fi
done

run_fathom prepare data --size 32m
start run.jsonl run data -d 60s --warm-up 0s
sleep 1.5
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
  kill -KILL "$pid"
  before=$(trials_in killed.jsonl)
  ended
  check "kill -9, round $round: the result is readable with its $before trials" readable killed.jsonl "$((round - 1))"
done
left=$(scratch_files work)
check "kill -9: a scratch file is left" test -n "$left"
rm -f next.jsonl
run_fathom quick work "${small[@]}" --out next.jsonl
check "kill -9: the next quick works" status_is 0
check "kill -9: the next quick names the leftover" says "$(basename "$(head -n 1 <<<"$left")")"
check "kill -9: and leaves it alone unasked" test "$(scratch_files work)" = "$left"
rm -f next.jsonl next.html
run_fathom quick work "${small[@]}" --out next.jsonl --remove-leftovers
check "kill -9: it removes the leftovers when asked to" test -z "$(scratch_files work)"
check "a torn last line is accepted" bash -c "head -c -100 next.jsonl >torn.jsonl && '$fathom' report torn.jsonl >/dev/null"

if [[ $EUID -ne 0 ]]; then
  skip "full disks" "mounts need root"
  exit 0
fi
mkdir full
mount -t tmpfs -o size=8m tmpfs full
later "umount $FATHOM_BED/full"
start full/r.jsonl quick work "${small[@]}"
wait_until 60 bash -c 'grep -q "\"line\":\"trial\"" full/r.jsonl'
dd if=/dev/zero of=full/filler bs=64k status=none 2>/dev/null || true
ended
check "the result's disk is full: exit code 5" status_is 5
check "the result's disk is full: names the file" says 'full/r\.'
check "the result's disk is full: finished trials are readable" readable full/r.jsonl 1
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
