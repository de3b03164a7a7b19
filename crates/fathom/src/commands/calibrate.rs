//! `fathom calibrate`: the load generator's ceiling on this host. It reads /dev/zero, and writes
//! only the file that the user names.

use std::io::{self, IsTerminal};

use fathom_core::Span;
use fathom_core::calibration::{Calibration, LeftOut, NullTarget};
use fathom_core::facts::Host;
use fathom_core::figures::number;
use fathom_core::spec::{Access, BackendKind};
use fathom_engine::calibrate::{self, Step};
use fathom_engine::{Choice, choose};
use fathom_report::document::{self, CalibrationInput};
use fathom_report::page;

use super::{outputs, this_machine};
use crate::cli::args::Calibrate;
use crate::cli::values::Backend;
use crate::error::{Error, exit};
use crate::live::Live;
use crate::output::is_stdout;
use crate::{journal, output, session};

/// The number of sleeps to measure: enough for a p99.
const SLEEPS: u32 = 1000;

/// The sensible windows: shorter ones are noise, and longer ones give no more information.
const SHORTEST: Span = Span::from_ms(10);
const LONGEST: Span = Span::from_secs(60);

/// The default access to a real target: the ceiling of its backend is the one that matters.
const ACCESS: Access = Access::DIRECT;

/// Measures and shows it.
///
/// # Errors
///
/// When the requested backend does not work here, nothing could be measured, or the file cannot be
/// written.
pub fn perform(args: &Calibrate) -> Result<u8, Error> {
    let file = args.out.as_deref().filter(|path| !is_stdout(path));
    let to_stdout = args.json || args.out.as_deref().is_some_and(is_stdout);
    if to_stdout {
        output::leave_stdout_to_the_document();
    }
    let requested = match args.backend {
        Backend::Auto => None,
        Backend::Named(kind) => Some(kind),
    };
    let choice = choose(requested, ACCESS)?;
    if args.duration < SHORTEST || args.duration > LONGEST {
        return Err(Error::option(
            format!("--duration {}", args.duration),
            "shorter runs of a calibration are noise, and longer ones tell nothing more",
            format!("give from {SHORTEST} to {LONGEST}"),
        ));
    }
    file.map_or(Ok(()), outputs::free)?;
    let created_unix_ns = session::unix_ns();
    let host = this_machine::this_host();
    let found = measure(args.duration, &choice, &host);
    if found.rows.is_empty() {
        let why = found.left_out.first().map_or("nothing to run", |one| one.why.as_str());
        return Err(Error::target(
            format!("the {} backend", choice.kind.name()),
            format!("nothing could be calibrated ({why})"),
            "see what --backend sync says",
        ));
    }
    let document = document::Calibration::new(CalibrationInput {
        fathom_version: env!("CARGO_PKG_VERSION"),
        created_unix_ns,
        host: &host,
        backend: choice.kind,
        backend_reason: &choice.reason,
        found: &found,
    });
    let line = document.to_json() + "\n";
    if let Some(path) = file {
        journal::write_new(path, &line)?;
    }
    if to_stdout {
        output::print(line.as_bytes())?;
    }
    outputs::show(&page::calibration(&document), None)?;
    Ok(exit::MEASURED)
}

/// Runs every step. A step that cannot be run is reported, and the others still run.
fn measure(window: Span, choice: &Choice, host: &Host) -> Calibration {
    let steps = calibrate::steps(choice.kind, host.cpus);
    let time = Span(window.0.saturating_mul(steps.len() as u64));
    // Some seconds are worth a line that redraws itself, but not lines in a log.
    let mut live = io::stderr().is_terminal().then(|| Live::new(steps.len() + 1, time));
    let mut found = Calibration::default();
    if choice.kind != BackendKind::Uring {
        let backend = choice.kind.name();
        let why = format!("it needs io_uring, and the backend is {backend}");
        found.left_out.push(LeftOut { what: NullTarget::NopRing.name().to_owned(), why });
    }
    for step in steps {
        let name = name(step);
        if let Some(live) = &mut live {
            live.step(&name, window);
        }
        match calibrate::run(step, choice.kind, window) {
            Ok(row) => {
                let iops = row.ios() as f64 / row.window.as_secs_f64();
                if let Some(live) = &mut live {
                    live.done(&format!("{} IOPS", number(iops)));
                }
                found.rows.push(row);
            }
            Err(error) => {
                found.left_out.push(LeftOut { what: name, why: error.to_string() });
            }
        }
    }
    if let Some(live) = &mut live {
        live.step("how late sleeps end", Span(0));
    }
    found.wake_up = calibrate::wake_up(SLEEPS);
    found
}

/// A step in words.
fn name(step: Step) -> String {
    let workers = match step.workers {
        1 => "1 worker".to_owned(),
        n => format!("{n} workers"),
    };
    format!("{}, {workers}, queue depth {}", step.target.name(), step.queue_depth)
}
