//! Reads a profile in XML. Anything that DiskSpd's schema does not contain is an error, with its
//! place.

use super::tree::{self, Element};
use super::write;
use crate::dialect::Notes;
use crate::dialect::diskspd::draft::{SpanDraft, Speech, TargetDraft};
use crate::dialect::diskspd::model::{
    Cache, Cpu, ETW, Flush, Precreate, Priority, Range, ResultFormat, SpanUnit, ThreadTarget,
    Throttle,
};
use fathom_core::Refusal;

/// The content of a profile.
#[derive(Debug, Default)]
pub struct ProfileDraft {
    pub progress: u32,
    pub experiment_flags: u32,
    pub result_format: ResultFormat,
    pub verbose: bool,
    pub verbose_stats: bool,
    pub precreate: Precreate,
    pub etw: Option<[bool; ETW.len()]>,
    pub spans: Vec<SpanDraft>,
}

/// The remedy for content that no profile has.
const LOOK: &str = "fathom diskspd -Rpxml with options prints a profile to compare with";

/// Reads a profile, or the one in a result. `targets` stand for `*1`, `*2` and so on; without any
/// these stay as they are.
///
/// # Errors
///
/// When it is no profile, or does not use just these targets.
pub fn profile(
    name: &str,
    bytes: &[u8],
    targets: &[String],
    notes: &mut Notes,
) -> Result<ProfileDraft, Refusal> {
    let root = tree::read(name, bytes)?;
    let root = match root.name.as_str() {
        "Profile" => &root,
        "Results" => root
            .children
            .iter()
            .find(|child| child.name == "Profile")
            .ok_or_else(|| Refusal::usage(&root.place, "the result has no <Profile>", LOOK))?,
        other => {
            let problem = format!("a profile is a <Profile>, this is a <{other}>");
            return Err(Refusal::usage(&root.place, problem, LOOK));
        }
    };
    let fields = Fields::new(
        root,
        &[
            "TimeSpans",
            "Verbose",
            "VerboseStats",
            "Progress",
            "ExperimentFlags",
            "ResultFormat",
            "ETW",
            "PrecreateFiles",
        ],
    )?;
    let mut reader = ProfileReader { targets, used: vec![false; targets.len()], notes };
    let mut draft = ProfileDraft {
        progress: reader.u32(&fields, "Progress")?.unwrap_or(0),
        experiment_flags: reader.u32(&fields, "ExperimentFlags")?.unwrap_or(0),
        result_format: fields
            .one_of("ResultFormat", &[("text", ResultFormat::Text), ("xml", ResultFormat::Xml)])?
            .unwrap_or_default(),
        verbose: reader.flag(&fields, "Verbose")?,
        verbose_stats: reader.flag(&fields, "VerboseStats")?,
        precreate: fields.one_of("PrecreateFiles", &precreates())?.unwrap_or_default(),
        etw: fields.get("ETW").map(|element| reader.etw(element)).transpose()?,
        spans: Vec::new(),
    };
    for span in fields.list("TimeSpans", "TimeSpan")? {
        draft.spans.push(reader.span(span)?);
    }
    match reader.used.iter().position(|used| !used) {
        None => Ok(draft),
        Some(index) => Err(Refusal::usage(
            &targets[index],
            format!("it stands for *{}, which {name} does not use", index + 1),
            "drop it, or name the profile's targets *1, *2 and so on",
        )),
    }
}

fn precreates() -> Vec<(&'static str, Precreate)> {
    [Precreate::UseMaxSize, Precreate::ConstantSizes, Precreate::ConstantOrZeroSizes]
        .into_iter()
        .filter_map(|one| Some((write::precreate(one)?, one)))
        .collect()
}

fn flushes() -> Vec<(&'static str, Flush)> {
    [Flush::ViewOfFile, Flush::NonVolatileMemory, Flush::NonVolatileMemoryNoDrain]
        .into_iter()
        .filter_map(|one| Some((write::flush(one)?, one)))
        .collect()
}

