//! The text after `sim:` on the command line: the device and its parameters.
//!
//! Every parameter is checked here. If the text is accepted, the device can be opened.

use std::fmt;
use std::str::FromStr;

use fathom_core::facts::Layer;
use fathom_core::{Bytes, Span, SplitMix64};

use super::array::ArrayOptions;
use super::burst::BurstOptions;
use super::faults::{self, Faults};
use super::grid::GridOptions;
use super::hdd::HddOptions;
use super::mix::AccessMixOptions;
use super::noise::{self, Noise};
use super::parameters::{Field, Parameter, unknown};
use super::queue::QueueOptions;
use super::ssd::SsdOptions;
use super::table::TableOptions;
use super::times::BestPracticeOptions;
use super::{array, burst, grid, hdd, mix, queue, ssd, table, times};

/// A simulated device and its parameters.
///
/// Its `Display` returns the text to type: the device and every parameter that is not at its
/// default. The alternate form, `{:#}`, returns every parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The size of the device.
    pub size: Bytes,
    /// Repeats all random decisions of the device: service times, failures, noise.
    pub seed: u64,
    /// The model that serves the I/Os.
    pub model: Model,
    /// The share of the compressible part of written data that it saves; zeros are entirely
    /// compressible.
    pub compresses: f64,
    /// The share of duplicate 4 KiB blocks, such as those of zeros, that it does not move.
    pub deduplicates: f64,
    /// The share of blocks of zeros that it does not move.
    pub skips_zeros: f64,
    /// The faults.
    pub faults: Faults,
    /// The changes of its speed.
    pub noise: Noise,
    /// The time of the session at which it is opened; zero unless the code that runs trials sets
    /// it. It cannot be typed: see [`Options::at`].
    pub began: Span,
}

/// The model of a simulated device.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// Servers behind one queue: every figure has a closed form.
    Queue(QueueOptions),
    /// A solid-state drive: channels, interface, write cache, collections.
    Ssd(SsdOptions),
    /// A hard disk: seek, rotation, zones, a window of requests.
    Hdd(HddOptions),
    /// Identical disks: stripes, mirrors, parity.
    Array(ArrayOptions),
    /// Fast until a credit is used up.
    Burst(BurstOptions),
    /// Throughput against concurrency, from a table.
    Table(TableOptions),
    /// Response times against load, from a latency map.
    Grid(GridOptions),
    /// The device of the published study of concurrent writes.
    WriteConcurrency(table::WriteConcurrency),
    /// The devices of the published study of access mixes.
    AccessMix(AccessMixOptions),
    /// The device of the published result of DiskSpd's guide.
    BestPractice(BestPracticeOptions),
}

/// The parameters that every device has, besides its faults.
const COMMON: [Parameter<Options>; 5] = [
    Parameter {
        name: "size",
        meaning: "the size of the device, a multiple of 512 bytes",
        field: |o| Field::Size(&mut o.size, Bytes(Bytes::MIB), Bytes(1 << 60)),
    },
    Parameter {
        name: "seed",
        meaning: "repeats the random decisions of the device",
        field: |o| Field::Seed(&mut o.seed),
    },
    Parameter {
        name: "compresses",
        meaning: "the share that it saves of the compressible part of written data; zeros are \
                  wholly compressible",
        field: |o| Field::Share(&mut o.compresses, 0.99),
    },
    Parameter {
        name: "deduplicates",
        meaning: "the share that it does not move of blocks that equal earlier ones, zeros among \
                  them",
        field: |o| Field::Share(&mut o.deduplicates, 0.99),
    },
    Parameter {
        name: "skips-zeros",
        meaning: "the share that it does not move of blocks of zeros",
        field: |o| Field::Share(&mut o.skips_zeros, 0.99),
    },
];

