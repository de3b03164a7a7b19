# container.sh: fathom where a container runtime would run it: in a root with nothing but the program, the
# kernel's own file systems and a volume, read-only, without capabilities, environment and io_uring. The
# results of the image itself under Podman are in docs/install.md.
source "$FATHOM_ROOT/tests/lib.sh"
require losetup mkfs.ext4 unshare python3 jq
require_root

# The root. A program that is not static needs its libraries.
mkdir -p root/{data,dev,proc,sys}
unshare --mount --pid --fork bash -c 'mount -t proc proc root/proc && mount -t sysfs sysfs root/sys' ||
  cannot_run "no namespaces with a /proc and a /sys of their own can be made here"
cp "$fathom" root/fathom
while read -r library; do
  mkdir -p "root$(dirname "$library")"
  cp -L "$library" "root$library"
done < <(ldd "$fathom" 2>/dev/null | grep -o '/[^ ]*' || true)

# The volume and its disk, and a disk that is mounted outside.
disk() { # NAME [OPTIONS OF mount]
  truncate -s 256M "$1"
  make_loop "$FATHOM_BED/$1" --direct-io=on || make_loop "$FATHOM_BED/$1"
  mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$loop"
  mkdir "on-$1"
  mount "${@:2}" "$loop" "on-$1"
  later "umount $FATHOM_BED/on-$1"
}
disk volume
below=$loop
chown 65532:65532 on-volume
disk outside -o ro
foreign=$loop

# Podman covers /sys/dev/block. All mounts go with the namespace.
cat >enter.sh <<'ENTER'
set -euo pipefail
root=$1
foreign=$2
shift 2
mount --bind "$root" "$root"
mount --bind "${root%/root}/on-volume" "$root/data"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o ro none "$root/sys/dev/block"
mount -t tmpfs none "$root/dev"
for device in /dev/null /dev/zero /dev/full /dev/random /dev/urandom "$foreign"; do
  touch "$root$device"
  mount --bind "$device" "$root$device"
done
mount -o remount,bind,ro "$root"
exec python3 "$FATHOM_ROOT/tests/contained.py" "$root" "$@"
ENTER
contained() { # USER ANSWER ARGUMENTS OF fathom
  local user=$1 answer=$2
  shift 2
  status=0
  echo "+ as user $user, io_uring answers $answer: fathom $*"
  timeout --kill-after=5 "${LIMIT:-90}" unshare --mount --pid --fork --kill-child \
    bash enter.sh "$FATHOM_BED/root" "$foreign" "$user" "$answer" /fathom "$@" >"$out" 2>&1 || status=$?
  sed 's/^/  /' "$out"
  echo "  status $status"
}
# A line may be broken anywhere.
says_in_lines() { tr -s '\n ' ' ' <"$out" | grep -qE -- "$1"; }

contained 65532 EPERM --help
check "the help needs nothing" status_is 0

cause="io_uring is forbidden here by a seccomp filter"
off=$(cat /proc/sys/kernel/io_uring_disabled 2>/dev/null || echo 0)
[[ $off = 0 ]] || cause="io_uring is switched off here"
short=(--size 32m -d 200ms --warm-up 0s --no-probe)
for user in 65532 0; do
  [[ $user != 0 ]] || chown 0:0 on-volume
  contained $user EPERM quick "${short[@]}"
  check "quick as user $user: exit code" status_is 0 4
  check "quick as user $user: says which backend it took, and why" \
    says_in_lines "backend aio: $cause.*: using native AIO"
  results=(on-volume/quick-data-*.fathom.jsonl)
  check "quick as user $user: the results are in the volume" \
    test "${#results[@]}" -eq 1 -a -s "${results[0]}" -a -s "${results[0]%.fathom.jsonl}.html"
  check "quick as user $user: they are its own" \
    test "$(stat -c %u "${results[@]}" on-volume/*.html | sort -u)" = "$user"
  check "quick as user $user: the scratch file is gone" \
    test -z "$(find on-volume -name '.fathom-scratch-*')"
  check "quick as user $user: it knows the disk below the volume" \
    test "$(head -n 1 "${results[0]}" | jq -r '.targets[0].layers[0].name')" = "${below#/dev/}"
  rm -f on-volume/*.jsonl on-volume/*.html
done

chown 65532:65532 on-volume
# Kernels without the sysctl do not tell a filter with this answer from a kernel without io_uring.
[[ -e /proc/sys/kernel/io_uring_disabled ]] || cause="a seccomp filter hides io_uring here"
[[ $off = 0 ]] || cause="io_uring is"
contained 65532 ENOSYS run sim:ssd -d 1s
check "a simulated device: exit code" status_is 0
contained 65532 ENOSYS quick "${short[@]}" --buffered
check "a filter that hides io_uring: exit code" status_is 0 4
check "a filter that hides io_uring: says so" says_in_lines "$cause.*: using pread and pwrite"
contained 65532 ENOSYS quick "${short[@]}" --backend uring
check "io_uring was asked for: refused" status_is 3
check "io_uring was asked for: says what forbids it" says_in_lines "the uring backend: .*$cause"
rm -f on-volume/*.jsonl on-volume/*.html

chown 0:0 on-volume
chmod 700 on-volume
contained 65532 EPERM quick "${short[@]}"
check "a volume of another user: refused" status_is 3 5
check "a volume of another user: says why" says_in_lines "[Pp]ermission|may not"
chmod 755 on-volume

# Mounts outside are not seen inside, but the kernel knows of them.
before=$(sha256sum <outside)
write=(--read-share 0% -d 1s --warm-up 0s --destroy "$foreign")
contained 0 EPERM run "$foreign" "${write[@]}"
check "a disk that is mounted outside: refused" status_is 3
check "a disk that is mounted outside: says why" says_in_lines "claimed|mounted"
sync
check "a disk that is mounted outside: not a byte differs" test "$(sha256sum <outside)" = "$before"
