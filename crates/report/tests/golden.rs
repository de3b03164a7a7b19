//! Compares the stored documents and the output of every renderer. `UPDATE_GOLDEN=1` rewrites the
//! stored files (`cargo xtask golden`); read the difference after that.

mod calibrations;
mod samples;

use std::fs;
use std::path::{Path, PathBuf};

use fathom_report::export::diskspd;
use fathom_report::page::{self, Level};
use fathom_report::summary::summary;
use fathom_report::terminal::{self, Style};
use fathom_report::{csv, document, html, markdown};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// Compares with the stored file, or stores it.
fn check(path: &Path, now: &[u8]) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, now).unwrap();
        return;
    }
    let stored = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if stored == now {
        return;
    }
    let (stored, now) = (String::from_utf8_lossy(&stored), String::from_utf8_lossy(now));
    let differing = stored.lines().zip(now.lines()).position(|(old, new)| old != new);
    let line = differing.unwrap_or_else(|| stored.lines().count().min(now.lines().count()));
    let shown =
        |text: &str| text.lines().nth(line).unwrap_or("").chars().take(300).collect::<String>();
    panic!(
        "{} differs from line {}:\n- {}\n+ {}\nUPDATE_GOLDEN=1 accepts it",
        path.display(),
        line + 1,
        shown(&stored),
        shown(&now)
    );
}

/// The samples with these names.
fn chosen<const N: usize>(names: [&'static str; N]) -> Vec<(&'static str, document::Document)> {
    let all = samples::all().into_iter().filter(|(name, _)| names.contains(name));
    let read = |(name, bytes): (&'static str, Vec<u8>)| (name, document::read(&bytes).unwrap());
    let chosen: Vec<_> = all.map(read).collect();
    assert_eq!(chosen.len(), N, "each has a sample");
    chosen
}

#[test]
fn documents_are_stored_as_they_are_written() {
    // One for each kind of conclusion, and those with odd ends, odd names, failures and open loops.
    let stored = [
        "empty",
        "quick",
        "open",
        "streams",
        "void",
        "interrupted",
        "families",
        "peak",
        "map",
        "restless",
    ];
    for (name, bytes) in samples::all() {
        if stored.contains(&name) {
            check(&data().join(format!("{name}.jsonl")), &bytes);
        }
    }
}

/// Compares the terminal's output for a document.
fn check_terminal(name: &str, document: &document::Document, level: Level, width: usize) {
    let style = Style { width, ..Style::default() };
    let text = terminal::document(document, level, &style);
    let level = format!("{level:?}").to_lowercase();
    check(&data().join(format!("{name}-{level}-{width}.txt")), text.as_bytes());
}

#[test]
fn the_terminal_shows_what_was_found() {
    for (name, bytes) in samples::all() {
        check_terminal(name, &document::read(&bytes).unwrap(), Level::Short, 80);
    }
}

#[test]
fn a_wider_terminal_shows_more_in_a_row() {
    for (name, document) in chosen(["quick", "cube", "objective"]) {
        check_terminal(name, &document, Level::Short, 140);
    }
}

#[test]
fn the_terminal_shows_every_trial_in_full() {
    for (name, document) in chosen(["streams", "open", "void", "parted", "torn", "restless"]) {
        check_terminal(name, &document, Level::Full, 80);
    }
}

#[test]
fn documents_become_markdown() {
    for (name, document) in
        chosen(["quick", "void", "map", "restless", "streams", "parted", "repeats"])
    {
        let text = markdown::document(&document, Level::usual(&document));
        check(&data().join(format!("{name}.md")), text.as_bytes());
    }
}

#[test]
fn documents_have_a_summary() {
    for (name, document) in
        chosen(["quick", "streams", "peak", "void", "empty", "cube", "repeats", "hosts"])
    {
        let mut summary = serde_json::to_value(summary(&document)).unwrap();
        rounded(&mut summary);
        let text = serde_json::to_string_pretty(&summary).unwrap() + "\n";
        check(&data().join(format!("{name}-summary.json")), text.as_bytes());
    }
}

#[test]
fn documents_become_tables() {
    let names =
        ["empty", "quick", "streams", "interrupted", "void", "cube", "map", "pauses", "hosts"];
    for (name, document) in chosen(names) {
        if let Some(cells) = csv::cells(&document) {
            check(&data().join(format!("{name}-cells.csv")), cells.as_bytes());
        }
        check(&data().join(format!("{name}.csv")), csv::document(&document).as_bytes());
    }
}

/// The text between two pieces of a text.
fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(start).unwrap();
    rest.split_once(end).unwrap().0
}

const FIGURES: &str = "<script type=\"application/json\" id=\"figures\">";

#[test]
fn documents_become_pages() {
    let names = ["empty", "quick", "streams", "void", "parted", "cube", "peak", "map", "restless"];
    for (name, document) in chosen(names) {
        let page = html::document_without_library(&document);
        let body = between(&page, "<body>\n", FIGURES);
        check(&data().join(format!("{name}.html")), body.as_bytes());
    }
}

/// The places of charts in a page, and the charts that it brings.
fn places_and_figures(document: &document::Document) -> [Vec<String>; 2] {
    let page = html::document_without_library(document);
    let body = between(&page, "<body>\n", FIGURES);
    let places = body.split("<div id=\"").skip(1).filter_map(|rest| {
        let (id, rest) = rest.split_once('"')?;
        rest.split('>').next()?.contains("role=\"img\"").then(|| id.to_owned())
    });
    let figures = serde_json::from_str(between(&page, FIGURES, "</script>")).unwrap();
    let serde_json::Value::Array(figures) = figures else { panic!("a list") };
    let ids = figures.iter().map(|one| one["id"].as_str().unwrap().to_owned());
    let mut both = [places.collect::<Vec<_>>(), ids.collect()];
    both.iter_mut().for_each(|ids| ids.sort());
    both
}

#[test]
fn every_place_of_a_page_has_its_chart() {
    for (name, bytes) in samples::all() {
        let mut document = document::read(&bytes).unwrap();
        let [places, figures] = places_and_figures(&document);
        assert_eq!(places, figures, "{name}");
        // More trials than a page draws one by one.
        let Some(first) = document.trials.first().cloned() else { continue };
        document.trials = (0..13)
            .map(|repeat| {
                let mut trial = first.clone();
                trial.place.repeat = repeat;
                trial
            })
            .collect();
        let [places, figures] = places_and_figures(&document);
        assert_eq!(places, figures, "{name}, repeated");
    }
}

/// Replaces a long list by its first values and their number.
fn shortened(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Array(values) => {
            let all = values.len();
            if 6 < all {
                values.truncate(4);
                values.push(Value::from(format!("... {all} in all")));
            }
            values.iter_mut().for_each(shortened);
        }
        Value::Object(fields) => fields.values_mut().for_each(shortened),
        _ => {}
    }
}

