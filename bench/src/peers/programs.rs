//! Runs fathom and fio on the same job and measures the cost of an I/O for each.
//!
//! The figure that counts is the CPU time of the one thread that does the I/O: fathom's own figure
//! for its worker, and fio's `getrusage` of its job, which is a process with one thread. The table
//! also has the CPU time of the whole program. Only that includes the work that the kernel hands to
//! other threads of a process (io_uring's workers).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fathom_core::Span;
use fathom_report::document;
use serde_json::Value;

use crate::engine;

/// The profile that fathom is built with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The profile that users get.
    Release,
    /// The profile of the tests, in which building takes no extra time.
    #[cfg(test)]
    Debug,
}

/// What fathom is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// fio's io_uring with its defaults.
    Defaults,
    /// The defaults without the map of used offsets, which fathom does not keep either.
    NoRandomMap,
    /// The defaults with all three distributions instead of fio's one.
    AllPercentiles,
    /// fio's io_uring with everything that makes it cheaper.
    Tuned,
    /// fio's psync with its defaults, against fathom's calls of pread.
    Psync,
    /// The same without the map of used offsets.
    PsyncNoRandomMap,
}

impl Peer {
    pub fn name(self) -> &'static str {
        match self {
            Self::Defaults => "io_uring, defaults",
            Self::NoRandomMap => "io_uring, defaults, without its random map",
            Self::AllPercentiles => "io_uring, defaults, percentiles of lat, clat and slat",
            Self::Tuned => "io_uring, tuned",
            Self::Psync => "psync, defaults (fathom: sync)",
            Self::PsyncNoRandomMap => "psync, defaults, without its random map (fathom: sync)",
        }
    }

    fn fio_arguments(self) -> &'static [&'static str] {
        match self {
            Self::Defaults => &["--ioengine=io_uring"],
            Self::NoRandomMap => &["--ioengine=io_uring", "--norandommap"],
            Self::AllPercentiles => {
                &["--ioengine=io_uring", "--lat_percentiles=1", "--slat_percentiles=1"]
            }
            // A batch size of 16 for submission alone gains nothing: fio then takes completions one
            // by one, and so starts I/Os one by one.
            Self::Tuned => &[
                "--ioengine=io_uring",
                "--norandommap",
                "--registerfiles=1",
                "--fixedbufs=1",
                "--nonvectored=1",
                "--iodepth_batch_submit=16",
                "--iodepth_batch_complete_min=1",
                "--iodepth_batch_complete_max=16",
            ],
            Self::Psync => &["--ioengine=psync"],
            Self::PsyncNoRandomMap => &["--ioengine=psync", "--norandommap"],
        }
    }

    fn fathom_backend(self) -> &'static str {
        match self {
            Self::Psync | Self::PsyncNoRandomMap => "sync",
            _ => "uring",
        }
    }
}

/// The job: random reads of 4 KiB by one worker.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    pub path: &'a Path,
    pub is_direct: bool,
    pub length_mib: u32,
    pub queue_depth: u32,
    pub run: Span,
    /// The folder for files of the programs.
    pub scratch: &'a Path,
}

/// The result of one run.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// CPU time per I/O of the thread that did the I/O, user and kernel.
    pub cpu_ns: f64,
    pub iops: f64,
    /// CPU time per I/O of the whole process, including its start and its end. The kernel reports
    /// it in hundredths of a second.
    pub process_ns: f64,
}

/// The programs, and the CPU that they are pinned to.
#[derive(Debug)]
pub struct Programs {
    fathom: PathBuf,
    fio_version: String,
    cpu: String,
}

/// The version of fio, or an error that says how to install it.
pub fn fio_is_there() -> Result<String, String> {
    match output_of("fio", &["--version"]) {
        Ok(version) => Ok(version.trim().to_owned()),
        Err(why) => Err(format!("{why}; the peer is Debian's: apt-get install fio")),
    }
}

impl Programs {
    pub fn find(profile: Profile) -> Result<Self, String> {
        let fio_version = fio_is_there()?;
        Ok(Self { fathom: build("fathom", profile)?, fio_version, cpu: last_allowed_cpu()? })
    }

    pub fn fio_version(&self) -> &str {
        &self.fio_version
    }

