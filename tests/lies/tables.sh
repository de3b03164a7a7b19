# tables.sh: the lies, one per row. kit.sh explains the words, and makers.sh makes the lies.
# shellcheck disable=SC2154

# Options for short and long runs.
short="--warm-up 100ms -d 1s"
long="--warm-up 0s -d 4500ms"

# The statement of the probe.
compresses() { grep -q "It compresses: " "$out"; }
none_shown() { grep -q "not seen to compress" "$out"; }

group="what is read and written"
lie sparse-file "A sparse file is read: no byte of it was ever written" \
  firm=yes made=sparse run="@ -q 4 $short" must=unwritten-reads never="sound page-cache compression $errors $limits"
lie preallocated-file "The file was made by fallocate and never written" \
  firm=yes made=preallocated run="@ -q 4 $short" must=unwritten-reads never="sound page-cache compression $errors $limits"
lie partly-sparse "An eighth of the file is a hole" \
  firm=yes made=partly_sparse run="@ -q 4 $short" must="unwritten-reads void" never="page-cache compression $errors $limits"
lie sliver-of-holes "One in 256 blocks of the file is a hole" \
  made=sliver_sparse run="@ -q 4 $short" must="unwritten-reads" never="page-cache compression $errors $limits"
lie allocating-writes "Writes to a file that has no blocks yet" \
  firm=yes made=sparse run="@ -q 4 --read-share 0% --overwrite $short" must=allocating-writes never="unwritten-reads $errors $limits"
lie trimmed-reads "The run itself trims what it reads" \
  firm=yes made=own_copy run="@ -q 4 --trim-share 20% --overwrite $short" must=trimmed-reads never="$errors $limits"
lie file-of-zeros "The file was written, but with zeros, like SQLIO's files" \
  firm=yes made=zeros_file run="@ -q 4 $short" must=repeating-content never="unwritten-reads compression $errors $limits"
lie file-of-one-value "Every byte of the file is A5" \
  firm=yes made=one_value_file run="@ -q 4 $short" must=repeating-content never="unwritten-reads compression $errors $limits"
lie file-of-one-block "All blocks of the file are the same random bytes" \
  firm=yes made=one_block_file run="@ -q 4 $short" must=repeating-content never="unwritten-reads compression $errors $limits"
lie zeros-written "The payload is zeros" \
  firm=yes made=own_copy run="@ -q 4 --read-share 0% --payload zeros --overwrite $short" must=repeating-payload never="unwritten-reads compression $errors $limits"
lie one-value-written "The payload is one value" \
  firm=yes made=own_copy run="@ -q 4 --read-share 0% --payload hex:A5 --overwrite $short" must=repeating-payload never="unwritten-reads compression $errors $limits"
lie compressing-mount "btrfs is mounted with compression" \
  firm=yes made=compress_mount run="@ -q 4 $short" must=compression never="unwritten-reads page-cache $errors $limits"
lie compressing-file "btrfs compresses because of a property of the folder" \
  made=compress_property run="@ -q 4 $short" must="compression|data-reduction" never="unwritten-reads $errors $limits"
lie copy-on-write "btrfs puts overwrites in other places" \
  firm=yes made=btrfs_file run="@ -q 4 --read-share 0% --overwrite $short" must=copy-on-write never="unwritten-reads compression $errors $limits"
lie shared-blocks "The file on XFS shares all of its blocks with a copy" \
  firm=yes made=reflinked run="@ -q 4 --read-share 50% --overwrite $short" must=shared-extents never="unwritten-reads compression $errors $limits"
lie shared-blocks-btrfs "The file on btrfs shares all of its blocks with a copy" \
  firm=yes made=reflinked_btrfs run="@ -q 4 --read-share 50% --overwrite $short" must=shared-extents never="unwritten-reads compression $errors $limits"
lie fragmented-file "The file lies in thousands of extents" \
  firm=yes made=many_extents run="@ -q 4 $short" must=many-extents never="unwritten-reads compression $errors $limits"
