# fresh-clone.sh: the steps of a new user: clone, build, and run the first command of the README. The clone
# shares this checkout's build folder, so that not everything is built twice.
source "$FATHOM_ROOT/tests/lib.sh"
require git jq
git -C "$FATHOM_ROOT" rev-parse HEAD >/dev/null 2>&1 || cannot_run "this is no git checkout"

# A clone has only committed files, so this finds a forgotten file.
git clone -q "$FATHOM_ROOT" clone
cd clone
check "the README names the first command" grep -q 'cargo run --release -- quick' README.md
# The clone compiles, with the dependencies that clippy has already checked. A separate release build would
# take minutes more and would be the same program.
status=0
CARGO_TARGET_DIR=$(dirname "$(dirname "$FATHOM_BIN")") timeout 1400 \
  cargo check --workspace --all-targets >"$FATHOM_BED/check.txt" 2>&1 || status=$?
cat "$FATHOM_BED/check.txt"
check "what is committed compiles" status_is 0
status=0
"$FATHOM_BIN" quick --size 64m --duration 1s >"$out" 2>"$FATHOM_BED/err.txt" || status=$?
cat "$FATHOM_BED/err.txt" "$out"
check "quick: exit code" status_is 0 4
results=(*.fathom.jsonl)
check "quick: one result file" test "${#results[@]}" -eq 1 -a -e "${results[0]}"
check "quick: its six steps are in it" test "$(jq -s '[.[] | select(.line == "trial")] | length' "${results[0]}")" = 6
check "quick: a report to look at" test -s "${results[0]%.fathom.jsonl}.html"
check "quick: it names both files" says "${results[0]}"
check "quick: the report needs no network" bash -c '! grep -qE "(src|href)=\"?https?:" '"${results[0]%.fathom.jsonl}.html"
left=$(find . -name '.fathom-scratch-*')
check "quick: the scratch file is gone" test -z "$left"
check "the clone has no other new files than the results" test -z "$(git status --porcelain)"
