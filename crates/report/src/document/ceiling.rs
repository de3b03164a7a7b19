//! What the load generator could do at most: in the header of every result, among the facts of the
//! host.

use fathom_core::calibration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Backend;

/// What the I/Os of a calibration went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NullTarget {
    /// Entries that io_uring completes at once: what fathom and the ring cost, and nothing else.
    NopRing,
    /// /dev/zero, buffered.
    Zeros,
}

/// What one worker could do at most: what an I/O costs it when nothing is behind the backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// What carried the I/Os.
    pub backend: Backend,
    /// What they went to.
    pub target: NullTarget,
    /// The cost at some queue depths, which rise; between them it follows a + b / depth.
    pub costs: Vec<Cost>,
}

/// What an I/O costs a worker.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// I/Os in flight for the worker.
    pub queue_depth: u32,
    /// CPU time of the worker for each I/O.
    pub per_io_ns: f64,
}

impl From<calibration::NullTarget> for NullTarget {
    fn from(target: calibration::NullTarget) -> Self {
        match target {
            calibration::NullTarget::NopRing => Self::NopRing,
            calibration::NullTarget::Zeros => Self::Zeros,
        }
    }
}

impl NullTarget {
    /// As the core has it.
    pub fn to_core(self) -> calibration::NullTarget {
        match self {
            Self::NopRing => calibration::NullTarget::NopRing,
            Self::Zeros => calibration::NullTarget::Zeros,
        }
    }
}

impl From<&calibration::Ceiling> for Ceiling {
    fn from(ceiling: &calibration::Ceiling) -> Self {
        let cost = |cost: &calibration::Cost| Cost {
            queue_depth: cost.queue_depth,
            per_io_ns: cost.per_io_ns,
        };
        Self {
            backend: ceiling.backend.into(),
            target: ceiling.target.into(),
            costs: ceiling.costs.iter().map(cost).collect(),
        }
    }
}

impl Ceiling {
    /// As the core has it.
    pub fn to_core(&self) -> calibration::Ceiling {
        let cost = |cost: &Cost| calibration::Cost {
            queue_depth: cost.queue_depth,
            per_io_ns: cost.per_io_ns,
        };
        calibration::Ceiling {
            backend: self.backend.to_core(),
            target: self.target.to_core(),
            costs: self.costs.iter().map(cost).collect(),
        }
    }
}
