//! Runs `fathom map` on simulated devices, in virtual time.

mod common;

use common::{Place, assert_has, code, stderr, stdout};
use fathom_core::measure::Upkeep;
use fathom_report::document::{CellKind, Document, Found, MapFound, Role};

/// One server with exponential service times: 1000 I/Os per second, for reads and writes alike.
const QUEUE: &str = "sim:queue,servers=1,service-time=1ms,distribution=exponential";

fn found(document: &Document) -> &MapFound {
    match document.found() {
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
    // In whichever order they are typed.
    let (document, text) = mapped(&["--exhaustive", "--percentiles", "99.9,99,95,50"]);
    let found = found(&document);
    assert_eq!((found.cells.len(), found.read_rates.len()), (25, 5));
    assert_eq!(found.write_bandwidths[4], 4_096_000.0);
    for cell in &found.cells {
        // Both loads are shares of the same server.
        let load = 0.25 * f64::from(cell.write + cell.read);
        match load {
            load if load > 1.01 => assert_eq!(cell.kind, CellKind::Overloaded, "{cell:?}"),
            load if load < 0.8 && cell.write == 0 && cell.read > 0 => {
                // M/M/1: the median is ln 2 times the service time divided by the free share of the
                // server.
                let median = cell.response_time_ns[0].unwrap().value;
                let theory = 2f64.ln() * 1e6 / (1.0 - load);
                assert!((median / theory - 1.0).abs() < 0.15, "{cell:?}: {theory}");
            }
            _ => {}
        }
    }
    let sentinels = document.trials.iter().filter(|one| one.place.role == Role::Sentinel).count();
    assert_eq!((document.trials.len(), sentinels), (28, 3));
    assert_has(&text, &["p50 response time of reads", "The map goes up to", "Reads keep p"]);
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
        (&["--grid", "1x5"][..], "write 21x21, each from 2 to 101"),
        (&["--percentiles", "50,100"], "write numbers between 0 and 100"),
        (&["--cell-time", "50ms"], "choose 5s or more"),
        (&["--tolerance", "0"], "no measurement is exact"),
        (&["--percentiles", "95,50,p95"], "p95 is in it twice"),
        (&["--cell-time-max", "4s"], "it must be from 5 s (--cell-time) to 24 h"),
        (&["--read-max", "'1k for 1s, 2k'"], "--read-max"),
        (&["--allowed-error", "60%"], "at most 50 %"),
        (&["--queue-depth", "70000"], "--queue-depth"),
        (&["--read-max", "1000m", "--cell-time-max", "24h"], "1,000,000,000,000 I/Os"),
    ] {
        let output = place.run(&[&["map", QUEUE][..], words].concat());
        assert_ne!(code(&output), 0, "{words:?}");
        assert_has(&stderr(&output), &[said]);
    }
    assert!(place.names().is_empty());
}

#[test]
fn what_a_map_writes_at_most_follows_from_the_end_of_its_write_axis() {
    let place = Place::new();
    place.prepared("data", 64);
    let fixed = ["map", "data", "--overwrite", "--plan", "--read-max", "1k", "--grid", "3x3"];
    let planned = |more: &[&str]| {
        let output = place.run(&[&fixed[..], more].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stdout(&output)
    };
    // Each takes 6 s: three cells with half the load, three with all of it, and three once more.
    let six = ["--exhaustive", "--cell-time", "5s", "--cell-time-max", "5s", "--ramp", "1s"];
    let text = planned(&[&six[..], &["--write-max", "100MB/s"]].concat());
    assert_has(&text, &["OVERWRITES data: writes at most 4.19 GiB, 67.06 times what"]);
    assert_has(&planned(&six), &["OVERWRITES data: writes at most about", "reckoned at"]);
}

/// The stored cells of a device: their places, whether they were carried, and their medians.
fn stored(file: &std::path::Path) -> Vec<(usize, usize, [f64; 2], bool, f64)> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place = |name: &str| names.iter().position(|one| *one == name).unwrap();
    let columns = ["w_idx", "r_idx", "w_bw_target_Bps", "r_iops_target", "admissible", "p50_ns"];
    let columns = columns.map(place);
    let cell = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |nth: usize| fields[columns[nth]].parse::<f64>().unwrap_or(0.0);
        let steps = (number(0) as usize, number(1) as usize);
        (steps.0, steps.1, [number(2), number(3)], number(4) > 0.0, number(5))
    };
    lines.map(cell).collect()
}