lie full-file-system "The file system has no block left" \
  firm=yes made=full_file_system run="@ -q 4 $short" must=file-system-full never="unwritten-reads $errors $limits"
lie small-region "64 MiB of a disk, which a cache of the host may hold" \
  made=plain run="@ -q 4 $short" must=small-footprint never="$errors $limits unwritten-reads page-cache memory-target"
lie zeros-are-faster "A simulated device compresses; zeros and random data are written" \
  made=no_target command="sweep sim:ssd,compresses=90% --axis payload=random,zeros -b 64k -q 32 --read-share 0% --prepare 0 --size 64m -d 500ms --warm-up 0s --repeats 3" \
  must=repeating-data-faster never="$errors unwritten-reads"
lie compressing-device "A simulated device compresses; the probe examines it" \
  made=no_target command="quick sim:ssd,compresses=90% -d 1s" must=data-reduction never="$errors"
lie compressed-memory "The target is compressed memory; the probe examines it" \
  made=compressed_memory command="inspect @ --probe --overwrite --destroy @" with_out=no must=file:compresses never="file:none_shown"
lie compressing-writes "btrfs compresses the payload; the probe examines it" \
  made=compress_mount command="inspect @ --probe --overwrite" with_out=no must=file:compresses never="file:none_shown"

group="caches and memory"
lie page-cache "Buffered reads of a file that is far smaller than the memory" \
  made=plain run="@ -q 4 --buffered $short" must=page-cache never="cached-below memory-target unwritten-reads $errors $limits"
lie mapped-file "The file is read through a mapping" \
  made=plain run="@ -q 1 --mmap $short" must=page-cache never="cached-below memory-target unwritten-reads $errors $limits"
lie buffered-writes "Buffered writes, which no disk has seen when they complete" \
  made=own_copy run="@ -q 4 --buffered --read-share 0% --overwrite $short" must=page-cache never="cached-below memory-target $errors $limits"
lie file-in-tmpfs "The file is in tmpfs" \
  firm=yes made=memory_file run="@ -q 4 $short" must=memory-target never="cached-below foreign-io unwritten-reads $errors $limits"
lie file-in-ramfs "The file is in ramfs" \
  firm=yes made=ram_file run="@ -q 4 --buffered $short" must=memory-target never="cached-below foreign-io unwritten-reads $errors $limits"
lie zram "The device is compressed memory" \
  firm=yes made=compressed_memory run="@ -q 4 $short" must=memory-target never="cached-below foreign-io $errors $limits"
lie zram-and-zeros "The device is compressed memory, and the payload is zeros" \
  made=compressed_memory run="@ -q 4 --read-share 0% --payload zeros --overwrite --destroy @ $short" must="memory-target repeating-payload|data-reduction" never="cached-below foreign-io $errors $limits"
lie loop-in-memory "The loop device's file is in tmpfs" \
  firm=yes made=loop_in_memory run="@ -q 4 $short" must="memory-target|top-of-stack" never="cached-below foreign-io unwritten-reads $errors $limits"
lie loop-through-cache "The loop device reads its file through the page cache, which holds it" \
  made=loop_buffered run="@ -q 4 $short" must="cached-below|loop-buffered" never="memory-target unwritten-reads $errors $limits"
lie journaled-data "ext4 with data=journal takes direct I/O through the page cache" \
  made=journaled_data run="@ -q 4 --read-share 50% --overwrite $short" must="cached-below|page-cache|top-of-stack" never="memory-target unwritten-reads $errors $limits"

group="the stack"
lie overlay-copies-up "The first write to a file of an overlay copies all of it up" \
  firm=yes made=overlay_lower run="@ -q 4 --read-share 0% --overwrite $short" must="copy-up" never="memory-target unwritten-reads cached-below $errors $limits"
lie fuse "A program serves the disk, from an unknown source" \
  firm=yes made=slow run="@ -q 4 $short" must=top-of-stack never="memory-target unwritten-reads cached-below foreign-io $errors $limits"
