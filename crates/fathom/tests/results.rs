//! Tests what a user finds after a run: the results, their names, the outputs, and exit codes.

mod common;

use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use common::{Mount, Place, assert_has, code, fathom_in, names, read, stderr, stdout};
use fathom_core::measure::Upkeep;
use fathom_report::document::{Ended, Verdict};
use serde_json::Value;

const SHORT: [&str; 4] = ["--duration", "200ms", "--warm-up", "0"];

fn quick(more: &[&str]) -> Vec<String> {
    let words = [&["quick"], more, &SHORT].concat();
    words.into_iter().map(str::to_owned).collect()
}

fn words(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

#[test]
fn quick_in_a_folder_leaves_its_results_and_no_scratch_file() {
    let place = Place::new();
    let output = place.run(&words(&quick(&["--size", "64m", "--seed", "7"])));
    let (said, told) = (stdout(&output), stderr(&output));
    assert!([0, 4].contains(&code(&output)), "{told}");
    assert_has(&said, &["sequential read 1 MiB", "random 70/30", "p99.9", "seed 7", ".html"]);
    // The user typed only ".", or not even that.
    let folder = place.path().canonicalize().unwrap();
    assert!(said.contains(&format!("Storage portrait: {}", folder.display())), "{said}");
    assert_has(&told, &["writing the scratch file", "step 1/6", "step 6/6"]);
    let names = place.names();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("quick-") && name.ends_with(".html")));
    let document = place.result();
    assert_eq!(document.trials.len(), 6);
    assert_eq!(document.header.seed, Some(7));
    assert_eq!(document.conclusion.unwrap().ended, Ended::Completed);
    for trial in &document.trials {
        // On a busy machine a step this short may have no I/O, and then it says so.
        let some = 0 < trial.total(None).ios() || trial.verdict == Verdict::Void;
        assert!(some && trial.errors() == 0, "{}", trial.point.name);
        assert_eq!(trial.point.streams[0].regions[0].length.0, 64 << 20);
        assert!(trial.counters.is_some());
    }
    assert!(!said.contains('\u{1b}') && !told.contains('\u{1b}'), "no colors in a pipe");
}

#[test]
fn quick_only_reads_what_was_there_before_unless_told_otherwise() {
    let place = Place::new();
    let file = place.prepared("data", 8);
    let before = std::fs::read(&file).unwrap();
    let output = place.run(&words(&quick(&["data", "--out", "a.jsonl"])));
    assert_has(&stdout(&output), &["3 steps that write were left out", "--overwrite"]);
    let page = stdout(&place.run(&["report", "a.jsonl", "--markdown", "-"]));
    assert_has(&page, &["Only reads were measured"]);
    assert!(std::fs::read(&file).unwrap() == before, "nothing was written");
    assert_eq!(read(&place.join("a.jsonl")).trials.len(), 3);

    let output = place.run(&words(&quick(&["data", "--overwrite", "--out", "b.jsonl"])));
    assert_has(&stdout(&output), &["OVERWRITES data"]);
    assert_eq!(read(&place.join("b.jsonl")).trials.len(), 6);
    let page = stdout(&place.run(&["report", "b.jsonl", "--markdown", "-"]));
    assert!(!page.contains("Only reads were measured"), "{page}");
    assert!(std::fs::read(&file).unwrap() != before, "it was overwritten");
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 8 << 20);
}

/// Its half-width would describe a figure that depends on the length of the window.
#[test]
fn the_tail_of_an_overloaded_target_is_named_as_such() {
    let place = Place::new();
    for (rate, is_overloaded) in [("200k", true), ("10k", false)] {
        let result = format!("{rate}.jsonl");
        let load = ["run", "sim:queue", "--rate", rate, "-d", "1s", "--seed", "1"];
        let output = place.run(&[&load[..], &["--out", &result]].concat());
        let said = stdout(&output).replace('\n', " ");
        assert_eq!(said.contains(" while overloaded; suspect: "), is_overloaded, "{said}");
        assert_eq!(said.contains(" % of the offered load, p99 "), is_overloaded, "{said}");
        let page = stdout(&place.run(&["report", &result, "--html", "-"]));
        let tile = "<dt>p99, grows with the length of the run</dt>";
        assert_eq!(page.contains(tile), is_overloaded, "{page}");
    }
}

#[test]
fn a_report_that_is_there_is_found_before_anything_is_measured() {
    let place = Place::new();
    std::fs::write(place.join("a.html"), "mine").unwrap();
    let output = place.run(&words(&quick(&["sim:queue", "--out", "a.jsonl"])));
    assert_eq!(code(&output), 5, "{}", stderr(&output));
    assert_has(&stderr(&output), &["a.html", "never overwritten"]);
    assert!(!stdout(&output).contains("portrait"), "it was found too late");
    assert_eq!(place.names(), ["a.html"]);
}

