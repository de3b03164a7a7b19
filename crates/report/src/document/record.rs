//! A trial of a result file as the core has it: what an experiment is shown again when it is resumed.

use fathom_core::measure;
use fathom_core::{Bytes, Span};

use super::{Cell, Distribution, Flow, Trial, Worker};

impl Trial {
    /// The record that it was written from, to the last bit: an experiment that is shown it decides
    /// what it decided then.
    pub fn record(&self) -> measure::Record {
        let mut series: Vec<measure::Interval> = self.intervals().collect();
        series.sort_by_key(|interval| (interval.start, interval.stream));
        measure::Record {
            window: self.window(),
            interrupted: self.interrupted,
            ended_early: self.ended_early,
            workers: self.workers.iter().map(worker).collect(),
            series,
            stretches: self.stretches(),
            buckets: self.buckets.as_ref().map(|buckets| measure::Buckets {
                length: Span(buckets.length_ns),
                ios: buckets.reads.iter().zip(&buckets.writes).map(|(r, w)| [*r, *w]).collect(),
            }),
        }
    }
}

fn worker(worker: &Worker) -> measure::WorkerRecord {
    measure::WorkerRecord {
        stream: worker.stream,
        worker: worker.worker,
        cells: worker.cells.iter().map(cell).collect(),
        ledger: worker.ledger,
        errors: worker.errors.clone(),
        queue_depth: worker.queue_depth,
        start_delay: worker.start_delay.as_ref().map(|delay| measure::StartDelay {
            generator: delay.generator.to_histogram(),
            target: delay.target.to_histogram(),
        }),
        lag: worker.lag_ns.map(Span),
        whole: worker.whole.map(|whole| measure::Whole {
            length: Span(whole.length_ns),
            ios: [whole.reads, whole.writes],
            bytes: [whole.read_bytes, whole.written_bytes].map(Bytes),
            queue_depth: whole.queue_depth,
        }),
        cpu: worker.cpu_ns.map(Span),
        cpu_wait: worker
            .cpu_wait_ns
            .zip(worker.cpu_runs)
            .map(|(ns, runs)| measure::CpuWait { time: Span(ns), runs }),
        gave_up: worker.gave_up,
        waits: worker.waits,
    }
}

fn cell(cell: &Cell) -> measure::Cell {
    let spread = cell.spread.map(|spread| measure::Spread {
        intervals: spread.intervals,
        squares: [spread.read_squares, spread.write_squares, spread.squares],
    });
    measure::Cell {
        target: cell.target,
        flows: [flow(&cell.read), flow(&cell.write)],
        upkeep: (cell.flush.is_some() || cell.trim.is_some()).then(|| {
            let each = [&cell.flush, &cell.trim];
            Box::new(each.map(|one| one.as_ref().map(flow).unwrap_or_default()))
        }),
        spread: spread.unwrap_or_default(),
    }
}

fn flow(flow: &Flow) -> measure::Flow {
    measure::Flow {
        bytes: Bytes(flow.bytes),
        service_time: flow.service_time.to_histogram(),
        response_time: flow.response_time.as_ref().map(Distribution::to_histogram),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Interval, read, write};

    #[test]
    fn what_is_read_and_written_again_is_the_same_to_the_last_bit() {
        let mut kinds = (0, 0, 0);
        for name in ["quick", "void", "open", "interrupted"] {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
            let bytes = std::fs::read(format!("{folder}/{name}.jsonl")).unwrap();
            for trial in read(&bytes).unwrap().trials {
                let record = trial.record();
                let workers: Vec<_> = record.workers.iter().map(super::Worker::new).collect();
                assert_eq!(workers, trial.workers, "{name}");
                let series: Vec<_> = record.stretches.iter().map(Interval::from).collect();
                assert_eq!(series, trial.series, "{name}");
                let rows: Vec<_> = write::plain_rows(&record).collect();
                assert_eq!(rows, trial.intervals, "{name}");
                assert_eq!(
                    (record.window, record.interrupted),
                    (trial.window(), trial.interrupted)
                );
                kinds.0 += usize::from(trial.is_open());
                kinds.1 += usize::from(trial.errors() > 0);
                kinds.2 += usize::from(trial.interrupted);
            }
        }
        assert!(kinds.0 > 0 && kinds.1 > 0 && kinds.2 > 0, "{kinds:?}");
    }
}
