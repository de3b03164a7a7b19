# lib.sh: functions that the sections share. A section is a bash script that sources this file, makes devices
# below $FATHOM_BED, and calls `check "a sentence" command…` for everything that must hold.
set -euo pipefail
: "${FATHOM_BED:?run this through ./test}" "${FATHOM_TEST_RESULTS:?}" "${FATHOM_BIN:?}" "${FATHOM_ROOT:?}"
cd "$FATHOM_BED"
source "$FATHOM_ROOT/tests/cleanup.sh"
# The beginning of the names of the section's cgroups.
cgroup_name=$(cgroup_prefix "$FATHOM_BED")
fathom=$FATHOM_BIN
faults_bin=${FATHOM_FAULTS_BIN:-}
# The output of the last command. The sections use it.
out=$FATHOM_BED/out.txt

pass() { echo "ok $1" | tee -a "$FATHOM_TEST_RESULTS"; }
fail() { echo "failed $1: $2" | tee -a "$FATHOM_TEST_RESULTS"; }
skip() { echo "skipped $1: $2" | tee -a "$FATHOM_TEST_RESULTS"; }

# Checks that the command succeeds. Its status decides, and its output is in the log.
check() { # SENTENCE COMMAND...
  local sentence=$1 held=0
  shift
  "$@" || held=$?
  if [[ $held -eq 0 ]]; then pass "$sentence"; else fail "$sentence" "$*"; fi
}

# Ends the section because it cannot run here.
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

# The commands that undo a section's changes. They run at its end in reverse order, also after a failure.
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

# Whether a value lies between two others. All are decimal numbers.
between() { # VALUE LOW HIGH
  echo "value $1, expected $2 to $3"
  awk -v v="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(v != "" && low + 0 <= v + 0 && v + 0 <= high + 0) }'
}

# Waits until a command succeeds. The timeout guards only against hangs.
wait_until() { # SECONDS COMMAND...
  local limit=$((SECONDS + $1))
  shift
  until "$@" 2>/dev/null; do
    [[ $SECONDS -lt $limit ]] || { echo "not within its time: $*"; return 1; }
    sleep 0.05
  done
}

# Ends a server in the background. One that waits, such as for a device that is above it, is killed.
end_server() { # PID
  kill "$1" 2>/dev/null || true
  wait_until 20 has_ended "$1" || kill -KILL "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}
# A zombie counts. If a thread hangs in the kernel, the process exists until its server releases it.
has_ended() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null; }

# Waits until a block device has no user. A namespace of another section may hold a copy of a mount. Without
# perl it only waits.
wait_until_unused() { # DEVICE
  wait_until 120 perl -MFcntl -e 'sysopen my $device, $ARGV[0], O_RDONLY | O_EXCL or exit 1' "$1"
}

# Runs fathom. Its status is in $status, without failing, and its output in $out.
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

# Makes a loop device over a file. Its name is in $loop.
make_loop() { # FILE [OPTIONS...]
  local file=$1
  shift
  loop=$(losetup --find --show "$@" "$file") || return 1
  later "losetup -d $loop 2>/dev/null"
  # The kernel may have kept a partition of the file that had this device before.
  [[ " $* " == *" -P "* ]] || partx -d "$loop" 2>/dev/null || true
}

remove_loop() { losetup -d "$1"; }

# Runs `fathom run` with a new result file. The file is $result, and the status is in $status.
results_made=0
measure() { # ARGUMENTS OF fathom run
  results_made=$((results_made + 1))
  result=$FATHOM_BED/result-$results_made.jsonl
  run_fathom run "$@" --details --out "$result"
}

# Whether a figure lies between two others: 0 if it does; 2 if it is below, as on a busy machine; 1 if it is
# above, or not a figure.
near() { # VALUE LOW HIGH
  if between "$1" "$2" "$3"; then return 0; fi
  if between "$1" 1e-9 "$2"; then return 2; fi
  return 1
}

