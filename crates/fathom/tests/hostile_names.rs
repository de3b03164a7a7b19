//! Names that would control the terminal, forge lines of a report, or run as a formula. Anyone who
//! makes a file may choose its name, and fathom runs as root.

mod common;

use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use common::{Place, assert_has, code, read, stderr, stdout};

/// Sets a title, hides the text after it, clears the screen with 8-bit codes, forges a line, and
/// reverses letters.
const NAME: &str = "=1+1\u{1b}]0;title\u{7}\u{1b}[8m\u{9b}2J\nerror: forged\r\t\u{202e}";
/// The name as it is shown.
const SHOWN: &str = r"=1+1\x1b]0;title\x07\x1b[8m\x9b2J\nerror: forged\r\t\u{202e}";
const SHORT: [&str; 4] = ["--duration", "100ms", "--warm-up", "0"];

/// Fails if the text contains a control sequence for the terminal, or a line that only a newline in
/// a name can make.
fn assert_harmless(text: &str, what: &str) {
    let steers = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
    assert!(!text.contains(steers), "{what}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{what}: {text}");
}

#[test]
fn no_command_lets_a_name_steer_the_terminal_or_forge_a_line() {
    let place = Place::new();
    let file = place.prepared("data", 8);
    symlink(&file, place.join(NAME)).unwrap();
    std::fs::write(place.join("toml"), format!("read-share = {NAME:?}\n")).unwrap();
    std::fs::write(place.join("\u{1b}[8m\n.toml"), "x = '\u{1b}[8m\u{9b}2J'\n").unwrap();
    let missing = format!("missing{NAME}");
    let commands: &[&[&str]] = &[
        &["run", NAME],
        &["run", &missing],
        &["run", NAME, "--read-share", "0"],
        &["run", NAME, "--size", NAME],
        &["run", NAME, "--block-size", NAME, "--workload", NAME],
        &["run", "data", "--workload", "toml"],
        &["run", "data", "--workload", "\u{1b}[8m\n.toml"],
        &["run", "data", "--payload", &missing, "--read-share", "0", "--overwrite"],
        &["plan", NAME],
        &["quick", NAME],
        &["quick", &missing],
        &["inspect", NAME],
        &["inspect", &missing],
        &["sweep", NAME, "--vary", "queue-depth=1,2"],
        &["sweep", NAME, "--vary", NAME],
        &["peak", NAME, "--plan"],
        &["map", NAME, "--plan"],
        &["study", "access-mix", NAME, "--plan"],
        &["study", NAME],
        &["prepare", NAME, "--size", "8m"],
        &["prepare", &missing, "--size", "0"],
        &["report", NAME],
        &["report", &missing],
        &["resume", &missing],
        &["import", NAME],
        &["export", &missing],
        &["workloads", NAME],
        &["diskspd", "-d1", "-W0", NAME],
        &["diskspd", "-d1", "-W0", &missing],
        &["diskspd", "-Rp", NAME],
        &["diskspd", "-Rpxml", NAME],
        &["diskspd", "-Rxml", "-d1", "-W0", NAME],
        &["diskspd", &format!("-X{NAME}")],
        &["diskspd", &format!("--x{NAME}"), "data"],
        &["diskspd", &format!("-{NAME}")],
        &[NAME],
        &["run", &format!("--x{NAME}")],
        &["run", "data", "--json", "--out", &format!("{NAME}.jsonl")],
        &["run", NAME, "--json", "--out", "json"],
    ];
    for (number, args) in commands.iter().enumerate() {
        let mut args = args.to_vec();
        let is_short = ["run", "quick", "sweep"].contains(&args[0]) && args.len() > 1;
        if is_short && args.get(2).is_none_or(|word| *word != "--size") {
            args.extend(SHORT);
        }
        let out = format!("out{number}");
        if is_short && !args.contains(&"--out") {
            args.extend(["--out", &out]);
        }
        let output = place.run(&args);
        let both = stdout(&output) + &stderr(&output);
        assert!(!both.contains("mistake in fathom"), "{args:?}: {both}");
        assert!(!both.is_empty(), "{args:?}");
        assert_harmless(&both, &format!("{args:?}"));
    }
    // In the document the name is data, character for character, with only the escapes of JSON.
    let line = std::fs::read_to_string(place.join("json")).unwrap();
    assert_harmless(&line, "JSON");
    assert_eq!(read(&place.join("json")).header.targets[0].name, NAME);
}

