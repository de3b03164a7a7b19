//! Runs `fathom study` on the simulated devices of the studies, in virtual time. Each preset
//! reaches the published result.

mod common;

use std::collections::BTreeMap;

use common::{Place, assert_has, code, stderr, stdout};
use fathom_core::Quantile;
use fathom_core::measure::Direction;
use fathom_core::spec::Stream;
use fathom_report::document::{Document, Ended, Found, Role, Trial, Verdict};

/// Published figures, from a table with a header line.
fn published(name: &str) -> Vec<BTreeMap<String, String>> {
    let path = format!("{}/../../tests/data/studies/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        let cells = names.iter().zip(line.split(','));
        cells.map(|(name, cell)| ((*name).to_owned(), cell.to_owned())).collect()
    };
    lines.map(row).collect()
}

fn labels(trial: &Trial) -> Vec<&str> {
    trial.place.coordinates.iter().map(|one| one.label.as_str()).collect()
}

/// Bytes per second over all trials at a place.
fn bandwidth(document: &Document, place: &[&str]) -> f64 {
    let trials = document.trials.iter().filter(|trial| labels(trial) == place);
    let (bytes, seconds) = trials.fold((0.0, 0.0), |(bytes, seconds), trial| {
        (bytes + trial.total(None).bytes.0 as f64, seconds + trial.window().as_secs_f64())
    });
    assert!(seconds > 0.0, "nothing was measured at {place:?}");
    bytes / seconds
}

fn conclusion(document: &Document) -> String {
    let conclusion = document.conclusion.as_ref().unwrap();
    assert_eq!(conclusion.ended, Ended::Completed);
    conclusion.sentences.join("\n")
}

/// The options of the study of concurrent writes on its device, with less to write.
const WRITE_CONCURRENCY: [&str; 9] = [
    "study",
    "write-concurrency",
    "sim:study-write-concurrency",
    "--set",
    "bytes=2g",
    "--rated-bandwidth",
    "800MB/s",
    "--seed",
    "1",
];

#[test]
fn write_concurrency_comes_to_the_published_conclusion() {
    let place = Place::new();
    let output = place.run(&WRITE_CONCURRENCY);
    // Trials with zeros are void, and the result is not: this is its finding.
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stdout(&output), &["of them are void, which this study is there to find"]);
    let document = place.result();
    // 3 block sizes by 9 concurrencies, random data three times and zeros once.
    let of_passes = document.trials.iter().filter(|trial| trial.place.repeat < 3).count();
    assert_eq!(of_passes, 3 * 9 * (3 + 1));
    let said = conclusion(&document);
    assert_has(
        &said,
        &[
            "256k blocks: 8 writers saturate",
            "1m blocks: 2 writers saturate",
            "12.8MB blocks: 2 writers saturate",
            "than the 763 MiB/s (800 MB/s) that the target is rated at",
            "on average over 9 pairs of trials at block-size 12.8MB: the target, or something on",
            "Zeros are written 1.",
        ],
    );
    let names = BTreeMap::from([("12.8MiB", "12.8MB"), ("1MB", "1m"), ("256KB", "256k")]);
    for row in published("write-concurrency.csv") {
        let block = names[row["block"].as_str()];
        let payload = if row["payload"] == "zero" { "zeros" } else { "random" };
        let here = bandwidth(&document, &[payload, block, row["concurrency"].as_str()]) / 1e6;
        let there: f64 = row["published_mib_per_s"].parse().unwrap();
        // Published repeats of one point have the same spread.
        assert!((here / there - 1.0).abs() < 0.06, "{row:?}: {here}");
    }
}

