//! What is installed beside the program: manual pages, and what shells complete. Both come from the
//! command line's definition.

mod common;

use std::process::Command;

use common::{Place, assert_has, code, stderr, stdout};

/// The page as `man` would show it, roughly: without the escapes of roff.
fn plain(page: &str) -> String {
    let text = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "");
    text.replace("\\fI", "").replace("\\ ", " ")
}

#[test]
fn every_command_has_a_manual_page_with_its_options_and_examples() {
    let place = Place::new();
    let output = place.run(&["man", "man1"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let pages = common::names(&place.join("man1"));
    assert_eq!(stdout(&output), format!("{} pages in man1\n", pages.len()));
    let help = stdout(&place.run(&["--help"]));
    let (_, listed) = help.split_once("\nCommands:\n").unwrap();
    let listed = listed.lines().take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.split_whitespace().next());
    for name in names.filter(|name| *name != "help") {
        assert!(pages.contains(&format!("fathom-{name}.1")), "{name}: {pages:?}");
    }
    let read = |name: &str| plain(&std::fs::read_to_string(place.join("man1").join(name)).unwrap());
    assert_has(&read("fathom.1"), &["fathom-run(1)", "Exit codes:", "fathom prepare test.dat"]);
    assert_has(&read("fathom-run.1"), &["--queue-depth", "--trace", "fathom run test.dat -q 32"]);
    let map = read("fathom-study-latency-map.1");
    assert_has(&map, &["--exhaustive", "--destroy /dev/nvme0n1", "Diskplorer"]);
    assert_has(&read("fathom-diskspd.1"), &["--map", "ARGS", "-Rtext"]);
    for page in &pages {
        assert!(read(page).starts_with(".ie"), "{page} is no manual page");
    }
    // Pages that are there are not replaced.
    let output = place.run(&["man", "man1"]);
    assert_eq!(code(&output), 5);
    assert_has(&stderr(&output), &["man1/fathom.1", "exists"]);
}

/// What bash completes at the end of these words.
fn completed(place: &Place, script: &str, words: &[&str]) -> Vec<String> {
    let last = words.last().unwrap();
    let before = words[words.len() - 2];
    let list = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    std::fs::write(place.join("fathom.bash"), script).unwrap();
    let ask = format!(
        "source ./fathom.bash; COMP_WORDS=({list}); COMP_CWORD={}; _fathom fathom '{last}' '{before}'; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.len() - 1
    );
    let mut shell = Command::new("bash");
    let output = shell.args(["--norc", "-c", &ask]).current_dir(place.path()).output().unwrap();
    let mut found: Vec<String> = stdout(&output).lines().map(ToOwned::to_owned).collect();
    found.sort();
    found
}

#[test]
fn shells_complete_commands_studies_and_options() {
    let place = Place::new();
    let script = |shell: &str| {
        let output = place.run(&["completions", shell]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stdout(&output)
    };
    let bash = script("bash");
    assert_eq!(completed(&place, &bash, &["fathom", "swe"]), ["sweep"]);
    let rates = completed(&place, &bash, &["fathom", "run", "--rat"]);
    assert_eq!(rates, ["--rate", "--rated-bandwidth", "--rated-iops"]);
    assert_eq!(completed(&place, &bash, &["fathom", "study", "lat"]), ["latency-map"]);
    assert_eq!(completed(&place, &bash, &["fathom", "run", "--arrivals", "po"]), ["poisson"]);
    let zsh = script("zsh");
    assert!(zsh.starts_with("#compdef fathom\n"), "{zsh}");
    assert_has(&zsh, &["--queue-depth=", "latency-map", "--destroy-in-use"]);
    assert_has(&script("fish"), &["complete -c fathom", "-l queue-depth", "latency-map"]);
    let output = place.run(&["completions", "csh"]);
    assert_eq!(code(&output), 2);
    assert_has(&stderr(&output), &["csh", "bash", "zsh", "fish"]);
}
