//! Parses DiskSpd's options into drafts. Flags come before targets, values follow without a space,
//! and `-` or `/` begins an option; numbers end where their digits end.

use super::affinity;
use super::distribution;
use super::draft::{BLOCK_SIZE, SpanDraft, Speech, TargetDraft};
use super::model::{Cache, ETW, Flush, Priority, ResultFormat, Throttle};
use super::numbers;
use crate::dialect::Notes;
use fathom_core::Refusal;

/// The content of a command line, before it is checked.
#[derive(Debug, Default)]
pub struct Options {
    /// Options that are also valid with a profile.
    pub common: Common,
    /// `-X`: the profile, as it was typed.
    pub profile: Option<String>,
    /// The targets, in their order.
    pub targets: Vec<String>,
    /// The load, unless a profile describes it.
    pub span: SpanDraft,
    /// The same for each target.
    pub target: TargetDraft,
    /// `-P`.
    pub progress: u32,
    /// `-e`.
    pub etw: Option<[bool; ETW.len()]>,
    /// `-y`.
    pub events: Vec<Event>,
}

/// Options that may be given with a profile, and then override it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Common {
    pub cool_down_s: Option<u32>,
    pub duration_s: Option<u32>,
    pub warm_up_s: Option<u32>,
    pub seed: Option<u32>,
    pub result_format: Option<ResultFormat>,
    /// `-Rp`: the profile is printed, and nothing runs.
    pub profile_only: bool,
    pub verbose: bool,
    pub verbose_stats: bool,
    pub experiment_flags: Option<u32>,
}

/// One of Windows' named events, by which programs wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// `-ys`, `-yf`: set when the measurement begins, or ends.
    Told(String),
    /// `-yr`, `-yp`: begins, or ends, the run.
    Awaited(String),
    /// `-ye`: set at once, and nothing runs.
    Set(String),
}

/// The advice after an unknown word.
const HELP: &str = "fathom diskspd --help lists the options";

/// The words without DiskSpd's own name before them, as in a line of a script.
fn without_the_program<'a>(words: &'a [String], notes: &mut Notes) -> &'a [String] {
    let Some((first, rest)) = words.split_first() else { return words };
    let name = first.rsplit(['/', '\\']).next().unwrap_or(first).to_ascii_lowercase();
    if is_option(first) || rest.is_empty() || !matches!(&*name, "diskspd" | "diskspd.exe") {
        return words;
    }
    notes.add(format!("{first} is taken for the program's name, and not for a target"));
    rest
}

/// Reads a command line. `fresh_seed` is the value of a bare `-z`.
///
/// # Errors
///
/// When an option does not exist, cannot have its value, or contradicts an earlier one.
pub fn read(words: &[String], fresh_seed: u32, notes: &mut Notes) -> Result<Options, Refusal> {
    let words = without_the_program(words, notes);
    let split = words.iter().position(|word| !is_option(word)).unwrap_or(words.len());
    let (options, targets) = words.split_at(split);
    is_glued(options, targets)?;
    if let Some(late) = targets.iter().find(|word| is_option(word)) {
        return Err(Refusal::usage(
            late,
            format!("options stand before the targets, and {} is one", targets[0]),
            "move it to the front",
        ));
    }
    if targets.iter().any(String::is_empty) {
        return Err(Refusal::usage("''", "a target has no name", "drop it, or name a file"));
    }
    let mut reader = LineReader {
        options: Options { targets: targets.to_vec(), ..Options::default() },
        notes,
        fresh_seed,
        block: u64::from(BLOCK_SIZE),
        said: Said::default(),
    };
    reader.options.span.speech = match options.iter().any(|word| parts(word).0 == 'X') {
        true => Speech::Elements,
        false => Speech::Options(options.to_vec()),
    };
    reader.profile_or_block(options)?;
    for word in options {
        reader.option(word)?;
    }
    if let Some(word) = reader.said.pinned.filter(|_| reader.options.span.disable_affinity) {
        reader.notes.add(format!("{word} has no effect: -n switches pinning off"));
    }
    Ok(reader.options)
}