lie shallow-queue "64 requests at a device that takes 4" \
  made=shallow_loop run="@ -q 64 $short" must=queue-too-deep never="memory-target unwritten-reads cached-below $errors $limits"
lie misaligned-blocks "Blocks of 512 bytes on sectors of 4 KiB" \
  firm=yes made=plain run="@ -b 512 -q 4 $short" must=misaligned never="memory-target unwritten-reads $errors $limits"
lie misaligned-loop "A loop device begins 512 bytes into its file" \
  firm=yes made=shifted_loop run="@ -q 4 $short" must=misaligned never="memory-target unwritten-reads $errors $limits"
lie misaligned-partition "A partition begins at sector 63" \
  made=odd_partition run="@ -q 4 $short" must=misaligned never="memory-target unwritten-reads $errors $limits"
lie unaligned-offset "The region begins at an odd sector" \
  firm=yes made=plain run="@ -q 4 --offset 512 --align 512 --size 32m $short" must=misaligned never="memory-target unwritten-reads $errors $limits"
lie scheduler-ignores "The scheduler ignores the requested I/O priority" \
  firm=yes made=loop_direct run="@ -q 4 --io-priority realtime:0 $short" must=io-priority-ignored never="memory-target unwritten-reads $errors $limits"
lie write-cache "Writes to a disk with a volatile cache are not flushed" \
  firm=yes made=own_copy run="@ -q 4 --read-share 0% --overwrite $short" must=volatile-write-cache never="unwritten-reads $errors $limits"
lie barriers-off "ext4 is mounted with nobarrier" \
  firm=yes made=nobarrier run="@ -q 4 --read-share 0% --overwrite --sync dsync $short" must=barriers-off never="unwritten-reads $errors $limits"
lie no-flushes "Durable writes whose flushes do not reach the disk" \
  made=nobarrier run="@ -q 4 --read-share 0% --overwrite --fdatasync 1 $short" must="few-flushes|barriers-off" never="unwritten-reads $errors $limits"

group="other users"
lie foreign-reader "Another program reads the device" \
  made=foreign_reader run="@ -q 1 $short" must=foreign-io never="cached-below unwritten-reads target-written-by-others $errors $limits"
lie foreign-writer "Another program writes to the device" \
  made=foreign_writer run="@ -q 1 --size 32m $short" must=foreign-io never="cached-below unwritten-reads $errors $limits"
lie foreign-small-ios "Another program does many small I/Os" \
  made=foreign_small_reads run="@ -b 1m -q 2 --pattern sequential --warm-up 100ms -d 2s" must=foreign-io never="cached-below unwritten-reads $errors $limits"
lie busy-disk "Another program reads another file of the same disk" \
  made=foreign_at_the_disk run="@ -q 1 $short" must=foreign-io never="unwritten-reads target-written-by-others $errors $limits"
lie late-writeback "Data written earlier goes to the disk in the window" \
  made=late_writeback run="@ -q 1 --warm-up 0s -d 2s" must=foreign-io never="unwritten-reads target-written-by-others $errors $limits"
lie written-by-others "Another program writes into the file that is read" \
  made=written_by_others run="@ -q 4 --warm-up 0s -d 2s" must="target-written-by-others" never="unwritten-reads $errors $limits"
lie second-fathom "Another fathom writes to the same file" \
  firm=yes made=second_fathom run="@ -q 4 --read-share 0% --overwrite $short" must="concurrent-fathom|exit-3" never="unwritten-reads $errors $limits"
lie second-reader "Another fathom reads the same file" \
  made=reading_fathom run="@ -q 4 $short" must="concurrent-fathom|exit-3" never="unwritten-reads $errors $limits"
lie target-replaced "Another file replaces the target" \
  made=replaced run="@ -q 4 --warm-up 0s -d 2s" must=target-replaced never="unwritten-reads page-cache $errors $limits"
lie target-unmounted "The target's file system is unmounted lazily" \
  made=unmounted run="@ -q 4 --warm-up 0s -d 2s" must=target-replaced never="unwritten-reads page-cache $errors $limits"