#[test]
fn a_name_is_shown_with_escapes_in_messages_and_reports() {
    let place = Place::new();
    symlink(place.prepared("data", 8), place.join(NAME)).unwrap();
    let output = place.run(&[&["run", NAME, "--out", "r"], &SHORT[..]].concat());
    // Lines are wrapped where a long name does not fit; nothing else changes.
    let flat = |text: &str| text.split_whitespace().collect::<String>();
    let shown = flat(SHOWN);
    assert!(flat(&stdout(&output)).contains(&shown), "{}", stdout(&output));
    let output = place.run(&["run", NAME, "--read-share", "0"]);
    assert_eq!(code(&output), 3);
    assert_has(&stderr(&output), &[SHOWN, "--overwrite"]);
    assert_eq!(stderr(&output).lines().count(), 1);
    let output = place.run(&["run", "data", &format!("--x{}", &NAME[1..])]);
    assert_eq!(code(&output), 2);
    assert_has(&stderr(&output), &[&SHOWN[1..], "Usage"]);
}

#[test]
fn a_name_is_no_formula_in_a_table_or_a_trace() {
    let place = Place::new();
    let file = place.prepared("data", 8);
    for (number, name) in ["=1+1", "+1", "@SUM(1)", "\t=1", "-1+1"].into_iter().enumerate() {
        symlink(&file, place.join(name)).unwrap();
        let outs = ["out", "csv", "series", "trace"].map(|kind| format!("{number}.{kind}"));
        let [out, csv, series, trace] = outs.each_ref().map(String::as_str);
        let target = format!("./{name}");
        let outputs =
            ["--out", out, "--csv", csv, "--csv-series", series, "--trace", trace, "--", &target];
        let output = place.run(&[&["run"], &SHORT[..], &outputs].concat());
        assert!([0, 4].contains(&code(&output)), "{}", stderr(&output));
        // The name as in a result from another machine, without the folder that keeps it from being
        // an option or a formula.
        let text = std::fs::read_to_string(place.join(out)).unwrap();
        let json = serde_json::to_string(name).unwrap();
        let typed = serde_json::to_string(&target).unwrap();
        std::fs::write(place.join("bare"), text.replace(&typed, &json)).unwrap();
        let again = format!("{number}.again");
        let output = place.run(&["report", "bare", "--csv", &again]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        for table in [csv, series, trace, &again] {
            let text = std::fs::read_to_string(place.join(table)).unwrap();
            for field in text.split(['\n', ',']) {
                let field = field.trim_start_matches('"');
                let is_number = field.parse::<f64>().is_ok();
                let begins = field.starts_with(['=', '+', '-', '@', '\t']);
                assert!(!begins || is_number && !field.starts_with('+'), "{table}: {field:?}");
            }
        }
        let text = std::fs::read_to_string(place.join(&again)).unwrap();
        let shown = name.replace('\t', "\\t");
        assert!(text.contains(&format!("'{shown}")), "{name:?}: {text}");
    }
}

#[test]
fn on_a_terminal_with_color_a_name_steers_nothing_either() {
    let place = Place::new();
    symlink(place.prepared("data", 8), place.join(NAME)).unwrap();
    let program = env!("CARGO_BIN_EXE_fathom");
    for words in [
        "run \"$NAME\" --duration 200ms --warm-up 0",
        "quick \"$NAME\" --duration 200ms --warm-up 0",
        "run \"$NAME\" --read-share 0",
        "run data \"--x${NAME:1}\"",
        "run \"$NAME\" --size \"$NAME\"",
    ] {
        let output = Command::new("script")
            .args(["-qec", &format!("stty cols 200; exec {program} {words}"), "/dev/null"])
            .env("NAME", NAME)
            .env("TERM", "xterm")
            .env("SHELL", "/bin/bash")
            .env_remove("NO_COLOR")
            .current_dir(place.path())
            .stdin(Stdio::null())
            .output();
        let Ok(output) = output else {
            eprintln!("skipped: there is no `script` to make a terminal");
            return;
        };
        let text = stdout(&output);
        let has_color = text.contains("\u{1b}[");
        let is_refused = words.contains("--read-share") || words.contains("--size");
        assert!(has_color || is_refused, "it is a terminal: {text:?}");
        for steers in
            ["\u{1b}]0;title", "\u{1b}[8m", "\u{9b}", "\u{7}", "\nerror: forged", "\u{202e}"]
        {
            assert!(!text.contains(steers), "{words}: {steers:?} in {text:?}");
        }
    }
}