/// Common typing errors: a space before a value, and the dashes of word processors.
fn is_glued(options: &[String], targets: &[String]) -> Result<(), Refusal> {
    let Some(first) = targets.first() else { return Ok(()) };
    if let Some(option) = first.strip_prefix(['\u{2010}', '\u{2013}', '\u{2014}', '\u{2212}']) {
        let remedy = format!("type -{option}");
        return Err(refuse(first, "it begins with a dash that is no hyphen", &remedy));
    }
    let Some(last) = options.last() else { return Ok(()) };
    let (letter, value) = parts(last);
    let digit = first.starts_with(|c: char| c.is_ascii_digit());
    let needs_one = letter == 'X' || ("bBcCdFfgiIjNoOtTwW".contains(letter) && digit);
    if value.is_empty() && needs_one {
        let remedy = format!("type {last}{first}");
        return Err(refuse(&format!("{last} {first}"), "values are glued on", &remedy));
    }
    Ok(())
}

/// Whether a word is an option. On Linux a path begins with `/`, so after a slash only words count
/// as options that DiskSpd could accept.
fn is_option(word: &str) -> bool {
    match word.strip_prefix('/') {
        None => word.starts_with('-'),
        Some(rest) => looks_like_an_option(rest),
    }
}

/// Whether the text after a slash is exactly an option, with nothing after its value.
fn looks_like_an_option(rest: &str) -> bool {
    let mut letters = rest.chars();
    let Some(letter) = letters.next() else { return false };
    let value = letters.as_str();
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let number = !value.is_empty() && digits(value);
    let size = |text: &str| numbers::size(text, 1).is_ok();
    match letter {
        '?' | 'h' | 'l' | 'L' | 'n' | 'p' | 'x' => value.is_empty(),
        'v' => matches!(value, "" | "s"),
        'a' => value.chars().all(|c| c.is_ascii_digit() || matches!(c, 'g' | ',')),
        'b' | 'c' | 'T' => size(value),
        'B' => value.split(':').all(size),
        'C' | 'd' | 'F' | 'i' | 'I' | 'j' | 'o' | 'O' | 't' | 'w' | 'W' => number,
        'D' | 'P' | 'z' => digits(value),
        'e' => ETW.iter().any(|(_, option)| *option == value),
        'f' => size(value) || (!value.is_empty() && value.chars().all(|c| "rst".contains(c))),
        'g' => digits(value.strip_suffix('i').unwrap_or(value)) && !value.is_empty(),
        'N' => matches!(value, "v" | "n" | "i"),
        'r' => {
            value.is_empty()
                || size(value)
                || value.starts_with("dpct")
                || value.starts_with("dabs")
                || value.strip_prefix('s').is_some_and(|rest| !rest.is_empty() && digits(rest))
        }
        'R' => matches!(value, "text" | "xml" | "p" | "ptext" | "pxml"),
        's' => {
            let stride = value.strip_prefix('i').unwrap_or(value);
            stride.is_empty() || size(stride)
        }
        'S' => value.chars().all(|c| "bhmruw".contains(c)),
        'X' => !value.is_empty() && !value.contains('/'),
        'Z' => matches!(value, "" | "r") || size(value.split(',').next().unwrap_or("")),
        _ => false,
    }
}

/// Earlier options that must not be repeated.
#[derive(Debug, Default)]
struct Said {
    base: bool,
    max_offset: Option<String>,
    /// `-s`, as it was typed.
    stride: Option<String>,
    /// `-r`.
    random: Option<String>,
    /// `-rs`.
    mixed: Option<String>,
    cache: Option<String>,
    write_through: Option<String>,
    mapped: Option<String>,
    /// `-a` or `-ag` alone.
    pinned: Option<String>,
}

struct LineReader<'a> {
    options: Options,
    notes: &'a mut Notes,
    fresh_seed: u32,
    block: u64,
    said: Said,
}

