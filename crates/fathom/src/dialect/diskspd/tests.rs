//! Tests the corpus of command lines, and properties of generated command lines.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::model::*;
use super::options::Event;
use super::{Invocation, linux, read, text, xml};
use crate::dialect::paths::PathMap;
use fathom_core::Refusal;
use fathom_report::export::diskspd::size as shown;

/// The seed of a run without `-z` in these tests.
const FRESH_SEED: u32 = 4242;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/diskspd")
}

/// Splits a line into words. Single quotes hold words together, and a backslash is an ordinary
/// character.
pub(super) fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn load(path: &str) -> Result<Vec<u8>, Refusal> {
    fs::read(data().join(path)).map_err(|_| Refusal::usage(path, "it is not there", "name another"))
}

pub(super) fn request(line: &str) -> Result<Invocation, Refusal> {
    read(&words(line), FRESH_SEED, &mut load)
}

fn parsed(line: &str) -> Profile {
    request(line).unwrap_or_else(|refusal| panic!("{line}: {refusal}")).profile
}

/// A short text of what a command line resolves to.
fn told(line: &str) -> String {
    let request = match request(line) {
        Ok(request) => request,
        Err(refusal) => return format!("! {refusal}\n"),
    };
    let mut told = String::new();
    for span in &request.profile.time_spans {
        told += &format!("= {}\n", of_span(&request, span));
        for target in &span.targets {
            told += &format!("=   {}\n", of_target(span, target));
        }
    }
    for note in &request.notes {
        told += &format!("~ {note}\n");
    }
    told
}

fn of_span(request: &Invocation, span: &TimeSpan) -> String {
    let profile = &request.profile;
    let mut words = Vec::from([format!("{} s", span.duration_s)]);
    let mut say = |said: bool, word: String| words.extend(said.then_some(word));
    say(span.warm_up_s != 5, format!("warm-up {} s", span.warm_up_s));
    say(span.cool_down_s != 0, format!("cool-down {} s", span.cool_down_s));
    match span.threads {
        Threads::PerTarget => {}
        Threads::Total(threads) => say(true, format!("{threads} threads in total")),
        Threads::Pool { threads, outstanding } => {
            say(true, format!("a pool of {threads} threads with {outstanding} in flight"));
        }
    }
    match &span.affinity {
        Affinity::RoundRobin => {}
        Affinity::Off => say(true, "not pinned".to_owned()),
        Affinity::Explicit(cpus) => {
            let cpus: Vec<_> =
                cpus.iter().map(|cpu| format!("{}/{}", cpu.group, cpu.number)).collect();
            say(true, format!("pinned to {}", cpus.join(" ")));
        }
    }
    say(span.seed != FRESH_SEED, format!("seed {}", span.seed));
    say(span.service_times, "latency".to_owned());
    say(span.iops_deviation, format!("IOPS of {} ms", span.io_bucket_ms));
    say(span.completion_routines, "completion routines".to_owned());
    say(span.random_write_data, "random writes".to_owned());
    say(profile.result_format == ResultFormat::Xml, "XML".to_owned());
    say(request.profile_only, "print only".to_owned());
    say(profile.verbose, "verbose".to_owned());
    say(profile.verbose_stats, "wait statistics".to_owned());
    say(profile.progress != 0, format!("a dot for {}", profile.progress));
    say(profile.experiment_flags != 0, format!("experiments {}", profile.experiment_flags));
    say(profile.precreate != Precreate::None, format!("precreate {:?}", profile.precreate));
    if let Some(switches) = profile.etw {
        let on: Vec<&str> =
            ETW.iter().zip(switches).filter(|(_, on)| *on).map(|((name, _), _)| *name).collect();
        say(true, format!("ETW {}", on.join(" ")));
    }
    for event in &request.events {
        say(
            true,
            match event {
                Event::Told(name) => format!("sets {name}"),
                Event::Awaited(name) => format!("waits for {name}"),
                Event::Set(name) => format!("only sets {name}"),
            },
        );
    }
    words.join(", ")
}

