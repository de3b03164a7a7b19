//! The commands: each ties what was typed to the session, and says how the process ends.

pub mod calibrate;
mod fill;
pub mod inspect;
pub mod prepare;
pub mod quick;
pub mod report;
pub mod run;
mod shared;
