//! A journal is read back as it was written. If its end is missing or it comes from elsewhere, as
//! much of it is read as there is.

mod samples;

use fathom_core::measure::{Direction, Histogram};
use fathom_report::document::{self, Document, Line, ReadError, Trial};
use fathom_report::page::Level;
use fathom_report::summary::summary;
use fathom_report::terminal::{self, Style};
use fathom_report::{csv, html};

/// A small document with three trials and a conclusion.
fn small() -> Document {
    let trial = samples::interrupted().trials.remove(0);
    Document { trials: Vec::from([trial.clone(), trial.clone(), trial]), ..samples::interrupted() }
}

#[test]
fn what_was_written_is_read_back() {
    for document in [samples::empty(), samples::quick(), samples::open(), samples::void(), small()]
    {
        assert!(document::read(&samples::bytes(&document)).unwrap() == document);
    }
    for (name, bytes) in samples::all() {
        let read = document::read(&bytes).unwrap();
        assert_eq!(read.torn, name == "torn");
        assert!(read.torn || samples::bytes(&read) == bytes, "{name}");
    }
}

#[test]
fn a_result_of_a_version_that_did_not_look_at_the_rings_threads_is_read() {
    let bytes = String::from_utf8(samples::bytes(&samples::open())).unwrap();
    let io_wq = r#","io_wq":{"handed_over":812,"threads":2,"cpu_ns":9000000}"#;
    assert!(bytes.contains(io_wq));
    let read = document::read(bytes.replace(io_wq, "").as_bytes()).unwrap();
    let mut expected = samples::open();
    expected.trials[0].counters.as_mut().unwrap().io_wq = None;
    assert!(read == expected);
}

#[test]
fn a_result_from_before_the_ceiling_was_measured_is_read_without_one() {
    let text = String::from_utf8(samples::bytes(&samples::quick())).unwrap();
    let (head, rest) = text.split_once(r#","ceiling":{"#).unwrap();
    let (_, rest) = rest.split_once("}]}").unwrap();
    let document = document::read(format!("{head}{rest}").as_bytes()).unwrap();
    assert_eq!(document.header.host.as_ref().unwrap().ceiling, None);
    assert_eq!(document.trials.len(), samples::quick().trials.len());
    for text in [
        terminal::document(&document, Level::Full, &Style::default()),
        terminal::document(&document, Level::Short, &Style::default()),
        html::document_without_library(&document),
    ] {
        assert!(!text.contains("could have done"), "{text}");
    }
}

#[test]
fn a_generator_that_had_to_share_its_cpus_is_not_said_to_have_done_more() {
    let mut document = samples::quick();
    let told = |document: &document::Document| {
        let text = terminal::document(document, Level::Full, &Style::default());
        text.matches("could have done").count()
    };
    let all = told(&document);
    document.trials[0].findings.push(document::Finding {
        code: "cpu-contention".to_owned(),
        severity: document::Severity::Suspect,
        evidence: "Other programs had the CPUs.".to_owned(),
        advice: String::new(),
    });
    // Neither of this trial nor of all of them together.
    assert_eq!(told(&document), all - 2);
}

#[test]
fn distributions_survive_the_file() {
    let mut whole = Histogram::default();
    (0..10_000u64).for_each(|nth| whole.record(nth * nth * 37 + 5));
    let mut document = samples::interrupted();
    let flow = &mut document.trials[0].workers[0].cells[0].read;
    flow.service_time = document::Distribution::from(&whole);
    flow.ios = whole.count();
    let read = document::read(&samples::bytes(&document)).unwrap();
    assert!(read.trials[0].total(Some(Direction::Read)).service_time == whole);
}

#[test]
fn a_file_cut_at_any_byte_keeps_every_complete_trial() {
    let document = small();
    let bytes = samples::bytes(&document);
    let newlines: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at).collect();
    for length in 0..bytes.len() {
        // A line is complete with its last brace, with or without the newline.
        let complete = newlines.iter().filter(|&&newline| newline <= length).count();
        match document::read(&bytes[..length]) {
            Ok(read) => {
                assert_eq!(read.trials.len(), (complete - 1).min(3), "cut at {length}");
                assert!(read.trials == document.trials[..read.trials.len()]);
                let whole = newlines.iter().any(|&n| n == length || n + 1 == length);
                assert_eq!(read.torn, !whole, "cut at {length}");
                assert_eq!(read.conclusion, document.conclusion.clone().filter(|_| complete > 4));
            }
            Err(ReadError::Empty) => assert_eq!(length, 0),
            Err(error) => {
                assert_eq!((error, complete), (ReadError::TornHeader, 0), "cut at {length}");
            }
        }
    }
}

