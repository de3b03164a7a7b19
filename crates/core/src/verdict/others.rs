//! Whether other programs used the targets, or changed them.

use super::case::{Case, counted};
use super::layers::is_fuse;
use super::{Judgement, Severity};
use crate::facts::{Seen, Target, TargetKind};
use crate::units::{Bytes, Span};

/// The writes to a device that need no program: a superblock, a log.
const WRITTEN_SLACK: u64 = Bytes::MIB;

/// Targets that were replaced by the end, that others wrote to, or that another fathom process
/// measures.
pub(super) fn at_the_targets(case: &Case, judgement: &mut Judgement) {
    let codes = ["target-replaced", "target-written-by-others", "concurrent-fathom"];
    for (place, target) in case.used() {
        if !matches!(target.kind, TargetKind::File | TargetKind::BlockDevice) {
            continue;
        }
        let mut seen = case.trial.counters.iter().flat_map(|counters| &counters.targets);
        let Some(seen) = seen.nth(place as usize).and_then(Option::as_ref) else {
            for code in codes {
                judgement.cannot(code, format!("{} was not looked at in the window", target.name));
            }
            continue;
        };
        replaced(judgement, target, seen);
        written_by_others(case, judgement, (place, target), seen);
        other_fathoms(judgement, target, seen);
    }
}

fn replaced(judgement: &mut Judgement, target: &Target, seen: &Seen) {
    if seen.replaced {
        judgement.find(
            "target-replaced",
            Severity::Void,
            format!(
                "By the end of the window {} named another file, or none: it was replaced, removed or \
                 unmounted, and what was measured is no longer there.",
                target.path
            ),
            "Find out who replaces or unmounts it, and measure again.",
        );
    }
}

fn written_by_others(
    case: &Case,
    judgement: &mut Judgement,
    (place, target): (u32, &Target),
    seen: &Seen,
) {
    let destroys =
        case.regions().any(|(stream, region)| region.target == place && stream.destroys());
    let what = match target.kind {
        // Blocks within a file never change its size.
        _ if 0 < seen.size.0 => Some(format!("its size changed by {}", seen.size)),
        TargetKind::File if !destroys && 0 < seen.modified_ns && tells_the_present(target) => {
            return judgement.cannot(
                "target-written-by-others",
                format!(
                    "a program serves {} by FUSE, and some tell the present as the time of its last \
                     change",
                    target.name
                ),
            );
        }
        TargetKind::File if !destroys && 0 < seen.modified_ns => {
            let moved = Span(seen.modified_ns);
            Some(format!("the time of its last change moved by {:.3} s", moved.as_secs_f64()))
        }
        TargetKind::BlockDevice => written_to_device(case, target),
        _ => None,
    };
    if let Some(what) = what {
        judgement.find(
            "target-written-by-others",
            Severity::Suspect,
            format!("Somebody else wrote to {} in the window: {what}.", target.name),
            "Stop who writes to it (`fuser -v`, `lsof`), and measure again.",
        );
    }
}

/// Whether the time of a file's last change may be the time of the query, as with qemu's exports.
fn tells_the_present(target: &Target) -> bool {
    target.file_system.as_ref().is_some_and(|system| is_fuse(&system.kind))
}

/// The bytes written to a device that no stream writes to, in words.
fn written_to_device(case: &Case, target: &Target) -> Option<String> {
    let number = target.layers.first()?.device?;
    let below = |other: &Target| other.layers.iter().any(|layer| layer.device == Some(number));
    let ours = case.regions().any(|(stream, region)| {
        stream.destroys() && case.targets.get(region.target as usize).is_some_and(below)
    });
    let devices = &case.trial.counters.as_ref()?.devices;
    let device = devices.iter().find(|device| device.device == number)?;
    (!ours && WRITTEN_SLACK < device.written_bytes.0)
        .then(|| format!("{} in {}", device.written_bytes, counted(device.writes, "write")))
}

fn other_fathoms(judgement: &mut Judgement, target: &Target, seen: &Seen) {
    let Some(others) = &seen.others else {
        judgement.cannot(
            "concurrent-fathom",
            format!("{} takes no locks by which fathoms see each other", target.name),
        );
        return;
    };
    if others.present {
        let does = if others.writing { "wrote to it" } else { "read from it" };
        judgement.find(
            "concurrent-fathom",
            Severity::Suspect,
            format!("Another fathom had {} open at the same time, and {does}.", target.name),
            "Let one end before the next begins: each measures the other.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Invented;
    use super::*;
    use crate::facts::Others;

    fn seen(invented: &mut Invented) -> &mut Seen {
        invented.counters().targets[0].as_mut().unwrap()
    }

    #[test]
    fn a_target_that_is_another_by_the_end_is_void() {
        let mut invented = Invented::reads();
        seen(&mut invented).replaced = true;
        let finding = invented.has("target-replaced", Severity::Void);
        assert!(finding.evidence.contains("/mnt/data.bin named another file"), "{finding:?}");
        invented.counters().targets.clear();
        invented.has_none_of(&["target-replaced"]);
        for code in ["target-replaced", "target-written-by-others", "concurrent-fathom"] {
            invented.is_unchecked(code);
        }
    }

    #[test]
    fn a_file_that_changes_though_it_is_only_read_is_somebody_else_s_work() {
        let code = "target-written-by-others";
        let mut invented = Invented::reads();
        seen(&mut invented).modified_ns = 2_500_000_000;
        let finding = invented.has(code, Severity::Suspect);
        assert!(finding.evidence.contains("moved by 2.500 s"), "{}", finding.evidence);
        let mut writes = Invented::writes();
        seen(&mut writes).modified_ns = 2_500_000_000;
        writes.has_none_of(&[code]);
        seen(&mut writes).size = Bytes(4096);
        writes.has(code, Severity::Suspect);
        // A program that serves a file may report any time of change, but still a correct size.
        invented.target().file_system.as_mut().unwrap().kind = "fuse".to_owned();
        invented.has_none_of(&[code]);
        invented.is_unchecked(code);
        seen(&mut invented).size = Bytes(4096);
        invented.has(code, Severity::Suspect);
    }

    #[test]
    fn what_others_write_to_a_device_is_counted_there() {
        let code = "target-written-by-others";
        for (mut invented, is_found) in [(Invented::reads(), true), (Invented::writes(), false)] {
            invented.target().kind = TargetKind::BlockDevice;
            invented.target().layers.remove(0);
            invented.target().layers[0].members.clear();
            invented.has_none_of(&[code]);
            invented.device().written_bytes.0 += 5 << 20;
            assert_eq!(invented.codes().contains(&code), is_found);
            // The layers below a file are not part of the file.
            invented.target().kind = TargetKind::File;
            invented.has_none_of(&[code]);
        }
    }

    #[test]
    fn another_fathom_is_told_with_what_it_does() {
        let code = "concurrent-fathom";
        let mut invented = Invented::reads();
        seen(&mut invented).others = Some(Others { present: true, writing: false });
        let finding = invented.has(code, Severity::Suspect);
        assert!(finding.evidence.ends_with("and read from it."), "{}", finding.evidence);
        seen(&mut invented).others = Some(Others { present: true, writing: true });
        assert!(invented.has(code, Severity::Suspect).evidence.ends_with("and wrote to it."));
        seen(&mut invented).others = None;
        invented.has_none_of(&[code]);
        invented.is_unchecked(code);
    }
}
