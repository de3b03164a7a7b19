//! Draws the state: the table above, the chosen disk below.

use fathom_core::figures::{percent, time};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span as Piece};
use ratatui::widgets::{
    Axis, Block, Cell, Chart, Clear, Dataset, GraphType, Paragraph, Row, Table,
};

use super::heat::HeatMap;
use super::state::{Figures, Point, State};
use crate::watch::lines::short;

/// The rows of disks that the table has at most, so that the charts have room.
const ROWS: usize = 8;
/// From this width on, the names of disks have more room.
const WIDE: u16 = 110;
/// The room of a column with its gap.
const COLUMN: u16 = 7;

/// A column of the table: its title, its rank, and its figure.
type FigureColumn = (&'static str, u16, fn(&Point) -> String);

/// The columns of the table after the name. A narrow terminal has those of the lowest ranks: a
/// figure without its first digits is worse than none.
const COLUMNS: [FigureColumn; 12] = [
    ("r/s", 0, |it| short(it.reads.iops)),
    ("rMiB/s", 8, |it| mib(it.reads.bandwidth)),
    ("r us", 2, |it| us(it.reads.mean)),
    ("r p50", 10, |it| us(it.reads.p50)),
    ("r p99", 6, |it| us(it.reads.p99)),
    ("w/s", 1, |it| short(it.writes.iops)),
    ("wMiB/s", 9, |it| mib(it.writes.bandwidth)),
    ("w us", 3, |it| us(it.writes.mean)),
    ("w p50", 11, |it| us(it.writes.p50)),
    ("w p99", 7, |it| us(it.writes.p99)),
    ("queue", 5, |it| short(it.queue)),
    ("util", 4, |it| format!("{:.0}", it.busy * 100.0)),
];

fn mib(bandwidth: f64) -> String {
    short(bandwidth / 1_048_576.0)
}

fn us(time: Option<f64>) -> String {
    time.map_or("-".to_owned(), |ns| short(ns / 1000.0))
}

const HELP: &str = "\
 up, down    choose a disk
 s           sort by name, IOPS, response time, utilization
 p, space    pause, and go on
 ?           show or hide these keys
 q, Esc      end

 Times are in us, from the making of a request in the
 block layer to its completion. util is the share of the
 time with a request in flight: a disk that works on many
 at once is not full at 100.
 The map has a row for each response time, and a column
 for each interval; the shade is the number of I/Os.";

/// Draws everything.
pub fn all(frame: &mut Frame<'_>, state: &State) {
    let rows = state.disks.len().min(ROWS) as u16;
    let notes = notes(state);
    let [head, table, note, charts, lower] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(rows + 1),
        Constraint::Length(notes.len() as u16),
        Constraint::Fill(1),
        Constraint::Fill(1),
    ])
    .areas(frame.area());
    frame.render_widget(header(state, head.width), head);
    frame.render_widget(disks(state, table.width), table);
    frame.render_widget(Paragraph::new(notes), note);
    let [rates, times] = Layout::horizontal([Constraint::Fill(1); 2]).spacing(2).areas(charts);
    let tail = if state.note.is_some() { "mean time" } else { "p99" };
    chart(frame, state, rates, "IOPS", |figures| Some(figures.iops), short);
    chart(frame, state, times, tail, |figures| figures.p99.or(figures.mean), time);
    let [map, programs] =
        Layout::horizontal([Constraint::Fill(1), Constraint::Length(lower.width / 3)])
            .spacing(2)
            .areas(lower);
    heat(frame, state, map);
    frame.render_widget(of_programs(state), programs);
    if state.helps {
        help(frame);
    }
}

fn paint(state: &State, color: Color) -> Style {
    if state.color { Style::default().fg(color) } else { Style::default() }
}

fn header(state: &State, width: u16) -> Paragraph<'static> {
    let clock = state.at.map_or("starting".to_owned(), |at| {
        format!("{:02}:{:02}:{:02} UTC", at.hour, at.minute, at.second)
    });
    let cost = state.own_cpu.0 as f64 / state.interval.0.max(1) as f64;
    let mut text = format!("fathom watch  {clock}");
    if state.paused.is_some() {
        text += "  PAUSED";
    } else if state.at.is_some() {
        text += &format!("  costs {} of a CPU", percent(cost));
    }
    let keys = format!("sort: {}  ? help  q end", state.order.name());
    let room = usize::from(width).saturating_sub(text.chars().count());
    Paragraph::new(Line::from(Vec::from([
        Piece::styled(text, Style::default().add_modifier(Modifier::BOLD)),
        Piece::raw(format!("{keys:>room$}")),
    ])))
}

