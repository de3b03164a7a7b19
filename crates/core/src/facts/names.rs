//! Names of targets in texts that have little room.

/// A part of a name ends with one of these.
pub const SEPARATORS: [char; 6] = [' ', ',', ':', '=', '/', '-'];

/// Names without the beginning that all of them share: the names of targets are long and alike.
pub fn short_names(names: &[String]) -> Vec<String> {
    let Some((first, others)) = names.split_first().filter(|(_, others)| !others.is_empty()) else {
        return names.to_vec();
    };
    let shared = |prefix: &str| others.iter().all(|name| name.starts_with(prefix));
    // A number alone is no name, and a name that is only the beginning would be empty.
    let is_name = |name: &String, from: usize| name[from..].starts_with(char::is_alphabetic);
    let ends = first.match_indices(SEPARATORS).map(|(at, text)| at + text.len());
    let ends = ends.take_while(|end| shared(&first[..*end]));
    let from = ends.filter(|end| names.iter().all(|name| is_name(name, *end))).last().unwrap_or(0);
    names.iter().map(|name| name[from..].to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn names_lose_the_beginning_that_they_share() {
        let drives = names(&["sim:study-access-mix,drive=sas", "sim:study-access-mix,drive=sata2"]);
        assert_eq!(short_names(&drives), ["sas", "sata2"]);
        let arrays = names(&["sim:array,disks=1", "sim:array,level=raid5,disks=4"]);
        assert_eq!(short_names(&arrays), ["disks=1", "level=raid5,disks=4"]);
        assert_eq!(short_names(&names(&["/dev/sda", "/dev/nvme0n1"])), ["sda", "nvme0n1"]);
        assert_eq!(short_names(&names(&["sda", "sdb"])), ["sda", "sdb"]);
        assert_eq!(short_names(&names(&["a:", "a:b"])), ["a:", "a:b"]);
        let disks = names(&["sim:array,disks=1", "sim:array,disks=4"]);
        assert_eq!(short_names(&disks), ["disks=1", "disks=4"]);
        assert_eq!(short_names(&names(&["/dev/sda"])), ["/dev/sda"]);
    }
}
