//! The readers of results: files of fathom and of other tools.

use std::collections::BTreeSet;

use fathom_core::stats::Figure;
use fathom_report::comparison::{self, Match, Question, Sides};
use fathom_report::document::{self, Conclusion, Document, Ended, Header, Line};
use fathom_report::history::{History, HistoryEntry, HistoryRequest};
use fathom_report::page::{Level, Page};
use fathom_report::summary::{summary, summary_of_watch};
use fathom_report::watched::WatchedResult;
use fathom_report::{csv, export, html, image, markdown, page, terminal, watched};

use crate::cli::args::Args;
use crate::import::{self, Imported, Output};

/// Reads a result file, and shows it in every format. Reads it once more as a history does.
pub fn result(bytes: &[u8]) {
    if let Ok(document) = document::read(bytes) {
        let conditions = Args::recorded_conditions(&document.header.command_line);
        show(&Document { conditions, ..document });
    }
    let timeless = document::read_timeless(&mut &*bytes).expect("memory can be read");
    let request = HistoryRequest { metrics: Vec::new(), any_host: false };
    let Ok(entry) = timeless.map(|document| HistoryEntry::of("a.jsonl", document, &request)) else {
        return;
    };
    match entry {
        Ok(entry) => {
            let history = History::of("folder", Vec::from([entry]), Vec::new());
            assert!(!history.to_json().is_empty());
            show_page(&page::history(&history, Level::Full));
        }
        Err(why) => assert!(!why.is_empty()),
    }
}

/// Everything that is made from a document.
pub fn show(document: &Document) {
    let lengths = [
        terminal::document(document, Level::usual(document), &terminal::Style::default()).len(),
        terminal::document(document, Level::Full, &terminal::Style { width: 40, color: true })
            .len(),
        html::document_without_library(document).len(),
        markdown::document(document, Level::Full).len(),
        csv::document(document).len(),
        csv::series::document(document).len(),
        serde_json::to_string(&summary(document)).map_or(0, |json| json.len()),
    ];
    assert!(lengths.iter().all(|&length| length > 0), "{lengths:?}");
    let _ = (csv::cells(document), export::diskplorer::diskplorer(document));
    for illustration in page::illustrations(document) {
        assert!(image::svg(&illustration).starts_with("<svg"));
    }
    // The trials that `resume` shows to an experiment.
    for trial in &document.trials {
        let _ = trial.record();
    }
    let alone = |name: &str| (name.to_owned(), format!("{name}.jsonl"), document);
    compare(comparison::of_files(&[alone("a"), alone("b")], Match::Workload));
    let axes: BTreeSet<String> =
        comparison::axes(document).into_iter().map(|(axis, _)| axis).collect();
    axes.iter().filter_map(|axis| comparison::by_axis(document, axis)).for_each(compare);
    comparison::by_target(document).into_iter().for_each(compare);
}

fn compare(sides: Sides<'_>) {
    let figures = Vec::from([Figure::Iops, Figure::Mean]);
    let question = Question { figures, margin: 0.05, requirements: Vec::new() };
    let compared = comparison::compare(sides, &question);
    assert!(!compared.comparison.to_json().is_empty());
    assert!(!comparison::junit(&compared.comparison).is_empty());
    show_page(&page::comparison(&compared, Level::Full));
}

/// A page in every format.
fn show_page(page: &Page) {
    let lengths = [
        terminal::page(page, &terminal::Style { width: 40, color: true }).len(),
        markdown::page(page).len(),
        html::page_without_library(page).len(),
    ];
    assert!(lengths.iter().all(|&length| length > 0), "{lengths:?}");
}

/// Reads the file of a watch, and shows it in every format.
pub fn watch(bytes: &[u8]) {
    let Ok(Ok(result)) = watched::read_from(&mut &*bytes) else { return };
    let conditions = Args::recorded_conditions(&result.header.command_line);
    let result = WatchedResult { conditions, ..result };
    show_page(&page::watched(&result, Level::Complete));
    assert_eq!(summary_of_watch(&result).disks.len(), result.disks.len());
}

/// The most jobs that a file may have.
const JOBS_MAX: usize = 1 << 14;

/// Reads output of fio or Diskplorer, and shows it.
pub fn imported(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let read = Output::read("a.json", &text, JOBS_MAX)
        .and_then(|output| import::import(&[("a.json".to_owned(), output)], 0.05));
    let Imported { source, found, sentences } = match read {
        Ok(imported) => imported,
        Err(refusal) => return super::refused(&refusal),
    };
    let header = Header::imported(env!("CARGO_PKG_VERSION"), &[], 0, source);
    let last = Conclusion { ended: Ended::Completed, sentences, found: Some(found) };
    let lines = [Line::Header(Box::new(header)), Line::Conclusion(Box::new(last))];
    let lines: Vec<String> = lines.iter().map(Line::to_json).collect();
    match document::read(lines.join("\n").as_bytes()) {
        Ok(document) => show(&document),
        Err(error) => panic!("{error}\n{}", lines.join("\n")),
    }
}
