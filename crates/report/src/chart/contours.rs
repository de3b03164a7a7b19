//! Lines along which a surface has the same value, between the middles of its cells.

use super::{Contour, Cover, Heat, log_ticks};

/// More lines than this hide the surface.
const MOST: usize = 5;

/// A cell's middle with its value, in steps of both axes.
type Corner = ((f64, f64), f64);

/// A part of a line that lies in one triangle.
type LinePiece = [(f64, f64); 2];

/// Lines at round values, each with its text. Only between cells whose values are known.
pub fn contours(heat: &Heat, write: impl Fn(f64) -> String) -> Vec<Contour> {
    let Some((low, high)) = heat.range() else { return Vec::new() };
    let mut levels: Vec<f64> = log_ticks(low, high);
    levels.retain(|level| low < *level && *level < high);
    // The first ones: the loads with short times are those that people want.
    levels.truncate(MOST);
    let values = values(heat);
    let mut drawn: Vec<Contour> = Vec::new();
    for level in levels {
        let pieces = pieces(&values, level);
        // Where times rise steeply, lines lie on each other, and one is enough.
        let beside = pieces.iter().filter(|piece| is_beside(piece[0], &drawn)).count();
        if pieces.len() < 2 || pieces.len() < beside * 2 {
            continue;
        }
        let at = free_place(&longest(&pieces), &drawn);
        drawn.push(Contour { label: write(level), pieces, at });
    }
    drawn
}

/// Whether a point lies within a step of a line.
fn is_beside((x, y): (f64, f64), drawn: &[Contour]) -> bool {
    let near = |(other_x, other_y): (f64, f64)| (x - other_x).hypot(y - other_y) < 1.0;
    drawn.iter().flat_map(|contour| &contour.pieces).any(|piece| near(piece[0]))
}

/// The pieces of the longest of the lines that a value has, which is the one to carry its text.
fn longest(pieces: &[LinePiece]) -> Vec<LinePiece> {
    let meet = |one: &LinePiece, other: &LinePiece| {
        let apart = |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).hypot(a.1 - b.1);
        one.iter().any(|a| other.iter().any(|b| apart(*a, *b) < 1e-6))
    };
    let mut rest = pieces.to_vec();
    let mut lines: Vec<Vec<LinePiece>> = Vec::new();
    while let Some(first) = rest.pop() {
        let mut line = Vec::from([first]);
        let mut at = 0;
        while let Some(piece) = line.get(at).copied() {
            let (own, others): (Vec<LinePiece>, Vec<LinePiece>) =
                rest.into_iter().partition(|other| meet(&piece, other));
            line.extend(own);
            rest = others;
            at += 1;
        }
        lines.push(line);
    }
    let length = |line: &Vec<LinePiece>| -> f64 {
        line.iter().map(|[(x, y), (to_x, to_y)]| (x - to_x).hypot(y - to_y)).sum()
    };
    let longest = lines.into_iter().max_by(|one, two| length(one).total_cmp(&length(two)));
    longest.unwrap_or_default()
}

/// The place on a line that is farthest from the texts of the others, and from the others themselves;
/// of a first line its middle.
fn free_place(pieces: &[LinePiece], drawn: &[Contour]) -> (f64, f64) {
    let distance = |(x, y): (f64, f64)| {
        // A text is wider than it is high.
        let from = |(other_x, other_y): (f64, f64)| (0.4 * (x - other_x)).hypot(y - other_y);
        let texts = drawn.iter().map(|contour| from(contour.at)).fold(1e9, f64::min);
        let others = drawn.iter().flat_map(|contour| contour.pieces.iter().flatten());
        texts.min(2.0 * others.map(|end| from(*end)).fold(1e9, f64::min))
    };
    let middle = pieces[pieces.len() / 2][0];
    let places = pieces.iter().map(|piece| piece[0]);
    match drawn.is_empty() {
        true => middle,
        false => {
            places.max_by(|one, two| distance(*one).total_cmp(&distance(*two))).unwrap_or(middle)
        }
    }
}