lie target-truncated "The file becomes shorter" \
  made=truncated run="@ -q 4 --warm-up 0s -d 2s" must="device-gone|short-ios|target-replaced|target-written-by-others" never="unwritten-reads page-cache $limits"

group="failures"
lie bad-sector "Reads of one place fail" \
  made=bad_sector run="@ -b 16k -q 4 --pattern sequential $short" must="io-errors void" never="short-ios device-gone lost-ios foreign-io cached-below $limits"
lie short-reads "Reads return half of the requested bytes" \
  made=short_reads run="@ -b 16k -q 4 --pattern sequential $short" must="short-ios void" never="io-errors device-gone lost-ios foreign-io cached-below $limits"
lie unplugged "Reads return no bytes and no error" \
  made=unplugged run="@ -q 4 $short" must="device-gone void" never="io-errors lost-ios foreign-io cached-below $limits"
lie no-space "The disk is full while it is written" \
  made=no_space run="@ -b 64k -q 4 --read-share 0% --overwrite $short" must="io-errors void" never="short-ios device-gone lost-ios foreign-io cached-below $limits"
lie server-dies "The server of the disk is killed" \
  made=dying run="@ -q 4 --warm-up 0s -d 2s" must="gave-up|io-errors void" never="short-ios device-gone foreign-io cached-below $limits"
lie hanging-device "A simulated device never completes an I/O" \
  made=no_target run="sim:ssd,hang-after=500ms -q 4 --warm-up 0s -d 1s" must="lost-ios void" never="sound short-ios io-errors device-gone"
lie errors-in-thousands "On a simulated device one I/O in a thousand fails" \
  made=no_target run="sim:ssd,error=0.1% -q 4 --warm-up 0s -d 1s" must="io-errors void" never="short-ios device-gone lost-ios"
lie nothing-completes "A simulated device answers after an hour" \
  made=no_target run="sim:queue,service-time=1h -q 4 --warm-up 0s -d 1s" must="nothing-completed void" never="sound"
lie interrupted "The run was ended early" \
  made=interrupted run="@ -q 4 --warm-up 0s -d 10s" must=interrupted never="$errors $limits unwritten-reads" tries=2

group="limits and ratings"
lie cgroup-reads "The cgroup allows 500 reads a second" \
  made=blkio_reads run="@ -q 8 --warm-up 500ms -d 2s" must=cgroup-limit never="foreign-io cached-below cpu-throttled $errors"
lie cgroup-read-bytes "The cgroup allows reads of 10 MiB/s" \
  made=blkio_read_bytes run="@ -b 64k -q 8 --warm-up 500ms -d 2s" must=cgroup-limit never="foreign-io cached-below cpu-throttled $errors"
lie cgroup-writes "The cgroup allows 500 writes a second" \
  made=blkio_writes run="@ -q 8 --read-share 0% --overwrite --destroy @ --warm-up 500ms -d 2s" must=cgroup-limit never="foreign-io cached-below cpu-throttled $errors"
lie cgroup-write-bytes "The cgroup allows writes of 10 MiB/s" \
  made=blkio_write_bytes run="@ -b 64k -q 8 --read-share 0% --overwrite --destroy @ --warm-up 500ms -d 2s" must=cgroup-limit never="foreign-io cached-below cpu-throttled $errors"
lie limited-iops "The disk is held at 3000 I/Os a second" quiet=yes \
  made=limited_iops run="@ -q 16 --warm-up 500ms -d 4s" must=rate-limited never="foreign-io cached-below cpu-throttled cgroup-limit $errors"
lie limited-bandwidth "The disk is held at 12 MB/s" quiet=yes \
  made=limited_bandwidth run="@ -q 8 --warm-up 500ms -d 4s" must=rate-limited never="foreign-io cached-below cpu-throttled cgroup-limit $errors"
lie limited-below-a-loop "The disk below a loop device is held at 3000 I/Os a second" quiet=yes \
  made=limited_loop run="@ -q 2 --warm-up 500ms -d 4s" must=rate-limited never="foreign-io cpu-throttled cgroup-limit $errors"
