//! What follows every I/O of a trial: the trace, and the watch of the disks' requests.

use std::sync::Arc;

use fathom_core::facts::Target;
use fathom_core::spec::Point;
use fathom_core::trial::Traced;
use fathom_core::watch::Breakdown;
use fathom_engine::Devices;
use fathom_engine::trace::{TracedIos, Tracer};
use fathom_engine::watch::{IoWatch, WatchedFile};

use crate::error::Error;
use crate::trace::{TraceFile, TrialTrace};
use crate::{hanging, output};

/// Those of one trial.
pub(super) struct Following<'a> {
    trace: Option<TrialTrace<'a>>,
    /// The watch, or why there is none; nothing if nobody asked for it.
    watch: Option<Result<IoWatch, String>>,
}

impl<'a> Following<'a> {
    /// Begins what was asked for.
    ///
    /// # Errors
    ///
    /// When a file system does not tell where a target is, and never answers.
    pub(super) fn begin(
        trace: Option<&'a mut TraceFile>,
        watches: bool,
        targets: &[Target],
        (point, devices): (&Point, &Devices<'_>),
    ) -> Result<Self, Error> {
        let trace = trace.map(|trace| trace.trial(targets));
        let files = watches.then(|| files(targets, point, devices));
        let watch = files.map(|files| {
            let name = targets.first().map_or_else(String::new, |target| target.name.clone());
            let begin = move || Ok(IoWatch::begin(&files));
            hanging::waited_for(&name, "its place on the disk was asked for", begin)
        });
        let watch = watch.transpose()?;
        if let Some(Err(missing)) = &watch {
            output::note(&format!(
                "note: it is not known where the time of the I/Os goes: {missing}"
            ));
        }
        Ok(Self { trace, watch })
    }

    /// The same for the load generator; none if nothing follows its I/Os.
    pub(super) fn tracer(&mut self) -> Option<&mut dyn Tracer> {
        let follows = self.trace.is_some() || matches!(self.watch, Some(Ok(_)));
        follows.then_some(self as &mut dyn Tracer)
    }

    /// Ends it.
    pub(super) fn end(self) -> (Option<Traced>, Option<Breakdown>) {
        let breakdown = self.watch.map(|watch| match watch {
            Ok(watch) => watch.end(),
            Err(missing) => Breakdown { missing: Some(missing), ..Breakdown::default() },
        });
        (self.trace.map(TrialTrace::end), breakdown)
    }
}

impl Tracer for Following<'_> {
    fn take(&mut self, ios: &TracedIos<'_>) {
        if let Some(Ok(watch)) = &mut self.watch {
            watch.take(ios);
        }
        if let Some(trace) = &mut self.trace {
            trace.take(ios);
        }
    }
}

/// The targets with the files that the point has open; any one of several, because they are the same
/// file.
fn files(targets: &[Target], point: &Point, devices: &Devices<'_>) -> Vec<WatchedFile> {
    let file = |place: usize| {
        let Devices::Real { streams, .. } = devices else { return None };
        let pairs = point.streams.iter().zip(*streams);
        let mut opened = pairs.flat_map(|(stream, opened)| stream.regions.iter().zip(opened));
        let (_, opened) = opened.find(|(region, _)| region.target as usize == place)?;
        Some(Arc::clone(&opened.file))
    };
    let targets = targets.iter().enumerate();
    targets
        .map(|(place, target)| WatchedFile { target: target.clone(), file: file(place) })
        .collect()
}
