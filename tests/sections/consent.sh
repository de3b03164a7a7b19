# consent.sh: attempts to overwrite data that the user did not name in the command. Each is refused, and the
# victim does not change by a byte.
source "$FATHOM_ROOT/tests/lib.sh"
require losetup jq mkfs.ext4 mke2fs
require_root

short=(--read-share 0% -d 200ms --warm-up 0s)
disk() { # NAME SIZE [OPTIONS OF losetup...]: a file of random bytes and its loop device, in $loop
  local name=$1 size=$2
  shift 2
  head -c "$size" /dev/urandom >"$name"
  make_loop "$FATHOM_BED/$name" "$@"
}
# An attempt: it is refused with these words, and the file is unchanged.
refused() { # SENTENCE REGEX FILE ARGUMENTS OF fathom
  local sentence=$1 words=$2 file=$3 before
  shift 3
  sync "$file"
  before=$(sha256sum <"$file")
  run_fathom "$@"
  sync "$file"
  # A result that cannot be resumed has its own exit code, and so does a name that does not exist.
  check "$sentence: exit code" status_is 2 3 5
  check "$sentence: says why" says "$words"
  check "$sentence: not a byte differs" test "$(sha256sum <"$file")" = "$before"
}

# A device with content that no table of marks has.
disk unknown 16M
refused "a device of which nothing is known, by --overwrite" "repeat its name in --destroy $loop" unknown \
  run "$loop" "${short[@]}" --overwrite
refused "a device of which nothing is known, by quick" "--destroy $loop" unknown quick "$loop" --overwrite
refused "a device of which nothing is known, by sustain" "--destroy $loop" unknown \
  sustain "$loop" --test iops --overwrite --yes
refused "a device of which nothing is known, by DiskSpd's command line" "--destroy $loop" unknown \
  diskspd -w100 -d1 --overwrite "$loop"
run_fathom run "$loop" "${short[@]}" --destroy "$loop"
check "its name allows it" status_is 0 4

# The user of a device is not always named in the device's own folder of /sys.
disk below 64M
below=$loop
losetup -o 1M -f --show "$below" >above || cannot_run "no loop device over another"
above=$(cat above)
later "losetup -d $above 2>/dev/null"
refused "a device that a loop device shows, attached alone" "part of $above" below \
  run "$below" "${short[@]}" --destroy "$below"
refused "its file" "part of $below" below run below "${short[@]}" --overwrite
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$above"
mkdir mnt
mount "$above" mnt
later "umount $FATHOM_BED/mnt 2>/dev/null"
refused "a device that a mounted loop device shows" "is mounted on .*mnt" below \
  run "$below" "${short[@]}" --destroy "$below"
umount mnt
losetup -d "$above"

# A loop device is known by its file, whatever the file's name now refers to.
mkdir names
head -c 8M /dev/urandom >names/image
ln names/image linked
make_loop "$FATHOM_BED/names/image"
shown=$loop
mount -t tmpfs none names
refused "the file of a loop device, whose name is covered by a mount" "part of $shown" linked \
  run linked "${short[@]}" --overwrite
umount names
rm names/image
head -c 1M /dev/urandom >>linked
refused "the file of a loop device, whose first name was removed, and that grew" "part of $shown" linked \
  run linked "${short[@]}" --overwrite
truncate -s 8M linked
mv "$shown" "$shown.aside"
refused "the file of a loop device without a node" "$shown shows a file of just this size" linked \
  run linked "${short[@]}" --overwrite
mv "$shown.aside" "$shown"
disk "blank " 8M
refused "the file of a loop device, with a blank at its end" "part of $loop" "blank " \
  run "blank " "${short[@]}" --overwrite
mkdir lower upper work merged
if mount -t overlay overlay -o "lowerdir=$FATHOM_BED/lower,upperdir=$FATHOM_BED/upper,workdir=$FATHOM_BED/work" merged
then
  later "umount $FATHOM_BED/merged 2>/dev/null"
  disk merged/image 8M
  refused "the file below a loop device that shows it through an overlay" "part of $loop" upper/image \
    run upper/image "${short[@]}" --overwrite
  losetup -d "$loop"
  make_loop "$FATHOM_BED/upper/image"
  refused "an overlay's file that a loop device shows below it" "part of $loop" merged/image \
    run merged/image "${short[@]}" --overwrite
  losetup -d "$loop"
