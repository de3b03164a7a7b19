//! The commands: each ties what was typed to the session, and says how the process ends.

pub mod calibrate;
pub mod diskspd;
mod experiment;
pub mod export;
mod fill;
mod folder;
pub mod import;
pub mod inspect;
pub mod map;
pub mod peak;
mod place;
pub mod plan;
pub mod portrait;
pub mod prepare;
mod preview;
mod probe;
pub mod quick;
mod rehearsal;
pub mod report;
pub mod resume;
pub mod run;
mod shared;
pub mod study;
pub mod sustain;
pub mod sweep;
pub mod workloads;
mod written;