impl Model {
    /// The names of all models, with a line about each.
    const ALL: [(&'static str, &'static str); 10] = [
        ("queue", "servers behind one queue: every figure has a closed form"),
        ("ssd", "a solid-state drive: channels behind an interface and a write cache"),
        ("hdd", "a hard disk: an arm, a spindle, and a window of requests to choose from"),
        ("array", "disks that are all alike: stripes, mirrors and parity, and what they cost"),
        ("burst", "a disk with a burst credit: fast until it is used up, and again after a rest"),
        ("table", "throughput against concurrency from a table, such as a published one"),
        ("grid", "a latency map: response times of reads against writes and reads, from a file"),
        (
            "study-write-concurrency",
            "eight striped disks in a cloud as published: blocks of 256 KiB, 1 MiB and 12.8 MB, \
             zeros faster than random data",
        ),
        (
            "study-access-mix",
            "arrays of four families of drives as published: 64 KiB by the share of sequential \
             access and the depth per disk",
        ),
        (
            "study-best-practice",
            "the device of DiskSpd's published example: its response times with 128 in flight, and \
             at most what it reached then",
        ),
    ];

    /// The word after `sim:`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Queue(_) => "queue",
            Self::Ssd(_) => "ssd",
            Self::Hdd(_) => "hdd",
            Self::Array(_) => "array",
            Self::Burst(_) => "burst",
            Self::Table(_) => "table",
            Self::Grid(_) => "grid",
            Self::WriteConcurrency(_) => "study-write-concurrency",
            Self::AccessMix(_) => "study-access-mix",
            Self::BestPractice(_) => "study-best-practice",
        }
    }

    /// The parameters of any model.
    fn own(&mut self) -> &mut dyn Own {
        match self {
            Self::Queue(options) => options,
            Self::Ssd(options) => options,
            Self::Hdd(options) => options,
            Self::Array(options) => options,
            Self::Burst(options) => options,
            Self::Table(options) => options,
            Self::Grid(options) => options,
            Self::WriteConcurrency(options) => options,
            Self::AccessMix(options) => options,
            Self::BestPractice(options) => options,
        }
    }

    fn typed(&self) -> Vec<(&'static str, String)> {
        // The tables give writable places; a copy makes them readable as well.
        self.clone().own().typed()
    }
}

/// The options of a model and the table of its parameters.
trait Own {
    fn set(&mut self, name: &str, value: &str) -> Option<Result<(), String>>;
    fn names(&self) -> Vec<&'static str>;
    fn typed(&self) -> Vec<(&'static str, String)>;
    fn help(&self) -> String;
}

/// The owner of the parameters in a table.
trait Tabled: Clone + 'static {
    const TABLE: &'static [Parameter<Self>];
}

impl<T: Tabled> Own for T {
    fn set(&mut self, name: &str, value: &str) -> Option<Result<(), String>> {
        set(T::TABLE, self, name, value)
    }

    fn names(&self) -> Vec<&'static str> {
        names(T::TABLE)
    }

    fn typed(&self) -> Vec<(&'static str, String)> {
        typed(T::TABLE, self)
    }

    fn help(&self) -> String {
        help_on(T::TABLE, self)
    }
}

/// Tells where the parameters of these options are.
macro_rules! tabled {
    ($($options:ty: $table:expr;)*) => {
        $(impl Tabled for $options {
            const TABLE: &'static [Parameter<Self>] = &$table;
        })*
    };
}

tabled! {
    QueueOptions: queue::PARAMETERS;
    SsdOptions: ssd::PARAMETERS;
    HddOptions: hdd::PARAMETERS;
    ArrayOptions: array::PARAMETERS;
    BurstOptions: burst::PARAMETERS;
    TableOptions: table::PARAMETERS;
    GridOptions: grid::PARAMETERS;
    table::WriteConcurrency: table::WRITE_CONCURRENCY_PARAMETERS;
    AccessMixOptions: mix::PARAMETERS;
    BestPracticeOptions: times::PARAMETERS;
}