else
  skip "overlays" "none can be mounted here"
fi
# In its own mount namespace, so that the rest of the system is not affected.
hidden() { unshare -m bash -c 'mount -t tmpfs none /sys/block; exec "$@"' hidden "$fathom" "$@" >"$out" 2>&1; }
before=$(sha256sum <linked)
status=0
hidden run linked "${short[@]}" --overwrite || status=$?
check "a /sys/block that something covers: exit code" status_is 3
check "a /sys/block that something covers: says why" says 'something else is mounted there'
check "a /sys/block that something covers: not a byte differs" test "$(sha256sum <linked)" = "$before"

# The device behind a loop device may also be in use directly.
disk lowest 64M
lowest=$loop
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$lowest"
make_loop "$lowest"
over=$loop
make_loop "$FATHOM_BED/lowest"
beside=$loop
mount -o ro "$lowest" mnt
refused "a loop device that shows a mounted one" "$lowest is mounted on .*mnt" lowest \
  run "$over" "${short[@]}" --destroy "$over"
refused "a loop device that shows the same file as a mounted one" "$lowest is mounted on .*mnt" lowest \
  run "$beside" "${short[@]}" --destroy "$beside"
umount mnt
wait_until_unused "$lowest" || true
losetup -d "$over"
losetup -d "$beside"
members() { # KIND NAME...: a file system over all of these, mounted
  local kind=$1
  shift
  case $kind in
    btrfs) mkfs.btrfs -q -f "$@" && mount -t btrfs "$1" mnt ;;
    xfs) mkfs.xfs -q -f -l logdev="$2" "$1" && mount -t xfs -o logdev="$2" "$1" mnt ;;
  esac
}
disk first 320M
one=$loop
disk second 320M
two=$loop
for kind in btrfs xfs; do
  if members "$kind" "$one" "$two" >/dev/null 2>&1; then
    make_loop "$two"
    run_fathom run "$loop" "${short[@]}" --destroy "$loop"
    check "a loop device over the second device of a mounted $kind: refused" status_is 3
    check "a loop device over the second device of a mounted $kind: says why" says "$two is part of $loop"
    umount mnt
    wait_until_unused "$one" || true
    wait_until_unused "$two" || true
    losetup -d "$loop"
  else
    skip "a loop device over the second device of a mounted $kind" "it cannot be made here"
  fi
done

# An external journal: in use while its file system is mounted, and a user's data before and after that.
disk journal 64M
journal=$loop
disk data 64M
if mke2fs -q -F -O journal_dev "$journal" && mkfs.ext4 -q -F -J device="$journal" "$loop"; then
  refused "an external journal that is not mounted" "--destroy $journal" journal \
    run "$journal" "${short[@]}" --overwrite
  if mount "$loop" mnt; then
    # Its file system writes to the journal meanwhile.
    run_fathom run "$journal" "${short[@]}" --destroy "$journal"
    check "an external journal of a mounted file system: exit code 3" status_is 3
    check "an external journal of a mounted file system: says why" says "--destroy-in-use $journal"
    umount mnt
  else
    skip "an external journal of a mounted file system" "it cannot be mounted here"
  fi
else
  skip "external journals" "mke2fs makes none here"
fi

# A result file gives no consent.
head -c 4M /dev/urandom >mine
head -c 4M /dev/urandom >theirs
run_fathom sweep mine --axis queue-depth=1,2 --read-share 0% -d 100ms --warm-up 0s --overwrite --yes \
  --out sweep.jsonl
head -n 2 sweep.jsonl >begun.jsonl
refused "resume without consent" 'consents to nothing.*fathom resume begun.jsonl --overwrite' mine \
  resume begun.jsonl
check "resume shows where what it writes to lies" says "OVERWRITES $FATHOM_BED/mine: "
head -n 2 sweep.jsonl | sed 's/"mine"/"theirs"/; s/--axis/--html=report.html","--axis/' >crafted.jsonl
refused "resume of a file that names another target" 'another target' theirs resume crafted.jsonl
check "and it writes no report where that says" test ! -e report.html
printf 'root:hush:19000\n' >secret
head -n 2 sweep.jsonl | sed 's/"sweep","mine"/"sweep","--workload","secret","mine"/' >crafted.jsonl
refused "resume of a file that names a secret as its workload" 'crafted.jsonl: the workload.*no longer valid' mine \
  resume crafted.jsonl --overwrite