#[test]
fn a_device_that_fails_through_its_warm_up_leaves_a_void_result() {
    let place = Place::new();
    let output = place.run(&["run", "sim:queue,error=1", "--warm-up", "60s", "-d", "1s"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    assert_has(&stdout(&output), &["void", "EIO", "gave up"]);
    let document = place.result();
    assert_eq!(document.trials.len(), 1);
    assert_eq!(document.verdict(), Some(Verdict::Void));
    assert!(document.trials[0].errors() > 1000);
    assert_eq!(document.conclusion.unwrap().ended, Ended::Failed);
}

#[test]
fn run_writes_only_into_the_region() {
    let place = Place::new();
    let file = place.prepared("data", 4);
    let before = std::fs::read(&file).unwrap();
    let output = place.run(&[
        "run",
        "data",
        "--overwrite",
        "--read-share",
        "0",
        "--offset",
        "1m",
        "--size",
        "1m",
        "-d",
        "2s",
        "--warm-up",
        "0",
        "-w",
        "2",
    ]);
    assert_has(&stdout(&output), &["takes 2 s: no warm-up, 2 s window"]);
    assert_has(&stdout(&output), &["OVERWRITES data", "1 MiB from offset 1 MiB"]);
    assert_has(&stdout(&output), &["window 2 s, without a warm-up"]);
    let after = std::fs::read(&file).unwrap();
    let mib = 1 << 20;
    assert!(after[..mib] == before[..mib] && after[2 * mib..] == before[2 * mib..]);
    assert!(after[mib..2 * mib] != before[mib..2 * mib]);
    assert_eq!(place.result().trials[0].workers.len(), 2);
}

#[test]
fn an_open_loop_on_two_files_reports_both_targets() {
    let place = Place::new();
    place.prepared("a", 2);
    place.prepared("b", 2);
    let output = place.run(&[
        "run",
        "a",
        "b",
        "--rate",
        "200",
        "--arrivals",
        "uniform",
        "-d",
        "500ms",
        "--warm-up",
        "100ms",
        "--html",
        "r.html",
        "--csv",
        "r.csv",
    ]);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let document = place.result();
    let trial = &document.trials[0];
    assert!(trial.is_open());
    assert_eq!(document.header.targets.len(), 2);
    // 200/s for 600 ms, whatever the device does.
    assert_eq!(trial.ledger().due, 120);
    assert!(std::fs::read_to_string(place.join("r.html")).unwrap().contains("<html"));
    assert!(std::fs::read_to_string(place.join("r.csv")).unwrap().lines().count() > 1);
}

#[test]
fn a_closed_pipe_ends_nothing_and_frightens_nobody() {
    let place = Place::new();
    let mut child = place
        .command(&["run", "sim:queue", "-d", "1s", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{told}");
    assert!(!told.contains("panic") && !told.contains("mistake in fathom"), "{told}");
    assert_eq!(place.result().trials.len(), 1);
}

#[test]
fn with_json_stdout_is_the_document_and_nothing_else() {
    let place = Place::new();
    let output = place.run(&["run", "sim:queue", "-d", "1s", "--json", "--out", "r.jsonl"]);
    assert_eq!(code(&output), 0);
    assert_eq!(output.stdout, std::fs::read(place.join("r.jsonl")).unwrap());
    assert_has(&stderr(&output), &["80,000 IOPS", "r.jsonl"]);
}

#[test]
fn a_full_stdout_is_told_and_has_an_exit_code() {
    let place = Place::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = place.command(&["run", "sim:queue"]).stdout(full).output().unwrap();
    assert_eq!(code(&output), 5);
    assert_has(&stderr(&output), &["error: stdout", "No space left"]);
}

#[test]
fn a_stdout_that_becomes_full_costs_no_trial() {
    let Some(mount) = Mount::tmpfs(1) else { return };
    // Two pages are left: room for the header but not for a trial.
    std::fs::write(mount.path().join("ballast"), vec![7; (1 << 20) - 8192]).unwrap();
    let place = Place::new();
    let quick = ["quick", "sim:ssd", "-d", "1s", "--json", "--out", "r.jsonl"];
    let full = std::fs::File::create(mount.path().join("stdout")).unwrap();
    let output = place.command(&quick).stdout(full).output().unwrap();
    assert_eq!(code(&output), 5, "{}", stderr(&output));
    assert_has(&stderr(&output), &["error: stdout", "No space left", "result  r.jsonl"]);
    let document = read(&place.join("r.jsonl"));
    assert_eq!((document.trials.len(), document.conclusion.unwrap().ended), (6, Ended::Completed));
    assert!(place.join("r.html").exists(), "a report is not lost with it");
}

#[test]
fn a_seed_repeats_a_simulated_run_to_the_last_bucket() {
    let place = Place::new();
    let run = |out: &str| {
        let target = "sim:ssd";
        place.run(&["run", target, "--read-share", "70%", "-d", "1s", "--seed", "7", "--out", out]);
        read(&place.join(out)).trials.remove(0)
    };
    let (first, second) = (run("a.jsonl"), run("b.jsonl"));
    assert_eq!((&first.workers, &first.series), (&second.workers, &second.series));
}

#[test]
fn an_hour_of_simulated_load_is_run_with_all_of_its_ios() {
    let place = Place::new();
    let output = place.run(&[
        "run",
        "sim:queue,servers=1,service-time=10ms",
        "-q",
        "4",
        "-d",
        "1h",
        "--warm-up",
        "0",
    ]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let ios = place.result().trials[0].total(None).ios();
    assert!((359_990..=360_000).contains(&ios), "{ios}");
}

#[test]
fn errors_make_a_result_void_and_the_exit_code_says_so() {
    let place = Place::new();
    let output = place.run(&["run", "sim:queue,error=10%", "-d", "1s"]);
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    let document = place.result();
    assert_eq!(document.verdict(), Some(Verdict::Void));
    assert!(document.trials[0].errors() > 0);
}

#[test]
fn two_results_of_one_second_have_names_of_their_own_and_none_is_overwritten() {
    let place = Place::new();
    for _ in 0..3 {
        assert_eq!(code(&place.run(&["run", "sim:queue", "-d", "100ms"])), 0);
    }
    assert_eq!(place.names().len(), 3);
    let output = place.run(&["run", "sim:queue", "--out", &place.names()[0]]);
    assert_eq!(code(&output), 5);
    assert_has(&stderr(&output), &["never overwritten", "choose another name"]);
    let output = place.run(&["run", "sim:queue", "--html", &place.names()[0]]);
    assert_eq!(code(&output), 5);
    assert_eq!(place.names().len(), 3);
    let output = place.run(&["run", "sim:queue", "--html", "x", "--csv", "x"]);
    assert_eq!(code(&output), 2);
    let output = place.run(&["run", "sim:queue", "--html", "x", "--csv", "./x"]);
    assert_eq!(code(&output), 2);
    let output = place.run(&["quick", "sim:queue", "--out", "x.jsonl", "--csv", "x.html"]);
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    let output = place.run(&["run", "sim:queue", "--out", "no/such/folder/x"]);
    assert_eq!(code(&output), 5);
    assert_has(&stderr(&output), &["no/such/folder/x", "create its folder"]);
}

#[test]
fn the_summary_is_the_last_line_and_can_be_printed() {
    let place = Place::new();
    let run = ["run", "sim:queue", "-d", "1s", "--seed", "1", "--out", "r.jsonl", "--json"];
    let json = stdout(&place.run(&run));
    let last: Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert_eq!(last["line"], "summary");
    assert_eq!((&last["verdict"], &last["doubts"]), (&"sound".into(), &Value::Array(Vec::new())));
    // 32 in flight, and 400 us for each.
    assert_eq!(last["figures"]["iops"]["value"], 80_000.0);
    assert_eq!(last["figures"]["mean_ns"]["value"], 400_000.0);
    let printed = stdout(&place.run(&["report", "r.jsonl", "--summary"]));
    let mut printed: Value = serde_json::from_str(&printed).unwrap();
    printed["line"] = "summary".into();
    assert_eq!(printed, last);
    // Of a quick portrait no step is the result.
    place.run(&["quick", "sim:queue", "-d", "200ms", "--out", "q.jsonl"]);
    let printed = stdout(&place.run(&["report", "q.jsonl", "--summary"]));
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        (&printed["figures"], printed["results"].as_array().unwrap().len()),
        (&Value::Null, 6)
    );
}

#[test]
fn a_report_goes_to_stdout_alone() {
    let place = Place::new();
    let run = ["run", "sim:queue", "-d", "1s", "--seed", "1", "--out", "r.jsonl", "--csv", "-"];
    let output = place.run(&run);
    let table = stdout(&output);
    assert!(table.starts_with("trial,"), "{table}");
    assert_has(&stderr(&output), &["Sound: 1 trial", "80,000 IOPS"]);
    assert_eq!(stdout(&place.run(&["report", "r.jsonl", "--csv", "/dev/stdout"])), table);
    let page = stdout(&place.run(&["report", "r.jsonl", "--html", "-", "--csv", "r.csv"]));
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    let markdown = stdout(&place.run(&["report", "r.jsonl", "--markdown", "-"]));
    assert!(markdown.starts_with("# Storage run"), "{markdown}");
    for other in ["-", "/dev/stdout"] {
        let both = ["report", "r.jsonl", "--html", "-", "--csv", other];
        assert_eq!(code(&place.run(&both)), 2);
    }
    let both = ["run", "sim:queue", "-d", "1s", "--json", "--csv", "-"];
    assert_eq!(code(&place.run(&both)), 2);
    for name in ["-", "/dev/stdout"] {
        for option in ["--out", "--trace"] {
            let refused = place.run(&["run", "sim:queue", "-d", "1s", option, name]);
            assert_eq!(code(&refused), 2);
            assert_has(&stderr(&refused), &[option, name, "name a file"]);
        }
    }
    assert_eq!(place.names(), ["r.csv", "r.jsonl"]);
}

#[test]
fn a_run_that_is_too_short_for_a_p99_still_breaks_a_promise_that_its_median_breaks() {
    let place = Place::new();
    let load = ["run", "sim:hdd", "-q", "8", "-d", "2s", "--seed", "1"];
    let broken = place.run(&[&load[..], &["--promised-latency", "p99<=1ms"]].concat());
    assert_eq!(code(&broken), 6, "{}", stdout(&broken));
    let answer = "promised p99 of 1.00 ms at most: not kept; random read 4 KiB";
    assert_has(&stdout(&broken), &["\np50 ", answer]);
    let failed = place.run(&[&load[..], &["--fail-if", "p99>1ms"]].concat());
    assert_eq!(code(&failed), 6);
    assert_has(
        &stderr(&failed),
        &["error: --fail-if 'p99>1ms': too few I/Os for p99, but p50 is "],
    );
    // What may still be kept is unknown.
    let open = place.run(&[&load[..], &["--promised-latency", "p99<=1s"]].concat());
    assert_eq!(code(&open), 0);
    assert_has(&stdout(&open), &["promised p99 of 1.00 s at most: unknown (too few I/Os)"]);
}

#[test]
fn a_threshold_decides_about_the_exit_code() {
    let place = Place::new();
    let run = |condition: &str, out: &str| {
        let output =
            place.run(&["run", "sim:queue", "-d", "1s", "--out", out, "--fail-if", condition]);
        (code(&output), stderr(&output))
    };
    assert_eq!(run("p99>1ms", "a.jsonl").0, 0);
    let (code_of, said) = run("p99>300us", "b.jsonl");
    assert_eq!(code_of, 6, "{said}");
    assert_has(&said, &["error: --fail-if 'p99>300us': p99 is 400 us", "random read 4 KiB"]);
    // The answer says it, in the file and in each report of it: who reads it later types no condition.
    let shown = stdout(&place.run(&["report", "b.jsonl"]));
    assert_has(
        &shown.replace('\n', " "),
        &["; fails by --fail-if 'p99>300us': p99 is 400 us", "; the measurement is sound"],
    );
    let page = stdout(&place.run(&["report", "b.jsonl", "--html", "-"]));
    assert_has(
        &page,
        &["<p class=\"answer is-void\">", "--fail-if</span> &#39;p99&gt;300us&#39;: p99 is"],
    );
    let kept = stdout(&place.run(&["report", "a.jsonl"]));
    assert_has(&kept, &["--fail-if 'p99>1ms' is not the case: p99 is "]);
    for (file, applies) in [("a.jsonl", "no"), ("b.jsonl", "yes")] {
        let summary = stdout(&place.run(&["report", file, "--summary"]));
        let summary: Value = serde_json::from_str(&summary).unwrap();
        assert_eq!(summary["conditions"][0]["applies"], applies, "{summary}");
        assert_has(summary["conditions"][0]["text"].as_str().unwrap(), &["--fail-if 'p99>"]);
    }
    // A void result says more than a promise or a condition.
    let void =
        ["run", "sim:queue,error=5%", "-d", "1s", "--rated-iops", "1m", "--fail-if", "p99>1us"];
    assert_eq!(code(&place.run(&void)), 4);
    assert_eq!(run("iops<90k", "c.jsonl").0, 6);
    assert_eq!(run("bandwidth<300MB/s", "d.jsonl").0, 0);
    assert_eq!(run("suspect", "e.jsonl").0, 0);
    // Too few samples for it: nothing shows that it holds.
    assert_has(&run("p99.999>1s", "f.jsonl").1, &["p99.999 is unknown"]);
    assert_has(&run("p99>2", "g.jsonl").1, &["'2' has no unit: write 2ms or 2s"]);
    let report = ["report", "a.jsonl", "--fail-if", "mean<1ms", "--fail-if", "max>1s"];
    let output = place.run(&report);
    assert_eq!(code(&output), 6);
    assert_has(&stderr(&output), &["'mean<1ms': the mean response time is 400 us"]);
    // A sweep fails where one of its points does, and a peak by what it chose.
    let sweep = ["sweep", "sim:queue", "--axis", "queue-depth=1,32", "-d", "300ms", "--yes"];
    let output = place.run(&[&sweep[..], &["--fail-if", "iops<20k"]].concat());
    assert_eq!(code(&output), 6, "{}", stderr(&output));
    assert_has(&stderr(&output), &["IOPS are 10,000 with queue-depth 1"]);
}

#[test]
fn results_lie_in_the_folder_that_was_named_once() {
    let place = Place::new();
    std::fs::create_dir(place.join("all results")).unwrap();
    let run = ["run", "sim:queue", "-d", "1s"];
    let output = place.run(&[&run[..], &["--results", "all results"]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    // The line that makes the page can be typed as it stands.
    let said = stdout(&output);
    let page = said.lines().find_map(|line| line.strip_prefix("page    fathom ")).unwrap();
    assert_has(page, &["'all results/run-sim-queue-", ".fathom.jsonl' --html "]);
    let by_environment = |folder: &str, more: &[&str]| {
        let mut command = place.command(&[&run[..], more].concat());
        command.env("FATHOM_RESULTS", folder).output().unwrap()
    };
    let output = by_environment("all results", &[]);
    assert_has(&stdout(&output), &["result  all results/run-sim-queue-"]);
    // A result with a name of its own lies where it is named.
    assert_eq!(code(&by_environment("all results", &["--out", "r.jsonl"])), 0);
    assert_eq!(place.names(), ["all results", "r.jsonl"]);
    // No folder is made for a mount that is missing.
    let output = by_environment("missing", &[]);
    assert_eq!(code(&output), 5);
    assert_has(&stderr(&output), &["FATHOM_RESULTS names it", "mkdir -p missing"]);
    let output = place.run(&[&run[..], &["--results", "r.jsonl"]].concat());
    assert_has(
        &stderr(&output),
        &["error: r.jsonl: --results names it", "it is no folder: name a folder"],
    );
    assert_eq!(place.names(), ["all results", "r.jsonl"]);
}

#[test]
fn a_void_result_that_can_be_foreseen_is_told_before_the_run() {
    let place = Place::new();
    std::fs::File::create(place.join("sparse.dat")).unwrap().set_len(16 << 20).unwrap();
    let run = ["run", "sparse.dat", "--buffered", "-d", "200ms", "--warm-up", "0"];
    let said = stdout(&place.run(&run));
    let (before, after) = said.split_once("Storage run").unwrap();
    // Not every file system says what was never written.
    if after.contains("Reads of blocks that were never written") {
        assert_has(before, &["doubts that can be foreseen", "  void     ", "fathom prepare"]);
    }
    let said = stdout(&place.run(&["run", "sim:queue", "-d", "1s"]));
    assert!(!said.contains("doubts that can be foreseen"), "{said}");
}

#[test]
fn a_promise_that_is_not_kept_is_told_and_gives_an_exit_code() {
    let place = Place::new();
    let told = |promise: &[&str], out: &str| {
        let time: &[&str] = if promise.contains(&"-d") { &[] } else { &["-d", "1s"] };
        let run = ["run", "sim:queue", "--out", out];
        let output = place.run(&[&run[..], time, promise].concat());
        let answer = stdout(&output).replace('\n', " ");
        (code(&output), answer, stderr(&output))
    };
    // 80,000 IOPS, and 400 us for each I/O.
    let (code_of, said, _) = told(&["--rated-iops", "79k"], "a.jsonl");
    assert_eq!(code_of, 0, "{said}");
    assert_has(
        &said,
        &["101 % of the promised 79,000 IOPS: kept; random read", ": a longer --duration tells "],
    );
    let (code_of, said, error) = told(&["--rated-iops", "200k"], "b.jsonl");
    assert_eq!(code_of, 6, "{error}");
    assert_has(&said, &["40 % of the promised 200,000 IOPS: not kept; random read"]);
    assert!(!said.contains("for long"), "{said}");
    assert_has(&said, &["More I/Os in flight may reach more", "without --queue-depth"]);
    assert_has(&error, &["error: 40 % of the promised 200,000 IOPS: not kept"]);
    let (code_of, said, _) = told(&["--promised-latency", "p99<=300us"], "c.jsonl");
    assert_eq!(code_of, 6);
    assert_has(&said, &["p99 400 us, promised 300 us at most: not kept"]);
    let (code_of, said, _) = told(&["--rated-iops", "50k"], "fast.jsonl");
    assert_eq!(code_of, 4);
    assert_has(&said, &["160 % of the promised 50,000 IOPS: too fast to be true; void: faster"]);
    // Neither a load that asks for less nor too few I/Os decide anything.
    let asked =
        ["--rated-bandwidth", "1GB/s", "--rate", "10k", "--promised-latency", "p99.999<=1ms"];
    let (code_of, said, error) = told(&asked, "d.jsonl");
    assert_eq!(code_of, 0, "{error}");
    let less = "of the promised 1,000 MB/s: not tested, because the load asked for less";
    let few = "promised p99.999 of 1.00 ms at most: unknown (too few I/Os)";
    assert_has(&said, &[less, few]);
    // Two intervals give no interval of confidence, and so no answer.
    let (code_of, said, error) = told(&["--rated-iops", "200k", "-d", "200ms"], "short.jsonl");
    assert_eq!(code_of, 0, "{error}");
    assert_has(&said, &["of the promised 200,000 IOPS: too short to decide"]);
    let summary = stdout(&place.run(&["report", "b.jsonl", "--summary"]));
    assert_has(&summary, &["\"kept\": \"no\""]);
    // Which setting of a study a promise is about is open, wherever it is made.
    std::fs::write(place.join("w.toml"), "promised-latency = \"p99<=1ms\"\n").unwrap();
    let study = ["study", "access-mix", "w.toml", "sim:ssd", "--axis", "queue-depth=1,2", "--plan"];
    let output = place.run(&study);
    assert_eq!(code(&output), 2);
    assert_has(&stderr(&output), &["--promised-latency 'p99 <= 1 ms'", "compares settings"]);
}

#[test]
fn the_evidence_of_a_doubt_is_among_the_details() {
    let place = Place::new();
    let run = ["run", "sim:queue", "-d", "1s", "--rated-iops", "60k", "--out"];
    let brief = stdout(&place.run(&[&run[..], &["a.jsonl"]].concat()));
    assert_has(&brief, &["  void     Faster than the rating", "`fathom report RESULT --details`"]);
    assert!(!brief.contains("I/Os due"), "{brief}");
    let whole = stdout(&place.run(&[&run[..], &["b.jsonl", "--details"]].concat()));
    let report = stdout(&place.run(&["report", "a.jsonl", "--details"]));
    for text in [whole, report] {
        assert_has(&text, &["that it is rated at.", "write random data", "I/Os due"]);
    }
}

#[test]
fn report_shows_again_what_run_showed() {
    let place = Place::new();
    let shown = stdout(&place.run(&["run", "sim:queue", "-d", "1s", "--out", "r.jsonl"]));
    let again = stdout(&place.run(&["report", "r.jsonl"]));
    // Only the command that measured says where its result is.
    let files = "result  r.jsonl\npage    fathom report r.jsonl --html r.html\n\n";
    assert_has(&shown, &[files]);
    let shown = shown.replace(files, "");
    assert!(shown.ends_with(&again), "{shown}\n{again}");
    assert!(shown.ends_with("; sound\n"), "{shown}");
    let narrow = stdout(&place.run(&["report", "r.jsonl", "--width", "80"]));
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    let output = place.run(&["report", "r.jsonl", "--html", "r.html", "--csv", "r.csv"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&std::fs::read_to_string(place.join("r.html")).unwrap(), &["<html", "80"]);
    let output = place.run(&["report", "r.jsonl", "--html", "r.html"]);
    assert_eq!(code(&output), 5);
    let markdown = stdout(&place.run(&["report", "r.jsonl", "--markdown"]));
    assert!(markdown.starts_with("# Storage run: sim:queue\n"), "{markdown}");
    assert_eq!(code(&place.run(&["report", "r.jsonl", "--markdown", "r.md"])), 0);
    assert_eq!(std::fs::read_to_string(place.join("r.md")).unwrap().trim(), markdown.trim());
    let output = place.run(&["report", "r.jsonl", "--csv", "x", "--width", "90"]);
    assert_eq!(code(&output), 2);
    let output = place.run(&["report", "r.csv"]);
    assert_eq!(code(&output), 5);
    assert_has(&stderr(&output), &["r.csv", "it is no result of fathom"]);
    assert_eq!(code(&place.run(&["report", "missing"])), 5);
}

#[test]
fn a_full_disk_is_told_and_leaves_no_scratch_file() {
    let Some(mount) = Mount::tmpfs(80) else { return };
    let ballast = std::fs::File::create(mount.path().join("ballast")).unwrap();
    drop(ballast);
    // Everything but the MiB of the marker: there is no room left for the header of the result
    // file.
    let all = ["quick", "--size", "79m", "--duration", "200ms", "--warm-up", "0"];
    let output = fathom_in(mount.path(), &all).output().unwrap();
    assert_eq!(code(&output), 5, "{}", stderr(&output));
    assert_has(&stderr(&output), &["error: quick-", "No space left", "--out"]);
    assert_eq!(names(mount.path()), ["ballast"]);

    let output = fathom_in(mount.path(), &["quick", "--size", "100m"]).output().unwrap();
    assert_eq!(code(&output), 2);
    assert_has(&stderr(&output), &["--size 100 MiB", "80 MiB free"]);
    let output = fathom_in(mount.path(), &["quick"]).output().unwrap();
    assert_eq!(code(&output), 3);
    assert_has(&stderr(&output), &["quarter", "--size"]);
    let output = fathom_in(mount.path(), &["prepare", "f", "--size", "100m"]).output().unwrap();
    assert_eq!(code(&output), 2);
    assert_has(&stderr(&output), &["--size 100 MiB", "80 MiB free"]);
    assert_eq!(names(mount.path()), ["ballast"]);
}

#[test]
fn a_read_only_file_system_is_told_and_out_leads_out_of_it() {
    let Some(mount) = Mount::tmpfs(80) else { return };
    std::fs::write(mount.path().join("data"), vec![7; 1 << 20]).unwrap();
    mount.make_read_only();
    let place = Place::new();
    let output = fathom_in(mount.path(), &["run", "data", "--buffered"]).output().unwrap();
    assert_eq!(code(&output), 5);
    assert_has(&stderr(&output), &["error: run-data-", "ead-only", "--out"]);

    let folder = mount.path().to_str().unwrap();
    let output = place.run(&["quick", folder, "--size", "8m"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert_has(&stderr(&output), &[folder, "read-only", "another folder"]);
    let output = place.run(&["prepare", &format!("{folder}/new"), "--size", "1m"]);
    assert_eq!(code(&output), 3);
    assert_has(&stderr(&output), &["new", "read-only"]);
    let data = format!("{folder}/data");
    let output = place.run(&["run", &data, "--read-share", "0", "--overwrite"]);
    assert_eq!(code(&output), 3);
    assert_has(&stderr(&output), &[&data, "read-only"]);
    assert_eq!(place.names(), Vec::<String>::new());
}

#[test]
fn a_run_that_ends_with_an_amount_says_what_it_moved() {
    let place = Place::new();
    let output = place.run(&["run", "sim:ssd", "--stop-after", "8m"]);
    assert_eq!(code(&output), 0);
    let told = stdout(&output);
    let answer = told.trim_end().rsplit("\n\n").next().unwrap();
    assert_has(answer, &["queue depth 32: read 8 MiB in ", " IOPS ", " (", " MiB/s, "]);
}

#[test]
fn bad_targets_are_named_with_a_remedy_and_nothing_is_left() {
    let place = Place::new();
    std::fs::create_dir(place.join("folder")).unwrap();
    std::fs::write(place.join("empty"), "").unwrap();
    std::os::unix::fs::symlink("empty", place.join("link")).unwrap();
    std::fs::write(place.join("data"), vec![7; 1 << 20]).unwrap();
    std::fs::hard_link(place.join("data"), place.join("other")).unwrap();
    std::fs::write(place.join("here.fio"), "[global]\nrw=randread\n[job]\nsize=1g\n").unwrap();
    let before = place.names();
    for (args, exit, parts) in [
        (&["run", "missing"] as &[&str], 3, &["missing", "does not exist", "fathom prepare"]),
        (&["run", "folder"], 3, &["folder", "fathom quick folder", "no file with data"]),
        (&["run", "empty"], 3, &["empty", "fathom prepare empty", "nothing"]),
        (&["run", "data", "data"], 2, &["data", "named twice", "once"]),
        (&["run", "data", "other"], 2, &["other", "the same as data", "once"]),
        (&["run", "/proc/self/mem"], 3, &["/proc/self/mem", "error: ", ""]),
        (&["run", "data", "sim:ssd"], 2, &["sim:ssd", "measured alone", "name one target"]),
        (&["run", "sim:nonsense"], 2, &["sim:nonsense", "queue", "ssd"]),
        (&["quick", "sim:nonsense"], 2, &["sim:nonsense", "queue", "ssd"]),
        (&["run", "sim:queue,servers=0"], 2, &["servers", "sim:queue", "1 to"]),
        (&["quick", "missing"], 3, &["missing", "does not exist", ""]),
        (&["quick", "empty"], 3, &["empty", "fathom prepare empty", ""]),
        (&["prepare", "folder", "--size", "1m"], 3, &["folder", "is a folder", ""]),
        (&["prepare", "data", "--size", "2m"], 3, &["data", "2 MiB are wanted", "--overwrite"]),
        (&["prepare", "no/such", "--size", "1m"], 3, &["no", "not exist", ""]),
        (&["prepare", "new", "--size", "0"], 2, &["--size 0", "choose", ""]),
        (&["prepare", "new", "--size", "1000t"], 2, &["--size", "free", "new"]),
        (&["prepare", "new", "--size", "1m", "-b", "5k"], 2, &["--block-size 5 KiB", "4 KiB", ""]),
        (&["prepare", "sim:ssd", "--size", "1m"], 3, &["sim:ssd", "needs no data", ""]),
        (&["inspect", "missing"], 3, &["missing", "does not exist", ""]),
        (&["inspect", "sim:ssd"], 3, &["sim:ssd", "sim:help", ""]),
        (&["run", "data", "--bs", "4k"], 2, &["--bs", "no such option here", "-b 4k"]),
        (&["run", "data", "--name=job"], 2, &["--name", "no such option here", "--out"]),
        (&["oltp", "data"], 2, &["oltp", "no such command", "`fathom run oltp TARGET`"]),
        (&["./data", "-d", "1s"], 2, &["./data", "no such command", "`fathom run ./data`"]),
        (&["run", "data", "--rw=randread"], 2, &["--rw", "--pattern random", "--read-share"]),
        (&["run", "data", "--plan"], 2, &["--plan", "`fathom plan`", ""]),
        (&["run", "job.fio"], 2, &["job.fio", "job files of fio", "workload file"]),
        (&["run", "data", "here.fio"], 2, &["here.fio", "job files of fio", "workload file"]),
        (&["run", "here.fio"], 2, &["here.fio", "job files of fio", "workload file"]),
        (&["run", "olpt", "data"], 2, &["olpt", "nor a workload", "did you mean oltp?"]),
        (&["run", "olpt"], 2, &["olpt", "nor a workload", "did you mean oltp?"]),
        (&["nonsense"], 2, &["nonsense: there is no such command", "`fathom --help`", ""]),
        (&["quik", "data"], 2, &["quik", "no such command", "did you mean quick?"]),
        (&["help", "quik"], 2, &["quik", "no such command", "did you mean quick?"]),
        (&["multi-stream", "data"], 2, &["no such command", "`fathom study multi-stream", ""]),
        (&["study", "study"], 2, &["study: there is no such study", "`fathom study` is", ""]),
        (&["study", "map"], 2, &["map", "no such study", "`fathom map` is a command"]),
        (&["study", "multistream"], 2, &["multistream", "no such study", "mean multi-stream?"]),
        (&["study", "nonsense"], 2, &["nonsense", "no such study", "`fathom study` lists"]),
    ] {
        let output = place.run(args);
        let told = stderr(&output);
        assert_eq!(code(&output), exit, "{args:?}: {told}");
        assert_has(&told, parts);
        assert_eq!(told.matches("error: ").count(), 1, "{told}");
        assert_eq!(stdout(&output), "", "{args:?}");
        assert_eq!(place.names(), before, "{args:?}");
    }
    // A command alone shows what to type.
    let output = place.run(&["run"]);
    assert_eq!(code(&output), 2);
    assert_has(&stderr(&output), &["Usage: fathom run", "fathom run test.dat -q 32"]);
    assert_eq!(std::fs::read(place.join("data")).unwrap(), vec![7; 1 << 20]);
}

#[test]
fn a_name_can_neither_forge_lines_nor_reach_the_terminal() {
    let place = Place::new();
    let name = "a\nerror: b\u{1b}[31mc";
    for command in ["run", "quick", "inspect"] {
        let told = stderr(&place.run(&[command, name]));
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(!told.contains('\u{1b}'), "{told}");
    }
    place.prepared(name, 1);
    let output = place.run(&["run", name, "-d", "100ms", "--warm-up", "0"]);
    let shown = stdout(&output) + &stderr(&output);
    assert!(!shown.contains('\u{1b}') && !shown.contains("\nerror: b"), "{shown}");
}

#[test]
fn inspect_tells_what_a_file_and_a_folder_are_on() {
    let place = Place::new();
    place.prepared("data", 1);
    for target in ["data", "."] {
        let output = place.run(&["inspect", target]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert_has(&stdout(&output), &[target, "file system", "free space"]);
    }
}

#[test]
fn a_probe_writes_where_it_may_and_leaves_unique_data() {
    let place = Place::new();
    place.prepared("data", 4);
    let before = std::fs::read(place.join("data")).unwrap();
    let region = ["--offset", "1m", "--size", "2m"];
    let output = place.run(&[&["inspect", "data", "--probe"], &region[..]].concat());
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert_has(&stdout(&output), &["writes at most 52 MiB to 2 MiB from offset 1 MiB"]);
    assert_has(&stderr(&output), &["data", "--overwrite"]);
    assert!(std::fs::read(place.join("data")).unwrap() == before, "nothing was allowed");

    let output = place.run(&[&["inspect", "data", "--probe", "--overwrite"], &region[..]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stdout(&output), &["reduction"]);
    let after = std::fs::read(place.join("data")).unwrap();
    let (from, to) = (1 << 20, 3 << 20);
    assert!(after[..from] == before[..from] && after[to..] == before[to..], "it stays inside");
    let unique: std::collections::BTreeSet<&[u8]> = after[from..to].chunks(4096).collect();
    assert_eq!(unique.len(), 512, "no page is there twice");
    assert!(after[from..to].chunks(4096).all(|page| before.chunks(4096).all(|old| old != page)));
    assert_eq!(place.names(), ["data"], "it leaves no result");

    for (words, told) in [
        (&["inspect", "data", "--overwrite"] as &[&str], "add --probe"),
        (&["inspect", ".", "--probe", "--overwrite"], "fathom quick"),
        (&["inspect", "data", "--probe", "--overwrite", "--size", "5m"], "has 4 MiB"),
        (&["inspect", "data", "--probe", "--overwrite", "--size", "4k"], "no room"),
        (&["inspect", "data", "--size", "4k"], "--probe"),
    ] {
        let output = place.run(words);
        assert_ne!(code(&output), 0, "{words:?}");
        assert_has(&stderr(&output), &[told]);
    }
}

#[test]
fn a_probe_tells_what_a_device_saves_on() {
    let place = Place::new();
    for (saves, told) in [
        ("", "was not seen to compress"),
        (",compresses=70%", "It compresses: "),
        (",deduplicates=70%", "It deduplicates: "),
        (",skips-zeros=70%", "It skips zeros: "),
    ] {
        let output =
            place.run(&["inspect", &format!("sim:ssd,noise-between=3%{saves}"), "--probe"]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert_has(&stdout(&output), &[told]);
    }
}

#[test]
fn what_a_probe_told_is_held_against_every_step_and_kept_with_the_target() {
    let place = Place::new();
    for (saves, told, findings) in
        [(",compresses=70%", "compresses, by a probe", 3), ("", "was not seen to compress", 0)]
    {
        let out = format!("quick{findings}.jsonl");
        let target = format!("sim:ssd{saves}");
        let words = ["quick", &target, "-d", "200ms", "--warm-up", "0", "--out", &out];
        let output = place.run(&words);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert_has(&stdout(&output), &["probe    whether it compresses"]);
        let report = stdout(&place.run(&["report", &out, "--details"]));
        assert_has(&report.replace('\n', " "), &[told]);
        let result = std::fs::read_to_string(place.join(&out)).unwrap();
        assert_eq!(result.matches("\"code\":\"data-reduction\"").count(), findings);
        assert_eq!(result.matches("\"reduction\":{\"passes\":6").count(), 1);
    }
    // Figures of zeros on a device that skips zeros mean nothing, in a search as well.
    let words = ["peak", "sim:ssd,skips-zeros=90%", "--read-share", "0", "--payload", "zeros"];
    let times = ["-d", "200ms", "--warm-up", "0", "--official", "200ms", "--up-to", "4"];
    let output = place.run(&[&words[..], &times[..], &["--out", "peak.jsonl"]].concat());
    assert_eq!(code(&output), 4, "{}", stderr(&output));
    let report = stdout(&place.run(&["report", "peak.jsonl", "--details"]));
    assert_has(&report, &["skips zeros, by a probe"]);
    // Without an official run, or with `--no-probe`, only the search writes.
    for (more, probes) in
        [(&[][..], true), (&["--official", "none"], false), (&["--no-probe"], false)]
    {
        let words = ["peak", "sim:ssd", "--read-share", "0", "--plan"];
        let told = stdout(&place.run(&[&words[..], more].concat()));
        assert_eq!(told.contains("probe    whether"), probes, "{more:?}: {told}");
    }
}

#[test]
fn prepare_creates_uses_again_refuses_and_overwrites() {
    let place = Place::new();
    let output = place.run(&["prepare", "f", "--size", "3m", "--seed", "5", "--writers", "2"]);
    assert_eq!(code(&output), 0);
    assert_has(&stdout(&output), &["created f", "3 MiB", "seed 5"]);
    let first = std::fs::read(place.join("f")).unwrap();
    assert_eq!(first.len(), 3 << 20);
    let unique: std::collections::BTreeSet<&[u8]> = first.chunks(4096).collect();
    assert_eq!(unique.len(), first.len() / 4096, "no page is there twice");

    let output = place.run(&["prepare", "f", "--size", "2m"]);
    assert_eq!(code(&output), 0);
    assert_has(&stdout(&output), &["used as it is"]);
    assert!(std::fs::read(place.join("f")).unwrap() == first);

    assert_eq!(code(&place.run(&["prepare", "f", "--size", "4m"])), 3);
    assert!(std::fs::read(place.join("f")).unwrap() == first);
    let output = place.run(&["prepare", "f", "--size", "4m", "--overwrite", "-b", "8k"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stdout(&output), &["overwrote f", "4 MiB"]);
    assert_eq!(std::fs::metadata(place.join("f")).unwrap().len(), 4 << 20);
    assert_eq!(place.names(), ["f"]);

    let hole = std::fs::File::create(place.join("hole")).unwrap();
    hole.set_len(1 << 20).unwrap();
    let output = place.run(&["prepare", "hole", "--size", "1m"]);
    assert_eq!(code(&output), 3);
    assert_has(&stderr(&output), &["never written", "--overwrite"]);
}

/// The report that a browser was given, once it has started.
fn opened(place: &Place) -> String {
    for _ in 0..600 {
        // The stand-in renames the file when it is whole.
        if let Ok(text) = std::fs::read_to_string(place.join("opened")) {
            std::fs::remove_file(place.join("opened")).unwrap();
            return text;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the browser was not started");
}

#[test]
fn a_report_opens_in_the_browser_and_what_stands_against_it_is_said_beforehand() {
    let place = Place::new();
    let browser = place.join("browser");
    let script = "#!/bin/sh\necho \"$1\" >opening && mv opening opened\n";
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, PermissionsExt::from_mode(0o755)).unwrap();
    let run = |browser: &Path, args: &[&str]| {
        let mut command = place.command(args);
        command.env("BROWSER", browser).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        command.output().unwrap()
    };
    let sim = ["run", "sim:ssd", "-d", "1s", "--warm-up", "0s", "--out", "r.jsonl", "--open"];
    let html = ["--html", "r.html"];
    let output = run(&browser, &[&sim[..], &html].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let at =
        |name: &str| format!("{}\n", place.path().canonicalize().unwrap().join(name).display());
    assert_eq!(opened(&place), at("r.html"));
    let output = run(&browser, &["report", "r.jsonl", "--html", "again.html", "--open"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(opened(&place), at("again.html"));

    // Nothing is measured or written if it could not be opened.
    let before = place.names();
    let other = ["run", "sim:ssd", "-d", "1s", "--out", "other.jsonl", "--open"];
    for (args, told) in [
        (&other[..], "no HTML report"),
        (&[&other[..], &["--html", "-"]].concat(), "no HTML report"),
        (&["report", "r.jsonl", "--open"], "no HTML report"),
    ] {
        let output = run(&browser, args);
        assert_eq!(code(&output), 2, "{args:?}");
        assert_has(&stderr(&output), &["--open", told, "--html FILE"]);
    }
    // Whether as root or without a desktop, the user has to choose the program.
    let output = run(Path::new(""), &[&other[..], &["--html", "other.html"]].concat());
    assert_eq!(code(&output), 2);
    assert_has(&stderr(&output), &["--open", "other.html", "$BROWSER"]);
    assert_eq!(place.names(), before);

    // The report is there, even if the browser is not.
    let output = run(Path::new("./none"), &["report", "r.jsonl", "--html", "third.html", "--open"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stderr(&output), &["third.html is not opened", "./none"]);
    assert!(place.join("third.html").exists());
}

#[test]
fn help_has_examples_and_the_exit_codes() {
    let place = Place::new();
    let output = place.run(&["--help"]);
    assert_eq!(code(&output), 0);
    let help = stdout(&output);
    let examples = help.lines().filter(|line| line.starts_with("  fathom ")).count();
    assert_eq!(examples, 3, "{help}");
    for exit in ["0  ", "1  ", "2  ", "3  ", "4  ", "5  ", "130, 143"] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(exit)), "{exit}: {help}");
    }
    let short = stdout(&place.run(&["run", "-h"]));
    assert!(short.lines().count() <= 25 && !short.contains("--trace"), "{short}");
    let bare = place.run(&["run"]);
    assert_eq!((code(&bare), stderr(&bare)), (2, short));
    assert_has(&stdout(&place.run(&["run", "sim:help"])), &["queue", "ssd", "servers"]);
    assert_has(&stdout(&place.run(&["--version"])), &[env!("CARGO_PKG_VERSION")]);
}

#[test]
fn a_disk_that_fills_up_during_a_run_keeps_the_lines_that_fit() {
    let Some(mount) = Mount::tmpfs(1) else { return };
    // Two pages are left: room for the header but not for a trial. A file without a trial is of no
    // use.
    std::fs::write(mount.path().join("ballast"), vec![7; (1 << 20) - 8192]).unwrap();
    let run = ["run", "sim:ssd", "-d", "10s", "--out", "r.jsonl"];
    let output = fathom_in(mount.path(), &run).env("TMPDIR", mount.path()).output().unwrap();
    assert_eq!(code(&output), 5, "{}", stderr(&output));
    assert_has(&stderr(&output), &["error: r.jsonl", "No space left", "only shown"]);
    assert_has(&stdout(&output), &["IOPS", "no file takes what was measured"]);
    assert_eq!(names(mount.path()), ["ballast"]);

    // Seven pages: room for the sequential steps but not for all others.
    std::fs::write(mount.path().join("ballast"), vec![7; (1 << 20) - 7 * 4096]).unwrap();
    let quick = ["quick", "sim:ssd", "-d", "1s", "--seed", "1", "--out", "r.jsonl"];
    let other = Place::new();
    let output = fathom_in(mount.path(), &quick).env("TMPDIR", other.path()).output().unwrap();
    assert_eq!(code(&output), 5, "{}", stderr(&output));
    let saved = other.join("r.jsonl.saved-1").display().to_string();
    assert_has(&stderr(&output), &["error: r.jsonl", "No space left", "is saved in", &saved]);
    let all = read(Path::new(&saved));
    assert_eq!((all.trials.len(), all.conclusion.unwrap().ended), (6, Ended::Completed));
    let bytes = std::fs::read(mount.path().join("r.jsonl")).unwrap();
    assert_eq!(bytes.last(), Some(&b'\n'), "the line that did not fit was taken back");
    assert!((1..6).contains(&read(&mount.path().join("r.jsonl")).trials.len()));
    let output = fathom_in(mount.path(), &["report", "r.jsonl"]).output().unwrap();
    assert_eq!(code(&output), 0);
}

#[test]
fn a_folder_that_cannot_be_written_to_is_refused_before_anything_is_announced() {
    let place = Place::new();
    let folder = place.join("locked");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    // Root may write anywhere, unless it gives up its capabilities.
    let plain = place.command(&["quick", "locked"]);
    let mut command = std::process::Command::new("setpriv");
    command.args(["--inh-caps=-all", "--bounding-set=-all"]).arg(plain.get_program());
    command.args(plain.get_args()).current_dir(place.path());
    let is_root = std::fs::metadata(place.path()).unwrap().uid() == 0;
    let mut command = if is_root { command } else { plain };
    let output = match command.output() {
        Ok(output) => output,
        Err(cause) => {
            println!("skipped: setpriv: {cause}");
            return;
        }
    };
    if stderr(&output).contains("setpriv:") {
        println!("skipped: {}", stderr(&output));
        return;
    }
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert_has(&stderr(&output), &["locked", "permission denied"]);
    assert_eq!(stdout(&output), "");
    assert_eq!(place.names(), ["locked"]);
}

#[test]
fn only_files_and_pipes_are_read_as_results() {
    let place = Place::new();
    for (path, what) in [("/dev/zero", "a device"), (".", "a folder")] {
        let output = place.run(&["report", path]);
        assert_eq!(code(&output), 5, "{}", stderr(&output));
        assert_has(&stderr(&output), &[path, what, "name a result file"]);
    }
    let output = place.run(&["run", "sim:queue", "-d", "1s", "--out", "a.jsonl"]);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let shown = place.run(&["report", "a.jsonl"]);
    assert_eq!(code(&shown), 0, "{}", stderr(&shown));
    let mut command = place.command(&["report", "/dev/stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&std::fs::read(place.join("a.jsonl")).unwrap()).unwrap();
    drop(pipe);
    let piped = child.wait_with_output().unwrap();
    assert_eq!(code(&piped), 0);
    assert_eq!(stdout(&piped), stdout(&shown));
}

/// There are no reads or writes, so nothing is reported about them. An experiment compares them, so
/// it has nothing to compare.
#[test]
fn trims_alone_are_a_run_of_their_own() {
    let place = Place::in_memory();
    place.prepared("data", 8);
    let load = ["--trim-share", "100%", "--pattern", "sequential", "-b", "64k", "--buffered"];
    let load = [&["data", "--overwrite"], &load[..]].concat();
    let output = place.run(&[&["run"], &load[..], &["--passes", "1"]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let (text, document) = (stdout(&output), place.result());
    assert_has(&text, &["sequential trim 64 KiB", "sequential trims of 64 KiB; closed loop"]);
    assert!(!text.contains("IOPS vary"), "{text}");
    let unfolded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unfolded.contains(" trims per second"), "{unfolded}");
    assert_has(&text, &["OVERWRITES data: nothing", "its trims empty parts of it"]);
    let trial = &document.trials[0];
    assert_eq!(trial.total(None).ios(), 0);
    let trims = trial.upkeep(Upkeep::Trim, |_, _| true);
    assert_eq!((trims.ios(), trims.bytes.0), (128, 8 << 20));
    let codes = || trial.findings.iter().map(|one| one.code.as_str());
    assert!(codes().all(|code| code != "trimmed-reads"), "{:?}", codes().collect::<Vec<_>>());
    let held = std::fs::metadata(place.join("data")).unwrap();
    assert_eq!(held.blocks(), 0, "all of it is a hole");
    // With more in flight than the CPU of a worker explains, there is still nothing to compare.
    let deep = ["run", "data", "--overwrite", "--trim-share", "100%", "--duration", "200ms"];
    let output = place.run(&deep);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let output = place.run(&[&["sweep", "--axis", "queue-depth=1,2", "--yes"], &load[..]].concat());
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert_has(&stderr(&output), &["--trim-share 100%", "compares reads and writes"]);
}

/// The fields of a line of a table. They may be quoted.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            letter => fields.last_mut().unwrap().push(letter),
        }
    }
    fields
}

/// The intervals of each direction and their sums equal the totals of the trials. Names contain
/// commas and remain one field.
#[test]
fn the_series_is_a_table_whose_rows_add_up_to_the_figures() {
    let place = Place::new();
    let load = ["sim:queue,servers=2", "--read-share", "70%", "--warm-up", "0", "--seed", "5"];
    let axis = ["--duration", "1s", "--axis", "queue-depth=1,4", "--csv-series", "s.csv"];
    let output = place.run(&[&["sweep"], &load[..], &axis].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let document = place.result();
    let table = std::fs::read_to_string(place.join("s.csv")).unwrap();
    let mut lines = table.lines().map(fields);
    let heads = lines.next().unwrap();
    let rows: Vec<Vec<String>> = lines.collect();
    let at = |name: &str| heads.iter().position(|head| head == name).unwrap();
    assert!(rows.iter().all(|row| row.len() == heads.len()), "{table}");
    assert_eq!(rows.len(), 2 * 10 * 3);
    let sum = |trial: usize, direction: &str, column: &str| -> u64 {
        let own = rows.iter().filter(|row| {
            row[at("trial")] == trial.to_string() && row[at("direction")] == direction
        });
        own.map(|row| row[at(column)].parse::<u64>().unwrap()).sum()
    };
    for (number, trial) in (1..).zip(&document.trials) {
        let total = trial.total(None);
        assert_eq!(sum(number, "total", "ios"), total.ios());
        assert_eq!(sum(number, "total", "bytes"), total.bytes.0);
        let [reads, writes] = ["read", "write"].map(|direction| sum(number, direction, "ios"));
        assert!(0 < writes && writes < reads && reads + writes == total.ios());
        let row = rows.iter().find(|row| row[at("trial")] == number.to_string()).unwrap();
        assert_eq!(row[at("point")], trial.point.name);
        assert_eq!(row[at("at_queue_depth")], trial.place.coordinates[0].label);
        let is_of_one = |row: &&Vec<String>| row[at("direction")] != "total";
        assert!(rows.iter().filter(is_of_one).all(|row| row[at("failed")].is_empty()));
    }
    // The same output from the result file alone. It does not overwrite an existing file.
    let result = place.names().into_iter().find(|name| name.ends_with(".jsonl")).unwrap();
    let output = place.run(&["report", &result, "--csv-series", "again.csv"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(place.join("again.csv")).unwrap(), table);
    let run = |table: &str| {
        place.run(&[&["run"], &load[..], &SHORT[..2], &["--csv-series", table]].concat())
    };
    let output = run("s.csv");
    assert_ne!(code(&output), 0);
    assert_has(&stderr(&output), &["s.csv"]);
    let output = run("r.csv");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let table = std::fs::read_to_string(place.join("r.csv")).unwrap();
    let rows: Vec<Vec<String>> = table.lines().map(fields).collect();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{table}");
    assert!(rows[1][at("point")].ends_with(", queue depth 32"), "{table}");
}

/// Virtual time does not show how long the user waits.
#[test]
fn a_long_simulated_run_says_before_it_starts_how_long_it_takes_in_real_time() {
    let place = Place::in_memory();
    let output = place.run(&["run", "sim:hdd", "-q", "1", "-d", "30m", "--out", "a.jsonl"]);
    assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
    let said = stdout(&output);
    let (forecast, result) =
        (said.find(" of virtual time, at the pace "), said.find("result  a.jsonl"));
    assert!(forecast.is_some() && forecast < result, "{said}");
    // The result does not contain the trials of the forecast.
    assert_eq!(place.result().trials.len(), 1);
    let output = place.run(&["run", "sim:hdd", "-d", "10s", "--out", "b.jsonl"]);
    assert!(!stdout(&output).contains("real     about"), "{}", stdout(&output));
    // This would be hours of work. It shows a plan and runs nothing.
    let axis = ["sweep", "sim:ssd", "--axis", "queue-depth=1,32", "-d", "200h", "--plan"];
    let output = place.run(&axis);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(&stdout(&output), &["real     about", "of virtual time"]);
}

#[test]
fn trials_that_are_too_many_to_be_drawn_keep_the_distributions_of_batches() {
    let place = Place::new();
    let depths: Vec<String> = (1..=13).map(|depth| depth.to_string()).collect();
    for (points, stretches) in [(12, 30), (13, 20)] {
        let axis = format!("queue-depth={}", depths[..points].join(","));
        let out = format!("{points}.jsonl");
        let words =
            ["sweep", "sim:ssd", "--axis", &axis, "--duration", "3s", "--yes", "--out", &out];
        assert_eq!(code(&place.run(&words)), 0);
        let document = read(&place.join(&out));
        assert_eq!(document.trials.len(), points);
        // Where there are few, a script can read the distributions of whole windows.
        let text = std::fs::read_to_string(place.join(&out)).unwrap();
        assert_eq!(text.contains("\"buckets\":[["), points == 12);
        for trial in &document.trials {
            assert_eq!((trial.series.len(), trial.intervals().count()), (stretches, 30));
            let times = trial.stretches().into_iter().map(|one| one.response_time[0].count());
            assert_eq!(times.sum::<u64>(), trial.total(None).ios());
        }
    }
}