/// Rounds every number to nine digits. The last bit of a half-width depends on the features of a
/// library that other crates of the workspace switch on, and on the machine's mathematical library.
fn rounded(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Array(values) => values.iter_mut().for_each(rounded),
        Value::Object(fields) => fields.values_mut().for_each(rounded),
        Value::Number(number) if number.is_f64() => {
            let digits = format!("{:.8e}", number.as_f64().unwrap());
            *value = Value::from(digits.parse::<f64>().unwrap());
        }
        _ => {}
    }
}

#[test]
fn charts_are_drawn_for_the_browser() {
    let names = [
        "quick", "streams", "cube", "families", "peak", "map", "demand", "phases", "ab", "hosts",
        "scaling",
    ];
    for (name, document) in chosen(names) {
        let page = html::document_without_library(&document);
        let mut figures: serde_json::Value =
            serde_json::from_str(between(&page, FIGURES, "</script>")).unwrap();
        // The charts of different trials look alike.
        let of_trial = ["chart-rates-", "chart-times-", "chart-distribution-"];
        let others =
            |id: &str| of_trial.iter().any(|name| id.starts_with(name)) && !id.ends_with("-1");
        let serde_json::Value::Array(all) = &mut figures else { panic!("{name}: no list") };
        all.retain(|one| !others(one["id"].as_str().unwrap()));
        all.iter_mut().for_each(shortened);
        rounded(&mut figures);
        let text = serde_json::to_string_pretty(&figures).unwrap() + "\n";
        check(&data().join(format!("{name}-figures.json")), text.as_bytes());
    }
}