/// The logarithms of the values, row by row; those that are not known are missing.
fn values(heat: &Heat) -> Vec<Vec<Option<f64>>> {
    let mut values = vec![vec![None; heat.x.len()]; heat.y.len()];
    for cell in &heat.cells {
        let is_known = !matches!(cell.cover, Cover::Hatched | Cover::Gray);
        let value = cell.value.filter(|value| is_known && value.is_finite() && 0.0 < *value);
        if let Some(place) = values.get_mut(cell.y).and_then(|row| row.get_mut(cell.x)) {
            *place = value.map(f64::ln);
        }
    }
    values
}

/// The pieces of a line, one or two in each triangle of four neighbors. Triangles have no ambiguous
/// case, as squares have.
fn pieces(values: &[Vec<Option<f64>>], level: f64) -> Vec<LinePiece> {
    let level = level.ln();
    let corner = |x: usize, y: usize| -> Option<Corner> {
        let value = values.get(y)?.get(x).copied().flatten()?;
        Some(((x as f64, y as f64), value))
    };
    let mut pieces = Vec::new();
    for (y, row) in values.iter().enumerate() {
        for x in 0..row.len() {
            let [one, right, above, far] =
                [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(dx, dy)| corner(x + dx, y + dy));
            for triangle in [[one, right, above], [right, above, far]] {
                if let [Some(one), Some(two), Some(three)] = triangle {
                    pieces.extend(crossing([one, two, three], level));
                }
            }
        }
    }
    pieces
}

/// Where a line crosses a triangle; none if it does not.
fn crossing([one, two, three]: [Corner; 3], level: f64) -> Option<LinePiece> {
    let between = |(from, low): Corner, (to, high): Corner| {
        // A value that equals the level is above it, so that each line is drawn once.
        if (low < level) == (high < level) {
            return None;
        }
        let share = (level - low) / (high - low);
        Some((from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share))
    };
    let ends = [between(one, two), between(two, three), between(three, one)];
    let mut ends = ends.into_iter().flatten();
    Some([ends.next()?, ends.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_lies_where_the_value_is_the_level() {
        // The value is ten to the power of the column.
        let row = |_| (0..4).map(|x| Some(10f64.powi(x).ln())).collect::<Vec<Option<f64>>>();
        let values: Vec<Vec<Option<f64>>> = (0..3).map(row).collect();
        let pieces = pieces(&values, 10f64.powf(1.5));
        // Two rows of squares, each with two triangles.
        assert_eq!(pieces.len(), 4);
        let ends = || pieces.iter().flatten();
        assert!(ends().all(|(x, _)| (x - 1.5).abs() < 1e-9), "{pieces:?}");
        let heights = || ends().map(|(_, y)| *y);
        assert_eq!(heights().fold(f64::INFINITY, f64::min), 0.0);
        assert_eq!(heights().fold(0.0, f64::max), 2.0);
    }

    #[test]
    fn the_longest_line_carries_the_text() {
        let line = |y: f64, from: u8, to: u8| {
            (from..to).map(move |x| [(f64::from(x), y), (f64::from(x + 1), y)])
        };
        let pieces: Vec<LinePiece> =
            line(0.0, 0, 2).chain(line(3.0, 0, 5)).chain(line(6.0, 0, 3)).collect();
        let found = longest(&pieces);
        assert_eq!(found.len(), 5);
        assert!(found.iter().flatten().all(|(_, y)| *y == 3.0), "{found:?}");
        assert!(longest(&[]).is_empty());
    }

    #[test]
    fn an_unknown_cell_has_no_line_beside_it() {
        let mut values = vec![vec![Some(0.0), Some(1.0)], vec![Some(0.0), Some(1.0)]];
        assert_eq!(pieces(&values, 0.5f64.exp()).len(), 2);
        values[0][0] = None;
        assert_eq!(pieces(&values, 0.5f64.exp()).len(), 1);
        values[1][1] = None;
        assert!(pieces(&values, 0.5f64.exp()).is_empty());
    }
}
