//! Results of other programs, converted into the input of fathom's own reports.
//!
//! Figures that such a result does not contain stay unknown: there are no trials, no verdicts and
//! no half-widths, because fathom did not measure it.

mod bounded;
mod diskplorer;
mod fio;
#[cfg(test)]
mod tests;

use fathom_core::Refusal;
use fathom_report::document::{Found, JobsFound, Source};

pub use fio::Output;

/// The imported result.
#[derive(Debug, PartialEq)]
pub struct Imported {
    /// Its source.
    pub source: Source,
    /// Its figures.
    pub found: Found,
    /// The same in words.
    pub sentences: Vec<String>,
}

/// Makes one result of the outputs of one or several runs of fio, in their order, with their files.
/// Diskplorer's is a run of fio whose jobs are the cells of a latency map.
///
/// # Errors
///
/// When they hold no job, or cells that contradict each other.
pub fn import(outputs: &[(String, Output)], allowed_error: f64) -> Result<Imported, Refusal> {
    let name = &outputs[0].0;
    let source = source(outputs);
    let jobs: Vec<&fio::Job> = outputs.iter().flat_map(|(_, output)| &output.jobs).collect();
    if jobs.is_empty() {
        let remedy = "name a file that `fio --output-format=json` wrote";
        return Err(Refusal::file(name, "there is no job in it", remedy));
    }
    let told = outputs.iter().find_map(|(_, output)| output.told.as_ref());
    if let Some((found, sentences)) = diskplorer::map(name, &jobs, told, allowed_error)? {
        return Ok(Imported { source, found, sentences });
    }
    let sentences = Vec::from([match jobs.len() {
        1 => format!("One job of {}.", source.program),
        many => format!("{many} jobs of {}.", source.program),
    }]);
    let jobs = outputs.iter().flat_map(|(_, output)| output.described()).collect();
    Ok(Imported { source, found: Found::Jobs(JobsFound { jobs }), sentences })
}

fn source(outputs: &[(String, Output)]) -> Source {
    let mut programs: Vec<&str> = Vec::new();
    let mut targets: Vec<String> = Vec::new();
    for (_, output) in outputs {
        let program = output.version.as_deref().unwrap_or("fio");
        if !programs.contains(&program) {
            programs.push(program);
        }
        for target in output.targets() {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
    }
    Source {
        program: programs.join(" and "),
        files: outputs.iter().map(|(file, _)| file.clone()).collect(),
        measured: outputs.first().and_then(|(_, output)| output.time.clone()),
        targets,
    }
}
