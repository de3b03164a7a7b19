//! From the given options to their meaning: fills in the defaults, and refuses what DiskSpd
//! refuses, for a command line and for a profile alike.

use std::fmt::Display;

use super::distribution;
use super::model::{
    Access, Affinity, Burst, Cache, Cpu, Distribution, Flush, Hints, Mapping, Order, Payload,
    Priority, Range, SpanUnit, Target, ThreadTarget, Threads, Throttle, TimeSpan,
};
use crate::dialect::Notes;
use fathom_core::Refusal;

/// The source of a setting's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Speech {
    /// `-T1M`, as it is written among these options.
    Options(Vec<String>),
    /// `<ThreadStride>`.
    Elements,
}

impl Default for Speech {
    fn default() -> Self {
        Self::Options(Vec::new())
    }
}

impl Speech {
    /// A setting with its value: as it was typed, or with its other value.
    pub fn said(&self, option: &str, element: &str, value: impl Display) -> String {
        match self {
            Self::Options(words) => match typed(words, option) {
                Some(word) => word.to_owned(),
                None => format!("-{option}{value}"),
            },
            Self::Elements => format!("<{element}> {value}"),
        }
    }

    /// The same without a value.
    pub fn bare(&self, option: &str, element: &str) -> String {
        match self {
            Self::Options(_) => format!("-{}", option.trim_end_matches("<size>")),
            Self::Elements => format!("<{element}>"),
        }
    }

    /// The name of a setting that is this option and this element, or the option as it was typed.
    pub fn name(&self, option: &str, element: &str) -> String {
        match self {
            Self::Options(words) => match typed(words, option) {
                Some(word) => word.to_owned(),
                None => format!("-{option}"),
            },
            Self::Elements => format!("<{element}>"),
        }
    }
}

/// The last of these words that is this option. Some letters are several options: the text after
/// the letter decides.
fn typed<'a>(words: &'a [String], option: &str) -> Option<&'a str> {
    let says = |word: &str| {
        let next = |prefix: &str| word.strip_prefix(prefix).map(|rest| rest.chars().next());
        match option {
            "r" => next("r").is_some_and(|next| !matches!(next, Some('s' | 'd'))),
            "s" => next("s").is_some_and(|next| next != Some('i')),
            "Z" => word == "Z",
            "Z<size>" => next("Z").flatten().is_some_and(|next| next.is_ascii_digit()),
            "Sm" => word.starts_with('S') && word.contains('m'),
            "Su" => matches!(word, "h" | "S") || word.starts_with('S') && word.contains(['u', 'h']),
            _ => word.starts_with(option),
        }
    };
    words.iter().rev().map(String::as_str).find(|word| says(&word[1..]))
}

/// The settings of a time span; a missing one is `None`.
#[derive(Clone, Debug, Default)]
pub struct SpanDraft {
    /// The names of settings.
    pub speech: Speech,
    /// Its place in a file.
    pub place: Option<String>,
    pub completion_routines: bool,
    pub service_times: bool,
    pub iops_deviation: bool,
    pub io_bucket_ms: Option<u32>,
    pub duration_s: Option<u32>,
    pub warm_up_s: Option<u32>,
    pub cool_down_s: Option<u32>,
    /// `-F`.
    pub thread_count: Option<u32>,
    /// `-O`.
    pub request_count: Option<u32>,
    pub disable_affinity: bool,
    pub cpus: Vec<Cpu>,
    pub seed: Option<u32>,
    pub random_write_data: bool,
    pub targets: Vec<TargetDraft>,
}

