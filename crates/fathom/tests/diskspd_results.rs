//! Runs command lines of DiskSpd on real files. The tests read their results as users' scripts do:
//! split at the bars, or picked out of the XML by name.

mod common;

use std::fs;
use std::process::Output;

use common::{Place, assert_has, code, stderr, stdout};

/// The result of a run that measured something. Stderr is not a terminal here, so it has only
/// warnings.
fn ran(output: &Output) -> String {
    assert!([0, 4].contains(&code(output)), "{}", stderr(output));
    let told = stderr(output);
    let warnings =
        told.lines().all(|line| line.trim_start_matches("<!-- ").starts_with("warning: "));
    assert!(warnings, "{told}");
    stdout(output)
}

/// The rows of the table under a heading, split at the bars: the threads' rows and the total.
fn table<'a>(text: &'a str, heading: &str) -> (Vec<Vec<&'a str>>, Vec<&'a str>) {
    let lines = text.lines().skip_while(|line| *line != heading).skip(3);
    let rows: Vec<Vec<&str>> = lines
        .take_while(|line| !line.is_empty())
        .filter(|line| !line.starts_with('-'))
        .map(|line| line.split('|').map(str::trim).collect())
        .collect();
    let (total, threads) = rows.split_last().expect("there is a total");
    // "total:   4096 | 1 | ..." has one bar fewer.
    let total = total[0].strip_prefix("total:").map(str::trim);
    let total = std::iter::once(total.expect("the last row is the total"))
        .chain(rows.last().into_iter().flatten().skip(1).copied());
    (threads.to_vec(), total.collect())
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("'{text}' is no number"))
}

/// The text of every element with this name, as a regular expression would find it.
fn values<'a>(xml: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    xml.split(&open).skip(1).map(|rest| rest.split(&close).next().unwrap()).collect()
}

fn sum(xml: &str, name: &str) -> f64 {
    values(xml, name).into_iter().map(number).sum()
}

#[test]
fn the_text_adds_up() {
    let place = Place::new();
    place.prepared("a.dat", 2);
    place.prepared("b.dat", 2);
    let output = place.run(&[
        "diskspd", "-b8K", "-r", "-t2", "-o2", "-W0", "-d1", "-L", "-D100", "-z7", "a.dat", "b.dat",
    ]);
    let text = ran(&output);
    assert!(text.starts_with("\nCommand Line: fathom diskspd -b8K -r"), "{text}");
    assert_has(&text, &["\tpath: 'a.dat'\n", "\nthread count:\t\t4\n", "\navg.| "]);
    let time = text.split("actual test time:\t").nth(1).unwrap().split('s').next().unwrap();
    let (threads, total) = table(&text, "Total IO");
    let ids: Vec<&str> = threads.iter().map(|row| row[0]).collect();
    assert_eq!(ids, ["0", "1", "2", "3"]);
    let files: Vec<&str> = threads.iter().map(|row| row[8]).collect();
    assert_eq!(files, ["a.dat (2MiB)", "a.dat (2MiB)", "b.dat (2MiB)", "b.dat (2MiB)"]);
    let of = |column: usize| threads.iter().map(|row| number(row[column])).sum::<f64>();
    assert!(of(2) > 0.0);
    assert_eq!(of(1), number(total[0]));
    assert_eq!(of(2), number(total[1]));
    assert_eq!(of(1), of(2) * 8192.0);
    // Both are rounded to hundredths.
    let rate = number(total[1]) / number(time);
    assert!((rate / number(total[3]) - 1.0).abs() < 0.02, "{rate}, not {}", total[3]);
    for column in [5, 6, 7] {
        assert!(threads.iter().all(|row| number(row[column]) >= 0.0));
    }
    let (_, written) = table(&text, "Write IO");
    assert_eq!((written[1], written[6]), ("0", "N/A"));
    for heading in [
        "Latency distribution: a.dat",
        "Latency distribution: b.dat",
        "Total latency distribution:",
    ] {
        let rows: Vec<&str> =
            text.lines().skip_while(|line| *line != heading).skip(3).take(15).collect();
        let times: Vec<f64> =
            rows.iter().map(|row| number(row.split('|').nth(1).unwrap().trim())).collect();
        // A response from memory in less than half a microsecond is shown as 0.000 ms.
        assert!(times.is_sorted() && times[0] >= 0.0 && times[14] > 0.0, "{rows:?}");
        assert!(rows[0].starts_with("    min |") && rows[14].starts_with("    max |"), "{rows:?}");
    }
}