fn of_target(span: &TimeSpan, target: &Target) -> String {
    let block = u64::from(target.block_size);
    let mut words = Vec::from([format!("{}: {}", target.path, shown(block))]);
    let mut say = |said: bool, word: String| words.extend(said.then_some(word));
    for word in of_access(&target.access, block) {
        say(true, word);
    }
    match span.threads {
        Threads::PerTarget => say(true, format!("o={} t={}", target.outstanding, target.threads)),
        Threads::Total(_) => say(true, format!("o={}", target.outstanding)),
        Threads::Pool { .. } => say(true, format!("weight {}", target.weight)),
    }
    say(target.write_percent > 0, format!("{} % writes", target.write_percent));
    say(target.base > 0, format!("from {}", shown(target.base)));
    let end = target.max_offset.map(shown);
    say(end.is_some(), format!("to {}", end.unwrap_or_default()));
    let created = target.create_size.map(shown);
    say(created.is_some(), format!("created with {}", created.unwrap_or_default()));
    match target.cache {
        Cache::Cached => {}
        Cache::LocalOff => say(true, "no local cache".to_owned()),
        Cache::Off => say(true, "unbuffered".to_owned()),
    }
    say(target.write_through, "write-through".to_owned());
    if let Mapping::On(flush) = target.mapping {
        say(true, format!("mapped, flush {flush:?}"));
    }
    match &target.payload {
        Payload::Pattern => {}
        Payload::Zero => say(true, "zeros".to_owned()),
        Payload::Pool { size, file } => {
            let of = file.as_ref().map(|file| format!(" of {file}")).unwrap_or_default();
            say(true, format!("a pool of {}{of}", shown(*size)));
        }
    }
    if let Some(burst) = target.burst {
        say(true, format!("bursts of {}, then {} ms", burst.ios, burst.think_time_ms));
    }
    match target.throttle {
        Throttle::Off => {}
        Throttle::BytesPerMs(bytes) => say(true, format!("at most {bytes} B/ms")),
        Throttle::Iops(iops) => say(true, format!("at most {iops} IOPS")),
    }
    say(target.priority != Priority::Normal, format!("priority {:?}", target.priority));
    say(target.large_pages, "large pages".to_owned());
    say(target.hints.random, "hint random".to_owned());
    say(target.hints.sequential, "hint sequential".to_owned());
    say(target.hints.temporary, "hint temporary".to_owned());
    for thread in &target.thread_targets {
        let weight = thread.weight.map(|weight| format!(" by {weight}")).unwrap_or_default();
        say(true, format!("thread {}{weight}", thread.thread));
    }
    words.join(", ")
}

fn of_access(access: &Access, block: u64) -> Vec<String> {
    let mut words = Vec::new();
    let mut say = |said: bool, word: String| words.extend(said.then_some(word));
    match access {
        Access::Sequential { stride, order, thread_stride } => {
            say(true, "sequential".to_owned());
            say(*stride != block, format!("stride {}", shown(*stride)));
            say(*order == Order::Interlocked, "interlocked".to_owned());
            say(*order == Order::Parallel, "parallel".to_owned());
            say(*thread_stride != 0, format!("threads {} apart", shown(*thread_stride)));
        }
        Access::Random { percent, alignment, distribution } => {
            say(*percent == 100, "random".to_owned());
            say(*percent != 100, format!("{percent} % random"));
            say(*alignment != block, format!("aligned to {}", shown(*alignment)));
            if let Some(shares) = distribution {
                let one = |range: &Range| match (shares.unit, range.span) {
                    (SpanUnit::Percent, span) => format!("{}/{span}%", range.io),
                    (SpanUnit::Bytes, 0) => format!("{}/rest", range.io),
                    (SpanUnit::Bytes, span) => format!("{}/{}", range.io, shown(span)),
                };
                let ranges: Vec<_> = shares.ranges.iter().map(one).collect();
                say(true, format!("shares {}", ranges.join(" ")));
            }
        }
    }
    words
}

/// The stored corpus with the current results of its command lines.
fn corpus_now(stored: &str) -> String {
    let mut now = String::new();
    for line in stored.lines() {
        if let Some(command_line) = line.strip_prefix("$ ") {
            now += &format!("{line}\n{}", told(command_line));
        } else if line.is_empty() || line.starts_with('#') {
            now += &format!("{line}\n");
        }
    }
    now
}

#[test]
fn the_corpus_resolves_as_it_is_written_down() {
    let path = data().join("corpus.txt");
    let stored = fs::read_to_string(&path).unwrap();
    let now = corpus_now(&stored);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, now).unwrap();
        return;
    }
    for (number, (stored, now)) in stored.lines().zip(now.lines()).enumerate() {
        assert_eq!(stored, now, "line {} of {}", number + 1, path.display());
    }
    assert_eq!(stored.lines().count(), now.lines().count());
}

