//! `fathom map` on simulated devices, in virtual time.

mod common;

use common::{Place, assert_has, code, stderr, stdout};
use fathom_report::document::{CellKind, Document, Found, MapFound, Role};

/// One server whose service times are exponential: 1000 I/Os per second, reads and writes alike.
const QUEUE: &str = "sim:queue,servers=1,service-time=1ms,distribution=exponential";

fn found(document: &Document) -> &MapFound {
    match document.conclusion.as_ref().and_then(|conclusion| conclusion.found.as_ref()) {
        Some(Found::Map(found)) => found,
        other => panic!("no map, but {other:?}"),
    }
}

fn mapped(more: &[&str]) -> (Document, String) {
    let place = Place::new();
    let fixed = ["map", QUEUE, "--grid", "5x5", "--write-block-size", "4k", "--seed", "3"];
    let maxima = ["--write-max", "1000", "--read-max", "1000", "--cell-time", "20s"];
    let output = place.run(&[&fixed[..], &maxima, more].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    (place.result(), stdout(&output))
}

#[test]
fn an_exhaustive_map_of_a_queue_agrees_with_theory() {
    let (document, text) = mapped(&["--exhaustive"]);
    let found = found(&document);
    assert_eq!((found.cells.len(), found.read_rates.len()), (25, 5));
    assert_eq!(found.write_bandwidths[4], 4_096_000.0);
    for cell in &found.cells {
        // Both loads are shares of the same server.
        let load = 0.25 * f64::from(cell.write + cell.read);
        match load {
            load if load > 1.01 => assert_eq!(cell.kind, CellKind::Overloaded, "{cell:?}"),
            load if load < 0.8 && cell.write == 0 && cell.read > 0 => {
                // M/M/1: the median is ln 2 times the service time over what is left.
                let median = cell.response_time_ns[0].unwrap().value;
                let theory = 2f64.ln() * 1e6 / (1.0 - load);
                assert!((median / theory - 1.0).abs() < 0.15, "{cell:?}: {theory}");
            }
            _ => {}
        }
    }
    let sentinels = document.trials.iter().filter(|one| one.place.role == Role::Sentinel).count();
    assert_eq!((document.trials.len(), sentinels), (28, 3));
    assert_has(&text, &["p50 of the reads", "The map goes up to", "Reads at p95 <="]);
}

#[test]
fn a_map_finds_its_maxima_and_measures_each_cell_once() {
    let place = Place::new();
    let output =
        place.run(&["map", QUEUE, "--grid", "5x5", "--write-block-size", "4k", "--seed", "3"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let document = place.result();
    let found = found(&document);
    assert!((found.read_rates[4] / 1000.0 - 1.0).abs() < 0.1, "{:?}", found.read_rates);
    let role = |role: Role| document.trials.iter().filter(|one| one.place.role == role).count();
    assert!(role(Role::Probe) >= 4);
    let measured = [CellKind::Measured, CellKind::Imprecise, CellKind::Overloaded];
    let cells = found.cells.iter().filter(|cell| measured.contains(&cell.kind)).count();
    assert_eq!(cells, role(Role::Result) + role(Role::Validation));
}

#[test]
fn what_no_map_can_have_is_refused_with_the_remedy() {
    let place = Place::new();
    for (words, said) in [
        (["--grid", "1x5"], "write 21x21, each from 2 to 101"),
        (["--percentiles", "50,100"], "write numbers between 0 and 100"),
        (["--cell-time", "50ms"], "choose 5s or more"),
        (["--read-max", "'1k for 1s, 2k'"], "--read-max"),
    ] {
        let output = place.run(&[&["map", QUEUE][..], &words].concat());
        assert_ne!(code(&output), 0);
        assert_has(&stderr(&output), &[said]);
    }
    assert!(place.names().is_empty());
}
