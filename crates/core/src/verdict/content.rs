//! Whether the data that was written and read is ordinary: a target may skip, compress or
//! deduplicate zeros, or one block over and over, and then measures next to nothing.

use super::case::{Case, counted, stream_does};
use super::{Finding, Judgement, Severity};
use crate::facts::{Answer, Content, Reduction, Target, TargetKind};
use crate::figures::percent;
use crate::measure::Direction;
use crate::spec::{Payload, Stream};
use crate::stats::Z_95;

/// If this share of the payload or more could be saved, the writes are those of data that repeats
/// itself. Real data allows less.
const SAVED_MAX: f64 = 0.9;
/// If the share of blocks that repeat is certainly above this, the reads are doubtful.
const REPEATING_MAX: f64 = 0.1;
/// If a compressor saves more than this share of the data that is read, the report says so.
const COMPRESSIBLE_MAX: f64 = 0.1;
const WHY: &str =
    "A target, or what is on the way to it, may skip, compress or deduplicate such data";

/// Writes of zeros, or of data that repeats itself.
pub(super) fn repeating_payload(case: &Case, judgement: &mut Judgement) {
    let written = |stream: &&Stream| stream_does(stream, Direction::Write);
    let told: Vec<String> = case
        .streams()
        .iter()
        .filter(written)
        .filter_map(|stream| Some(format!("{}{}", of(&stream.payload)?, case.of_stream(stream))))
        .collect();
    if told.is_empty() {
        return;
    }
    judgement.find(
        "repeating-payload",
        Severity::Suspect,
        format!("The payload repeats itself: {}.", told.join("; ")),
        format!(
            "{WHY}: write random data, which is the default, or compare both with \
             `fathom sweep --axis payload=random,zeros`."
        ),
    );
}

/// The objection to a payload, by its description alone.
fn of(payload: &Payload) -> Option<String> {
    match payload {
        Payload::Zeros => Some("nothing but zeros".to_owned()),
        Payload::Pattern(bytes) => {
            Some(format!("the same {} over and over", counted(bytes.len() as u64, "byte")))
        }
        Payload::Random { compressible, dedup } => {
            let saved = compressible + (1.0 - compressible) * dedup;
            (SAVED_MAX <= saved).then(|| format!("{} of it can be saved", percent(saved)))
        }
        // Only samples show the content of a file.
        Payload::Pool { .. } => None,
    }
}

/// The finding about a stream that writes from a pool, by samples of the file that fills the pool:
/// for callers that can read it.
pub fn repeating_pool(stream: &Stream, file: &str, content: &Content) -> Option<Finding> {
    let share = surely(content.repeating(), content.samples);
    let found = content.samples > 0 && REPEATING_MAX < share;
    found.then(|| Finding {
        code: "repeating-payload",
        severity: Severity::Suspect,
        evidence: format!(
            "The payload of stream '{}' repeats itself: it came from {file}, of which {}.",
            stream.name,
            in_words(content, 0)
        ),
        advice: format!("{WHY}: write from a file whose blocks differ, or random data."),
    })
}

/// The result of a probe of the targets, compared with the payload that is written to them.
pub(super) fn data_reduction(case: &Case, judgement: &mut Judgement) {
    let mut gravest: Option<Finding> = None;
    for (place, target) in case.used() {
        let Some(reduction) = &target.reduction else { continue };
        let own = case.regions().filter(|(stream, region)| {
            region.target == place && stream_does(stream, Direction::Write)
        });
        for (stream, _) in own {
            let found = reduced(target, reduction, &stream.payload);
            let repeats = of(&stream.payload).is_some();
            if repeats && reduction.saves(&stream.payload).is_none() {
                let why = format!(
                    "the probe could not tell whether {} saves on data that repeats itself: other load \
                     or noise was too large",
                    target.name
                );
                judgement.cannot("data-reduction", why);
            }
            let is_graver = |found: &Finding| {
                gravest.as_ref().is_none_or(|known| known.severity < found.severity)
            };
            gravest = found.filter(is_graver).or(gravest);
        }
    }
    judgement.findings.extend(gravest);
}

