//! Exports results to other programs and imports theirs.

mod common;

use std::path::Path;

use common::{Place, assert_has, code, read, stderr, stdout};
use fathom_report::document::{CellKind, Document, Found, MapFound};

const QUEUE: &str = "sim:queue,servers=1,service-time=1ms,distribution=exponential";

fn map(document: &Document) -> &MapFound {
    match document.found() {
        Some(Found::Map(found)) => found,
        other => panic!("no map, but {other:?}"),
    }
}

fn sample(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/fio");
    folder.join(name).display().to_string()
}

#[test]
fn a_map_that_goes_to_diskplorer_and_comes_back_has_the_same_surfaces() {
    let place = Place::new();
    let words = "map --grid 6x5 --write-block-size 4k --seed 3 --write-max 1000 --read-max 1001.3 \
                 --queue-depth 64 --cell-time 5s --out a.jsonl";
    let words: Vec<&str> = words.split_whitespace().collect();
    let output = place.run(&[&words[..1], &[QUEUE], &words[1..]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let export = ["export", "a.jsonl", "--format", "diskplorer", "--out", "d.json"];
    let output = place.run(&export);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let printed = place.run(&["export", "a.jsonl", "--format", "diskplorer", "--out", "-"]);
    assert_eq!(stdout(&printed), std::fs::read_to_string(place.join("d.json")).unwrap());
    let output = place.run(&["import", "d.json", "--out", "b.jsonl"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(
        &stdout(&output),
        &["Measured by fathom 0", "imported from d.json", "p50 response time of reads"],
    );

    let (before, after) = (read(&place.join("a.jsonl")), read(&place.join("b.jsonl")));
    assert_eq!((&after.header.host, after.header.seed), (&None, None));
    let (before, after) = (map(&before), map(&after));
    assert_eq!(before.quantiles, after.quantiles);
    assert_eq!(before.write_bandwidths, after.write_bandwidths);
    assert_eq!(before.read_rates, after.read_rates);
    assert_eq!(before.cells.len(), after.cells.len());
    let mut kinds = Vec::new();
    for (one, other) in before.cells.iter().zip(&after.cells) {
        assert_eq!((one.write, one.read, one.kind), (other.write, other.read, other.kind));
        kinds.push(one.kind);
        let times = |times: &[Option<fathom_report::document::Estimate>]| -> Vec<Option<u64>> {
            times.iter().map(|time| time.map(|time| time.value.round() as u64)).collect()
        };
        assert_eq!(times(&one.response_time_ns), times(&other.response_time_ns), "{one:?}");
    }
    for kind in [CellKind::Overloaded, CellKind::Filled] {
        assert!(kinds.contains(&kind), "no cell is {kind:?}: {kinds:?}");
    }
    // The values of a job that the chart script reads.
    let text = std::fs::read_to_string(place.join("d.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    for (job, cell) in json["jobs"].as_array().unwrap().iter().zip(&before.cells) {
        let name = job["jobname"].as_str().unwrap();
        assert!(name.starts_with(&format!("job(r_idx={},w_idx={},", cell.read, cell.write)));
        assert!(job["write"]["bw_bytes"].is_u64() && job["read"]["iops"].is_number());
        let carried = !matches!(cell.kind, CellKind::Overloaded | CellKind::Beyond);
        let percentile = &job["read"]["clat_ns"]["percentile"];
        assert_eq!(percentile.is_object(), carried, "{name}");
        // The script leaves out cells that are more than 3 % below the load in their name.
        let part = |name: &str| name.split([',', ')']).next().unwrap().parse::<f64>().unwrap();
        let [offered, written] =
            ["r_iops=", "write_bw="].map(|one| part(name.split_once(one).unwrap().1));
        let shown = job["read"]["iops"].as_f64().unwrap().floor() >= 0.97 * offered
            && job["write"]["bw_bytes"].as_f64().unwrap() >= 0.97 * written;
        assert!(shown || !carried, "{name}: {job}");
        for needed in ["50.000000", "95.000000", "99.000000", "99.900000"] {
            assert_eq!(percentile.get(needed).is_some(), carried, "{name}");
        }
    }
}

/// Few reads do not support a high percentile, and imported cells have no distribution. The chart
/// script takes the range of its colors from the values of a chart, and fails if there are none.
#[test]
fn every_chart_of_an_exported_map_has_values() {
    let place = Place::new();
    let words = "map --grid 2x2 --write-block-size 4k --seed 3 --write-max 40 --read-max 40 \
                 --cell-time 1s --cell-time-max 1s --out a.jsonl";
    let words: Vec<&str> = words.split_whitespace().collect();
    let output = place.run(&[&words[..1], &[QUEUE], &words[1..]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    for (from, json, to) in [("a.jsonl", "a.json", "b.jsonl"), ("b.jsonl", "b.json", "c.jsonl")] {
        let output = place.run(&["export", from, "--format", "diskplorer", "--out", json]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let text = std::fs::read_to_string(place.join(json)).unwrap();
        let told: serde_json::Value = serde_json::from_str(&text).unwrap();
        let jobs = told["jobs"].as_array().unwrap();
        assert_eq!(jobs.len(), 4);
        for needed in ["50.000000", "95.000000", "99.000000", "99.900000"] {
            let values = jobs.iter().map(|job| &job["read"]["clat_ns"]["percentile"][needed]);
            let values: Vec<f64> = values.filter_map(serde_json::Value::as_f64).collect();
            assert!(!values.is_empty() && values.iter().all(|&ns| ns > 0.0), "{json} {needed}");
        }
        let output = place.run(&["import", json, "--out", to]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
    }
    // The placeholder of an unknown value is not read as a value.
    let [first, last] = ["b.jsonl", "c.jsonl"].map(|name| read(&place.join(name)));
    let times = |document: &Document| -> Vec<Vec<bool>> {
        let cells = map(document).cells.iter();
        cells.map(|cell| cell.response_time_ns.iter().map(Option::is_some).collect()).collect()
    };
    assert_eq!(times(&first), times(&last));
    assert!(times(&first).iter().all(|known| !known[3]), "40 reads carry no p99.9");
}

#[test]
fn a_file_that_is_not_there_is_refused_with_what_to_name() {
    let place = Place::new();
    let output = place.run(&["import", "none.json"]);
    assert_eq!(code(&output), 5);
    let said = stderr(&output);
    assert!(
        said.contains("none.json: it cannot be read (No such file")
            && said.contains(": name a file"),
        "{said}"
    );
}

#[test]
fn results_of_fio_are_shown_drawn_and_tabled() {
    let place = Place::new();
    let output = place.run(&["import", &sample("two-jobs.json"), "--out", "f.jsonl"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let said =
        ["Measured by fio-3.33", "random read", "mixed", "p99.9", "What its result does not tell"];
    assert_has(&stdout(&output), &said);
    let files = "report f.jsonl --html f.html --csv f.csv --svg f.svg --png f.png";
    let output = place.run(&files.split(' ').collect::<Vec<_>>());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    for name in ["f.html", "f.csv", "f-iops.svg", "f-bandwidth.svg", "f-service-time.png"] {
        assert!(place.names().contains(&name.to_owned()), "{name} of {:?}", place.names());
    }
    let table = std::fs::read_to_string(place.join("f.csv")).unwrap();
    assert_eq!(table.lines().count(), 1 + 3, "{table}");
    let page = std::fs::read_to_string(place.join("f.html")).unwrap();
    assert_has(&page, &["Imported results: data", "Measured by fio-3.33"]);
    assert!(!page.contains("The seed was") && !page.contains("0 CPUs"), "what is not known");

    // Results of its jobs and of Diskplorer's, and files that are neither.
    let output = place.run(&["import", &sample("diskplorer.json"), "--out", "m.jsonl"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let output = place.run(&["report", "m.jsonl", "--cells", "m.csv", "--svg", "m.svg"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let output = place.run(&["export", "f.jsonl", "--format", "diskplorer"]);
    assert_eq!(code(&output), 2);
    assert_has(&stderr(&output), &["holds no latency map", "name a result of `fathom map`"]);
    let output = place.run(&["import", "f.csv"]);
    assert_eq!(code(&output), 5);
    assert_has(&stderr(&output), &["it is no result of fio"]);
    let output = place.run(&["resume", "f.jsonl"]);
    assert_eq!(code(&output), 5);
    assert_has(&stderr(&output), &["another program measured it"]);
}