#[test]
fn write_concurrency_by_threads_names_them_and_says_what_it_cannot_tell_without_zeros() {
    let own = ["--set", "bytes=500m", "--axis", "workers=1..8*2"];
    let target = ["sim:study-write-concurrency"];
    let more = [&own[..], &RANDOM, &["--details"]].concat();
    let (document, text) = studied("write-concurrency", &target, &more);
    assert_eq!(document.trials.iter().filter(|trial| trial.place.repeat < 3).count(), 3 * 4 * 3);
    let said = conclusion(&document);
    let curve = said.lines().find(|line| line.starts_with("256k blocks: ")).unwrap();
    assert_has(curve, &["8 writers"]);
    // The highest published figures at up to 8 writers are 937, 824 and 702 MB/s. Little is written
    // here.
    assert_has(
        &said,
        &[
            "Blocks of 12.8MB reach the most: 8",
            " MB/s); 1m 9",
            ", 256k 7",
            "Whether the target compresses is unknown: only random data was written.",
        ],
    );
    // With the details there is one line per trial, in their order, and each line names the workers.
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("completed a write")).collect();
    assert_eq!(lines.len(), document.trials.len(), "{text}");
    for (nth, (line, trial)) in lines.iter().zip(&document.trials).enumerate() {
        let [payload, block, each, workers] = labels(trial)[..] else { panic!("{trial:?}") };
        let s = if workers == "1" { "" } else { "s" };
        let place = format!("- {}: {payload}, {block}, {each}, {workers} worker{s}: ", nth + 1);
        assert!(line.starts_with(&place), "{line} for {place}");
    }
    // With several I/Os in flight per thread, there is one curve for each number of threads.
    let depths = ["--axis", "queue-depth=1/worker,8/worker,16/worker"];
    let blocks = ["--axis", "block-size=64k,192k"];
    let own = [&own[..2], &["--axis", "workers=2,4"], &depths, &blocks, &RANDOM].concat();
    let (document, _) = studied("write-concurrency", &["sim:array,level=raid5,disks=4"], &own);
    let said = conclusion(&document);
    assert_has(&said, &["64k blocks, workers 2: ", "192k blocks, workers 4: "]);
    assert_has(
        &said,
        &["Blocks of 192k reach the most", "in full stripes of 192 KiB they are 1.00 and"],
    );
}

/// Without zeros.
const RANDOM: [&str; 2] = ["--axis", "payload=random"];