fn notes(state: &State) -> Vec<Line<'static>> {
    let mut notes: Vec<String> = state.note.iter().cloned().collect();
    if state.lost > 0 {
        notes.push(format!("{} events were dropped: times and programs lack these", state.lost));
    }
    notes.into_iter().map(|note| Line::styled(note, paint(state, Color::Yellow))).collect()
}

/// The table of disks: as many as there is room for, the chosen one among them.
fn disks(state: &State, width: u16) -> Table<'static> {
    let name = if WIDE <= width { 14 } else { 9 };
    let fit = width.saturating_sub(name) / COLUMN;
    let columns: Vec<_> = COLUMNS.iter().filter(|(_, rank, _)| *rank < fit).collect();
    let each = width.saturating_sub(name) / columns.len().max(1) as u16;
    let right = |text: String| Cell::from(Line::from(text).alignment(Alignment::Right));
    let titles = columns.iter().map(|(title, ..)| right((*title).to_owned()));
    let head = std::iter::once(Cell::from("disk")).chain(titles);
    let places = state.rows();
    let chosen = places.iter().position(|place| *place == state.chosen).unwrap_or(0);
    let first = (chosen + 1).saturating_sub(ROWS);
    let row = |place: &usize| {
        let mut cells = Vec::from([Cell::from(state.disks[*place].name.clone())]);
        match state.last(*place) {
            Some(point) => cells.extend(columns.iter().map(|(_, _, text)| right(text(point)))),
            None if state.at.is_some() => cells.push(right("gone".to_owned())),
            None => {}
        }
        let row = Row::new(cells);
        match *place == state.chosen {
            true => row.style(Style::default().add_modifier(Modifier::REVERSED)),
            false => row,
        }
    };
    let shown: Vec<Row<'_>> = places.iter().skip(first).take(ROWS).map(row).collect();
    let widths = std::iter::once(Constraint::Length(name))
        .chain(columns.iter().map(|_| Constraint::Length(each.saturating_sub(1))));
    Table::new(shown, widths)
        .header(Row::new(head).style(Style::default().add_modifier(Modifier::BOLD)))
        .column_spacing(1)
}

/// A figure of the chosen disk over time, reads and writes.
fn chart(
    frame: &mut Frame<'_>,
    state: &State,
    area: Rect,
    title: &str,
    figure: fn(&Figures) -> Option<f64>,
    words: fn(f64) -> String,
) {
    let shown: Vec<Option<&Point>> = state.shown(state.chosen).collect();
    let room = usize::from(area.width).saturating_sub(10).max(2) * 2;
    let hidden = shown.len().saturating_sub(room);
    let values = |flow: fn(&Point) -> &Figures| -> Vec<(f64, f64)> {
        let value =
            |(nth, point): (usize, &Option<&Point>)| Some((nth as f64, figure(flow((*point)?))?));
        shown[hidden..].iter().enumerate().filter_map(value).collect()
    };
    let (reads, writes) = (values(|point| &point.reads), values(|point| &point.writes));
    let most = reads.iter().chain(&writes).map(|(_, y)| *y).fold(0.0, f64::max);
    let length = (shown.len() - hidden).max(2) as f64 - 1.0;
    let set = |name: &'static str, data, marker, color| {
        Dataset::default()
            .name(name)
            .data(data)
            .marker(marker)
            .graph_type(GraphType::Line)
            .style(paint(state, color))
    };
    let ago = format!("{} s ago", (length * state.interval.as_secs_f64()).round());
    let chart = Chart::new(Vec::from([
        set("reads", &reads, Marker::Braille, Color::Cyan),
        // Without color, another marker tells it apart.
        set(
            "writes",
            &writes,
            if state.color { Marker::Braille } else { Marker::Dot },
            Color::Yellow,
        ),
    ]))
    .legend_position(None)
    .block(Block::new().title(title_of(state, title)))
    .x_axis(Axis::default().bounds([0.0, length]).labels([ago, "now".to_owned()]))
    .y_axis(
        Axis::default()
            .bounds([0.0, most.max(f64::MIN_POSITIVE)])
            .labels(["0".to_owned(), if most > 0.0 { words(most) } else { String::new() }]),
    );
    frame.render_widget(chart, area);
}