/// The finding about writes of a payload to a target that was probed.
pub fn reduced(target: &Target, reduction: &Reduction, payload: &Payload) -> Option<Finding> {
    if reduction.reduces() != Answer::Yes {
        return None;
    }
    let shown = reduction.evidence().unwrap_or_default();
    let does = format!("{} {}, by a probe in which {shown}", target.name, reduction.deeds());
    let saved = reduction.saves(payload);
    let (severity, what, advice) = match saved {
        Some(saved) if SAVED_MAX <= saved => (
            Severity::Void,
            "it saves next to all of what was written, and the figures are not those of unique data"
                .to_owned(),
            "Measure with random data, which is the default.",
        ),
        Some(saved) if 0.0 < saved => (
            Severity::Note,
            format!(
                "it can save {} of what was written, and the figures are those of such data, not of \
                 unique data",
                percent(saved)
            ),
            "Compare with unique data, which is the default, where the medium itself is meant.",
        ),
        Some(_) => (
            Severity::Note,
            "the figures of what was written are those of unique data, of which it saves nothing"
                .to_owned(),
            "Data of which something can be saved is another load here: describe yours with \
             --compressible and --dedup.",
        ),
        None => (
            Severity::Note,
            "how much it saves of what was written is not known".to_owned(),
            "Compare with unique data, which is the default.",
        ),
    };
    let evidence = format!("{does}: {what}.");
    Some(Finding { code: "data-reduction", severity, evidence, advice: advice.to_owned() })
}

/// Whether more of the sampled data repeats itself than usual, by the lower end of an interval.
pub fn repeats(content: &Content) -> bool {
    REPEATING_MAX < surely(content.repeating(), content.samples)
}

/// Reads of zeros, or of one block over and over.
pub(super) fn repeating_content(case: &Case, judgement: &mut Judgement) {
    let is_read = |place| {
        let mut regions = case.regions();
        regions.any(|(s, region)| region.target == place && stream_does(s, Direction::Read))
    };
    let mut repeating = Vec::new();
    let mut compressible = Vec::new();
    for (_, target) in case.used().filter(|(place, _)| is_read(*place)) {
        if !holds_data(target) {
            continue;
        }
        let Some(content) = target.content.filter(|content| content.samples > 0) else {
            judgement.cannot(
                "repeating-content",
                format!(
                    "no block of {} could be read before the run to see what it is",
                    target.name
                ),
            );
            continue;
        };
        let repeats = content.repeating() - content.zeros.min(never_written(target, &content));
        if REPEATING_MAX < surely(repeats, content.samples) {
            repeating.push((target, content));
        } else if COMPRESSIBLE_MAX < content.compressible {
            compressible.push((target, content));
        }
    }
    if let Some((target, content)) = repeating.first() {
        judgement.find(
            "repeating-content",
            Severity::Suspect,
            format!(
                "The data that is read repeats itself: of {}{}, {}.",
                target.name,
                others(repeating.len()),
                in_words(content, never_written(target, content))
            ),
            format!(
                "{WHY}, and answers without the medium: write it with data that does not repeat, if \
                 what it holds may be lost (`fathom prepare`).",
            ),
        );
    }
    if let Some((target, content)) = compressible.first() {
        judgement.find(
            "repeating-content",
            Severity::Note,
            format!(
                "{} of {}{} can be saved by a compressor.",
                percent(content.compressible),
                target.name,
                others(compressible.len())
            ),
            "Where something on the way compresses, such data is faster than what cannot be \
             compressed.",
        );
    }
}

/// "", " and 2 others": for targets that are alike.
fn others(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        2 => " and another one".to_owned(),
        n => format!(" and {} others", n - 1),
    }
}

fn holds_data(target: &Target) -> bool {
    matches!(target.kind, TargetKind::File | TargetKind::BlockDevice | TargetKind::NvmeGeneric)
}

/// How many of the samples are probably zeros because those places were never written, rounded up:
/// these are `unwritten-reads`.
fn never_written(target: &Target, content: &Content) -> u32 {
    let Some(extents) = &target.extents else { return 0 };
    let share = (extents.unwritten.0 + extents.holes.0) as f64 / target.size.0.max(1) as f64;
    (share.min(1.0) * f64::from(content.samples)).ceil() as u32
}

