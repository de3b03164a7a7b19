//! Where the time of fathom's own I/Os went, as it is written to the result file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::event::Operation;
use crate::units::{Bytes, Quantile, Span};

/// How many of the slowest I/Os are kept.
pub const SLOWEST: usize = 100;

/// The parts of the time from the submission of an I/O to its completion. Their sum is that time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// Before the block layer made the request: the system call, the file system, a control group
    /// that throttles, and the wait for a free request.
    #[serde(rename = "submission_ns")]
    pub submission: Span,
    /// In a queue of the block layer.
    #[serde(rename = "queue_ns")]
    pub queue: Span,
    /// With the driver and the device.
    #[serde(rename = "device_ns")]
    pub device: Span,
    /// Until fathom saw the completion: the interrupt, what the file system does then, and the wait
    /// for the CPU.
    #[serde(rename = "completion_ns")]
    pub completion: Span,
}

impl Parts {
    /// All of it.
    pub fn service_time(&self) -> Span {
        self.submission + self.queue + self.device + self.completion
    }

    /// Adds those of another I/O.
    pub fn add(&mut self, other: &Self) {
        self.submission += other.submission;
        self.queue += other.queue;
        self.device += other.device;
        self.completion += other.completion;
    }

    /// The parts in their order, with their names.
    pub fn named(&self) -> [(&'static str, Span); 4] {
        [
            ("submission", self.submission),
            ("queue", self.queue),
            ("device", self.device),
            ("completion", self.completion),
        ]
    }
}

/// The I/Os between two quantiles of the service time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Band {
    /// The lower one; 0 for the fastest I/Os.
    pub from: Quantile,
    /// The upper one; 1 for the slowest.
    pub to: Quantile,
    /// I/Os in it.
    pub ios: u64,
    /// The sums of their parts.
    pub sum: Parts,
}

impl Band {
    /// The means of the parts, in nanoseconds, in their order; none without an I/O.
    pub fn means(&self) -> Option<[f64; 4]> {
        let mean = |(_, sum): (&str, Span)| sum.0 as f64 / self.ios as f64;
        (self.ios > 0).then(|| self.sum.named().map(mean))
    }
}

/// I/Os of one operation in the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowBreakdown {
    /// The operation: read, write or discard.
    pub operation: Operation,
    /// I/Os whose requests were seen.
    pub ios: u64,
    /// I/Os without a request that was seen: the page cache answered them, the kernel's events were
    /// lost, or the place on the disk is not known.
    pub without_request: u64,
    /// The I/Os with requests, from the fastest to the slowest.
    pub bands: Vec<Band>,
}

impl FlowBreakdown {
    /// All bands as one.
    pub fn whole(&self) -> Band {
        let (from, to) = (Quantile(0.0), Quantile(1.0));
        let mut whole = Band { from, to, ios: self.ios, sum: Parts::default() };
        self.bands.iter().for_each(|band| whole.sum.add(&band.sum));
        whole
    }
}

/// What another program did to the disk meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Neighbor {
    /// The program.
    pub program: String,
    /// Requests of it that the disk completed meanwhile.
    pub ios: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

/// What the host did around an I/O, between two looks at its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostThen {
    /// The time between the two looks. The I/O was a part of it.
    #[serde(rename = "over_ns")]
    pub over: Span,
    /// CPU time that a hypervisor gave to others, over all CPUs.
    #[serde(rename = "stolen_ns")]
    pub stolen: Span,
    /// The time for which control groups kept this process from the CPU.
    #[serde(rename = "throttled_ns")]
    pub throttled: Span,
    /// Data that was being written back from the page cache at one of the looks.
    pub writeback_bytes: Bytes,
}

/// One of the slowest I/Os.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlowIo {
    /// When it was submitted, in nanoseconds from the beginning of the window.
    pub submitted_ns: i64,
    /// What it did.
    pub operation: Operation,
    /// The target's place in the list of targets.
    pub target: u32,
    /// Its offset there.
    #[serde(rename = "offset_bytes")]
    pub offset: Bytes,
    /// Its length.
    #[serde(rename = "length_bytes")]
    pub length: Bytes,
    /// From its submission to its completion.
    #[serde(rename = "service_time_ns")]
    pub service_time: Span,
    /// Where that time went; none if no request was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<SlowRequest>,
    /// What others did to the disk meanwhile, the busiest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub neighbors: Vec<Neighbor>,
    /// What the host did; none if it was not looked at before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostThen>,
}

/// The request of a slow I/O; if it had several, the one that ended last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SlowRequest {
    /// Where the time went.
    pub parts: Parts,
    /// Requests of all programs in flight on the disk when it began, with itself.
    pub in_flight: u32,
    /// The CPU on which it began.
    pub began_on_cpu: u32,
    /// The CPU on which the disk's interrupt completed it.
    pub completed_on_cpu: u32,
}

/// Where the time of a trial's I/Os went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Breakdown {
    /// Why it is not known; none if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The disks whose requests were watched.
    pub disks: Vec<String>,
    /// By operation.
    pub flows: Vec<FlowBreakdown>,
    /// Events that the kernel had to drop.
    pub lost_events: u64,
    /// I/Os of the trial that came too fast to be looked at.
    pub left_out: u64,
    /// The slowest I/Os of the window, the slowest first.
    pub slowest: Vec<SlowIo>,
}
