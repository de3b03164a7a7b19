//! A report as a model: headings, sentences, tables and charts in their order, made from the document
//! alone. The renderers walk over it and know nothing of results, so that all of them say the same
//! words and the same digits.

mod about;
mod calibration;
mod experiment;
mod maps;
mod overview;
mod target;
mod trial;

pub use calibration::calibration;
pub use overview::draws_trials;
pub use target::target;

use crate::chart::Chart;
use crate::document::{Command, Document, Finding, Severity, Verdict};

/// How much of a result a page tells. What is left out is not computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What was found.
    Short,
    /// Each trial as well.
    Full,
    /// Also what only a page for the browser has room for: charts over time, whole device stacks.
    Complete,
}

impl Level {
    /// How much the command tells that measured it.
    pub fn usual(document: &Document) -> Self {
        match document.header.command {
            Command::Run => Self::Full,
            Command::Quick
            | Command::Sweep
            | Command::Peak
            | Command::Map
            | Command::Sustain
            | Command::Study
            | Command::Import => Self::Short,
        }
    }
}

/// A report.
#[derive(Clone, Debug)]
pub struct Page {
    /// What it is about.
    pub title: String,
    /// What was measured, and from where.
    pub about: Vec<Block>,
    /// What the result is worth. Nothing where nothing was measured.
    pub outcome: Option<Outcome>,
    /// What was found.
    pub blocks: Vec<Block>,
}

impl Page {
    /// The report of a document.
    pub fn of(document: &Document, level: Level) -> Self {
        let mut blocks = Vec::new();
        blocks.extend(experiment::section(document, level));
        blocks.extend(overview::section(document, level));
        if Level::Full <= level {
            blocks.extend(trial::sections(document, level));
            blocks.extend(about::unchecked(document));
        }
        if level == Level::Complete {
            blocks.extend(about::tested(document));
        }
        Self {
            title: about::title(document),
            about: about::about(document, level),
            outcome: Some(about::outcome(document, level)),
            blocks,
        }
    }
}

/// What a result is worth. Where one reads from the top it stands there; in a terminal, where the
/// last line is seen first, below everything else.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The gravest verdict; none where nothing was judged.
    pub verdict: Option<Verdict>,
    /// The verdict as a heading.
    pub name: String,
    /// What it means.
    pub sentence: String,
    /// How the run ended, where that is not as planned, and what it found.
    pub conclusion: Vec<Sentence>,
    /// The doubts, the gravest first.
    pub remarks: Vec<Remark>,
    /// What could not be checked; often nothing.
    pub unchecked: Vec<Sentence>,
}

/// A sentence or several.
#[derive(Clone, Debug)]
pub struct Sentence {
    /// How it stands out.
    pub tone: Tone,
    /// Its text.
    pub text: String,
}

/// A finding about a trial or several.
#[derive(Clone, Debug)]
pub struct Remark {
    /// How grave it is.
    pub severity: Severity,
    /// What was found, and in which trials.
    pub text: String,
    /// What to do about it; may be empty.
    pub advice: String,
}

impl Remark {
    /// A finding; the words that go before it say whose it is.
    pub fn of(finding: &Finding, whose: &str) -> Self {
        Self {
            severity: finding.severity,
            text: format!("{whose}{}", finding.evidence),
            advice: finding.advice.clone(),
        }
    }
}

/// How something stands out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Not at all.
    #[default]
    Plain,
    /// A heading or a figure that matters most.
    Strong,
    /// What supports a figure.
    Quiet,
    /// All is well.
    Good,
    /// To be doubted.
    Doubtful,
    /// Wrong.
    Bad,
}

/// A piece of a report.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading with what belongs to it.
    Section(Section),
    /// A paragraph.
    Text(Sentence),
    /// Names, each with what is said of it.
    Facts(Vec<Fact>),
    /// Sentences of equal rank.
    List(Vec<String>),
    /// Findings.
    Remarks(Vec<Remark>),
    /// Figures in rows and columns.
    Table(Table),
    /// The figures that matter most: a table of one row.
    Figures(Table),
    /// Charts side by side.
    Charts(Vec<Drawing>),
    /// A row of values, drawn in one line.
    Spark(Spark),
    /// Lines, each so many steps to the right.
    Tree(Vec<(usize, Sentence)>),
}

/// A heading with what belongs to it.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// The trial's number, from 1, if it is about one.
    pub trial: Option<usize>,
    /// The verdict on it.
    pub verdict: Option<Verdict>,
    /// Whether it is closed until somebody asks for it, where it can be.
    pub folded: bool,
    /// What belongs to it.
    pub blocks: Vec<Block>,
}

/// A name with what is said of it.
#[derive(Clone, Debug)]
pub struct Fact {
    /// The name.
    pub name: String,
    /// What is said.
    pub text: String,
    /// How it stands out.
    pub tone: Tone,
}