#[test]
fn zeros_after_a_crash_are_a_torn_line() {
    let mut bytes = samples::bytes(&samples::empty());
    bytes.extend_from_slice(&[0; 4096]);
    let read = document::read(&bytes).unwrap();
    assert!(read.torn && read.trials.is_empty());
}

#[test]
fn other_files_are_refused_with_what_to_do() {
    let refused = |bytes: &[u8]| document::read(bytes).unwrap_err();
    assert_eq!(refused(b""), ReadError::Empty);
    assert_eq!(refused(b"\n\n"), ReadError::Empty);
    for other in ["hello\n", "{}\n", "[1, 2]", "{\"fio version\": \"fio-3.36\"}\n", "\u{0}\u{1}"] {
        assert_eq!(refused(other.as_bytes()), ReadError::NotAResult, "{other}");
    }
    let header = Line::Header(Box::new(samples::empty().header)).to_json();
    let newer = header.replace("\"format_version\":2", "\"format_version\":3");
    let error = refused(newer.as_bytes());
    assert_eq!(error, ReadError::NewerFormat { version: 3 });
    assert!(error.to_string().contains("use the fathom that wrote it"));
}

#[test]
fn damage_is_named_by_line_and_column() {
    let text = String::from_utf8(samples::bytes(&small())).unwrap();
    let broken = text.replacen("\"started\":", "\"started\";", 1);
    match document::read(broken.as_bytes()) {
        Err(ReadError::Damaged { line: 2, column: Some(column), .. }) => {
            assert_eq!(broken.lines().nth(1).unwrap().as_bytes()[column - 1], b';');
        }
        other => panic!("{other:?}"),
    }
    let twice = format!("{text}{text}");
    let error = document::read(twice.as_bytes()).unwrap_err();
    assert!(matches!(error, ReadError::Damaged { line: 6, column: None, .. }), "{error}");
}

#[test]
fn a_summary_comes_last_and_changes_nothing() {
    let document = small();
    let lines = samples::bytes(&document);
    let summary = Line::Summary(Box::new(summary(&document))).to_json() + "\n";
    let with = [lines.as_slice(), summary.as_bytes()].concat();
    assert!(document::read(&with).unwrap() == document::read(&lines).unwrap());
    // A result that was killed before its conclusion has none; one that says so is not refused.
    let torn = &with[..with.len() - 20];
    assert!(document::read(torn).unwrap().torn);
    let twice = [with.as_slice(), br#"{"line":"trial"}"#, b"\n"].concat();
    assert!(matches!(document::read(&twice), Err(ReadError::Damaged { .. })));
}

/// Runs every renderer, so that none relies on checks that the reader does not make.
fn render(document: &Document) {
    for width in [0, 80, 200] {
        let style = Style { width, color: true };
        terminal::document(document, Level::Full, &style);
        terminal::document(document, Level::Short, &style);
    }
    csv::document(document);
    html::document_without_library(document);
}

#[test]
fn a_document_that_contradicts_itself_is_refused() {
    let spoil: [fn(&mut Trial); 9] = [
        |trial| trial.point.streams.clear(),
        |trial| trial.point.streams[0].regions[0].target = 7,
        |trial| trial.workers[0].stream = 9,
        |trial| trial.workers[0].cells[0].target = 9,
        |trial| trial.workers[0].cells[0].read.ios += 1,
        |trial| trial.workers[0].cells[0].read.service_time.buckets.reverse(),
        |trial| trial.workers[0].cells[0].read.service_time.min_ns = Some(u64::MAX),
        |trial| trial.workers[0].cells[0].read.service_time.sum_ns = u128::MAX,
        |trial| trial.series[0].start_ns = u64::MAX,
    ];
    for (place, spoil) in spoil.into_iter().enumerate() {
        let mut document = small();
        spoil(&mut document.trials[1]);
        match document::read(&samples::bytes(&document)) {
            Err(ReadError::Damaged { line: 3, column: None, .. }) => {}
            other => panic!("{place}: {other:?}"),
        }
    }
}

#[test]
fn no_single_wrong_number_makes_a_renderer_panic() {
    let text = String::from_utf8(samples::bytes(&samples::interrupted())).unwrap();
    let bytes = text.as_bytes();
    let mut read = 0;
    for replacement in ["0", "18446744073709551615", "1e308"] {
        let mut at = 0;
        while let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|n| at + n) {
            let end = bytes[start..].iter().position(|b| !b.is_ascii_digit()).unwrap() + start;
            at = end;
            let changed = [&text[..start], replacement, &text[end..]].concat();
            if let Ok(document) = document::read(changed.as_bytes()) {
                read += 1;
                render(&document);
            }
        }
    }
    assert!(read > 20, "only {read} variants were readable");
}

#[test]
fn the_terminal_is_not_steered_by_names() {
    let text = terminal::document(&samples::void(), Level::Full, &Style::default());
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
}