#[test]
fn the_corpus_is_as_large_as_it_has_to_be() {
    let stored = fs::read_to_string(data().join("corpus.txt")).unwrap();
    let lines: Vec<&str> = stored.lines().filter(|line| line.starts_with("$ ")).collect();
    let distinct: std::collections::BTreeSet<&&str> = lines.iter().collect();
    assert_eq!(distinct.len(), lines.len(), "a command line stands there twice");
    let refused = stored.lines().filter(|line| line.starts_with("! ")).count();
    assert!(lines.len() - refused >= 150, "{} of {} are refused", refused, lines.len());
}

/// The command lines of the corpus that are not refused.
pub(super) fn accepted() -> Vec<String> {
    let stored = fs::read_to_string(data().join("corpus.txt")).unwrap();
    let lines = stored.lines().filter_map(|line| line.strip_prefix("$ "));
    lines.filter(|line| request(line).is_ok()).map(str::to_owned).collect()
}

/// Writes a profile and reads it again.
fn again(profile: &Profile) -> Profile {
    let written = xml::write::profile(profile, 0);
    let words = ["-Rp".to_owned(), "-Xagain.xml".to_owned()];
    let mut load = |_: &str| Ok(written.clone().into_bytes());
    // A different seed, so that a seed that is not written is noticed.
    match read(&words, FRESH_SEED + 1, &mut load) {
        Ok(request) => request.profile,
        Err(refusal) => panic!("{refusal}\n{written}"),
    }
}

#[test]
fn a_profile_that_is_written_is_read_as_the_same() {
    for line in accepted() {
        let profile = parsed(&line);
        assert_eq!(again(&profile), profile, "{line}");
    }
}

#[test]
fn every_accepted_command_line_has_a_text_form() {
    for line in accepted() {
        let profile = parsed(&line);
        let text = text::profile(&profile, &line);
        for target in profile.time_spans.iter().flat_map(|span| &span.targets) {
            assert!(target.path.starts_with('*') || text.contains(&format!("'{}'", target.path)));
        }
        assert_eq!(text.matches("\tduration: ").count(), profile.time_spans.len(), "{text}");
    }
}

#[test]
fn the_text_form_has_diskspds_words_in_diskspds_order() {
    let line = "-b4K -t2 -r -o32 -d10 -Sh -L -D -z7 -w30 testfile.dat";
    assert_eq!(
        text::profile(&parsed(line), "diskspd -b4K"),
        "\nCommand Line: diskspd -b4K\n\nInput parameters:\n\n\ttimespan:   1\n\t-------------\n\
         \tduration: 10s\n\twarm up time: 5s\n\tcool down time: 0s\n\tmeasuring latency\n\
         \tgathering IOPS at intervals of 1000ms\n\trandom seed: 7\n\tpath: 'testfile.dat'\n\
         \t\tthink time: 0ms\n\t\tburst size: 0\n\t\tsoftware cache disabled\n\
         \t\thardware write cache disabled, writethrough on\n\
         \t\tperforming mix test (read/write ratio: 70/30)\n\t\tblock size: 4KiB\n\
         \t\tusing random I/O (alignment: 4KiB)\n\
         \t\tnumber of outstanding I/O operations per thread: 32\n\t\tthreads per file: 2\n\
         \t\tusing I/O Completion Ports\n\t\tIO priority: normal\n\n"
    );
}

#[test]
fn the_text_form_shows_distributions_as_diskspd_does() {
    let lines = |line: &str| {
        let text = text::profile(&parsed(line), "");
        let (_, shares) = text.split_once("\t\tIO Distribution:\n").unwrap();
        shares.to_owned()
    };
    assert_eq!(
        lines("-r -rdpct10/10:10/10:0/10 t.dat"),
        "\t\t    10% of IO => [ 0% -  10%) of target\n\
         \t\t    10% of IO => [10% -  20%) of target\n\
         \t\t     0% of IO => [20% -  30%) of target\n\
         \t\t    80% of IO => [30% - 100%) of target\n\n"
    );
    assert_eq!(
        lines("-r -rdabs10/1G:10/1G:0/100G t.dat"),
        "\t\t    10% of IO => [     0    -      1GiB)\n\
         \t\t    10% of IO => [     1GiB -      2GiB)\n\
         \t\t     0% of IO => [     2GiB -    102GiB)\n\
         \t\t    80% of IO => [   102GiB -       end)\n\n"
    );
}

