//! A profile for people, in DiskSpd's words and order: the section "Input parameters".

use std::fmt::Write as _;

use super::model::{
    Access, Affinity, Cache, Distribution, Flush, Mapping, Order, Payload, Priority, Profile,
    SpanUnit, Target, Threads, Throttle, TimeSpan,
};
use fathom_core::printable;
use fathom_report::export::diskspd::size as shown;

/// The beginning of a result, and all of the output of `-Rp`.
pub fn profile(profile: &Profile, command_line: &str) -> String {
    let mut text = format!("\nCommand Line: {command_line}\n\nInput parameters:\n\n");
    if profile.verbose {
        text.push_str("\tusing verbose mode\n");
    }
    for (index, span) in profile.time_spans.iter().enumerate() {
        let _ = write!(text, "\ttimespan: {:3}\n\t-------------\n", index + 1);
        for line in time_span(span) {
            let _ = writeln!(text, "\t{line}");
        }
        for target in &span.targets {
            let path = match target.path.strip_prefix('*') {
                Some(number) => format!("template target '{}'", printable(number)),
                None => format!("'{}'", printable(&target.path)),
            };
            let _ = writeln!(text, "\tpath: {path}");
            for line in self::target(span, target) {
                let _ = writeln!(text, "\t\t{line}");
            }
        }
        text.push('\n');
    }
    text
}

fn time_span(span: &TimeSpan) -> Vec<String> {
    let mut lines = Vec::new();
    lines.push(format!("duration: {}s", span.duration_s));
    lines.push(format!("warm up time: {}s", span.warm_up_s));
    lines.push(format!("cool down time: {}s", span.cool_down_s));
    if span.affinity == Affinity::Off {
        lines.push("affinity disabled".to_owned());
    }
    if span.service_times {
        lines.push("measuring latency".to_owned());
    }
    if span.iops_deviation {
        lines.push(format!("gathering IOPS at intervals of {}ms", span.io_bucket_ms));
    }
    lines.push(format!("random seed: {}", span.seed));
    if let Some(threads) = span.threads.total() {
        lines.push(format!("thread pool with {threads} threads"));
    }
    if let Threads::Pool { outstanding, .. } = span.threads {
        lines.push(format!("number of outstanding I/O operations per thread: {outstanding}"));
    }
    if let Affinity::Explicit(cpus) = &span.affinity {
        let cpus: Vec<String> =
            cpus.iter().map(|cpu| format!("{}/{}", cpu.group, cpu.number)).collect();
        lines.push(format!("advanced affinity round robin (group/core): {}", cpus.join(", ")));
    }
    if span.random_write_data {
        lines.push("generating random data for each write IO".to_owned());
    }
    lines
}

fn target(span: &TimeSpan, target: &Target) -> Vec<String> {
    let own_threads = span.threads == Threads::PerTarget;
    let mut lines = Vec::new();
    lines.push(format!("think time: {}ms", target.burst.map_or(0, |burst| burst.think_time_ms)));
    lines.push(format!("burst size: {}", target.burst.map_or(0, |burst| burst.ios)));
    caching(target, &mut lines);
    payload(&target.payload, &mut lines);
    if matches!(target.access, Access::Sequential { order: Order::Parallel, .. }) {
        lines.push("using parallel async I/O".to_owned());
    }
    lines.push(match target.write_percent {
        0 => "performing read test".to_owned(),
        100 => "performing write test".to_owned(),
        writes => format!("performing mix test (read/write ratio: {}/{writes})", 100 - writes),
    });
    lines.push(format!("block size: {}", shown(u64::from(target.block_size))));
    lines.push(access(&target.access));
    lines.push(match span.threads {
        Threads::Pool { .. } => format!("relative IO weight in thread pool: {}", target.weight),
        _ => format!("number of outstanding I/O operations per thread: {}", target.outstanding),
    });
    region(target, &mut lines);
    if own_threads {
        lines.push(format!("threads per file: {}", target.threads));
        if target.outstanding > 1 {
            lines.push(match span.completion_routines {
                true => "using completion routines (ReadFileEx/WriteFileEx)".to_owned(),
                false => "using I/O Completion Ports".to_owned(),
            });
        }
    }
    lines.push(match target.priority {
        Priority::VeryLow => "IO priority: very low".to_owned(),
        Priority::Low => "IO priority: low".to_owned(),
        Priority::Normal => "IO priority: normal".to_owned(),
    });
    match target.throttle {
        Throttle::Off => {}
        Throttle::BytesPerMs(bytes) => {
            lines.push(format!("throughput rate-limited to {bytes} B/ms"));
        }
        Throttle::Iops(iops) => lines.push(format!("throughput rate-limited to {iops} IOPS")),
    }
    if let Access::Random { distribution: Some(shares), .. } = &target.access {
        distribution(shares, &mut lines);
    }
    lines
}

