# broken.sh, in the guest: disks that fail, and disks that are pulled out.
modprobe -a nvme dm-mod dm-linear dm-flakey dm-delay
modprobe brd rd_nr=2 rd_size=65536
if [ -e /sbin/dmsetup ]; then
  printf '0 1024 linear /dev/ram0 0\n1024 8 error\n1032 31736 linear /dev/ram0 1032\n' |
    dmsetup create bad
  r error /dev/mapper/bad -b 4k --pattern sequential -q 4 --stop-after 500ios
  dmsetup remove bad
  echo '0 32768 flakey /dev/ram0 0 1 1' | dmsetup create flaky
  r flakey /dev/mapper/flaky -b 4k -q 1 --rate 200 --arrivals uniform --warm-up 0s -d 5s
  dmsetup remove flaky
  echo '0 32768 delay /dev/ram0 0 20' | dmsetup create slow
  r delay /dev/mapper/slow -b 4k -q 1 --stop-after 100ios
else
  touch /out/no-dm
fi
# Pulls a disk out after it has served some hundred more reads. So the load runs before and after that,
# however slow the machine is.
pull_out() { # DISK QEMU-NAME
  read -r before _ <"/sys/block/$1/stat"
  reads=$before
  for _ in $(seq 200); do
    [ "$reads" -lt $((before + 300)) ] || break
    sleep 0.1
    read -r reads _ <"/sys/block/$1/stat" || return
  done
  # The guest may miss a request to release a disk.
  for _ in 1 2 3 4 5 6; do
    hmp "device_del $2"
    sleep 1
    [ -e "/sys/block/$1" ] || return
  done
}
disk=$(by_serial unplug)
pull_out "${disk#/dev/}" unplug0 &
r virtio "$disk" -q 4 --warm-up 0s -d 8s
wait
pull_out nvme0n1 unplug1 &
r nvme /dev/nvme0n1 -q 4 --warm-up 0s -d 8s
wait
