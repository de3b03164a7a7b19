//! The table that `--csv` writes: one row for each interval, and a column for each disk and figure.

use std::path::Path;

use fathom_core::watch::Counted;
use fathom_core::{Quantile, Utc};
use fathom_engine::watch::WatchedSlice;
use fathom_report::csv;

use super::new_file::NewFile;
use super::{Flow, Seen};
use crate::error::Error;
use crate::output;

/// A figure of a disk in an interval.
type Figure = fn(&WatchedSlice) -> Option<f64>;

fn reads(slice: &WatchedSlice) -> Option<Flow<'_>> {
    Flow::reads(slice)
}

fn writes(slice: &WatchedSlice) -> Option<Flow<'_>> {
    Flow::writes(slice)
}

fn counted(slice: &WatchedSlice, figure: fn(&Counted) -> f64) -> Option<f64> {
    slice.counted.as_ref().map(figure)
}

fn percentile(flow: Option<Flow<'_>>, quantile: f64) -> Option<f64> {
    flow?.percentile(Quantile(quantile)).map(|time| time as f64)
}

/// fathom's own columns.
const OWN: &[(&str, Figure)] = &[
    ("reads_per_second", |it| Some(reads(it)?.iops())),
    ("writes_per_second", |it| Some(writes(it)?.iops())),
    ("read_bytes_per_second", |it| Some(reads(it)?.bandwidth())),
    ("written_bytes_per_second", |it| Some(writes(it)?.bandwidth())),
    ("mean_read_bytes", |it| reads(it)?.mean_size()),
    ("mean_write_bytes", |it| writes(it)?.mean_size()),
    ("read_mean_ns", |it| reads(it)?.mean()),
    ("read_p50_ns", |it| percentile(reads(it), 0.5)),
    ("read_p99_ns", |it| percentile(reads(it), 0.99)),
    ("read_p99.9_ns", |it| percentile(reads(it), 0.999)),
    ("read_max_ns", |it| reads(it)?.longest().map(|time| time as f64)),
    ("read_mean_queue_time_ns", |it| reads(it)?.mean_queue_time()),
    ("read_mean_device_time_ns", |it| reads(it)?.mean_device_time()),
    ("write_mean_ns", |it| writes(it)?.mean()),
    ("write_p50_ns", |it| percentile(writes(it), 0.5)),
    ("write_p99_ns", |it| percentile(writes(it), 0.99)),
    ("write_p99.9_ns", |it| percentile(writes(it), 0.999)),
    ("write_max_ns", |it| writes(it)?.longest().map(|time| time as f64)),
    ("write_mean_queue_time_ns", |it| writes(it)?.mean_queue_time()),
    ("write_mean_device_time_ns", |it| writes(it)?.mean_device_time()),
    ("sequential_read_share", |it| reads(it)?.sequential()),
    ("sequential_write_share", |it| writes(it)?.sequential()),
    ("merged_read_share", |it| reads(it)?.merged()),
    ("merged_write_share", |it| writes(it)?.merged()),
    ("discards_per_second", |it| counted(it, |c| c.per_second(c.discards.ios))),
    ("discarded_bytes_per_second", |it| counted(it, |c| c.per_second(c.discards.bytes.0))),
    ("flushes_per_second", |it| counted(it, |c| c.per_second(c.flushes.ios))),
    ("flush_mean_ns", |it| it.counted?.flushes.mean_time()),
    ("in_flight", |it| counted(it, |c| c.in_flight as f64)),
    ("mean_queue", |it| counted(it, Counted::mean_queue)),
    ("busy_share", |it| counted(it, Counted::utilization)),
];

