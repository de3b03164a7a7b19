//! A run that is too long to keep the distribution of every interval. It is written piece by piece,
//! read back, and shown with its shortest stall.

use fathom_core::measure::{Histogram, Interval, Record, Series, Stretch};
use fathom_core::spec::{BackendKind, Kind, Pacing, Point, Region, Stream};
use fathom_core::trial::{Place, Trial};
use fathom_core::verdict::Judgement;
use fathom_core::{Bytes, Span, stats};
use fathom_report::document::{self, DistributionForm, Document, Line};
use fathom_report::terminal::{self, Style};
use fathom_report::{csv, html};

/// Seconds of the run: a little more than three hours.
const SECONDS: u64 = 10_900;
/// The second in which the first stream did nothing.
const STALL: u64 = 7_321;
/// A time in the second after the stall. All other times are far below it.
const SLOW: u64 = 1_900_000_000;

fn stream(name: &str) -> Stream {
    Stream {
        ios: Kind { read_share: 0.5, ..Kind::default() }.into(),
        pacing: Pacing::closed(4),
        ..Stream::reading(
            name.to_owned(),
            Vec::from([Region { target: 0, offset: Bytes(0), length: Bytes(1 << 30) }]),
        )
    }
}

/// The I/Os of a stream in a second. The first stream reads and writes, and the second one only
/// reads.
fn second(stream: u32, start: u64) -> Stretch {
    let mut times = [Histogram::default(), Histogram::default()];
    if stream == 1 || start != STALL {
        for number in 0..20 {
            let direction = if stream == 0 { number % 2 } else { 0 };
            times[direction].record(80_000 + 1_000 * number as u64 + start % 97);
        }
    }
    if start == STALL + 1 {
        times[0].record(SLOW);
    }
    Stretch {
        stream,
        start: Span::from_secs(start),
        length: Span::from_secs(1),
        failed: u64::from(stream == 1 && start == 5_000),
        bytes: [0, 1].map(|index| Bytes(4096 * times[index].count())),
        response_time: times.map(|times| times.to_sparse()),
        lag: None,
    }
}

fn long() -> Trial {
    let mut series = Series::new(Span::from_secs(1));
    (0..SECONDS).for_each(|start| [0, 1].into_iter().for_each(|of| series.add(second(of, start))));
    let (series, stretches) = series.finish();
    let window = Span::from_secs(SECONDS);
    let point = Point {
        name: "a long run".to_owned(),
        interval: Span::from_secs(1),
        ..Point::of(Vec::from([stream("both"), stream("reads")]), window)
    };
    Trial {
        point,
        place: Place::default(),
        backend: BackendKind::Uring,
        backend_reason: "it was asked for".to_owned(),
        started_unix_ns: 0,
        record: Record {
            window,
            interrupted: false,
            ended_early: false,
            workers: Vec::new(),
            series,
            stretches,
            buckets: None,
        },
        counters: None,
        traced: None,
        breakdown: None,
        hosts: Vec::new(),
        is_void: false,
        doubt: None,
    }
}

fn judgement() -> Judgement {
    Judgement { findings: Vec::new(), unchecked: Vec::new() }
}

/// The first line of a stored result with one target.
fn header() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/empty.jsonl");
    std::fs::read(path).unwrap()
}

/// A document of one trial as a file.
fn file(document: &Document) -> Vec<u8> {
    let trial = Line::Trial(Box::new(document.trials[0].clone())).to_json();
    [header(), trial.into_bytes(), Vec::from(b"\n")].concat()
}

/// The result file of the run.
fn bytes(trial: &Trial) -> Vec<u8> {
    let mut bytes = header();
    document::write_trial(&mut bytes, trial, &judgement(), DistributionForm::Pairs).unwrap();
    bytes.push(b'\n');
    bytes
}

fn written() -> (Trial, Document) {
    let trial = long();
    let document = document::read(&bytes(&trial)).unwrap();
    (trial, document)
}

