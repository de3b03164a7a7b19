//! A report as a model: headings, sentences, tables and charts in their order, made from the
//! document alone. The renderers walk over it and do not know results, so that all of them use the
//! same words and the same digits.

mod ab;
mod about;
mod answer;
mod breakdown;
mod calibration;
mod comparison;
mod experiment;
mod history;
mod hosts;
mod illustration;
mod key_figures;
mod maps;
mod overview;
mod target;
mod trial;
mod watched;

pub use answer::answer;
pub use calibration::calibration;
pub use comparison::comparison;
pub use history::history;
pub use illustration::{Illustration, Subject, illustrations};
pub use key_figures::key_figures;
pub use overview::{StepGroup, TRIALS_DRAWN, groups};
pub use target::target;
pub use watched::{answer_of_watch, watched};

use fathom_core::verdict::code_in_words;

use crate::chart::Chart;
use crate::document::{Command, Document, Finding, Severity, Trial, Verdict};
use crate::figures::{self, Doubt};

/// The level of detail of a page. Figures that it leaves out are not computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The findings.
    Short,
    /// The figures of each trial as well.
    Trials,
    /// Also where every I/O went, what the CPUs did, and the evidence of each doubt.
    Full,
    /// Also the content for which only a page in the browser has room: charts over time, whole
    /// device stacks.
    Complete,
}

impl Level {
    /// The level of the command that measured.
    pub fn usual(document: &Document) -> Self {
        match document.header.command {
            Command::Run => Self::Trials,
            Command::Quick
            | Command::Sweep
            | Command::Ab
            | Command::Peak
            | Command::Map
            | Command::Sustain
            | Command::Study
            | Command::Import => Self::Short,
        }
    }

    /// The same for a renderer that folds: what is closed takes no room.
    pub fn folding(self) -> Self {
        if self == Self::Trials { Self::Full } else { self }
    }
}

/// A report.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its title.
    pub title: String,
    /// The answer in one sentence; none on a page about something else than a result.
    pub answer: Option<Sentence>,
    /// The figures that matter, as a table of one row, to stand large beside the answer. A renderer
    /// whose tables are near the answer does without them.
    pub figures: Option<Table>,
    /// The measurement, and the source of the file.
    pub about: Vec<Block>,
    /// The verdict. Empty if nothing was measured.
    pub outcome: Option<Outcome>,
    /// The findings.
    pub blocks: Vec<Block>,
}

impl Page {
    /// The report of a document.
    pub fn of(document: &Document, level: Level) -> Self {
        let mut blocks = Vec::new();
        blocks.extend(experiment::section(document, level));
        blocks.extend(overview::section(document, level));
        // The trials of one result are details of it.
        let each = if document.is_repeated() { Level::Full } else { Level::Trials };
        if each <= level {
            blocks.extend(trial::sections(document, level));
        }
        if Level::Full <= level {
            blocks.extend(about::unchecked(document));
        }
        if level == Level::Complete {
            blocks.extend(about::tested(document));
        }
        Self {
            title: about::title(document),
            answer: Some(answer(document)),
            figures: (level == Level::Complete).then(|| key_figures(document)).flatten(),
            about: about::about(document, level),
            outcome: Some(about::outcome(document, level)),
            blocks,
        }
    }
}

/// The verdict of a result. On a page that is read from the top it comes first; in a terminal,
/// where the last line is seen first, it comes last.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The gravest verdict; none if nothing was judged.
    pub verdict: Option<Verdict>,
    /// The verdict as a heading.
    pub name: String,
    /// Its meaning.
    pub sentence: String,
    /// The end of the run, if it is not as planned, and the findings.
    pub conclusion: Vec<Sentence>,
    /// The doubts, the gravest first.
    pub remarks: Vec<Remark>,
    /// Whether the evidence and the advice are part of the page; if not, the doubts are in a few
    /// words.
    pub explains: bool,
    /// The checks that could not be made; often empty.
    pub unchecked: Vec<Sentence>,
}

