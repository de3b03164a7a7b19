//! Tests what a user of DiskSpd sees from `fathom diskspd`.

mod common;

use std::fs;

use common::{Place, assert_has, code, stderr, stdout};

#[test]
fn a_command_line_is_printed_as_what_it_resolves_to() {
    let place = Place::new();
    let output = place.run(&["diskspd", "-b4K", "-r", "-z7", "-Sh", "-Rp", r"G:\t\io.dat"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_has(
        &stdout(&output),
        &[
            r"Command Line: fathom diskspd -b4K -r -z7 -Sh -Rp 'G:\t\io.dat'",
            "\trandom seed: 7\n",
            "\t\tusing random I/O (alignment: 4KiB)\n",
        ],
    );
    assert_has(
        &stderr(&output),
        &["warning: it cannot run here: ", "say so with --map G:=/mnt/DRIVE"],
    );
    assert!(place.names().is_empty(), "nothing runs, and nothing is written");
}

#[test]
fn fathoms_own_options_stand_before_and_behind() {
    let place = Place::new();
    for words in [
        ["diskspd", "--map", "G:=/mnt/g", "-Rp", "-v", r"G:\io.dat"],
        ["diskspd", "-v", "-Rp", r"G:\io.dat", "--map", "G:=/mnt/g"],
    ] {
        let output = place.run(&words);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert_has(&stderr(&output), &[r"note: G:\io.dat is /mnt/g/io.dat here"]);
    }
    let output = place.run(&["diskspd", "--map=G:", "-Rp", "io.dat"]);
    assert_eq!(code(&output), 2);
    assert_has(&stderr(&output), &["error: --map G:: it has no =: name both sides"]);
    let output = place.run(&["diskspd", "--mop=G:", "-Rp", "io.dat"]);
    assert_eq!(code(&output), 2);
    assert_has(&stderr(&output), &["--map"]);
}

#[test]
fn a_printed_profile_is_a_profile() {
    let place = Place::new();
    let printed = place.run(&["diskspd", "-Rpxml", "-b4K", "-rs30", "-w10", "-g5i", "a & b.dat"]);
    assert_eq!(code(&printed), 0, "{}", stderr(&printed));
    assert_eq!(stderr(&printed), "", "a note is no warning");
    fs::write(place.join("p.xml"), &printed.stdout).unwrap();
    let again = place.run(&["diskspd", "-Rp", "-Xp.xml"]);
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    assert_eq!(stdout(&again), stdout(&printed));
}

#[test]
fn what_cannot_be_is_refused_before_anything_happens() {
    let place = Place::new();
    fs::write(place.join("p.xml"), "<Profile>\n  <Foo/>\n</Profile>").unwrap();
    for (words, told) in [
        (&["-w", "30", "io.dat"][..], "error: -w 30: values are glued on: type -w30"),
        (&["-Rp", "-n", "-a0", "io.dat"], "error: -n: it switches off what -a0 lists"),
        (&["-Xp.xml"], "error: p.xml:2:3: <Foo>: <Profile> has no such element"),
        (
            &["-Xnone.xml"],
            "error: -Xnone.xml: none.xml: it cannot be read (No such file or directory)",
        ),
        (&[r"-XC:\p.xml"], r"error: C:\p.xml: this is a path on a drive of Windows"),
        (&["-X."], "error: -X.: .: it is a folder"),
    ] {
        let output = place.run(&[&["diskspd"], words].concat());
        assert_eq!((code(&output), stdout(&output).as_str()), (2, ""), "{words:?}");
        assert_has(&stderr(&output), &[told]);
    }
    assert_eq!(place.names(), ["p.xml"]);
}

#[test]
fn help_is_shown_and_the_command_is_listed() {
    let place = Place::new();
    for words in [&["diskspd", "--help"][..], &["diskspd", "-?"], &["diskspd", "-b4K", "/?"]] {
        let output = place.run(words);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert_has(&stdout(&output), &["--map <FROM=TO>", "--overwrite", "--out <FILE>", "-Rp"]);
        let help = stdout(&output);
        for letter in "abBcCdDefFghiIjlLnNoOpPrRsStTvwWxXyzZ:".chars() {
            assert!(help.contains(&format!("-{letter}")), "-{letter} is not listed");
        }
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
    }
    assert_eq!(code(&place.run(&["diskspd"])), 2);
    assert_has(&stdout(&place.run(&["--help"])), &["  diskspd "]);
}

#[test]
fn a_link_named_diskspd_is_its_front_door() {
    let place = Place::new();
    let link = place.join("diskspd");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_fathom"), &link).unwrap();
    let output = std::process::Command::new(&link).args(["-Rp", "-b4K", "-z7", "io.dat"]).output();
    let output = output.unwrap();
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
    assert_has(&stdout(&output), &["Command Line: fathom diskspd -Rp -b4K -z7 io.dat"]);
}