check "and not a word of the secret is shown" test "$(grep -c hush "$out")" = 0
disk named 16M
head -n 2 sweep.jsonl | sed "s|\"--overwrite\"|\"--destroy\",\"$loop\"|; s|\"mine\"|\"$loop\"|" >device.jsonl
refused "resume of a file with a device and its name in --destroy" 'another target' named resume device.jsonl
# A name in --destroy is resolved in the current folder, not in the folder that the file names.
mkdir here there
head -c 4M /dev/urandom >here/disk
head -c 4M /dev/urandom >there/disk
cd there
run_fathom sweep disk --axis queue-depth=1,2 --read-share 0% -d 100ms --warm-up 0s --overwrite --yes --out sweep.jsonl
cd ..
head -n 2 there/sweep.jsonl >here/crafted.jsonl
cd here
refused "resume with a name of this folder, in a file that tells another one" 'not one of the targets' \
  ../there/disk resume crafted.jsonl --destroy disk
refused "resume with a name that leads to nothing here" 'leads to nothing from this folder' \
  ../there/disk resume crafted.jsonl --destroy elsewhere
run_fathom resume crafted.jsonl --destroy ../there/disk
check "resume with the name of what the file means goes on to its end" status_is 0 4
cd ..
run_fathom resume begun.jsonl --overwrite
check "resume with the consent typed again goes on to its end" status_is 0 4
check "and all trials are there" test "$(grep -c '"line":"trial"' begun.jsonl)" = 2

# Two resumes of one result. The second one is refused before it reads, and no trial is lost.
begin_four() { # FILE DURATION: a sweep of four trials, of which the first is done
  # Two depths are not a curve. A restless point of a curve would be measured again.
  run_fathom sweep mine --axis queue-depth=1,2 --repeats 2 -d "$2" --warm-up 0s --seed 1 --yes --out "$1.whole"
  head -n 2 "$1.whole" >"$1"
  rm "$1.whole"
}
four_once() { # FILE: each trial is there, and once
  [[ $(jq -c 'select(.line == "trial") | .place' "$1" | sort -u | wc -l) -eq 4 ]] &&
    [[ $(grep -c '"line":"trial"' "$1") -eq 4 ]]
}
begin_four shared.jsonl 3s
"$fathom" resume shared.jsonl >first.txt 2>&1 &
process=$!
check "a resume that goes on" wait_until 60 bash -c '[[ $(grep -c "\"line\":\"trial\"" shared.jsonl) -ge 2 ]]'
run_fathom resume shared.jsonl
check "a second resume of the same file: refused" status_is 5
check "a second resume of the same file: says why" says 'another process still writes it'
status=0
wait "$process" || status=$?
check "a second resume of the same file: the first one goes on to its end" status_is 0 4
check "a second resume of the same file: no trial is lost or measured twice" four_once shared.jsonl
for round in 1 2; do
  begin_four shared.jsonl 100ms
  pids=()
  for one in 1 2 3; do
    "$fathom" resume shared.jsonl >"resumed.$one" 2>&1 &
    pids+=($!)
  done
  statuses=
  for one in "${pids[@]}"; do
    status=0
    wait "$one" || status=$?
    statuses+=" $status"
  done
  cat resumed.?
  # A resume that came too late found the sweep finished.
  check "three resumes at once, round $round: one goes on ($statuses)" \
    test "$(tr ' ' '\n' <<<"$statuses" | grep -cx '[04]')" -eq 1 -a "$(tr ' ' '\n' <<<"$statuses" | grep -cx 5)" -eq 2
  check "three resumes at once, round $round: no trial is lost or measured twice" four_once shared.jsonl
done

