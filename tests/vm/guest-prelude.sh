# The beginning of every script in the guest. f NAME ARGUMENTS… keeps the output, the status and the result of
# a fathom in /out, where the section checks them.
f() {
  name=$1
  shift
  timeout 60 fathom "$@" >"/out/$name.txt" 2>&1
  echo $? >"/out/$name.status"
}
r() {
  run=$1
  shift
  f "$run" run "$@" --out "/out/$run.jsonl"
}
by_serial() {
  for disk in /sys/block/vd*; do
    [ "$(cat "$disk/serial" 2>/dev/null)" = "$1" ] && echo "/dev/${disk##*/}"
  done
}
export DM_DISABLE_UDEV=1
