# io-wq.sh: I/Os that io_uring hands to its own threads are reported, with their number if it can be counted.
# Files in memory are opened so that no I/O is handed over.
source "$FATHOM_ROOT/tests/lib.sh"
require jq losetup mkfs.ext4
require_root
# A run on /dev/zero shows whether io_uring works here at all.
measure /dev/zero -b 4k --buffered --backend uring --stop-after 1000ios
[[ $status -eq 0 ]] || cannot_run "io_uring does not work here"

mkdir memory disk
mount -t tmpfs -o size=80m,mode=777 fathom-test "$FATHOM_BED/memory"
later "umount '$FATHOM_BED/memory'"
truncate -s 160M image
mkfs.ext4 -q image
make_loop image
mount "$loop" "$FATHOM_BED/disk"
later "umount '$FATHOM_BED/disk'"
chmod 777 memory disk
for file in memory/data disk/data; do
  run_fathom prepare "$file" --size 32m
  chmod 666 "$file"
done
# The file systems that fathom could mount to count. Other programs may mount others meanwhile.
mounts() { grep -E ' - (tracefs|debugfs|securityfs|bpf) ' /proc/self/mountinfo; }
mounts_before=$(mounts || true)

load=(-b 4k --warm-up 200ms -d 1s)
has_finding() { [[ $(trial '[.findings[].code] | index("io-wq") != null') == true ]]; }
has_none() { ! has_finding; }
found() { trial '.findings[] | select(.code == "io-wq") | .evidence'; }
handed_over() { trial .counters.io_wq.handed_over; }
counts=0

# The ring's threads are visible if they do all the work: the kernel never starts a buffered write on ext4
# without them.
# The counter is read when a CPU is free for it: in ten seconds that makes no difference.
measure disk/data -b 4k --warm-up 200ms -d 10s --buffered --read-share 0% --queue-depth 4 --overwrite
check "buffered writes on ext4: the run is measured" status_is 0
check "buffered writes on ext4: the verdict tells" has_finding
check "buffered writes on ext4: it is suspect" \
  test "$(trial '.findings[] | select(.code == "io-wq") | .severity')" = suspect
check "buffered writes on ext4: the report shows it" says "io_uring's own threads"
check "buffered writes on ext4: the threads' CPU time is known" test "$(trial .counters.io_wq.cpu_ns)" -gt 0
if [[ $(handed_over) != null ]]; then
  counts=1
  check "buffered writes on ext4: all of them are counted" \
    between "$(trial '.counters.io_wq.handed_over / ios')" 0.95 1.05
  check "buffered writes on ext4: the evidence has their number" \
    grep -qE '^[0-9,]+ of [0-9,]+ I/Os \((9[0-9.]*|100) %\)' <<<"$(found)"
else
  skip "handed over I/Os are counted" "this kernel or container does not let root count them"
fi

# Direct I/O to the same file needs no threads.
measure disk/data "${load[@]}" --queue-depth 4
check "direct reads on ext4: nothing to tell" has_none
[[ $counts -eq 0 ]] || check "direct reads on ext4: none was handed over" \
  between "$(trial '.counters.io_wq.handed_over / ios')" 0 0.001

# Without O_NONBLOCK, every one of these I/Os would be handed over. Swapped-out pages are left alone, and a
# neighbor may have swap for a moment.
in_swap() { awk '/^SwapTotal/ { total = $2 } /^SwapFree/ { free = $2 } END { print total - free }' /proc/meminfo; }
swapped_out() { awk '/^pswpout/ { print $2 }' /proc/vmstat; }
for access in "--read-share 100%" "--read-share 0% --overwrite"; do
  for depth in 1 32; do
    what="a file in memory, $access, queue depth $depth"
    used=$(in_swap) before=$(swapped_out)
    # shellcheck disable=SC2086
    measure memory/data "${load[@]}" --queue-depth "$depth" $access
    if [[ $used -ne 0 || $(swapped_out) != "$before" ]]; then
      skip "$what" "something was in swap"
      continue
    fi
    if [[ $status -ne 0 ]] && says "has no direct"; then
      skip "$what" "this kernel has no direct I/O on tmpfs"
      continue
    fi
    check "$what: nothing failed" status_is 0 4
    check "$what: nothing to tell" has_none
    [[ $counts -eq 0 ]] || check "$what: none was handed over" test "$(handed_over)" = 0
    check "$what: the ring's threads did nothing" test "$(trial .counters.io_wq.cpu_ns)" = 0
  done
done

# With a kernel that has these threads, buffered writes to a file in memory use only them.
measure memory/data -b 4k --warm-up 200ms -d 3s --buffered --read-share 0% --overwrite
check "buffered writes in memory: the verdict tells" has_finding

# A user who may not count still sees the threads.
chmod 755 "$FATHOM_BED" "$(dirname "$FATHOM_BED")"
chmod 777 "$FATHOM_BED"
install -m 755 "$fathom" ./fathom-for-all
own=$fathom
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups ./fathom-for-all "$@"; }
in_a_pid_namespace() { unshare --pid --fork --mount-proc "$own" "$@"; }
for way in as_nobody in_a_pid_namespace; do
  result=$FATHOM_BED/result-$way.jsonl
  what="${way//_/ }"
  status=0
  "$way" run disk/data "${load[@]}" --buffered --read-share 0% --queue-depth 4 --overwrite \
    --out "$result" >"$out" 2>&1 || status=$?
  sed 's/^/  /' "$out"
  if [[ $status -ne 0 ]]; then
    skip "$what" "$(tail -n 1 "$out")"
    continue
  fi
  check "$what: they are not counted" test "$(handed_over)" = null
  check "$what: the CPU time of the ring's threads tells" has_finding
  check "$what: the evidence says so" grep -q "used .* of CPU time" <<<"$(found)"
done

# The other backends have no such threads.
for backend in aio sync; do
  measure memory/data "${load[@]}" --backend "$backend" --queue-depth 4
  check "$backend: there is nothing to look for" test "$(trial .counters.io_wq)" = null
  check "$backend: nothing to tell" has_none
done

check "nothing was mounted to find out" \
  test "$(mounts || true)" = "$mounts_before"
