# stack.sh, in the guest: disks that consist of others, and those others.
modprobe -a md-mod raid0 raid456 dm-mod dm-linear
modprobe brd rd_nr=8 rd_size=65536
mdadm -q --create /dev/md0 --run --level=0 --chunk=64 -n 2 /dev/ram0 /dev/ram1
mdadm -q --create /dev/md5 --run --assume-clean --level=5 --chunk=32 -n 3 /dev/ram2 /dev/ram3 /dev/ram4
f inspect0 inspect /dev/md0
f inspect5 inspect /dev/md5
r md0 /dev/md0 -b 64k --read-share 50% --destroy /dev/md0 --warm-up 0s -d 1s
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