/// "sda p99: reads, writes", each word in the color of its line.
fn title_of(state: &State, figure: &str) -> Line<'static> {
    let name = &state.disks[state.chosen].name;
    let words = if state.color { ["reads", "writes"] } else { ["reads ⣀", "writes •"] };
    let [reads, writes] = words;
    Line::from(Vec::from([
        Piece::raw(format!("{name} {figure}: ")),
        Piece::styled(reads, paint(state, Color::Cyan)),
        Piece::raw(", "),
        Piece::styled(writes, paint(state, Color::Yellow)),
    ]))
}

fn heat(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let block = Block::new().title("response times, reads and writes");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let points: Vec<Option<&Point>> = state.shown(state.chosen).collect();
    let has_times = points.iter().flatten().any(|point| !point.times.is_empty());
    if !has_times {
        frame.render_widget(Paragraph::new(" none yet"), inner);
        return;
    }
    frame.render_widget(HeatMap { points, color: state.color }, inner);
}

fn of_programs(state: &State) -> Paragraph<'static> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    for (name, share) in state.programs() {
        if share >= 0.0005 {
            lines.push(Line::from(format!("{:>5.1} % {name}", share * 100.0)));
        }
    }
    if lines.is_empty() {
        lines.push(Line::from(" none yet"));
    }
    Paragraph::new(lines).block(Block::new().title("programs, share of I/Os"))
}

fn help(frame: &mut Frame<'_>) {
    let area = frame.area();
    let height = (HELP.lines().count() as u16 + 2).min(area.height);
    let width = 64.min(area.width);
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(HELP).block(Block::bordered().title(" keys ")), place);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::state::ViewKey;
    use super::super::state::tests::state;
    use super::*;

    /// The rows of the screen as text.
    fn drawn(state: &State, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| all(frame, state)).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y| {
            let cells = (0..width).map(|x| buffer[(x, y)].symbol());
            cells.collect::<String>().trim_end().to_owned()
        };
        (0..height).map(row).collect()
    }

    #[test]
    fn the_usual_terminal_shows_the_figures_of_each_disk() {
        let mut state = state(30, false);
        state.press(ViewKey::Down);
        let rows = drawn(&state, 80, 24);
        assert!(
            rows[0].starts_with("fathom watch  12:00:29 UTC  costs 1.2 % of a CPU"),
            "{}",
            rows[0]
        );
        assert!(rows[0].ends_with("sort: name  ? help  q end"), "{}", rows[0]);
        let words: Vec<&str> = rows[1].split_whitespace().collect();
        assert_eq!(
            words,
            "disk r/s rMiB/s r us r p99 w/s wMiB/s w us w p99 queue util"
                .split(' ')
                .collect::<Vec<_>>()
        );
        let busy: Vec<&str> = rows[3].split_whitespace().collect();
        assert_eq!(
            busy,
            ["nvme0n1", "2000", "7.81", "100", "100", "50.0", "3.12", "3000", "-", "0.35", "32"]
        );
        assert!(rows[4].starts_with("sdb") && rows[4].ends_with("gone"), "{}", rows[4]);
        let all = rows.join("\n");
        for words in ["nvme0n1 IOPS", "response times", "programs, share of I/Os", "100.0 % ?", "█"]
        {
            assert!(all.contains(words), "{words}\n{all}");
        }
    }

    #[test]
    fn a_narrow_terminal_has_fewer_columns_but_whole_figures() {
        let state = state(30, false);
        for (width, titles, figures) in [
            (45, "disk r/s r us w/s w us util", "nvme0n1 2000 100 50.0 3000 32"),
            (30, "disk r/s r us w/s", "nvme0n1 2000 100 50.0"),
            (
                200,
                "disk r/s rMiB/s r us r p50 r p99 w/s wMiB/s w us w p50 w p99 queue util",
                "nvme0n1",
            ),
        ] {
            let rows = drawn(&state, width, 24);
            let words = |row: &str| row.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(words(&rows[1]), titles);
            assert!(words(&rows[3]).starts_with(figures), "{}", rows[3]);
        }
    }

    #[test]
    fn any_size_is_drawn() {
        let mut state = state(700, true);
        state.press(ViewKey::Down);
        state.press(ViewKey::Help);
        for (width, height) in [(1, 1), (10, 3), (40, 10), (80, 24), (140, 50), (300, 100)] {
            assert_eq!(drawn(&state, width, height).len(), usize::from(height));
        }
        let all = drawn(&state, 80, 24).join("\n");
        assert!(all.contains("choose a disk"), "{all}");
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut state = state(2, true);
        state.note = Some("only root sees events".to_owned());
        state.lost = 7;
        let all = drawn(&state, 140, 50).join("\n");
        assert!(all.contains("only root sees events"), "{all}");
        assert!(all.contains("7 events were dropped"), "{all}");
    }
}
