//! The meaning of an NVMe command's status, in words, with a remedy: the device's own answer, if
//! commands reach it directly. Otherwise the kernel turns it into an errno.
//!
//! The numbers are those of the NVM Express base and NVM command set specifications.

/// A status in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusMeaning {
    /// Its name in the specification; none for a status that reads and writes do not return.
    pub name: Option<&'static str>,
    /// The remedy.
    pub advice: &'static str,
}

const DEVICE: &str =
    "Look at the kernel's log (dmesg) and at the device's own (nvme error-log, nvme smart-log).";
const REPORT: &str = "The command itself is wrong for this device: measure its block device, and tell \
                      us what device it is.";
const RANGE: &str = "See that the region lies within the namespace, then run again.";
const RETRY: &str =
    "The device was busy with something else: wait until it is done, then run again.";
const WRITE_PROTECTED: &str = "Only read from it, or switch its write protection off.";
const MEDIUM: &str = "The medium fails there: look at the device's own log (nvme smart-log).";
const ZONE: &str = "The namespace is zoned and takes sequential writes only: measure reads.";
const RESERVED: &str = "Another host has reserved the namespace: release it there first.";

/// The meaning of a status: its code type and code, without the bits beside them.
pub fn meaning(status: u16) -> StatusMeaning {
    let (name, advice) = match status & 0x7FF {
        0x001 => ("Invalid Command Opcode", REPORT),
        0x002 => ("Invalid Field in Command", REPORT),
        0x004 => ("Data Transfer Error", DEVICE),
        0x005 => ("Commands Aborted due to Power Loss Notification", DEVICE),
        0x006 => ("Internal Error", DEVICE),
        0x007 => ("Command Abort Requested", DEVICE),
        0x008 => ("Command Aborted due to SQ Deletion", DEVICE),
        0x00B => ("Invalid Namespace or Format", REPORT),
        0x013 => ("PRP Offset Invalid", REPORT),
        0x01C => ("Sanitize Failed", DEVICE),
        0x01D => ("Sanitize In Progress", RETRY),
        0x020 => ("Namespace is Write Protected", WRITE_PROTECTED),
        0x021 => ("Command Interrupted", RETRY),
        0x022 => ("Transient Transport Error", DEVICE),
        0x080 => ("LBA Out of Range", RANGE),
        0x081 => ("Capacity Exceeded", RANGE),
        0x082 => ("Namespace Not Ready", RETRY),
        0x083 => ("Reservation Conflict", RESERVED),
        0x084 => ("Format In Progress", RETRY),
        0x180 => ("Conflicting Attributes", REPORT),
        0x182 => ("Attempted Write to Read Only Range", WRITE_PROTECTED),
        0x1B8 => ("Zone Boundary Error", ZONE),
        0x1B9 => ("Zone Is Full", ZONE),
        0x1BA => ("Zone Is Read Only", ZONE),
        0x1BB => ("Zone Is Offline", ZONE),
        0x1BC => ("Zone Invalid Write", ZONE),
        0x280 => ("Write Fault", MEDIUM),
        0x281 => ("Unrecovered Read Error", MEDIUM),
        0x282 => ("End-to-end Guard Check Error", MEDIUM),
        0x283 => ("End-to-end Application Tag Check Error", MEDIUM),
        0x284 => ("End-to-end Reference Tag Check Error", MEDIUM),
        0x285 => ("Compare Failure", MEDIUM),
        0x286 => ("Access Denied", WRITE_PROTECTED),
        0x287 => ("Deallocated or Unwritten Logical Block", "Write the region fully first."),
        0x302 => ("Asymmetric Access Inaccessible", DEVICE),
        0x303 => ("Asymmetric Access Transition", RETRY),
        0x370 => ("Host Pathing Error", DEVICE),
        0x371 => ("Command Aborted By Host", DEVICE),
        _ => return StatusMeaning { name: None, advice: DEVICE },
    };
    StatusMeaning { name: Some(name), advice }
}

/// A status as the specification writes it: "status code type 2h, status code 81h".
pub fn numbers(status: u16) -> String {
    format!("status code type {:x}h, status code {:02x}h", status >> 8 & 7, status & 0xFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_advice_and_the_bits_beside_it_do_not_count() {
        for status in 0..=u16::MAX {
            let known = meaning(status);
            assert!(known.advice.ends_with('.') && known == meaning(status & 0x7FF), "{status:x}");
        }
        assert_eq!(meaning(0x4281).name, Some("Unrecovered Read Error"));
        assert_eq!(numbers(0x4281), "status code type 2h, status code 81h");
        assert_eq!(numbers(0x0080), "status code type 0h, status code 80h");
    }
}
