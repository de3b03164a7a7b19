#!/bin/bash
# boot.sh: a temporary virtual machine for the devices that a test machine does not have: NVMe, RAID,
# device-mapper faults, disks with a known limit, disks that are pulled out. It has Debian's kernel, its own
# initramfs, and no disk image. It boots in about three seconds without KVM.
#
#   boot.sh prepare               fetch the packages and build the initramfs, once; kept in the cache
#   boot.sh run [options] SCRIPT  boot, run SCRIPT by sh in the guest, print its output
#
# options of run
#   -f FILE[:PATH]  copy FILE and the libraries it needs into the guest (default /bin/NAME)
#   -q 'ARGUMENTS'  further arguments for QEMU, split at spaces
#   -o FOLDER       afterwards, unpack the guest's /out into FOLDER
#   -t SECONDS      end it after this time (default 120)
#   -a 'ARGUMENTS'  further arguments for the kernel
#
# In the guest, `hmp 'device_del x'` sends a command to QEMU's monitor, so a script can pull out a disk. The
# exit status is the script's; 124 if it took too long; 125 if the guest died (its log is on stderr).
set -euo pipefail
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/fathom-testbed
PACKAGES=(busybox-static mdadm)
# The modules that the checks use. Their dependencies are added.
MODULES=(virtio_pci virtio_blk null_blk brd nvme configfs loop dm-mod dm-delay dm-flakey dm-linear
  md-mod raid0 raid456 raid1 raid10 scsi_debug sd_mod ext4 xfs)

say() { echo "boot.sh: $*" >&2; }

# Copies the program $2 to $3 in folder $1, with its libraries at the paths where its loader finds them.
copy_program() {
  local library
  install -D -m755 "$2" "$1$3"
  { ldd "$2" 2>/dev/null || true; } | grep -o '/[^ ]*' | while read -r library; do
    [[ -e $1$library ]] || install -D -m755 "$library" "$1$library"
  done
}

fetch() {
  local kernel package
  mkdir -p "$CACHE/packages"
  cd "$CACHE/packages"
  kernel=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends:/ { print $2; exit }')
  [[ -n $kernel ]] || { say "apt knows no kernel package: apt-get update"; return 1; }
  rm -f ./*.deb
  apt-get download -q "${PACKAGES[@]}" "$kernel" >&2
  rm -rf "$CACHE/unpacked"
  for package in ./*.deb; do dpkg-deb -x "$package" "$CACHE/unpacked"; done
}

# Copies the wanted modules and all their dependencies from the unpacked kernel into the root.
copy_modules() {
  local root=$1 busybox=$2 source release module file
  source=$(find "$CACHE/unpacked" -type d -path '*/lib/modules/*' -prune | head -n 1)
  release=$(basename "$source")
  "$busybox" depmod -b "${source%/lib/modules/*}" "$release" 2>/dev/null
  mkdir -p "$root/lib/modules/$release"
  for module in "${MODULES[@]}"; do
    awk -v module="${module//-/_}" -F: '{ name = $1; sub(/.*\//, "", name); sub(/\.ko.*/, "", name)
      gsub(/-/, "_", name); if (name == module) print $1 " " $2 }' "$source/modules.dep"
  done | tr ' ' '\n' | sed -n "s|^/*\(lib/modules/$release/\)\{0,1\}\(..*\)|\2|p" | sort -u |
    while read -r file; do
      mkdir -p "$root/lib/modules/$release/$(dirname "$file")"
      case $file in
        *.xz) xz -dc "$source/$file" >"$root/lib/modules/$release/${file%.xz}" ;;
        *) cp "$source/$file" "$root/lib/modules/$release/$file" ;;
      esac
    done
  cp "$source"/modules.{builtin,order} "$root/lib/modules/$release/"
  "$busybox" depmod -b "$root" "$release"
}

