//! The buffer that the kernel fills with the samples of a CPU, and that this process empties
//! (`perf_event_open(2)`, under "MMAP layout").
#![expect(unsafe_code, reason = "memory that is shared with the kernel")]

use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::param::page_size;

/// The place of the kernel's position in `struct perf_event_mmap_page`.
const HEAD: usize = 1024;
/// The place of the reader's position there.
const TAIL: usize = 1032;

/// The length of `struct perf_event_header`: a kind of 4 bytes, flags of 2, the length of 2.
const HEADER: usize = 8;

/// A buffer, mapped.
#[derive(Debug)]
pub(super) struct EventBuffer {
    start: NonNull<u8>,
    /// Of the data, a power of two; a page with the positions is before it.
    length: usize,
    /// A record whose two parts are at the end and at the beginning of the buffer.
    joined: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone, and any thread may access it.
unsafe impl Send for EventBuffer {}

impl EventBuffer {
    /// Maps the buffer of an event, with this many bytes, a power of two.
    pub(super) fn map(event: &File, length: usize) -> io::Result<Self> {
        assert!(length.is_power_of_two() && page_size() <= length, "{length}");
        // SAFETY: the kernel chooses a free address.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                page_size() + length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                event,
                0,
            )
        }?;
        let start = NonNull::new(start.cast()).expect("the kernel maps nothing at zero");
        Ok(Self { start, length, joined: Vec::new() })
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the offset is within the first page, aligned, and the kernel writes the positions
        // as whole words while the mapping exists.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(offset).cast()) }
    }

    /// Shows each record that is there, with its kind and the bytes behind its header, and makes room
    /// for new ones.
    pub(super) fn drain(&mut self, mut each: impl FnMut(u32, &[u8])) {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut tail = self.position(TAIL).load(Ordering::Relaxed);
        while tail < head {
            let at = tail as usize & (self.length - 1);
            // Records begin at multiples of eight, so a header is never cut in two.
            let header = self.bytes(at, HEADER);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let length = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if length < HEADER || head - tail < length as u64 {
                // It cannot happen; but a reader that trusts a length of zero would never end.
                tail = head;
                break;
            }
            if at + length <= self.length {
                each(kind, &self.bytes(at, length)[HEADER..]);
            } else {
                let mut joined = std::mem::take(&mut self.joined);
                joined.clear();
                joined.extend_from_slice(self.bytes(at, self.length - at));
                joined.extend_from_slice(self.bytes(0, at + length - self.length));
                each(kind, &joined[HEADER..]);
                self.joined = joined;
            }
            tail += length as u64;
        }
        self.position(TAIL).store(tail, Ordering::Release);
    }

    fn bytes(&self, at: usize, length: usize) -> &[u8] {
        assert!(at + length <= self.length);
        // SAFETY: the range is within the mapped data, and the kernel does not write to what lies
        // between the reader's position and its own.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(page_size() + at), length) }
    }
}

impl Drop for EventBuffer {
    fn drop(&mut self) {
        // SAFETY: the mapping is this long, and no reference to it outlives this value.
        let result = unsafe { munmap(self.start.as_ptr().cast(), page_size() + self.length) };
        debug_assert_eq!(result, Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    /// A file that plays the kernel: the positions in its first page, records behind it.
    struct Played {
        file: File,
        head: u64,
        length: u64,
    }

    impl Played {
        fn new(pages: usize) -> Self {
            let file = tempfile::tempfile().unwrap();
            let length = (pages * page_size()) as u64;
            file.set_len(page_size() as u64 + length).unwrap();
            Self { file, head: 0, length }
        }

        fn put(&mut self, kind: u32, content: &[u8]) {
            let mut record = kind.to_ne_bytes().to_vec();
            record.extend([0, 0]);
            record.extend(u16::try_from(HEADER + content.len()).unwrap().to_ne_bytes());
            record.extend(content);
            for byte in record {
                let at = page_size() as u64 + self.head % self.length;
                self.write_at(at, &[byte]);
                self.head += 1;
            }
            let head = self.head;
            self.write_at(HEAD as u64, &head.to_ne_bytes());
        }

        fn write_at(&mut self, at: u64, bytes: &[u8]) {
            self.file.seek(io::SeekFrom::Start(at)).unwrap();
            self.file.write_all(bytes).unwrap();
        }
    }

    #[test]
    fn every_record_is_shown_once_and_whole_also_across_the_end_of_the_buffer() {
        let mut played = Played::new(1);
        let mut buffer = EventBuffer::map(&played.file, page_size()).unwrap();
        let mut put = 0u64;
        let mut seen = 0u64;
        for round in 0..200u64 {
            for _ in 0..round % 7 {
                let content: Vec<u8> =
                    (0..put % 5 + 1).flat_map(|word| (put * 10 + word).to_ne_bytes()).collect();
                played.put(9, &content);
                put += 1;
            }
            buffer.drain(|kind, content| {
                assert_eq!(kind, 9);
                let words: Vec<u64> =
                    content.chunks(8).map(|w| u64::from_ne_bytes(w.try_into().unwrap())).collect();
                assert_eq!(words, (0..seen % 5 + 1).map(|w| seen * 10 + w).collect::<Vec<_>>());
                seen += 1;
            });
            assert_eq!(seen, put);
        }
        assert!(played.head > 2 * played.length);
    }

    #[test]
    fn a_length_that_cannot_be_ends_the_reading() {
        let mut played = Played::new(1);
        let mut buffer = EventBuffer::map(&played.file, page_size()).unwrap();
        played.write_at(HEAD as u64, &64u64.to_ne_bytes());
        buffer.drain(|_, _| panic!("there is no record"));
        played.head = 64;
        played.put(2, &[0; 8]);
        let mut kinds = Vec::new();
        buffer.drain(|kind, _| kinds.push(kind));
        assert_eq!(kinds, [2]);
    }
}