    pub fn cpu(&self) -> &str {
        &self.cpu
    }

    /// Runs a program with all of its threads on one CPU. Returns its CPU time as well.
    fn pinned(&self, program: &str, arguments: &[&str]) -> Result<(Output, f64), String> {
        let before = engine::children_cpu_ns();
        let output = Command::new("taskset")
            .args(["--cpu-list", &self.cpu, program])
            .args(arguments)
            .output()
            .map_err(|error| {
                format!("taskset could not be started: {error}; apt-get install util-linux")
            })?;
        let used = engine::children_cpu_ns().zip(before).map(|(after, before)| after - before);
        let used = used.ok_or("/proc/self/stat does not tell the CPU time of children")?;
        Ok((output, used as f64))
    }

    /// One run of fathom.
    pub fn fathom(&self, job: &Job<'_>, peer: Peer) -> Result<Cost, String> {
        let result = job.scratch.join("result.jsonl");
        let (target, result_name) = (job.path.to_string_lossy(), result.to_string_lossy());
        let length = format!("{}MiB", job.length_mib);
        let depth = job.queue_depth.to_string();
        let run = format!("{}ms", job.run.0 / 1_000_000);
        let mut arguments = Vec::from(["run", &target, "--size", &length, "--queue-depth", &depth]);
        arguments.extend(["--backend", peer.fathom_backend(), "--workers", "1"]);
        arguments.extend(["--warm-up", "0s", "--duration", &run, "--json", "--out", &result_name]);
        arguments.extend((!job.is_direct).then_some("--buffered"));
        let (output, process_ns) = self.pinned(&self.fathom.to_string_lossy(), &arguments)?;
        let _ = fs::remove_file(&result);
        let context = |why: &str| format!("fathom on {target}: {why}{}", said(&output));
        let read = document::read(&output.stdout).map_err(|error| context(&error.to_string()))?;
        let cost = fathom_cost(&read, process_ns).map_err(|why| context(&why))?;
        Ok(cost)
    }

    /// One run of fio. By default it keeps a map of the used offsets. In the other rows offsets may
    /// repeat, as fathom's do.
    pub fn fio(&self, job: &Job<'_>, peer: Peer) -> Result<Cost, String> {
        let target = job.path.to_string_lossy();
        let ours = [
            format!("--filename={target}"),
            format!("--size={}m", job.length_mib),
            format!("--iodepth={}", job.queue_depth),
            format!("--runtime={}ms", job.run.0 / 1_000_000),
            format!("--direct={}", u32::from(job.is_direct)),
        ];
        let mut arguments = Vec::from(["--name=peer", "--readonly", "--rw=randread"]);
        arguments.extend(["--bs=4k", "--time_based", "--invalidate=0"]);
        arguments.extend(["--clat_percentiles=1", "--output-format=json", "--eta=never"]);
        arguments.extend(ours.iter().map(String::as_str));
        arguments.extend(peer.fio_arguments());
        let (output, process_ns) = self.pinned("fio", &arguments)?;
        let context = |why: &str| format!("fio on {target}: {why}{}", said(&output));
        if !output.status.success() {
            return Err(context("failed"));
        }
        fio_cost(&output.stdout, process_ns).map_err(|why| context(&why))
    }
}

fn fathom_cost(read: &document::Document, process_ns: f64) -> Result<Cost, String> {
    let [trial] = read.trials.as_slice() else { return Err("it has no trial".to_owned()) };
    let [worker] = trial.workers.as_slice() else {
        return Err(format!("{} workers rather than one", trial.workers.len()));
    };
    let ios = worker.ledger.completed;
    let cpu_ns = worker.cpu_ns.ok_or("no CPU time of the worker")?;
    if trial.interrupted || worker.errors.count > 0 || ios == 0 || trial.window_ns == 0 {
        return Err(format!("{ios} I/Os and {} errors", worker.errors.count));
    }
    Ok(Cost {
        cpu_ns: cpu_ns as f64 / ios as f64,
        iops: ios as f64 * 1e9 / trial.window_ns as f64,
        process_ns: process_ns / ios as f64,
    })
}

