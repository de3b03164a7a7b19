//! The meaning of the kernel's error numbers for an I/O, in words, with a remedy: one table for the
//! verdict and for every report, which may be read on other systems too. The numbers are those of
//! Linux, on every architecture of Rust's Linux targets that shares them; this crate asks no
//! system.

/// An error number in words.
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
    /// The number's name, such as "EIO"; none for a number that storage does not return.
    pub name: Option<&'static str>,
    /// Its meaning for the I/O.
    pub words: &'static str,
    /// The remedy.
    pub advice: &'static str,
}

const LOOK_AT_THE_LOG: &str =
    "Look at the kernel's log (dmesg) for the device's own message, and at its cables and health.";
const FREE_SPACE: &str =
    "Free space on the file system or make the file smaller, and write it once before measuring.";
const RIGHTS: &str = "Run as a user who may do this, or choose a target where it is allowed.";
const ALIGN: &str =
    "Use a block size and offsets that are multiples of the sector, or buffered access.";
const RETRY: &str = "Lower the queue depth or raise the limit, and run again.";
const CONNECTION: &str =
    "See that the server behind the target runs and can be reached, then mount it again.";
const BACK: &str = "See that the device is attached and powered, then run again.";

/// The meaning of an error number.
pub fn meaning(errno: i32) -> Meaning {
    let (name, words, advice) = match errno {
        1 => ("EPERM", "the operation is not permitted", RIGHTS),
        4 => ("EINTR", "a signal interrupted the I/O", "Run again."),
        5 => ("EIO", "the device or what lies below it could not do the I/O", LOOK_AT_THE_LOG),
        6 => ("ENXIO", "the device does not answer or is gone", BACK),
        9 => ("EBADF", "the file is not open for this direction", RIGHTS),
        11 => ("EAGAIN", "the kernel had no resources for the I/O now", RETRY),
        12 => ("ENOMEM", "the kernel had no memory for the I/O", RETRY),
        13 => ("EACCES", "access is denied", RIGHTS),
        16 => {
            ("EBUSY", "another program uses the device", "End the other use of the device first.")
        }
        19 => ("ENODEV", "the device is gone", BACK),
        22 => ("EINVAL", "offset, length or memory are not aligned as the target needs", ALIGN),
        27 => ("EFBIG", "the offset is beyond what the file may grow to", FREE_SPACE),
        28 => ("ENOSPC", "no space is left", FREE_SPACE),
        30 => {
            ("EROFS", "the file system is read-only or became so after an error", LOOK_AT_THE_LOG)
        }
        52 => ("EBADE", "the device refused the command because of a reservation", RIGHTS),
        61 => ("ENODATA", "the medium could not be read there", LOOK_AT_THE_LOG),
        62 => ("ETIME", "the device did not answer in time", LOOK_AT_THE_LOG),
        67 => ("ENOLINK", "the path to the device is lost", BACK),
        84 => ("EILSEQ", "the checksum of the data is wrong", LOOK_AT_THE_LOG),
        95 => ("EOPNOTSUPP", "the target cannot do this kind of I/O", "Choose another access."),
        103 => ("ECONNABORTED", "the server of the file system is gone", CONNECTION),
        104 => ("ECONNRESET", "the connection was cut", CONNECTION),
        107 => ("ENOTCONN", "the server of the file system is not connected", CONNECTION),
        110 => ("ETIMEDOUT", "the device did not answer in time", LOOK_AT_THE_LOG),
        116 => ("ESTALE", "the server no longer knows the file", CONNECTION),
        121 => ("EREMOTEIO", "the device reported a failure of its own", LOOK_AT_THE_LOG),
        122 => ("EDQUOT", "the quota is used up", FREE_SPACE),
        125 => ("ECANCELED", "the I/O was canceled", "Run again."),
        131 => ("ENOTRECOVERABLE", "the state cannot be recovered", LOOK_AT_THE_LOG),
        _ => {
            let words = "the kernel refused the I/O";
            return Meaning { name: None, words, advice: LOOK_AT_THE_LOG };
        }
    };
    Meaning { name: Some(name), words, advice }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_meaning() {
        for errno in -1..200 {
            let meaning = meaning(errno);
            assert!(!meaning.words.is_empty() && meaning.advice.ends_with('.'), "{errno}");
        }
        assert_eq!(meaning(5).name, Some("EIO"));
        assert_eq!(meaning(28).name, Some("ENOSPC"));
    }
}
