# accounting.sh: the bytes that fathom counts equal those that the kernel counts, on a device that no other
# program uses.
source "$FATHOM_ROOT/tests/lib.sh"
require losetup jq mkfs.ext4
require_root

# All bytes that fathom moved, including I/Os that came back after the window.
moved() { trial "(ledger | .completed_in_warm_up + .completed + .in_flight) * $1"; }

# Runs fathom and compares its count with the kernel's.
account() { # NAME TARGET DEVICE BLOCK-BYTES FIELD(1 read, 2 written) ARGUMENTS...
  local name=$1 target=$2 device=$3 block=$4 field=$5 before after counted kernel
  shift 5
  sync
  before=$(device_bytes "$device" | cut -d' ' -f"$field")
  measure "$target" -b "$block" --warm-up 500ms -d 5s "$@"
  sync
  after=$(device_bytes "$device" | cut -d' ' -f"$field")
  counted=$(moved "$block") kernel=$((after - before))
  check "$name: exit code" status_is 0 4
  check "$name: something was moved" between "$counted" 1 1e15
  # Data that will be read is sampled before the run: at most 256 blocks.
  check "$name: the kernel counts the same within 1 %, and the samples" \
    between "$kernel" "$(jq -n "$counted * 0.99")" "$(jq -n "$counted * 1.01 + 256 * $block")"
}

# The file has written data. Most reads of a sparse file would not reach the disk, and fathom would call them
# void.
run_fathom prepare disk --size 512m
check "the device's file is prepared" status_is 0
make_loop "$FATHOM_BED/disk" --direct-io=on || make_loop "$FATHOM_BED/disk"
device=$loop
account "random reads of a device" "$device" "$device" 4096 1 -q 8
account "sequential writes to a device" "$device" "$device" 65536 2 -q 4 --read-share 0% \
  --pattern sequential --destroy "$device"
# A busy machine may open the window for the kernel's counters later than for the workers.
check "the kernel's count in the document is no more than all that was written" \
  between "$(trial '[.counters.devices[] | select(.name | startswith("loop")) | .written_bytes] | add')" \
  1 "$(jq -n "$(moved 65536) * 1.01 + 256 * 65536")"

mkfs.ext4 -q -F -E nodiscard,lazy_itable_init=0,lazy_journal_init=0 "$device"
mkdir mnt
mount "$device" mnt
later "umount $FATHOM_BED/mnt"
run_fathom prepare mnt/data --size 200m
check "a file is prepared" status_is 0
account "random reads of a file" mnt/data "$device" 4096 1 -q 8
account "random writes to a file" mnt/data "$device" 16384 2 -q 8 --read-share 0% --overwrite
for backend in uring aio sync; do
  account "reads by $backend" mnt/data "$device" 8192 1 -q 4 --backend $backend
done