/// The settings of a target; a missing one is `None`.
#[derive(Clone, Debug, Default)]
pub struct TargetDraft {
    /// Its place in a file.
    pub place: Option<String>,
    pub path: String,
    pub block_size: Option<u32>,
    pub base: u64,
    pub max_offset: Option<u64>,
    pub create_size: Option<u64>,
    pub hints: Hints,
    pub large_pages: bool,
    pub cache: Cache,
    pub write_through: bool,
    pub mapped: bool,
    pub flush: Flush,
    pub zero_buffers: bool,
    pub pool: Option<(u64, Option<String>)>,
    /// `-r`, `-rs`: percent of random I/Os.
    pub random_percent: Option<u32>,
    /// `-r`, `-s`: the alignment or stride, if it is not the block size.
    pub alignment: Option<u64>,
    pub interlocked: bool,
    pub parallel: bool,
    pub thread_stride: Option<u64>,
    pub distribution: Option<(SpanUnit, Vec<Range>)>,
    pub write_percent: u32,
    /// `-o`.
    pub request_count: Option<u32>,
    /// `-t`.
    pub threads: Option<u32>,
    pub burst_ios: Option<u32>,
    pub think_time_ms: Option<u32>,
    pub throttle: Option<Throttle>,
    pub priority: Priority,
    pub weight: Option<u32>,
    pub thread_targets: Vec<ThreadTarget>,
}

/// The default of a block.
pub const BLOCK_SIZE: u32 = 64 << 10;

impl SpanDraft {
    /// Its meaning. `fresh_seed` is for a span without a seed.
    ///
    /// # Errors
    ///
    /// When it contradicts itself.
    pub fn finish(mut self, fresh_seed: u32, notes: &mut Notes) -> Result<TimeSpan, Refusal> {
        let duration_s = self.duration_s.unwrap_or(10);
        if duration_s == 0 {
            return Err(self.refuse(
                self.said("d", "Duration", 0),
                "a measurement of 0 s measures nothing",
                "give it at least 1 second",
            ));
        }
        let affinity = self.affinity()?;
        let threads = self.threads(notes);
        let drafts = std::mem::take(&mut self.targets);
        let mut targets = Vec::with_capacity(drafts.len());
        for draft in drafts {
            targets.push(Maker { span: &self, draft: &draft, threads }.make(notes)?);
        }
        self.tell_about_payload(&targets, notes);
        let seed = self.seed.unwrap_or_else(|| {
            if draws(&targets) {
                notes.add(format!(
                    "no {}: DiskSpd draws the same on each run, here runs differ; -z{fresh_seed} \
                     repeats this one",
                    self.name("z", "RandSeed")
                ));
            }
            fresh_seed
        });
        Ok(TimeSpan {
            completion_routines: self.completion_routines,
            service_times: self.service_times,
            iops_deviation: self.iops_deviation,
            io_bucket_ms: self.io_bucket_ms.unwrap_or(1000),
            duration_s,
            warm_up_s: self.warm_up_s.unwrap_or(5),
            cool_down_s: self.cool_down_s.unwrap_or(0),
            threads,
            affinity,
            seed,
            random_write_data: self.random_write_data,
            targets,
        })
    }

    fn name(&self, option: &str, element: &str) -> String {
        self.speech.name(option, element)
    }

    fn said(&self, option: &str, element: &str, value: impl Display) -> String {
        self.speech.said(option, element, value)
    }

    fn refuse(&self, thing: String, problem: impl Into<String>, remedy: &str) -> Refusal {
        refuse(self.place.as_deref(), thing, problem, remedy)
    }

    fn affinity(&self) -> Result<Affinity, Refusal> {
        match (self.disable_affinity, self.cpus.is_empty()) {
            (true, false) => Err(self.refuse(
                self.name("n", "DisableAffinity"),
                format!(
                    "it switches off what {} lists: threads are pinned or they are not",
                    self.name("a", "Affinity")
                ),
                "drop one of the two",
            )),
            (true, true) => Ok(Affinity::Off),
            (false, true) => Ok(Affinity::RoundRobin),
            (false, false) => Ok(Affinity::Explicit(self.cpus.clone())),
        }
    }