fn fio_cost(output: &[u8], process_ns: f64) -> Result<Cost, String> {
    let text = String::from_utf8_lossy(output);
    // fio writes its warnings to the same stream, before the document.
    let begin = text.find('{').ok_or("no JSON")?;
    let read: Value = serde_json::from_str(&text[begin..]).map_err(|error| error.to_string())?;
    let job = &read["jobs"][0];
    let number = |value: &Value, name: &str| {
        value[name].as_f64().ok_or_else(|| format!("its JSON has no number {name:?}"))
    };
    let (ios, error) = (number(&job["read"], "total_ios")?, number(job, "error")?);
    if error != 0.0 || ios == 0.0 {
        return Err(format!("{ios} I/Os and error {error}"));
    }
    // The comparison is only between programs that keep distributions.
    if job["read"]["clat_ns"]["percentile"].as_object().is_none_or(|map| map.is_empty()) {
        return Err("its JSON has no percentiles".to_owned());
    }
    // fio gives CPU time in percent of the job's run time, and the run time in milliseconds.
    let percent = number(job, "usr_cpu")? + number(job, "sys_cpu")?;
    Ok(Cost {
        cpu_ns: percent / 100.0 * number(job, "job_runtime")? * 1e6 / ios,
        iops: number(&job["read"], "iops")?,
        process_ns: process_ns / ios,
    })
}

/// Builds a program of the workspace and returns its path.
pub fn build(package: &str, profile: Profile) -> Result<PathBuf, String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    match profile {
        Profile::Release => command.args(["build", "--package", package, "--release"]),
        // This is the same build that the tests use. A separate build would differ, because the
        // features of its dependencies depend on the other packages that are built.
        #[cfg(test)]
        Profile::Debug => command.args(["test", "--workspace", "--no-run"]),
    };
    command.arg("--message-format=json");
    let output = command
        .current_dir(crate::root())
        .output()
        .map_err(|error| format!("cargo could not be started: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let built = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let own = built.filter(|line| {
        line["target"]["name"] == package
            && line["target"]["kind"][0] == "bin"
            && line["profile"]["test"] == false
    });
    let executable =
        own.filter_map(|line| line["executable"].as_str().map(PathBuf::from)).next_back();
    match executable {
        Some(path) if output.status.success() => Ok(path),
        _ => Err(format!("{package} could not be built{}", said(&output))),
    }
}

/// The last CPU that this process may run on. Interrupts prefer the first one.
fn last_allowed_cpu() -> Result<String, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let last = list.and_then(|list| list.trim().rsplit([',', '-']).next());
    last.map(str::to_owned).ok_or("/proc/self/status does not tell the CPUs".to_owned())
}

/// What a program wrote to its standard error, for a message about it.
pub fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let end: Vec<&str> = text.lines().rev().take(10).collect();
    end.iter().rev().fold(format!(" ({})", output.status), |text, line| text + "\n  " + line)
}

/// Runs a program to its end and returns its output.
pub fn output_of(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|error| format!("{program} could not be started: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{program} failed{}", said(&output))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fios_cpu_time_is_a_share_of_the_jobs_run_time() {
        let output = br#"fio: a warning
{"jobs": [{"error": 0, "job_runtime": 2000, "usr_cpu": 10.5, "sys_cpu": 39.5,
  "read": {"total_ios": 1000000, "iops": 500000.0,
           "clat_ns": {"percentile": {"99.000000": 1200}}}}]}"#;
        let cost = fio_cost(output, 2e9).expect("it is complete");
        assert_eq!((cost.cpu_ns, cost.iops, cost.process_ns), (1000.0, 500_000.0, 2000.0));
    }

    #[test]
    fn a_job_of_fio_that_failed_or_kept_no_distribution_is_refused() {
        for (error, percentiles, why) in [(5, "\"p\": 1", "error 5"), (0, "", "no percentiles")] {
            let output = format!(
                "{{\"jobs\": [{{\"error\": {error}, \"job_runtime\": 1, \"usr_cpu\": 1, \
                 \"sys_cpu\": 1, \"read\": {{\"total_ios\": 1, \"iops\": 1, \"clat_ns\": \
                 {{\"percentile\": {{{percentiles}}}}}}}}}]}}"
            );
            let refused = fio_cost(output.as_bytes(), 0.0).expect_err("it is unusable");
            assert!(refused.contains(why), "{refused}");
        }
    }
}
