# bad-input.sh: input that fathom must refuse. Each refusal is a clear error with its exit code, and the
# target does not change by a byte.
source "$FATHOM_ROOT/tests/lib.sh"
require jq

# Refused with this exit code, in one message that names the target and the reason.
refused() { # NAME CODE REGEX ARGUMENTS...
  local name=$1 code=$2 words=$3
  shift 3
  run_fathom "$@"
  check "$name: exit code $code" status_is "$code"
  check "$name: says why" says "$words"
  check "$name: no panic" bash -c "! grep -qi panicked '$out'"
}
write=(--read-share 0% --overwrite -d 1s --warm-up 0s)

head -c 8M /dev/urandom >file
mkdir folder
refused "a missing path" 3 'missing.*(no such|not exist|not found)' run missing
refused "a folder as a file" 3 'folder' run folder
refused "a target named twice" 2 'same as file' run file ./file
refused "a simulated device that is none" 2 'nonsense' run sim:nonsense
refused "no target" 2 'target' run
refused "a size larger than the file" 2 '8 MiB' run file --size 1g
refused "an offset behind the end" 2 '8 MiB' run file --offset 8m
refused "a block that is no multiple of the sector" 2 'multiple' run file -b 1000
refused "an unknown backend" 2 'backend' run file --backend magic
refused "arrivals in a closed loop" 2 'arrivals' run file --arrivals poisson
refused "writes that nobody allowed" 3 'overwrite' run file --read-share 50%
refused "overwriting by reads alone" 2 'overwrite' run file --overwrite
refused "a size that is none" 2 'size' run file --size lots
: >empty
refused "an empty file" 3 'empty' run empty -d 1s
refused "inspecting what is missing" 3 'missing' inspect missing
refused "preparing more than the disk has" 2 'space|free|room' prepare huge --size 900t
check "nothing is left of it" test ! -e huge
refused "preparing over somebody's file" 3 'overwrite' prepare file --size 16m
refused "reporting on what is no result" 5 'file' report file
refused "reporting on nothing" 5 'empty' report empty
mkfifo pipe
refused "reporting on a pipe that nobody writes to" 5 'nothing came out of the pipe' report pipe
refused "importing what has no end" 5 'a device' import /dev/zero
truncate -s 1T endless
refused "importing a terabyte of nothing" 5 'none has more' import endless
refused "reporting on a terabyte of nothing" 5 'endless' report endless
evil=$(printf 'evil\033]0;title\007\302\2332J\nerror: forged')
ln -s file "$evil"
harmless() { ! LC_ALL=C grep -q $'[\033\007\233]\|^error: forged' "$out"; }
for words in "run -d 100ms --warm-up 0s" "quick -d 100ms --warm-up 0s" inspect plan report import \
  "run file --size" study "diskspd -d1 -W0"; do
  # shellcheck disable=SC2086 # They are words.
  run_fathom $words "$evil"
  check "$words: a name steers no terminal and forges no line" harmless
