//! What is written: no two blocks of 4 KiB are equal, and none can be compressed.
//!
//! A backend's buffers hold random bytes. Before each write every 4 KiB of the buffer gets a header
//! of its own, so that neither the device nor an array can find a block that it has seen, and the
//! cost is 16 bytes in 4096 rather than all of them.

/// The unit in which devices look for equal blocks.
const UNIT: usize = 4096;

/// Gives each 4 KiB that a worker writes a header of its own.
pub(crate) struct Payload {
    worker: u64,
    written: u64,
}

impl Payload {
    /// The payload of the worker with this seed, which no other worker of the run has.
    pub(crate) fn new(seed: u64) -> Self {
        Self { worker: seed, written: 0 }
    }

    /// Makes the buffer different from everything that was written before.
    #[inline]
    pub(crate) fn refresh(&mut self, buffer: &mut [u8]) {
        for unit in buffer.chunks_mut(UNIT) {
            self.written += 1;
            if let Some((header, _)) = unit.split_first_chunk_mut::<16>() {
                header[..8].copy_from_slice(&self.worker.to_le_bytes());
                header[8..].copy_from_slice(&self.written.to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_block_is_ever_written_twice() {
        let mut seen = HashSet::new();
        for worker in 0..3 {
            let mut payload = Payload::new(worker);
            let mut buffer = vec![7; 3 * UNIT + 512];
            for _ in 0..100 {
                payload.refresh(&mut buffer);
                for unit in buffer.chunks(UNIT) {
                    assert!(seen.insert(unit.to_vec()));
                }
            }
        }
    }
}
