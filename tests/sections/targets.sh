# targets.sh: a workload file with targets of every kind at once: a folder of files, files, a device, a
# partition, and a region of each. Writes stay exactly in their place, to the byte.
source "$FATHOM_ROOT/tests/lib.sh"
require losetup sfdisk partx jq
require_root

# A disk with two partitions. In some containers their nodes are not made automatically.
partition() { # NUMBER: makes its node, and gives its name in $part
  local name
  name=$(basename "$loop")p$1
  wait_until 5 test -e "/sys/class/block/$name/dev" || return 1
  part=/dev/$name
  if [[ ! -b $part ]]; then
    IFS=: read -r major minor <"/sys/class/block/$name/dev"
    mknod "$part" b "$major" "$minor"
    later "rm -f $part"
  fi
}
pattern() { head -c "$1" < <(yes fathom-was-not-here); }
pattern 64M >disk
printf 'label: gpt\nstart=1MiB, size=16MiB\nstart=24MiB, size=16MiB\n' | sfdisk -q disk
make_loop "$FATHOM_BED/disk" -P
whole=$loop
# If the kernel does not read such tables, partx adds the partitions.
[[ -e /sys/class/block/$(basename "$loop")p1 ]] || partx -a "$loop"
if ! partition 1 || ! partition 2; then cannot_run "loop devices have no partitions here"; fi
first=${part%2}1 second=$part
pattern 16M >whole-disk
make_loop "$FATHOM_BED/whole-disk"
other=$loop
mkdir -p folder/below
pattern 1M >folder/a
pattern 1M >folder/below/b
pattern 4M >file

run_fathom run "$first" -d 200ms --warm-up 0s
check "a partition is read" status_is 0 4
run_fathom inspect "$second"
check "it is called a partition of its disk" says "partition.*$(basename "$whole")|$(basename "$whole").*partition"

cat >all.toml <<EOF
duration = "500ms"
warm-up = "0s"
buffered = true
[stream.writes]
read-share = "0%"
workers = 1
queue-depth = "4/target"
targets = [
    { path = "$second", offset = "4m", size = "8m" },
    { path = "$other", offset = "2m", size = "1m" },
    { path = "file", offset = "1m", size = "2m" },
]
[stream.files]
targets = ["folder", { path = "$first", offset = "8m" }]
workers = "2/total"
EOF
# A hash of a file without its written region. For the partition, the region is that of the whole disk.
outside() { # FILE FIRST-MIB LAST-MIB
  { head -c "$2M" "$1" && tail -c +$(($3 * 1048576 + 1)) "$1"; } | sha256sum
}
sync
before=("$(outside disk 28 36)" "$(outside whole-disk 2 3)" "$(outside file 1 3)")
run_fathom plan all.toml --overwrite
check "plan names every target" bash -c \
  "grep -q '$second' '$out' && grep -q '$other' '$out' && grep -q 'folder/below/b' '$out'"
check "plan says what is overwritten" says "OVERWRITES"
check "plan changes nothing" test "$(outside disk 28 36)" = "${before[0]}"
measure all.toml --overwrite --destroy "$second" --destroy "$other"
check "all of them are measured together" status_is 0 4
check "each target has its own figures" test "$(trial '[.workers[].cells[].target] | unique | length')" = 6
check "none fails" test "$(trial failures)" = 0
sync
check "a partition keeps what is outside of the region" test "$(outside disk 28 36)" = "${before[0]}"
check "a device keeps what is outside of the region" test "$(outside whole-disk 2 3)" = "${before[1]}"
check "a file keeps what is outside of the region" test "$(outside file 1 3)" = "${before[2]}"
pattern 64M >as-it-was
check "the partition's region was written" test "$(cmp -n 8M -i 28M disk as-it-was >same || echo differs)" = differs
pattern 1M >megabyte
check "files that are only read are as they were" cmp -s folder/a megabyte

# A mount below a folder is not a part of it unless requested. A link never is.
mkdir folder/mounted
mount -t tmpfs -o size=8m none folder/mounted
later "umount $FATHOM_BED/folder/mounted 2>/dev/null"
pattern 1M >folder/mounted/c
ln -s ../file folder/link
short=(-d 200ms --warm-up 0s --buffered)
measure folder "${short[@]}"
check "a folder stands for its own files" test \
  "$(jq -rs '[.[0].targets[].name] | join(" ")' "$result")" = "folder/a folder/below/b"
check "what is mounted below it is left out, and named" says 'folder/mounted is left out'
measure folder "${short[@]}" --across-mounts
check "--across-mounts takes it in" test \
  "$(jq -rs '[.[0].targets[].name] | join(" ")' "$result")" = "folder/a folder/below/b folder/mounted/c"