#[test]
fn the_xml_adds_up_and_can_be_run_again() {
    let place = Place::in_memory();
    // A file that -c has just created has no data to lose.
    let output = place.run(&[
        "diskspd",
        "-Rxml",
        "-b4K",
        "-c1M",
        "-w50",
        "-t2",
        "-W0",
        "-d1",
        "-L",
        "-D500",
        "a & b.dat",
    ]);
    let xml = ran(&output);
    assert!(xml.starts_with("<Results>\n  <System>\n"), "{xml}");
    assert!(xml.ends_with("</Results>\n"), "{xml}");
    let (profile, result) = xml.split_once("</Profile>").unwrap();
    assert_has(profile, &["<Path>a &amp; b.dat</Path>", "<WriteRatio>50</WriteRatio>"]);
    assert_eq!(values(result, "ThreadCount"), ["2"]);
    assert_eq!(values(result, "Id").split_off(values(result, "CPU").len()), ["0", "1"]);
    assert_eq!(values(result, "Path"), ["a &amp; b.dat"; 2]);
    assert_eq!(sum(result, "FileSize"), 2.0 * 1_048_576.0);
    let (reads, writes) = (sum(result, "ReadCount"), sum(result, "WriteCount"));
    assert!(reads > 0.0 && writes > 0.0);
    assert_eq!(sum(result, "IOCount"), reads + writes);
    assert_eq!(sum(result, "BytesCount"), 4096.0 * (reads + writes));
    assert!(number(values(result, "TestTimeSeconds")[0]) >= 0.99);
    let percentiles = values(result, "Percentile");
    assert_eq!(percentiles.len(), 108);
    for wanted in ["0", "50", "99", "99.9", "99.9999999", "100"] {
        assert!(percentiles.contains(&wanted), "{wanted}");
    }
    assert_eq!(result.matches("<Bucket SampleMillisecond=").count(), 2);
    fs::write(place.join("result.xml"), &xml).unwrap();
    let again = place.run(&["diskspd", "-Rp", "-Xresult.xml"]);
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    let indented: Vec<String> = stdout(&again).lines().map(|line| format!("  {line}\n")).collect();
    assert_has(&xml, &[&indented.concat()]);
}

#[test]
fn threads_that_serve_all_targets_have_a_row_for_each() {
    let place = Place::in_memory();
    place.prepared("a.dat", 1);
    place.prepared("b.dat", 1);
    for (words, noted) in [(&["-F2", "-o4"][..], true), (&["-F2", "-O3"], false)] {
        let rest = ["-b4K", "-W0", "-d1", "a.dat", "b.dat"];
        let quiet = place.run(&[&["diskspd"], words, &rest].concat());
        ran(&quiet);
        let output = place.run(&[&["diskspd", "-v"], words, &rest].concat());
        let text = stdout(&output);
        assert_eq!(stderr(&output).contains("note: -F without -O: "), noted);
        assert_has(&stderr(&output), &["\nresult  "]);
        assert_has(&text, &["\nthread count:\t\t2\n"]);
        let (threads, _) = table(&text, "Total IO");
        let rows: Vec<(&str, &str)> = threads.iter().map(|row| (row[0], row[5])).collect();
        let (a, b) = ("a.dat (1MiB)", "b.dat (1MiB)");
        assert_eq!(rows, [("0", a), ("0", b), ("1", a), ("1", b)]);
        assert!(threads.iter().all(|row| number(row[2]) > 0.0), "{text}");
    }
}