lie faster-than-rated "The target is faster than its rating" \
  made=plain run="@ -q 4 --rated-iops 50 $short" must="faster-than-rated void" never="below-rated $errors $limits"
lie bits-for-bytes "The rating of a disk of 20 MiB/s was given in bits" \
  made=slow_bandwidth run="@ -b 64k -q 8 --rated-bandwidth 168MB/s --warm-up 500ms -d 2s" must=below-rated never="faster-than-rated $errors cgroup-limit"
lie far-below-rated "The target does a thousandth of its rating" \
  made=limited_iops run="@ -q 8 --rated-iops 1m $short" must=below-rated never="faster-than-rated $errors cgroup-limit"
lie rate-in-bits "A rate of 1Mb/s" \
  made=plain run="@ --rate 1Mb/s $short" must=exit-2 never="sound suspect void"
lie overload "An open loop asks for ten times what the disk does" \
  made=limited_iops run="@ --rate 10k -q 64 $short" must=overload never="foreign-io cgroup-limit $errors"
lie overload-simulated "An open loop asks for twice what a simulated queue does" \
  made=no_target run="sim:queue,servers=1,service-time=1ms --rate 2000 -q 64 --warm-up 0s -d 5s" must="overload" never="generator-late worker-busy $errors"
lie serialized "The target does one I/O at a time, at any queue depth" \
  made=serialized quiet=yes run="@ -q 16 --warm-up 0s -d 4s" must="rate-limited" never="foreign-io $errors cgroup-limit"
lie depth-not-reached "/dev/zero answers before fathom submits the next I/O, so that less than one I/O is in flight" \
  made=zero_device run="@ -b 512 -q 1 --backend sync --buffered --size 64m $short" must="depth-not-reached" never="cached-below $errors $limits"
lie turns-before-the-disk "btrfs admits one write at a time to a file, although 32 are in flight" \
  made=btrfs_file effect="depth-not-reached" run="@ -q 32 --read-share 0% --overwrite --warm-up 100ms -d 2s" must="depth-not-reached" never="unwritten-reads $errors $limits"
lie drained-depth "A depth of 256 is requested until a number of I/Os is done, but memory answers at once, so that far fewer are in flight" \
  made=memory_file run="@ -q 256 --stop-after 100kios" must="depth-not-reached" never="$errors $limits"

group="change in the window"
lie step-down "After two seconds every I/O takes 25 times as long" \
  made=steps_down effect="not-steady trend warm-up-too-short stall level-change" run="@ -q 16 $long" must="level-change|credit-exhausted" never="foreign-io cgroup-limit rate-limited periodic-stalls $errors"
lie step-up "After two seconds every I/O takes a 25th of the time" \
  made=steps_up effect="not-steady trend warm-up-too-short stall level-change" run="@ -q 16 $long" must="level-change" never="foreign-io cgroup-limit rate-limited credit-exhausted periodic-stalls $errors"
lie single-stall "Once, all I/Os stall for 600 ms" \
  made=stalls_once effect="not-steady trend warm-up-too-short stall level-change" run="@ -q 4 --warm-up 0s -d 3500ms" must=stall never="foreign-io cgroup-limit rate-limited periodic-stalls credit-exhausted process-stopped $errors"
lie stall-in-open-loop "The same in an open loop" \
  made=stalls_once effect="not-steady trend warm-up-too-short stall level-change" run="@ --rate 500 --warm-up 0s -d 3500ms" must=stall never="foreign-io cgroup-limit rate-limited periodic-stalls credit-exhausted process-stopped $errors"
lie periodic-stalls "All I/Os stall for 150 ms every 700 ms" \
  made=stalls_again effect="not-steady trend warm-up-too-short stall level-change" run="@ -q 4 --warm-up 0s -d 6s" must=periodic-stalls never="foreign-io cgroup-limit rate-limited credit-exhausted $errors"
