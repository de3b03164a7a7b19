//! Helpers of the tests of the built binary: a folder, a process that can be waited for, signaled
//! and killed, and the table of a trace.

#![expect(dead_code, reason = "each test binary uses its part of this")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};

use fathom_report::document::{self, Document};
use tempfile::TempDir;

/// The file of most examples, and those of the database in `examples/database.toml`.
const NAMED: [(&str, u64); 10] = [
    ("test.dat", 16),
    ("data/db/users.dat", 16),
    ("data/db/users-1.dat", 16),
    ("data/db/users-2.dat", 16),
    ("data/db/history.dat", 16),
    ("data/db/history-1.dat", 16),
    ("data/db/history-2.dat", 16),
    ("data/db/results.dat", 16),
    ("data/db/staging.dat", 16),
    ("data/log/redo.dat", 16),
];

/// A folder in which fathom runs. The folder is removed with the test.
pub struct Place {
    folder: TempDir,
}

impl Place {
    /// On the file system of the build, which is more often a real one than that of /tmp.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap() }
    }

    /// In memory if there is such a folder. Tests of many short runs would otherwise wait for a
    /// disk that others use.
    pub fn in_memory() -> Self {
        match tempfile::tempdir_in("/dev/shm") {
            Ok(folder) => Self { folder },
            Err(_) => Self::new(),
        }
    }

    /// With stand-ins for the targets that pages and examples name: those of [`NAMED`], and these.
    /// Their sizes are in MiB, and nothing was written to them.
    pub fn with_stand_ins(others: &[(&str, u64)]) -> Self {
        let place = Self::new();
        for (name, mib) in NAMED.iter().chain(others) {
            let path = place.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::File::create(path).unwrap().set_len(mib << 20).unwrap();
        }
        place
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// fathom with these arguments, in this folder.
    pub fn command(&self, args: &[&str]) -> Command {
        fathom_in(self.path(), args)
    }

    /// Runs fathom to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The names of everything in this folder, sorted.
    pub fn names(&self) -> Vec<String> {
        names(self.path())
    }

    /// The only result file in this folder.
    pub fn result(&self) -> Document {
        let names = self.names();
        let results: Vec<&String> = names.iter().filter(|n| n.ends_with(".jsonl")).collect();
        assert_eq!(results.len(), 1, "{names:?}");
        read(&self.join(results[0]))
    }

    /// A file of `mib` MiB that is really written.
    pub fn prepared(&self, name: &str, mib: u32) -> PathBuf {
        let output = self.run(&["prepare", name, "--size", &format!("{mib}m"), "--seed", "1"]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        self.join(name)
    }
}

pub fn fathom_in(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command
}

pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pub fn read(path: &Path) -> Document {
    document::read(&std::fs::read(path).unwrap()).unwrap()
}

pub fn code(output: &Output) -> i32 {
    output.status.code().expect("it was not killed")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Fails unless the text has every part.
pub fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "'{part}' is missing in:\n{text}");
    }
}

/// A running fathom. The test can wait for lines on its stderr.
pub struct Running {
    child: Child,
    lines: BufReader<ChildStderr>,
    said: String,
}

impl Running {
    /// Starts it with default handling of the signals that it listens to, even if this process
    /// ignores them.
    pub fn start(command: &mut Command) -> Self {
        let mut heard = Command::new("env");
        heard.arg("--default-signal=INT,TERM,HUP").arg(command.get_program());
        heard.args(command.get_args()).stdin(Stdio::null());
        if let Some(folder) = command.get_current_dir() {
            heard.current_dir(folder);
        }
        let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        Self::start_as_it_is(heard.envs(set))
    }

    pub fn start_as_it_is(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        Self { child, lines, said: String::new() }
    }

    /// Waits until it prints a line that contains this.
    pub fn until(&mut self, part: &str) {
        loop {
            let mut line = String::new();
            let length = self.lines.read_line(&mut line).unwrap();
            self.said += &line;
            assert!(length > 0, "it ended without saying '{part}':\n{}", self.said);
            if line.contains(part) {
                return;
            }
        }
    }

    /// Its process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name, such as "INT".
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("sh").args(["-c", &format!("kill -{name} {id}")]).status();
        assert!(status.unwrap().success());
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Kills it as kill -9 does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end. Returns its status, stdout and stderr.
    pub fn end(mut self) -> (ExitStatus, String, String) {
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.lines.read_to_string(&mut self.said).unwrap();
        (self.child.wait().unwrap(), stdout, self.said)
    }
}

/// A tmpfs of the given MiB, mounted for the test. `None` if the user may not mount.
pub struct Mount {
    folder: TempDir,
}

impl Mount {
    pub fn tmpfs(mib: u32) -> Option<Self> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let options = format!("size={mib}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "fathom-test"])
            .arg(folder.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { folder }),
            _ => {
                eprintln!("skipped: this user may not mount");
                None
            }
        }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn make_read_only(&self) {
        let status =
            Command::new("mount").args(["-o", "remount,ro"]).arg(self.path()).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // If it stays mounted, the next run of the tests still works.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// The fields of a line. The name of a simulated device contains commas and is in quotes.
fn fields(line: &str) -> Vec<String> {
    let parts = line.split('"').enumerate();
    let in_quotes = |place: usize| !place.is_multiple_of(2);
    let plain = |(place, part): (usize, &str)| match in_quotes(place) {
        true => part.replace(',', ";"),
        false => part.to_owned(),
    };
    parts.map(plain).collect::<String>().split(',').map(str::to_owned).collect()
}

/// A trace, line by line.
pub struct Table(Vec<Vec<String>>);

impl Table {
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n'), "its last line is whole");
        let table = Self(text.lines().map(fields).collect());
        assert!(table.0.iter().all(|line| line.len() == table.0[0].len()));
        table
    }

    pub fn column(&self, name: &str) -> impl Iterator<Item = &str> {
        let place = self.0[0].iter().position(|one| one == name);
        let place = place.unwrap_or_else(|| panic!("no {name} in {:?}", self.0[0]));
        self.0[1..].iter().map(move |line| line[place].as_str())
    }

    pub fn sum(&self, name: &str) -> u64 {
        self.column(name).map(|value| value.parse::<u64>().unwrap()).sum()
    }

    /// Lines with these two values.
    pub fn count(&self, [phase, error]: [&str; 2]) -> u64 {
        let both = self.column("phase").zip(self.column("error"));
        both.filter(|both| *both == (phase, error)).count() as u64
    }
}
