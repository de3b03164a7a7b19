//! Files of the previous version are read as they were meant then, and a load in a file is a
//! possible load. The last fathom of that version wrote the files in `version-1`, and they are
//! never made again; nor are those in `packed`, of an earlier fathom of this version. What is shown of `loads` was compared with the output of that fathom. Since
//! then it follows the wording of this one, by `UPDATE_GOLDEN=1`.

use std::fs;
use std::path::Path;

use fathom_report::csv;
use fathom_report::document::{self, Document, FORMAT_VERSION, Flow, Line, Trial};
use fathom_report::page::Level;
use fathom_report::terminal::{self, Style};

fn file(name: &str) -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    fs::read_to_string(data.join(name)).unwrap()
}

fn read(text: &str) -> Document {
    document::read(text.as_bytes()).unwrap()
}

fn write(document: &Document) -> String {
    let trials = document.trials.iter().cloned().map(|trial| Line::Trial(Box::new(trial)));
    let header = Line::Header(Box::new(document.header.clone()));
    [header].into_iter().chain(trials).map(|line| line.to_json() + "\n").collect()
}

#[test]
fn a_file_of_version_1_says_what_one_of_this_version_says() {
    for name in ["void", "open", "streams", "interrupted"] {
        let mut old = read(&file(&format!("version-1/{name}.jsonl")));
        assert_eq!(old.header.format_version, 1);
        old.header.format_version = FORMAT_VERSION;
        assert!(old == read(&file(&format!("{name}.jsonl"))), "{name}");
    }
}

#[test]
fn packed_distributions_say_what_coded_ones_do() {
    for name in ["open", "streams"] {
        let text = file(&format!("packed/{name}.jsonl"));
        assert!(text.contains("\"packed\":") && text.contains("\"buckets\":[["));
        assert!(read(&text) == read(&file(&format!("{name}.jsonl"))), "{name}");
    }
}

#[test]
fn every_load_of_version_1_is_shown_as_it_was() {
    let document = read(&file("version-1/loads.jsonl"));
    let style = Style { width: 100, ..Style::default() };
    let text = terminal::document(&document, Level::Full, &style);
    let table = csv::document(&document);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/version-1");
        fs::write(data.join("loads.txt"), &text).unwrap();
        fs::write(data.join("loads.csv"), &table).unwrap();
    }
    assert_eq!(text.trim_end(), file("version-1/loads.txt").trim_end());
    assert_eq!(table, file("version-1/loads.csv"));
}

#[test]
fn every_load_comes_back_from_a_file() {
    let old = read(&file("version-1/loads.jsonl"));
    let written = write(&old);
    assert!(written.contains(r#""ios":{"by_region":["#) && !written.contains(r#""kinds""#));
    assert!(read(&written) == old);
}

/// The problem with the first trial of a file in which a part was replaced.
fn refusal(text: &str, what: &str, by: &str) -> String {
    assert!(text.contains(what), "{what}");
    let changed = text.replacen(what, by, 1);
    document::read(changed.as_bytes()).expect_err(by).to_string()
}

#[test]
fn a_load_that_cannot_be_is_refused_whatever_the_version() {
    let old = file("version-1/loads.jsonl");
    let new = write(&read(&old));
    for (what, by, why) in [
        (r#""share":0.7"#, r#""share":-0.7"#, "share"),
        (r#""share":0.7"#, r#""share":1e300"#, "share"),
        (r#""size_bytes":16384"#, r#""size_bytes":0"#, "block size"),
        (r#""read_share":1.0"#, r#""read_share":1.5"#, "share of reads"),
        (r#""queue_depth":8"#, r#""queue_depth":0"#, "queue depth"),
        (r#""queue_depth":8"#, r#""queue_depth":4294967296"#, "u32"),
        (r#""theta":1.1"#, r#""theta":-1"#, "zipf"),
        (r#""weight":70.0"#, r#""weight":0"#, "weights"),
        (r#""weight":70.0"#, r#""weight":1e305"#, "weights"),
        (r#""begins_iops":1000.0"#, r#""begins_iops":-1"#, "rate"),
        (r#""align_bytes":512"#, r#""align_bytes":0"#, "multiples of 0"),
        (r#""total":4"#, r#""total":0"#, "no worker"),
    ] {
        for text in [&old, &new] {
            let said = refusal(text, what, by);
            assert!(said.contains(why), "{by}: {said}");
        }
    }
    for (text, what, by, why) in [
        (&old, r#""hex":"00ff""#, r#""hex":"0ff""#, "hexadecimal"),
        (&new, r#""pattern":"00ff""#, r#""pattern":"0ff""#, "hexadecimal"),
        (&new, r#""steady_iops":5000.0"#, r#""steady_iops":0"#, "offers"),
        (&old, r#""offered_load_iops":5000.0"#, r#""offered_load_iops":-5"#, "offers"),
    ] {
        let said = refusal(text, what, by);
        assert!(said.contains(why), "{by}: {said}");
    }
}

#[test]
fn what_is_added_up_is_refused_beyond_every_limit() {
    type Spoil = fn(&mut Trial);
    let spoil: [Spoil; 4] = [
        |trial| trial.counters.as_mut().unwrap().cpus[0].user_ns = u64::MAX,
        |trial| trial.counters.as_mut().unwrap().process_kernel_ns = u64::MAX,
        |trial| trial.workers[0].cpu_wait_ns = Some(u64::MAX),
        |trial| {
            for worker in &mut trial.workers {
                let bytes = (1 << 62) - 1;
                worker.cells[0].flush = Some(Flow { bytes, ..Flow::default() });
            }
        },
    ];
    for spoil in spoil {
        let mut document = read(&file("open.jsonl"));
        spoil(&mut document.trials[0]);
        let said = document::read(write(&document).as_bytes()).unwrap_err().to_string();
        assert!(said.contains("a number is beyond every limit"), "{said}");
    }
}
