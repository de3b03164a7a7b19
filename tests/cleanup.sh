# cleanup.sh: finds and removes what a section left behind. ./test sources this file. It cleans up after every
# section, with the section's folder. At its end and when it is interrupted, it cleans up with the folder of
# all sections.
#
# A resource belongs to us if it carries the folder. Nothing else is ever touched.

# The processes that a section started, including those that detached themselves.
own_processes() { # BED
  local file pid
  for file in /proc/[0-9]*/environ; do
    pid=${file#/proc/}
    pid=${pid%/environ}
    if [[ $pid != "$BASHPID" ]] && grep -qzsxE "FATHOM_TESTBED=${1//./\\.}(/.*)?" "$file"; then
      # A zombie no longer has an environment, so only running processes get here.
      echo "$pid"
    fi
  done
}

# The mounts below the folder, innermost first.
own_mounts() { awk -v bed="$1/" 'index($5 "/", bed) == 1 { print $5 }' /proc/self/mountinfo | tac; }

own_loops() {
  local file
  for file in /sys/block/loop*/loop/backing_file; do
    [[ -e $file ]] || continue
    if [[ $(cat "$file" 2>/dev/null) == "$1"/* ]]; then
      file=${file#/sys/block/}
      echo "/dev/${file%%/*}"
    fi
  done
}

# The beginning of a cgroup's name: the names of the folder and of the section, as in
# fathom-test.X1Y2Z3-stack.
cgroup_prefix() { # BED
  local path=${1##*/fathom-test.}
  echo "fathom-test.${path//\//-}"
}
own_cgroups() {
  find /sys/fs/cgroup -maxdepth 3 -type d -name "$(cgroup_prefix "$1")*" 2>/dev/null | tac
}

# A network namespace is named like a cgroup. Its links go with it, and only processes keep it.
own_namespaces() {
  local file
  for file in "/run/netns/$(cgroup_prefix "$1")"*; do
    [[ ! -e $file ]] || echo "${file##*/}"
  done
}
remove_namespaces() {
  local item process
  for item in $(own_namespaces "$1"); do
    # Those of a login have another environment.
    for process in $(ip netns pids "$item" 2>/dev/null); do kill -KILL "$process" 2>/dev/null || true; done
    ip netns delete "$item" || true
  done
}

# Compressed memory has no path. So a section leaves a file with the name of the device in its folder before
# it makes /dev/zramN.
own_zrams() {
  local file
  for file in "$1"/zram[0-9]* "$1"/*/zram[0-9]*; do
    [[ ! -e $file || ! -e /sys/block/${file##*/} ]] || echo "${file##*/}"
  done
}

leftovers() {
  own_processes "$1" | sed 's/^/process /'
  own_mounts "$1" | sed 's/^/mount /'
  own_loops "$1" | sed 's/^/loop device /'
  own_cgroups "$1" | sed 's/^/cgroup /'
  own_namespaces "$1" | sed 's/^/network namespace /'
  own_zrams "$1" | sed 's/^/compressed memory /'
}

# Mounts and loop devices go first, while their servers still answer. Then the servers go, and then what the
# servers held.
sweep_resources() {
  local bed=$1 item round
  for round in 1 2 3; do
    # A frozen process does not die of a signal.
    for item in $(own_cgroups "$bed"); do
      [[ ! -w $item/freezer.state ]] || echo THAWED >"$item/freezer.state" || true
    done
    for item in $(own_zrams "$bed"); do
      ! grep -qs "^/dev/$item " /proc/swaps || swapoff "/dev/$item" || true
    done
    for item in $(own_loops "$bed"); do
      ! grep -qs "^$item " /proc/swaps || swapoff "$item" || true
    done
    for item in $(own_mounts "$bed"); do umount -l "$item" 2>/dev/null || true; done
    for item in $(own_loops "$bed"); do
      # Settings that a section made on a loop device's queue remain after its file is gone.
      { echo 128 >"/sys/block/${item#/dev/}/queue/nr_requests"; echo 1 >"/sys/block/${item#/dev/}/queue/iostats"; } 2>/dev/null || true
      losetup -d "$item" 2>/dev/null || true
    done
    for item in $(own_processes "$bed"); do
      if [[ $round -eq 1 ]]; then kill -TERM "$item"; else kill -KILL "$item"; fi 2>/dev/null || true
    done
    remove_namespaces "$bed"
    for item in $(own_zrams "$bed"); do
      { echo 1 >"/sys/block/$item/reset" && echo "${item#zram}" >/sys/class/zram-control/hot_remove; } 2>/dev/null || true
    done
    for item in $(own_cgroups "$bed"); do rmdir "$item" 2>/dev/null || true; done
    [[ -n $(leftovers "$bed") ]] || return 0
    sleep 0.5
  done
  return 0
}

sweep() {
  sweep_resources "$1"
  # A mount that could not be removed must not be emptied.
  [[ -n $(own_mounts "$1") ]] || rm -rf --one-file-system "$1"
}
