//! The options of `fathom compare`, and the conditions under which a comparison fails.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use fathom_core::stats::Figure;
use fathom_report::comparison::{Match, Requirement};

use super::values::{self, percentile_of};

/// `fathom compare`.
#[derive(Clone, Debug, ClapArgs)]
pub struct Compare {
    /// Result files; the others are compared with the first. With --by, name one file
    #[arg(required = true, value_name = "RESULT")]
    pub results: Vec<PathBuf>,
    /// Compare the values of this axis within one result: queue-depth, side, or target
    #[arg(long, value_name = "AXIS")]
    pub by: Option<String>,
    /// What belongs together: the same workload, points of the same name, or the first with the first
    /// and so on. With `name` and `order` the workloads may differ
    #[arg(long = "match", value_name = "HOW", value_enum, default_value = "workload")]
    pub way: MatchArg,
    /// The difference that does not matter: within it, two figures are the same
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = margin)]
    pub margin: f64,
    /// The figures to compare: iops, bandwidth, mean, cpu (CPU time for each I/O), or a percentile.
    /// The fewer figures, the smaller the difference that can be seen [default:
    /// iops,mean,p50,p99,p99.9, or those of --fail-if]
    #[arg(long, value_name = "FIGURES", value_delimiter = ',', value_parser = figure)]
    pub metric: Vec<Figure>,
    /// End with exit code 6 if this is shown: 'p99 worse than 5%'; with 7 if it is undecided; several
    /// are possible. Figures as in --metric
    #[arg(long, value_name = "CONDITION", value_parser = requirement)]
    pub fail_if: Vec<Requirement>,
    /// Show every point, and all that differs
    #[arg(long)]
    pub details: bool,
    /// Print the comparison as JSON
    #[arg(long, conflicts_with_all = ["details", "markdown", "width"])]
    pub json: bool,
    /// Write a self-contained HTML report
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Open the HTML report in the browser when it is written
    #[arg(long)]
    pub open: bool,
    /// Write it as Markdown, for pull requests; without FILE, show it as Markdown
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    pub markdown: Option<Option<PathBuf>>,
    /// Write it as JUnit's XML, for CI servers
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// The columns of the report in the terminal [default: the width of the terminal]
    #[arg(long, value_name = "COLUMNS", allow_hyphen_values = true,
          value_parser = values::whole::<u16>(80, 1000))]
    pub width: Option<u16>,
}

/// How points are matched, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MatchArg {
    /// The same workload at the same place
    Workload,
    /// The same name
    Name,
    /// The first with the first, the second with the second
    Order,
}

impl From<MatchArg> for Match {
    fn from(typed: MatchArg) -> Self {
        match typed {
            MatchArg::Workload => Self::Workload,
            MatchArg::Name => Self::Name,
            MatchArg::Order => Self::Order,
        }
    }
}

/// A difference that does not matter.
///
/// # Errors
///
/// When it is no share, or none above 0 and below 100 %.
pub fn margin(text: &str) -> Result<f64, String> {
    match values::share(text)? {
        share if 0.0 < share && share < 1.0 => Ok(share),
        _ => Err("it has to be above 0% and below 100%: write 5%".to_owned()),
    }
}

/// A figure.
///
/// # Errors
///
/// When it is none.
pub fn figure(text: &str) -> Result<Figure, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "iops" => Ok(Figure::Iops),
        "bandwidth" | "bw" => Ok(Figure::Bandwidth),
        "mean" => Ok(Figure::Mean),
        "cpu" => Ok(Figure::CpuPerIo),
        other => percentile_of(other).map(Figure::Quantile).map_err(|why| {
            format!("{why}: write iops, bandwidth, mean, cpu, or a percentile such as p99")
        }),
    }
}

/// A condition under which a comparison fails: "p99 worse than 5%".
///
/// # Errors
///
/// When it has another form, or its bound is none.
pub fn requirement(text: &str) -> Result<Requirement, String> {
    let typed = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lower = typed.to_ascii_lowercase();
    let Some((name, bound)) = lower.split_once(" worse than ") else {
        return Err(format!("'{typed}' is no condition: write 'p99 worse than 5%'"));
    };
    Ok(Requirement { figure: figure(name)?, bound: margin(&bound.replace(" %", "%"))?, typed })
}

#[cfg(test)]
mod tests {
    use fathom_core::Quantile;

    use super::*;

    #[test]
    fn a_condition_is_a_figure_and_how_much_worse_it_may_be() {
        let of = |text: &str| requirement(text).map(|one| (one.figure, one.bound));
        assert_eq!(of("p99 worse than 5%"), Ok((Figure::Quantile(Quantile(0.99)), 0.05)));
        assert_eq!(of(" IOPS  worse than 2.5 % "), Ok((Figure::Iops, 0.025)));
        assert_eq!(of("cpu worse than 0.1"), Ok((Figure::CpuPerIo, 0.1)));
        for text in
            ["", "p99", "p99>2ms", "p99 worse than", "p99 worse than 0%", "p99 worse than 100%"]
        {
            assert!(of(text).is_err(), "{text}");
        }
        assert!(of("max worse than 5%").unwrap_err().contains("a percentile such as p99"));
    }
}