#[test]
fn the_xml_form_has_diskspds_elements_in_diskspds_order() {
    let written = xml::write::profile(&parsed("-g1000i -Sh -D -z0 testfile1.dat"), 2);
    let expected = fs::read_to_string(data().join("written.xml")).unwrap();
    assert_eq!(written, expected);
}

/// A profile with one target and these elements.
fn of_xml(target: &str, span: &str) -> Result<Invocation, Refusal> {
    let text = format!(
        "<Profile>\n<TimeSpans><TimeSpan>{span}<Targets>\n<Target><Path>a.dat</Path>\n{target}\
         </Target></Targets></TimeSpan></TimeSpans></Profile>"
    );
    read(&["-Xp.xml".to_owned()], FRESH_SEED, &mut |_| Ok(text.clone().into_bytes()))
}

/// The elements of the target, those of the time span, and the message about them.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("<BlockSize>4K</BlockSize>", "", "p.xml:4:1: <BlockSize>: `4K` is no whole number"),
    ("<BlockSize>0</BlockSize>", "", "from 1 to 4294967294"),
    (
        "  <Blocksize>1</Blocksize>",
        "",
        "p.xml:4:3: <Blocksize>: <Target> has no such element: write <BlockSize>",
    ),
    ("<Foo/>", "", "p.xml:4:1: <Foo>: <Target> has no such element"),
    (
        "<Weight>1</Weight><Weight>1</Weight>",
        "",
        "p.xml:4:19: <Weight>: it stands at p.xml:4:1 already",
    ),
    ("<Weight x=\"1\">1</Weight>", "", "it has no attribute `x`"),
    ("text", "", "p.xml:3:1: <Target>: `text` stands between the elements"),
    ("<RandomAccess>yes</RandomAccess>", "", "`yes` is no truth"),
    ("<Path>b.dat</Path>", "", "it stands at p.xml:3:9 already"),
    ("<Random>4096</Random><StrideSize>1</StrideSize>", "", "contradicts <StrideSize>"),
    (
        "<RandomRatio>50</RandomRatio><StrideSize>1</StrideSize>",
        "",
        "p.xml:4:1: <RandomRatio>: it contradicts",
    ),
    (
        "<Random>4096</Random><RandomRatio>100</RandomRatio>",
        "",
        "`100` is no whole number from 1 to 99",
    ),
    ("<FlushType>Now</FlushType>", "", "`Now` is none of its values: say ViewOfFile or"),
    (
        "<FlushType>ViewOfFile</FlushType>",
        "",
        "p.xml:3:1: a.dat: <FlushType>: it says how a mapped file is flushed",
    ),
    ("<IOPriority>0</IOPriority>", "", "from 1 to 3"),
    ("<WriteRatio>101</WriteRatio>", "", "from 0 to 100"),
    ("<Throughput unit=\"MBPS\">1</Throughput>", "", "`MBPS` is no unit of it: say BPMS or IOPS"),
    ("<WriteBufferContent/>", "", "it has no <Pattern>"),
    ("<ThreadTargets/>", "", "it has no <ThreadTarget>"),
    (
        "<ThreadTargets><ThreadTarget><Thread>0</Thread></ThreadTarget></ThreadTargets>",
        "",
        "give the time span a <ThreadCount> and a <RequestCount>",
    ),
    (
        "<ThreadTargets><ThreadTarget><Thread>2</Thread></ThreadTarget></ThreadTargets>",
        "<ThreadCount>2</ThreadCount><RequestCount>2</RequestCount>",
        "there are 2 threads, numbered from 0",
    ),
    (
        "<Weight>0</Weight>",
        "<ThreadCount>2</ThreadCount><RequestCount>2</RequestCount>",
        "no I/O would ever go to this target",
    ),
    ("<BurstSize>5</BurstSize>", "", "add <ThinkTime> with milliseconds"),
    (
        "<ThreadsPerFile>2</ThreadsPerFile>",
        "<ThreadCount>2</ThreadCount>",
        "<ThreadCount> 2: it is the number of all threads",
    ),
    (
        "<Distribution><Percent><Range IO=\"50\">10</Range></Percent></Distribution>",
        "",
        "it distributes random I/Os, and all I/Os are sequential",
    ),
    (
        "<Random>1</Random><Distribution><Percent><Range>10</Range></Percent></Distribution>",
        "",
        "it has no attribute IO",
    ),
    ("<Random>1</Random><Distribution><Percent/></Distribution>", "", "it has no <Range>"),
    ("<Random>1</Random><Distribution/>", "", "either absolute or in percent"),
    (
        "<Random>4096</Random><Distribution><Absolute><Range IO=\"10\">0</Range><Range IO=\"90\">65536</Range></Absolute></Distribution>",
        "",
        "only the last range can go to the end",
    ),
    (
        "",
        "<DisableAffinity>true</DisableAffinity><Affinity><AffinityAssignment>1</AffinityAssignment></Affinity>",
        "it switches off what <Affinity> lists",
    ),
    (
        "",
        "<Affinity><AffinityGroupAssignment Group=\"0\"/></Affinity>",
        "it has no attribute Processor",
    ),
    ("", "<Affinity><AffinityAssignment>256</AffinityAssignment></Affinity>", "from 0 to 255"),
    ("", "<Duration>0</Duration>", "p.xml:2:12: <Duration> 0: a measurement of 0 s"),
    ("", "<Duration>&lt;</Duration>", "`<` is no whole number"),
    ("", "<Duration>&foo;</Duration>", "&foo; is no entity"),
    ("<Weight>1</Wight>", "", "p.xml:4:"),
    ("<MaxFileSize>10</MaxFileSize>", "", "leaves no room for a block of 65536"),
];