impl Options {
    /// The device if only its name is typed.
    fn new(device: &str) -> Option<Self> {
        let (model, size) = match device {
            "queue" => (Model::Queue(QueueOptions::default()), Bytes(100 * Bytes::GIB)),
            "ssd" => (Model::Ssd(SsdOptions::default()), Bytes(1_000_000_000_000)),
            "hdd" => (Model::Hdd(HddOptions::default()), Bytes(4_000_000_000_000)),
            "array" => (Model::Array(ArrayOptions::default()), Bytes(4_000_000_000_000)),
            "burst" => (Model::Burst(BurstOptions::default()), Bytes(1 << 40)),
            "table" => (Model::Table(TableOptions::default()), Bytes(1 << 40)),
            "grid" => (Model::Grid(GridOptions::default()), Bytes(1 << 40)),
            // Eight disks of 1 TiB.
            "study-write-concurrency" => {
                (Model::WriteConcurrency(table::WriteConcurrency::default()), Bytes(8 << 40))
            }
            "study-access-mix" => {
                (Model::AccessMix(AccessMixOptions::default()), Bytes(1_000_000_000_000))
            }
            // Two files of 100 GiB.
            "study-best-practice" => {
                (Model::BestPractice(BestPracticeOptions::default()), Bytes(200 * Bytes::GIB))
            }
            _ => return None,
        };
        let (faults, noise) = (Faults::default(), Noise::default());
        let (compresses, deduplicates, skips_zeros) = (0.0, 0.0, 0.0);
        let (seed, began) = (1, Span(0));
        Some(Self {
            size,
            seed,
            model,
            compresses,
            deduplicates,
            skips_zeros,
            faults,
            noise,
            began,
        })
    }

    /// The same device with its random numbers drawn anew for a run with this seed: trials differ,
    /// and the two seeds together repeat each of them.
    pub fn for_run(&self, seed: u64) -> Self {
        let own = self.seed.wrapping_mul(SplitMix64::STEP);
        Self { seed: SplitMix64::mix(own.wrapping_add(seed)), ..self.clone() }
    }

    /// The same device at a later time of its session: drift and foreign load go on from there.
    pub fn at(&self, began: Span) -> Self {
        Self { began, ..self.clone() }
    }

    /// Its structure, as the layers of a real target would report it; empty for a model of one
    /// disk.
    pub fn layers(&self) -> Vec<Layer> {
        match &self.model {
            Model::Array(array) if 1 < array.disks => array.layers(self.size),
            Model::AccessMix(drives) if 1 < drives.disks => drives.layers(self.size),
            _ => Vec::new(),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        set(&COMMON, self, name, value)
            .or_else(|| set(&faults::PARAMETERS, &mut self.faults, name, value))
            .or_else(|| set(&noise::PARAMETERS, &mut self.noise, name, value))
            .or_else(|| self.model.own().set(name, value))
            .unwrap_or_else(|| {
                let mut known = self.model.own().names();
                known.extend(names(&COMMON));
                known.extend(names(&faults::PARAMETERS));
                known.extend(names(&noise::PARAMETERS));
                Err(unknown(&format!("parameter of sim:{}", self.model.name()), name, &known))
            })
    }

    /// Every parameter with its value, in the order of the help.
    fn typed(&self) -> Vec<(&'static str, String)> {
        let mut all = self.model.typed();
        all.extend(typed(&COMMON, self));
        all.extend(typed(&faults::PARAMETERS, &self.faults));
        all.extend(typed(&noise::PARAMETERS, &self.noise));
        all
    }

    /// Whether the parameters go together.
    fn check(&self) -> Result<(), String> {
        if !self.size.0.is_multiple_of(512) {
            return Err(format!(
                "size={}: this is no multiple of 512 bytes; the next one is {}",
                self.size.0,
                self.size.0.next_multiple_of(512)
            ));
        }
        match &self.model {
            Model::Queue(_)
            | Model::Table(_)
            | Model::Grid(_)
            | Model::WriteConcurrency(_)
            | Model::AccessMix(_)
            | Model::BestPractice(_) => {}
            Model::Ssd(options) => options.check()?,
            Model::Hdd(options) => options.check()?,
            Model::Array(options) => options.check()?,
            Model::Burst(options) => options.check()?,
        }
        self.faults.check()
    }
}

impl FromStr for Options {
    type Err = String;