# The target that was checked is the target that is written, whatever is exchanged meanwhile. One of two names
# belongs to a file that must not be written. The names are exchanged as fast as the kernel can, and no run
# may touch that file.
case $(uname -m) in x86_64) renameat2=316 ;; aarch64 | riscv64) renameat2=276 ;; *) renameat2= ;; esac
if [[ -n $renameat2 ]] && command -v perl >/dev/null; then
  exchanged() { # KIND ONE OTHER RUNS ARGUMENTS...: what was called OTHER stays as it was
    local kind=$1 one=$2 other=$3 runs=$4 touched=0 odd= before exchanger
    shift 4
    for ((; runs > 0; runs--)); do
      "made_$kind"
      exec 7<"$other"
      before=$(sha256sum </dev/fd/7)
      perl -e 'my ($call, $one, $other) = @ARGV;
        while (getppid != 1) { syscall(0 + $call, -100, $one, -100, $other, 2) for 1 .. 100 }' \
        "$renameat2" "$one" "$other" &
      exchanger=$!
      sleep 0.02
      run_fathom "$@"
      status_is 0 2 3 4 || odd+=" $status"
      kill "$exchanger"
      wait "$exchanger" 2>/dev/null || true
      sync
      [[ $(sha256sum </dev/fd/7) = "$before" ]] || touched=$((touched + 1))
      exec 7<&-
    done
    check "$kind that is exchanged all the time: what must not be written to is touched in no run" test "$touched$odd" = 0
  }
  mkdir exchange
  cd exchange
  # Another name outside the folder, or a loop device, forbids the write.
  made_file() {
    rm -f ours theirs
    head -c 1M /dev/urandom >ours
    [[ -e used ]] || { head -c 1M /dev/urandom >used; make_loop "$FATHOM_BED/exchange/used"; }
    ln used theirs
  }
  made_entry() {
    rm -rf folder theirs outside
    mkdir folder
    head -c 1M /dev/urandom >folder/entry
    head -c 1M /dev/urandom >theirs
    ln theirs outside
  }
  made_created() {
    rm -f created theirs
    head -c 1M /dev/urandom >theirs
  }
  exchanged file ours theirs 8 run ours "${short[@]}" --overwrite
  exchanged entry folder/entry theirs 8 run folder "${short[@]}" --destroy folder
  exchanged created created theirs 3 diskspd -c1M -w100 -d1 -W0 created
  cd ..
else
  skip "files that are exchanged while they are opened" "perl is missing, or this machine's renameat2 is unknown"
fi

# The result is removed or replaced while it is written.
"$fathom" sweep mine --axis queue-depth=1,2,3,4,5,6 -d 2s --warm-up 0s --out gone.jsonl >"$out" 2>&1 &
process=$!
trials() { [[ -f gone.jsonl ]] && [[ $(grep -c '"line":"trial"' gone.jsonl) -ge 1 ]]; }
check "a sweep that goes on" wait_until 60 trials
rm gone.jsonl
echo "somebody else's" >gone.jsonl
wait "$process" || true
check "a result that was replaced: it says so" says 'gone.jsonl: .*somebody has removed, moved or replaced it.*is saved in .*gone.jsonl.saved-1'
# A restless point is measured again, so a point may have more than one trial.
check "a result that was replaced: what was measured is saved" test \
  "$(jq -c 'select(.line == "trial") | .place.coordinates' gone.jsonl.saved-1 | sort -u | wc -l)" = 6
check "a result that was replaced: what took its place stays" test "$(cat gone.jsonl)" = "somebody else's"

# Inodes of 128 bytes have no birth time, and their numbers are reused.
truncate -s 32M unborn
if mkfs.ext4 -q -F -I 128 unborn 2>/dev/null && mount -o loop unborn mnt; then
  later "umount $FATHOM_BED/mnt 2>/dev/null"
  head -c 4M /dev/urandom >mnt/mine
  run_fathom sweep mnt/mine --axis queue-depth=1,2 --read-share 0% -d 100ms --warm-up 0s --overwrite --yes \
    --out unborn.jsonl
  head -n 2 unborn.jsonl >again.jsonl
  number=$(stat -c %i mnt/mine)
  rm mnt/mine
  head -c 4M /dev/urandom >mnt/mine
  if [[ $(stat -c %i mnt/mine) = "$number" ]]; then
    refused "resume on another file with the inode's number of the first" 'another target now' mnt/mine \
      resume again.jsonl --overwrite
  else
    skip "an inode's number that comes again" "it does not here"
  fi
  umount mnt
else
  skip "files without a time of birth" "no such file system can be made here"
fi

# fathom's results in a folder are not targets, and none is overwritten while it is being written.
mkdir results
head -c 4M /dev/urandom >results/data
cp sweep.jsonl results/plain
"$fathom" sweep mine --axis queue-depth=1,2,3,4 -d 8s --warm-up 0s --out results/now.fathom.jsonl \
  >now.txt 2>&1 &
