# lies.sh, in the guest: lies of disks that a test machine does not have, all in one boot. The section's table
# has the expected code of each.
modprobe -a md-mod raid1 raid456 dm-mod dm-flakey
modprobe null_blk nr_devices=1 irqmode=2 completion_nsec=1000000 memory_backed=1 gb=1 hw_queue_depth=16
modprobe brd rd_nr=14 rd_size=49152
# Runs end after I/Os, not after a time: on a busy machine a guest may complete nothing for a second.
s="--stop-after 1000ios"
w="--read-share 0% $s"
limited=$(by_serial limited)
plain=$(by_serial plain)
# The data to read was written before.
for disk in 0 12; do dd if=/dev/urandom of=/dev/ram$disk bs=1M count=48 2>/dev/null; done

r ram-disk /dev/ram0 -q 4 $s
r null-block /dev/nullb0 -q 4 $s
r too-deep /dev/nullb0 -q 64 $s
r limited-virtio "$limited" -q 8 --warm-up 500ms -d 2s
echo 0 >"/sys/block/${plain#/dev/}/queue/iostats"
r uncounted-virtio "$plain" -q 4 $s
echo 1 >"/sys/block/${plain#/dev/}/queue/iostats"

mdadm -q --create /dev/md5 --run --assume-clean --level=5 --chunk=64 -n 3 /dev/ram1 /dev/ram2 /dev/ram3
r partial-stripes /dev/md5 -b 4k -q 4 $w --destroy /dev/md5
r unaligned-chunks /dev/md5 -b 96k -q 4 $s
mdadm -q --manage /dev/md5 --fail /dev/ram2
r array-degraded /dev/md5 -b 64k -q 4 $s
mdadm -q --create /dev/md1 --run --assume-clean --level=1 --metadata=1.0 -n 2 /dev/ram4 /dev/ram5
mdadm -q --manage /dev/md1 --fail /dev/ram5
r mirror-degraded /dev/md1 -b 64k -q 4 $s
# The resync continues for as long as the run looks at it.
echo 2000 >/proc/sys/dev/raid/speed_limit_max
echo 1000 >/proc/sys/dev/raid/speed_limit_min
yes | mdadm -q --create /dev/md6 --run --level=1 --metadata=1.0 -n 2 /dev/ram6 /dev/ram7
r array-resync /dev/md6 -b 64k -q 4 $s

if [ -e /sbin/dmsetup ]; then
  printf '0 1024 linear /dev/ram12 0\n1024 8 error\n1032 31736 linear /dev/ram12 1032\n' | dmsetup create bad
  r bad-block /dev/mapper/bad -b 4k --pattern sequential -q 4 $s
  dmsetup remove bad
  echo '0 32768 flakey /dev/ram12 0 1 1' | dmsetup create flaky
  r flaky /dev/mapper/flaky -b 4k -q 1 --rate 200 --arrivals uniform --warm-up 0s -d 3s
  dmsetup remove flaky
  echo '0 90000 linear /dev/ram12 3' | dmsetup create shifted
  r misaligned-volume /dev/mapper/shifted -b 4k -q 4 $s
  dmsetup remove shifted
  # Suspended for a second in the window.
  echo '0 32768 linear /dev/ram12 0' | dmsetup create held
  (sleep 2; dmsetup suspend --noflush --nolockfs held; sleep 1; dmsetup resume held) &
  r suspended /dev/mapper/held -b 4k -q 1 --rate 200 --arrivals uniform --warm-up 0s -d 4s
  wait
  dmsetup remove held
fi

# QEMU removes the disk while it is read.
(sleep 2; for _ in 1 2 3 4; do hmp 'device_del gone'; sleep 1; done) &
r pulled-out "$(by_serial gone)" -q 4 --warm-up 0s -d 6s
wait
