//! How hosts divide regions among them, in words.

use crate::spec::Region;
use crate::units::count;

/// For each host the bytes that it has of each target, in the order of their numbers: "bytes 0 to 4,095"
/// if its part lies by itself, "1 of 3 blocks in bytes 4,096 to 12,287" if those of other hosts lie
/// between them, nothing if it has none. Streams with the same region say it once.
pub fn bytes_in_words(hosts: &[&[Region]]) -> Vec<Vec<String>> {
    let all = hosts.iter().flat_map(|regions| regions.iter());
    let targets = all.map(|region| region.target + 1).max().unwrap_or(0);
    let of_targets: Vec<Vec<String>> =
        (0..targets).map(|target| bytes_of_target(hosts, target)).collect();
    let of_host = |host: usize| of_targets.iter().map(|all| all[host].clone()).collect();
    (0..hosts.len()).map(of_host).collect()
}

/// For each host the bytes that it has of this target.
fn bytes_of_target(hosts: &[&[Region]], target: u32) -> Vec<String> {
    let own = |regions: &&[Region]| -> Vec<(u64, u64)> {
        let own = regions.iter().filter(|region| region.target == target);
        let mut ranges: Vec<(u64, u64)> = own.map(|one| (one.offset.0, one.length.0)).collect();
        ranges.dedup();
        ranges
    };
    let hosts: Vec<Vec<(u64, u64)>> = hosts.iter().map(own).collect();
    let starts: Vec<(u64, u64)> = hosts.iter().filter_map(|own| own.first().copied()).collect();
    // The host after a host begins within its part.
    let lies_between = starts.windows(2).any(|two| two[1].0 < two[0].0.saturating_add(two[0].1));
    let bytes = |&(offset, length): &(u64, u64)| {
        let last = offset.saturating_add(length).saturating_sub(1);
        let range = format!("bytes {} to {}", count(offset), count(last));
        match lies_between {
            true => format!("1 of {} blocks in {range}", hosts.len()),
            false => range,
        }
    };
    hosts.iter().map(|own| own.iter().map(bytes).collect::<Vec<_>>().join(", ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    fn region(target: u32, offset: u64, length: u64) -> Region {
        Region { target, offset: Bytes(offset), length: Bytes(length) }
    }

    #[test]
    fn parts_and_blocks_are_told_apart() {
        let words = |hosts: [Region; 2]| {
            let each: Vec<&[Region]> = hosts.iter().map(std::slice::from_ref).collect();
            bytes_in_words(&each).concat()
        };
        assert_eq!(
            words([region(0, 0, 4096), region(0, 4096, 8192)]),
            ["bytes 0 to 4,095", "bytes 4,096 to 12,287"]
        );
        assert_eq!(
            words([region(0, 0, 8192), region(0, 4096, 8192)]),
            ["1 of 2 blocks in bytes 0 to 8,191", "1 of 2 blocks in bytes 4,096 to 12,287"]
        );
    }

    #[test]
    fn each_target_has_its_own_bytes() {
        // Two streams on the first target, one on the third.
        let one = [region(0, 0, 4096), region(0, 0, 4096), region(2, 0, 512)];
        let other = [region(0, 4096, 4096), region(0, 4096, 4096), region(2, 512, 512)];
        assert_eq!(
            bytes_in_words(&[&one, &other]),
            [
                ["bytes 0 to 4,095", "", "bytes 0 to 511"],
                ["bytes 4,096 to 8,191", "", "bytes 512 to 1,023"]
            ]
        );
    }
}