/// The DiskSpd profile of these trials. The last trial was not reached.
fn diskspd_profile(document: &document::Document, description: &str) -> diskspd::Profile {
    let span = |trial: &document::Trial| {
        let workers = trial.workers.len() as u32;
        let names = &document.header.targets;
        let path = |region: &fathom_core::spec::Region| names[region.target as usize].name.clone();
        diskspd::TimeSpan {
            service_times: true,
            io_bucket: Some(trial.point.interval),
            threads: workers,
            requests: None,
            streams: Vec::from([diskspd::ThreadGroup {
                first_thread: 0,
                paths: trial.point.streams[0].regions.iter().map(path).collect(),
            }]),
            distributions: Vec::new(),
        }
    };
    let mut time_spans: Vec<diskspd::TimeSpan> = document.trials.iter().map(span).collect();
    if let Some(first) = time_spans.first_mut() {
        first.distributions.push(diskspd::RangeShares {
            path: r"G:\a & b.dat".to_owned(),
            threads: Vec::from([0, 1, 2]),
            ranges: Vec::from([(10, 0, 8 << 10), (90, 28 << 10, 100 << 10)]),
        });
    }
    let missing = diskspd::TimeSpan {
        service_times: false,
        io_bucket: None,
        threads: 1,
        requests: Some(4),
        streams: Vec::new(),
        distributions: Vec::new(),
    };
    time_spans.push(missing);
    diskspd::Profile { description: description.to_owned(), time_spans }
}

#[test]
fn documents_become_results_of_diskspd() {
    for (name, bytes) in samples::all() {
        if !["interrupted", "open", "void"].contains(&name) {
            continue;
        }
        let mut document = document::read(&bytes).unwrap();
        for (place, worker) in
            document.trials.iter_mut().flat_map(|trial| &mut trial.workers).enumerate()
        {
            for cell in &mut worker.cells {
                let ios = (cell.read.ios + cell.write.ios) as f64;
                cell.spread = Some(document::Spread {
                    intervals: 10,
                    read_squares: ios * ios / 9.0,
                    write_squares: 0.0,
                    squares: ios * ios / (9.0 - place as f64 / 10.0),
                });
            }
        }
        let text = "\nCommand Line: diskspd -L -D500\n\nInput parameters:\n\n";
        let text = diskspd::text(&document, &diskspd_profile(&document, text));
        check(&data().join(format!("{name}-diskspd.txt")), text.as_bytes());
        let profile = diskspd_profile(&document, "  <Profile>\n  </Profile>\n");
        let xml = diskspd::xml(&document, &profile);
        check(&data().join(format!("{name}-diskspd.xml")), xml.as_bytes());
    }
}

#[test]
fn inspect_shows_the_device_stack() {
    let target = samples::file("/data/test");
    let advice = ["Test at least 64 GiB: twice the memory.".to_owned()];
    let text = terminal::page(&page::target(&target, &advice), &Style::default());
    check(&data().join("target-80.txt"), text.as_bytes());
}

#[test]
fn calibrations_are_written_and_shown() {
    for (name, calibration) in calibrations::all() {
        check(&data().join(format!("{name}.json")), (calibration.to_json() + "\n").as_bytes());
        for width in [80, 140] {
            let style = Style { width, ..Style::default() };
            let page = page::calibration(&calibration);
            let answer = page.answer.as_ref().expect("every page of a calibration has one");
            let text =
                terminal::page(&page, &style) + "\n" + &terminal::line(answer, &style) + "\n";
            check(&data().join(format!("{name}-{width}.txt")), text.as_bytes());
        }
    }
}

#[test]
fn a_calibration_of_nothing_is_shown_too() {
    let (_, mut calibration) = calibrations::all().remove(0);
    calibration.rows.clear();
    calibration.wake_up = None;
    let page = page::calibration(&calibration);
    let text = terminal::page(&page, &Style::default());
    assert!(text.contains("not measured"), "{text}");
    let answer = page.answer.expect("it says that it has none");
    assert_eq!(answer.text, "too few I/Os for a figure");
}

#[test]
fn the_schemas_are_up_to_date() {
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    check(&schemas.join("result-2.json"), document::schema().as_bytes());
    check(&schemas.join("calibration-1.json"), document::calibration_schema().as_bytes());
    check(&schemas.join("watch-1.json"), fathom_report::watched::watch_schema().as_bytes());
    let summary = fathom_report::watched::watch_summary_schema();
    check(&schemas.join("watch-summary-1.json"), summary.as_bytes());
    let comparison = fathom_report::comparison::comparison_schema();
    check(&schemas.join("comparison-1.json"), comparison.as_bytes());
    let history = fathom_report::history::history_schema();
    check(&schemas.join("history-1.json"), history.as_bytes());
}
