//! Where a tracepoint of the block layer has its fields. Kernels differ, so it is read from tracefs.

use fathom_core::Instant;
use fathom_core::watch::{BlockEvent, BlockStage, Operation};

/// The places of the fields in the raw data of a sample, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The number of the tracepoint: the first two bytes of a sample.
    pub(super) number: u16,
    stage: BlockStage,
    pub(super) device: usize,
    sector: usize,
    sectors: usize,
    letters: (usize, usize),
    /// The name of the thread that ran.
    name: Option<usize>,
    error: Option<usize>,
}

impl Layout {
    /// Reads the text of a `format` file. The error names what is missing in it.
    pub(super) fn parse(text: &str, stage: BlockStage) -> Result<Self, String> {
        let number = text.lines().find_map(|line| line.strip_prefix("ID: "));
        let number = number.and_then(|number| number.trim().parse().ok());
        let field = |name: &str, size: Option<usize>| {
            let (offset, length) = find(text, name).ok_or(format!("it has no field {name}"))?;
            match size.is_none_or(|size| size == length) {
                true => Ok((offset, length)),
                false => Err(format!("its field {name} has {length} bytes")),
            }
        };
        Ok(Self {
            number: number.ok_or("it has no number")?,
            stage,
            device: field("dev", Some(4))?.0,
            sector: field("sector", Some(8))?.0,
            sectors: field("nr_sector", Some(4))?.0,
            letters: field("rwbs", None)?,
            name: find(text, "comm").map(|(offset, _)| offset),
            error: find(text, "error").filter(|(_, size)| *size == 4).map(|(offset, _)| offset),
        })
    }

    /// Where the last of the fields ends.
    pub(super) fn end(&self) -> usize {
        let (letters, length) = self.letters;
        let ends = [self.device + 4, self.sector + 8, self.sectors + 4, letters + length];
        let others = [self.name.map(|name| name + 16), self.error.map(|error| error + 4)];
        others.into_iter().flatten().chain(ends).max().expect("there are fields")
    }

    /// The event in the raw data of a sample; none if it is cut off.
    pub(super) fn event(&self, at: Instant, raw: &[u8]) -> Option<BlockEvent> {
        let word = |offset: usize| -> Option<[u8; 4]> { raw.get(offset..)?.first_chunk().copied() };
        let device = u32::from_ne_bytes(word(self.device)?);
        let sector = u64::from_ne_bytes(*raw.get(self.sector..)?.first_chunk()?);
        let (from, length) = self.letters;
        let letters = raw.get(from..from + length)?;
        let end = letters.iter().position(|letter| *letter == 0).unwrap_or(length);
        let failed = match self.error {
            Some(offset) => word(offset)? != [0; 4],
            None => false,
        };
        Some(BlockEvent {
            at,
            // The kernel's dev_t: twelve bits of major, twenty of minor number.
            device: (device >> 20, device & 0xf_ffff),
            operation: Operation::from_letters(&letters[..end]),
            stage: self.stage,
            sector,
            sectors: u32::from_ne_bytes(word(self.sectors)?),
            failed,
            program: 0,
            cpu: 0,
        })
    }

    /// The name of the thread that ran, filled up with zeros, if the tracepoint tells it.
    pub(super) fn thread_name(&self, raw: &[u8]) -> Option<[u8; 16]> {
        raw.get(self.name?..)?.first_chunk().copied()
    }
}

/// Offset and size of a field.
fn find(text: &str, name: &str) -> Option<(usize, usize)> {
    let line = text.lines().find(|line| {
        let declared = line.trim_start().strip_prefix("field:").and_then(|it| it.split(';').next());
        let last = declared.and_then(|it| it.split_whitespace().last());
        last.is_some_and(|last| last.split('[').next() == Some(name))
    })?;
    let value = |key: &str| {
        line.split(';').find_map(|part| part.trim().strip_prefix(key)?.parse::<usize>().ok())
    };
    Some((value("offset:")?, value("size:")?))
}

#[cfg(test)]
pub(super) mod made {
    use super::*;

    /// The layout of a tracepoint whose last field ends here, from 44 on.
    pub(in super::super) fn layout(number: u16, end: usize) -> Layout {
        Layout {
            number,
            stage: BlockStage::Completed,
            device: 8,
            sector: 16,
            sectors: 24,
            letters: (34, end - 34),
            name: None,
            error: Some(28),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Linux 6.18.
    const COMPLETE: &str = "\
name: block_rq_complete
ID: 1021
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:int error;\toffset:28;\tsize:4;\tsigned:1;
\tfield:unsigned short ioprio;\toffset:32;\tsize:2;\tsigned:0;
\tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;
\tfield:__data_loc char[] cmd;\toffset:44;\tsize:4;\tsigned:0;
";

    fn raw() -> [u8; 52] {
        let mut raw = [0; 52];
        raw[..2].copy_from_slice(&1021u16.to_ne_bytes());
        raw[8..12].copy_from_slice(&((254u32 << 20) | 3).to_ne_bytes());
        raw[16..24].copy_from_slice(&123_456u64.to_ne_bytes());
        raw[24..28].copy_from_slice(&8u32.to_ne_bytes());
        raw[34..36].copy_from_slice(b"WS");
        raw
    }

    #[test]
    fn fields_are_found_where_the_kernel_says_they_are() {
        let layout = Layout::parse(COMPLETE, BlockStage::Completed).unwrap();
        assert_eq!((layout.number, layout.end()), (1021, 44));
        let event = layout.event(Instant(5), &raw()).unwrap();
        assert_eq!((event.device, event.sector, event.sectors), ((254, 3), 123_456, 8));
        assert_eq!((event.operation, event.stage), (Operation::Write, BlockStage::Completed));
        assert!(!event.failed);
        let mut failed = raw();
        failed[28..32].copy_from_slice(&(-5i32).to_ne_bytes());
        assert!(layout.event(Instant(5), &failed).unwrap().failed);
        assert_eq!(layout.thread_name(&raw()), None);
        // Shorter than its fields.
        assert_eq!(layout.event(Instant(5), &raw()[..40]), None);
    }

    #[test]
    fn a_tracepoint_with_other_fields_is_not_misread() {
        let without = COMPLETE.replace("nr_sector", "sectors");
        let error = Layout::parse(&without, BlockStage::Completed).unwrap_err();
        assert_eq!(error, "it has no field nr_sector");
        let narrow = COMPLETE.replace("offset:16;\tsize:8", "offset:16;\tsize:4");
        let error = Layout::parse(&narrow, BlockStage::Completed).unwrap_err();
        assert_eq!(error, "its field sector has 4 bytes");
        assert!(Layout::parse("", BlockStage::Issued).is_err());
    }
}