#[test]
fn what_is_written_piece_by_piece_is_the_whole_line() {
    let trial = long();
    let whole = Line::Trial(Box::new(document::Trial::new(&trial, &judgement()))).to_json();
    let bytes = bytes(&trial);
    let second = bytes.split(|&byte| byte == b'\n').nth(1).unwrap();
    assert!(second == whole.as_bytes());
    // The same holds for a run that keeps the distributions of each interval.
    let mut short = trial;
    short.record.series = short.record.stretches.iter().map(Stretch::interval).collect();
    let whole = document::Trial::new(&short, &judgement());
    assert!(whole.intervals.is_empty());
    let mut pieces = Vec::new();
    document::write_trial(&mut pieces, &short, &judgement(), DistributionForm::Pairs).unwrap();
    assert!(pieces == Line::Trial(Box::new(whole)).to_json().as_bytes());
}

#[test]
fn every_interval_and_every_distribution_is_read_back() {
    let (trial, document) = written();
    let read = &document.trials[0];
    let mut intervals: Vec<Interval> = read.intervals().collect();
    intervals.sort_by_key(|interval| (interval.start, interval.stream));
    assert!(intervals == trial.record.series);
    assert!(read.stretches() == trial.record.stretches);
    assert!(read.series.len() < 2 * 600 && intervals.len() == 2 * SECONDS as usize);
    assert!(file(&document) == bytes(&trial));
}

#[test]
fn the_figures_are_over_the_intervals_that_were_asked_for() {
    let (trial, document) = written();
    let slices = stats::slices(&trial.record.series);
    assert_eq!(slices.len() as u64, SECONDS);
    let iops = stats::iops_series(&slices, None);
    let deviation = fathom_report::figures::iops_deviation(&document.trials[0], None);
    assert_eq!(deviation, stats::standard_deviation(&iops));
    assert!(deviation.unwrap() > 0.0);
}

#[test]
fn a_stall_of_a_second_in_hours_shows_in_the_chart() {
    let (_, document) = written();
    let page = html::document_without_library(&document);
    let figures = page.split("id=\"figures\">").nth(1).unwrap().split("</script>").next().unwrap();
    let figures: serde_json::Value = serde_json::from_str(figures).unwrap();
    let line = |figure: &str, name: &str| -> Vec<f64> {
        let of = |list: &serde_json::Value, key: &str, value: &str| {
            list.as_array().unwrap().iter().find(|one| one[key] == value).unwrap().clone()
        };
        let line = of(&of(&figures, "id", figure)["data"], "name", name);
        line["y"].as_array().unwrap().iter().map(|y| y.as_f64().unwrap()).collect()
    };
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    // 20 of 40 I/Os per second are missing, those of one stream. The mean of a point hides it.
    assert!(least(&line("chart-rates-1", "total")) > 39.0);
    assert_eq!(least(&line("chart-rates-1", "lowest interval")), 20.0);
    assert_eq!(most(&line("chart-rates-1", "highest interval")), 42.0);
    assert_eq!(most(&line("chart-times-1", "max")), SLOW as f64 / 1e6);
    assert!(most(&line("chart-times-1", "p99")) < 1.0);
    assert!(line("chart-rates-1", "total").len() <= 120);
}

#[test]
fn every_renderer_shows_it() {
    let (_, document) = written();
    assert!(
        terminal::document(&document, fathom_report::page::Level::Full, &Style::default())
            .contains("a long run")
    );
    assert!(csv::document(&document).lines().count() > 1);
}

#[test]
fn a_row_that_contradicts_itself_is_refused() {
    let (_, document) = written();
    let spoil: [fn(&mut document::IntervalRow); 7] = [
        |row| row.count += 1,
        |row| row.count = 0,
        |row| row.failed = Vec::from([1]),
        |row| row.stream = 2,
        |row| row.length_ns = u64::MAX / 2,
        |row| row.read.as_mut().unwrap().max_ns.clear(),
        |row| row.read.as_mut().unwrap().ios[0] = u64::MAX,
    ];
    for (place, spoil) in spoil.into_iter().enumerate() {
        let mut spoiled = document.clone();
        spoil(&mut spoiled.trials[0].intervals[0]);
        match document::read(&file(&spoiled)) {
            Err(document::ReadError::Damaged { line: 2, column: None, .. }) => {}
            other => panic!("{place}: {:?}", other.map(|_| ())),
        }
    }
    // More values than fit into memory, and more than a row has, from a few bytes.
    for count in [1 << 40, 4097] {
        let mut endless = document.clone();
        let row = document::IntervalRow { count, length_ns: 1, ..document::IntervalRow::default() };
        endless.trials[0].intervals = Vec::from([row]);
        assert!(document::read(&file(&endless)).is_err(), "{count}");
    }
}
