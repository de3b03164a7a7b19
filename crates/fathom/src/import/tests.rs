//! Real outputs of fio 3.33 are read in full. Older outputs are read as far as they have the
//! values.

use std::fs;
use std::path::Path;

use fathom_core::Quantile;
use fathom_core::measure::Direction;
use fathom_report::document::{CellKind, Found, Job, MapFound};

use super::{Imported, Output, import};

fn read(name: &str) -> Imported {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/fio");
    let text = fs::read_to_string(folder.join(name)).unwrap();
    import(&[(name.to_owned(), Output::read("a", &text, 100).unwrap())], 0.03).unwrap()
}

fn jobs(imported: &Imported) -> &[Job] {
    match &imported.found {
        Found::Jobs(found) => &found.jobs,
        other => panic!("no jobs, but {other:?}"),
    }
}

fn map(imported: &Imported) -> &MapFound {
    match &imported.found {
        Found::Map(found) => found,
        other => panic!("no map, but {other:?}"),
    }
}

#[test]
fn jobs_are_what_fio_says_of_them() {
    let imported = read("two-jobs.json");
    assert_eq!(imported.source.program, "fio-3.33");
    assert_eq!(imported.source.measured.as_deref(), Some("Sun Nov 22 12:02:05 2026"));
    assert_eq!(
        (imported.source.targets, imported.sentences.len()),
        (Vec::from(["data".into()]), 1)
    );
    let imported = read("two-jobs.json");
    let [reads, mixed] = jobs(&imported) else { panic!("not two jobs") };
    assert_eq!((reads.name.as_str(), reads.error), ("random read", Some(0)));
    let options = ["ioengine", "rw", "iodepth"].map(|name| reads.options[name].as_str());
    assert_eq!(options, ["libaio", "randread", "4"]);
    // A direction without I/Os is left out. It is not reported as one with zero I/Os.
    let directions = |job: &Job| job.flows.iter().map(|flow| flow.direction).collect::<Vec<_>>();
    assert_eq!(directions(reads), [Direction::Read]);
    assert_eq!(directions(mixed), Direction::BOTH);
    let flow = &reads.flows[0];
    assert_eq!(flow.bandwidth_bytes, Some(56_153_254.0));
    assert_eq!(flow.window_ns, Some(1_001_000_000));
    let times = &flow.service_time;
    assert_eq!((times.count, flow.ios), (flow.ios, Some(56_209_408 / 4096)));
    assert!(times.buckets.is_empty() && times.quantiles.len() == 17);
    let known = |q: f64| times.at(Quantile(q)).is_some();
    // fio does not list the quartiles. Beyond p99.95 there are fewer than ten values.
    assert_eq!([0.5, 0.25, 0.99, 0.9999].map(known), [true, false, true, false]);
}

#[test]
fn buckets_tell_the_percentiles_that_fio_does_not_list() {
    let imported = read("depths.json");
    let names: Vec<&str> = jobs(&imported).iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["1", "2", "4", "16"]);
    for job in jobs(&imported) {
        let times = &job.flows[0].service_time;
        let held: u64 = times.buckets.iter().map(|bucket| bucket.1).sum();
        assert_eq!(Some(held), times.count);
        let [p20, p25, p30] = [0.2, 0.25, 0.3].map(|q| times.at(Quantile(q)).unwrap());
        assert!(p20 <= p25 && p25 <= p30, "{p20} {p25} {p30}");
        // The listed value and the counted one are the same.
        let told = times.at(Quantile(0.5)).unwrap();
        let bare = fathom_report::document::JobTimes { quantiles: Vec::new(), ..times.clone() };
        assert_eq!(bare.at(Quantile(0.5)), Some(told));
    }
}

#[test]
fn buckets_of_more_than_can_be_counted_are_no_mistake_of_ours() {
    let times = r#"{"N": null, "bins": {"100": 1e308, "200": 18446744073709551615}}"#;
    let text = format!(
        r#"{{"fio version": "fio-3.33", "jobs": [{{"jobname": "a", "read":
           {{"total_ios": 5, "clat_ns": {times}}}}}]}}"#
    );
    let read = Output::read("a", &text, 100).unwrap();
    let imported = import(&[("bins".to_owned(), read)], 0.03).unwrap();
    assert_eq!(jobs(&imported)[0].flows[0].service_time.count, Some(u64::MAX));
}