/// A chart and where it stands.
#[derive(Clone, Debug)]
pub enum Drawing {
    /// A chart of an experiment.
    Chart(Chart),
    /// A chart of a trial or of several: drawn for the browser alone.
    Named {
        /// The name of its place.
        id: String,
        /// What it shows.
        title: String,
        /// Whether it takes the whole width.
        wide: bool,
    },
}

/// A row of values.
#[derive(Clone, Debug)]
pub struct Spark {
    /// What they are.
    pub title: String,
    /// The values; none is below zero.
    pub values: Vec<f64>,
    /// From which of them on something holds, and what.
    pub mark: Option<(usize, String)>,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What stands above it; may be empty.
    pub caption: String,
    /// Its columns.
    pub heads: Vec<Head>,
    /// Its rows.
    pub rows: Vec<TableRow>,
}

/// The head of a column.
#[derive(Clone, Debug)]
pub struct Head {
    /// Its text; may be empty.
    pub name: String,
    /// Whether its cells are words, which stand at the left.
    pub words: bool,
    /// What of it gives way where there is no room.
    pub spare: Spare,
}

/// What of a column gives way where there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// Nothing.
    Nothing,
    /// Its half-widths: another column's say the same.
    Halves,
    /// All of it.
    Column,
}

/// A row of a table.
#[derive(Clone, Debug)]
pub enum TableRow {
    /// A cell for each column; the last ones may be missing.
    Cells {
        /// How the row stands out.
        tone: Tone,
        /// The cells.
        cells: Vec<Entry>,
    },
    /// A heading of the rows below.
    Group(String),
}

/// A cell.
#[derive(Clone, Debug)]
pub enum Entry {
    /// Words.
    Words(String),
    /// What a row is about: a name, what goes with it in a smaller print, and the trial that tells
    /// more.
    Name {
        /// The name.
        text: String,
        /// What goes with it.
        below: String,
        /// A trial's number, from 1.
        trial: usize,
    },
    /// A figure as it is written, and its half-width.
    Figure {
        /// With its unit where the head does not tell it.
        text: String,
        /// Empty where none is known.
        half: String,
    },
    /// A share of the largest value, as a bar, and a word beside it.
    Bar {
        /// From 0 to 1.
        share: f64,
        /// May be empty.
        word: String,
    },
    /// Trials by their numbers, from 1; each with whether it is sound.
    Trials(Vec<(usize, bool)>),
    /// A verdict.
    Verdict(Verdict),
}

impl Head {
    /// A column of words.
    pub fn words(name: &str) -> Self {
        Self { name: name.to_owned(), words: true, spare: Spare::Nothing }
    }

    /// A column of figures.
    pub fn figures(name: &str) -> Self {
        Self { words: false, ..Self::words(name) }
    }

    /// The same column, of which something gives way.
    pub fn with(self, spare: Spare) -> Self {
        Self { spare, ..self }
    }
}

impl Entry {
    /// Words.
    pub fn words(text: impl Into<String>) -> Self {
        Self::Words(text.into())
    }

    /// A figure without a half-width.
    pub fn figure(text: impl Into<String>) -> Self {
        Self::Figure { text: text.into(), half: String::new() }
    }
}

impl Table {
    /// An empty table.
    pub fn new(caption: impl Into<String>, heads: impl IntoIterator<Item = Head>) -> Self {
        Self { caption: caption.into(), heads: heads.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Entry>) {
        self.toned(Tone::Plain, cells);
    }

    /// Adds a row that stands out.
    pub fn toned(&mut self, tone: Tone, cells: impl IntoIterator<Item = Entry>) {
        self.rows.push(TableRow::Cells { tone, cells: cells.into_iter().collect() });
    }

    /// Adds a heading of the rows below.
    pub fn group(&mut self, text: impl Into<String>) {
        self.rows.push(TableRow::Group(text.into()));
    }
}

impl Sentence {
    /// One that does not stand out.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { tone: Tone::Plain, text: text.into() }
    }
}

impl Block {
    /// A paragraph.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Sentence::plain(text))
    }

    /// A paragraph that supports a figure.
    pub fn quiet(text: impl Into<String>) -> Self {
        Self::Text(Sentence { tone: Tone::Quiet, text: text.into() })
    }

    /// A heading with what belongs to it.
    pub fn section(heading: impl Into<String>, blocks: Vec<Self>) -> Self {
        Self::Section(Section { heading: heading.into(), blocks, ..Section::default() })
    }

    /// The same, closed until somebody asks for it.
    pub fn folded(heading: impl Into<String>, blocks: Vec<Self>) -> Self {
        let heading = heading.into();
        Self::Section(Section { heading, blocks, folded: true, ..Section::default() })
    }
}

impl Fact {
    /// One that does not stand out.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), tone: Tone::Plain }
    }
}