#[test]
fn threads_draw_the_target_of_each_io_by_weight() {
    let place = Place::new();
    place.prepared("a.dat", 1);
    place.prepared("b.dat", 1);
    let target = |path: &str, more: &str| {
        format!(
            "<Target><Path>{path}</Path><BlockSize>4096</BlockSize><Random>4096</Random>{more}\
             </Target>"
        )
    };
    let own = "<Weight>1</Weight><ThreadTargets><ThreadTarget><Thread>0</Thread></ThreadTarget>\
               <ThreadTarget><Thread>2</Thread><Weight>9</Weight></ThreadTarget></ThreadTargets>";
    let profile = format!(
        "<Profile><ResultFormat>text</ResultFormat><TimeSpans><TimeSpan><Duration>1</Duration>\
         <Warmup>0</Warmup><RandSeed>5</RandSeed><ThreadCount>3</ThreadCount>\
         <RequestCount>4</RequestCount><Targets>{}{}</Targets></TimeSpan></TimeSpans></Profile>",
        target("a.dat", "<Weight>3</Weight><MaxFileSize>524288</MaxFileSize>"),
        target("b.dat", own)
    );
    fs::write(place.join("p.xml"), profile).unwrap();
    let text = ran(&place.run(&["diskspd", "-Xp.xml"]));
    let (rows, _) = table(&text, "Total IO");
    let ios = |thread: &str, path: &str| {
        let row = rows.iter().find(|row| row[0] == thread && row[5].starts_with(path));
        row.map(|row| number(row[2]))
    };
    // Thread 0 draws 3 : 1, thread 1 has one target, thread 2 draws 3 : 9.
    assert_eq!(ios("1", "b.dat"), None);
    assert!(ios("1", "a.dat").unwrap() > 0.0);
    for (thread, share) in [("0", 0.75), ("2", 0.25)] {
        let (a, b) = (ios(thread, "a.dat").unwrap(), ios(thread, "b.dat").unwrap());
        // Five standard deviations of a binomial count, plus the I/Os in flight at the end.
        let allowed = 5.0 * f64::sqrt((a + b) * share * (1.0 - share)) + 4.0;
        assert!((a - (a + b) * share).abs() <= allowed, "{thread}: {a} and {b}");
    }
}

#[test]
fn threads_do_what_each_target_asks_for() {
    let place = Place::in_memory();
    place.prepared("data.mdf", 1);
    place.prepared("log.ldf", 1);
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/diskspd/pool.xml");
    fs::copy(profile, place.join("pool.xml")).unwrap();
    let words = ["diskspd", "-Xpool.xml", "-d1", "-W0", "--overwrite", "--out", "r.jsonl"];
    let text = ran(&place.run(&words));
    let (rows, _) = table(&text, "Total IO");
    let size = |row: &&Vec<&str>| number(row[1]) / number(row[2]);
    let of = |path: &'static str| rows.iter().filter(move |row| row[5].starts_with(path));
    assert!(
        of("data.mdf").count() == 3 && of("data.mdf").all(|row| size(&row) == 8192.0),
        "{text}"
    );
    assert!(
        of("log.ldf").count() == 2 && of("log.ldf").all(|row| size(&row) == 65_536.0),
        "{text}"
    );
    let document = common::read(&place.join("r.jsonl"));
    for worker in &document.trials[0].workers {
        let log = worker.cells.iter().find(|cell| cell.target == 1);
        assert!(log.is_none_or(|cell| cell.read.ios == 0 && cell.write.ios > 0));
        let data = worker.cells.iter().find(|cell| cell.target == 0).unwrap();
        let ios = (data.read.ios + data.write.ios) as f64;
        // Five standard deviations of a binomial count, plus the I/Os in flight at the end.
        let allowed = 5.0 * f64::sqrt(ios * 0.21) + 16.0;
        assert!((data.write.ios as f64 - 0.3 * ios).abs() <= allowed, "{ios}");
    }
}