/// An element whose children are settings: each at most once, in any order.
struct Fields<'a> {
    element: &'a Element,
}

impl<'a> Fields<'a> {
    fn new(element: &'a Element, known: &[&str]) -> Result<Self, Refusal> {
        if !element.text.is_empty() {
            let problem = format!("`{}` stands between the elements of it", element.text);
            return Err(wrong(element, problem, "put it into an element, or drop it"));
        }
        no_attributes(element, &[])?;
        for (index, child) in element.children.iter().enumerate() {
            if !known.contains(&child.name.as_str()) {
                return Err(unknown(element, child, known));
            }
            let earlier = element.children[..index].iter().find(|one| one.name == child.name);
            if let Some(earlier) = earlier {
                let problem = format!("it stands at {} already", earlier.place);
                return Err(wrong(child, problem, "keep one of the two"));
            }
        }
        Ok(Self { element })
    }

    fn get(&self, name: &str) -> Option<&'a Element> {
        self.element.children.iter().find(|child| child.name == name)
    }

    /// The elements of a list, of which there is one at least.
    fn list(&self, name: &str, item: &str) -> Result<&'a [Element], Refusal> {
        let missing = |element: &Element, what: &str| {
            wrong(element, format!("it has no <{what}>"), "add one at least")
        };
        let list = self.get(name).ok_or_else(|| missing(self.element, name))?;
        items(list, &[item])?;
        match list.children.is_empty() {
            true => Err(missing(list, item)),
            false => Ok(&list.children),
        }
    }

    fn text(&self, name: &str) -> Result<Option<&'a str>, Refusal> {
        self.get(name).map(text).transpose()
    }

    fn one_of<T: Copy>(&self, name: &str, values: &[(&str, T)]) -> Result<Option<T>, Refusal> {
        let Some(element) = self.get(name) else { return Ok(None) };
        let said = text(element)?;
        match values.iter().find(|(name, _)| *name == said) {
            Some((_, value)) => Ok(Some(*value)),
            None => {
                let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
                let remedy = format!("say {}", names.join(" or "));
                Err(wrong(element, format!("`{said}` is none of its values"), &remedy))
            }
        }
    }

    /// A whole number from `least` to `most`.
    fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Refusal> {
        self.get(name).map(|element| number(element, text(element)?, least, most)).transpose()
    }
}

/// Whether all children are such items, with nothing between them.
fn items(list: &Element, known: &[&str]) -> Result<(), Refusal> {
    no_attributes(list, &[])?;
    if !list.text.is_empty() {
        let problem = format!("`{}` stands between the elements of it", list.text);
        return Err(wrong(list, problem, "put it into an element, or drop it"));
    }
    match list.children.iter().find(|child| !known.contains(&child.name.as_str())) {
        Some(child) => Err(unknown(list, child, known)),
        None => Ok(()),
    }
}

fn unknown(parent: &Element, child: &Element, known: &[&str]) -> Refusal {
    let alike = known.iter().find(|name| name.eq_ignore_ascii_case(&child.name));
    let remedy = match alike {
        Some(name) => format!("write <{name}>"),
        None => LOOK.to_owned(),
    };
    wrong(child, format!("<{}> has no such element", parent.name), &remedy)
}

fn no_attributes(element: &Element, known: &[&str]) -> Result<(), Refusal> {
    let harmless =
        |name: &str| name == "xmlns" || name.starts_with("xmlns:") || name.starts_with("xsi:");
    let strange = element
        .attributes
        .iter()
        .find(|(name, _)| !harmless(name) && !known.contains(&name.as_str()));
    match strange {
        None => Ok(()),
        Some((name, _)) => Err(wrong(element, format!("it has no attribute `{name}`"), "drop it")),
    }
}

/// The text of an element that has nothing else.
fn text(element: &Element) -> Result<&str, Refusal> {
    no_attributes(element, &[])?;
    bare_text(element)
}