done
rm -f "$evil" ./*.fathom.jsonl ./*.html
refused "more threads than there can be" 2 'threads' run file --backend sync -q 32768 -d 1s
for limit in "-n 4" "-n 8" "-v 60000" "-f 0" "-s 256"; do
  status=0
  # shellcheck disable=SC2086 # A limit and its value. A pipe takes the output: a file would be limited too.
  (ulimit $limit && exec "$fathom" run file -d 200ms --warm-up 0s --out limited.jsonl) 2>&1 | cat >"$out" ||
    status=${PIPESTATUS[0]}
  cat "$out"
  check "ulimit $limit: a refusal, no panic and no signal" status_is "2 3 5"
  check "ulimit $limit: says which" says 'ulimit|File too large'
done
rm -f limited.jsonl
echo precious >kept.jsonl
refused "a result that would overwrite another" 5 'kept.jsonl' run file -d 200ms --warm-up 0s --out kept.jsonl
check "the other result is as it was" grep -qx precious kept.jsonl
refused "a result in a folder that is missing" 5 'nowhere' run file -d 200ms --warm-up 0s --out nowhere/r.jsonl
# More input than any program writes. The address space is limited to a fiftieth of what the input would take.
bounded() { # NAME COMMAND...: what it writes is imported within these bounds
  local name=$1
  shift
  status=0
  # The writer must not fail because its output is not read to the end.
  { "$@" 2>/dev/null || true; } | (ulimit -v 262144 && exec "$fathom" import /dev/stdin --out bounded.jsonl) >"$out" 2>&1 || status=$?
  cat "$out"
  check "$name: refused within 256 MiB" status_is 2 5
  check "$name: says why" says '^error: /dev/stdin: .*'
  check "$name: leaves no result" test ! -e bounded.jsonl
}
a_string() { printf '{"fio version":"'; head -c 1G /dev/zero | tr '\0' x; printf '"}'; }
jobs_without_end() { printf '{"fio version":"fio-3.33","jobs":['; yes '{"jobname":"a"},' | head -n 2000000; printf '{"jobname":"b"}]}'; }
bounded "a string of 1 GB" a_string
bounded "2 million jobs" jobs_without_end
check "a refused run leaves no result behind" test -z "$(find . -name '*.fathom.jsonl')"

if [[ $EUID -ne 0 ]]; then
  skip "devices that are in use" "loop devices and mounts need root"
  exit 0
fi
require losetup mkfs.ext4

mkdir locked
chmod 0 locked
if command -v setpriv >/dev/null; then
  as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
  chmod 755 "$FATHOM_BED" "$(dirname "$FATHOM_BED")"
  cp "$fathom" fathom-for-all
  mkdir -m 777 public
  status=0
  as_nobody ./fathom-for-all quick locked --size 8m --out public/r.jsonl >"$out" 2>&1 || status=$?
  cat "$out"
  check "a folder without permission: exit code 3" status_is 3
  check "a folder without permission: says so" says 'permission'
  chmod 666 file
  as_one_process() { as_nobody bash -c 'ulimit -u 1 && exec "$@"' as-one "$@"; }
  for words in "run file -d 200ms --warm-up 0s" "run sim:ssd -d 1s" "quick public --size 8m" "prepare public/new --size 1m"; do
    status=0
    # shellcheck disable=SC2086 # They are words.
    as_one_process ./fathom-for-all $words >"$out" 2>&1 || status=$?
    cat "$out"
    check "ulimit -u 1, ${words%% *}: a refusal, no panic and no signal" status_is 3
    check "ulimit -u 1, ${words%% *}: says which" says 'ulimit -u'
  done
  check "ulimit -u 1: nothing is left behind" test -z "$(ls -A public)"
fi

# A control group with one process, and so without a spare thread.
pids=/sys/fs/cgroup/pids/$cgroup_name
[[ -d /sys/fs/cgroup/pids ]] || pids=/sys/fs/cgroup/$cgroup_name
if mkdir "$pids" 2>/dev/null && [[ -e $pids/pids.max ]]; then
  later "rmdir $pids"
  echo 1 >"$pids/pids.max"
  for words in "run file -d 200ms --warm-up 0s" "run sim:ssd -d 1s" "quick public --size 8m" "report file"; do
    status=0
    # shellcheck disable=SC2086 # They are words.
    bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$pids" "$fathom" $words >"$out" 2>&1 || status=$?
    cat "$out"
    check "pids.max 1, ${words%% *}: a refusal, no panic and no signal" status_is 3
    check "pids.max 1, ${words%% *}: says which" says 'pids.max'
  done
else
  rmdir "$pids" 2>/dev/null || true
  skip "pids.max 1" "no control group with this limit can be made here"
fi

# The pages that the kernel has swapped out so far. It writes them to an active swap by itself.
swapped_out() { awk '$1 == "pswpout" { print $2 }' /proc/vmstat; }

# A device that contains or serves something: refused, named, unchanged.
protects() { # NAME REGEX DEVICE FILE
  local before after swapped attempt
  for attempt in 1 2 3 4 5 6 7 8 9 10; do
    swapped=$(swapped_out)
    sync
    before=$(sha256sum <"$4")
    "$fathom" run "$3" "${write[@]}" >/dev/null 2>&1 || true
    sync
    after=$(sha256sum <"$4")
    [[ $after != "$before" && $(swapped_out) != "$swapped" ]] || break
    echo "the kernel swapped while attempt $attempt was looked at"
  done
  check "$1: not a byte differs" test "$after" = "$before"
  refused "$1" 3 "$2" run "$3" "${write[@]}"
  check "$1: names the device" says "$(basename "$3")"
}
disk() { # NAME SIZE: a file and its loop device, in $loop
  truncate -s "$2" "$1"
  make_loop "$FATHOM_BED/$1"
}

disk ext4 64M
# The kernel has nothing left to initialize after the mount.
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$loop"
protects "an ext4 signature" 'ext' "$loop" ext4
refused "the name of another device in --destroy" 2 'destroy' run "$loop" "${write[@]}" --destroy /dev/other
mkdir mnt
mount "$loop" mnt
later "umount $FATHOM_BED/mnt 2>/dev/null"
protects "a mounted device" "mounted.*mnt|mnt.*mounted" "$loop" ext4
mount -o remount,ro mnt
refused "a read-only file system" 3 'read-only' quick mnt --size 8m
refused "preparing on a read-only file system" 3 'read-only' prepare mnt/file --size 1m
umount mnt
wait_until_unused "$loop" || true
run_fathom run "$loop" "${write[@]}" --destroy "$loop"
# Void is right too: this loop device writes into the page cache.
check "its name repeated in --destroy allows it" status_is 0 4
check "and then it is written" bash -c "! cmp -s <(head -c 1M '$loop') <(head -c 1M /dev/zero)"

if command -v mkfs.xfs >/dev/null; then
  disk xfs 320M
  mkfs.xfs -q "$loop"
  protects "an xfs signature" 'xfs' "$loop" xfs
fi
if command -v mkfs.btrfs >/dev/null; then
  disk btrfs 128M
  mkfs.btrfs -q "$loop"
  protects "a btrfs signature" 'btrfs' "$loop" btrfs
fi
disk swap 64M
mkswap "$loop" >/dev/null
protects "a swap signature" 'swap' "$loop" swap
if swapon "$loop"; then
  later "swapoff $loop 2>/dev/null"
  protects "an active swap" 'swap' "$loop" swap
  swapoff "$loop"
else
  skip "an active swap" "swapon does not work here"
fi
# The labels are written by hand: their tools are large, and only the marks matter.
disk lvm 64M
printf 'LABELONE\1\0\0\0\0\0\0\0\0\0\0\0 \0\0\0LVM2 001' | dd of="$loop" bs=512 seek=1 conv=notrunc status=none
protects "an LVM label" 'LVM' "$loop" lvm
disk md 64M
printf '\xfc\x4e\x2b\xa9\1\0\0\0' | dd of="$loop" bs=4096 seek=1 conv=notrunc status=none
protects "a member of an md array" 'md' "$loop" md
disk table 64M
printf 'label: gpt\n,16M\n' | sfdisk -q "$loop" && protects "a partition table" 'partition' "$loop" table

disk empty-disk 64M
refused "a size larger than the disk" 2 '64 MiB' run "$loop" --size 1g
refused "a block that is no multiple of the disk's sector" 2 'multiple|sector' run "$loop" -b 700
losetup --sector-size 4096 --find --show empty-disk >sector-loop && {
  big=$(cat sector-loop)
  later "losetup -d $big"
  refused "a block of 512 bytes on sectors of 4096" 2 'multiple|sector' run "$big" -b 512
}
blockdev --setro "$loop"
refused "a read-only device" 3 'read-only' run "$loop" "${write[@]}"
blockdev --setrw "$loop"