#[test]
fn intervals_may_be_short_or_cut_by_the_end() {
    let place = Place::new();
    place.prepared("a.dat", 1);
    for (bucket, count, last) in [("-D20", 50, "1000"), ("-D300", 4, "1200")] {
        let words = ["diskspd", "-b4K", "-r", "-g500i", bucket, "-d1", "-W0", "-Rxml", "a.dat"];
        let output = place.run(&words);
        let xml = ran(&output);
        let samples: Vec<&str> = xml
            .split("<Bucket SampleMillisecond=\"")
            .skip(1)
            .map(|one| one.split('"').next().unwrap())
            .collect();
        assert_eq!((samples.len(), *samples.last().unwrap()), (count, last), "{bucket}");
        // No I/O is lost or counted twice, whatever the machine does.
        let total =
            |one: &str| number(one.split("Total=\"").nth(1).unwrap().split('"').next().unwrap());
        let iops: f64 = xml.split("<Bucket Sample").skip(1).map(total).sum();
        let width = number(&bucket[2..]) / 1000.0;
        let ios = number(values(&xml, "IOCount")[0]);
        // IOPS are printed as whole numbers.
        assert!((iops * width - ios).abs() <= 0.5 * width * count as f64 + 1e-9, "{iops} {ios}");
    }
}

#[test]
fn time_spans_follow_each_other_and_are_added_up() {
    let place = Place::new();
    place.prepared("a.dat", 1);
    let span = |target: &str| {
        format!(
            "<TimeSpan><Duration>1</Duration><Warmup>0</Warmup><RandSeed>3</RandSeed><Targets>\
             {target}</Targets></TimeSpan>"
        )
    };
    let reads = span("<Target><Path>a.dat</Path><BlockSize>4096</BlockSize></Target>");
    let writes = span(
        "<Target><Path>b.dat</Path><BlockSize>8192</BlockSize><WriteRatio>100</WriteRatio>\
         <FileSize>1048576</FileSize><Random>8192</Random></Target>",
    );
    let profile = format!("<Profile><TimeSpans>{reads}{writes}</TimeSpans></Profile>");
    fs::write(place.join("p.xml"), profile).unwrap();
    let text = ran(&place.run(&["diskspd", "-Xp.xml", "--out", "spans.jsonl"]));
    let spans: Vec<&str> = text.split("Results for timespan ").skip(1).collect();
    assert_eq!(spans.len(), 2);
    let (_, read) = table(spans[0], "Total IO");
    let (_, written) = table(spans[1], "Total IO");
    let totals: Vec<&str> = text.split("\nTotals:\n").nth(1).unwrap().lines().collect();
    let row = |name: &str| {
        let line = totals.iter().find(|line| line.starts_with(name)).unwrap();
        number(line.split('|').nth(2).unwrap().trim())
    };
    assert_eq!(row("read "), number(read[1]));
    assert_eq!(row("write "), number(written[1]));
    assert_eq!(row("total "), number(read[1]) + number(written[1]));
    let document = common::read(&place.join("spans.jsonl"));
    assert_eq!(document.trials.len(), 2);
    assert!(document.conclusion.is_some());
}

/// The offsets of a worker's I/Os in KiB, in the order of issue.
fn walk(table: &common::Table, worker: &str, ios: usize) -> Vec<u64> {
    let both = table.column("worker").zip(table.column("number"));
    let lines = both.zip(table.column("offset_bytes"));
    let mut own: Vec<(u64, u64)> = lines
        .filter(|((of, _), _)| *of == worker)
        .map(|((_, number), offset)| (number.parse().unwrap(), offset.parse().unwrap()))
        .collect();
    own.sort_unstable();
    own.into_iter().map(|(_, offset)| offset >> 10).take(ios).collect()
}