    fn threads(&self, notes: &mut Notes) -> Threads {
        match (self.thread_count, self.request_count) {
            (None, None) => Threads::PerTarget,
            (Some(threads), None) => Threads::Total(threads),
            (Some(threads), Some(outstanding)) => {
                if self.targets.iter().any(|target| target.request_count.is_some())
                    && matches!(self.speech, Speech::Options(_))
                {
                    notes.add("-o has no effect: with -F and -O, -O says how many are in flight");
                }
                Threads::Pool { threads, outstanding }
            }
            (None, Some(outstanding)) => {
                let all = self.said("O", "RequestCount", outstanding);
                let total = self.name("F", "ThreadCount");
                let each = format!("-o{outstanding}");
                notes.add(match self.targets.iter().any(|target| target.request_count.is_none()) {
                    true => format!(
                        "{all} without {total} has no effect, as in DiskSpd: each thread keeps 2 \
                         I/Os in flight; {each} keeps {outstanding}"
                    ),
                    false => format!(
                        "{all} without {total} has no effect: the targets say \
                         themselves how many are in flight"
                    ),
                });
                Threads::PerTarget
            }
        }
    }

    fn tell_about_payload(&self, targets: &[Target], notes: &mut Notes) {
        let own = |target: &&Target| target.payload != Payload::Pattern;
        let Some(target) = targets.iter().find(own).filter(|_| self.random_write_data) else {
            return;
        };
        let (per_io, ours) = (
            self.name("Zr", "RandomWriteData"),
            match target.payload {
                Payload::Zero => self.name("Z", "Pattern"),
                _ => self.name("Z<size>", "RandomDataSource"),
            },
        );
        notes.add(format!("{per_io} has no effect on {}: {ours} goes before it", target.path));
    }
}

/// Whether the seed has an effect.
fn draws(targets: &[Target]) -> bool {
    targets.iter().any(|target| {
        matches!(target.access, Access::Random { .. }) || !matches!(target.write_percent, 0 | 100)
    })
}

fn refuse(place: Option<&str>, thing: String, problem: impl Into<String>, remedy: &str) -> Refusal {
    let thing = place.map_or(thing.clone(), |place| format!("{place}: {thing}"));
    Refusal::usage(thing, problem, remedy)
}

/// Makes a target of its draft.
struct Maker<'a> {
    span: &'a SpanDraft,
    draft: &'a TargetDraft,
    threads: Threads,
}

