# lib.sh: what the sections share. A section is a bash script that sources this, makes devices below
# $FATHOM_BED, and says `check "a sentence" command…` for everything that must hold.
set -euo pipefail
: "${FATHOM_BED:?run this through ./test}" "${FATHOM_RESULTS:?}" "${FATHOM_BIN:?}" "${FATHOM_ROOT:?}"
cd "$FATHOM_BED"
fathom=$FATHOM_BIN
# Used by the sections: where the output of the last command went.
out=$FATHOM_BED/out.txt

pass() { echo "ok $1" | tee -a "$FATHOM_RESULTS"; }
fail() { echo "failed $1: $2" | tee -a "$FATHOM_RESULTS"; }
skip() { echo "skipped $1: $2" | tee -a "$FATHOM_RESULTS"; }

# The command holds: its status decides, its output is in the log.
check() { # SENTENCE COMMAND...
  local sentence=$1 status=0
  shift
  "$@" || status=$?
  if [[ $status -eq 0 ]]; then pass "$sentence"; else fail "$sentence" "$* (status $status)"; fi
}

# Ends the section: it cannot run here.
cannot_run() {
  echo "$1" >"$FATHOM_BED/why"
  exit 77
}

require() { # COMMAND...
  local command
  for command in "$@"; do
    command -v "$command" >/dev/null || cannot_run "$command is missing"
  done
}

require_root() { [[ $EUID -eq 0 ]] || cannot_run "loop devices and mounts need root"; }

# What the section has to undo runs at its end in reverse order, also after a failure.
undo=()
later() { undo+=("$*"); }
undo_all() {
  local status=$? index
  set +e
  for ((index = ${#undo[@]} - 1; index >= 0; index--)); do eval "${undo[index]}"; done
  exit "$status"
}
trap undo_all EXIT
trap 'exit 143' TERM INT HUP

# A value between two others, all of them decimal numbers.
between() { # VALUE LOW HIGH
  echo "value $1, expected $2 to $3"
  awk -v v="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(v != "" && low + 0 <= v + 0 && v + 0 <= high + 0) }'
}

# Waits until a command holds: a real time-out, against hangs only.
wait_until() { # SECONDS COMMAND...
  local limit=$((SECONDS + $1))
  shift
  until "$@" 2>/dev/null; do
    [[ $SECONDS -lt $limit ]] || { echo "not within its time: $*"; return 1; }
    sleep 0.05
  done
}

# Runs fathom and keeps its status instead of failing: in $status, its output in $out.
status=0
run_fathom() {
  status=0
  echo "+ fathom $*"
  timeout --kill-after=5 "${LIMIT:-90}" "$fathom" "$@" >"$out" 2>&1 || status=$?
  sed 's/^/  /' "$out"
  echo "  status $status"
}

status_is() { [[ " $* " == *" $status "* ]]; }
says() { grep -qiE -- "$1" "$out"; }

# A loop device over a file: its name in $loop.
make_loop() { # FILE [OPTIONS...]
  local file=$1
  shift
  loop=$(losetup --find --show "$@" "$file") || return 1
  later "losetup -d $loop 2>/dev/null"
}

remove_loop() { losetup -d "$1"; }