#[test]
fn a_mistake_in_a_profile_is_told_with_its_place() {
    for (target, span, told) in MISTAKES {
        let answer =
            of_xml(target, span).map_or_else(|refusal| refusal.to_string(), |_| "accepted".into());
        assert!(answer.contains(told), "{target}{span}: {answer}");
    }
}

#[test]
fn a_long_profile_is_read_to_its_last_line() {
    let target = "<Target>\n<Path>a.dat</Path>\n<BlockSize>4096</BlockSize>\n</Target>\n";
    let bytes = |count: usize, last: &str| {
        let targets = target.repeat(count);
        let head = "<Profile><TimeSpans><TimeSpan><Targets>\n";
        let tail = "</Targets></TimeSpan></TimeSpans></Profile>";
        format!("{head}{targets}{last}{tail}").into_bytes()
    };
    let words = ["-Xp.xml".to_owned()];
    let request = read(&words, FRESH_SEED, &mut |_| Ok(bytes(10_000, ""))).unwrap();
    assert_eq!(request.profile.time_spans[0].targets.len(), 10_000);
    let refusal = read(&words, FRESH_SEED, &mut |_| Ok(bytes(10_000, " <Goal/>"))).unwrap_err();
    assert!(refusal.to_string().starts_with("p.xml:40002:2: <Goal>"), "{refusal}");
}

#[test]
fn what_is_no_profile_is_refused() {
    for (bytes, told) in [
        (&b""[..], "p.xml: it has no element"),
        (b"hello", "p.xml:1:1: `hello` stands outside"),
        (b"<Profil/>", "a profile is a <Profile>, this is a <Profil>"),
        (b"<Profile/>", "<Profile>: it has no <TimeSpans>"),
        (b"<Profile><TimeSpans/></Profile>", "<TimeSpans>: it has no <TimeSpan>"),
        (b"<Profile><TimeSpans>", "p.xml:1:10: <TimeSpans> is never closed"),
        (b"<Profile></Profil>", "it is no XML"),
        (b"<Profile/><Profile/>", "p.xml:1:11: <Profile> follows the end"),
        (b"<Results/>", "the result has no <Profile>"),
        (b"\xff\xfe<", "neither UTF-8 nor UTF-16"),
        (b"<a>\xe4</a>", "neither UTF-8 nor UTF-16"),
    ] {
        let words = ["-Xp.xml".to_owned()];
        let refusal =
            read(&words, FRESH_SEED, &mut |_| Ok(bytes.to_vec())).unwrap_err().to_string();
        assert!(refusal.contains(told), "{refusal}");
    }
    let deep = format!("<Profile>{}", "<a>".repeat(100_000));
    let words = ["-Xp.xml".to_owned()];
    let refusal = read(&words, FRESH_SEED, &mut |_| Ok(deep.clone().into_bytes())).unwrap_err();
    assert!(refusal.to_string().contains("more than 32 deep"), "{refusal}");
    let long = " ".repeat(xml::LARGEST + 1);
    let refusal = read(&words, FRESH_SEED, &mut |_| Ok(long.clone().into_bytes())).unwrap_err();
    assert!(refusal.to_string().contains("no profile has more than"), "{refusal}");
}