/// "of 128 blocks of 4 KiB 100 are zeros and 3 equal others", without this many zeros.
fn in_words(content: &Content, unwritten: u32) -> String {
    let zeros = content.zeros.saturating_sub(unwritten);
    let parts = [
        (zeros, "are nothing but zeros"),
        (content.patterned, "are one short pattern over and over"),
        (content.equal, "equal others"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{number} {what}"))
        .collect();
    let Content { samples, block, .. } = content;
    format!("{samples} blocks of {block} were looked at, and {}", parts.join(", "))
}

/// The lower end of the interval of a proportion (Wilson 1927, without continuity correction).
fn surely(found: u32, of: u32) -> f64 {
    if of == 0 {
        return 0.0;
    }
    let (n, p) = (f64::from(of), f64::from(found) / f64::from(of));
    let middle = p + Z_95 * Z_95 / (2.0 * n);
    let spread = Z_95 * (p * (1.0 - p) / n + Z_95 * Z_95 / (4.0 * n * n)).sqrt();
    ((middle - spread) / (1.0 + Z_95 * Z_95 / n)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Invented;
    use super::super::{Verdict, foresee};
    use super::*;
    use crate::facts::{Extents, Saving};
    use crate::stats::Ratio;
    use crate::units::Bytes;

    fn content(zeros: u32, patterned: u32, equal: u32) -> Content {
        Content { samples: 128, block: Bytes(4096), zeros, patterned, equal, compressible: 0.0 }
    }

    #[test]
    fn what_repeats_itself_is_written_under_suspicion_on_every_kind_of_target() {
        for (payload, expected) in [
            (Payload::Zeros, "nothing but zeros"),
            (Payload::ramp(), "the same 256 bytes over and over"),
            (Payload::Random { compressible: 0.5, dedup: 0.9 }, "95 % of it can be saved"),
        ] {
            let mut invented = Invented::writes();
            invented.has_none_of(&["repeating-payload"]);
            invented.stream().payload = payload;
            let finding = invented.has("repeating-payload", Severity::Suspect);
            assert!(finding.evidence.contains(expected), "{}", finding.evidence);
            let trial = &invented.trial;
            let foreseen = foresee(&trial.point, trial.backend, &invented.host, &invented.targets);
            assert!(foreseen.findings.iter().any(|one| one.code == "repeating-payload"));
            invented.simulate();
            invented.has("repeating-payload", Severity::Suspect);
            // A load that only reads writes no payload.
            invented.stream().kind_mut().read_share = 1.0;
            invented.has_none_of(&["repeating-payload"]);
        }
        let mut half = Invented::writes();
        half.stream().payload = Payload::Random { compressible: 0.5, dedup: 0.3 };
        half.has_none_of(&["repeating-payload"]);
    }

    #[test]
    fn where_it_was_meant_it_is_a_note() {
        let mut invented = Invented::writes();
        invented.stream().payload = Payload::Zeros;
        let mut judgement = invented.judge();
        judgement.excuse_repetition("It was meant.");
        assert_eq!(judgement.verdict(), Verdict::Sound);
        assert_eq!(judgement.findings[0].advice, "It was meant.");
    }

    #[test]
    fn what_a_probe_has_told_is_held_against_what_is_written() {
        let ratio = |low, high| Some(Ratio { value: (low + high) / 2.0, low, high });
        let of = |speed| Saving { speed, reached: None };
        let (alike, faster, vague) =
            (of(ratio(0.95, 1.05)), of(ratio(2.9, 3.1)), of(ratio(0.5, 3.0)));
        let compresses = Reduction {
            passes: 6,
            compressible: faster,
            repeated: alike,
            zeros: faster,
            zeros_to_repeated: faster,
        };
        let judged = |reduction: Reduction, payload: Payload| {
            let mut invented = Invented::writes();
            invented.target().reduction = Some(reduction);
            invented.stream().payload = payload;
            invented
        };
        let half = Payload::Random { compressible: 0.5, dedup: 0.0 };
        for (payload, severity, words) in [
            (Payload::Zeros, Severity::Void, "not those of unique data"),
            (Payload::ramp(), Severity::Void, "not those of unique data"),
            (half.clone(), Severity::Note, "it can save 50 % of what was written"),
            (Payload::UNIQUE, Severity::Note, "are those of unique data"),
        ] {
            let mut invented = judged(compresses, payload);
            let finding = invented.has("data-reduction", severity);
            assert!(finding.evidence.contains("data.bin compresses"), "{finding:?}");
            assert!(finding.evidence.contains(words), "{finding:?}");
            invented.stream().kind_mut().read_share = 1.0;
            invented.has_none_of(&["data-reduction"]);
        }
        let saves_nothing =
            Reduction { compressible: alike, zeros: alike, zeros_to_repeated: alike, ..compresses };
        for payload in [Payload::Zeros, Payload::UNIQUE, half] {
            judged(saves_nothing, payload).has_none_of(&["data-reduction"]);
        }
        let unknown = Reduction { zeros: vague, ..saves_nothing };
        judged(unknown, Payload::Zeros).is_unchecked("data-reduction");
        judged(unknown, Payload::UNIQUE).has_none_of(&["data-reduction"]);
    }

    #[test]
    fn what_a_pool_is_filled_with_is_judged_by_samples() {
        let stream = Stream::reading("main", Vec::new());
        let finding = |content| repeating_pool(&stream, "pool.bin", &content);
        assert_eq!(finding(content(0, 0, 0)), None);
        assert_eq!(finding(content(10, 0, 5)), None, "as in any data");
        let finding = finding(content(100, 0, 0)).unwrap();
        assert!(finding.evidence.contains("pool.bin, of which 128 blocks"), "{finding:?}");
        assert_eq!(finding.severity, Severity::Suspect);
    }

    #[test]
    fn files_full_of_zeros_or_of_one_block_are_suspect() {
        let mut invented = Invented::reads();
        for (found, words) in [
            (content(128, 0, 0), "128 are nothing but zeros."),
            (content(0, 128, 0), "128 are one short pattern over and over."),
            (content(0, 0, 128), "128 equal others."),
            (content(20, 0, 12), "20 are nothing but zeros, 12 equal others."),
        ] {
            invented.target().content = Some(found);
            let finding = invented.has("repeating-content", Severity::Suspect);
            assert!(finding.evidence.ends_with(words), "{}", finding.evidence);
        }
        // A tenth is normal for any data. A region that is only written is not read.
        invented.target().content = Some(content(13, 0, 0));
        invented.has_none_of(&["repeating-content"]);
        let mut writes = Invented::writes();
        writes.target().content = Some(content(128, 0, 0));
        writes.has_none_of(&["repeating-content"]);
    }

    #[test]
    fn zeros_in_holes_are_unwritten_reads_and_nothing_else() {
        let mut invented = Invented::reads();
        let gib = |count: u64| Bytes(count << 30);
        let half = Extents { written: gib(50), holes: gib(50), count: 2, ..Extents::default() };
        invented.target().extents = Some(half);
        invented.target().content = Some(content(70, 0, 0));
        invented.has_none_of(&["repeating-content"]);
        // More zeros than the holes account for.
        invented.target().content = Some(content(120, 0, 0));
        let finding = invented.has("repeating-content", Severity::Suspect);
        assert!(finding.evidence.contains("56 are nothing but zeros"), "{}", finding.evidence);
    }

    #[test]
    fn what_was_not_looked_at_is_unchecked_and_what_compresses_is_told() {
        let mut invented = Invented::reads();
        invented.target().content = None;
        invented.is_unchecked("repeating-content");
        invented.target().content = Some(Content { compressible: 0.4, ..content(0, 0, 0) });
        invented.has("repeating-content", Severity::Note);
    }

    #[test]
    fn the_lower_end_of_a_proportion_is_wilsons() {
        // Newcombe (1998), table II: 81 of 263 and 15 of 148.
        assert!((surely(81, 263) - 0.2553).abs() < 1e-4);
        assert!((surely(15, 148) - 0.0624).abs() < 1e-4);
        assert_eq!(surely(0, 128), 0.0);
        assert_eq!(surely(0, 0), 0.0);
    }
}
