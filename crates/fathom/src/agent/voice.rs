//! Says messages on stdout. The lines of the result file go there too, each as a whole.

use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;

use fathom_core::Span;
use fathom_engine::Progress;
use fathom_report::document::Distribution;

use super::message::{AgentAnswer, ProgressHere};
use crate::live::Listener;
use crate::output;

/// Messages about the progress of a load that may wait for a slow reader. Later ones are dropped.
const WAITING: usize = 16;

/// Between two messages about the progress.
const PERIOD: Span = Span::from_ms(950);

/// Says a message, and waits until it is out. If the coordinator is gone, its lease will end.
pub fn say(said: &AgentAnswer) {
    drop(output::print(line(said).as_bytes()));
}

fn line(said: &AgentAnswer) -> String {
    let mut line = serde_json::to_string(said).expect("a message is plain data");
    line.push('\n');
    line
}

/// Tells how a load goes on, and never keeps it waiting: a thread of its own talks.
#[derive(Debug)]
pub struct Narrator {
    lines: SyncSender<String>,
    /// The time of the load at the last message.
    told: Option<Span>,
}

impl Narrator {
    /// Begins.
    ///
    /// # Errors
    ///
    /// When there cannot be another thread.
    pub fn begin() -> std::io::Result<Self> {
        let (lines, waiting) = sync_channel::<String>(WAITING);
        let talk = move || waiting.iter().for_each(|line| drop(output::print(line.as_bytes())));
        thread::Builder::new().name("narrator".to_owned()).spawn(talk)?;
        Ok(Self { lines, told: None })
    }

    fn tell(&self, said: &AgentAnswer) {
        match self.lines.try_send(line(said)) {
            // There will be a later one.
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }
}

impl Listener for Narrator {
    fn began(&mut self, unix_ns: u64) {
        self.tell(&AgentAnswer::Began { unix_ns });
    }

    fn progress(&mut self, progress: &Progress) {
        // A new load begins at zero again.
        let is_due = self
            .told
            .is_none_or(|told| progress.elapsed < told || told + PERIOD <= progress.elapsed);
        if !is_due {
            return;
        }
        self.told = Some(progress.elapsed);
        let last = &progress.last_second;
        self.tell(&AgentAnswer::Progress(ProgressHere {
            elapsed_ns: progress.elapsed.0,
            total_ns: progress.total.0,
            in_window: progress.in_window,
            iops: last.iops,
            bytes_per_second: last.bandwidth,
            trims_per_second: last.trims,
            response_time: Distribution::from(&last.times).coded(),
            failed: progress.failed,
        }));
    }
}
