# known.sh, in the guest: disks with known limits.
modprobe nvme
modprobe null_blk nr_devices=1 irqmode=2 completion_nsec=2000000 memory_backed=1 gb=1
disk=$(by_serial limit)
# The emulated machine is slower than the limit while the host is busy, so each depth is measured three times.
# The kernel's count is recorded beside each result.
reads() { awk '{ print $1 }' "/sys/block/${disk##*/}/stat"; }
for try in 1 2 3; do
  for depth in 1 4 32; do
    # The bucket has to be empty again.
    sleep 0.5
    before=$(reads)
    r limit$depth-$try "$disk" -q $depth --warm-up 0s -d 3s
    echo $(($(reads) - before)) >"/out/limit$depth-$try.reads"
  done
done
f inspect-nvme inspect /dev/nvme0n1
r nvme /dev/nvme0n1 -q 8 --stop-after 500ios
f inspect-null inspect /dev/nullb0
r null /dev/nullb0 -q 1 --stop-after 500ios
r write /dev/nullb0 -q 4 --read-share 0% --destroy /dev/nullb0 --stop-after 500ios
