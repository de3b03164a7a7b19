//! The programs that make requests, each with a number.

use std::collections::HashMap;

use crate::host::system::System;

/// The most threads in the table. When it is full, it is emptied, and threads are looked up again.
const THREADS_MAX: usize = 1 << 16;

/// The kernel's worker threads are one program. They write what others have written into the page
/// cache, and there is no way to tell whose it was.
const WORKER: &str = "kworker";

/// The names of programs, and the numbers of the threads that belong to each.
#[derive(Debug, Default)]
pub(super) struct Programs {
    names: Vec<String>,
    /// By process and the name of its thread: a process's number is used again, but seldom under
    /// the same name.
    threads: HashMap<(u32, [u8; 16]), u32>,
}

impl Programs {
    /// The number of the program of a thread that the kernel calls by this name.
    pub(super) fn number(&mut self, process: u32, thread: [u8; 16]) -> u32 {
        if let Some(number) = self.threads.get(&(process, thread)) {
            return *number;
        }
        let end = thread.iter().position(|byte| *byte == 0).unwrap_or(thread.len());
        let thread_name = String::from_utf8_lossy(&thread[..end]);
        let name = match thread_name.starts_with(WORKER) {
            true => WORKER.to_owned(),
            // The process may be gone already; its thread's name has to do then.
            false => {
                let name = System::real().text(format!("proc/{process}/comm"));
                name.unwrap_or_else(|| thread_name.into_owned())
            }
        };
        let place = self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        if self.threads.len() == THREADS_MAX {
            self.threads.clear();
        }
        let number = u32::try_from(place).unwrap_or(u32::MAX);
        self.threads.insert((process, thread), number);
        number
    }

    /// The name of a program.
    pub(super) fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("?", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(name: &str) -> [u8; 16] {
        let mut padded = [0; 16];
        padded[..name.len()].copy_from_slice(name.as_bytes());
        padded
    }

    #[test]
    fn threads_of_one_process_are_one_program() {
        let mut programs = Programs::default();
        let own = std::process::id();
        let one = programs.number(own, padded("one"));
        assert_eq!(programs.number(own, padded("two")), one);
        let name = std::fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(programs.name(one), name.trim_end());
        // No process has this number: Linux has 4,194,304 at most.
        let gone = programs.number(u32::MAX / 2, padded("gone"));
        assert_eq!(programs.name(gone), "gone");
        assert_eq!(programs.name(9), "?");
    }

    #[test]
    fn the_kernels_workers_are_one_program() {
        let mut programs = Programs::default();
        let one = programs.number(2_000_000_001, padded("kworker/u8:3"));
        let other = programs.number(2_000_000_002, padded("kworker/1:1H"));
        assert_eq!((one, programs.name(one)), (other, "kworker"));
    }
}
