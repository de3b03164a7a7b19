//! The coordinator of a test over many hosts: has `fathom agent` on each of them apply the same load at
//! the same time, and makes one trial of what they measured. Another program, the router, carries
//! lines between this process and the agents, and understands none of them (docs/hosts.md).

mod attending;
mod fleet;
mod lines;
mod merging;
mod pulse;
mod router;
mod words;

pub use attending::{Attending, HostCourse, progress};
pub use fleet::Fleet;
pub use merging::together;
pub use router::{Router, RouterHosts};
pub use words::HostLoad;
