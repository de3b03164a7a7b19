//! The subject of a report, and its verdict.

use fathom_core::experiment::ab::{SIDE, SIDES};
use fathom_core::facts::{Answer, Reduction};

use super::hosts;
use super::{Block, Fact, Level, Outcome, Remark, Sentence, Tone};
use crate::comparison::RequirementOutcome;
use crate::document::{Command, Document, Ended, Found, Host, Stream, Trial, Verdict};
use crate::figures;
use crate::promises::{Promise, advice, promises};
use crate::thresholds::outcomes;

/// With more targets than this, not every target is named.
const TARGETS: usize = 8;

/// More sentences than these hide the figures: the first ones stand below the answer, the others below
/// the tables.
const SENTENCES: usize = 8;
const SENTENCES_SHOWN: usize = 5;

/// The title of the page.
pub fn title(document: &Document) -> String {
    let names = figures::place_names(document);
    let on = match names.as_slice() {
        [] => "nothing".to_owned(),
        [one] => (*one).to_owned(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    match document.header.command {
        Command::Quick => format!("Storage portrait: {on}"),
        Command::Run => format!("Storage run: {on}"),
        Command::Sweep => format!("Storage sweep: {on}"),
        Command::Ab => format!("Storage A/B: {}", both_sides(document).unwrap_or(on)),
        Command::Peak => format!("Storage peak: {on}"),
        Command::Map => format!("Latency map: {on}"),
        Command::Sustain => format!("Sustained storage load: {on}"),
        Command::Study => {
            let name = document.header.experiment.as_ref().map(|one| one.name.as_str());
            format!("Storage study {}: {on}", name.unwrap_or_default())
        }
        Command::Import => format!("Imported results: {on}"),
    }
}

/// "A against B", by what they were called.
fn both_sides(document: &Document) -> Option<String> {
    let found = document.found();
    let names: Vec<&str> = match found {
        Some(Found::Ab(found)) => found.sides.iter().map(String::as_str).collect(),
        // It was cut off.
        _ => figures::place_names(document),
    };
    let [a, b] = names.as_slice() else { return None };
    Some(format!("{a} against {b}"))
}

/// The name of a target: that of the side whose trials address it, if there are sides.
fn whose(document: &Document, target: u32) -> String {
    let is_of = |side: &str, trial: &Trial| {
        let mut regions = trial.point.streams.iter().flat_map(|stream| &stream.regions);
        is_of_side(side, trial) && regions.any(|region| region.target == target)
    };
    let sides = SIDES.into_iter().filter(|_| document.header.command == Command::Ab);
    let sides = sides.filter(|side| document.trials.iter().any(|trial| is_of(side, trial)));
    match sides.collect::<Vec<&str>>().as_slice() {
        [] => "target".to_owned(),
        sides => sides.join(" and "),
    }
}

/// The axes that change the words for a load.
const NAMED: [&str; 6] =
    ["pattern", "random-share", "read-share", "block-size", "payload", "trim-share"];

/// "random reads of 4 KiB; queue-depth varies": the load that the trials of an experiment have in common.
/// Its answer names only what differs.
fn load(document: &Document) -> Option<String> {
    let experiment = document.header.experiment.as_ref()?;
    let in_words = |streams: &[Stream]| {
        streams.iter().map(figures::load).collect::<Vec<_>>().join(", beside ")
    };
    let loads = match document.header.command {
        Command::Sweep | Command::Peak | Command::Sustain | Command::Study => {
            in_words(&experiment.base.streams)
        }
        // Its base reads alone.
        Command::Map => {
            let trials = document.trials.iter().map(|trial| &trial.point.streams);
            in_words(trials.max_by_key(|streams| streams.len())?)
        }
        Command::Ab => {
            let [a, b] = SIDES.map(|side| {
                let mut own = document.trials.iter().filter(|trial| is_of_side(side, trial));
                own.next().map(|trial| in_words(&trial.point.streams))
            });
            match (a?, b?) {
                (a, b) if a == b => a,
                (a, b) => format!("A: {a}; B: {b}"),
            }
        }
        _ => return None,
    };
    let axes = experiment.axes.iter().filter(|axis| 1 < axis.labels.len());
    let axes: Vec<&str> = axes.map(|axis| axis.name.as_str()).collect();
    // The words are those of the first point.
    let is_first = axes.iter().any(|axis| NAMED.contains(axis));
    let but = if is_first { ", but" } else { ";" };
    Some(match axes.as_slice() {
        _ if document.header.command == Command::Ab => loads,
        [] => loads,
        [only] => format!("{loads}{but} {only} varies"),
        several => format!("{loads}{but} {} vary", several.join(", ")),
    })
}

fn is_of_side(side: &str, trial: &Trial) -> bool {
    trial.place.coordinates.iter().any(|at| at.axis == SIDE && at.label == side)
}

/// The targets and the host; with the details also how to repeat the measurement.
pub fn about(document: &Document, level: Level) -> Vec<Block> {
    let header = &document.header;
    let mut facts = Vec::new();
    for (nth, target) in (0..).zip(header.targets.iter().take(TARGETS)) {
        let text = format!("{}: {}", figures::place_name(target), figures::stack(target));
        facts.push(Fact::new(whose(document, nth), text));
    }
    match header.targets.len().saturating_sub(TARGETS) {
        0 => {}
        more => facts.push(Fact::new("target", format!("and {more} more"))),
    }
    facts.extend(load(document).map(|text| Fact::new("load", text)));
    facts.extend(hosts::facts(document, level));
    facts.extend(header.host.as_ref().map(|host| Fact::new("host", figures::host(host))));
    if Level::Full <= level {
        facts.push(Fact::new("command", figures::command_line(&header.command_line)));
        facts.extend(header.seed.map(|seed| {
            let text = format!("{seed}: --seed {seed} gives the same offsets and arrivals");
            Fact::new("seed", text)
        }));
        let made = format!(
            "{}, fathom {}, measurement version {}, format version {}",
            figures::moment(&header.created),
            header.fathom_version,
            header.measurement_version,
            header.format_version
        );
        facts.push(Fact { tone: Tone::Quiet, ..Fact::new("made", made) });
    }
    let mut blocks = Vec::new();
    if !facts.is_empty() {
        blocks.push(Block::Facts(facts));
    }
    for target in &header.targets {
        // The doubts about each trial name the savings.
        let reduction = target.reduction.filter(|one| one.reduces() != Answer::Yes);
        match level < Level::Full {
            true => blocks.extend(reduction.and_then(|one| one.in_brief()).map(Block::quiet)),
            false => {
                blocks.extend(reduction.iter().flat_map(Reduction::sentences).map(Block::quiet))
            }
        }
    }
    blocks
}

/// The verdict.
pub fn outcome(document: &Document, level: Level) -> Outcome {
    let conclusion = conclusion(document);
    if let Some(source) = &document.header.imported {
        return Outcome {
            verdict: None,
            name: "Imported".to_owned(),
            sentence: figures::source(source),
            conclusion,
            remarks: Vec::new(),
            explains: true,
            unchecked: Vec::new(),
        };
    }
    let trials = match document.trials.len() {
        1 => "1 trial".to_owned(),
        many => format!("{} trials", figures::count(many as u64)),
    };
    let found = document.found();
    let verdict = document.verdict();
    let sought = match document.trials.iter().filter(|one| one.verdict == Verdict::Void).count() {
        0 => String::new(),
        1 => "; 1 of them is void, which this study is there to find".to_owned(),
        n => format!("; {n} of them are void, which this study is there to find"),
    };
    let (name, sentence) = match verdict {
        None => ("Empty", "No trial was finished: there are no figures.".to_owned()),
        // If there are doubts about the map itself, the statement that no check found a doubt would
        // mislead.
        Some(Verdict::Sound) if matches!(found, Some(Found::Map(map)) if !map.doubts.is_empty()) => {
            ("Sound", format!("{trials}, and nothing speaks against them; the map is doubted."))
        }
        Some(Verdict::Sound) if sought.is_empty() => {
            ("Sound", format!("{trials}, and nothing speaks against the numbers."))
        }
        Some(Verdict::Sound) => {
            ("Sound", format!("{trials}{sought}; nothing speaks against the other numbers."))
        }
        Some(Verdict::Suspect) => {
            ("Suspect", format!("{trials}{sought}; the numbers may not mean what they seem to."))
        }
        Some(Verdict::Void) => {
            ("Void", format!("{trials}; the numbers are not what was asked for."))
        }
    };
    // A doubt invites to read on; if there is none, only this does.
    let open = match verdict {
        Some(Verdict::Sound) => figures::left_open(&document.trials),
        _ => String::new(),
    };
    let doubts = figures::doubts(&document.trials);
    Outcome {
        verdict,
        name: format!("{name}{open}"),
        sentence,
        conclusion,
        remarks: doubts.iter().map(Remark::of_doubt).collect(),
        explains: Level::Full <= level,
        unchecked: missing(document, level),
    }
}

/// The end of the run, if it is not as planned, and the findings but for the first, which is the
/// answer.
fn conclusion(document: &Document) -> Vec<Sentence> {
    let ended = match document.conclusion.as_ref().map(|conclusion| conclusion.ended) {
        Some(Ended::Completed) => None,
        Some(Ended::Interrupted) => Some((Tone::Doubtful, "The run was interrupted")),
        Some(Ended::Failed) => Some((Tone::Bad, "The run failed")),
        None => Some((Tone::Doubtful, "The run was cut off, or still goes on")),
    };
    let mut sentences = Vec::new();
    sentences.extend(ended.map(|(tone, text)| Sentence {
        tone,
        text: format!("{text} after {}.", document.done_in_words()),
    }));
    if document.torn {
        let text = "The last line of the result file was torn, and was left out.".to_owned();
        sentences.push(Sentence { tone: Tone::Doubtful, text });
    }
    sentences.extend(found(document).0.iter().map(Sentence::plain));
    sentences.extend(only_reads(document));
    sentences.extend(promised(document));
    sentences.extend(conditions(outcomes(document)));
    sentences
}

/// What was found besides the answer: the sentences that stand below it, and those of a long list that
/// stand below the tables.
pub fn found(document: &Document) -> (&[String], &[String]) {
    let said = document.conclusion.as_ref().map_or(&[][..], |last| &last.sentences);
    let said = said.get(1..).unwrap_or_default();
    said.split_at(if said.len() <= SENTENCES { said.len() } else { SENTENCES_SHOWN })
}

/// That `quick` left out its steps that write, because nobody allowed them.
fn only_reads(document: &Document) -> Option<Sentence> {
    let reads = |trial: &Trial| trial.point.streams.iter().all(|stream| !stream.destroys());
    let is_quick = document.header.command == Command::Quick;
    let is_whole = document.conclusion.as_ref().is_some_and(|last| last.ended == Ended::Completed);
    (is_quick && is_whole && document.trials.iter().all(reads)).then(|| {
        Sentence::plain(
            "Only reads were measured: the target was there before, and writes to it were not allowed.",
        )
    })
}

/// Whether the promises were kept, and what tells more.
fn promised(document: &Document) -> Vec<Sentence> {
    let promises = promises(document);
    let more = advice(document, &promises);
    let sentence = |one: Promise| Sentence {
        tone: match one.kept {
            Answer::Yes => Tone::Good,
            Answer::No => Tone::Bad,
            Answer::Unknown => Tone::Doubtful,
        },
        text: format!("{}.", figures::capitalized(&one.text)),
    };
    let all = promises.into_iter().map(sentence);
    all.chain(more.into_iter().map(|text| Sentence { tone: Tone::Quiet, text })).collect()
}

/// Whether the conditions under which it fails apply.
pub(super) fn conditions(outcomes: Vec<RequirementOutcome>) -> impl Iterator<Item = Sentence> {
    outcomes.into_iter().map(|one| Sentence {
        tone: match one.holds {
            Answer::Yes => Tone::Bad,
            Answer::No => Tone::Good,
            Answer::Unknown => Tone::Doubtful,
        },
        text: format!("{}.", one.text),
    })
}

/// The checks that were not made, if no section of the page says why.
fn missing(document: &Document, level: Level) -> Vec<Sentence> {
    let missing = figures::missing_checks(&document.trials);
    if missing.is_empty() || Level::Full <= level {
        return Vec::new();
    }
    let questions: Vec<String> = missing.into_iter().map(figures::question).collect();
    let text = format!(
        "Not checked: {}. `fathom report RESULT --details` says why.",
        questions.join(", ")
    );
    Vec::from([Sentence { tone: Tone::Quiet, text }])
}

/// All checks that could not be made, listed once for all trials.
pub fn unchecked(document: &Document) -> Option<Block> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for unchecked in document.trials.iter().flat_map(|trial| &trial.unchecked) {
        let pair = (unchecked.code.as_str(), unchecked.why.as_str());
        if !seen.contains(&pair) {
            seen.push(pair);
        }
    }
    let line = |(code, why): (&str, &str)| match figures::question(code) {
        question if question == code => format!("{code}: {why}."),
        question => format!("{} ({code}): {why}.", figures::capitalized(&question)),
    };
    let lines: Vec<String> = seen.into_iter().map(line).collect();
    (!lines.is_empty()).then(|| Block::section("Not checked", Vec::from([Block::List(lines)])))
}

/// The targets down their stacks, and the host.
pub fn tested(document: &Document) -> Option<Block> {
    let host = document.header.host.as_ref()?;
    let targets = document.header.targets.iter();
    let mut blocks: Vec<Block> = targets.flat_map(super::target::stack).collect();
    blocks.push(Block::section("host", Vec::from([Block::Facts(about_host(host))])));
    Some(Block::section("What was tested, and from where", blocks))
}

fn about_host(host: &Host) -> Vec<Fact> {
    let unknown = || "unknown".to_owned();
    let limit = host.memory_limit.map(|bytes| format!(", limited to {bytes}"));
    let memory = (!host.memory.is_zero()).then(|| host.memory.to_string());
    let runs_in = host.virtualization.clone();
    let clock = &host.clock;
    Vec::from([
        Fact::new("name", host.name.clone()),
        Fact::new(
            "system",
            format!("Linux {}, {}", host.kernel, host.os.clone().unwrap_or_else(unknown)),
        ),
        Fact::new(
            "CPUs",
            format!("{}, {}", host.cpus, host.cpu_model.clone().unwrap_or_else(unknown)),
        ),
        Fact::new("NUMA nodes", host.numa_nodes.to_string()),
        Fact::new(
            "memory",
            format!("{}{}", memory.unwrap_or_else(unknown), limit.unwrap_or_default()),
        ),
        Fact::new(
            "runs in",
            runs_in.unwrap_or("no virtual machine or container that it shows".to_owned()),
        ),
        Fact::new("clock", figures::clock(clock)),
    ])
}
