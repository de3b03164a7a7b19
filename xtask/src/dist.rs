//! `cargo xtask dist`: everything that is distributed, in one folder. The program is fully static, so
//! that it runs on any Linux of its architecture and in an empty container. It writes its own manual
//! pages and completions, which come from the command line's one definition.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

/// The folder, if none is named. It is made anew each time.
const USUAL: &str = "target/dist";
/// The program has to stay below this size.
const SIZE_MAX: usize = 12_000_000;
/// The shells, and the file that each looks for.
const SHELLS: [(&str, &str); 3] =
    [("bash", "fathom.bash"), ("zsh", "_fathom"), ("fish", "fathom.fish")];

/// The compiler's own linker needs no C compiler for another architecture. It keeps one of several
/// functions that are alike, and packs the relocations: together 2 % of the file. With
/// settings of its own for the last crate, Cargo does not tell it of the profile's `strip`: the names
/// would be 12 % of the file.
const LINKING: [&str; 5] = [
    "linker=rust-lld",
    "linker-flavor=ld.lld",
    "link-arg=--icf=all",
    "link-arg=--pack-dyn-relocs=relr",
    "link-arg=--strip-all",
];

/// Makes it.
///
/// # Errors
///
/// When the folder is not empty, the target of the compiler is missing, or the program is not what it
/// has to be.
pub fn make(root: &Path, named: Option<&Path>) -> Result<(), String> {
    let folder = named.map_or_else(|| root.join(USUAL), Path::to_path_buf);
    if named.is_none() && folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| told(&folder, &error))?;
    }
    if fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(format!("{}: it is not empty: name an empty folder", folder.display()));
    }
    let built = build(root)?;
    let bytes = fs::read(&built).map_err(|error| told(&built, &error))?;
    check(&bytes)?;
    for inner in ["completions", "man1"] {
        fs::create_dir_all(folder.join(inner)).map_err(|error| told(&folder, &error))?;
    }
    let program = folder.join("fathom");
    for (from, to) in [(&built, &program), (&root.join("LICENSE"), &folder.join("LICENSE"))] {
        fs::copy(from, to).map_err(|error| told(to, &error))?;
    }
    generate(&program, &folder)?;
    let sums = checksums(&folder)?;
    let place = folder.join("SHA256SUMS");
    fs::write(&place, &sums).map_err(|error| told(&place, &error))?;
    println!("{}: static, {:.1} MB", program.display(), bytes.len() as f64 / 1e6);
    println!("{}: {} files", place.display(), sums.lines().count());
    Ok(())
}

fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Builds the program for the static C library, musl, and returns its place.
fn build(root: &Path) -> Result<PathBuf, String> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let asked =
        Command::new(rustc).args(["--print", "target-libdir", "--target", &target]).output();
    let library = asked.map_err(|error| format!("rustc could not be started: {error}"))?;
    if !Path::new(String::from_utf8_lossy(&library.stdout).trim()).is_dir() {
        return Err(format!("{target}: the compiler lacks it: run `rustup target add {target}`"));
    }
    let status = crate::cargo()
        .args(["rustc", "--locked", "--profile", "static", "--target", &target])
        .args(["--package", "fathom", "--bin", "fathom", "--"])
        .args(LINKING.iter().flat_map(|option| ["-C", option]))
        .current_dir(root)
        .status()
        .map_err(|error| format!("cargo could not be started: {error}"))?;
    if !status.success() {
        return Err("fathom could not be built".to_owned());
    }
    let builds = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    Ok(builds.join(target).join("static/fathom"))
}

/// Refuses a program that is too large, or that needs a library of the system.
fn check(program: &[u8]) -> Result<(), String> {
    if program.len() >= SIZE_MAX {
        let size = program.len();
        return Err(format!("fathom: it has {size} bytes: at most {SIZE_MAX} are allowed"));
    }
    match is_static(program) {
        Some(true) => Ok(()),
        Some(false) => Err("fathom: it needs a dynamic linker: link it statically".to_owned()),
        None => Err("fathom: it is no ELF file of 64 bits: build it for Linux".to_owned()),
    }
}

