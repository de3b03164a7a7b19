//! The part on each host of a test over many hosts: applies the loads that another program, the
//! coordinator, asks for on stdin, and answers on stdout. docs/agent.md describes the protocol.
//!
//! What an agent measures is in its own result file first. A coordinator that falls silent ends it.

pub mod ears;
pub mod message;
pub mod voice;
pub mod words;