fn bare_text(element: &Element) -> Result<&str, Refusal> {
    match element.children.first() {
        None => Ok(&element.text),
        Some(child) => Err(unknown(element, child, &[])),
    }
}

fn number(element: &Element, text: &str, least: u64, most: u64) -> Result<u64, Refusal> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits && (least..=most).contains(&number) => Ok(number),
        _ => Err(wrong(
            element,
            format!("`{text}` is no whole number from {least} to {most}"),
            "write it in digits, without a unit",
        )),
    }
}

fn attribute(element: &Element, name: &str, most: u64) -> Result<u64, Refusal> {
    let found = element.attributes.iter().find(|(known, _)| known == name);
    match found {
        Some((_, value)) => number(element, value, 0, most),
        None => Err(wrong(element, format!("it has no attribute {name}"), "add it")),
    }
}

fn wrong(element: &Element, problem: impl Into<String>, remedy: &str) -> Refusal {
    Refusal::usage(format!("{}: <{}>", element.place, element.name), problem, remedy)
}

/// The range of numbers with 32 bits.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).expect("the bounds are those of 32 bits")
}

const MAX32: u64 = u32::MAX as u64;

struct ProfileReader<'a> {
    /// The replacements for `*1`, `*2` and so on.
    targets: &'a [String],
    used: Vec<bool>,
    notes: &'a mut Notes,
}

const SPAN: [&str; 15] = [
    "Targets",
    "Duration",
    "Warmup",
    "Cooldown",
    "RandSeed",
    "RandomWriteData",
    "ThreadCount",
    "RequestCount",
    "GroupAffinity",
    "Affinity",
    "DisableAffinity",
    "CompletionRoutines",
    "MeasureLatency",
    "CalculateIopsStdDev",
    "IoBucketDuration",
];

const TARGET: [&str; 32] = [
    "Path",
    "BlockSize",
    "StrideSize",
    "InterlockedSequential",
    "BaseFileOffset",
    "SequentialScan",
    "RandomAccess",
    "TemporaryFile",
    "UseLargePages",
    "RequestCount",
    "Random",
    "RandomRatio",
    "Distribution",
    "DisableAllCache",
    "DisableLocalCache",
    "DisableOSCache",
    "WriteThrough",
    "MemoryMappedIo",
    "FlushType",
    "WriteBufferContent",
    "BurstSize",
    "ThinkTime",
    "Throughput",
    "ThreadsPerFile",
    "FileSize",
    "MaxFileSize",
    "WriteRatio",
    "ParallelAsyncIO",
    "ThreadStride",
    "IOPriority",
    "Weight",
    "ThreadTargets",
];

