//! The memory that the kernel uses while I/Os are in flight: their buffers, and the structures
//! through which it reaches them.
//!
//! An error, a panic or a hung device may end a backend and drop this. It is then freed if no I/O
//! is in flight, and otherwise left to the kernel for good. The count decides.

#![expect(unsafe_code, reason = "that something came back is the kernel's word")]

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

/// A value that is never dropped while the kernel has a part of it.
#[derive(Debug)]
pub(crate) struct Lent<T> {
    what: ManuallyDrop<T>,
    /// How many I/Os the kernel has taken and not given back.
    in_flight: usize,
}

impl<T> Lent<T> {
    /// No part of it is in flight.
    pub(crate) fn new(what: T) -> Self {
        Self { what: ManuallyDrop::new(what), in_flight: 0 }
    }

    /// How many I/Os the kernel has.
    #[inline]
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The kernel has taken this many more.
    #[inline]
    pub(crate) fn lend(&mut self, count: usize) {
        self.in_flight += count;
    }

    /// The value, together with the number of I/Os that the kernel has.
    ///
    /// # Safety
    ///
    /// The number only goes down by I/Os that the kernel has given back, each counted once.
    #[inline]
    pub(crate) unsafe fn parts(&mut self) -> (&mut T, &mut usize) {
        (&mut self.what, &mut self.in_flight)
    }
}

impl<T> Deref for Lent<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.what
    }
}

/// For parts that are not in flight. The caller must not replace the value.
impl<T> DerefMut for Lent<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.what
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        if self.in_flight == 0 {
            // SAFETY: not used again, and the kernel has no part of it.
            unsafe { ManuallyDrop::drop(&mut self.what) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread;

    use fathom_core::measure::Direction;

    use super::*;
    use crate::backend::{Content, Shape};
    use crate::buffers::Buffers;

    /// Filled with repeated bytes, because random bytes take miri too long.
    fn buffers() -> Buffers {
        let content = Content::Repeated(Arc::from([1, 2, 3]));
        Buffers::new(&Shape { slots: 3, block_size: 4096, content, ..Shape::USUAL }, 4096).unwrap()
    }

    /// A buffer as the kernel sees it: an address that no borrow tracks.
    struct Address(*mut u8);

    // SAFETY: a number.
    unsafe impl Send for Address {}

    impl Address {
        fn fill(self, byte: u8) {
            // SAFETY: the buffer is lent, so it exists and no code here accesses it.
            unsafe { self.0.write_bytes(byte, 4096) };
        }
    }

    /// Counts `count` buffers as returned by the kernel.
    fn give_back<T>(lent: &mut Lent<T>, count: usize) {
        // SAFETY: the caller has waited for the thread that plays the kernel's part.
        *unsafe { lent.parts() }.1 -= count;
    }

    // In this test and the next, miri detects what no assertion can: a use after free, a data race,
    // and two mutable accesses to the same bytes.
    #[test]
    fn the_kernel_fills_one_buffer_while_others_are_used() {
        let mut lent = Lent::new(buffers());
        let address = Address(lent.address(Direction::Read, 1));
        lent.lend(1);
        let (done, waits) = channel();
        let kernel = thread::spawn(move || {
            address.fill(7);
            done.send(()).unwrap();
        });
        for slot in [0, 2] {
            lent.refresh(slot, 4096);
            lent.get(Direction::Read, slot).fill(slot as u8);
            assert_eq!(lent.content(slot).len(), 4096);
            assert_eq!(lent.areas().len(), 2);
        }
        waits.recv().unwrap();
        kernel.join().unwrap();
        give_back(&mut lent, 1);
        assert_eq!([0, 1, 2].map(|slot| lent.get(Direction::Read, slot)[4095]), [0, 7, 2]);
    }

    #[test]
    fn what_the_kernel_has_outlives_its_lender_even_in_a_panic() {
        for panics in [false, true] {
            let (hand_over, taken) = channel();
            let (dropped, goes_on) = channel::<()>();
            let kernel = thread::spawn(move || {
                let address: Address = taken.recv().unwrap();
                goes_on.recv().unwrap();
                address.fill(9);
            });
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let mut lent = Lent::new(buffers());
                lent.lend(1);
                hand_over.send(Address(lent.address(Direction::Read, 0))).unwrap();
                assert!(!panics, "on purpose");
            }));
            assert_eq!(outcome.is_err(), panics);
            dropped.send(()).unwrap();
            kernel.join().unwrap();
        }
    }

    #[test]
    fn what_came_back_is_freed() {
        let shared = std::rc::Rc::new(());
        let mut lent = Lent::new(std::rc::Rc::clone(&shared));
        lent.lend(2);
        give_back(&mut lent, 2);
        drop(lent);
        assert_eq!(std::rc::Rc::strong_count(&shared), 1);
        let mut lent = Lent::new(std::rc::Rc::clone(&shared));
        lent.lend(2);
        give_back(&mut lent, 1);
        assert_eq!(lent.in_flight(), 1);
        drop(lent);
        assert_eq!(std::rc::Rc::strong_count(&shared), 2);
    }
}