lie credit-runs-out "The disk does 3000 a second for two seconds, then 300" \
  made=credit effect="not-steady trend warm-up-too-short stall level-change" run="@ -q 16 $long" must="credit-exhausted|level-change" never="foreign-io cgroup-limit periodic-stalls $errors"
lie drift "Each second every I/O takes 20 ms longer" \
  made=drifts effect="not-steady trend warm-up-too-short stall level-change" run="@ -q 16 $long" must="trend|level-change|credit-exhausted" never="foreign-io cgroup-limit rate-limited periodic-stalls $errors"
lie warm-up "In the first part of the window I/Os take 25 times as long" \
  made=warms_up effect="not-steady trend warm-up-too-short stall level-change" run="@ -q 16 $long" must="level-change|warm-up-too-short" never="foreign-io cgroup-limit rate-limited periodic-stalls $errors"
# The group's limit lets I/Os through in slices of 100 ms, which really are stalls with a period.
lie limit-comes "The cgroup's limit falls from 5000 to 200 a second in the window" \
  made=blkio_late effect="not-steady trend warm-up-too-short stall level-change" run="@ -q 8 --warm-up 0s -d 4s" must="cgroup-limit|level-change|credit-exhausted" never="foreign-io cached-below cpu-throttled $errors"
lie step-simulated "A simulated disk with credit for two seconds" \
  made=no_target effect="not-steady trend warm-up-too-short stall level-change" run="sim:burst,credit=2s -q 16 --warm-up 0s -d 8s" must="credit-exhausted|level-change" never="$errors periodic-stalls process-stopped"
lie stall-simulated "A simulated disk that stalls once for 400 ms" \
  made=no_target effect="not-steady trend warm-up-too-short stall level-change" run="sim:queue,stall=3s+400ms -q 16 --warm-up 0s -d 8s" must="stall" never="$errors periodic-stalls credit-exhausted level-change trend process-stopped"
lie stalls-simulated "A simulated disk that stalls for 100 ms each second" \
  made=no_target effect="not-steady trend warm-up-too-short stall level-change" run="sim:queue,stall=500ms+100ms/1s -q 16 --warm-up 0s -d 8s" must="periodic-stalls" never="$errors credit-exhausted level-change trend process-stopped"
lie stalls-in-open-loop "The same in an open loop, where the stalls show in the p99 alone" \
  made=no_target effect="not-steady trend warm-up-too-short stall level-change" run="sim:queue,stall=500ms+100ms/1s --rate 2000 --warm-up 0s -d 8s" must="periodic-stalls" never="$errors credit-exhausted level-change trend process-stopped overload"

group="the machine"
lie cpu-quota "The cgroup gives a tenth of a CPU" \
  made=quota run="@ -q 4 $short" must=cpu-throttled never="foreign-io cached-below cgroup-limit $errors"
lie starved "Other programs want every CPU, and fathom has a fraction of their share" \
  made=starved_memory run="@ -q 4 --warm-up 100ms -d 2s" must=cpu-contention never="foreign-io cached-below cpu-throttled cgroup-limit $errors"
lie starved-at-a-disk "The same at a disk, which waits for fathom" \
  made=starved_slow run="@ -q 4 --warm-up 100ms -d 2s" must="cpu-contention" never="unwritten-reads cpu-throttled cgroup-limit $errors"
lie starved-open-loop "The same in an open loop, whose I/Os start late" \
  made=starved_slow run="@ --rate 2000 --warm-up 100ms -d 2s" must="generator-late|cpu-contention" never="unwritten-reads cpu-throttled cgroup-limit $errors"
lie shared-cpu "Four other programs share fathom's only CPU" \
  made=one_cpu run="@ -q 4 --warm-up 100ms -d 2s" must=cpu-contention never="unwritten-reads cpu-throttled cgroup-limit $errors"
lie slow-outside-device "More time passes between the block layer and fathom than in the device" \
  made=starved_slow run="@ -q 1 --warm-up 100ms -d 2s" must="slow-outside-device|cpu-contention" never="unwritten-reads cpu-throttled cgroup-limit $errors"
