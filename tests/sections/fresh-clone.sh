# fresh-clone.sh: what a new user does: clone, and run the first command of the README. The build
# folder is shared with this checkout, so that not everything is built twice.
source "$FATHOM_ROOT/tests/lib.sh"
require git jq
git -C "$FATHOM_ROOT" rev-parse HEAD >/dev/null 2>&1 || cannot_run "this is no git checkout"

# A clone has only what is committed: a forgotten file shows here.
git clone -q "$FATHOM_ROOT" clone
cd clone
check "the README names the first command" grep -q 'cargo run --release -- quick' README.md
target=$(dirname "$(dirname "$FATHOM_BIN")")
status=0
CARGO_TARGET_DIR=$target timeout 500 cargo run --release -- quick --size 64m --duration 1s \
  >"$out" 2>"$FATHOM_BED/err.txt" || status=$?
cat "$FATHOM_BED/err.txt" "$out"
check "quick: exit code" status_is 0
# The clone's program took the place of ours, which may have changes that are not committed yet.
later "cd $FATHOM_ROOT && touch crates/fathom/src/main.rs && cargo build --release"
results=(*.fathom.jsonl)
check "quick: one result file" test "${#results[@]}" -eq 1 -a -e "${results[0]}"
check "quick: its six steps are in it" test "$(jq -s '[.[] | select(.line == "trial")] | length' "${results[0]}")" = 6
check "quick: a report to look at" test -s "${results[0]%.fathom.jsonl}.html"
check "quick: it names both files" says "${results[0]}"
check "quick: the report needs no network" bash -c '! grep -qE "(src|href)=\"?https?:" '"${results[0]%.fathom.jsonl}.html"
left=$(find . -name '.fathom-scratch-*')
check "quick: the scratch file is gone" test -z "$left"
check "the clone has no other new files than the results" test -z "$(git status --porcelain)"
