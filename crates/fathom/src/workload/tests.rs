//! Tests what workload files become, and the messages about those that cannot be used.

use std::path::Path;

use clap::Parser;
use fathom_core::facts::{CpuPlace, Target, TargetKind};
use fathom_core::spec::{Cache, Pacing, Region};
use fathom_core::{Bytes, Span};

use super::Asked;
use super::keys::Table;
use crate::cli::args::{Args, Command, SweepArgs};
use crate::cli::options::{Request, Typed};
use crate::cli::searches::PeakArgs;
use crate::resolve::{self, Machine, Spec};
use crate::shipped;

const MACHINE: Machine<'_> = Machine {
    memory: Bytes(8 * Bytes::GIB),
    fresh_seed: 4711,
    cpus: 2,
    cpu_places: &[
        CpuPlace { number: 0, package: Some(0), core: Some(0), node: Some(0) },
        CpuPlace { number: 1, package: Some(0), core: Some(1), node: Some(0) },
    ],
};

fn request(words: &[&str]) -> Request {
    let line = ["fathom", "plan"].iter().chain(words);
    let Command::Plan(plan) = Args::parse_from(line).command else { unreachable!() };
    plan.request
}

/// A disk of 1 TiB with this name.
fn target(path: &Path) -> Target {
    let mut target = Target::simulated(&path.to_string_lossy(), Bytes(1 << 40));
    target.kind = TargetKind::File;
    target.direct_alignment = Some(Bytes(512));
    target
}

fn settle_request(request: &Request) -> Result<Spec, String> {
    let settled = || {
        let mut asked = Asked::read(request)?;
        let paths = asked.described.locate(|_| Ok(None))?;
        let targets = paths.iter().map(|path| target(path)).collect();
        let spec = resolve::settle(&asked.described, targets, MACHINE);
        let spec = spec.map_err(|blame| asked.explain(blame))?;
        resolve::consent::permit(spec, &asked.described).map_err(|error| asked.explain_whole(error))
    };
    settled().map_err(|error: crate::error::Error| error.to_string())
}

fn settle(words: &[&str]) -> Result<Spec, String> {
    settle_request(&request(words))
}

/// Files in their own folder. The first one is the workload.
struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    fn one(text: &str) -> Self {
        Self::new(&[("w.toml", text)])
    }

    fn path(&self) -> String {
        self.0.path().join("w.toml").display().to_string()
    }

    fn settle(&self, words: &[&str]) -> Result<Spec, String> {
        settle(&[&[self.path().as_str()], words].concat())
    }

    /// The message about it, without the folder, whose name is not known beforehand.
    fn refusal(&self, words: &[&str]) -> String {
        let text = self.settle(words).expect_err("it is refused");
        text.replace(&format!("{}/", self.0.path().display()), "")
    }
}

#[test]
fn every_workload_that_ships_can_be_run() {
    for name in shipped::names() {
        let spec = settle(&[name, "f", "--overwrite"]);
        // Workloads that only read refuse the consent.
        let spec = spec.or_else(|_| settle(&[name, "f"])).unwrap();
        assert!(shipped::about(name).len() > 20, "{name} does not say what it is");
        assert_eq!(spec.points[0].name, name);
        let by_flag = settle(&["--workload", name, "f", "--overwrite"]);
        assert_eq!(by_flag.or_else(|_| settle(&["--workload", name, "f"])).unwrap(), spec);
    }
    let oltp = settle(&["oltp", "f", "--overwrite", "--set", "depth=5"]).unwrap();
    let stream = &oltp.points[0].streams[0];
    assert_eq!(stream.pacing, Pacing::closed(5));
    assert_eq!((stream.read_share(), stream.block_sizes().only()), (0.7, Some(Bytes(8192))));
}

#[test]
fn every_example_can_be_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut tried = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "toml") {
            // The workloads of the studies are tested with the studies, the Job with containers.
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("#:schema ../docs/schema/workload-1.json\n"), "{path:?}");
        tried += 1;
        // Sweeps are planned and run by the tests of the built program.
        if text.contains("\n[sweep]\n") {
            continue;
        }
        let path = path.display().to_string();
        let with = |more: &[&str]| settle(&[&[path.as_str()], more].concat());
        let all = [&["f"][..], &[], &["--overwrite"], &["f", "--overwrite"]].map(with);
        assert!(all.iter().any(Result::is_ok), "{path}: {all:#?}");
    }
    assert!(tried >= 19, "{}", folder.display());
}

