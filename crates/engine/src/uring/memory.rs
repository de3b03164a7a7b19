//! How much lockable memory the rings of this process may register.
//!
//! Registered buffers and the rings themselves count against one limit of the user (RLIMIT_MEMLOCK,
//! often 8 MiB, in containers 64 KiB). A worker that registered all of it would leave none for the
//! next ring, so buffers get half. Registered buffers are optional, rings are not.

use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Resource;

/// The memory that the rings of this process have registered.
static REGISTERED: AtomicU64 = AtomicU64::new(0);

/// CAP_IPC_LOCK, which exempts from the limit.
const MAY_LOCK: u64 = 1 << 14;

/// A part of the lockable memory, given back when dropped.
#[derive(Debug)]
pub(super) struct Share {
    bytes: u64,
}

impl Share {
    /// Requests this much memory for registration.
    pub(super) fn take(bytes: u64) -> Option<Self> {
        Self::take_of(limit().map(|limit| limit / 2), bytes)
    }

    fn take_of(most: Option<u64>, bytes: u64) -> Option<Self> {
        let most = most.unwrap_or(u64::MAX);
        let add = |taken: u64| taken.checked_add(bytes).filter(|total| *total <= most);
        REGISTERED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Self { bytes })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        REGISTERED.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// How much this user may lock; none if there is no limit.
pub(super) fn limit() -> Option<u64> {
    // Every worker asks, and the answer stays the same.
    static PRIVILEGED: OnceLock<bool> = OnceLock::new();
    if *PRIVILEGED.get_or_init(is_privileged) {
        return None;
    }
    rustix::process::getrlimit(Resource::Memlock).current
}

/// Whether the kernel exempts this process from the limit. A capability counts only outside of user
/// namespaces: root in a container is not exempt.
fn is_privileged() -> bool {
    let capable = fs::read_to_string("/proc/thread-self/status").is_ok_and(|status| {
        let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask & MAY_LOCK != 0)
    });
    let whole = fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|map| map.split_whitespace().eq(["0", "0", "4294967295"]));
    capable && whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_limited_together_and_given_back() {
        // Far more than the rings of other tests have taken.
        let most = Some(1 << 50);
        let first = Share::take_of(most, 3 << 48).unwrap();
        assert!(Share::take_of(most, 2 << 48).is_none());
        assert!(Share::take_of(None, 1 << 48).is_some());
        assert!(Share::take_of(None, u64::MAX).is_none());
        drop(first);
        assert!(Share::take_of(most, 3 << 48).is_some());
    }
}