    /// Reads the text after `sim:`, such as `ssd` or `queue,servers=8,service-time=100us`.
    fn from_str(text: &str) -> Result<Self, String> {
        let devices = Model::ALL.map(|(name, _)| name);
        let mut parts = text.split(',').map(str::trim);
        let device = parts.next().unwrap_or_default();
        if device.is_empty() {
            let forms = devices.map(|name| format!("sim:{name}"));
            return Err(format!("sim: names no device; write one of {}", forms.join(", ")));
        }
        let mut options =
            Self::new(device).ok_or_else(|| unknown("simulated device", device, &devices))?;
        let mut seen: Vec<&str> = Vec::new();
        for part in parts {
            let form = "write NAME=VALUE, with one comma between two of them";
            let (name, value) =
                part.split_once('=').ok_or_else(|| format!("'{part}' has no value; {form}"))?;
            let (name, value) = (name.trim(), value.trim());
            if seen.contains(&name) {
                return Err(format!("{name} is given twice; give it once"));
            }
            seen.push(name);
            options.set(name, value)?;
        }
        options.check()?;
        Ok(options)
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.model.name();
        let default = Self::new(name).expect("a model's name is a device").typed();
        f.write_str(name)?;
        for (mine, default) in self.typed().iter().zip(&default) {
            if f.alternate() || mine != default {
                write!(f, ",{}={}", mine.0, mine.1)?;
            }
        }
        Ok(())
    }
}

/// Lists the devices and their parameters with meaning, default and range.
pub fn help() -> String {
    let mut text = String::from(
        "A simulated target is written sim:DEVICE[,NAME=VALUE]..., such as sim:ssd or \
         sim:queue,servers=4.\nIt runs in virtual time, touches no storage, and repeats itself by \
         its seed.\nAll streams and workers of a run share it and its time.\n",
    );
    for (name, meaning) in Model::ALL {
        let mut options = Options::new(name).expect("a model's name is a device");
        text += &format!("\nsim:{name}: {meaning}\n{}", options.model.own().help());
        text += &help_on(&COMMON[..1], &options);
    }
    let any = Options::new(Model::ALL[0].0).expect("a model's name is a device");
    text += &format!("\nEvery device:\n{}", help_on(&COMMON[1..], &any));
    text += &help_on(&faults::PARAMETERS, &any.faults);
    text += &help_on(&noise::PARAMETERS, &any.noise);
    text
}

fn set<T>(
    table: &[Parameter<T>],
    options: &mut T,
    name: &str,
    value: &str,
) -> Option<Result<(), String>> {
    let parameter = table.iter().find(|parameter| parameter.name == name)?;
    Some(parameter.set(options, value))
}

fn names<T>(table: &[Parameter<T>]) -> Vec<&'static str> {
    table.iter().map(|parameter| parameter.name).collect()
}

fn typed<T: Clone>(table: &[Parameter<T>], options: &T) -> Vec<(&'static str, String)> {
    table.iter().map(|parameter| (parameter.name, parameter.get(options))).collect()
}

