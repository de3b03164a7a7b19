# faults.sh: a target that fails while it is measured. Every failure is counted with its place and
# its errno, the rest is measured, and nothing panics.
source "$FATHOM_ROOT/tests/lib.sh"
require jq
[[ -w /dev/fuse ]] || cannot_run "/dev/fuse is missing or not writable"

no_panic() { ! says 'panicked|RUST_BACKTRACE' && [[ $status -ne 1 && $status -ne 101 && $status -lt 132 ]]; }
# The checks of every run on a broken target.
owes() { # NAME
  check "$1: no panic" no_panic
  check "$1: measured, and the exit code says so" status_is 0 4
  check "$1: not called sound" test "$(trial .verdict)" != '"sound"' -a "$(trial .verdict)" != sound
  check "$1: every I/O is accounted for" test "$(trial 'ledger | .due ==
    .completed_in_warm_up + .completed + .failed + .in_flight + .lost + .unstarted')" = true
}

if command -v qemu-storage-daemon >/dev/null; then
  disk=$FATHOM_BED/disk
  null="driver=null-co,size=67108864,read-zeroes=on"
  serve "$disk" -- --blockdev "$null,node-name=n0" \
    --blockdev driver=blkdebug,node-name=d0,image=n0,inject-error.0.event=none,inject-error.0.iotype=read,inject-error.0.errno=5,inject-error.0.sector=2048,inject-error.1.event=none,inject-error.1.iotype=write,inject-error.1.errno=28,inject-error.1.sector=4096 \
    --export "type=fuse,id=e0,node-name=d0,mountpoint=$disk,writable=on"
  measure "$disk" -b 64k --pattern sequential -q 4 --stop-after 1024ios --size 64m
  owes "a bad sector"
  check "a bad sector: counted" between "$(trial failures)" 1 1e9
  check "a bad sector: all failures are at its place, with EIO" test "$(trial \
    'kept | length > 0 and all(.offset_bytes == 1048576 and .failure.errno == 5 and .direction == "read" and .target == 0)')" = true
  check "a bad sector: the rest was read" between "$(trial ios)" 100 1e9
  measure "$disk" -b 64k --pattern sequential -q 4 --read-share 0% --overwrite --stop-after 1024ios --size 64m
  owes "a full disk"
  check "a full disk: ENOSPC at its place" test "$(trial \
    'kept | length > 0 and all(.offset_bytes == 2097152 and .failure.errno == 28 and .direction == "write")')" = true
  check "the terminal names the place and the error" says '2097152|2 MiB|ENOSPC|[Nn]o space'
else
  skip "errors injected by a storage daemon" "qemu-storage-daemon is missing"
fi

fault() { # NAME FAULTS-OPTIONS...
  folder=$FATHOM_BED/faults-$1
  shift
  serve_faults "$folder" "$@"
}
done_with_faults() {
  umount -l "$folder" 2>/dev/null || true
  end_server "$server"
}

for backend in uring aio sync; do
  fault "eio-$backend" eio-at=8388608 eio-length=65536
  measure "$folder/data" -b 16k -q 4 --pattern sequential --backend $backend --stop-after 4096ios
  owes "EIO by $backend"
  check "EIO by $backend: at its place" test "$(trial \
    'kept | length > 0 and all(.offset_bytes >= 8388608 and .offset_bytes < 8454144 and .failure.errno == 5)')" = true
  done_with_faults

  fault "short-$backend" short-at=33554432
  measure "$folder/data" -b 16k -q 4 --pattern sequential --backend $backend --stop-after 4096ios
  owes "short reads by $backend"
  check "short reads by $backend: half of the block" test "$(trial \
    'kept | length > 0 and all(.offset_bytes >= 33554432 and .failure.short_bytes == 8192)')" = true
  done_with_faults
done

fault empty empty-at=0
measure "$folder/data" -b 4k -q 4 --warm-up 0s -d 2s
owes "reads of nothing"
check "reads of nothing: none of them counts as an I/O" test "$(trial 'ios == 0 and failures > 0')" = true
check "reads of nothing: zero bytes each" test "$(trial 'kept | all(.failure.short_bytes == 0)')" = true
done_with_faults

fault delay delay-us=1000
measure "$folder/data" -b 4k -q 1 --warm-up 0s -d 1s
check "a delay of 1 ms is in the service time" between "$(trial 'quantile(0.5; .service_time) / 1e6')" 1 1e3
done_with_faults

# The stall comes after the 256 samples of the data that will be read.
fault stall stall-at=350 stall-ms=1500 delay-us=200
measure "$folder/data" -b 4k -q 1 --rate 200 --arrivals uniform --warm-up 0s --stop-after 2000ios
check "a stall: no panic" no_panic
check "a stall: the longest service time shows it" between "$(trial 'longest / 1e6')" 1499 60000
check "a stall: the p99 of the response time shows it, that of the service time does not" \
  test "$(trial 'quantile(0.99; .response_time) > 5e8 and quantile(0.99; .service_time) < 5e8')" = true
done_with_faults

fault full full-after=8388608
measure "$folder/data" -b 64k -q 4 --read-share 0% --overwrite --stop-after 1024ios
owes "no space left"
check "no space left: ENOSPC" test "$(trial 'kept | length > 0 and all(.failure.errno == 28)')" = true
check "no space left: what was written before counts" between "$(trial bytes)" 8000000 8388608
done_with_faults

for backend in uring aio sync; do
  fault "die-$backend" die-after=300 delay-us=500
  measure "$folder/data" -b 4k -q 8 --warm-up 0s -d 3s --backend $backend
  owes "the server is killed, $backend"
  check "the server is killed, $backend: ECONNABORTED or ENOTCONN" test "$(trial \
    'kept | length > 0 and all(.failure.errno == 103 or .failure.errno == 107)')" = true
  done_with_faults
done
