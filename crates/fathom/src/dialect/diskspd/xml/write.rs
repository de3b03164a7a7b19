//! A profile as XML, with DiskSpd's elements in DiskSpd's order: DiskSpd and [`super::read`] can
//! run it.

use std::fmt::{Display, Write as _};

use fathom_core::markup;

use crate::dialect::diskspd::model::{
    Access, Affinity, Cache, Distribution, ETW, Flush, Mapping, Order, Payload, Precreate, Profile,
    ResultFormat, SpanUnit, Target, Threads, Throttle, TimeSpan,
};

/// The `<Profile>` element, each line indented by `indent` spaces at least.
pub fn profile(profile: &Profile, indent: usize) -> String {
    let mut out = Out { text: String::new(), indent };
    out.within("Profile", |out| {
        out.value("Progress", profile.progress);
        if profile.experiment_flags > 0 {
            out.value("ExperimentFlags", profile.experiment_flags);
        }
        out.value(
            "ResultFormat",
            match profile.result_format {
                ResultFormat::Text => "text",
                ResultFormat::Xml => "xml",
            },
        );
        out.value("Verbose", profile.verbose);
        if profile.verbose_stats {
            out.value("VerboseStats", true);
        }
        if let Some(name) = precreate(profile.precreate) {
            out.value("PrecreateFiles", name);
        }
        if let Some(switches) = profile.etw {
            out.within("ETW", |out| {
                for ((name, _), on) in ETW.iter().zip(switches) {
                    out.value(name, on);
                }
            });
        }
        out.within("TimeSpans", |out| {
            profile.time_spans.iter().for_each(|span| time_span(out, span));
        });
    });
    out.text
}

/// The element's text for it, if it has an element.
pub fn precreate(precreate: Precreate) -> Option<&'static str> {
    match precreate {
        Precreate::None => None,
        Precreate::UseMaxSize => Some("UseMaxSize"),
        Precreate::ConstantSizes => Some("CreateOnlyFilesWithConstantSizes"),
        Precreate::ConstantOrZeroSizes => Some("CreateOnlyFilesWithConstantOrZeroSizes"),
    }
}

/// The element's text for it, if it has an element.
pub fn flush(flush: Flush) -> Option<&'static str> {
    match flush {
        Flush::None => None,
        Flush::ViewOfFile => Some("ViewOfFile"),
        Flush::NonVolatileMemory => Some("NonVolatileMemory"),
        Flush::NonVolatileMemoryNoDrain => Some("NonVolatileMemoryNoDrain"),
    }
}

struct Out {
    text: String,
    indent: usize,
}

impl Out {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{:indent$}{text}", "", indent = self.indent);
    }

    fn value(&mut self, name: &str, value: impl Display) {
        let text = escaped(&value.to_string());
        self.line(&format!("<{name}>{text}</{name}>"));
    }

    fn within(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        self.line(&format!("<{name}>"));
        self.indent += 2;
        write(self);
        self.indent -= 2;
        self.line(&format!("</{name}>"));
    }
}

/// Text between tags. Readers drop the space at both ends, unless it is written as a number.
fn escaped(text: &str) -> String {
    let body = text.trim_matches(' ');
    let lead = text.len() - text.trim_start_matches(' ').len();
    let [before, after] = [lead, text.len() - lead - body.len()].map(|n| "&#32;".repeat(n));
    format!("{before}{}{after}", markup(body))
}

fn time_span(out: &mut Out, span: &TimeSpan) {
    out.within("TimeSpan", |out| {
        out.value("CompletionRoutines", span.completion_routines);
        out.value("MeasureLatency", span.service_times);
        out.value("CalculateIopsStdDev", span.iops_deviation);
        out.value("DisableAffinity", span.affinity == Affinity::Off);
        out.value("Duration", span.duration_s);
        out.value("Warmup", span.warm_up_s);
        out.value("Cooldown", span.cool_down_s);
        out.value("ThreadCount", span.threads.total().unwrap_or(0));
        out.value(
            "RequestCount",
            match span.threads {
                Threads::Pool { outstanding, .. } => outstanding,
                _ => 0,
            },
        );
        out.value("IoBucketDuration", span.io_bucket_ms);
        out.value("RandSeed", span.seed);
        // DiskSpd leaves it out, so that its own profile does not repeat -Zr.
        if span.random_write_data {
            out.value("RandomWriteData", true);
        }
        if let Affinity::Explicit(cpus) = &span.affinity {
            out.within("Affinity", |out| {
                for cpu in cpus {
                    out.line(&format!(
                        "<AffinityGroupAssignment Group=\"{}\" Processor=\"{}\"/>",
                        cpu.group, cpu.number
                    ));
                }
            });
        }
        out.within("Targets", |out| {
            span.targets.iter().for_each(|one| target(out, one));
        });
    });
}