/// A sentence or several.
#[derive(Clone, Debug)]
pub struct Sentence {
    /// Its tone.
    pub tone: Tone,
    /// Its text.
    pub text: String,
}

/// A finding about a trial or several.
#[derive(Clone, Debug)]
pub struct Remark {
    /// How grave it is.
    pub severity: Severity,
    /// What it is in a few words, and its trials.
    pub short: String,
    /// The evidence, with its trials.
    pub text: String,
    /// The remedy; may be empty.
    pub advice: String,
}

/// More doubts than these are folded: what stands above them has to stay on the screen.
const REMARKS: usize = 3;

impl Remark {
    /// The gravest ones, which are shown, and the rest, which is folded, with its name: "4 more doubts
    /// and 1 note".
    pub fn folded(all: &[Self]) -> (&[Self], Option<(&[Self], String)>) {
        let (gravest, rest) = all.split_at(all.len().min(REMARKS));
        let notes = rest.iter().filter(|one| one.severity == Severity::Note).count();
        let each = |number: usize, one: &str| match number {
            0 => None,
            1 => Some(format!("1 {one}")),
            many => Some(format!("{many} {one}s")),
        };
        let parts = [each(rest.len() - notes, "more doubt"), each(notes, "note")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (gravest, (!rest.is_empty()).then(|| (rest, parts.join(" and "))))
    }

    /// A finding about a trial that needs no name.
    pub fn of(finding: &Finding) -> Self {
        Self {
            severity: finding.severity,
            short: figures::capitalized(code_in_words(&finding.code)),
            text: finding.evidence.clone(),
            advice: finding.advice.clone(),
        }
    }

    /// A finding about one or several trials.
    pub fn of_doubt(doubt: &Doubt<'_>) -> Self {
        let alone = Self::of(doubt.finding);
        let trials = match doubt.trials.as_str() {
            "" => String::new(),
            trials => format!(": {trials}"),
        };
        Self {
            short: format!("{}{trials}", figures::capitalized(&doubt.words)),
            text: format!("{}{}", doubt.whose, alone.text),
            ..alone
        }
    }
}

/// A tone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// No emphasis.
    #[default]
    Plain,
    /// A heading or one of the most important figures.
    Strong,
    /// A supporting fact.
    Quiet,
    /// Good.
    Good,
    /// Doubtful.
    Doubtful,
    /// Wrong.
    Bad,
}

/// A piece of a report.
#[derive(Clone, Debug)]
pub enum Block {
    /// A heading with its section.
    Section(Section),
    /// A paragraph.
    Text(Sentence),
    /// Names, each with its description.
    Facts(Vec<Fact>),
    /// Sentences of equal rank.
    List(Vec<String>),
    /// Findings.
    Remarks(Vec<Remark>),
    /// Figures in rows and columns.
    Table(Table),
    /// The most important figures: a table of one row.
    Figures(Table),
    /// Charts side by side.
    Charts(Vec<Drawing>),
    /// A row of values, drawn in one line.
    Spark(Spark),
    /// Lines, each with an indentation.
    Tree(Vec<(usize, Sentence)>),
}

/// A heading with its section.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// The trial's number, from 1, if it is about one.
    pub trial: Option<usize>,
    /// The verdict on it.
    pub verdict: Option<Verdict>,
    /// Whether it is closed until the reader opens it, if the renderer supports this.
    pub folded: bool,
    /// Its content.
    pub blocks: Vec<Block>,
}

/// A name with its description.
#[derive(Clone, Debug)]
pub struct Fact {
    /// The name.
    pub name: String,
    /// The description.
    pub text: String,
    /// Its tone.
    pub tone: Tone,
}

/// A chart and its place.
#[derive(Clone, Debug)]
pub enum Drawing {
    /// A chart of an experiment.
    Chart(Chart),
    /// A chart of a trial or of several: drawn for the browser alone.
    Named {
        /// The name of its place.
        id: String,
        /// Its title.
        title: String,
        /// Whether it takes the whole width.
        wide: bool,
    },
}

