# broken.sh, in the guest: disks that fail, and disks that are pulled out.
modprobe -a nvme dm-mod dm-linear dm-flakey dm-delay
modprobe brd rd_nr=2 rd_size=65536
if [ -e /sbin/dmsetup ]; then
  printf '0 1024 linear /dev/ram0 0\n1024 8 error\n1032 31736 linear /dev/ram0 1032\n' |
    dmsetup create bad
  r error /dev/mapper/bad -b 4k --pattern sequential -q 4 --warm-up 0s -d 1s
  dmsetup remove bad
  echo '0 32768 flakey /dev/ram0 0 1 1' | dmsetup create flaky
  r flakey /dev/mapper/flaky -b 4k -q 1 --rate 200 --arrivals uniform --warm-up 0s -d 5s
  dmsetup remove flaky
  echo '0 32768 delay /dev/ram0 0 20' | dmsetup create slow
  r delay /dev/mapper/slow -b 4k -q 1 --warm-up 0s -d 2s
else
  touch /out/no-dm
fi
disk=$(by_serial unplug)
(sleep 1.5; hmp 'device_del unplug0') &
r virtio "$disk" -q 4 --warm-up 0s -d 4s
(sleep 1.5; hmp 'device_del unplug1') &
r nvme /dev/nvme0n1 -q 4 --warm-up 0s -d 4s