process=$!
check "a sweep that writes its result into a folder" wait_until 60 \
  bash -c '[[ $(wc -l <results/now.fathom.jsonl) -ge 2 ]]'
refused "a result that a fathom writes, named by itself" 'a result that a fathom is writing' results/plain \
  run results/now.fathom.jsonl "${short[@]}" --size 4k --overwrite
run_fathom run results "${short[@]}" --destroy results
check "results in a folder that is written to: the rest of it is written" status_is 0 4
check "results in a folder that is written to: they are named" says 'results/plain is left out: it is a result'
check "results in a folder that is written to: the one that is written too" \
  says 'results/now.fathom.jsonl is left out'
check "results in a folder that is written to: not a byte differs" cmp sweep.jsonl results/plain
wait "$process" || true
check "results in a folder that is written to: all trials are in the one that was written" test \
  "$(grep -c '"line":"trial"' results/now.fathom.jsonl)" -ge 4

# Two Ctrl-C remove only fathom's own files.
env --default-signal=INT "$fathom" run mine -d 60s --warm-up 60s --out doomed.jsonl >"$out" 2>&1 &
process=$!
check "a run that has begun" wait_until 60 test -s doomed.jsonl
rm doomed.jsonl
echo "somebody else's" >doomed.jsonl
kill -INT "$process"
sleep 0.2
kill -INT "$process" 2>/dev/null || true
wait "$process" || true
check "Ctrl-C twice: what took a result's name stays" test "$(cat doomed.jsonl)" = "somebody else's"

# Reports overwrite nothing.
for option in html csv svg png; do
  echo "kept" >taken
  # One of the charts, so that the image has the given name.
  chart=()
  [[ $option != [sp][vn]g ]] || chart=(--chart iops)
  run_fathom report sweep.jsonl "--$option" taken "${chart[@]}"
  check "report --$option on a file that exists: refused" status_is 5
  check "report --$option on a file that exists: it stays" test "$(cat taken)" = kept
  run_fathom report sweep.jsonl "--$option" sweep.jsonl "${chart[@]}"
  check "report --$option on its own input: refused" status_is 2 5
done

# The programs that have the file open are named.
sleep 600 3<>theirs &
process=$!
wait_until 60 grep -q sleep "/proc/$process/comm"
run_fathom run theirs "${short[@]}" --overwrite
check "who has a file open is told" says "theirs is in use by sleep \($process, open for writing\)"
kill "$process" || true

# A program that opens the target during a sweep is reported. It stops the sweep if the sweep must not
# continue.
head -c 4M /dev/urandom >long
sweeping() { # RESULT OPTIONS...: a sweep of which a trial is in the file, stopped there, as $process
  local result=$1
  shift
  "$fathom" sweep "$@" --axis queue-depth=1,2,3,4,5,6 --read-share 0% -d 1s --warm-up 0s --yes \
    --out "$result" >"$out" 2>&1 &
  process=$!
  wait_until 60 bash -c "[[ \$(grep -c '\"line\":\"trial\"' $result) -ge 1 ]]"
  kill -STOP "$process"
}
ends() { # the sweep goes on to its end, with its status in $status
  status=0
  kill -CONT "$process"
  wait "$process" || status=$?
  sed 's/^/  /' "$out"
}
sweeping opened.jsonl long --overwrite
sleep 600 3<>long &
reader=$!
ends
kill "$reader" || true
check "who opens a target in the middle of a sweep is told" says "long is in use by sleep \($reader, open for writing\)"
check "and once" test "$(grep -c 'long is in use by' "$out")" -eq 1
check "and the sweep goes on to its end" status_is 0 4
sweeping shown.jsonl long --overwrite
make_loop "$FATHOM_BED/long"
ends
check "a target that a loop device shows in the middle of a sweep: exit code" status_is 3
check "a target that a loop device shows in the middle of a sweep: says why" says "part of $loop"
check "a target that a loop device shows in the middle of a sweep: the trials before are kept" test \
  "$(jq -s '[.[] | select(.line == "trial")] | length' shown.jsonl)" -ge 1
first=$loop
sweeping above.jsonl "$first" --destroy "$first"
make_loop "$first"
ends
check "a device that a loop device shows in the middle of a sweep: exit code" status_is 3
check "a device that a loop device shows in the middle of a sweep: says why" says "$first is part of $loop"
losetup -d "$loop"
losetup -d "$first"