lie stopped "The process was stopped for 0.7 s" \
  made=stopped run="@ -q 4 --warm-up 0s -d 3s" must=process-stopped never="unwritten-reads foreign-io cgroup-limit cpu-throttled $errors"
lie frozen "The cgroup was frozen for 0.7 s" \
  made=frozen run="@ -q 4 --warm-up 0s -d 3s" must=process-stopped never="unwritten-reads foreign-io cgroup-limit cpu-throttled $errors"
lie swapping "The machine swaps" \
  made=swapping run="@ -q 4 --warm-up 100ms -d 2s" must=memory-pressure never="unwritten-reads cgroup-limit cpu-throttled $errors"
lie nice "fathom was started with nice" \
  firm=yes made=niced run="@ -q 4 $short" must=low-priority never="unwritten-reads cgroup-limit cpu-throttled $errors"
lie idle-io "fathom was started with ionice in the idle class" \
  firm=yes made=idle_io run="@ -q 4 $short" must=low-priority never="unwritten-reads cgroup-limit cpu-throttled $errors"
lie busy-worker "One worker reads from memory as fast as it can" \
  made=memory_file run="@ -q 1 --backend sync --warm-up 100ms -d 2s" must="worker-busy" never="cached-below cpu-throttled cgroup-limit $errors" \
  pending="a worker that waits for its CPU is not busy yet"
lie all-the-cpus "Workers for every CPU use more than a quarter of the CPU time" \
  made=memory_file run="@ -q 4 -w 2 $short" must="cpu-share" never="cached-below cpu-throttled cgroup-limit $errors"
lie generator-ceiling "Blocks cost nothing, so that fathom measures itself" \
  made=zero_device run="@ -b 512 -q 1 --backend sync --buffered --size 64m $short" quiet=yes must="generator-ceiling|worker-busy|cpu-contention" never="cached-below cpu-throttled cgroup-limit $errors"
lie many-workers "More workers than CPUs" \
  firm=yes made=plain run="@ -w 16 -q 16 $short" must=more-workers-than-cpus never="unwritten-reads $errors $limits"
lie cpuset "Two workers run on the one CPU that the cgroup allows" \
  firm=yes made=crowded_cpuset run="@ -w 2 -q 4 $short" must=more-workers-than-cpus never="unwritten-reads $errors $limits"
lie submission-threads "Two workers and their submission threads on two CPUs" \
  made=plain run="@ -w 16 -q 16 --sqpoll $short" must=submission-threads-crowded never="unwritten-reads $errors $limits"
lie real-time-quota "The cgroup gives real-time programs a hundredth of the time" \
  made=real_time_quota run="@ --rate 5000 --realtime --warm-up 0s -d 2s" must="realtime-stopped" never="unwritten-reads $errors $limits"
lie ring-threads "The ring's threads do the I/Os, because writes that allocate would block" \
  made=sparse run="@ -q 8 --read-share 0% --overwrite --backend uring $short" must=io-wq never="unwritten-reads $errors $limits"
lie few-samples "Too few I/Os for a p99" \
  made=slow run="@ --rate 50 --arrivals uniform --warm-up 0s -d 1s" must=few-samples never="foreign-io $errors $limits"
lie trace-lost "The trace's disk is full" \
  made=traced run="@ -q 4 $short" must=trace-incomplete never="unwritten-reads $errors $limits"

group="disks of a virtual machine"
boot_guest
from_guest ram-disk "A RAM disk" must=memory-target never="cached-below foreign-io unwritten-reads $errors $limits"
from_guest null-block "null_blk keeps its data in memory" must=memory-target never="cached-below foreign-io unwritten-reads $errors $limits"
from_guest too-deep "64 requests at a device that takes 16" must=queue-too-deep never="cached-below foreign-io unwritten-reads $errors $limits" \
  pending="RAM disks and null_blk that count no I/Os are void as yet"
