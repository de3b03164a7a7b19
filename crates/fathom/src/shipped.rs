//! The workloads and studies that come with fathom: files in the form that a user would write.

/// Each with its name.
const ALL: [(&str, &str); 9] = [
    ("oltp", include_str!("../workloads/oltp.toml")),
    ("data-warehouse", include_str!("../workloads/data-warehouse.toml")),
    ("tempdb", include_str!("../workloads/tempdb.toml")),
    ("log", include_str!("../workloads/log.toml")),
    ("vdi", include_str!("../workloads/vdi.toml")),
    ("video", include_str!("../workloads/video.toml")),
    ("backup", include_str!("../workloads/backup.toml")),
    ("web", include_str!("../workloads/web.toml")),
    ("boot-storm", include_str!("../workloads/boot-storm.toml")),
];

/// The classic studies, each with its name: specs of experiments that users may start from, too.
const STUDIES: [(&str, &str); 5] = [
    ("write-concurrency", include_str!("../../../examples/studies/write-concurrency.toml")),
    ("multi-stream", include_str!("../../../examples/studies/multi-stream.toml")),
    ("latency-map", include_str!("../../../examples/studies/latency-map.toml")),
    ("access-mix", include_str!("../../../examples/studies/access-mix.toml")),
    ("best-practice", include_str!("../../../examples/studies/best-practice.toml")),
];

/// A workload's or a study's TOML.
pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().chain(&STUDIES).find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The names of the studies.
pub fn studies() -> impl Iterator<Item = &'static str> {
    STUDIES.iter().map(|(name, _)| *name)
}

/// The names of the workloads.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

/// Its purpose: its `about`.
pub fn about(name: &str) -> String {
    let lines = text(name).unwrap_or_default().lines();
    let about = lines.filter_map(|line| line.strip_prefix("about = \"")).next();
    about.unwrap_or_default().trim_end_matches('"').to_owned()
}