/// An option: its letter and its value.
fn parts(word: &str) -> (char, &str) {
    let mut letters = word[1..].chars();
    let letter = letters.next().unwrap_or(' ');
    (letter, letters.as_str())
}

impl LineReader<'_> {
    /// Facts that are needed before the others are read: whether a profile describes the load, and
    /// the size of a block.
    fn profile_or_block(&mut self, words: &[String]) -> Result<(), Refusal> {
        for word in words {
            let (letter, value) = parts(word);
            if letter == 'X' {
                if value.is_empty() {
                    return Err(refuse(
                        word,
                        "it names no profile",
                        "glue its path on: -Xfile.xml",
                    ));
                }
                if self.options.profile.replace(value.to_owned()).is_some() {
                    return Err(refuse(word, "a profile is named already", "keep one of the two"));
                }
            }
        }
        if self.options.profile.is_some() {
            let stranger = words.iter().find(|word| !"XCdRvWz:?".contains(parts(word).0));
            return stranger.map_or(Ok(()), |word| {
                Err(refuse(
                    word,
                    "the profile of -X describes the load; only -W, -d, -C, -R, -v, -z and targets \
                     are allowed beside it",
                    "drop it, or write it into the profile",
                ))
            });
        }
        for word in words.iter().filter(|word| parts(word).0 == 'b') {
            let value = parts(word).1;
            let remedy = "give it a size from 1 byte to 4 GiB, such as -b4K";
            let size = numbers::size(value, self.block)
                .map_err(|problem| refuse(word, problem, remedy))?;
            self.block = match u32::try_from(size) {
                Ok(block) if (1..u32::MAX).contains(&block) => {
                    self.options.target.block_size = Some(block);
                    size
                }
                _ => return Err(refuse(word, format!("no I/O can have {size} bytes"), remedy)),
            };
        }
        Ok(())
    }

    fn option(&mut self, word: &str) -> Result<(), Refusal> {
        let (letter, value) = parts(word);
        match letter {
            // Read before the others.
            'b' | 'X' => Ok(()),
            'C' | 'd' | 'R' | 'v' | 'W' | 'z' | ':' => self.common(word, letter, value),
            'h' | 'l' | 'L' | 'n' | 'p' | 'x' => self.bare(word, letter, value),
            'D' | 'F' | 'i' | 'I' | 'j' | 'o' | 'O' | 'P' | 't' | 'w' => {
                self.counted(word, letter, value)
            }
            'a' => {
                let cpus = affinity::read(value).map_err(|problem| {
                    refuse(word, problem, "list CPUs, as in -a0,1,2 or -ag0,0,1,g1,0,1")
                })?;
                if cpus.is_empty() {
                    self.said.pinned = Some(word.to_owned());
                }
                self.options.span.cpus.extend(cpus);
                Ok(())
            }
            'B' => self.base(word, value),
            'c' => self.create(word, value),
            'e' => self.etw(word, value),
            'f' => self.end_or_hints(word, value),
            'g' => self.throttle(word, value),
            'N' => self.flush(word, value),
            'r' => self.random(word, value),
            's' => self.sequential(word, value),
            'S' => self.caching(word, value),
            'T' => {
                let bytes = self.size(word, value, "as in -T1G: how far threads start apart")?;
                self.options.target.thread_stride = Some(bytes);
                match bytes {
                    0 => Err(refuse(word, "it sets nothing apart", "drop it, or raise it")),
                    _ => Ok(()),
                }
            }
            'y' => self.event(word, value),
            'Z' => self.payload(word, value),
            _ => Err(refuse(word, "DiskSpd has no such option", HELP)),
        }
    }

    fn size(&self, word: &str, value: &str, remedy: &str) -> Result<u64, Refusal> {
        numbers::size(value, self.block).map_err(|problem| refuse(word, problem, remedy))
    }

    /// A number of at least `least`; a note reports text after its digits.
    fn count(&mut self, word: &str, value: &str, least: u32) -> Result<u32, Refusal> {
        let count = numbers::count(value, least).map_err(|problem| {
            refuse(word, problem, &format!("glue on a whole number from {least}"))
        })?;
        if !count.ignored.is_empty() {
            self.notes.add(format!(
                "{word}: `{}` counts for nothing, as in DiskSpd: it is read as {}",
                count.ignored, count.value
            ));
        }
        Ok(count.value)
    }

    fn common(&mut self, word: &str, letter: char, value: &str) -> Result<(), Refusal> {
        match letter {
            'C' | 'd' | 'W' => {
                let seconds = self.count(word, value, 0)?;
                if value.is_empty() {
                    self.notes.add(format!("{word} without a number is 0 s, as in DiskSpd"));
                }
                let common = &mut self.options.common;
                match letter {
                    'C' => common.cool_down_s = Some(seconds),
                    'd' => common.duration_s = Some(seconds),
                    _ => common.warm_up_s = Some(seconds),
                }
            }
            ':' => self.options.common.experiment_flags = Some(self.count(word, value, 0)?),
            'R' => return self.result(word, value),
            'v' => match value {
                "" => self.options.common.verbose = true,
                "s" => self.options.common.verbose_stats = true,
                _ => return Err(refuse(word, "it is no way to be verbose", "say -v or -vs")),
            },
            _ => {
                let seed = match value {
                    "" => self.fresh_seed,
                    _ => value.parse().map_err(|_| {
                        refuse(
                            word,
                            format!("`{value}` is no whole number of 32 bits"),
                            "give one, or say -z alone for another one on each run",
                        )
                    })?,
                };
                self.options.common.seed = Some(seed);
            }
        }
        Ok(())
    }

    fn result(&mut self, word: &str, value: &str) -> Result<(), Refusal> {
        let common = &mut self.options.common;
        let format = value.strip_prefix('p').inspect(|_| common.profile_only = true);
        common.result_format = match (format, format.unwrap_or(value)) {
            (_, "text") => Some(ResultFormat::Text),
            (_, "xml") => Some(ResultFormat::Xml),
            (Some(_), "") => common.result_format,
            _ => {
                return Err(refuse(
                    word,
                    "it names no format of the result",
                    "say -Rtext or -Rxml, or -Rptext or -Rpxml for the profile alone",
                ));
            }
        };
        Ok(())
    }

    /// Options without a value.
    fn bare(&mut self, word: &str, letter: char, value: &str) -> Result<(), Refusal> {
        if !value.is_empty() {
            self.notes.add(format!(
                "{word}: `{value}` counts for nothing, as in DiskSpd: it is read as -{letter}"
            ));
        }
        let (span, target) = (&mut self.options.span, &mut self.options.target);
        match letter {
            'h' => return self.caching(word, "h"),
            'l' => target.large_pages = true,
            'L' => span.service_times = true,
            'n' => span.disable_affinity = true,
            'p' => target.parallel = true,
            _ => span.completion_routines = true,
        }
        Ok(())
    }

    /// Options with a number.
    fn counted(&mut self, word: &str, letter: char, value: &str) -> Result<(), Refusal> {
        let least = u32::from(!matches!(letter, 'D' | 'P' | 'w'));
        if letter == 'w' && value.is_empty() {
            return Err(refuse(word, "it has no percentage", "glue it on, as in -w30"));
        }
        let count = self.count(word, value, least)?;
        let (span, target) = (&mut self.options.span, &mut self.options.target);
        match letter {
            'D' => {
                span.iops_deviation = true;
                // As in DiskSpd, -D0 is -D.
                span.io_bucket_ms = Some(count).filter(|&ms| ms > 0).or(span.io_bucket_ms);
            }
            'F' => span.thread_count = Some(count),
            'i' => target.burst_ios = Some(count),
            'j' => target.think_time_ms = Some(count),
            'I' => {
                target.priority = Priority::from_number(u64::from(count)).ok_or_else(|| {
                    refuse(word, "no such priority", "say 1 (very low), 2 (low) or 3 (normal)")
                })?;
            }
            'o' => target.request_count = Some(count),
            'O' => span.request_count = Some(count),
            'P' => self.options.progress = if count == 0 { 65536 } else { count },
            't' => target.threads = Some(count),
            _ if count > 100 => {
                return Err(refuse(
                    word,
                    "it is more than 100 %",
                    "give a percentage from 0 to 100",
                ));
            }
            _ => target.write_percent = count,
        }
        Ok(())
    }

    fn base(&mut self, word: &str, value: &str) -> Result<(), Refusal> {
        let remedy = "as in -B1G or -B1G:10G: the base, and the length if you like";
        if std::mem::replace(&mut self.said.base, true) {
            return Err(refuse(word, "a base is given already", "keep one of the two"));
        }
        let (base, rest) = numbers::size_prefix(value, self.block)
            .map_err(|problem| refuse(word, problem, remedy))?;
        self.options.target.base = base;
        let Some(length) = rest.strip_prefix(':') else {
            return match rest {
                "" => Ok(()),
                _ => Err(refuse(word, format!("`{rest}` follows the base"), remedy)),
            };
        };
        let length = self.size(word, length, remedy)?;
        match base.checked_add(length) {
            Some(end) if length > 0 => self.end_at(word, end),
            Some(_) => Err(refuse(word, "a length of 0 has no room for I/O", remedy)),
            None => Err(refuse(word, "it ends where 64 bits do not reach", remedy)),
        }
    }

    /// The offset at which I/O ends, set by `-f` or by `-B`.
    fn end_at(&mut self, word: &str, end: u64) -> Result<(), Refusal> {
        if let Some(earlier) = self.said.max_offset.replace(word.to_owned()) {
            return Err(refuse(
                word,
                format!("{earlier} already says where I/O ends"),
                "keep one of the two",
            ));
        }
        match end {
            0 => self.notes.add(format!("{word} is no limit, as in DiskSpd")),
            _ => self.options.target.max_offset = Some(end),
        }
        Ok(())
    }

    fn end_or_hints(&mut self, word: &str, value: &str) -> Result<(), Refusal> {
        let remedy = "as in -f10G, where I/O ends, or -frst, hints for the system";
        if value.starts_with(|c: char| c.is_ascii_digit()) {
            let end = self.size(word, value, remedy)?;
            return self.end_at(word, end);
        }
        if value.is_empty() {
            return Err(refuse(word, "it has no value", remedy));
        }
        for letter in value.chars() {
            let hints = &mut self.options.target.hints;
            match letter {
                'r' => hints.random = true,
                's' => hints.sequential = true,
                't' => hints.temporary = true,
                _ => return Err(refuse(word, format!("`{letter}` is no hint"), remedy)),
            }
        }
        Ok(())
    }

    fn create(&mut self, word: &str, value: &str) -> Result<(), Refusal> {
        let remedy = "give it the size of the file, such as -c10G";
        match self.size(word, value, remedy)? {
            0 => Err(refuse(word, "a file of no length has no room for I/O", remedy)),
            size => {
                self.options.target.create_size = Some(size);
                Ok(())
            }
        }
    }

    fn etw(&mut self, word: &str, value: &str) -> Result<(), Refusal> {
        // With a small letter DiskSpd reads no more than that.
        let named = ETW.iter().position(|(_, option)| {
            *option == value || (option.len() == 1 && value.starts_with(option))
        });
        let Some(index) = named else {
            return Err(refuse(word, "no such switch of event tracing", HELP));
        };
        self.options.etw.get_or_insert_default()[index] = true;
        Ok(())
    }

    fn throttle(&mut self, word: &str, value: &str) -> Result<(), Refusal> {
        let remedy = "as in -g1000i for IOPS or -g65536 for bytes in a millisecond";
        let iops = value.strip_suffix('i');
        if iops.is_none() && !value.ends_with(|c: char| c.is_ascii_digit()) {
            return Err(refuse(word, "it is no limit", remedy));
        }
        let (limit, ignored) = numbers::wide_count(iops.unwrap_or(value), 1)
            .map_err(|problem| refuse(word, problem, remedy))?;
        if !ignored.is_empty() {
            self.notes.add(format!(
                "{word}: `{ignored}` counts for nothing, as in DiskSpd: it is read as {limit}"
            ));
        }
        self.options.target.throttle = Some(match iops {
            Some(_) => Throttle::Iops(limit),
            None => Throttle::BytesPerMs(limit),
        });
        Ok(())
    }

    fn flush(&mut self, word: &str, value: &str) -> Result<(), Refusal> {
        self.options.target.flush = match value {
            "v" | "V" => Flush::ViewOfFile,
            "n" | "N" => Flush::NonVolatileMemory,
            "i" | "I" => Flush::NonVolatileMemoryNoDrain,
            _ => return Err(refuse(word, "no such way to flush", "say -Nv, -Nn or -Ni")),
        };
        Ok(())
    }

    fn random(&mut self, word: &str, value: &str) -> Result<(), Refusal> {
        if let Some(percent) = value.strip_prefix('s') {
            return self.mixed(word, percent);
        }
        if let Some(shares) = value.strip_prefix('d') {
            let shares = distribution::read(shares, self.block)
                .map_err(|problem| refuse(word, problem, distribution::REMEDY))?;
            if self.options.target.distribution.replace(shares).is_some() {
                self.notes.add(format!("{word} replaces the distribution before it"));
            }
            return Ok(());
        }
        self.not_sequential(word)?;
        if let Some(earlier) = self.said.random.replace(word.to_owned()) {
            return Err(refuse(word, format!("{earlier} is given already"), "keep one of the two"));
        }
        let remedy = "as in -r or -r4K: what offsets are multiples of";
        if !value.is_empty() {
            let alignment = self.size(word, value, remedy)?;
            if alignment == 0 {
                return Err(refuse(word, "nothing is a multiple of 0", remedy));
            }
            self.options.target.alignment = Some(alignment);
        }
        self.options.target.random_percent.get_or_insert(100);
        Ok(())
    }

    fn mixed(&mut self, word: &str, value: &str) -> Result<(), Refusal> {
        self.not_sequential(word)?;
        let percent = self.count(word, value, 1)?;
        if percent > 100 {
            return Err(refuse(
                word,
                "it is more than 100 %",
                "give the random share of the I/Os, from 1 to 100",
            ));
        }
        let before = self.options.target.random_percent.replace(percent);
        match (self.said.mixed.replace(word.to_owned()), before) {
            // As in DiskSpd, -rs100 is -r and may be refined.
            (Some(earlier), Some(before)) if before != 100 => Err(refuse(
                word,
                format!("{earlier} already says the share of random I/Os"),
                "keep one of the two",
            )),
            _ => Ok(()),
        }
    }

    fn not_sequential(&self, word: &str) -> Result<(), Refusal> {
        match &self.said.stride {
            None => Ok(()),
            Some(stride) => Err(refuse(
                word,
                format!("{stride} asks for sequential I/O"),
                "keep one of the two; -r says the alignment of mixed I/O (-rs) too",
            )),
        }
    }

    fn sequential(&mut self, word: &str, value: &str) -> Result<(), Refusal> {
        if let Some(random) = self.said.mixed.as_ref().or(self.said.random.as_ref()) {
            return Err(refuse(
                word,
                format!("{random} asks for random I/O"),
                "keep one of the two; -r says the alignment of mixed I/O (-rs) too",
            ));
        }
        if let Some(earlier) = self.said.stride.replace(word.to_owned()) {
            return Err(refuse(word, format!("{earlier} is given already"), "keep one of the two"));
        }
        let shared = value.strip_prefix('i');
        self.options.target.interlocked = shared.is_some();
        let stride = shared.unwrap_or(value);
        if !stride.is_empty() {
            let stride = self.size(word, stride, "as in -s, -s64K, -si or -si64K: the stride")?;
            self.options.target.alignment = Some(stride);
        }
        Ok(())
    }

    fn caching(&mut self, word: &str, value: &str) -> Result<(), Refusal> {
        // -S alone is -Su.
        let letters = if value.is_empty() { "u" } else { value };
        for letter in letters.chars() {
            match letter {
                'b' | 'r' | 'u' | 'h' => self.cache(word, letter)?,
                'm' => self.said_once(word, 'm')?,
                'w' => self.said_once(word, 'w')?,
                _ => {
                    return Err(refuse(
                        word,
                        format!("`{letter}` is no way of caching"),
                        "say b (cached), u (unbuffered), w (write-through), h (u and w), \
                         m (mapped) or r (remote cache only)",
                    ));
                }
            }
        }
        let unbuffered = self.options.target.cache == Cache::Off;
        match (&self.said.mapped, &self.said.cache) {
            (Some(mapped), Some(cache)) if unbuffered => {
                let earlier = if word == mapped { cache } else { mapped };
                let told = if earlier == word { "its own u or h" } else { earlier };
                Err(refuse(
                    word,
                    format!("a mapped file goes through the cache, which contradicts {told}"),
                    "drop one of the two",
                ))
            }
            _ => Ok(()),
        }
    }

    fn cache(&mut self, word: &str, letter: char) -> Result<(), Refusal> {
        if let Some(earlier) = self.said.cache.replace(word.to_owned()) {
            return Err(twice(word, &earlier, "how the system's cache is used"));
        }
        self.options.target.cache = match letter {
            'b' => Cache::Cached,
            'r' => Cache::LocalOff,
            _ => Cache::Off,
        };
        match letter {
            'h' => self.said_once(word, 'w'),
            _ => Ok(()),
        }
    }

    fn said_once(&mut self, word: &str, letter: char) -> Result<(), Refusal> {
        let (said, what) = match letter {
            'm' => (&mut self.said.mapped, "whether the file is mapped"),
            _ => (&mut self.said.write_through, "whether writes go through"),
        };
        if let Some(earlier) = said.replace(word.to_owned()) {
            return Err(twice(word, &earlier, what));
        }
        match letter {
            'm' => self.options.target.mapped = true,
            _ => self.options.target.write_through = true,
        }
        Ok(())
    }

    fn event(&mut self, word: &str, value: &str) -> Result<(), Refusal> {
        let mut letters = value.chars();
        let letter = letters.next();
        let name = letters.as_str().to_owned();
        self.options.events.push(match letter {
            Some('s' | 'f') => Event::Told(name),
            Some('r' | 'p') => Event::Awaited(name),
            Some('e') => Event::Set(name),
            _ => {
                return Err(refuse(
                    word,
                    "no such event",
                    "say -ys, -yf, -yr, -yp or -ye, and its name",
                ));
            }
        });
        Ok(())
    }

    fn payload(&mut self, word: &str, value: &str) -> Result<(), Refusal> {
        match value {
            "" => self.options.target.zero_buffers = true,
            "r" => self.options.span.random_write_data = true,
            _ => {
                let remedy = "as in -Z, -Zr, -Z1M or -Z1M,file: zeros, random data, or a buffer";
                let (size, file) = match value.split_once(',') {
                    Some((size, file)) => (size, Some(file.to_owned())),
                    None => (value, None),
                };
                let size = self.size(word, size, remedy)?;
                if size == 0 {
                    return Err(refuse(word, "an empty buffer holds no data", remedy));
                }
                let file = file.filter(|file| !file.is_empty());
                self.options.target.pool = Some((size, file));
            }
        }
        Ok(())
    }
}

/// The earlier option, in another word or in the same one.
fn twice(word: &str, earlier: &str, what: &str) -> Refusal {
    let problem = match word == earlier {
        true => format!("{what} is said twice"),
        false => format!("{earlier} already says {what}"),
    };
    refuse(word, problem, "keep one of the two")
}

fn refuse(word: &str, problem: impl Into<String>, remedy: &str) -> Refusal {
    let shown = match word {
        "-" => "- alone",
        word => word,
    };
    Refusal::usage(shown, problem, remedy)
}