#[test]
fn sequential_threads_start_where_diskspds_do_and_come_round_to_the_base() {
    let place = Place::new();
    place.prepared("a.dat", 1);
    for (name, words, walks) in [
        ("together", &["-b128K", "-t2"][..], [[0, 128, 256, 384], [0, 128, 256, 384]]),
        // The second thread continues from the base, not from its own start.
        ("apart", &["-b128K", "-t2", "-T768K"], [[0, 128, 256, 384], [768, 896, 0, 128]]),
        // With a stride, it uses only the places that its steps reach.
        (
            "strided",
            &["-b64K", "-s256K", "-t2", "-T576K"],
            [[0, 256, 512, 768], [576, 832, 64, 320]],
        ),
        (
            "based",
            &["-b64K", "-B512K", "-t2", "-T384K"],
            [[512, 576, 640, 704], [896, 960, 512, 576]],
        ),
    ] {
        let trace = format!("{name}.csv");
        // At a low rate, so that the trace is short. The order does not depend on the rate.
        let rest = ["-o1", "-g20i", "-W0", "-d1", "--trace", &trace, "a.dat"];
        ran(&place.run(&[&["diskspd"], words, &rest].concat()));
        let table = common::Table::read(&place.join(&trace));
        assert_eq!([walk(&table, "0", 4), walk(&table, "1", 4)], walks, "{name}");
    }
}

#[test]
fn a_file_that_a_run_created_is_written_again_and_somebodys_is_not() {
    let place = Place::new();
    let line = ["diskspd", "-c1M", "-w100", "-b4K", "-W0", "-d1", "-g50i", "deep/er/io.dat"];
    for _ in 0..2 {
        ran(&place.run(&line));
    }
    let path = place.join("deep/er/io.dat");
    let mut data = fs::read(&path).unwrap();
    data[..5].copy_from_slice(b"mine!");
    fs::write(&path, &data).unwrap();
    let output = place.run(&line);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert_has(&stderr(&output), &["the load writes to it (-w100)", "allow it with --overwrite"]);
    assert_eq!(fs::read(&path).unwrap(), data);
}

#[test]
fn both_outputs_in_one_file_are_still_a_result() {
    let place = Place::new();
    place.prepared("a.dat", 1);
    // I/O through the page cache, which is suspect and causes many notes.
    let command = format!(
        "cd {} && {} diskspd -Rxml -r -b4K -w0 -t2 -O8 -x -W0 -d1 a.dat > both.xml 2>&1",
        place.join("").display(),
        env!("CARGO_BIN_EXE_fathom")
    );
    let status = std::process::Command::new("sh").args(["-c", &command]).status().unwrap();
    assert!([Some(0), Some(4)].contains(&status.code()), "{status}");
    let both = fs::read_to_string(place.join("both.xml")).unwrap();
    let comments = both.lines().take_while(|line| line.starts_with("<!-- warning: "));
    let comments: Vec<&str> = comments.collect();
    assert!(!comments.is_empty() && comments.iter().all(|line| line.ends_with(" -->")), "{both}");
    assert!(both.lines().nth(comments.len()).unwrap().starts_with("<Results>"), "{both}");
    assert_eq!(both.lines().filter(|line| line.contains("<!--")).count(), comments.len());
    let cpus = both.split_once("<CpuUtilization>").unwrap().1;
    for element in ["Socket", "Node", "Core"] {
        assert_eq!(values(cpus, element).len(), values(cpus, "CPU").len(), "{element}");
    }
}

#[test]
fn what_must_not_or_cannot_run_is_refused_before_anything_is_written() {
    let place = Place::new();
    fs::write(place.join("kept.dat"), "the only copy").unwrap();
    for (words, told) in [
        (&["-w100", "kept.dat"][..], "allow it with --overwrite"),
        (&["-c1M", "kept.dat"], "it exists and does not fit"),
        (&["-b4K", "none.dat"], "none.dat: it does not exist: create it with -c"),
        (&["-b64K", "kept.dat"], "-b64K: it is larger than the region of 13 B in kept.dat"),
        (&["--json", "kept.dat"], "stdout has DiskSpd's result"),
        (&["-w50", "-Z1T", "-c1M", "new.dat"], "more than half of the memory of "),
    ] {
        let output = place.run(&[&["diskspd", "-W0", "-d1"], words].concat());
        assert!([2, 3].contains(&code(&output)), "{words:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{words:?}");
        assert_has(&stderr(&output), &[told]);
    }
    assert_eq!(place.names(), ["kept.dat"]);
    assert_eq!(fs::read_to_string(place.join("kept.dat")).unwrap(), "the only copy");
}