from_guest limited-virtio "A virtio disk that its host holds at 500 I/Os a second" must=rate-limited never="cached-below cgroup-limit unwritten-reads $errors"
from_guest partial-stripes "Writes of 4 KiB to RAID 5" must=partial-stripes never="cached-below array-degraded array-resync $errors $limits"
from_guest unaligned-chunks "Blocks that straddle the chunks of an array" must=misaligned never="cached-below array-degraded array-resync $errors $limits" \
  pending="RAM disks that count no I/Os are void as yet"
from_guest array-degraded "RAID 5 has lost a disk" must=array-degraded never="cached-below array-resync $errors $limits"
from_guest mirror-degraded "RAID 1 has lost a disk" must=array-degraded never="cached-below array-resync $errors $limits"
from_guest array-resync "RAID 1 is resynchronized while it is read" must=array-resync never="cached-below foreign-io array-degraded $errors $limits"
from_guest bad-block "One block of the disk cannot be read" must="io-errors void" never="short-ios device-gone lost-ios cached-below $limits"
from_guest flaky "The disk fails every second second" must="io-errors void" never="short-ios lost-ios cached-below $limits"
from_guest misaligned-volume "A volume begins at sector 3 of its disk" must=misaligned never="cached-below $errors $limits"
from_guest suspended "The volume is suspended for a second" must="stall|process-stopped" never="cached-below $errors $limits"
from_guest pulled-out "The disk is pulled out" must="device-gone|io-errors|gave-up void" never="cached-below $limits"

group=truths
truth prepared-reads "Random reads of a prepared file" made=plain run="@ -q 4 $short"
truth prepared-sequential "Sequential reads of a prepared file" made=plain run="@ -b 64k -q 4 --pattern sequential $short"
truth prepared-one-at-a-time "One read at a time" made=plain run="@ -q 1 $short"
truth prepared-writes "Random writes to a prepared file" made=own_copy run="@ -q 4 --read-share 50% --overwrite $short"
truth flushed-writes "Flushed writes, with the file system journal that they cause" \
  made=quiet_ext4 run="@ -q 1 --read-share 0% --overwrite --fsync 1 $short" \
  never="void foreign-io cached-below page-cache barriers-off few-flushes $errors $limits $contents $places"
truth hole-outside "The hole of the file is outside the region" made=hole_outside run="@ -q 4 --size 32m $short"
truth open-loop "An open loop at a rate that any disk carries" made=plain run="@ --rate 100 $short"
truth loop-device "A loop device with direct I/O" made=loop_direct run="@ -q 4 $short"
truth uncounted "The disk's counters are switched off, which does not make its figures wrong" \
  made=uncounted_loop run="@ -q 4 $short"
truth overlay-reads "Reads of a file in the lower layer of an overlay; fathom follows them to its disk" \
  made=overlay_lower run="@ -q 4 $short"
truth xfs-file "A file on XFS" made=xfs_file run="@ -q 4 $short"
truth simulated-queue "A simulated queue" made=no_target run="sim:queue -q 8 --warm-up 0s -d 5s" never="void suspect $storage worker-busy cpu-contention stall periodic-stalls level-change trend credit-exhausted"
truth simulated-ssd "A simulated SSD" made=no_target run="sim:ssd -q 32 --warm-up 0s -d 5s" never="void suspect $storage worker-busy cpu-contention stall periodic-stalls level-change trend credit-exhausted"
truth simulated-disk "A simulated hard disk" made=no_target run="sim:hdd -q 4 --warm-up 0s -d 30s" never="void suspect $storage worker-busy cpu-contention stall periodic-stalls level-change trend credit-exhausted"
truth simulated-open-loop "Poisson arrivals at a simulated queue" made=no_target run="sim:queue,servers=1,distribution=exponential --rate 5000 --warm-up 1s -d 10s" never="void suspect $storage worker-busy cpu-contention stall periodic-stalls level-change trend credit-exhausted"
# The data that it reads really is zeros.
from_guest uncounted-virtio "A virtio disk whose counters are switched off" must="sound|suspect" \
  never="void $errors $cached $limits $places $arrays misaligned"
