//! The full-screen view of a watch: a table of disks, and for the chosen one its last minutes.

mod draw;
mod heat;
mod state;

use std::io::{self, Stdout, stdout};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use self::state::{State, ViewKey};
use super::Seen;
use crate::error::{Error, plain};
use crate::output;

/// The terminal while the view has it. It is given back when this is dropped, also by a panic.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    state: State,
}

impl Screen {
    /// Takes the terminal. `note` is shown below the table: what cannot be seen, and why.
    ///
    /// # Errors
    ///
    /// When the terminal cannot do it.
    pub fn open(disks: &[String], note: Option<String>) -> Result<Self, Error> {
        let failed = |cause: io::Error| {
            Error::target(
                "the terminal",
                format!("it cannot show a full screen ({})", plain(&cause)),
                "add --plain",
            )
        };
        enable_raw_mode().map_err(failed)?;
        // From here on it is given back when this is dropped.
        let terminal = Terminal::new(CrosstermBackend::new(stdout())).map_err(|cause| {
            drop(disable_raw_mode());
            failed(cause)
        })?;
        let state = State::new(disks, note, output::color());
        let mut screen = Self { terminal, state };
        execute!(stdout(), EnterAlternateScreen).map_err(failed)?;
        screen.draw()?;
        Ok(screen)
    }

    /// Shows an interval.
    ///
    /// # Errors
    ///
    /// When the terminal is gone.
    pub fn take(&mut self, seen: &Seen<'_>) -> Result<(), Error> {
        self.state.take(seen);
        self.draw()
    }

    /// Waits this long for a key, and does what it says. Returns whether the user wants to end.
    ///
    /// # Errors
    ///
    /// When the terminal is gone.
    pub fn wait(&mut self, time: Duration) -> Result<bool, Error> {
        // The reader of keys would read the end of a terminal that has hung up again and again, and
        // never return.
        if hangs_up_within(time).map_err(gone)? {
            return Err(gone(io::ErrorKind::UnexpectedEof.into()));
        }
        if !event::poll(Duration::ZERO).map_err(gone)? {
            return Ok(false);
        }
        match event::read().map_err(gone)? {
            Event::Key(pressed) if pressed.kind != KeyEventKind::Release => {
                if self.state.press(key(&pressed)) {
                    return Ok(true);
                }
            }
            Event::Resize(..) => {}
            _ => return Ok(false),
        }
        self.draw()?;
        Ok(false)
    }

    fn draw(&mut self) -> Result<(), Error> {
        let state = &self.state;
        self.terminal.draw(|frame| draw::all(frame, state)).map(drop).map_err(gone)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal is gone, there is nobody to give it back to.
        let _ = execute!(stdout(), LeaveAlternateScreen);
        let _ = disable_raw_mode();
        let _ = self.terminal.show_cursor();
    }
}

/// Waits for a key this long. Returns whether the terminal has hung up.
fn hangs_up_within(time: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let time = Timespec::try_from(time).map_err(io::Error::other)?;
    match poll(&mut polled, Some(&time)) {
        // A signal, such as that of a terminal with another size.
        Err(Errno::INTR) => Ok(false),
        Err(cause) => Err(cause.into()),
        Ok(_) => Ok(polled[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)),
    }
}

fn gone(cause: io::Error) -> Error {
    Error::target(
        "the terminal",
        format!("it is gone ({})", plain(&cause)),
        "start the watch again",
    )
}

/// What a key means.
fn key(pressed: &KeyEvent) -> ViewKey {
    let control = pressed.modifiers.contains(KeyModifiers::CONTROL);
    match pressed.code {
        KeyCode::Char('c' | 'd') if control => ViewKey::Quit,
        KeyCode::Char('q') => ViewKey::Quit,
        KeyCode::Esc => ViewKey::Back,
        KeyCode::Up | KeyCode::Char('k') => ViewKey::Up,
        KeyCode::Down | KeyCode::Char('j') => ViewKey::Down,
        KeyCode::Char('s') => ViewKey::Sort,
        KeyCode::Char('p' | ' ') => ViewKey::Pause,
        KeyCode::Char('?' | 'h') => ViewKey::Help,
        _ => ViewKey::Other,
    }
}
