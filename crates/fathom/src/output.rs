//! What is printed. A reader that went away (`| head`) is no reason to end a measurement, nor to
//! panic as `println!` would: what can no longer be printed is dropped.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// Whether stdout belongs to the document alone.
static STDOUT_IS_THE_DOCUMENTS: AtomicBool = AtomicBool::new(false);

/// From here on `say` goes to stderr.
pub fn leave_stdout_to_the_document() {
    STDOUT_IS_THE_DOCUMENTS.store(true, Ordering::SeqCst);
}

/// Whether `say` goes to a terminal.
pub fn is_terminal() -> bool {
    if STDOUT_IS_THE_DOCUMENTS.load(Ordering::SeqCst) {
        io::stderr().is_terminal()
    } else {
        io::stdout().is_terminal()
    }
}

/// Whether color is welcome there.
pub fn color() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_terminal() && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

/// Prints what the user asked for.
///
/// # Errors
///
/// When stdout cannot take it, for any reason but that nobody reads it any more.
pub fn say(text: &str) -> Result<(), Error> {
    if STDOUT_IS_THE_DOCUMENTS.load(Ordering::SeqCst) {
        note(text);
        return Ok(());
    }
    print(format!("{text}\n").as_bytes())
}

/// Prints bytes to stdout as they are.
///
/// # Errors
///
/// As [`say`].
pub fn print(bytes: &[u8]) -> Result<(), Error> {
    print_with(&|out| out.write_all(bytes))
}

/// Prints what `write` writes to stdout.
///
/// # Errors
///
/// As [`say`].
pub fn print_with(write: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    match write(&mut stdout).and_then(|()| stdout.flush()) {
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::write(Path::new("stdout"), cause, "send it to a place that has room for it"))
        }
        _ => Ok(()),
    }
}

/// Text that may hold a name of the user's: a name with a newline or with a terminal's escape
/// sequences in it must neither forge lines nor reach the terminal as such.
pub fn printable(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// Tells what goes on, on stderr.
pub fn note(text: &str) {
    // There is nobody to tell that stderr is gone.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Columns of the terminal that `say` goes to, or 100 where there is none.
pub fn width() -> usize {
    let size = if STDOUT_IS_THE_DOCUMENTS.load(Ordering::SeqCst) {
        terminal_size::terminal_size_of(io::stderr())
    } else {
        terminal_size::terminal_size_of(io::stdout())
    };
    size.map_or(100, |(columns, _)| usize::from(columns.0).max(40))
}
