//! Runs `fathom ab` from its command line to its answer: on simulated devices whose difference follows
//! from their parameters, with commands before the trials, and after a kill.

mod common;

use common::{Place, assert_has, code, read, stderr, stdout};
use fathom_report::document::{AbFound, Document, Ended, Found, SideAnswer};

/// Devices whose runs scatter by 1 %. The second has a tenth less bandwidth.
const FAST: &str = "sim:table,points=1:200MB/s+64:200MB/s,run-noise=1%";
const SLOW: &str = "sim:table,points=1:180MB/s+64:180MB/s,run-noise=1%";
const LOAD: [&str; 9] =
    ["-q", "4", "-d", "500ms", "--warm-up=0s", "--seed", "5", "--out", "result.jsonl"];

fn found(document: &Document) -> &AbFound {
    let conclusion = document.conclusion.as_ref().unwrap();
    let Some(Found::Ab(found)) = &conclusion.found else { panic!("{conclusion:?}") };
    found
}

/// Runs it to its end.
fn compared(place: &Place, words: &[&str]) -> (Document, String) {
    let output = place.run(&[&["ab"][..], words, &LOAD].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    (read(&place.join("result.jsonl")), stdout(&output))
}

/// The sides of the trials, in their order.
fn sides(document: &Document) -> String {
    document.trials.iter().map(|trial| trial.place.coordinates[0].label.as_str()).collect()
}

#[test]
fn a_tenth_less_bandwidth_is_found_and_ends_it_early() {
    let place = Place::in_memory();
    let (document, said) = compared(&place, &[FAST, SLOW, "--repeats", "20"]);
    let found = found(&document);
    let trials = document.trials.len();
    assert!(found.ended_early && trials < 40 && trials == 2 * found.pairs as usize, "{trials}");
    assert!("ABBA".repeat(10).starts_with(&sides(&document)), "{}", sides(&document));
    let iops = &found.figures[0];
    assert_eq!((iops.figure.as_str(), iops.answer), ("iops", SideAnswer::Worse));
    let ratio = iops.ratio.unwrap();
    assert!(ratio.low < 0.9 && 0.9 < ratio.high, "{ratio:?}");
    // The figures are those of all trials of a side together.
    let of = |label: &str| {
        let own = document.trials.iter().filter(|one| one.place.coordinates[0].label == label);
        let (ios, seconds) = own.fold((0, 0.0), |(ios, seconds), one| {
            (ios + one.total(None).ios(), seconds + one.window().as_secs_f64())
        });
        ios as f64 / seconds
    };
    assert!((iops.a.unwrap() - of("A")).abs() < 1e-6 && (iops.b.unwrap() - of("B")).abs() < 1e-6);
    let last = said.lines().rev().take(4).collect::<Vec<_>>().join("\n");
    assert_has(&last, &["B is slower than A: IOPS "]);
    assert_has(&said, &["answer", "slower", "of 20 at most, because every figure was decided"]);
    // What can be read can be shown.
    for form in [
        &["--details"][..],
        &["--html", "page.html"],
        &["--markdown", "page.md"],
        &["--csv", "table.csv"],
        &["--svg", "image.svg"],
        &["--summary"],
    ] {
        let shown = place.run(&[&["report", "result.jsonl"], form].concat());
        assert_eq!(code(&shown), 0, "{form:?}: {}", stderr(&shown));
    }
    let page = std::fs::read_to_string(place.join("page.html")).unwrap();
    assert_has(&page, &["B/A of each pair", "Distribution of the service time on both sides"]);
    let names = place.names();
    let images = ["image-ratios.svg", "image-distributions.svg"];
    assert!(images.iter().all(|name| names.iter().any(|one| one == name)), "{names:?}");
}

#[test]
fn the_same_device_twice_is_no_difference_and_a_few_trials_that_scatter_are_undecided() {
    let place = Place::in_memory();
    let (document, said) = compared(&place, &["sim:ssd", "sim:ssd"]);
    assert_has(&said, &["There is no difference beyond 5 % between A and B: IOPS "]);
    assert!(found(&document).figures.iter().all(|one| one.answer == SideAnswer::Same));

    let place = Place::in_memory();
    let noisy = "sim:table,points=1:200MB/s+64:200MB/s,run-noise=20%";
    let (document, said) = compared(&place, &[noisy, noisy, "--repeats", "3"]);
    let found = found(&document);
    assert_eq!((document.trials.len(), found.ended_early), (6, false));
    assert!(found.figures.iter().all(|one| one.answer == SideAnswer::Undecided));
    assert_has(&said, &["Undecided: B against A: IOPS ", "pairs would "]);
    let last = said.lines().rev().take(3).collect::<Vec<_>>().join("\n");
    assert!(!last.contains("sound"), "an answer that is open is not praised:\n{last}");
}

#[test]
fn a_side_in_quotes_has_options_of_its_own_and_the_answer_says_so() {
    let place = Place::in_memory();
    let a = "sim:queue,servers=8 -q 4";
    let (document, said) = compared_without_depth(&place, &[a, "sim:queue,servers=8 -q 8 -b 8k"]);
    let depths = document.trials[..2].iter().map(|one| one.point.streams[0].pacing.queue_depth());
    assert_eq!(depths.collect::<Vec<u32>>(), [4, 8]);
    let found = found(&document);
    let differs = ["block-size not given in A, 8k in B", "queue-depth 4 in A, 8 in B"];
    let mut told = found.differs.clone();
    told.sort();
    assert_eq!(told, differs);
    // Blocks of different sizes are compared by their bytes: four times as many.
    assert_eq!(found.figures[0].figure, "bandwidth");
    assert!((found.figures[0].ratio.unwrap().value - 4.0).abs() < 0.01);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_has(&said, &["Their options differ: ", "bandwidth 4.00 times as high"]);
}

fn compared_without_depth(place: &Place, words: &[&str]) -> (Document, String) {
    let output = place.run(&[&["ab"][..], words, &LOAD[2..]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    (read(&place.join("result.jsonl")), stdout(&output))
}

const BEFORE: [&str; 4] =
    ["--before-a", "echo A >> order; echo noise", "--before-b", "echo B >> order"];

fn order(place: &Place) -> String {
    std::fs::read_to_string(place.join("order")).unwrap_or_default().replace('\n', "")
}

#[test]
fn a_command_runs_before_each_trial_of_its_side() {
    let place = Place::in_memory();
    let words = [&["sim:ssd", "--repeats", "3"][..], &BEFORE].concat();
    let (document, said) = compared(&place, &words);
    assert_eq!(order(&place), sides(&document));
    assert_eq!(order(&place), "ABBAAB");
    assert_has(&said, &["before   each trial of A: sh -c 'echo A >> order; echo noise'"]);
    assert!(!said.contains("\nnoise"), "what a command says stays off the screen:\n{said}");
    assert_eq!(document.header.targets.len(), 1);
    let side = &found(&document).sides[1];
    assert_eq!(side, "sim:ssd after 'echo B >> order'");
}

#[test]
fn a_command_that_fails_ends_it_and_is_named() {
    let place = Place::in_memory();
    let fails = "echo B >> order; echo first; echo 'no such scheduler' >&2; exit 7";
    let words = ["ab", "sim:ssd", "--before-b", fails];
    let output = place.run(&[&words[..], &LOAD].concat());
    assert_eq!(code(&output), 3);
    let told = stderr(&output);
    assert_has(&told, &["--before-b '", "exit status 7", "its last line was: no such scheduler"]);
    let document = read(&place.join("result.jsonl"));
    assert_eq!((document.trials.len(), order(&place).as_str()), (1, "B"));
    let conclusion = document.conclusion.unwrap();
    assert_eq!(conclusion.ended, Ended::Failed);
    assert_has(&conclusion.sentences[0], &["exit status 7"]);
}

#[test]
fn a_comparison_that_was_killed_goes_on_where_it_was() {
    let (whole, cut) = (Place::in_memory(), Place::in_memory());
    let words = [&["sim:ssd", "--repeats", "3"][..], &BEFORE].concat();
    let (document, _) = compared(&whole, &words);
    compared(&cut, &words);
    let path = cut.join("result.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    // The header, three trials, and a part of the fourth.
    let lines: Vec<&str> = text.lines().collect();
    let torn = format!("{}\n{}", lines[..4].join("\n"), &lines[4][..100]);
    std::fs::write(&path, torn).unwrap();
    std::fs::remove_file(cut.join("order")).unwrap();

    // A result file has no command run.
    let refused = cut.run(&["resume", "result.jsonl"]);
    assert_eq!(code(&refused), 2, "{}", stderr(&refused));
    assert_has(
        &stderr(&refused),
        &["--before-a", "fathom runs no command from a result file", "add --before-a"],
    );
    let other = ["--before-a", "echo X >> order", "--before-b", BEFORE[3]];
    let refused = cut.run(&[&["resume", "result.jsonl"][..], &other].concat());
    assert_eq!((code(&refused), order(&cut).as_str()), (2, ""));

    let output = cut.run(&[&["resume", "result.jsonl"][..], &BEFORE].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(order(&cut), "AAB", "only what was left to do");
    let resumed = read(&path);
    let workers = |document: &Document| {
        document.trials.iter().map(|one| one.workers.clone()).collect::<Vec<_>>()
    };
    assert!(workers(&resumed) == workers(&document));
    assert_eq!(found(&resumed), found(&document));
}

#[test]
fn a_plan_names_everything_and_does_nothing() {
    let place = Place::with_stand_ins(&[("other.dat", 16)]);
    let words = ["ab", "test.dat", "other.dat", "--read-share=0%", "--plan"];
    let output = place.run(&[&words[..], &BEFORE, &["--overwrite"]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let said = stdout(&output);
    let parts = [
        "A        test.dat: random write 4 KiB",
        "B        other.dat: random write 4 KiB",
        "before   each trial of B: sh -c 'echo B >> order'",
        "OVERWRITES other.dat, test.dat: ",
        "20 points",
    ];
    assert_has(&said, &parts);
    assert_eq!(order(&place), "");
    let refused = place.run(&words);
    assert_eq!(code(&refused), 3);
    assert_has(&stderr(&refused), &["--overwrite"]);
    let data = std::fs::read(place.join("other.dat")).unwrap();
    assert!(data.iter().all(|byte| *byte == 0));
}

#[test]
fn what_is_no_comparison_is_refused() {
    let place = Place::in_memory();
    for (words, part) in [
        (&["sim:ssd"][..], "it is the only side, and nothing differs"),
        (&["--repeats", "3"], "there is none"),
        (&["sim:ssd", "sim:hdd", "sim:queue"], "it is a third side"),
        (&["sim:ssd -q '4", "sim:ssd"], "its quotes do not match"),
        (&["sim:ssd sim:hdd", "sim:ssd"], "it names 2 targets"),
        (&["sim:ssd --overwrite", "sim:ssd"], "--overwrite is no option of the load"),
        (&["sim:ssd --nothing", "sim:ssd"], "--nothing"),
        (&["sim:ssd", "sim:ssd", "--margin", "0%"], "no two figures are exactly alike"),
        (&["sim:ssd", "sim:ssd", "--repeats", "1"], "--repeats"),
        (&["sim:ssd", "sim:ssd -q 0"], "-q"),
    ] {
        let output = place.run(&[&["ab"], words].concat());
        assert_eq!(code(&output), 2, "{words:?}: {}", stderr(&output));
        assert_has(&stderr(&output), &[part]);
    }
    assert_eq!(place.names(), Vec::<String>::new());
}