#[test]
fn a_device_that_is_a_stored_map_is_mapped_as_what_it_is() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let file = folder.join("latency-grids/ebs-gp3.csv").canonicalize().unwrap();
    let cells = stored(&file);
    let last = cells.last().unwrap();
    assert_eq!((last.0, last.1, last.2), (20, 20, [1e9, 16_000.0]));
    let target = format!("sim:grid,file={}", file.display());
    let place = Place::new();
    let mut words = Vec::from(["map", &target, "--grid", "21x21", "--seed", "5"]);
    words.extend(["--write-max", "1000MB/s", "--read-max", "16000"]);
    words.extend(["--cell-time", "2s", "--cell-time-max", "2s"]);
    let output = place.run(&words);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let document = place.result();
    let found = found(&document);
    let mut errors = Vec::new();
    let mut misclassified = 0;
    for (write, read, _, admissible, p50) in cells {
        let is = |cell: &&fathom_report::document::MapCell| {
            (cell.write as usize, cell.read as usize) == (write, read)
        };
        let cell = found.cells.iter().find(is).unwrap();
        let carried = !matches!(cell.kind, CellKind::Overloaded | CellKind::Beyond);
        misclassified += usize::from(carried != admissible);
        if let (CellKind::Filled, true, Some(time)) =
            (cell.kind, admissible && p50 > 0.0, cell.response_time_ns[0])
        {
            errors.push((time.value / p50 - 1.0).abs());
        }
    }
    errors.sort_unstable_by(f64::total_cmp);
    assert!(errors.len() > 100, "{} cells were filled in", errors.len());
    let median = errors[errors.len() / 2];
    assert!(median < 0.04, "{median}");
    assert!(misclassified <= 6, "{misclassified} cells are misclassified");
    let measured = document.trials.len();
    assert!(measured <= 2 * 21 + 58, "{measured} measurements");
}

/// A file that is a hole. Without a prefill, each cell reads data that was never written. With one,
/// no cell does, and the warning does not appear before the start.
#[test]
fn a_prefill_writes_what_the_map_then_reads() {
    let place = Place::new();
    std::fs::File::create(place.join("data")).unwrap().set_len(16 << 20).unwrap();
    let fixed = ["map", "data", "--overwrite", "--grid", "2x2", "--read-max", "40"];
    let times = ["--cell-time", "1s", "--cell-time-max", "1s", "--ramp", "0s"];
    let map = [&fixed[..], &times, &["--percentiles", "50", "--write-max", "1MB/s"]].concat();
    let plan = |more: &[&str]| {
        let output = place.run(&[&map[..], &["--plan"], more].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stdout(&output)
    };
    assert_has(&plan(&[]), &["16 MiB of data was never written"]);
    let planned = plan(&["--prefill", "2"]);
    assert_has(&planned, &["everything is written twice in blocks of 128 KiB, 32 MiB in all"]);
    let written = |text: &str| {
        let after = text.split_once("writes at most ").unwrap().1;
        after.split(',').next().unwrap().to_owned()
    };
    // The cells write less than 7 MB, at 1 MB/s each.
    let mib = |text: &str| written(text).trim_end_matches(" MiB").parse::<f64>().unwrap();
    let more = mib(&planned) - mib(&plan(&[]));
    assert!((more - 32.0).abs() < 0.1, "{planned}");
    assert!(!planned.contains("never written"), "{planned}");
    let output = place.run(&[&map[..], &["--prefill", "2", "--yes"]].concat());
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let document = place.result();
    let (before, after): (Vec<_>, Vec<_>) =
        document.trials.iter().partition(|one| one.place.role == Role::Preparation);
    let written: u64 = before.iter().map(|one| one.total(None).bytes.0).sum();
    assert_eq!(written, 32 << 20);
    assert!(!after.is_empty());
    for trial in after {
        let never = trial.findings.iter().find(|one| one.code == "unwritten-reads");
        assert!(never.is_none(), "{:?}", never);
    }
    let output = place.run(&["map", QUEUE, "--prefill", "1"]);
    assert_eq!(code(&output), 2);
    assert_has(&stderr(&output), &["--prefill", "new at each point", "drop it"]);
}

/// Trims cover what their cell has written, and never what is read.
#[test]
fn trims_beside_the_writes_leave_alone_what_is_read() {
    let place = Place::in_memory();
    place.prepared("data", 64);
    let fixed = ["map", "data", "--buffered", "--overwrite", "--yes", "--grid", "2x2"];
    let loads = ["--read-max", "40", "--write-max", "8MB/s", "--trim-share", "100%"];
    let times = ["--cell-time", "1s", "--cell-time-max", "1s", "--percentiles", "50"];
    let output = place.run(&[&fixed[..], &loads, &times].concat());
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    assert_has(&stdout(&output), &["trims    100 % of what is written, 1 s behind it, in 32 MiB"]);
    let document = place.result();
    let mut trimmed = 0;
    for trial in &document.trials {
        let trims = trial.upkeep(Upkeep::Trim, |_, _| true);
        let writes = trial.place.coordinates[0].value != Some(0.0);
        assert_eq!(trial.point.streams.len(), if writes { 3 } else { 1 });
        assert!(writes || trims.ios() == 0);
        trimmed += trims.bytes.0;
        for stream in &trial.point.streams {
            let from = if stream.read_share() > 0.0 { 0 } else { 32 << 20 };
            let region = &stream.regions[0];
            assert_eq!((region.offset.0, region.length.0), (from, 32 << 20));
        }
        let codes = trial.findings.iter().map(|one| one.code.as_str());
        assert!(
            codes.clone().all(|code| code != "trimmed-reads"),
            "{:?}",
            codes.collect::<Vec<_>>()
        );
    }
    assert!(trimmed > 0);
    let output = place.run(&["map", QUEUE, "--trim-share", "100%"]);
    assert_eq!(code(&output), 2);
    assert_has(&stderr(&output), &["--trim-share", "simulated", "drop it"]);
    let output = place.run(&[&fixed[..], &loads, &["--ramp", "0s"]].concat());
    assert_has(&stderr(&output), &["--trim-share", "--ramp 0s", "choose a longer --ramp"]);
}
