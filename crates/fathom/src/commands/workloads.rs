//! `fathom workloads`: the workloads that come with fathom, and their TOML to start from.

use crate::cli::args::Workloads;
use crate::cli::values::nearest;
use crate::error::{Error, exit};
use crate::output;
use crate::shipped;
use crate::workload::schema;

/// Lists them, or prints one.
///
/// # Errors
///
/// When there is none of that name.
pub fn perform(args: &Workloads) -> Result<u8, Error> {
    if args.schema {
        output::print(schema::text().as_bytes())?;
        return Ok(exit::MEASURED);
    }
    let Some(name) = &args.name else {
        let longest = shipped::names().map(str::len).max().unwrap_or_default();
        for name in shipped::names() {
            output::say_folded(&format!("{name:<longest$}  {}", shipped::about(name)))?;
        }
        output::say("")?;
        output::say_folded(
            "`fathom run oltp TARGET` runs one; `fathom workloads oltp > my.toml` is a start for \
             your own.",
        )?;
        return Ok(exit::MEASURED);
    };
    match shipped::text(name) {
        Some(text) => output::print(text.as_bytes())?,
        None => {
            let all: Vec<&str> = shipped::names().collect();
            let remedy = match nearest(name, all.iter().copied()) {
                Some(near) => format!("write {near}"),
                None => format!("choose one of {}", all.join(", ")),
            };
            return Err(Error::option(name, "no workload has this name", remedy));
        }
    }
    Ok(exit::MEASURED)
}
