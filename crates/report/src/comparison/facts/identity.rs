//! What makes a target itself, as the header of a result has it: "inode 12, born 17 ns after 1970,
//! wwid eui.0025".

/// The parts of an identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// When the file was created, in nanoseconds since 1970.
    pub born_ns: Option<u64>,
    /// What the kernel calls a block device by, each with its attribute of sysfs, in the order of the
    /// result.
    attributes: Vec<(&'static str, String)>,
}

/// The attributes with the name that people give them, the best known first.
const ATTRIBUTES: [(&str, &str); 8] = [
    ("device/serial", "serial number"),
    ("serial", "serial number"),
    ("wwid", "identifier"),
    ("device/wwid", "identifier"),
    ("dm/uuid", "identifier"),
    ("md/uuid", "identifier"),
    ("loop/backing_file", "file of the loop device"),
    ("partition", "number of the partition"),
];

impl Identity {
    /// Reads an identity; what it does not know is left out.
    pub fn of(text: &str) -> Self {
        let mut identity = Self::default();
        for part in text.split(", ") {
            if let Some(born) = part.strip_prefix("born ") {
                identity.born_ns = born.split(' ').next().and_then(|ns| ns.parse().ok());
            }
            let value = |name: &str| part.strip_prefix(name)?.strip_prefix(' ');
            let known = ATTRIBUTES.iter().find_map(|(name, _)| Some((*name, value(name)?)));
            identity.attributes.extend(known.map(|(name, value)| (name, value.to_owned())));
        }
        identity
    }

    /// The values of an attribute: a partition has its own and that of its disk.
    fn values(&self, wanted: &str) -> Vec<&str> {
        let own = self.attributes.iter().filter(|(name, _)| *name == wanted);
        own.map(|(_, value)| value.as_str()).collect()
    }

    /// The first attribute that both know and that differs: what people call it, and both values.
    pub fn differs(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let pair = |(name, called): &(&str, &'static str)| {
            let (one, two) = (self.values(name), other.values(name));
            let differs = !one.is_empty() && !two.is_empty() && one != two;
            differs.then(|| (*called, one.join(", "), two.join(", ")))
        };
        ATTRIBUTES.iter().find_map(pair)
    }

    /// The best known attribute of a device: its serial number if there is one; none for a file.
    pub fn device(&self) -> Option<String> {
        let known = ATTRIBUTES.iter().map(|(name, _)| self.values(name));
        known.into_iter().find(|values| !values.is_empty()).map(|values| values.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_taken_apart() {
        let one = Identity::of("inode 12, born 1795253400000000000 ns after 1970");
        assert_eq!(one.born_ns, Some(1_795_253_400_000_000_000));
        let disk = Identity::of("wwid eui.01, device/serial S1 2, device/model X, Y");
        assert_eq!((one.device(), disk.device().as_deref()), (None, Some("S1 2")));
        let other = Identity::of("wwid eui.02, device/serial S3");
        let serials = ("serial number", "S1 2".to_owned(), "S3".to_owned());
        assert_eq!(disk.differs(&other), Some(serials));
        assert_eq!(disk.differs(&disk), None);
        assert_eq!(disk.differs(&Identity::of("")), None);
        let partition = Identity::of("partition 2, wwid eui.01");
        let moved = Identity::of("partition 3, wwid eui.01");
        assert_eq!(partition.differs(&moved).unwrap().0, "number of the partition");
    }
}