#[test]
fn a_typed_amount_takes_the_warm_up_of_a_file_away() {
    let warm_up = |file: &str, typed: &[(&str, &str)]| {
        let files = Files::one(file);
        let mut request = request(&[files.path().as_str(), "f"]);
        let typed = typed.iter().map(|&(name, value)| (name.to_owned(), Some(value.to_owned())));
        request.typed.extend(typed.map(|(name, value)| Typed { name, value }));
        settle_request(&request).unwrap().points[0].warm_up
    };
    let timed = "warm-up = '5s'\n";
    assert_eq!(warm_up(timed, &[]), Span::from_secs(5));
    assert_eq!(warm_up(timed, &[("stop-after", "100 ios")]), Span(0));
    assert_eq!(warm_up(timed, &[("passes", "2")]), Span(0));
    assert_eq!(warm_up(timed, &[("passes", "2"), ("warm-up", "1s")]), Span::from_secs(1));
    // These files mean their warm-up beside an amount, or leave it to --set.
    for meant in [
        "warm-up = '5s'\nstop-after = '1g'\n",
        "warm-up = '5s'\n[stream.log]\nstop-after = '1g'\n",
        "warm-up = '${w}'\n[vars]\nw = '5s'\n",
    ] {
        assert_eq!(warm_up(meant, &[("stop-after", "2g")]), Span::from_secs(5), "{meant}");
    }
}

const TWO: &str = "\
name = 'shop'
duration = '2s'
[vars]
depth = 8
[stream.data]
targets = ['a', 'b']
block-size = '8k'
read-share = '70%'
queue-depth = '${depth}/target'
[stream.log]
targets = [{ path = 'c', offset = '1m', size = '16m' }]
pattern = 'sequential'
read-share = 0.0
buffered = true
";