/// Both directions of a disk together.
fn all(slice: &WatchedSlice, figure: fn(&Flow<'_>) -> f64) -> Option<f64> {
    Some(figure(&reads(slice)?) + figure(&writes(slice)?))
}

fn mean_of_all(slice: &WatchedSlice) -> Option<f64> {
    let (reads, writes) = (Flow::reads(slice)?, Flow::writes(slice)?);
    let sum = |flow: &Flow<'_>| flow.mean().unwrap_or(0.0) * flow.iops();
    let all = (reads.iops() + writes.iops()).max(f64::MIN_POSITIVE);
    Some((sum(&reads) + sum(&writes)) / all)
}

fn seconds(time: Option<f64>) -> Option<f64> {
    Some(time.unwrap_or(0.0) / 1e9)
}

fn queue_of(flow: Option<Flow<'_>>) -> Option<f64> {
    let flow = flow?;
    Some(flow.mean().unwrap_or(0.0) / 1e9 * flow.iops())
}

/// The counters of the object PhysicalDisk of Windows that these disks have, too. Like there, a
/// figure of an interval without I/Os is zero.
const TYPEPERF: &[(&str, Figure)] = &[
    ("Avg. Disk sec/Read", |it| seconds(reads(it)?.mean())),
    ("Avg. Disk sec/Write", |it| seconds(writes(it)?.mean())),
    ("Avg. Disk sec/Transfer", |it| seconds(mean_of_all(it))),
    ("Disk Reads/sec", |it| Some(reads(it)?.iops())),
    ("Disk Writes/sec", |it| Some(writes(it)?.iops())),
    ("Disk Transfers/sec", |it| all(it, |flow| flow.iops())),
    ("Disk Read Bytes/sec", |it| Some(reads(it)?.bandwidth())),
    ("Disk Write Bytes/sec", |it| Some(writes(it)?.bandwidth())),
    ("Disk Bytes/sec", |it| all(it, |flow| flow.bandwidth())),
    ("Avg. Disk Bytes/Read", |it| Some(reads(it)?.mean_size().unwrap_or(0.0))),
    ("Avg. Disk Bytes/Write", |it| Some(writes(it)?.mean_size().unwrap_or(0.0))),
    ("Avg. Disk Read Queue Length", |it| queue_of(reads(it))),
    ("Avg. Disk Write Queue Length", |it| queue_of(writes(it))),
    ("Avg. Disk Queue Length", |it| counted(it, Counted::mean_queue)),
    ("Current Disk Queue Length", |it| counted(it, |c| c.in_flight as f64)),
    ("% Disk Time", |it| counted(it, |c| c.utilization() * 100.0)),
    ("% Idle Time", |it| counted(it, |c| (1.0 - c.utilization()) * 100.0)),
];

/// The form of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// fathom's own.
    Own,
    /// typeperf's.
    Typeperf,
}

