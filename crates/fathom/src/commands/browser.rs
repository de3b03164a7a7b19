//! `--open`: shows an HTML report in the browser. What stands against it is said before anything is
//! measured. If the browser does not start afterwards, the report is still there.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fathom_core::typed_path;

use crate::error::{Error, plain};
use crate::output;

/// The program that desktops have for this.
const OPENER: &str = "xdg-open";

/// What decides whether a report can be opened.
struct Desktop {
    /// The program that the user has chosen, in `$BROWSER`.
    browser: Option<OsString>,
    has_display: bool,
    is_root: bool,
    has_opener: bool,
}

impl Desktop {
    fn here() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let folders = std::env::var_os("PATH").unwrap_or_default();
        Self {
            browser: set("BROWSER").map(|list| first(&list)),
            has_display: set("DISPLAY").or(set("WAYLAND_DISPLAY")).is_some(),
            is_root: rustix::process::geteuid().is_root(),
            has_opener: std::env::split_paths(&folders).any(|folder| folder.join(OPENER).is_file()),
        }
    }

    /// The program that opens a report.
    fn opener(&self, report: &Path) -> Result<OsString, Error> {
        let shown = typed_path(&report.display().to_string());
        let refuse = |problem: &str, remedy: String| Err(Error::option("--open", problem, remedy));
        match self {
            // The user has chosen the program, so it also runs as root.
            Self { browser: Some(browser), .. } => Ok(browser.clone()),
            Self { is_root: true, .. } => refuse(
                "fathom runs as root, and a browser must not",
                format!("drop it and open {shown} as yourself, or name a program in $BROWSER"),
            ),
            Self { has_display: false, .. } => refuse(
                "there is no desktop here: neither DISPLAY nor WAYLAND_DISPLAY is set",
                format!("drop it and copy {shown} to a desktop, or name a program in $BROWSER"),
            ),
            Self { has_opener: false, .. } => refuse(
                "there is no xdg-open on the PATH",
                "install it (xdg-utils), or name a program in $BROWSER".to_owned(),
            ),
            Self { .. } => Ok(OPENER.into()),
        }
    }
}

/// The first of the programs in a list with colons between them.
fn first(list: &OsStr) -> OsString {
    let bytes = list.as_bytes().split(|byte| *byte == b':').next().unwrap_or_default();
    OsStr::from_bytes(bytes).to_owned()
}

/// Refuses `--open` of this report if there will be nothing to open or nothing to open it with.
///
/// # Errors
///
/// In these cases.
pub fn check(html: Option<&Path>) -> Result<(), Error> {
    match html {
        None => {
            Err(Error::option("--open", "no HTML report is written to a file", "add --html FILE"))
        }
        Some(html) => Desktop::here().opener(html).map(drop),
    }
}

/// Opens a report that has been written. The browser goes on by itself.
pub fn open(report: &Path) {
    let failed = |why: String| output::note(&format!("{} is not opened: {why}", report.display()));
    let opener = match Desktop::here().opener(report) {
        Ok(opener) => opener,
        Err(error) => return failed(error.to_string()),
    };
    let path = std::path::absolute(report).unwrap_or(PathBuf::from(report));
    let mut command = Command::new(&opener);
    command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C in this terminal is not for the browser.
    if let Err(cause) = command.process_group(0).spawn() {
        failed(format!("{} cannot be started ({})", opener.display(), plain(&cause)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESKTOP: Desktop =
        Desktop { browser: None, has_display: true, is_root: false, has_opener: true };

    #[test]
    fn a_report_is_opened_by_the_desktop_or_by_the_program_that_the_user_chose() {
        let report = Path::new("r.html");
        assert_eq!(DESKTOP.opener(report).unwrap(), "xdg-open");
        let chosen = Desktop { browser: Some("mine".into()), is_root: true, ..DESKTOP };
        assert_eq!(chosen.opener(report).unwrap(), "mine");
        assert_eq!(first("firefox:chromium".as_ref()), "firefox");
    }

    #[test]
    fn a_report_is_not_opened_as_root_nor_without_a_desktop() {
        for (desktop, parts) in [
            (Desktop { is_root: true, ..DESKTOP }, ["root", "open r.html as yourself"]),
            (Desktop { has_display: false, ..DESKTOP }, ["no desktop", "copy r.html"]),
            (Desktop { has_opener: false, ..DESKTOP }, ["no xdg-open", "install it"]),
        ] {
            let error = desktop.opener(Path::new("r.html")).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
            assert!(error.starts_with("--open: ") && error.contains("$BROWSER"), "{error}");
        }
    }
}