# A check of a device with a known limit. It passes if the command succeeds in one of three attempts. If other
# programs use the CPUs or the disk, such a device is slower than its limit, and the command returns 2. Then
# the check shows nothing and is skipped. A real fault fails each time. Whether the check passed is in $held.
reached() { # SENTENCE COMMAND...
  local sentence=$1 try slow=0 code
  shift
  held=1
  for try in 1 2 3; do
    code=0
    "$@" || code=$?
    [[ $code -ne 0 ]] || { pass "$sentence"; return; }
    [[ $code -ne 2 ]] || slow=1
  done
  held=0
  if [[ $slow -eq 1 ]]; then
    skip "$sentence" "slower than that in three attempts"
  else
    fail "$sentence" "$*"
  fi
}

# The same for a figure that MEASURE measures.
reaches() { # SENTENCE LOW HIGH MEASURE EXPRESSION ARGUMENTS OF fathom run
  local sentence=$1
  shift
  reached "$sentence" measured_near "$@"
}
measured_near() { # LOW HIGH MEASURE EXPRESSION ARGUMENTS
  local low=$1 high=$2 measure=$3 expression=$4
  shift 4
  # A bucket in front of a limit has to be empty again.
  sleep 0.5
  "$measure" "$@"
  status_is 0 || return 1
  near "$(trial "$expression")" "$low" "$high"
}

# A figure of the last trial of $result, by a jq expression over the line of the trial.
trial() { # EXPRESSION
  tail -n +2 "$result" | jq -rs "
    def ios: [.workers[].cells[] | .read.ios + .write.ios] | add;
    def bytes: [.workers[].cells[] | .read.bytes + .write.bytes] | add;
    def ledger: [.workers[].ledger] | reduce .[] as \$one ({}; . as \$sum | \$one | with_entries(.value += (\$sum[.key] // 0)));
    def failures: [.workers[].errors.count] | add;
    def kept: [.workers[].errors.first[]];
    def seconds: .window_ns / 1e9;
    # A bucket is at most 1/128 wide, so its middle is within 0.4 % of every value in it.
    def quantile(\$q; field): [.workers[].cells[] | (.read, .write) | (field // {buckets: []}).buckets[]]
      | sort_by(.[0]) | (map(.[1]) | add) as \$all
      | reduce .[] as \$b ({sum: 0, at: null};
          if .at == null then (.sum += \$b[1] | if .sum >= \$q * \$all then .at = \$b[0] * (1 + 1 / 256) else . end) else . end)
      | .at;
    def total: [.workers[].cells[] | (.read, .write) | .service_time.sum_ns // 0] | add;
    def longest: [.workers[].cells[] | (.read, .write) | .service_time.max_ns // 0] | max;
    [.[] | select(.line == \"trial\")] | last | $1"
}

# The bytes that the kernel counted for a block device: read and written.
device_bytes() { # /dev/NAME
  awk '{ printf "%.0f %.0f\n", $3 * 512, $7 * 512 }' "/sys/class/block/$(basename "$1")/stat"
}

mounted() { grep -q " $1 " /proc/self/mountinfo; }

# Runs qemu-storage-daemon with these arguments and waits until all files are exported.
serve() { # EXPORTED-FILES... -- ARGUMENTS
  local files=() file
  while [[ $1 != -- ]]; do files+=("$1"); shift; done
  shift
  for file in "${files[@]}"; do truncate -s 1G "$file"; done
  qemu-storage-daemon "$@" &
  server=$!
  # SIGTERM ends its exports and unmounts them.
  later "end_server $server; umount -l ${files[*]@Q} 2>/dev/null || true"
  for file in "${files[@]}"; do
    wait_until 120 mounted "$file" || cannot_run "qemu-storage-daemon exports nothing through FUSE here"
  done
}

# Mounts the file system whose file fails on request at $1. The file is $1/data.
serve_faults() { # MOUNTPOINT OPTIONS...
  local folder=$1
  mkdir -p "$folder"
  "$faults_bin" "$@" &
  server=$!
  later "umount -l $folder 2>/dev/null; end_server $server"
  wait_until 120 mounted "$folder" || cannot_run "no FUSE file system can be mounted here"
}