impl Form {
    fn figures(self) -> &'static [(&'static str, Figure)] {
        match self {
            Self::Own => OWN,
            Self::Typeperf => TYPEPERF,
        }
    }

    /// The names of the columns.
    fn names(self, disks: &[String], host: &str) -> String {
        let mut line = match self {
            Self::Own => "time_utc,interval_ns".to_owned(),
            Self::Typeperf => quoted("(PDH-CSV 4.0) (Coordinated Universal Time)(0)"),
        };
        for disk in disks {
            for (name, _) in self.figures() {
                line.push(',');
                line += &match self {
                    Self::Own => csv::field(&format!("{disk} {name}")),
                    Self::Typeperf => quoted(&format!(r"\\{host}\PhysicalDisk({disk})\{name}")),
                };
            }
        }
        if self == Self::Own {
            line += ",events_lost,own_cpu_ns";
        }
        line
    }

    /// An interval.
    fn row(self, seen: &Seen<'_>) -> String {
        let at = Utc::from_unix(seen.at_unix_ns / 1_000_000_000);
        let ms = seen.at_unix_ns / 1_000_000 % 1000;
        let Utc { year, month, day, hour, minute, second } = at;
        let mut line = match self {
            Self::Own => format!(
                "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z,{}",
                seen.interval.length.0
            ),
            Self::Typeperf => quoted(&format!(
                "{month:02}/{day:02}/{year:04} {hour:02}:{minute:02}:{second:02}.{ms:03}"
            )),
        };
        for slice in &seen.interval.disks {
            for (_, figure) in self.figures() {
                line.push(',');
                let value = figure(slice);
                line += &match self {
                    Self::Own => value.map(|value| value.to_string()).unwrap_or_default(),
                    Self::Typeperf => {
                        quoted(&value.map_or(" ".to_owned(), |value| format!("{value:.15}")))
                    }
                };
            }
        }
        if self == Self::Own {
            line += &format!(",{},{}", seen.interval.lost, seen.interval.own_cpu.0);
        }
        line
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// The table, as it grows: each row is in the file as soon as it is known.
#[derive(Debug)]
pub struct CsvTable {
    form: Form,
    file: NewFile,
}

impl CsvTable {
    /// Creates the file, with the names of the columns.
    ///
    /// # Errors
    ///
    /// When it exists or cannot be created.
    pub fn create(path: &Path, form: Form, disks: &[String], host: &str) -> Result<Self, Error> {
        let mut file = NewFile::create(path, "--csv")?;
        file.put(form.names(disks, host))?;
        Ok(Self { form, file })
    }

    /// Whether it goes into a file, and not to stdout.
    pub fn is_file(&self) -> bool {
        !output::is_stdout(self.file.path())
    }

    /// Adds an interval.
    ///
    /// # Errors
    ///
    /// When it cannot be written; all rows before it are in the file.
    pub fn take(&mut self, seen: &Seen<'_>) -> Result<(), Error> {
        self.file.put(self.form.row(seen))
    }
}

#[cfg(test)]
mod tests {
    use fathom_engine::watch::{DiskWatch, WatchedInterval};

    use super::*;
    use crate::watch::made;

    fn row(form: Form, interval: &WatchedInterval) -> String {
        let watch = DiskWatch::begin(Vec::new(), false);
        let at_unix_ns = 1_795_608_000_123_000_000;
        let disks = ["sda".to_owned()];
        form.row(&Seen { at_unix_ns, disks: &disks, watch: &watch, interval })
    }

    #[test]
    fn every_row_has_a_field_for_each_name_and_what_is_unknown_is_empty() {
        let names = Form::Own.names(&["sda".to_owned()], "host");
        let row = row(Form::Own, &made::busy());
        let fields: Vec<&str> = row.split(',').collect();
        let names: Vec<&str> = names.split(',').collect();
        assert_eq!(fields.len(), names.len());
        let field = |name: &str| fields[names.iter().position(|it| *it == name).unwrap()];
        assert_eq!(field("time_utc"), "2026-11-25T12:00:00.123Z");
        assert_eq!(field("sda reads_per_second"), "2000");
        assert_eq!(field("sda read_mean_ns"), "100000");
        assert_eq!(field("sda read_mean_queue_time_ns"), "1000");
        assert_eq!(field("sda write_p99_ns"), "");
        assert_eq!(field("sda merged_write_share"), "0.75");
        assert_eq!(field("sda in_flight"), "3");
        assert_eq!(field("own_cpu_ns"), "12000000");
    }

    #[test]
    fn typeperfs_names_and_values_are_quoted_and_a_figure_of_nothing_is_zero() {
        let names = Form::Typeperf.names(&["sda".to_owned()], "HOST");
        let expected = r#""(PDH-CSV 4.0) (Coordinated Universal Time)(0)","\\HOST\PhysicalDisk(sda)\Avg. Disk sec/Read","#;
        assert!(names.starts_with(expected), "{names}");
        let busy = row(Form::Typeperf, &made::busy());
        assert!(
            busy.starts_with(r#""11/25/2026 12:00:00.123","0.000100000000000","0.003"#),
            "{busy}"
        );
        assert_eq!(busy.split("\",\"").count(), names.split("\",\"").count());
        let mut idle = made::busy();
        idle.disks[0].counted =
            Some(Counted { length: fathom_core::Span(1), ..Counted::default() });
        idle.disks[0].observed = None;
        let idle = row(Form::Typeperf, &idle);
        assert!(idle.split("\",\"").skip(1).take(16).all(|field| field == "0.000000000000000"));
    }
}
