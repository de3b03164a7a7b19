//! Results in the formats of other tools, so that scripts for these tools keep working.

pub mod diskplorer;
pub mod diskspd;
