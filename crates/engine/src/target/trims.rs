//! Whether a target can be trimmed.

use fathom_core::spec::BackendKind;
use rustix::io::Errno;

use crate::access::{TrimWay, kernel};
use crate::open_target::OpenTarget;
use crate::sync::{discard, punch};

/// The first kernel whose io_uring supports discards.
const DISCARD_SINCE: (u32, u32) = (6, 12);

/// Whether this backend can trim a target that is open for writing. No data is trimmed to find out:
/// a hole is punched beyond the end of the file, and a device gets a discard of no bytes.
///
/// # Errors
///
/// With the cause and the remedy, when it cannot.
pub fn probe_trim(target: &OpenTarget, backend: BackendKind) -> Result<(), (String, String)> {
    let refuse = |cause: &str, remedy: &str| Err((cause.to_owned(), remedy.to_owned()));
    if target.passthrough.is_some() {
        return refuse("fathom sends no NVMe command for it", "measure the block device beside it");
    }
    let other = "drop it, or measure another target";
    match TrimWay::of(&target.file) {
        Ok(TrimWay::Punch) => match punch(&target.file, target.size.0, 4096) {
            Err(Errno::OPNOTSUPP | Errno::NODEV | Errno::SPIPE | Errno::INVAL | Errno::BADF) => {
                refuse("its file system punches no holes into files", other)
            }
            _ => Ok(()),
        },
        Ok(TrimWay::Discard) => match discard(&target.file, 0, 0) {
            Err(Errno::OPNOTSUPP | Errno::NOTTY) => {
                refuse("the device has no discard (discard_max_bytes is 0)", other)
            }
            _ if backend == BackendKind::Uring && kernel() < DISCARD_SINCE => {
                refuse("io_uring discards from Linux 6.12 on", "use --backend sync")
            }
            _ => Ok(()),
        },
        Err(cause) => refuse(&format!("it cannot be looked at ({cause})"), other),
    }
}