fn caching(target: &Target, lines: &mut Vec<String>) {
    lines.push(
        match target.cache {
            Cache::Cached => "using software cache",
            Cache::LocalOff => "local software cache disabled, remote cache enabled",
            Cache::Off => "software cache disabled",
        }
        .to_owned(),
    );
    lines.push(
        match (target.write_through, target.cache) {
            (false, _) => "using hardware write cache, writethrough off",
            (true, Cache::Off) => "hardware write cache disabled, writethrough on",
            (true, _) => "hardware and software write caches disabled, writethrough on",
        }
        .to_owned(),
    );
    if let Mapping::On(flush) = target.mapping {
        let how = match flush {
            Flush::None => "",
            Flush::ViewOfFile => ", flush mode: FlushViewOfFile",
            Flush::NonVolatileMemory => ", flush mode: FlushNonVolatileMemory",
            Flush::NonVolatileMemoryNoDrain => ", flush mode: FlushNonVolatileMemory with no drain",
        };
        lines.push(format!("memory mapped I/O enabled{how}"));
    }
}

fn payload(payload: &Payload, lines: &mut Vec<String>) {
    match payload {
        Payload::Pattern => {}
        Payload::Zero => lines.push("zeroing write buffers".to_owned()),
        Payload::Pool { size, file } => {
            lines.push(format!("write buffer size: {}", shown(*size)));
            lines.push(match file {
                Some(file) => format!("write buffer source: '{}'", printable(file)),
                None => "write buffer source: random fill".to_owned(),
            });
        }
    }
}

fn access(access: &Access) -> String {
    match access {
        Access::Sequential { stride, order: Order::Interlocked, .. } => {
            format!("using interlocked sequential I/O (stride: {})", shown(*stride))
        }
        Access::Sequential { stride, .. } => {
            format!("using sequential I/O (stride: {})", shown(*stride))
        }
        Access::Random { percent: 100, alignment, .. } => {
            format!("using random I/O (alignment: {})", shown(*alignment))
        }
        Access::Random { percent, alignment, .. } => format!(
            "using mixed random/sequential I/O ({percent}% random) (alignment/stride: {})",
            shown(*alignment)
        ),
    }
}

fn region(target: &Target, lines: &mut Vec<String>) {
    if target.base > 0 {
        lines.push(format!("base file offset: {}", shown(target.base)));
    }
    if let Some(end) = target.max_offset {
        lines.push(format!("max file size: {}", shown(end)));
    }
    match target.access {
        Access::Sequential { thread_stride, .. } if thread_stride > 0 => {
            lines.push(format!("thread stride size: {}", shown(thread_stride)));
        }
        _ => {}
    }
    for (given, name) in [
        (target.hints.sequential, "FILE_FLAG_SEQUENTIAL_SCAN"),
        (target.hints.random, "FILE_FLAG_RANDOM_ACCESS"),
        (target.hints.temporary, "FILE_ATTRIBUTE_TEMPORARY"),
    ] {
        if given {
            lines.push(format!("using {name} hint"));
        }
    }
}

fn distribution(distribution: &Distribution, lines: &mut Vec<String>) {
    lines.push("IO Distribution:".to_owned());
    let mut from = 0u64;
    for range in &distribution.ranges {
        let to = from.saturating_add(range.span);
        lines.push(match distribution.unit {
            SpanUnit::Percent => {
                format!("   {:3}% of IO => [{from:2}% - {to:3}%) of target", range.io)
            }
            SpanUnit::Bytes => {
                let from = match from {
                    0 => "     0   ".to_owned(),
                    from => format!("{:>9}", shown(from)),
                };
                let to = match range.span {
                    0 => "      end".to_owned(),
                    _ => format!("{:>9}", shown(to)),
                };
                format!("   {:3}% of IO => [{from} - {to})", range.io)
            }
        });
        from = to;
    }
}