#[test]
fn what_linux_does_not_have_is_told_or_refused() {
    for (line, told) in [
        ("-eDISK_IO t.dat", "note event tracing"),
        ("-:1 t.dat", "note the experiments"),
        ("-x t.dat", "note completion routines"),
        ("-vs t.dat", "note -vs is skipped"),
        ("-P1000 t.dat", "note -P prints no dots"),
        ("-ysgo t.dat", "note the event `go`"),
        ("-yrgo t.dat", "refusal the event `go`"),
        ("-ypgo t.dat", "refusal the event `go`"),
        ("-yego t.dat", "refusal the event `go`"),
        ("-ag1,0 t.dat", "refusal CPU 0 of processor group 1"),
        ("-ft t.dat", "note t.dat: -ft"),
        ("-ft -Su -w100 t.dat", "note t.dat: -ft"),
        ("-ft -w1 t.dat", "refusal t.dat: -ft"),
        ("-Sr t.dat", "note t.dat: -Sr"),
        ("-Sm -Nn -w100 t.dat", "refusal t.dat: -Nn"),
        (r"G:\a.dat", r"note G:\a.dat is /mnt/g/a.dat here"),
        (r"H:\a.dat", r"refusal H:\a.dat: this is a path on a drive"),
        (r"-Z1M,H:\b.bin t.dat", r"refusal H:\b.bin"),
        ("#1", "refusal #1"),
    ] {
        let map = PathMap::new(&["G:=/mnt/g".to_owned()]).unwrap();
        let judgement = linux::judge(&request(line).unwrap(), &map);
        let notes = judgement.notes.iter().map(|note| format!("note {note}"));
        let all: Vec<String> =
            notes.chain(judgement.refusals.iter().map(|one| format!("refusal {one}"))).collect();
        assert_eq!(all.len(), 1, "{line}: {all:?}");
        assert!(all[0].starts_with(told), "{line}: {all:?}");
    }
    let nothing = linux::judge(&request("-b4K -r -Sh -a0 -Zr t.dat").unwrap(), &PathMap::default());
    assert!(nothing.notes.is_empty() && nothing.refusals.is_empty(), "{nothing:?}");
}

#[test]
fn a_seed_repeats_and_none_does_not() {
    let seed = |line: &str, fresh| {
        let request = read(&words(line), fresh, &mut load).unwrap();
        request.profile.time_spans[0].seed
    };
    assert_eq!((seed("-r t.dat", 1), seed("-r t.dat", 2)), (1, 2));
    assert_eq!((seed("-r -z t.dat", 1), seed("-r -z t.dat", 2)), (1, 2));
    assert_eq!((seed("-r -z0 t.dat", 1), seed("-r -z0 t.dat", 2)), (0, 0));
    assert_eq!(seed("-Xtwo-spans.xml", 5), 1);
    assert_eq!(seed("-z9 -Xtwo-spans.xml", 5), 9);
    assert_eq!(seed("-Xutf16.xml", 5), 5);
}

/// A word that could be an option, a target, or nonsense.
fn word() -> impl Strategy<Value = String> {
    let letters = "aabBcCdDefFgGhiIjJlLnNoOpPrrrRsssSStTvwWxXyzZZ:?-/#*qé";
    let letter = proptest::sample::select(letters.chars().collect::<Vec<_>>());
    let values = [
        "",
        "",
        "1",
        "0",
        "4K",
        "64k",
        "1G",
        "b",
        "3b",
        "i",
        "i100",
        "100i",
        "s50",
        "s",
        "dpct90/10",
        "dabs10/1G:5/2G",
        "dpct",
        "pxml",
        "xml",
        "p",
        "h",
        "uw",
        "m",
        "g0,1",
        "0,1",
        "r",
        "1M,f",
        ":",
        "18446744073709551615",
        "99999999999999999999",
        "-1",
        "+7",
        " 5",
        "é",
        "1G:2G",
        ".5",
        "two.xml",
    ];
    let value = prop_oneof![
        proptest::sample::select(values.to_vec()).prop_map(str::to_owned),
        "[0-9KMGTbirshu:/,.\\\\-]{0,12}",
        any::<String>(),
    ];
    prop_oneof![
        8 => (prop_oneof![Just('-'), Just('/')], letter, value.clone())
            .prop_map(|(dash, letter, value)| format!("{dash}{letter}{value}")),
        1 => value,
        1 => Just("t.dat".to_owned()),
    ]
}

