//! How hosts divide regions among them, in words.

use crate::spec::Region;
use crate::units::count;

/// The bytes of each host, of its regions in their order: "bytes 0 to 4,095" if its part lies by
/// itself, "1 of 3 blocks in bytes 4,096 to 12,287" if those of other hosts lie between them.
pub fn bytes_in_words(hosts: &[&[Region]]) -> Vec<String> {
    let first = |host: &&[Region]| host.first().map(|one| (one.offset.0, one.length.0));
    let starts: Vec<(u64, u64)> = hosts.iter().filter_map(first).collect();
    // The host after a host begins within its part.
    let lies_between = starts.windows(2).any(|two| two[1].0 < two[0].0.saturating_add(two[0].1));
    let bytes = |region: &Region| {
        let last = region.offset.0.saturating_add(region.length.0).saturating_sub(1);
        let range = format!("bytes {} to {}", count(region.offset.0), count(last));
        match lies_between {
            true => format!("1 of {} blocks in {range}", hosts.len()),
            false => range,
        }
    };
    let words = |host: &&[Region]| host.iter().map(bytes).collect::<Vec<_>>().join(", ");
    hosts.iter().map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    #[test]
    fn parts_and_blocks_are_told_apart() {
        let region =
            |offset, length| Region { target: 0, offset: Bytes(offset), length: Bytes(length) };
        let parts = [[region(0, 4096)], [region(4096, 8192)]];
        let parts: Vec<&[Region]> = parts.iter().map(<[Region; 1]>::as_slice).collect();
        assert_eq!(bytes_in_words(&parts), ["bytes 0 to 4,095", "bytes 4,096 to 12,287"]);
        let blocks = [[region(0, 8192)], [region(4096, 8192)]];
        let blocks: Vec<&[Region]> = blocks.iter().map(<[Region; 1]>::as_slice).collect();
        assert_eq!(
            bytes_in_words(&blocks),
            ["1 of 2 blocks in bytes 0 to 8,191", "1 of 2 blocks in bytes 4,096 to 12,287"]
        );
    }
}
