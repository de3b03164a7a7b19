//! A line for each disk and interval, for pipes and for those who like iostat.

use fathom_core::{Quantile, Utc};

use super::{Flow, Seen};

/// From this width on, all columns are shown.
const WIDE: usize = 200;
/// The names of the columns come again after this many intervals.
const AGAIN: u64 = 20;

/// A column: its name, its width, and its figure of a flow.
type LineColumn = (&'static str, usize, fn(&Flow<'_>) -> Option<f64>);

const MIB: f64 = 1_048_576.0;
const US: f64 = 1000.0;

/// What 80 columns hold.
const NARROW: &[LineColumn] = &[
    ("/s", 6, |flow| Some(flow.iops())),
    ("MiB", 5, |flow| Some(flow.bandwidth() / MIB)),
    ("_us", 6, |flow| Some(flow.mean()? / US)),
    ("_p99", 6, |flow| Some(flow.percentile(Quantile(0.99))? as f64 / US)),
];
/// What a wide terminal, and no terminal, hold.
const ALL: &[LineColumn] = &[
    ("/s", 7, |flow| Some(flow.iops())),
    ("MiB/s", 8, |flow| Some(flow.bandwidth() / MIB)),
    ("KiB", 6, |flow| Some(flow.mean_size()? / 1024.0)),
    ("seq%", 6, |flow| Some(flow.sequential()? * 100.0)),
    ("mrg%", 6, |flow| Some(flow.merged()? * 100.0)),
    ("_us", 7, |flow| Some(flow.mean()? / US)),
    ("_p50", 7, |flow| Some(flow.percentile(Quantile(0.5))? as f64 / US)),
    ("_p99", 7, |flow| Some(flow.percentile(Quantile(0.99))? as f64 / US)),
    ("_p99.9", 8, |flow| Some(flow.percentile(Quantile(0.999))? as f64 / US)),
    ("_max", 8, |flow| Some(flow.longest()? as f64 / US)),
    ("_queue", 7, |flow| Some(flow.mean_queue_time()? / US)),
];

/// Makes the lines.
#[derive(Debug)]
pub struct Lines {
    columns: &'static [LineColumn],
    /// The width of a disk's name.
    name: usize,
    /// Whether the names of the columns come again.
    repeats: bool,
    shown: u64,
}

impl Lines {
    /// For an output of this width; none for one that is not a terminal.
    pub fn new(width: Option<usize>, longest_name: usize) -> Self {
        let is_wide = width.is_none_or(|width| WIDE <= width);
        Self {
            columns: if is_wide { ALL } else { NARROW },
            name: longest_name.max(5),
            repeats: width.is_some(),
            shown: 0,
        }
    }

    /// The lines of an interval, with the names of the columns before them where they are due.
    pub fn interval(&mut self, seen: &Seen<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        if self.shown == 0 || self.repeats && self.shown.is_multiple_of(AGAIN) {
            lines.push(self.names());
        }
        self.shown += 1;
        let time = Utc::from_unix(seen.at_unix_ns / 1_000_000_000);
        let time = format!("{:02}:{:02}:{:02}", time.hour, time.minute, time.second);
        for (disk, slice) in seen.disks.iter().zip(&seen.interval.disks) {
            let mut line = format!("{time} {:<width$}", disk, width = self.name);
            let (Some(reads), Some(writes), Some(counted)) =
                (Flow::reads(slice), Flow::writes(slice), slice.counted)
            else {
                lines.push(line + " gone");
                continue;
            };
            for flow in [reads, writes] {
                for (_, width, figure) in self.columns {
                    line += &format!(" {:>width$}", figure(&flow).map_or("-".to_owned(), short));
                }
            }
            line += &format!(
                " {:>5} {:>4.0}",
                short(counted.mean_queue()),
                counted.utilization() * 100.0
            );
            lines.push(line);
        }
        lines
    }

    fn names(&self) -> String {
        let mut line = format!("{:<8} {:<width$}", "time_utc", "disk", width = self.name);
        for direction in ["r", "w"] {
            for (name, width, _) in self.columns {
                line += &format!(" {:>width$}", format!("{direction}{name}"));
            }
        }
        line + " queue util"
    }
}

/// A figure in at most seven columns: without decimals from 100 on.
pub fn short(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        0.0 => "0".to_owned(),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use fathom_engine::watch::{DiskWatch, WatchedSlice};

    use super::*;
    use crate::watch::made;

    const NOON: u64 = 43_200_000_000_000;

    fn shown(lines: &mut Lines, interval: &fathom_engine::watch::WatchedInterval) -> Vec<String> {
        let watch = DiskWatch::begin(Vec::new(), false);
        let disks = ["sda".to_owned()];
        lines.interval(&Seen { at_unix_ns: NOON, disks: &disks, watch: &watch, interval })
    }

    #[test]
    fn a_line_fits_a_terminal_of_80_columns() {
        let mut lines = Lines::new(Some(80), 3);
        let text = shown(&mut lines, &made::busy());
        let expected = [
            "time_utc disk     r/s  rMiB   r_us  r_p99    w/s  wMiB   w_us  w_p99 queue util",
            "12:00:00 sda     2000  7.81    100    100   50.0  3.12   3000      -  0.35   32",
        ];
        assert_eq!(text, expected);
        assert!(text.iter().all(|line| line.len() <= 80));
        // The names of the columns come again on a terminal.
        let more: Vec<_> = (1..=AGAIN).map(|_| shown(&mut lines, &made::busy()).len()).collect();
        assert_eq!(more.iter().filter(|lines| **lines == 2).count(), 1);
    }

    #[test]
    fn a_pipe_gets_all_columns_and_their_names_once() {
        let mut lines = Lines::new(None, 3);
        let text = shown(&mut lines, &made::busy());
        let columns = |line: &str| line.split_whitespace().count();
        assert_eq!((text.len(), columns(&text[0]), columns(&text[1])), (2, 26, 26));
        assert!(text[1].contains(" 75.0 "), "{}", text[1]);
        let more = (0..3 * AGAIN).map(|_| shown(&mut lines, &made::busy()).len());
        assert!(more.into_iter().all(|lines| lines == 1));
    }

    #[test]
    fn a_disk_that_is_gone_has_no_figures() {
        let mut lines = Lines::new(None, 3);
        let mut interval = made::busy();
        interval.disks = Vec::from([WatchedSlice::default()]);
        assert_eq!(shown(&mut lines, &interval)[1], "12:00:00 sda   gone");
    }
}
