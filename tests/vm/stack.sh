# stack.sh, in the guest: disks that consist of others, and those others.
modprobe -a md-mod raid0 raid456 dm-mod dm-linear
modprobe brd rd_nr=8 rd_size=65536
mdadm -q --create /dev/md0 --run --level=0 --chunk=64 -n 2 /dev/ram0 /dev/ram1
mdadm -q --create /dev/md5 --run --assume-clean --level=5 --chunk=32 -n 3 /dev/ram2 /dev/ram3 /dev/ram4
f inspect0 inspect /dev/md0
f inspect5 inspect /dev/md5
r md0 /dev/md0 -b 64k --read-share 50% --destroy /dev/md0 --stop-after 500ios
w="--read-share 0% --warm-up 0s -d 1s"
md5sum /dev/ram2 >/out/before
r member /dev/ram2 $w --destroy /dev/ram2
md5sum /dev/ram2 >/out/after
if [ -e /sbin/dmsetup ]; then
  echo '0 131072 linear /dev/ram5 0' | dmsetup create volume
  r held /dev/ram5 $w --destroy /dev/ram5
  f inspect-dm inspect /dev/mapper/volume
else
  touch /out/no-dm
fi
mkswap /dev/ram6 >/dev/null
swapon /dev/ram6
r swap /dev/ram6 $w --destroy /dev/ram6
swapoff /dev/ram6
# Watching: requests are those of the lowest layer; a volume has none of its own.
modprobe null_blk nr_devices=1 gb=1 irqmode=2 completion_nsec=2000000 queue_mode=2
r watched /dev/nullb0 -q 2 --stop-after 500ios --watch
if [ -e /sbin/dmsetup ]; then
  echo '0 131072 linear /dev/nullb0 2048' | dmsetup create layered
  # The watch begins when the load reads, and the load goes on until the watch has ended.
  read before rest </sys/block/nullb0/stat
  fathom run /dev/mapper/layered -q 1 --rate 200 --warm-up 0s -d 10m --out /out/load.jsonl >/dev/null 2>&1 &
  load=$!
  now=$before
  while kill -0 $load && [ "$now" -lt $((before + 50)) ]; do
    sleep 0.1
    read now rest </sys/block/nullb0/stat
  done
  f watch-layers watch /dev/mapper/layered --count 4 --interval 700ms --out /out/layers.jsonl
  kill $load
  wait
  r watched-volume /dev/mapper/layered -q 2 --stop-after 500ios --watch
fi
f watch-md watch /dev/md0 --count 1 --interval 200ms