impl ProfileReader<'_> {
    fn u32(&self, fields: &Fields<'_>, name: &str) -> Result<Option<u32>, Refusal> {
        Ok(fields.number(name, 0, MAX32)?.map(narrow))
    }

    /// The same for numbers of threads, I/Os or milliseconds.
    fn positive(&self, fields: &Fields<'_>, name: &str) -> Result<Option<u32>, Refusal> {
        Ok(fields.number(name, 1, MAX32)?.map(narrow))
    }

    fn flag(&mut self, fields: &Fields<'_>, name: &str) -> Result<bool, Refusal> {
        let Some(element) = fields.get(name) else { return Ok(false) };
        match text(element)? {
            said if said.eq_ignore_ascii_case("true") => Ok(true),
            said if said.eq_ignore_ascii_case("false") => Ok(false),
            "1" => {
                self.notes.add(format!(
                    "{}: <{name}> 1 is read as true, where DiskSpd reads false",
                    element.place
                ));
                Ok(true)
            }
            "0" => Ok(false),
            said => Err(wrong(element, format!("`{said}` is no truth"), "say true or false")),
        }
    }

    fn etw(&mut self, element: &Element) -> Result<[bool; ETW.len()], Refusal> {
        let fields = Fields::new(element, &ETW.map(|(name, _)| name))?;
        let mut switches = [false; ETW.len()];
        for (switch, (name, _)) in switches.iter_mut().zip(ETW) {
            *switch = self.flag(&fields, name)?;
        }
        Ok(switches)
    }

    fn span(&mut self, element: &Element) -> Result<SpanDraft, Refusal> {
        let fields = Fields::new(element, &SPAN)?;
        if let Some(element) = fields.get("GroupAffinity") {
            self.notes
                .add(format!("{}: <GroupAffinity> has no effect, as in DiskSpd", element.place));
        }
        let count = |number: Option<u32>| number.filter(|&number| number > 0);
        let mut draft = SpanDraft {
            speech: Speech::Elements,
            place: Some(element.place.clone()),
            completion_routines: self.flag(&fields, "CompletionRoutines")?,
            service_times: self.flag(&fields, "MeasureLatency")?,
            iops_deviation: self.flag(&fields, "CalculateIopsStdDev")?,
            io_bucket_ms: self.positive(&fields, "IoBucketDuration")?,
            duration_s: self.u32(&fields, "Duration")?,
            warm_up_s: self.u32(&fields, "Warmup")?,
            cool_down_s: self.u32(&fields, "Cooldown")?,
            thread_count: count(self.u32(&fields, "ThreadCount")?),
            request_count: count(self.u32(&fields, "RequestCount")?),
            disable_affinity: self.flag(&fields, "DisableAffinity")?,
            cpus: fields.get("Affinity").map(cpus).transpose()?.unwrap_or_default(),
            seed: self.u32(&fields, "RandSeed")?,
            random_write_data: self.flag(&fields, "RandomWriteData")?,
            targets: Vec::new(),
        };
        for target in fields.list("Targets", "Target")? {
            draft.targets.push(self.target(target)?);
        }
        Ok(draft)
    }

    fn target(&mut self, element: &Element) -> Result<TargetDraft, Refusal> {
        let fields = Fields::new(element, &TARGET)?;
        let size = |name| fields.number(name, 0, u64::MAX);
        let mut draft = TargetDraft {
            path: self.path(element, &fields)?,
            block_size: fields.number("BlockSize", 1, MAX32 - 1)?.map(narrow),
            base: size("BaseFileOffset")?.unwrap_or(0),
            max_offset: size("MaxFileSize")?.filter(|&bytes| bytes > 0),
            create_size: size("FileSize")?,
            large_pages: self.flag(&fields, "UseLargePages")?,
            interlocked: self.flag(&fields, "InterlockedSequential")?,
            parallel: self.flag(&fields, "ParallelAsyncIO")?,
            thread_stride: size("ThreadStride")?,
            write_percent: fields.number("WriteRatio", 0, 100)?.map_or(0, narrow),
            request_count: self.positive(&fields, "RequestCount")?,
            threads: self.positive(&fields, "ThreadsPerFile")?,
            burst_ios: self.u32(&fields, "BurstSize")?,
            think_time_ms: self.u32(&fields, "ThinkTime")?,
            throttle: fields.get("Throughput").map(throttle).transpose()?.flatten(),
            priority: fields
                .number("IOPriority", 1, 3)?
                .and_then(Priority::from_number)
                .unwrap_or_default(),
            weight: self.u32(&fields, "Weight")?,
            ..TargetDraft::default()
        };
        draft.place = Some(format!("{}: {}", element.place, draft.path));
        draft.hints.sequential = self.flag(&fields, "SequentialScan")?;
        draft.hints.random = self.flag(&fields, "RandomAccess")?;
        draft.hints.temporary = self.flag(&fields, "TemporaryFile")?;
        self.caching(&fields, &mut draft)?;
        self.access(&fields, &mut draft)?;
        if let Some(content) = fields.get("WriteBufferContent") {
            self.payload(content, &mut draft)?;
        }
        if fields.get("ThreadTargets").is_some() {
            for thread in fields.list("ThreadTargets", "ThreadTarget")? {
                draft.thread_targets.push(self.thread_target(thread)?);
            }
        }
        Ok(draft)
    }

    /// The target's path, or its replacement.
    fn path(&mut self, target: &Element, fields: &Fields<'_>) -> Result<String, Refusal> {
        let path = fields.text("Path")?.filter(|path| !path.is_empty());
        let Some(path) = path else {
            return Err(wrong(target, "it has no <Path>", "add the path of a file"));
        };
        let Some(number) = path.strip_prefix('*') else { return Ok(path.to_owned()) };
        let element = fields.get("Path").unwrap_or(target);
        let digits = number.bytes().all(|byte| byte.is_ascii_digit());
        let index = match number.parse::<usize>() {
            Ok(number) if digits && number > 0 => number - 1,
            _ => {
                let problem = format!("`{path}` is no template: these are *1, *2 and so on");
                return Err(wrong(element, problem, "number it, or name a file"));
            }
        };
        match (self.targets.get(index), self.targets.is_empty()) {
            (Some(target), _) => {
                self.used[index] = true;
                Ok(target.clone())
            }
            (None, true) => Ok(path.to_owned()),
            (None, false) => {
                let problem = format!("the command line names no target for {path}");
                Err(wrong(element, problem, "name as many targets as the profile has templates"))
            }
        }
    }

    fn caching(&mut self, fields: &Fields<'_>, draft: &mut TargetDraft) -> Result<(), Refusal> {
        // In DiskSpd's order, in which the last one holds.
        let mut said = Vec::new();
        for (name, cache) in [
            ("DisableOSCache", Cache::Off),
            ("DisableAllCache", Cache::Off),
            ("DisableLocalCache", Cache::LocalOff),
        ] {
            if self.flag(fields, name)? {
                said.push(name);
                draft.cache = cache;
            }
        }
        draft.write_through =
            self.flag(fields, "WriteThrough")? || said.contains(&"DisableAllCache");
        if draft.cache == Cache::LocalOff && said.len() > 1 {
            self.notes.add(format!(
                "{}: <{}> has no effect on the cache: <DisableLocalCache> goes before it, as in \
                 DiskSpd",
                draft.path, said[0]
            ));
        }
        draft.mapped = self.flag(fields, "MemoryMappedIo")?;
        draft.flush = fields.one_of("FlushType", &flushes())?.unwrap_or_default();
        Ok(())
    }

    fn access(&mut self, fields: &Fields<'_>, draft: &mut TargetDraft) -> Result<(), Refusal> {
        let stride = fields.number("StrideSize", 0, u64::MAX)?;
        let random = fields.number("Random", 0, u64::MAX)?;
        let ratio = fields.number("RandomRatio", 1, 99)?.map(narrow);
        for name in ["Random", "RandomRatio"] {
            if let (Some(element), Some(_)) = (fields.get(name), stride) {
                return Err(wrong(
                    element,
                    "it contradicts <StrideSize>, which asks for sequential I/O",
                    "keep one of the two",
                ));
            }
        }
        draft.alignment = stride.or(random);
        draft.random_percent = ratio.or(random.map(|_| 100));
        draft.distribution = fields.get("Distribution").map(distribution).transpose()?;
        Ok(())
    }

    fn payload(&mut self, content: &Element, draft: &mut TargetDraft) -> Result<(), Refusal> {
        #[derive(Clone, Copy, PartialEq)]
        enum Pattern {
            Sequential,
            Zero,
            Random,
        }
        let fields = Fields::new(content, &["Pattern", "RandomDataSource"])?;
        let pattern = fields
            .one_of(
                "Pattern",
                &[
                    ("sequential", Pattern::Sequential),
                    ("zero", Pattern::Zero),
                    ("random", Pattern::Random),
                ],
            )?
            .ok_or_else(|| {
                wrong(content, "it has no <Pattern>", "say sequential, zero or random")
            })?;
        draft.zero_buffers = pattern == Pattern::Zero;
        match (pattern, fields.get("RandomDataSource")) {
            (Pattern::Random, Some(source)) => {
                let fields = Fields::new(source, &["SizeInBytes", "FilePath"])?;
                let size = fields.number("SizeInBytes", 1, u64::MAX)?.ok_or_else(|| {
                    wrong(source, "it has no <SizeInBytes>", "add the size of the buffer")
                })?;
                let file = fields.text("FilePath")?.filter(|file| !file.is_empty());
                draft.pool = Some((size, file.map(str::to_owned)));
            }
            (Pattern::Random, None) => self.notes.add(format!(
                "{}: <Pattern> random has no effect without a <RandomDataSource>, as in DiskSpd: \
                 the bytes 0 to 255 are written",
                content.place
            )),
            (_, Some(source)) => self.notes.add(format!(
                "{}: <RandomDataSource> has no effect: <Pattern> is not random",
                source.place
            )),
            (_, None) => {}
        }
        Ok(())
    }

    fn thread_target(&mut self, element: &Element) -> Result<ThreadTarget, Refusal> {
        let fields = Fields::new(element, &["Thread", "Weight"])?;
        let thread = self.u32(&fields, "Thread")?;
        Ok(ThreadTarget {
            thread: thread
                .ok_or_else(|| wrong(element, "it has no <Thread>", "add the thread's number"))?,
            // As in DiskSpd, a weight of 0 is none.
            weight: self.u32(&fields, "Weight")?.filter(|&weight| weight > 0),
        })
    }
}

