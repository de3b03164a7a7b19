# lies.sh: lies about storage, made for real. Each has the findings that must name it, and those that would
# explain it wrongly. The tables are in tests/lies.
#
#   FATHOM_LIES=REGEX        runs only the lies whose name matches
#   FATHOM_LIES_WRITE=1      writes docs/lies.md from the outcome
source "$FATHOM_ROOT/tests/lib.sh"
require jq losetup mkfs.ext4 mkfs.xfs mkfs.btrfs qemu-storage-daemon sfdisk perl
require_root
[[ -w /dev/fuse ]] || cannot_run "/dev/fuse is missing or not writable"
source "$FATHOM_ROOT/tests/lies/kit.sh"
source "$FATHOM_ROOT/tests/lies/makers.sh"
fixtures
source "$FATHOM_ROOT/tests/lies/tables.sh"

score
[[ -n ${FATHOM_LIES:-} ]] || check "at least 90 lies are caught by name" enough_are_named
page >"$FATHOM_BED/lies.md"
[[ -z ${FATHOM_LIES_WRITE:-} ]] || cp "$FATHOM_BED/lies.md" "$FATHOM_ROOT/docs/lies.md"