/// Whether a program runs without a dynamic linker: no header of it names one. Unknown if it is no
/// 64-bit little-endian ELF file.
fn is_static(program: &[u8]) -> Option<bool> {
    // The type of the header that names the linker, in the ELF specification: PT_INTERP.
    const INTERPRETER: u32 = 3;
    program.strip_prefix(b"\x7fELF\x02\x01")?;
    let number = |at: usize| Some(u16::from_le_bytes(*program.get(at..)?.first_chunk()?));
    let start = u64::from_le_bytes(*program.get(32..)?.first_chunk()?);
    let (size, count) = (usize::from(number(54)?), usize::from(number(56)?));
    let first = usize::try_from(start).ok()?;
    let mut found = true;
    for at in (0..count).map(|index| first + index * size) {
        let kind = u32::from_le_bytes(*program.get(at..)?.first_chunk()?);
        found &= kind != INTERPRETER;
    }
    Some(found)
}

/// Lets the program write its pages and completions.
fn generate(program: &Path, folder: &Path) -> Result<(), String> {
    let program = program.canonicalize().map_err(|error| told(program, &error))?;
    let run = |words: &[&std::ffi::OsStr]| {
        let output = Command::new(&program).args(words).output();
        let output = output.map_err(|error| told(&program, &error))?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    };
    run(&["man".as_ref(), folder.join("man1").as_os_str()])?;
    for (shell, file) in SHELLS {
        let text = run(&["completions".as_ref(), shell.as_ref()])?;
        let place = folder.join("completions").join(file);
        fs::write(&place, text).map_err(|error| told(&place, &error))?;
    }
    Ok(())
}

/// A line for each file below a folder, in the form that `sha256sum --check` reads.
fn checksums(folder: &Path) -> Result<String, String> {
    let mut files = Vec::new();
    list(folder, &mut files).map_err(|error| told(folder, &error))?;
    files.sort();
    let mut lines = String::new();
    for path in files {
        let bytes = fs::read(&path).map_err(|error| told(&path, &error))?;
        for byte in Sha256::digest(&bytes) {
            write!(lines, "{byte:02x}").expect("a string takes every byte");
        }
        let name = path.strip_prefix(folder).unwrap_or(&path);
        writeln!(lines, "  {}", name.display()).expect("a string takes every byte");
    }
    Ok(lines)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => list(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of this test, which is removed with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_program_is_static_if_no_header_names_a_linker() {
        // A test is linked dynamically. Without the header that names the linker it would be static.
        let mut program = fs::read("/proc/self/exe").unwrap();
        assert_eq!(is_static(&program), Some(false));
        let first = u64::from_le_bytes(*program[32..].first_chunk().unwrap()) as usize;
        let size = usize::from(program[54]);
        for at in (0..usize::from(program[56])).map(|index| first + index * size) {
            if program[at..at + 4] == [3, 0, 0, 0] {
                program[at] = 0;
            }
        }
        assert_eq!(is_static(&program), Some(true));
        assert_eq!(is_static(b"#!/bin/sh"), None);
        assert_eq!(is_static(&program[..70]), None);
    }

    #[test]
    fn a_program_that_is_too_large_is_refused() {
        assert!(check(&vec![0; SIZE_MAX]).unwrap_err().contains("12000000 bytes"));
        assert!(check(b"#!/bin/sh").unwrap_err().contains("no ELF"));
    }

    #[test]
    fn checksums_are_those_of_sha256sum() {
        let folder = Folder::new("checksums");
        fs::create_dir(folder.0.join("man1")).unwrap();
        fs::write(folder.0.join("b"), "abc").unwrap();
        fs::write(folder.0.join("man1/a"), "").unwrap();
        assert_eq!(
            checksums(&folder.0).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b\n\
             e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  man1/a\n"
        );
    }

    #[test]
    fn a_folder_with_files_is_not_touched() {
        let folder = Folder::new("folder");
        fs::write(folder.0.join("mine"), "mine").unwrap();
        let error = make(Path::new("."), Some(&folder.0)).unwrap_err();
        assert!(error.contains("not empty") && folder.0.join("mine").exists(), "{error}");
    }
}
