//! Simulated devices in virtual time.

use std::str::FromStr;

use fathom_core::Bytes;

/// A simulated device and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How large the device is.
    pub size: Bytes,
}

impl FromStr for Options {
    type Err = String;

    /// Reads what follows `sim:`, such as `ssd` or `queue,servers=8,service-time=100us`.
    fn from_str(_text: &str) -> Result<Self, String> {
        Ok(Self { size: Bytes(100 * Bytes::GIB) })
    }
}