fn target(out: &mut Out, target: &Target) {
    out.within("Target", |out| {
        out.value("Path", &target.path);
        out.value("BlockSize", target.block_size);
        out.value("BaseFileOffset", target.base);
        out.value("SequentialScan", target.hints.sequential);
        out.value("RandomAccess", target.hints.random);
        out.value("TemporaryFile", target.hints.temporary);
        out.value("UseLargePages", target.large_pages);
        caching(out, target);
        payload(out, &target.payload);
        let parallel = Order::Parallel;
        let order = match &target.access {
            Access::Sequential { order, .. } => Some(*order),
            Access::Random { .. } => None,
        };
        out.value("ParallelAsyncIO", order == Some(parallel));
        if let Some(burst) = target.burst {
            out.value("BurstSize", burst.ios);
            out.value("ThinkTime", burst.think_time_ms);
        }
        if let Some(size) = target.create_size {
            out.value("FileSize", size);
        }
        access(out, &target.access);
        out.value("MaxFileSize", target.max_offset.unwrap_or(0));
        out.value("RequestCount", target.outstanding);
        out.value("WriteRatio", target.write_percent);
        match target.throttle {
            Throttle::Off => out.value("Throughput", 0),
            Throttle::BytesPerMs(bytes) => out.value("Throughput", bytes),
            Throttle::Iops(iops) => {
                out.line(&format!("<Throughput unit=\"IOPS\">{iops}</Throughput>"));
            }
        }
        out.value("ThreadsPerFile", target.threads);
        out.value("IOPriority", target.priority.number());
        out.value("Weight", target.weight);
        if !target.thread_targets.is_empty() {
            out.within("ThreadTargets", |out| thread_targets(out, target));
        }
    });
}

fn thread_targets(out: &mut Out, target: &Target) {
    for thread in &target.thread_targets {
        out.within("ThreadTarget", |out| {
            out.value("Thread", thread.thread);
            if let Some(weight) = thread.weight {
                out.value("Weight", weight);
            }
        });
    }
}

fn caching(out: &mut Out, target: &Target) {
    match target.cache {
        Cache::Cached => {}
        Cache::LocalOff => out.value("DisableLocalCache", true),
        Cache::Off => out.value("DisableOSCache", true),
    }
    if target.write_through {
        out.value("WriteThrough", true);
    }
    if let Mapping::On(how) = target.mapping {
        out.value("MemoryMappedIo", true);
        if let Some(name) = flush(how) {
            out.value("FlushType", name);
        }
    }
}

fn payload(out: &mut Out, payload: &Payload) {
    out.within("WriteBufferContent", |out| match payload {
        Payload::Pattern => out.value("Pattern", "sequential"),
        Payload::Zero => out.value("Pattern", "zero"),
        Payload::Pool { size, file } => {
            out.value("Pattern", "random");
            out.within("RandomDataSource", |out| {
                out.value("SizeInBytes", size);
                if let Some(file) = file {
                    out.value("FilePath", file);
                }
            });
        }
    });
}

fn access(out: &mut Out, access: &Access) {
    match access {
        Access::Sequential { stride, order, thread_stride } => {
            out.value("StrideSize", stride);
            out.value("InterlockedSequential", *order == Order::Interlocked);
            out.value("ThreadStride", thread_stride);
        }
        Access::Random { percent, alignment, distribution } => {
            out.value("Random", alignment);
            if *percent < 100 {
                out.value("RandomRatio", percent);
            }
            if let Some(shares) = distribution {
                distributed(out, shares);
            }
            out.value("ThreadStride", 0);
        }
    }
}

fn distributed(out: &mut Out, distribution: &Distribution) {
    let unit = match distribution.unit {
        SpanUnit::Percent => "Percent",
        SpanUnit::Bytes => "Absolute",
    };
    out.within("Distribution", |out| {
        out.within(unit, |out| {
            for range in &distribution.ranges {
                out.line(&format!("<Range IO=\"{}\">{}</Range>", range.io, range.span));
            }
        });
    });
}
