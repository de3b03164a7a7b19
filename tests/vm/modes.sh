# modes.sh, in the guest: NVMe commands past the block layer, polled queues, submission threads.
# The kernel was started with nvme.poll_queues=1.
modprobe nvme
# QEMU's own count of the writes to a drive, from its monitor. The monitor refuses a mark by its name. What
# comes before that answers a question that was given up.
marks=0
writes_of() {
  # A busy machine answers late.
  for patience in 2 4 8 16; do
    (timeout $patience cat /dev/ttyS2 >/tmp/monitor) &
    sleep 0.3
    marks=$((marks + 1))
    hmp "mark$marks"
    hmp 'info blockstats'
    wait
    count=$(tr -d '\r' </tmp/monitor |
      sed -n "/unknown command: 'mark$marks'/,\$ s/^$1: .*wr_operations=\([0-9]*\).*/\1/p" | tail -n 1)
    [ -z "$count" ] || break
  done
  echo $count
}
nvme-check /dev/ng0n1 /dev/nvme0n1 >/out/check.txt 2>&1
echo $? >/out/check.status
f inspect inspect /dev/ng0n1
# On a busy machine an emulated device may complete nothing for more than a second, above all if it is polled.
s="-b 4k -q 8 --stop-after 500ios"
r read /dev/ng0n1 $s
r read-polled /dev/ng0n1 $s --polled
r block-polled /dev/nvme0n1 $s --polled
r read-threaded /dev/ng0n1 $s --sqpoll
writes_of n1 >/out/before
r write /dev/ng1n1 $s --read-share 0% --pattern sequential --size 1m --destroy /dev/ng1n1 --polled
writes_of n1 >/out/after
dd if=/dev/nvme1n1 of=/out/written bs=1M count=1 iflag=direct 2>/dev/null
r large /dev/ng0n1 -b 4m -q 1 --warm-up 0s -d 1s
r cached /dev/ng0n1 $s --buffered
r aio /dev/ng0n1 $s --backend aio
r mixed /dev/ng0n1 /dev/nvme1n1 $s
modprobe brd rd_nr=1 rd_size=16384
r unpolled /dev/ram0 $s --polled
# A device that is mounted as a block device is not written with commands.
mke2fs /dev/nvme1n1 >/dev/null 2>&1
modprobe ext4
mkdir -p /mnt/used
mount -t ext4 /dev/nvme1n1 /mnt/used 2>/dev/null || mount -t ext2 /dev/nvme1n1 /mnt/used
r used /dev/ng1n1 $s --read-share 0% --destroy /dev/ng1n1
umount /mnt/used