build() {
  local root=$CACHE/root busybox applet
  busybox=$(find "$CACHE/unpacked" -name busybox -type f -path "*/bin/*" | head -n 1)
  rm -rf "$root"
  mkdir -p "$root"/{bin,sbin,proc,sys,dev,run,tmp,out,mnt,etc,job}
  install -m755 "$busybox" "$root/bin/busybox"
  for applet in $("$busybox" --list); do
    [[ $applet == busybox ]] || ln -sf /bin/busybox "$root/bin/$applet"
  done
  # The kernel loads modules through this path.
  ln -s /bin/busybox "$root/sbin/modprobe"
  copy_program "$root" "$(find "$CACHE/unpacked" -name mdadm -type f -path '*/sbin/*')" /sbin/mdadm
  local dmsetup
  dmsetup=$(PATH=$PATH:/usr/sbin:/sbin command -v dmsetup || true)
  [[ -z $dmsetup ]] || copy_program "$root" "$dmsetup" /sbin/dmsetup
  copy_modules "$root" "$busybox"
  printf '#!/bin/sh\nprintf "%%s\\n" "$*" >/dev/ttyS2\n' >"$root/bin/hmp"
  cat >"$root/init" <<'INIT'
#!/bin/busybox sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/tmp
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev
mkdir -p /dev/pts /dev/shm; mount -t devpts d /dev/pts; mount -t tmpfs t /dev/shm
mount -t tmpfs t /run; mount -t tmpfs t /tmp
for t in 1 2; do stty -F /dev/ttyS$t raw -echo 2>/dev/null; done
for m in virtio_pci virtio_blk configfs; do modprobe $m 2>/dev/null; done
mount -t configfs c /sys/kernel/config 2>/dev/null
cd /tmp
sh /job/script </dev/null >/dev/ttyS1 2>&1
rc=$?
for d in /sys/block/vd*; do
  [ "$(cat $d/serial 2>/dev/null)" = bootout ] && { tar -C /out -cf /dev/${d##*/} . 2>/dev/null; sync; }
done
printf '\n@@EXIT %d\n' $rc >/dev/ttyS1
stty -F /dev/ttyS1 >/dev/null; sync
poweroff -f
INIT
  chmod 755 "$root/init" "$root/bin/hmp"
  (cd "$root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >"$CACHE/base.cpio.new"
  mv "$CACHE/base.cpio.new" "$CACHE/base.cpio"
}

prepare() {
  local key
  # Another version of this script, or a dmsetup that was installed later, needs another initramfs.
  key=$(cat "${BASH_SOURCE[0]}" <(PATH=$PATH:/usr/sbin:/sbin command -v dmsetup || true) | sha256sum)
  mkdir -p "$CACHE"
  # Two checkouts may test at the same time.
  exec 8>"$CACHE/lock"
  flock 8
  if [[ ! -e $CACHE/base.cpio || $(cat "$CACHE/key" 2>/dev/null) != "$key" ]]; then
    [[ -d $CACHE/unpacked && -n $(ls "$CACHE"/unpacked/boot/vmlinuz-* 2>/dev/null) ]] || (fetch)
    build
    echo "$key" >"$CACHE/key"
  fi
  flock -u 8
}

run() {
  local limit=120 folder= append= option status=0 source path
  local qemu=() files=()
  OPTIND=1
  while getopts f:q:o:t:a: option; do
    case $option in
      f) files+=("$OPTARG") ;;
      q) read -ra path <<<"${OPTARG//$'\n'/ }"; qemu+=("${path[@]}") ;;
      o) folder=$OPTARG ;;
      t) limit=$OPTARG ;;
      a) append=$OPTARG ;;
      *) exit 2 ;;
    esac
  done
  shift $((OPTIND - 1))
  TEMP=$(mktemp -d "${FATHOM_BED:-${TMPDIR:-/tmp}}/vm.XXXXXX")
  trap 'rm -rf "$TEMP"' EXIT
  local busybox=$CACHE/root/bin/busybox
  mkdir -p "$TEMP/root/job"
  cp "$1" "$TEMP/root/job/script"
  for option in ${files[@]+"${files[@]}"}; do
    source=${option%%:*} path=/bin/$(basename "${option%%:*}")
    [[ $option == "$source" ]] || path=${option#*:}
    copy_program "$TEMP/root" "$source" "$path"
  done
  if [[ -n $folder ]]; then
    truncate -s 64M "$TEMP/out.tar"
    qemu+=(-drive "if=none,id=bootout,format=raw,cache=unsafe,file=$TEMP/out.tar"
      -device virtio-blk-pci,drive=bootout,serial=bootout)
  fi
  cp "$CACHE/base.cpio" "$TEMP/initrd"
  (cd "$TEMP/root" && find . | "$busybox" cpio -o -H newc 2>/dev/null) >>"$TEMP/initrd"
  timeout --kill-after=5 "$limit" qemu-system-x86_64 -accel tcg,thread=multi \
    -cpu max,-cx16,-la57 -M pc -m 768 -smp 2 \
    -nodefaults -no-user-config -display none -no-reboot \
    -kernel "$CACHE"/unpacked/boot/vmlinuz-* -initrd "$TEMP/initrd" \
    -append "console=ttyS0 quiet loglevel=5 panic=-1 mitigations=off nokaslr tsc=reliable random.trust_cpu=on raid=noautodetect $append" \
    -chardev "socket,id=mon,path=$TEMP/mon,server=on,wait=off" -mon chardev=mon,mode=readline \
    -chardev "socket,id=s2,path=$TEMP/mon,server=off" \
    -serial "file:$TEMP/kernel.log" -serial "file:$TEMP/script.log" -serial chardev:s2 \
    ${qemu[@]+"${qemu[@]}"} </dev/null 2>"$TEMP/qemu.err" || status=$?
  local ended
  ended=$(sed -n 's/^@@EXIT \([0-9]*\)\r\{0,1\}$/\1/p' "$TEMP/script.log" 2>/dev/null | tail -n 1)
  sed '/^@@EXIT [0-9]*/d' "$TEMP/script.log" 2>/dev/null || true
  if [[ -z $ended ]]; then
    cat "$TEMP/qemu.err" >&2
    tail -n 25 "$TEMP/kernel.log" >&2 || true
    [[ $status -ne 124 ]] || exit 124
    exit 125
  fi
  if [[ -n $folder ]]; then
    mkdir -p "$folder"
    tar -C "$folder" -xf "$TEMP/out.tar"
  fi
  exit "$ended"
}

case ${1:-} in
  prepare) prepare ;;
  run) shift; run "$@" ;;
  *) sed -n '2,/^set /{/^set /d;p}' "$0" >&2; exit 2 ;;
esac
