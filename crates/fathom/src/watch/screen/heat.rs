//! The heat map of response times: a column for each interval, a row for each step of the times.

use fathom_core::figures::time;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::widgets::Widget;

use super::state::Point;

/// The shades, from few I/Os to many.
const SHADES: [&str; 4] = ["░", "▒", "▓", "█"];
/// Their colors.
const COLORS: [Color; 4] = [Color::Blue, Color::Cyan, Color::Yellow, Color::Red];
/// The columns of the labels.
const LABELS: usize = 8;

/// The map.
pub struct HeatMap<'a> {
    /// The intervals, the latest last.
    pub points: Vec<Option<&'a Point>>,
    /// Whether the shades have colors.
    pub color: bool,
}

/// The lower ends of rows from the shortest to the longest time, at most `rows` of them: 1, 2 and 5
/// times each power of ten if there is room, otherwise powers of ten.
pub fn steps(shortest: u64, longest: u64, rows: usize) -> Vec<u64> {
    for digits in [&[1, 2, 5][..], &[1, 3], &[1]] {
        let all: Vec<u64> =
            (0..19).flat_map(|power| digits.iter().map(move |d| d * 10_u64.pow(power))).collect();
        let first = all.partition_point(|step| *step <= shortest).saturating_sub(1);
        let end = all.partition_point(|step| *step <= longest).max(first + 1);
        if end - first <= rows || digits.len() == 1 {
            // The longest times matter most.
            return all[first.max(end.saturating_sub(rows))..end].to_vec();
        }
    }
    Vec::new()
}

impl Widget for HeatMap<'_> {
    fn render(self, area: Rect, buffer: &mut Buffer) {
        let (width, height) = (usize::from(area.width), usize::from(area.height));
        if width <= LABELS || height == 0 {
            return;
        }
        let columns = width - LABELS;
        let hidden = self.points.len().saturating_sub(columns);
        let shown = &self.points[hidden..];
        let times = || shown.iter().flatten().flat_map(|point| &point.times);
        let (Some((shortest, _)), Some((longest, _))) = (times().min(), times().max()) else {
            return;
        };
        let steps = steps(*shortest, *longest, height);
        let most = counts(shown, &steps).into_iter().flatten().max().unwrap_or(1).max(1);
        for (row, step) in steps.iter().enumerate() {
            let y = area.bottom() - 1 - row as u16;
            let label = format!("{:>width$} ", time(*step as f64), width = LABELS - 1);
            buffer.set_stringn(area.x, y, label, LABELS, Style::default());
        }
        for (column, counts) in counts(shown, &steps).into_iter().enumerate() {
            let x = area.x + (LABELS + columns - shown.len() + column) as u16;
            for (row, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
                let shade = shade(count, most);
                let style = match self.color {
                    true => Style::default().fg(COLORS[shade]),
                    false => Style::default(),
                };
                let y = area.bottom() - 1 - row as u16;
                buffer.set_stringn(x, y, SHADES[shade], 1, style);
            }
        }
    }
}

/// For each interval, how often the times of each row occurred.
fn counts(points: &[Option<&Point>], steps: &[u64]) -> Vec<Vec<u64>> {
    let of = |point: &Option<&Point>| {
        let mut counts = vec![0; steps.len()];
        for (lower, count) in point.iter().flat_map(|point| &point.times) {
            let row = steps.partition_point(|step| step <= lower).saturating_sub(1);
            counts[row] += count;
        }
        counts
    };
    points.iter().map(of).collect()
}

/// A shade by the magnitude: a single slow I/O must be seen beside thousands of fast ones.
fn shade(count: u64, most: u64) -> usize {
    let share = (count as f64).ln_1p() / (most as f64).ln_1p();
    ((share * 4.0) as usize).min(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_fine_as_the_room_allows() {
        assert_eq!(steps(30_000, 900_000, 8), [20_000, 50_000, 100_000, 200_000, 500_000]);
        assert_eq!(steps(30_000, 900_000, 4), [30_000, 100_000, 300_000]);
        assert_eq!(steps(30_000, 900_000, 2), [10_000, 100_000]);
        assert_eq!(
            steps(100, 10_000_000_000, 4),
            [10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000]
        );
        assert_eq!(steps(0, 0, 3), [1]);
    }

    #[test]
    fn one_slow_io_is_seen_beside_thousands() {
        assert_eq!(shade(1, 1), 3);
        assert_eq!(shade(1, 10_000), 0);
        assert_eq!(shade(10_000, 10_000), 3);
        assert!(shade(300, 10_000) > 1);
    }
}
