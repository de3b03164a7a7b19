//! Results as other tools write them, so that scripts that read theirs go on working.

pub mod diskplorer;
pub mod diskspd;