#[test]
fn a_map_of_diskplorer_masks_the_cells_that_its_script_masks() {
    let imported = read("diskplorer.json");
    let found = map(&imported);
    assert_eq!(found.write_bandwidths, [0.0, 2e7, 4e7]);
    assert_eq!(found.read_rates, [0.0, 2000.0, 4000.0]);
    assert_eq!(found.quantiles, [0.5, 0.95, 0.99, 0.999].map(Quantile));
    let kinds: Vec<CellKind> = found.cells.iter().map(|cell| cell.kind).collect();
    let (yes, no) = (CellKind::Measured, CellKind::Overloaded);
    assert_eq!(kinds, [yes, no, no, yes, yes, yes, yes, yes, no]);
    let time = |cell: usize, nth: usize| found.cells[cell].response_time_ns[nth].map(|t| t.value);
    assert_eq!(time(4, 0), Some(2_244_608.0));
    // Only 8 of 16 reads lie beyond the median, which is too few.
    assert_eq!([time(0, 0), time(3, 1), time(1, 0)], [None, None, None]);
    assert!(
        found
            .cells
            .iter()
            .flat_map(|cell| &cell.response_time_ns)
            .flatten()
            .all(|time| { time.half_width.is_none() })
    );
    assert!(imported.sentences[0].starts_with("The target carries up to "));
    assert!(imported.sentences[1].contains("(40 MB/s) of writes and 4k reads/s"));
}

#[test]
fn results_of_fio_2_are_in_microseconds_and_kibibytes() {
    let text = r#"fio: this is a warning
{"fio version": "fio-2.16", "jobs": [{"jobname": "a", "error": 0,
 "read": {"io_bytes": 4096, "bw": 100, "iops": 25.5, "runtime": 1000, "total_ios": 26,
  "clat": {"min": 5, "max": 90, "mean": 20.5, "stddev": 1.5,
   "percentile": {"50.000000": 12, "99.000000": 80, "0.00": 0}}},
 "write": {"io_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0, "total_ios": 0,
  "clat": {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0}}}]} trailing"#;
    let output = Output::read("a", text, 100).unwrap();
    let imported = import(&[("a".to_owned(), output)], 0.03).unwrap();
    assert_eq!(imported.source.measured, None);
    let flows = &jobs(&imported)[0].flows;
    assert_eq!(flows.len(), 1);
    assert_eq!(flows[0].bandwidth_bytes, Some(102_400.0));
    let times = &flows[0].service_time;
    assert_eq!(times.quantiles, [(0.5, 12_000.0), (0.99, 80_000.0)]);
    assert_eq!((times.min_ns, times.count), (Some(5000.0), None));
}

#[test]
fn what_is_no_result_is_refused_with_what_would_be() {
    for (text, said) in [
        ("", "it is no result of fio"),
        ("hello", "it is no result of fio"),
        ("{}", "it is no result of fio"),
        ("{\"jobs\": 3}", "it is no result of fio"),
        ("{\"jobs\": [", "ends before it is complete"),
        ("{\"jobs\": [}", "is damaged"),
    ] {
        let why = Output::read("a", text, 100).unwrap_err().to_string();
        assert!(why.contains(said), "{text}: {why}");
    }
    let of = |jobs: &str| {
        let output = Output::read("a", &format!("{{\"jobs\": [{jobs}]}}"), 100).unwrap();
        import(&[("a".to_owned(), output)], 0.03)
    };
    assert!(of("").unwrap_err().problem.contains("no job"));
    let cell = |r: u32, w: u32| {
        format!("{{\"jobname\": \"job(r_idx={r},w_idx={w},write_bw=1,r_iops=2)\"}}")
    };
    let twice = of(&[cell(0, 0), cell(0, 0)].join(",")).unwrap_err();
    assert!(twice.problem.contains("in it twice"), "{twice}");
    let torn = of(&[cell(0, 0), cell(2, 0)].join(",")).unwrap_err();
    assert!(torn.problem.contains("no cell has the read rate"), "{torn}");
    // About a job without values nothing is known.
    let found = of("{}").unwrap();
    assert_eq!((jobs(&found)[0].name.as_str(), jobs(&found)[0].flows.len()), ("unnamed", 0));
}

#[test]
fn what_would_be_gigabytes_is_refused_while_it_is_read() {
    let jobs = |count: usize| format!("{{\"jobs\": [{}{{}}]}}", "{},".repeat(count - 1));
    assert_eq!(Output::read("a", &jobs(100), 100).unwrap().jobs.len(), 100);
    let zeros = "0,".repeat(100_000);
    let letters = "x".repeat(2 << 20);
    let global = "x".repeat(900_000);
    for (text, what) in [
        (jobs(101), "more jobs"),
        (format!("{{\"jobs\": [{{\"read\": [{zeros}0]}}]}}"), "more values in a job"),
        (format!("{{\"jobs\": [{{\"jobname\": \"{letters}\"}}]}}"), "more values in a job"),
        (format!("{{\"fathom\": [{zeros}0], \"jobs\": []}}"), "more values"),
        (
            format!("{{\"global options\": {{\"a\": \"{global}\"}},{}", &jobs(100)[1..]),
            "more options",
        ),
    ] {
        let why = Output::read("a", &text, 100).unwrap_err().to_string();
        assert!(why.contains(what) && why.contains("--output-format=json"), "{why}");
    }
    // A value that is not used may be as long as the file.
    let other = format!("{{\"disk_util\": [{zeros}0, \"{letters}\"], \"jobs\": []}}");
    assert_eq!(Output::read("a", &other, 100).unwrap().jobs.len(), 0);
}
