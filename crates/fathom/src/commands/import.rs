//! `fathom import`: turns results of other programs into a result file of fathom, to draw and to
//! compare.

use fathom_core::{Bytes, typed_path};
use fathom_report::document::{Conclusion, Ended, Header, Line};

use super::outputs::Outputs;
use crate::cli::args::Import;
use crate::cli::options::Results;
use crate::error::{Error, exit};
use crate::foreign::Foreign;
use crate::import::{self, Imported, Output};
use crate::output;
use crate::session::{self, unix_ns};

/// The remedy for a file that cannot be read.
const NAME_ONE: &str = "name a file that `fio --output-format=json` or Diskplorer wrote";

/// The most that is read of a file: thousands of jobs with all of their buckets have less.
const SIZE_MAX: Bytes = Bytes(64 * Bytes::MIB);

/// The most jobs of all files: fio itself runs a quarter of it.
const JOBS_MAX: usize = 1 << 14;

/// Reads them, writes the result file, and shows it.
///
/// # Errors
///
/// When a file cannot be read or is not such a result, or the result file cannot be written.
pub fn perform(args: &Import) -> Result<u8, Error> {
    let mut outputs: Vec<(String, Output)> = Vec::new();
    for path in &args.files {
        let text = Foreign::open(path, SIZE_MAX).and_then(Foreign::read_all);
        let text = text.map_err(|why| Error::file(path, why, NAME_ONE))?;
        let jobs: usize = outputs.iter().map(|(_, output)| output.jobs.len()).sum();
        let name = path.display().to_string();
        let output = Output::read(&name, &String::from_utf8_lossy(&text), JOBS_MAX - jobs)?;
        outputs.push((name, output));
    }
    let imported = import::import(&outputs, args.allowed_error)?;
    drop(outputs);
    let Imported { source, found, sentences } = imported;
    let (out, results) = (args.out.clone(), args.results.clone());
    let results = Results { out, results, ..Results::default() };
    let stem = args.files[0].file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let (outputs, mut journal) =
        Outputs::create("import", &stem.unwrap_or_default(), &results, false)?;
    let version = env!("CARGO_PKG_VERSION");
    let header = Header::imported(version, &session::command_line(), unix_ns(), source);
    journal.append(&Line::Header(Box::new(header)).to_json())?;
    let last = Conclusion { ended: Ended::Completed, sentences, found: Some(found) };
    let last = Line::Conclusion(Box::new(last)).to_json();
    journal.append_result(&|out| out.write_all(last.as_bytes()));
    outputs.finish(&mut journal, |journal| {
        let path = typed_path(&journal.path().display().to_string());
        output::say(&format!("draw    `fathom report {path} --html FILE`, --svg, --png, --csv"))
    })?;
    Ok(exit::MEASURED)
}