impl Maker<'_> {
    fn make(&self, notes: &mut Notes) -> Result<Target, Refusal> {
        let draft = self.draft;
        let block_size = draft.block_size.unwrap_or(BLOCK_SIZE);
        self.check_threads()?;
        let burst = self.burst(notes)?;
        let throttle = self.throttle(block_size, notes)?;
        self.check_pool()?;
        let access = self.access(block_size, notes)?;
        self.check_region(block_size)?;
        self.tell_about_creation(notes);
        Ok(Target {
            path: draft.path.clone(),
            block_size,
            base: draft.base,
            max_offset: draft.max_offset,
            create_size: draft.create_size,
            hints: draft.hints,
            large_pages: draft.large_pages,
            cache: draft.cache,
            write_through: draft.write_through,
            mapping: self.mapping()?,
            payload: self.payload(block_size, notes)?,
            access,
            write_percent: draft.write_percent,
            outstanding: draft.request_count.unwrap_or(2),
            threads: draft.threads.unwrap_or(1),
            burst,
            throttle,
            priority: draft.priority,
            weight: draft.weight.unwrap_or(1),
            thread_targets: draft.thread_targets.clone(),
        })
    }

    fn name(&self, option: &str, element: &str) -> String {
        self.span.speech.name(option, element)
    }

    fn said(&self, option: &str, element: &str, value: impl Display) -> String {
        self.span.speech.said(option, element, value)
    }

    fn refuse(&self, thing: String, problem: impl Into<String>, remedy: &str) -> Refusal {
        refuse(self.draft.place.as_deref(), thing, problem, remedy)
    }

    /// Two settings of which one has to be removed.
    fn clash(&self, thing: String, problem: impl Into<String>) -> Refusal {
        self.refuse(thing, problem, "drop one of the two")
    }

    fn check_threads(&self) -> Result<(), Refusal> {
        match (self.threads.total(), self.draft.threads) {
            (Some(total), Some(own)) if own > 1 => Err(self.clash(
                self.said("F", "ThreadCount", total),
                format!(
                    "it is the number of all threads, and {} that of each target",
                    self.said("t", "ThreadsPerFile", own)
                ),
            )),
            _ => Ok(()),
        }
    }

    fn burst(&self, notes: &mut Notes) -> Result<Option<Burst>, Refusal> {
        let (burst, think) = (self.name("i", "BurstSize"), self.name("j", "ThinkTime"));
        let said = |count: Option<u32>| count.filter(|&count| count > 0);
        let burst = match (said(self.draft.burst_ios), said(self.draft.think_time_ms)) {
            (None, None) => return Ok(None),
            (Some(ios), Some(think_time_ms)) => Burst { ios, think_time_ms },
            (Some(ios), None) => {
                return Err(self.refuse(
                    self.said("i", "BurstSize", ios),
                    "nothing says how long to pause between bursts",
                    &format!("add {think} with milliseconds"),
                ));
            }
            (None, Some(pause)) => {
                return Err(self.refuse(
                    self.said("j", "ThinkTime", pause),
                    "nothing says how many I/Os a burst has",
                    &format!("add {burst} with their number"),
                ));
            }
        };
        let threads = self.threads.total().or(self.draft.threads).unwrap_or(1);
        if self.draft.throttle.is_some() {
            notes.add(format!(
                "{think}: DiskSpd drops it where {} is given, here both hold",
                self.name("g", "Throughput")
            ));
        } else if threads > 1 {
            notes.add(format!(
                "bursts of {} I/Os: DiskSpd divides them by the {threads} threads, here each \
                 thread does them all",
                burst.ios
            ));
        }
        Ok(Some(burst))
    }

    fn throttle(&self, block_size: u32, notes: &mut Notes) -> Result<Throttle, Refusal> {
        let Some(throttle) = self.draft.throttle else { return Ok(Throttle::Off) };
        let name = self.name("g", "Throughput");
        if self.span.completion_routines {
            return Err(self.clash(
                name,
                format!(
                    "with completion routines, {}, DiskSpd cannot keep to a rate",
                    self.name("x", "CompletionRoutines")
                ),
            ));
        }
        if let Throttle::Iops(iops) = throttle {
            notes_on_iops(&name, iops, block_size, notes);
        }
        Ok(throttle)
    }

    /// Settings that contradict threads which draw the target of each I/O.
    fn check_pool(&self) -> Result<(), Refusal> {
        let draft = self.draft;
        let Threads::Pool { threads, .. } = self.threads else {
            return match draft.thread_targets.is_empty() {
                true => Ok(()),
                false => Err(self.refuse(
                    "<ThreadTargets>".to_owned(),
                    "threads can be told their targets only where all of them share all targets",
                    "give the time span a <ThreadCount> and a <RequestCount>",
                )),
            };
        };
        let all = self.name("O", "RequestCount");
        let problem = format!("{all} lets each thread draw the target of each I/O");
        for (given, name) in [
            (draft.throttle.is_some(), self.name("g", "Throughput")),
            (draft.think_time_ms.unwrap_or(0) > 0, self.name("j", "ThinkTime")),
            (draft.parallel, self.name("p", "ParallelAsyncIO")),
        ] {
            if given {
                return Err(self.clash(name, format!("{problem}, which leaves no place for it")));
            }
        }
        if draft.weight == Some(0) {
            return Err(self.refuse(
                "<Weight> 0".to_owned(),
                "no I/O would ever go to this target",
                "give it a weight above 0",
            ));
        }
        match draft.thread_targets.iter().find(|target| target.thread >= threads) {
            None => Ok(()),
            Some(target) => Err(self.refuse(
                format!("<ThreadTarget> {}", target.thread),
                format!("there are {threads} threads, numbered from 0"),
                "name one of them, or raise <ThreadCount>",
            )),
        }
    }

    fn access(&self, block_size: u32, notes: &mut Notes) -> Result<Access, Refusal> {
        let draft = self.draft;
        // DiskSpd treats a stride of 0 as none.
        let alignment = draft.alignment.filter(|&bytes| bytes > 0).unwrap_or(u64::from(block_size));
        if draft.alignment == Some(0) {
            notes
                .add(format!("a stride or alignment of 0 is taken for a block, {alignment} bytes"));
        }
        let Some(percent) = draft.random_percent else {
            return self.sequential(alignment, notes);
        };
        let random = self.name("r", "Random");
        for (given, name, problem) in [
            (
                draft.thread_stride.unwrap_or(0) > 0,
                self.name("T", "ThreadStride"),
                "random I/O has no place at which a thread starts",
            ),
            (
                draft.interlocked,
                self.name("si", "InterlockedSequential"),
                "random I/O has no pointer that threads could share",
            ),
            (
                draft.parallel,
                self.name("p", "ParallelAsyncIO"),
                "it starts sequential I/Os at the same place, random ones are drawn",
            ),
        ] {
            if given {
                return Err(self.clash(name, format!("it contradicts {random}: {problem}")));
            }
        }
        let distribution = draft.distribution.as_ref().map(|(unit, ranges)| {
            let ranges = distribution::complete(*unit, ranges, block_size).map_err(|problem| {
                self.refuse(self.name("rd", "Distribution"), problem, distribution::REMEDY)
            })?;
            Ok(Distribution { unit: *unit, ranges })
        });
        Ok(Access::Random { percent, alignment, distribution: distribution.transpose()? })
    }

    fn sequential(&self, stride: u64, notes: &mut Notes) -> Result<Access, Refusal> {
        let draft = self.draft;
        if draft.distribution.is_some() {
            return Err(self.refuse(
                self.name("rd", "Distribution"),
                "it distributes random I/Os, and all I/Os are sequential",
                &format!(
                    "add {}, or {} with their share",
                    self.name("r", "Random"),
                    self.name("rs", "RandomRatio")
                ),
            ));
        }
        let shared = self.name("si", "InterlockedSequential");
        let apart = self.name("T", "ThreadStride");
        let parallel = self.name("p", "ParallelAsyncIO");
        let thread_stride = draft.thread_stride.unwrap_or(0);
        let several = self.threads.total().or(draft.threads).unwrap_or(1) > 1;
        if draft.parallel && draft.request_count == Some(1) {
            notes.add(format!("{parallel} has no effect with one I/O in flight"));
        }
        let order = match (draft.interlocked, draft.parallel) {
            (true, _) if thread_stride > 0 => {
                return Err(self.clash(
                    apart,
                    format!("threads that share one pointer, {shared}, start at one place"),
                ));
            }
            (true, true) => {
                return Err(self.clash(
                    parallel,
                    format!("it contradicts {shared}: either all share one pointer, or none does"),
                ));
            }
            (true, false) => Order::Interlocked,
            (false, true) => Order::Parallel,
            (false, false) => Order::PerThread,
        };
        match (draft.interlocked, several, thread_stride > 0) {
            (true, false, _) => notes.add(format!("{shared} has no effect with one thread")),
            (false, true, false) => {
                // On a command line it applies to all targets.
                let target = match self.span.speech {
                    Speech::Options(_) => "a target",
                    Speech::Elements => &draft.path,
                };
                notes.add(format!(
                    "several threads walk over the same places of {target}, so that it does not \
                     see sequential I/O: {shared} lets them share one pointer, {apart} sets them \
                     apart"
                ));
            }
            (false, false, true) => {
                return Err(self.refuse(
                    self.said("T", "ThreadStride", thread_stride),
                    "it sets threads apart, and there is only one",
                    &format!("drop it, or raise {}", self.name("t", "ThreadsPerFile")),
                ));
            }
            _ => {}
        }
        Ok(Access::Sequential { stride, order, thread_stride })
    }

    /// Problems that DiskSpd finds when it opens the target, as far as they can be known before.
    fn check_region(&self, block_size: u32) -> Result<(), Refusal> {
        let draft = self.draft;
        let base = draft.base;
        let end = match (draft.create_size.filter(|&size| size > 0), draft.max_offset) {
            (Some(size), Some(max)) => size.min(max),
            (Some(end), None) | (None, Some(end)) => end,
            (None, None) => return Ok(()),
        };
        let room = end.saturating_sub(base);
        if room >= u64::from(block_size) {
            return Ok(());
        }
        let (thing, what) = match draft.max_offset == Some(end) {
            true => (self.said("f", "MaxFileSize", end), "I/O ends at"),
            false => (self.said("c", "FileSize", end), "the file ends at"),
        };
        Err(self.refuse(
            thing,
            format!(
                "{what} {end} and starts at {base}, which leaves no room for a block of \
                 {block_size} bytes"
            ),
            &format!(
                "raise it, or lower {} or {}",
                self.name("B", "BaseFileOffset"),
                self.name("b", "BlockSize")
            ),
        ))
    }

    fn tell_about_creation(&self, notes: &mut Notes) {
        let path = &self.draft.path;
        let volume = path.len() == 2 && path.ends_with(':');
        if self.draft.create_size.is_some() && (path.starts_with('#') || volume) {
            notes.add(format!(
                "{path} is no file, so that {} has no effect on it",
                self.name("c", "FileSize")
            ));
        }
    }

    fn mapping(&self) -> Result<Mapping, Refusal> {
        let draft = self.draft;
        let mapped = self.name("Sm", "MemoryMappedIo");
        match (draft.mapped, draft.flush) {
            (false, Flush::None) => Ok(Mapping::Off),
            (false, _) => Err(self.refuse(
                self.name("N", "FlushType"),
                "it says how a mapped file is flushed, and the file is not mapped",
                &format!("add {mapped}, or drop it"),
            )),
            (true, _) if self.span.completion_routines => Err(self.clash(
                self.name("x", "CompletionRoutines"),
                format!("I/O on a mapped file, {mapped}, has no completions"),
            )),
            (true, _) if draft.cache == Cache::Off => Err(self.clash(
                self.name("Su", "DisableOSCache"),
                format!("a mapped file, {mapped}, is read and written through the cache"),
            )),
            (true, flush) => Ok(Mapping::On(flush)),
        }
    }

    fn payload(&self, block_size: u32, notes: &mut Notes) -> Result<Payload, Refusal> {
        let Some((size, file)) = self.draft.pool.clone() else {
            return Ok(match self.draft.zero_buffers {
                true => Payload::Zero,
                false => Payload::Pattern,
            });
        };
        if size < u64::from(block_size) {
            return Err(self.refuse(
                self.said("Z<size>", "SizeInBytes", size),
                format!("blocks of {block_size} bytes are taken from it, and it is smaller"),
                "raise it to the block size at least",
            ));
        }
        if self.draft.zero_buffers {
            notes.add(format!(
                "{} has no effect: {} goes before it",
                self.name("Z", "Pattern"),
                self.said("Z<size>", "SizeInBytes", size)
            ));
        }
        Ok(Payload::Pool { size, file })
    }
}

/// DiskSpd's effective limit for a limit in IOPS, if it differs: DiskSpd multiplies in 32 bits and
/// rounds the bytes of a millisecond down.
fn notes_on_iops(name: &str, iops: u64, block_size: u32, notes: &mut Notes) {
    let asked = u128::from(iops) * u128::from(block_size);
    let theirs = (asked % (1 << 32)) / 1000;
    // A difference of a percent or less cannot be observed.
    if theirs * 1000 * 100 >= asked * 99 {
        return;
    }
    let what = match theirs {
        0 => "no limit at all".to_owned(),
        _ => {
            let iops = format!("{:.2}", theirs as f64 * 1000.0 / f64::from(block_size));
            format!("{} IOPS", iops.trim_end_matches('0').trim_end_matches('.'))
        }
    };
    notes.add(format!("{name}: DiskSpd would make {what} of {iops} IOPS, here they are exact"));
}
