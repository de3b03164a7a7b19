//! The codes of findings, and each in a few words.

/// The codes that a finding can have, and what each of them says in a clause. The codes are for
/// programs, and do not change; the words are for one line of text, without figures, and may change.
pub const CODES: &[(&str, &str)] = &[
    ("allocating-writes", "the writes allocate blocks"),
    ("array-degraded", "an array lacks a disk"),
    ("array-resync", "an array is being rebuilt or checked"),
    ("barriers-off", "flushes do not reach the medium"),
    ("below-rated", "far below the rating"),
    ("cached-below", "a cache answered"),
    ("cgroup-limit", "a control group limits the device"),
    ("compression", "the file system compresses"),
    ("concurrent-fathom", "another fathom process used the target"),
    ("copy-on-write", "the file system copies on write"),
    ("copy-up", "an overlay copies the file"),
    ("cpu-contention", "other programs used the CPUs"),
    ("cpu-share", "the CPUs were busy"),
    ("cpu-steal", "the hypervisor took CPU time"),
    ("cpu-throttled", "a control group limited the CPU time"),
    ("credit-exhausted", "IOPS fell and stayed low, as when a burst credit ends"),
    ("data-reduction", "the target reduces data"),
    ("depth-not-reached", "the queue depth was not reached"),
    ("device-gone", "the device is gone"),
    ("faster-than-rated", "faster than the rating"),
    ("few-flushes", "the device was hardly flushed"),
    ("few-samples", "there were too few I/Os for a p99"),
    ("file-system-full", "the file system is almost full"),
    ("foreign-io", "other programs used the disk"),
    ("gave-up", "a worker gave up after failed I/Os"),
    ("generator-ceiling", "the load generator was near its ceiling"),
    ("generator-late", "the load generator was late"),
    ("host-differs", "a host differs from the others"),
    ("host-lost", "a host was lost"),
    ("hosts-apart", "the hosts did not begin together"),
    ("interrupted", "the window ended early"),
    ("io-errors", "I/Os failed"),
    ("io-priority-ignored", "the scheduler ignores the I/O priority"),
    ("io-wq", "I/Os went through io_uring's own threads"),
    ("level-change", "the level changed in the window"),
    ("loop-buffered", "a loop device uses the page cache"),
    ("lost-ios", "I/Os did not come back"),
    ("low-priority", "fathom ran at a low priority"),
    ("machine-paused", "the machine was paused"),
    ("many-extents", "the file is in many pieces"),
    ("memory-pressure", "memory was short"),
    ("memory-target", "the target is memory"),
    ("misaligned", "I/Os are misaligned"),
    ("more-workers-than-cpus", "there are more workers than CPUs"),
    ("not-judged", "a mistake in fathom left it unjudged"),
    ("not-steady", "IOPS were not steady"),
    ("nothing-completed", "no I/O completed"),
    ("numa-remote", "workers ran on a remote NUMA node"),
    ("overload", "the load was more than the target can do"),
    ("page-cache", "the page cache answered"),
    ("partial-stripes", "writes cover parts of stripes"),
    ("periodic-stalls", "I/O stalled periodically"),
    ("process-stopped", "fathom was stopped"),
    ("queue-too-deep", "the queue is deeper than the device's"),
    ("rate-limited", "something limits the rate"),
    ("realtime-stopped", "real-time workers were held up"),
    ("repeating-content", "the data on the target repeats"),
    ("repeating-data-faster", "data that repeats is written faster"),
    ("repeating-payload", "the payload repeats"),
    ("shared-extents", "the file shares blocks with others"),
    ("short-ios", "I/Os moved too few bytes"),
    ("slow-outside-device", "time was lost outside the device"),
    ("small-footprint", "the region may fit into a cache"),
    ("stall", "I/O stalled"),
    ("submission-threads-crowded", "too few CPUs for the submission threads"),
    ("target-replaced", "the target was replaced"),
    ("target-written-by-others", "another program wrote to the target"),
    ("top-of-stack", "the layers below the target are hidden"),
    ("trace-incomplete", "the trace is incomplete"),
    ("trend", "IOPS drifted"),
    ("trimmed-reads", "blocks were read that the run trimmed"),
    ("unwritten-reads", "blocks were read that were never written"),
    ("volatile-write-cache", "writes may be in a volatile cache"),
    ("warm-up-too-short", "the warm-up was too short"),
    ("window-too-short", "the load was too short for I/Os that take this long"),
    ("worker-busy", "a worker was busy all the time"),
];

/// Whether this is the code of a finding.
pub fn is_code(code: &str) -> bool {
    CODES.iter().any(|(known, _)| *known == code)
}

/// The same code as findings of this version have it; none if no finding has it.
pub fn known_code(code: &str) -> Option<&'static str> {
    CODES.iter().find(|(known, _)| *known == code).map(|(known, _)| *known)
}

/// What a code says, in a clause; the code itself if this version does not know it, as a result file
/// of another version may have it.
pub fn code_in_words(code: &str) -> &str {
    CODES.iter().find(|(known, _)| *known == code).map_or(code, |(_, words)| words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_once_in_order_with_words_that_fit_a_line() {
        assert!(CODES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (code, words) in CODES {
            assert!(!words.is_empty() && words.len() <= 60 && !words.ends_with('.'), "{code}");
            assert_eq!(code_in_words(code), *words);
        }
        assert_eq!(code_in_words("of-another-version"), "of-another-version");
    }
}