fn help_on<T: Clone>(table: &[Parameter<T>], options: &T) -> String {
    table.iter().map(|parameter| parameter.help(options)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        text.parse::<Options>().expect_err(text)
    }

    #[test]
    fn what_is_shown_can_be_typed_again() {
        for text in [
            "queue",
            "queue,servers=1,service-time=250us,distribution=exponential",
            "queue,size=1t,seed=7,error=0.01,error-every=100,short=0.5,zero=0.25",
            "queue,stall=5s+1s,hang-after=30s,noise=0.03",
            "queue,stall=5s+100ms/1s",
            "queue,noise=0.03,noise-every=200ms,noise-correlation=0.8,noise-between=0.1",
            "queue,drift=-0.1/1h,foreign=5s+1s/10s,foreign-share=0.3",
            "ssd",
            "ssd,channels=4,page=4k,jitter=0,read-bandwidth=1GB/s,collect-time=0ns",
            "hdd,rpm=5400,seek-min=0ns,ncq=1,buffer=0,size=1t",
            "array,level=raid6,disks=6,chunk=256k,disk=hdd,compresses=0.5",
            "array,disk=hdd,cache=256m",
            "burst,rate=100,burst=200,credit=6s",
            "table,points=1:565MB/s+2:897MB/s,run-noise=0.03",
            "grid,p50-noise=0.04,write-time=1ms",
            "study-write-concurrency,run-noise=0.03",
            "study-access-mix,drive=sata2,disks=4",
            "study-best-practice,fastest=100us",
        ] {
            let options: Options = text.parse().expect(text);
            assert_eq!(options.to_string(), text);
            let full = format!("{options:#}");
            assert_eq!(full.parse(), Ok(options), "{full}");
        }
    }

    #[test]
    fn defaults_and_other_ways_to_type_a_value_show_in_one_way() {
        for (text, canonical) in [
            ("queue,servers=8,seed=1,stall=never", "queue"),
            ("queue, servers=4 , service-time=0.2ms", "queue,servers=4,service-time=200us"),
            ("queue,noise=3%,error=10%", "queue,error=0.1,noise=0.03"),
            ("queue,size=1048576k", "queue,size=1g"),
        ] {
            let options: Options = text.parse().expect(text);
            assert_eq!(options.to_string(), canonical);
        }
    }

    #[test]
    fn a_refusal_names_the_word_the_nearest_one_and_those_that_are_right() {
        for (text, parts) in [
            ("", &["names no device", "sim:queue"][..]),
            ("qeue", &["'qeue'", "did you mean 'queue'?", "Choose one of queue"]),
            (
                "queue,server=2",
                &["'server'", "sim:queue", "did you mean 'servers'?", "error-every"],
            ),
            ("queue,servers", &["'servers' has no value", "NAME=VALUE"]),
            ("queue,", &["'' has no value"]),
            ("queue,servers=0", &["servers=0", "1 to 65536"]),
            ("queue,servers=4294967297", &["servers=4294967297", "1 to 65536"]),
            ("queue,servers=two", &["servers=two", "whole number"]),
            ("queue,servers=2,servers=2", &["servers is given twice"]),
            ("queue,service-time=0", &["service-time=0", "1ns to 1h"]),
            ("queue,service-time=5x", &["'x' is not a unit of time"]),
            ("queue,distribution=exponental", &["did you mean 'exponential'?", "constant"]),
            ("queue,size=1000k", &["size=1000k", "1m to"]),
            ("queue,size=1048577", &["no multiple of 512", "1049088"]),
            ("queue,error=1.5", &["error=1.5", "0 to 1, or 0% to 100%"]),
            ("queue,error=-0.1", &["error=-0.1", "outside"]),
            ("queue,error=nan", &["error=nan", "no share"]),
            ("queue,error=0.5,zero=0.6", &["add up to 1.1"]),
            ("queue,error-every=0", &["error-every=0", "never, or 1 and more"]),
            ("queue,noise=60%", &["0 to 0.5, or 0% to 50%"]),
            ("queue,drift=-10%", &["drift=-10%", "CHANGE/TIME"]),
            ("queue,drift=-100%/1h", &["-99% to 1000%"]),
            ("queue,drift=5%/0s", &["in no time"]),
            ("queue,noise-correlation=1", &["noise-correlation=1", "0 to 0.99"]),
            ("queue,stall=5s", &["stall=5s", "START+LENGTH"]),
            ("queue,stall=5s+0s", &["no length"]),
            ("queue,stall=5s+2s/1s", &["would never end"]),
            ("queue,hang-after=soon", &["hang-after=soon", "not a time"]),
            ("array,level=raid4", &["'raid4'", "did you mean", "raid5"]),
            ("array,level=raid6,disks=3", &["raid6", "at least 4"]),
            ("array,level=raid10,disks=5", &["even number"]),
            ("array,cache=64k", &["cache=64 KiB", "at least 1m"]),
            ("burst,burst=500", &["not more than rate=500"]),
            ("table,points=2:1MB/s+1:2MB/s", &["has to rise", "1:500MB/s+8:900MB/s"]),
            ("grid,file=/no/such/file", &["cannot be read"]),
        ] {
            let shown = refusal(text);
            for part in parts {
                assert!(shown.contains(part), "'{text}' gave: {shown}\nwithout: {part}");
            }
        }
    }

    #[test]
    fn defaults_are_within_their_ranges() {
        for (name, _) in Model::ALL {
            let options = Options::new(name).expect(name);
            assert_eq!(format!("{options:#}").parse(), Ok(options));
        }
    }

    #[test]
    fn the_help_names_every_device_and_parameter() {
        let text = help();
        for (name, _) in Model::ALL {
            assert!(text.contains(&format!("sim:{name}: ")), "{name}");
            for (parameter, default) in Options::new(name).expect(name).typed() {
                assert!(text.contains(&format!("    {parameter}=")), "{parameter}");
                assert!(text.contains(&format!("(default {default}; ")), "{parameter}");
            }
        }
    }
}