#[test]
fn streams_have_their_own_targets_regions_and_access() {
    let spec = Files::one(TWO).settle(&["--overwrite"]).unwrap();
    let point = &spec.points[0];
    assert_eq!((point.name.as_str(), point.window), ("shop", Span::from_secs(2)));
    let [data, log] = point.streams.as_slice() else { panic!("{point:#?}") };
    assert_eq!((data.name.as_str(), log.name.as_str()), ("data", "log"));
    assert_eq!(data.regions.iter().map(|region| region.target).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(data.pacing, Pacing::closed(16));
    let region = Region { target: 2, offset: Bytes(1 << 20), length: Bytes(16 << 20) };
    assert_eq!(log.regions, [region]);
    assert_eq!((data.access.cache, log.access.cache), (Cache::Direct, Cache::Buffered));
    assert_eq!(spec.targets.len(), 3);
    // Settings of the whole run can be given on the command line instead.
    let files = Files::one(TWO);
    let mut request = request(&[files.path().as_str(), "--overwrite", "--duration", "5s"]);
    request.typed.push(Typed { name: "duration".to_owned(), value: Some("5s".to_owned()) });
    assert_eq!(settle_request(&request).unwrap().points[0].window, Span::from_secs(5));
    request.typed.push(Typed { name: "block-size".to_owned(), value: Some("4k".to_owned()) });
    let refusal = settle_request(&request).unwrap_err();
    assert!(refusal.contains("--block-size") && refusal.contains("--set"), "{refusal}");
    // With a single stream the other settings clearly belong to it.
    let files = Files::one("targets = 'f'\nblock-size = '8k'\nread-share = '70%'\n");
    let mut request = self::request(&[files.path().as_str(), "--overwrite"]);
    request.typed.push(Typed { name: "block-size".to_owned(), value: Some("4k".to_owned()) });
    let point = settle_request(&request).unwrap().points.remove(0);
    let [stream] = point.streams.as_slice() else { panic!("{point:#?}") };
    assert_eq!((stream.block_sizes().largest(), stream.read_share()), (Bytes(4096), 0.7));
    let part = "50% block-size=8k".to_owned();
    request.typed.push(Typed { name: "part".to_owned(), value: Some(part) });
    assert!(settle_request(&request).unwrap_err().contains("--part"));
}

#[test]
fn what_is_nearer_wins_key_by_key() {
    let base = "block-size = '4k'\nqueue-depth = 4\n[vars]\nshare = '50%'\n\
                [stream.a]\nread-share = '${share}'\nblock-size = '16k'\n[stream.b]\n";
    let top = "extends = 'base.toml'\nqueue-depth = 7\nblock-size = '64k'\n[vars]\nshare = '90%'\n\
               [stream.b]\nqueue-depth = 9\n[stream.c]\n";
    let files = Files::new(&[("w.toml", top), ("base.toml", base)]);
    let spec = files.settle(&["f", "--overwrite"]).unwrap();
    let shown: Vec<_> = spec.points[0]
        .streams
        .iter()
        .map(|stream| {
            let block = stream.block_sizes().only().unwrap().0 >> 10;
            (stream.name.as_str(), block, stream.pacing.queue_depth(), stream.read_share())
        })
        .collect();
    assert_eq!(shown, [("a", 16, 7, 0.9), ("b", 64, 9, 1.0), ("c", 64, 7, 1.0)]);
    assert_eq!(spec.points[0].name, "a, b, c");
}

/// A file, and the parts of the message about it, including the place.
const REFUSALS: &[(&str, &[&str], &[&str])] = &[
    ("block-size = 4k", &["f"], &["this is no TOML", "w.toml:1:"]),
    (
        "block_size = '4k'",
        &["f"],
        &["no key 'block_size'", "w.toml:1:1", "'block-size'", "^^^^^^^^^^"],
    ),
    ("block-size = '4x'", &["f"], &["block-size is refused", "w.toml:1:14", "4x"]),
    ("pattern = 'zigzag'", &["f"], &["w.toml:1:11", "random, sequential"]),
    ("sync = 'dsinc'", &["f"], &["w.toml:1:8", "did you mean 'dsync'", "rwf-dsync"]),
    ("arrivals = 'poison'", &["f"], &["w.toml:1:12", "did you mean 'poisson'"]),
    ("payload = 'zeroes'", &["f"], &["w.toml:1:11", "did you mean 'zeros'", "pool:16m"]),
    ("fadvise = 'sequental'", &["f"], &["w.toml:1:11", "did you mean 'sequential'"]),
    ("backend = 'urign'", &["f"], &["w.toml:1:11", "did you mean 'uring'"]),
    ("buffered = 'yes'", &["f"], &["w.toml:1:12", "true or false"]),
    ("queue-depth = [1, 2]", &["f"], &["w.toml:1:15", "one string or number"]),
    ("overwrite = true", &["f"], &["no key 'overwrite'", "command line alone", "--overwrite"]),
    (
        "[stream.a]\nduration = '1s'",
        &["f"],
        &["duration is of the whole run", "w.toml:2:1", "above"],
    ),
    ("[stream.a]\nbufered = true", &["f"], &["w.toml:2:1", "'buffered'"]),
    ("stream = 3", &["f"], &["w.toml:1:10", "[stream.log]"]),
    (
        "block-size = '${sice}'\n[vars]\nsize = '4k'",
        &["f"],
        &["no variable 'sice'", "'size'", "w.toml:1:14"],
    ),
    ("block-size = '${size'", &["f"], &["without '}'", "w.toml:1:14"]),
    ("[vars]\ndepth = 1", &["f", "--set", "dept=2"], &["--set dept=2", "'depth'"]),
    ("[vars]\ndepth = 1", &["f", "--set", "depth"], &["--set depth", "NAME=VALUE"]),
    ("extends = 'x.toml'", &["f"], &["x.toml: it cannot be read", "w.toml:1:11", "extended here"]),
    ("extends = 'olpt'", &["f"], &["olpt: it cannot be read", "w.toml:1:11", "'oltp'"]),
    ("extends = 'w.toml'", &["f"], &["extends itself", "w.toml:1:11"]),
    ("targets = [3]", &[], &["w.toml:1:12", "a target is a string"]),
    ("targets = [{ pth = 'f' }]", &[], &["no key 'pth'", "'path'", "w.toml:1:14"]),
    ("targets = [{ offset = '1m' }]", &[], &["no path", "w.toml:1:12"]),
    ("block-size = '4k'", &[], &["w.toml: it names no target"]),
    ("targets = ['f', 'f']", &[], &["f: it is named twice"]),
    ("[stream.a]\ntargets = 'f'", &["g"], &["g: every stream", "drop it"]),
    // Problems that only the resolver finds are reported with the key, not with the option.
    (
        "block-size = '4k'\nwrite-through = true",
        &["f"],
        &["write-through is refused", "w.toml:2:17", "all I/Os are reads", "read-share"],
    ),
    ("offset = 100", &["f"], &["w.toml:1:10", "offset 100", "choose 512 bytes", "buffered"]),
    ("[stream.a]\n[stream.b]\nsize = '2t'", &["f"], &["w.toml:3:8", "only 1 TiB"]),
    // The same for the region of a single target.
    (
        "targets = ['g', { path = 'f', offset = '2t' }]",
        &[],
        &["w.toml:1:40", "2 TiB", "f ends at 1 TiB"],
    ),
    (
        "[stream.a]\ntargets = { path = 'f', size = 100 }",
        &[],
        &["w.toml:2:32", "size 100", "a block of 4 KiB"],
    ),
    (
        "targets = { path = 'f', offset = 512 }\nread-share = '0%'\ndedup = '30%'",
        &["--overwrite"],
        &["w.toml:1:34", "with dedup it is a multiple of 4 KiB"],
    ),
    ("rate = '30 of 10k'", &["f"], &["w.toml:1:8", "30% of 10k"]),
    ("cpus = 'node:x'", &["f"], &["w.toml:1:8", "node:0"]),
    ("io-priority = 'best-effort:9'", &["f"], &["w.toml:1:15", "best-effort:0"]),
    ("realtime = true", &["f"], &["w.toml:1:12", "closed loop", "with rate"]),
    ("read-share = '50%'", &["f"], &["f: the load writes", "--overwrite", "with read-share 100%"]),
    ("duration = '50ms'", &["f"], &["w.toml:1:12", "at least 100 ms"]),
];

#[test]
fn every_refusal_shows_the_place_and_says_what_to_do() {
    for (text, words, parts) in REFUSALS {
        let refusal = Files::one(text).refusal(words);
        for part in *parts {
            assert!(refusal.contains(part), "{text:?}: '{part}' is missing in:\n{refusal}");
        }
        let as_option = ["--write-through", "--offset", "--buffered", "--rate", "--read-share"];
        assert!(as_option.iter().all(|option| !refusal.contains(option)), "{refusal}");
    }
}

#[test]
fn a_variable_can_be_spelled_out_and_a_dollar_too() {
    let files = Files::one("targets = 'a${n}$${n}'\n[vars]\nn = 1\n");
    assert_eq!(files.settle(&["--set", "n=7"]).unwrap().targets[0].name, "a7${n}");
}

#[test]
fn what_is_no_workload_is_a_target() {
    assert_eq!(settle(&["f", "g"]).unwrap().targets.len(), 2);
    let error = settle(&["f", "--set", "x=1"]).unwrap_err();
    assert!(error.contains("--set x=1") && error.contains("no workload"), "{error}");
    let error = settle(&["missing.toml", "f"]).unwrap_err();
    assert!(error.contains("missing.toml: it cannot be read"), "{error}");
    let error = settle(&["--workload", "oltq", "f"]).unwrap_err();
    assert!(error.contains("the nearest workload is 'oltp'"), "{error}");
}

#[test]
fn streams_share_a_simulated_device() {
    let text = "[stream.a]\nworkers = 3\n[stream.b]\nread-share = 0\n";
    let files = Files::one(text);
    let request = request(&[files.path().as_str(), "sim:ssd"]);
    let mut asked = Asked::read(&request).unwrap();
    asked.described.locate(|_| Ok(None)).unwrap();
    let targets = Vec::from([Target::simulated("sim:ssd", Bytes(1 << 30))]);
    let spec = resolve::settle(&asked.described, targets, MACHINE).unwrap();
    let regions = |place: usize| spec.points[0].streams[place].regions.as_slice();
    assert_eq!(regions(0), regions(1));
}

#[test]
fn a_sweep_in_a_file_has_axes_and_a_course() {
    let files = Files::one(
        "rate = 1000\n[stream.users]\nblock-size = '4k'\n[stream.log]\nread-share = '0%'\n\
         [vars]\ndepth = 4\n[sweep]\nrepeats = 3\naxes.users.block-size = ['4k', 8192]\n\
         axes.duration = '1s,2s'\naxes.depth = '1..3'\naxes.targets = ['a', ['a', 'b']]\n",
    );
    let (path, args) = (files.path(), &mut request(&["x"]));
    args.targets = Vec::from([path.into(), "f".into()]);
    let template = super::Template::read(args).unwrap();
    let sweep = template.sweep().unwrap();
    let names: Vec<&str> = sweep.axes.iter().map(|axis| axis.name.as_str()).collect();
    assert_eq!(names, ["users.block-size", "duration", "depth", "targets"]);
    assert_eq!(sweep.axes[2].labels, ["1", "2", "3"]);
    assert_eq!(sweep.axes[3].labels, ["a", "a+b"]);
    assert_eq!(
        super::keys::read_as::<SweepArgs>(&sweep.words["repeats"]).unwrap().repeats,
        Some(3)
    );

    let setting = [("users.block-size", "8192"), ("duration", "2s"), ("targets", "a+b")];
    let described = template.describe(&setting).unwrap().described;
    let size = |stream: usize| described.streams[stream].load.block_size.0[0].0;
    assert_eq!((size(0), size(1)), (Bytes(8192), Bytes(4096)));
    assert!(described.streams.iter().all(|one| one.load.duration == Some(Span::from_secs(2))));
    assert!(described.streams.iter().all(|one| one.aims.len() == 2));
    for (setting, why) in [
        (("block-size", "4k"), "say which of them varies, as in users.rate"),
        (("disk.rate", "1k"), "has no stream 'disk'"),
        (("users.duration", "1s"), "drop the stream's name"),
        (("users.block-size", "4x"), "4k"),
        (("colour", "red"), "there is no such option"),
    ] {
        let setting = if setting.0 == "colour" { ("users.colour", "red") } else { setting };
        let error = template.describe(&[setting]).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn how_much_is_random_can_vary_and_what_is_called_otherwise_is_named() {
    let args = request(&["f"]);
    let template = super::Template::read(&args).unwrap();
    let pattern = |share: &str| {
        let described = template.describe(&[("random-share", share)]).unwrap().described;
        described.streams[0].load.pattern.clone()
    };
    let plain = |pattern: &str| {
        let described = template.describe(&[("pattern", pattern)]).unwrap().described;
        described.streams[0].load.pattern.clone()
    };
    assert_eq!(pattern("0%"), plain("sequential"));
    assert_eq!(pattern("25%"), plain("mixed:25%"));
    assert_eq!(pattern("100%"), plain("random"));
    for (settings, why) in [
        (&[("random-share", "120%")][..], "a share cannot be above 100%"),
        (&[("random-share", "5%"), ("pattern", "random")], "the pattern is an axis as well"),
        (&[("depth", "4")], "write 'queue-depth'"),
        (&[("offered-load", "4k")], "write 'rate'"),
    ] {
        let error = template.describe(settings).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    // In a workload with streams, it is the name of a stream.
    let files =
        Files::one("[stream.users]\npattern = 'random'\n[stream.log]\npattern = 'sequential'\n");
    let args = Request { targets: Vec::from([files.path().into(), "f".into()]), ..request(&["f"]) };
    let template = super::Template::read(&args).unwrap();
    let described = template.describe(&[("users.random-share", "0%")]).unwrap().described;
    assert_eq!(described.streams[0].load.pattern, plain("sequential"));
}

#[test]
fn copies_of_a_stream_are_counted_by_an_axis() {
    let files = Files::one(
        "queue-depth = 8\nzones = true\n[stream.users]\nworkers = 2\n[stream.log]\n\
         read-share = '0%'\n",
    );
    let args = Request { targets: Vec::from([files.path().into(), "f".into()]), ..request(&["f"]) };
    let template = super::Template::read(&args).unwrap();
    let mut asked = template.describe(&[("users.streams", "3")]).unwrap();
    asked.described.locate(|_| Ok(None)).unwrap();
    let targets = Vec::from([Target::simulated("sim:ssd", Bytes(1 << 30))]);
    let spec = resolve::settle(&asked.described, targets, MACHINE).unwrap();
    let streams = &spec.points[0].streams;
    let names: Vec<&str> = streams.iter().map(|stream| stream.name.as_str()).collect();
    assert_eq!(names, ["users 1", "log", "users 2", "users 3"]);
    // Each has its own depth and its own part of the region. The parts are adjacent.
    assert!(streams.iter().all(|stream| stream.pacing.queue_depth() == 8));
    let part =
        |place: usize| (streams[place].regions[0].offset.0, streams[place].regions[0].length.0);
    let (first, second, third) = (part(0), part(2), part(3));
    assert_eq!((first.0, part(1)), (0, (0, 1 << 30)));
    assert_eq!(
        (first.0 + first.1, second.0 + second.1, third.0 + third.1),
        (second.0, third.0, 1 << 30)
    );
    for (setting, why) in [
        (("streams", "2"), "say which of them is copied, as in users.streams"),
        (("disk.streams", "2"), "has no stream 'disk'"),
        (("users.streams", "0"), "it is a whole number from 1 to 256"),
    ] {
        let error = template.describe(&[setting]).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    // Without a workload there is one stream, without a name.
    let args = request(&["f"]);
    let described = super::Template::read(&args).unwrap().describe(&[("streams", "2")]).unwrap();
    let names: Vec<Option<&str>> =
        described.described.streams.iter().map(|stream| stream.name.as_deref()).collect();
    assert_eq!(names, [Some("stream 1"), Some("stream 2")]);
    let refused = super::Template::read(&args).unwrap().describe(&[("users.streams", "2")]);
    assert!(refused.unwrap_err().to_string().contains("there is no such option"));
    // A variable with this name belongs to the author.
    let files = Files::one("queue-depth = '${streams}'\n[vars]\nstreams = 4\n");
    let args = Request { targets: Vec::from([files.path().into(), "f".into()]), ..request(&["f"]) };
    let described = super::Template::read(&args).unwrap().describe(&[("streams", "5")]).unwrap();
    assert_eq!(described.described.streams.len(), 1);
}

#[test]
fn what_an_experiment_does_may_stand_in_a_table_of_its_own() {
    let files = Files::one(
        "read-share = '50%'\n[peak]\nup-to = 64\nofficial = 'none'\n[sustain]\nrounds = 9\n",
    );
    let args = Request { targets: Vec::from([files.path().into(), "f".into()]), ..request(&["f"]) };
    let typed = Typed { name: "up-to".to_owned(), value: Some("16".to_owned()) };
    let other = Typed { name: "duration".to_owned(), value: Some("1s".to_owned()) };
    let asked = Asked::read_for(&args, Table::Peak).unwrap();
    let words = asked.words_of(Table::Peak, &[typed, other]).unwrap();
    assert_eq!(words, ["--official=none", "--up-to=16"]);
    assert_eq!(super::keys::read_as::<PeakArgs>(&words).unwrap().up_to.as_deref(), Some("16"));
    assert_eq!(asked.words_of(Table::Sustain, &[]).unwrap(), ["--rounds=9"]);
    assert!(asked.words_of(Table::Map, &[]).is_none());
    // A command without such a table does something else.
    for (text, why) in [
        ("[peak]\nup-to = 64\n", "run it with `fathom peak`"),
        ("[sustain]\nrounds = 9\n", "run it with `fathom sustain`"),
        ("[peak]\nup-two = 64\n", "did you mean 'up-to'"),
        ("[peak]\nenough = 'much'\n", "enough is refused"),
        ("[sustain]\nrounds = 2\n", "rounds is refused"),
    ] {
        let said = Files::one(text).refusal(&["f"]);
        assert!(said.contains(why), "{said}");
    }
    let files = Files::one("[peak]\nup-to = 64\n");
    let args = Request { targets: Vec::from([files.path().into(), "f".into()]), ..request(&["f"]) };
    let refused = Asked::read_for(&args, Table::Sustain).unwrap_err().to_string();
    assert!(refused.contains("run it with `fathom peak`"), "{refused}");
}

#[test]
fn a_sweep_is_no_run_and_its_keys_are_known() {
    let sweep = Files::one("[sweep]\naxes.queue-depth = '1..4'\n");
    assert!(sweep.refusal(&["f"]).contains("run it with `fathom sweep`"));
    for (text, why) in [
        ("[sweep]\nrepeat = 3\n", "did you mean 'repeats'"),
        ("[sweep]\nrepeats = 'many'\n", "repeats is refused"),
        ("[sweep]\naxes.queue-depth = 4\n", "an axis is a list of values"),
        ("[sweep]\naxes.queue-depth = '4..1'\n", "does not rise"),
    ] {
        let said = Files::one(text).refusal(&["f"]);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn settings_take_the_place_of_options() {
    let args = request(&["f", "--read-share", "70%"]);
    let typed =
        |name: &str, value: &str| Typed { name: name.to_owned(), value: Some(value.to_owned()) };
    let args = Request { typed: Vec::from([typed("read-share", "70%")]), ..args };
    let template = super::Template::read(&args).unwrap();
    let described = template.describe(&[("queue-depth", "7"), ("targets", "g")]).unwrap().described;
    let load = &described.streams[0].load;
    assert_eq!((load.read_share, load.queue_depth.is_some()), (0.7, true));
    assert_eq!(described.streams[0].aims[0].path, Path::new("g"));
    let error = template.describe(&[("read-share", "10%")]).unwrap_err().to_string();
    assert!(error.contains("it is an axis as well"), "{error}");
}