#[test]
fn what_is_faster_than_it_can_be_is_doubted_with_the_figures() {
    let place = Place::new();
    let output = place.run(&WRITE_CONCURRENCY);
    let document = place.result();
    let at = |wanted: &[&str]| {
        let trial = document.trials.iter().find(|trial| labels(trial) == wanted).unwrap();
        let codes = trial.findings.iter().map(|finding| finding.code.as_str());
        (trial.verdict, codes.filter(|code| code.contains("faster")).collect::<Vec<_>>())
    };
    assert_eq!(at(&["random", "12.8MB", "1"]).1, [""; 0]);
    let (verdict, codes) = at(&["random", "12.8MB", "8"]);
    assert_eq!((verdict, codes), (Verdict::Suspect, Vec::from(["faster-than-rated"])));
    // Each run with zeros is next to one with random data at the same settings. Those that are saved
    // are void, whenever they ran.
    let is_zeros = |trial: &Trial| labels(trial)[0] == "zeros";
    let codes = |trial: &Trial| {
        trial.findings.iter().any(|finding| finding.code == "repeating-data-faster")
    };
    for (at, trial) in document.trials.iter().enumerate().filter(|(_, trial)| is_zeros(trial)) {
        let near = &document.trials[at.saturating_sub(1)..(at + 2).min(document.trials.len())];
        let same = |other: &&Trial| !is_zeros(other) && labels(other)[1..] == labels(trial)[1..];
        assert!(near.iter().any(|other| same(&other)), "{at}");
        let is_saved = labels(trial)[1] == "12.8MB";
        assert_eq!((codes(trial), trial.verdict == Verdict::Void), (is_saved, is_saved), "{at}");
    }
    // The file has the finding where it was known, and readers give it to the trials before that.
    let names = place.names();
    let file = names.iter().find(|name| name.ends_with(".jsonl")).unwrap();
    let written = std::fs::read_to_string(place.join(file)).unwrap();
    let known = written.matches(r#""code":"repeating-data-faster""#).count();
    assert!((1..9).contains(&known), "{known}");
    // All points with these zeros are void, and the terminal has no room for 108 runs.
    assert_has(&stdout(&output), &["; 9 of them are void, which this study is there to find"]);
    let Some(Found::Sweep(found)) = document.conclusion.unwrap().found else { panic!("a sweep") };
    assert_eq!(found.saved.len(), 9);
    assert!(found.saved.iter().all(|one| one[..2] == ["zeros", "12.8MB"]), "{:?}", found.saved);
    assert!(!stdout(&output).contains("completed a write of"));
    let said = unfolded(&stdout(&output));
    assert_has(
        &said,
        &[
            "saturated (90 % of the best) by 8 writers (queue-depth 8) with blocks of 256k, by 2 with 1m",
        ],
    );
    let runs = stdout(&place.run(&["report", file, "--details"]));
    let line =
        "random, 12.8MB, 1: completed a write of 2150400000 bytes after 3.81 seconds for 538";
    assert_eq!(runs.matches("completed a write of").count(), 108, "{runs}");
    assert_has(&runs, &[line]);
}

#[test]
fn a_study_that_was_interrupted_goes_on_and_says_the_same() {
    let place = Place::new();
    let whole = place.run(&[&WRITE_CONCURRENCY[..], &["--out", "whole.jsonl"]].concat());
    assert_eq!(code(&whole), 0, "{}", stderr(&whole));
    let text = std::fs::read_to_string(place.join("whole.jsonl")).unwrap();
    let begun: Vec<&str> = text.lines().take(1 + 90).collect();
    std::fs::write(place.join("begun.jsonl"), format!("{}\n", begun.join("\n"))).unwrap();
    let output = place.run(&["resume", "begun.jsonl"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let [whole, resumed] = ["whole.jsonl", "begun.jsonl"].map(|one| common::read(&place.join(one)));
    assert_eq!(conclusion(&whole), conclusion(&resumed));
    assert_eq!(whole.trials.len(), resumed.trials.len());
}

/// Runs a study of these targets, with more arguments.
fn studied(name: &str, targets: &[&str], more: &[&str]) -> (Document, String) {
    let place = Place::new();
    let output = place.run(&[&["study", name][..], targets, more, &["--seed", "1"]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    (place.result(), stdout(&output))
}

/// The text on one line, without the terminal's line breaks.
fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn multi_stream_comes_to_what_each_level_can_do() {
    let array = |level: &str| format!("sim:array,level={level},disks=4");
    let [raid0, raid5, raid6, raid10] = ["raid0", "raid5", "raid6", "raid10"].map(array);
    let [raid1, single] = ["sim:array,level=raid1,disks=2", "sim:array,disks=1"];
    let targets = [single, &raid0, raid1, &raid5, &raid6, &raid10];
    let short = ["--duration", "300ms", "--warm-up", "100ms", "--axis", "workers=1,4"];
    let depths = ["--axis", "queue-depth=1/worker,8/worker"];
    let (document, text) = studied("multi-stream", &targets, &[&short[..], &depths].concat());
    assert_eq!(document.trials.len(), 6 * 2 * 2 * 2 * 3);
    let said = conclusion(&document);
    // Blocks of 64 KiB are one chunk. Reads use every disk; writes use what the level leaves.
    let times = |target: &str, verb: &str| -> f64 {
        let sentence = said.lines().find(|line| line.starts_with(&format!("{target} ("))).unwrap();
        let after = sentence.split(verb).nth(1).unwrap();
        let times = after.split(" times ").next().unwrap();
        times.rsplit(' ').next().unwrap().parse().unwrap()
    };
    for (target, reads, writes) in [
        (raid0.as_str(), 4.0, 4.0),
        (raid1, 2.0, 1.0),
        (&raid5, 4.0, 1.0),
        (&raid6, 4.0, 0.67),
        (&raid10, 4.0, 2.0),
    ] {
        let [r, w] = ["reads", "writes"].map(|verb| times(target, verb));
        assert!((r / reads - 1.0).abs() < 0.35, "{target} reads {r}: {said}");
        assert!((w / writes - 1.0).abs() < 0.35, "{target} writes {w}: {said}");
    }
    let text = unfolded(&text);
    assert_has(
        &text,
        &[
            "md array sim (raid5, 4 disks, chunk 64 KiB, full stripe 192 KiB)",
            "md array sim (raid1, 2 disks)",
            "MiB/s, targets sim:array,level=raid10,disks=4, read-share 0%",
            "workers \\ queue-depth",
            "writes fastest",
        ],
    );
    assert_has(&said, &["sim:array,disks=1 (single disk): reads", "full stripe 128 KiB): reads"]);
}

#[test]
fn multi_stream_tells_what_threads_with_one_request_each_do_to_disks_that_turn() {
    let short = ["--duration", "500ms", "--warm-up", "500ms", "--axis", "workers=1,2,4"];
    let depths = ["--axis", "queue-depth=1/worker,4/worker"];
    let targets = ["sim:array,disks=1,disk=hdd", "sim:array,level=raid1,disks=2,disk=hdd"];
    let (document, _) = studied("multi-stream", &targets, &[&short[..], &depths].concat());
    let said = conclusion(&document);
    let line = |start: String| said.lines().find(|line| line.starts_with(&start)).unwrap();
    let [disk, mirror] = targets;
    let one = line(format!("{disk}, reads with one request each: 1 worker 14"));
    assert_has(one, &["; 2 workers ", "; 4 workers ", "; the second worker costs 9"]);
    // On the mirror, two streams use a disk each. The single disk is shared by both, so it seeks.
    let two = line(format!("{mirror}, reads with one request each, in multiples of {disk}: 1 wor"));
    assert_has(two, &["MiB/s, 1.0 times", "; two reach 2.0 times what one does"]);
    let beside = line(format!("{mirror}, writes beside reads: 5"));
    assert_has(beside, &["% of them"]);
    // Of points that were measured once, a sentence says once what it cannot tell.
    let once = [&short[..], &depths, &["--repeats", "1"]].concat();
    let (document, _) = studied("multi-stream", &targets, &once);
    let said = conclusion(&document);
    let line = said.lines().find(|line| line.starts_with(&format!("{mirror}, reads with one")));
    let unknown = format!("; the ratios to {disk} are unknown; ");
    assert_has(line.unwrap(), &[&unknown]);
    assert_eq!(line.unwrap().matches("the ratio").count(), 1);
}

#[test]
fn multi_stream_takes_ten_arrays() {
    let targets: Vec<String> = (1..=10).map(|disks| format!("sim:array,disks={disks}")).collect();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let short = ["--duration", "100ms", "--warm-up", "50ms", "--axis", "workers=1"];
    let depths = ["--axis", "queue-depth=1/worker,32/worker"];
    let (document, text) = studied("multi-stream", &targets, &[&short[..], &depths].concat());
    let said = conclusion(&document);
    for disks in 2..=10 {
        let line =
            said.lines().find(|line| line.starts_with(&format!("sim:array,disks={disks} (")));
        let times = format!(", {disks}.0 times sim:array,disks=1");
        assert_eq!(line.unwrap().matches(&times).count(), 2, "{line:?}");
        assert_has(&text, &[&format!("MiB/s, targets sim:array,disks={disks}\n")]);
    }
    assert_has(&said, &["sim:array,disks=10 reads fastest"]);
}

#[test]
fn access_mix_comes_to_the_published_figures_and_order() {
    let drives = [("SAS", "sas"), ("SATA II", "sata2"), ("SATA I", "sata1"), ("SCSI", "scsi")];
    let target = |word: &str| format!("sim:study-access-mix,drive={word}");
    let targets = drives.map(|(_, word)| target(word));
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let (document, text) = studied("access-mix", &targets, &[]);
    // Three trials of each point. A point that falls out of its curve is measured again.
    let of_passes = document.trials.iter().filter(|trial| trial.place.repeat < 3).count();
    assert_eq!(of_passes, 4 * 2 * 4 * 3 * 3);
    let mixes = BTreeMap::from([
        ("100", "sequential"),
        ("95", "mixed:5%"),
        ("80", "mixed:20%"),
        ("0", "random"),
    ]);
    let [mut rows, mut drops] = [0, 0];
    for row in published("access-mix.csv") {
        rows += 1;
        let share = if row["direction"] == "read" { "100%" } else { "0%" };
        let (_, word) = drives.iter().find(|(name, _)| row["drive"] == *name).unwrap();
        let mix = mixes[row["sequential_percent"].as_str()];
        for depth in 1..=3 {
            let depth_label = format!("{depth}/disk");
            let place = [&target(word), share, mix, &depth_label];
            let here = bandwidth(&document, &place) / 1e6;
            let there: f64 = row[&format!("dql{depth}")].parse().unwrap();
            assert!((here / there - 1.0).abs() < 0.05, "{place:?}: {here} for {there}");
        }
    }
    // The cost of 5 % of jumps for reads with 36 in flight, in percent, as published in words.
    for (word, there) in [("sas", 34.0), ("sata1", 48.0), ("sata2", 52.0), ("scsi", 0.0)] {
        let at = |mix: &str| bandwidth(&document, &[&target(word), "100%", mix, "3/disk"]);
        let here = 100.0 * (1.0 - at("mixed:5%") / at("sequential"));
        assert!((here - there).abs() < 2.0, "{word}: {here} for {there}");
        drops += 1;
    }
    assert_eq!((rows, drops), (24, 4));
    let said = conclusion(&document);
    let first = |mix: &str| {
        let line = said.lines().find(|line| line.starts_with(&format!("Writes, {mix}: "))).unwrap();
        line.split(' ').nth(2).unwrap().to_owned()
    };
    let order = ["sequential", "mixed:5%", "mixed:20%", "random"].map(first);
    assert_eq!(order, ["sas", "sata2", "sata2", "sas"], "{said}");
    assert_has(
        &said,
        &["sas, writes: sequential", "requests per disk gain ", "gain next to nothing"],
    );
    // What few read stands below the tables, and a table has what the sentences compare.
    let highest = "MiB/s, the highest over all steps of queue-depth, read-share 100%\n";
    assert_has(&text, &[highest, " more sentences are in `fathom report RESULT --details`."]);
    let rows = text.split(highest).nth(1).unwrap().lines().take(3).map(str::to_owned);
    let rows: Vec<Vec<String>> =
        rows.map(|row| row.split_whitespace().map(str::to_owned).collect()).collect();
    assert_eq!(rows[0][3..], ["sequential", "mixed:5%", "mixed:20%", "random"], "{rows:?}");
    let sas =
        |mix: &str| bandwidth(&document, &[&target("sas"), "100%", mix, "3/disk"]) / 1048576.0;
    assert_eq!(rows[1][1].parse::<f64>().unwrap(), sas("sequential").round(), "{rows:?}");
    // 333 of 540 MB/s; 121 MB/s against 62; and the published statements about all four.
    // The sentences leave out what the names of all targets begin with.
    assert_has(
        &said,
        &[
            "60 % of sequential writes on sas, 52 % and 23 % on sata2, ",
            "sas, writes: sequential 318 ",
            "MiB/s (333 MB/s); mixed:5% costs 60 %",
            "sas, writes beside reads: 38 %",
            "cannot be told apart with ",
            "Writes are at least 20 % below reads with sequential on sas, sata2, sata1 and scsi.",
        ],
    );
    let step = said.lines().find(|line| line.starts_with("sata2, writes: ")).unwrap();
    assert_has(step, &["; from mixed:20% to random another 49 %"]);
    assert_has(&unfolded(&text), &["pattern \\ queue-depth", "md array sim (sata2, 12 disks)"]);
}

/// Windows are short, because each second has a quarter of a million I/Os.
const SHORT: [&str; 6] = ["--warm-up", "100ms", "--duration", "500ms", "--official", "5s"];

#[test]
fn best_practice_comes_to_the_published_iops_and_checks_itself() {
    let (document, text) = studied("best-practice", &["sim:study-best-practice"], &SHORT);
    let role = |role: Role| document.trials.iter().filter(move |one| one.place.role == role);
    let [official] = role(Role::Official).collect::<Vec<_>>()[..] else { panic!("{text}") };
    let iops = official.total(None).ios() as f64 / 5.0;
    // The lowest depth with 95 % of the best. The published IOPS are the best.
    assert!((0.94..1.01).contains(&(iops / 241_862.71)), "{iops}");
    let depths: Vec<f64> =
        role(Role::Probe).filter_map(|one| one.place.coordinates[0].value).collect();
    // One step after the other, starting from one I/O per thread.
    let workers = official.workers.len() as f64;
    let times: Vec<f64> = depths.iter().map(|depth| depth / workers).collect();
    assert_eq!(times[..4], [1.0, 2.0, 3.0, 4.0], "{depths:?}");
    let said = conclusion(&document);
    let asked = ["As DiskSpd's guide asks: ", "200 GiB addressed, at least 40 GB; unique data."];
    assert_has(&said, &asked);
    // The guide asks for five minutes. The study does that too, unless another time is typed.
    assert_has(&said, &["NOT as DiskSpd's guide asks: an official run of 5 s."]);
    let place = Place::new();
    let planned = place.run(&["study", "best-practice", "sim:study-best-practice", "--plan"]);
    assert_has(&stdout(&planned), &["then an official run of 5 min", "up to 40 of 10 s"]);
}

/// As many threads as CPUs that they are bound to, or as requested.
#[test]
fn the_threads_of_best_practice_may_be_tied_to_cpus() {
    let place = Place::new();
    place.prepared("data", 16);
    let study = ["study", "best-practice", "data", "--overwrite", "--yes", "--cpus", "0"];
    let short = ["--warm-up", "0", "--duration", "200ms", "--official", "10s", "--up-to", "2"];
    let plan = |more: &[&str]| {
        let words = [&["study", "best-practice", "data", "--overwrite", "--plan"], more].concat();
        let output = place.run(&words);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        unfolded(&stdout(&output))
    };
    assert_has(&plan(&["--cpus", "0"]), &["DiskSpd's guide, 1 thread tied to 1 of "]);
    assert_has(&plan(&["-w", "3/total"]), &["DiskSpd's guide, 3 threads on "]);
    assert_has(&plan(&["-w", "3/total", "--cpus", "0"]), &["3 threads tied to 1 of "]);
    let output = place.run(&[&study[..], &short].concat());
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let document = place.result();
    for trial in &document.trials {
        assert_eq!((trial.workers.len(), trial.workers[0].pinned_cpu), (1, Some(0)));
    }
    let said = conclusion(&document);
    assert_has(
        &said,
        &["As DiskSpd's guide asks: 1 thread tied to 1 of ", "Its response time: p50 "],
    );
    assert_has(&said, &["of what is read none repeats"]);
    let guide = "a test file of 100 GB on each of 4 to 8 LUNs; here 1 target, 16 MiB in all";
    assert_has(&plan(&[]), &[guide]);
    // Data that repeats itself is reported with the checks.
    std::fs::write(place.join("zeros"), vec![0; 16 << 20]).unwrap();
    let again = ["study", "best-practice", "zeros", "--yes", "--out", "z.jsonl"];
    let output = place.run(&[&again[..], &["--read-share", "100%"], &short].concat());
    assert!([0, 4, 5].contains(&code(&output)), "{}", stderr(&output));
    let said = unfolded(&stdout(&output));
    let (_, not) = said.split_once("NOT as DiskSpd's guide asks: ").expect("something is not");
    assert!(not.contains(" of what is read ") && not.contains(" repeat"), "{said}");
}

#[test]
fn the_device_of_best_practice_has_the_published_response_times() {
    let place = Place::new();
    let load = ["-q", "128", "--read-share", "70%", "--warm-up", "100ms", "--duration", "4s"];
    let output =
        place.run(&[&["run", "sim:study-best-practice", "--seed", "1"][..], &load].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let document = place.result();
    let trial = &document.trials[0];
    let iops = trial.total(None).ios() as f64 / 4.0;
    assert!((iops / 241_862.71 - 1.0).abs() < 0.01, "{iops}");
    let shares = [
        ("25th", 0.25),
        ("50th", 0.5),
        ("75th", 0.75),
        ("90th", 0.9),
        ("95th", 0.95),
        ("99th", 0.99),
    ];
    for row in published("diskspd-example.txt") {
        let name = row["percentile"].as_str();
        let Some((_, share)) = shares.iter().find(|(known, _)| *known == name) else {
            continue;
        };
        for (direction, column) in [(Direction::Read, "read"), (Direction::Write, "write")] {
            let there = row[column].parse::<f64>().unwrap() * 1e6;
            let times = trial.total(Some(direction));
            let here = times.response_time().quantile(Quantile(*share)).unwrap() as f64;
            assert!((here / there - 1.0).abs() < 0.05, "{name} {column}: {here} for {there}");
        }
    }
}

#[test]
fn the_map_has_the_settings_of_diskplorer_unless_others_are_typed() {
    let place = Place::new();
    let planned = place.run(&["study", "latency-map", "sim:grid", "--plan"]);
    assert_eq!(code(&planned), 0, "{}", stderr(&planned));
    assert_has(&stdout(&planned), &["21 x 21 steps", "each 30 s after 5 s"]);
    let typed = ["--grid", "5x5", "--cell-time", "5s", "--ramp", "1s"];
    let (document, text) = studied("latency-map", &["sim:grid"], &typed);
    let settings = &document.header.experiment.as_ref().unwrap().settings;
    assert_eq!(
        (settings["grid"].as_str(), settings["percentiles"].as_str()),
        ("5x5", "0.5,0.95,0.99,0.999")
    );
    let [writer, readers] = document.trials.last().unwrap().point.streams.as_slice() else {
        panic!("{text}")
    };
    let only = |stream: &Stream| stream.block_sizes().only().map(|size| size.0);
    assert_eq!((only(writer), only(readers)), (Some(128 << 10), Some(512)));
    let own = "about = 'x'\n[map]\ngrid = '3x3'\n";
    std::fs::write(place.join("my.toml"), own).unwrap();
    let words = ["study", "latency-map", "--workload", "my.toml", "sim:grid", "--plan"];
    assert_has(&stdout(&place.run(&words)), &["3 x 3 steps"]);
    let refused = place.run(&["run", "latency-map", "sim:grid"]);
    assert_eq!(code(&refused), 2);
    assert_has(&stderr(&refused), &["fathom study latency-map"]);
}

#[test]
fn studies_are_listed_and_their_specs_are_a_start() {
    let place = Place::new();
    let listed = stdout(&place.run(&["study"]));
    let names = ["write-concurrency", "multi-stream", "latency-map", "access-mix", "best-practice"];
    assert_has(&listed, &names);
    assert_has(&listed, &["my.toml"]);
    for name in names {
        let page = format!("{}/../../docs/studies/{name}.md", env!("CARGO_MANIFEST_DIR"));
        assert!(std::path::Path::new(&page).exists(), "{page}");
    }
    let spec = place.run(&["workloads", "write-concurrency"]);
    let own = String::from_utf8(spec.stdout).unwrap().replace("1..256*2", "1,2");
    std::fs::write(place.join("my.toml"), own.replace("\"16g\"", "\"64m\"")).unwrap();
    let words = ["study", "write-concurrency", "my.toml", "sim:ssd", "--plan"];
    let planned = place.run(&words);
    assert_eq!(code(&planned), 0, "{}", stderr(&planned));
    assert_has(&stdout(&planned), &["queue-depth: 1, 2", "24 points"]);
    assert_has(&stderr(&place.run(&["run", "write-concurrency", "x"])), &["fathom sweep"]);
}