/// The intended starts of the I/Os of these phases, in nanoseconds from the start of the window,
/// sorted.
fn starts(trace: &str, wanted: &[&str]) -> Vec<i64> {
    let mut lines = trace.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let place = |name: &str| names.iter().position(|one| *one == name).unwrap();
    let (start, phase) = (place("start_ns"), place("phase"));
    let lines = lines.filter(|line| wanted.contains(&line[phase]));
    let mut found: Vec<i64> = lines.map(|line| line[start].parse().unwrap()).collect();
    found.sort_unstable();
    found
}

#[test]
fn load_goes_on_in_the_cool_down() {
    let place = Place::in_memory();
    place.prepared("a.dat", 1);
    let words = ["diskspd", "-b4K", "-r", "-o1", "-W0", "-d1", "-C1", "--trace", "t.csv", "a.dat"];
    let text = ran(&place.run(&words));
    assert_has(&text, &["\tcool down time: 1s\n", "\nactual test time:\t1.00s\n"]);
    let trace = fs::read_to_string(place.join("t.csv")).unwrap();
    let cooled = starts(&trace, &["cool-down"]);
    assert!(1_000_000_000 <= cooled[0] && cooled[0] < 2_000_000_000, "{}", cooled[0]);
    let (_, total) = table(&text, "Total IO");
    assert_eq!(number(total[1]), starts(&trace, &["window"]).len() as f64);
}

#[test]
fn bursts_pause_with_and_without_a_limit() {
    let place = Place::in_memory();
    place.prepared("a.dat", 1);
    let trace = |words: &[&str], name: &str| {
        let rest = ["-b4K", "-r", "-W0", "-d1", "--trace", name, "--out"];
        let out = format!("{name}.jsonl");
        ran(&place.run(&[&["diskspd"], words, &rest, &[&out, "a.dat"]].concat()));
        starts(&fs::read_to_string(place.join(name)).unwrap(), &["window", "after"])
    };
    let closed = trace(&["-o1", "-i5", "-j100"], "closed.csv");
    assert!((5..=50).contains(&closed.len()), "{}", closed.len());
    for burst in closed.chunks(5).collect::<Vec<_>>().windows(2) {
        let (last, next) = (burst[0][4], burst[1][0]);
        // If the machine delayed a worker between looking at the clock and submitting, it rested
        // less.
        assert!(next - last >= 50_000_000, "{}", next - last);
    }
    // At 200 per second an I/O falls due every 5 ms: four in a pause of 20 ms, and the fifth at its
    // due time.
    let open = trace(&["-o4", "-g200i", "-i5", "-j20"], "open.csv");
    let expected = |number: usize| {
        let due = number as i64 * 5_000_000;
        match number / 5 * 5 {
            0 => due,
            first => due.max((first as i64 - 1) * 5_000_000 + 20_000_000),
        }
    };
    assert!(!open.is_empty());
    for (number, start) in open.iter().enumerate() {
        assert!((start - expected(number)).abs() <= 1, "{number}: {start}");
    }
}

#[test]
fn mapped_files_run_and_say_what_they_are() {
    let place = Place::new();
    place.prepared("a.dat", 2);
    let before = fs::read(place.join("a.dat")).unwrap();
    let words = ["diskspd", "-b4K", "-r", "-o2", "-t2", "-w50", "-Sm", "-Nv", "-fr", "-W0", "-d5"];
    let rest = ["-L", "--overwrite", "--out", "r.jsonl", "a.dat"];
    let text = ran(&place.run(&[&words[..], &rest[..]].concat()));
    let (threads, total) = table(&text, "Write IO");
    assert_eq!(threads.len(), 2);
    assert!(number(total[1]) > 0.0);
    assert_ne!(fs::read(place.join("a.dat")).unwrap(), before);
    let document = common::read(&place.join("r.jsonl"));
    let trial = &document.trials[0];
    let access = trial.point.streams[0].access;
    assert!(access.mapped && access.is_durable(), "{access:?}");
    assert_eq!(trial.workers.iter().map(|worker| worker.errors.count).sum::<u64>(), 0);
}