fn cpus(element: &Element) -> Result<Vec<Cpu>, Refusal> {
    items(element, &["AffinityAssignment", "AffinityGroupAssignment"])?;
    let mut cpus = Vec::new();
    for child in &element.children {
        let (group, number) = match child.name.as_str() {
            "AffinityAssignment" => (0, number(child, text(child)?, 0, u64::from(u8::MAX))?),
            _ => {
                no_attributes(child, &["Group", "Processor"])?;
                let group = attribute(child, "Group", u64::from(u16::MAX))?;
                (group, attribute(child, "Processor", u64::from(u8::MAX))?)
            }
        };
        let bounded = "the bounds are those of the type";
        cpus.push(Cpu {
            group: u16::try_from(group).expect(bounded),
            number: u8::try_from(number).expect(bounded),
        });
    }
    Ok(cpus)
}

fn throttle(element: &Element) -> Result<Option<Throttle>, Refusal> {
    no_attributes(element, &["unit"])?;
    let limit = number(element, bare_text(element)?, 0, u64::MAX)?;
    let unit = element.attributes.iter().find(|(name, _)| name == "unit");
    let throttle = match unit.map(|(_, unit)| unit.as_str()) {
        None | Some("BPMS") => Throttle::BytesPerMs(limit),
        Some("IOPS") => Throttle::Iops(limit),
        Some(unit) => {
            return Err(wrong(element, format!("`{unit}` is no unit of it"), "say BPMS or IOPS"));
        }
    };
    Ok(Some(throttle).filter(|_| limit > 0))
}

fn distribution(element: &Element) -> Result<(SpanUnit, Vec<Range>), Refusal> {
    let fields = Fields::new(element, &["Absolute", "Percent"])?;
    let (unit, name, least, most) = match (fields.get("Absolute"), fields.get("Percent")) {
        (Some(_), None) => (SpanUnit::Bytes, "Absolute", 0, u64::MAX),
        (None, Some(_)) => (SpanUnit::Percent, "Percent", 1, 100),
        _ => {
            let problem = "it has to be either absolute or in percent";
            return Err(wrong(element, problem, "give it an <Absolute> or a <Percent>"));
        }
    };
    let mut ranges = Vec::new();
    for range in fields.list(name, "Range")? {
        no_attributes(range, &["IO"])?;
        ranges.push(Range {
            io: narrow(attribute(range, "IO", 100)?),
            span: number(range, bare_text(range)?, least, most)?,
        });
    }
    Ok((unit, ranges))
}