/// A row of values.
#[derive(Clone, Debug)]
pub struct Spark {
    /// Their meaning.
    pub title: String,
    /// The values; none is below zero.
    pub values: Vec<f64>,
    /// The first of them for which something holds, and its meaning.
    pub mark: Option<(usize, String)>,
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its title; may be empty.
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
    /// What may be dropped if there is no room.
    pub spare: Spare,
}

/// The part of a column that may be dropped if there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// Nothing.
    Nothing,
    /// Its half-widths: those of another column say the same.
    Halves,
    /// All of it.
    Column,
    /// All of it on a page as narrow as a phone. A terminal begins another row of columns.
    Narrow,
}

/// A row of a table.
#[derive(Clone, Debug)]
pub enum TableRow {
    /// A cell for each column; the last ones may be missing.
    Cells {
        /// The row's tone.
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
    /// The subject of a row: a name, a note in smaller print, and the trial with the details.
    Name {
        /// The name.
        text: String,
        /// The note.
        below: String,
        /// A trial's number, from 1.
        trial: usize,
    },
    /// A figure as text, and its half-width.
    Figure {
        /// With its unit if the head does not have it.
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
    /// A list of trials.
    Trials(Vec<Listed>),
    /// A verdict.
    Verdict(Verdict),
}

/// A word in a list of trials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// "7", "7?" for one that is not sound; or what stands for those that are not listed.
    pub text: String,
    /// The trial's number, from 1.
    pub trial: Option<usize>,
}

/// With more trials than this, not every trial is listed: this many would push the verdict out of the page.
const LISTED: usize = 6;

impl Head {
    /// A column of words.
    pub fn words(name: &str) -> Self {
        Self { name: name.to_owned(), words: true, spare: Spare::Nothing }
    }

    /// A column of figures.
    pub fn figures(name: &str) -> Self {
        Self { words: false, ..Self::words(name) }
    }

    /// The same column, of which a part may be dropped.
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

    /// The trials of a point with their numbers, those that are not sound with a mark: "1 2? 3 … 12 (12)".
    pub fn trials(trials: &[(usize, &Trial)]) -> Self {
        let word = |text: String| Listed { text, trial: None };
        let listed = |(number, trial): &(usize, &Trial)| {
            let mark = if trial.verdict == Verdict::Sound { "" } else { "?" };
            Listed { text: format!("{number}{mark}"), trial: Some(*number) }
        };
        let mut all: Vec<Listed> = trials.iter().map(listed).collect();
        let count = all.len();
        if LISTED < count {
            all.splice(LISTED / 2..count - 1, [word("…".to_owned())]);
            all.push(word(format!("({count})")));
        }
        Self::Trials(all)
    }
}

impl Listed {
    /// The list as words.
    pub fn in_words(all: &[Self]) -> String {
        all.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join(" ")
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

    /// Adds a row with a tone.
    pub fn toned(&mut self, tone: Tone, cells: impl IntoIterator<Item = Entry>) {
        self.rows.push(TableRow::Cells { tone, cells: cells.into_iter().collect() });
    }

    /// Adds a heading of the rows below.
    pub fn group(&mut self, text: impl Into<String>) {
        self.rows.push(TableRow::Group(text.into()));
    }
}

impl Sentence {
    /// A fact without emphasis.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { tone: Tone::Plain, text: text.into() }
    }
}

impl Block {
    /// A paragraph.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Sentence::plain(text))
    }

    /// A paragraph with a supporting fact.
    pub fn quiet(text: impl Into<String>) -> Self {
        Self::Text(Sentence { tone: Tone::Quiet, text: text.into() })
    }

    /// A heading with its section.
    pub fn section(heading: impl Into<String>, blocks: Vec<Self>) -> Self {
        Self::Section(Section { heading: heading.into(), blocks, ..Section::default() })
    }

    /// The same, closed until the reader opens it.
    pub fn folded(heading: impl Into<String>, blocks: Vec<Self>) -> Self {
        let heading = heading.into();
        Self::Section(Section { heading, blocks, folded: true, ..Section::default() })
    }
}

impl Fact {
    /// A description without emphasis.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), tone: Tone::Plain }
    }
}