/// An option. These often fit together.
fn plain_option() -> impl Strategy<Value = String> {
    let choices = [
        "-b4K",
        "-b1M",
        "-r",
        "-r8K",
        "-rs30",
        "-rs100",
        "-s1M",
        "-si",
        "-t1",
        "-t4",
        "-F3",
        "-O8",
        "-o1",
        "-o32",
        "-w0",
        "-w30",
        "-w100",
        "-Sh",
        "-Su",
        "-Sb",
        "-Sw",
        "-Sm",
        "-Sr",
        "-Nv",
        "-L",
        "-D",
        "-D250",
        "-d1",
        "-W0",
        "-C3",
        "-z",
        "-z77",
        "-Z",
        "-Zr",
        "-Z4M",
        "-Z4M,a <&>\" b",
        "-B1M",
        "-B2M:1G",
        "-f4G",
        "-c8G",
        "-T2M",
        "-p",
        "-x",
        "-l",
        "-I1",
        "-I2",
        "-fr",
        "-fst",
        "-g1000i",
        "-g4096",
        "-g99999999999i",
        "-i4 ",
        "-j9",
        "-n",
        "-a0,3",
        "-ag0,0,g2,1",
        "-P",
        "-P77",
        "-v",
        "-vs",
        "-Rxml",
        "-ePROCESS",
        "-ec",
        "-:3",
        "-rdpct10/10:0/20",
        "-rdabs10/2M:20/4M",
        "-ysx",
    ];
    proptest::sample::select(choices.to_vec()).prop_map(str::to_owned)
}

fn paths() -> impl Strategy<Value = Vec<String>> {
    let path = prop_oneof![
        Just("t.dat".to_owned()),
        Just(r"C:\a b\t.dat".to_owned()),
        Just(" x & <y> ]]> \t\n é ".to_owned()),
        Just("#1".to_owned()),
        "[ -~]{0,3}[a-z]",
    ];
    let fit = |path: &String| !path.starts_with(['-', '/', '*']) && !path.is_empty();
    proptest::collection::vec(path.prop_filter("an option or a template", fit), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn no_command_line_panics(words in proptest::collection::vec(word(), 0..8)) {
        match read(&words, FRESH_SEED, &mut load) {
            Ok(request) => {
                // Characters that XML cannot represent are written as replacement characters.
                let unsaid = |c: char| c < ' ' && !"\t\n\r".contains(c) || "\u{fffe}\u{ffff}".contains(c);
                if !words.iter().any(|word| word.contains(unsaid)) {
                    prop_assert_eq!(&again(&request.profile), &request.profile);
                }
                let _ = linux::judge(&request, &PathMap::default());
                let _ = text::profile(&request.profile, "");
            }
            Err(refusal) => {
                prop_assert!(!refusal.problem.is_empty() && !refusal.remedy.is_empty());
            }
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same(
        options in proptest::collection::vec(plain_option(), 0..9),
        targets in paths(),
    ) {
        let words: Vec<String> = options.into_iter().chain(targets).collect();
        if let Ok(request) = read(&words, FRESH_SEED, &mut load) {
            prop_assert_eq!(again(&request.profile), request.profile);
        }
    }

    #[test]
    fn no_profile_panics(
        at in 0usize..6000,
        cut in 0usize..40,
        put in "[<>/&;a-zA-Z0-9\"= ]{0,12}",
        name in proptest::sample::select(Vec::from(["two-spans.xml", "template.xml", "old.xml", "result.xml"])),
    ) {
        let mut bytes = load(name).unwrap();
        let at = at % bytes.len();
        let end = (at + cut).min(bytes.len());
        bytes.splice(at..end, put.bytes());
        let words = ["-Rp".to_owned(), "-Xp.xml".to_owned()];
        if let Err(refusal) = read(&words, FRESH_SEED, &mut |_| Ok(bytes.clone())) {
            prop_assert!(refusal.about.starts_with("p.xml"), "{}", refusal);
        }
    }
}
