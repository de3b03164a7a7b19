# arrays.sh, in the guest: the multi-stream study over md arrays of every level and a single disk.
modprobe -a md-mod raid0 raid1 raid10 raid456
modprobe brd rd_nr=18 rd_size=16384
array() { # NAME LEVEL DISKS...
  name=$1 level=$2
  shift 2
  clean=--assume-clean
  [ "$level" != 0 ] || clean=
  chunk=--chunk=64
  [ "$level" != 1 ] || chunk=
  mdadm -q --create "/dev/$name" --run $clean $chunk --level="$level" -n $# "$@"
}
array md0 0 /dev/ram1 /dev/ram2 /dev/ram3 /dev/ram4
array md1 1 /dev/ram5 /dev/ram6
array md5 5 /dev/ram7 /dev/ram8 /dev/ram9
array md6 6 /dev/ram10 /dev/ram11 /dev/ram12 /dev/ram13
array md10 10 /dev/ram14 /dev/ram15 /dev/ram16 /dev/ram17
cat /proc/mdstat
# Two by two settings of a few I/Os each: everything is slow here, and only the path through the code matters.
targets="/dev/ram0 /dev/md0 /dev/md1 /dev/md5 /dev/md6 /dev/md10"
consent=
for target in $targets; do consent="$consent --destroy $target"; done
timeout 400 fathom study multi-stream $targets \
  --axis workers=1,2 --axis queue-depth=1/worker,4/worker --repeats 1 --warm-up 0s --stop-after 40ios \
  $consent --yes --out /out/arrays.jsonl >/out/arrays.txt 2>&1
echo $? >/out/arrays.status
