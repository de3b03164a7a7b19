//! Reads stored latency maps: a CSV file with a header and a row for each cell. Columns are found
//! by their names. A value that is missing is unknown.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_core::experiment::map::{Shape, Spot};

/// The columns of the quantiles that the bench looks at.
pub const QUANTILES: [(&str, &str); 2] = [("p50_ns", "p50_clipped"), ("p95_ns", "p95_clipped")];

/// A stored map.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The name of its file without the extension.
    pub name: String,
    /// The numbers of steps of its loads.
    pub shape: Shape,
    /// All cells of the shape, column by column. A cell that is missing in the file was not
    /// carried.
    pub cells: Vec<Cell>,
}

/// A stored cell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    /// Whether the disk carried it.
    pub admissible: bool,
    /// Whether the file has a row for it. If it has none, but the disk carried a cell that is no
    /// lower in either load, the values here come from the neighboring cells.
    pub stored: bool,
    /// Each quantile in nanoseconds, if it is known.
    pub response_time_ns: [Option<f64>; 2],
    /// Whether the true value lies beyond the range of the chart.
    pub clipped: [bool; 2],
}

impl Grid {
    /// A cell.
    pub fn at(&self, spot: Spot) -> &Cell {
        &self.cells[spot.write * self.shape.reads + spot.read]
    }

    /// Fills the cells that have no row although the disk carried a cell that is no lower in either
    /// load. Their value is the geometric mean of their neighbors. A search may reach these cells,
    /// and a gap in the file is not a limit of the disk.
    fn fill_holes(&mut self) {
        let Shape { writes, reads, first_read } = self.shape;
        let stored = self.clone();
        let is_carried = |write: usize, read: usize| {
            let cell = stored.at(Spot { write, read });
            cell.stored && cell.admissible
        };
        let mut further = vec![false; writes * reads];
        for write in (0..writes).rev() {
            for read in (first_read..reads).rev() {
                let more_writes = write + 1 < writes && further[(write + 1) * reads + read];
                let more_reads = read + 1 < reads && further[write * reads + read + 1];
                let place = write * reads + read;
                further[place] = more_writes || more_reads || is_carried(write, read);
                if further[place] && !stored.cells[place].stored {
                    let response_time_ns = stored.beside(Spot { write, read });
                    self.cells[place] =
                        Cell { admissible: true, response_time_ns, ..Cell::default() };
                }
            }
        }
    }

    /// The geometric mean of the known values of the nearest cells, by quantile.
    fn beside(&self, spot: Spot) -> [Option<f64>; 2] {
        let Shape { writes, reads, .. } = self.shape;
        [0, 1].map(|place| {
            (1..writes.max(reads)).find_map(|away| {
                let around =
                    |at: usize, end: usize| at.saturating_sub(away)..(at + away + 1).min(end);
                let cells = around(spot.write, writes)
                    .flat_map(|write| around(spot.read, reads).map(move |read| (write, read)));
                let known: Vec<f64> = cells
                    .map(|(write, read)| self.at(Spot { write, read }))
                    .filter(|cell| cell.stored && cell.admissible)
                    .filter_map(|cell| Some(cell.response_time_ns[place]?.ln()))
                    .collect();
                (!known.is_empty()).then(|| (known.iter().sum::<f64>() / known.len() as f64).exp())
            })
        })
    }

    /// Every second step of both loads: the same disk on a coarser grid.
    #[cfg(test)]
    pub fn coarser(&self) -> Self {
        let Shape { writes, reads, first_read } = self.shape;
        let shape = Shape { writes: writes.div_ceil(2), reads: reads.div_ceil(2), first_read };
        let spots = (0..shape.writes).flat_map(|w| (0..shape.reads).map(move |r| (w, r)));
        let cells = spots.map(|(w, r)| *self.at(Spot { write: 2 * w, read: 2 * r })).collect();
        Self { name: self.name.clone(), shape, cells }
    }

    /// Whether the disk rotates. Only a rotating disk takes milliseconds for the median read when
    /// idle.
    pub fn rotates(&self) -> bool {
        let mut idle: Vec<f64> = (1..self.shape.reads)
            .filter_map(|read| self.at(Spot { write: 0, read }).response_time_ns[0])
            .collect();
        idle.sort_unstable_by(f64::total_cmp);
        idle.get(idle.len() / 4).is_some_and(|&ns| ns > 2e6)
    }
}

/// All maps of a folder, by name.
///
/// # Errors
///
/// When the folder or a file in it cannot be read, or a file is not a map. The message names it.
pub fn read(folder: &Path) -> Result<Vec<Grid>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv")))
        .collect();
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{}: there is no .csv file in it", folder.display()));
    }
    let one = |path: &PathBuf| {
        let text = fs::read_to_string(path).map_err(|error| error.to_string());
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        text.and_then(|text| parse(name, &text)).map_err(|why| format!("{}: {why}", path.display()))
    };
    paths.iter().map(one).collect()
}

/// Reads a map from the text of its file.
///
/// # Errors
///
/// When the text is not a map. The message says why.
pub fn parse(name: String, text: &str) -> Result<Grid, String> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let (_, header) = lines.next().ok_or("it is empty")?;
    let columns = Columns::of(header)?;
    let rows: Vec<(Spot, Cell)> = lines
        .map(|(at, line)| columns.row(line).map_err(|why| format!("line {}: {why}", at + 1)))
        .collect::<Result<_, String>>()?;
    let highest = |of: fn(&Spot) -> usize| rows.iter().map(|(spot, _)| of(spot)).max();
    let (Some(write), Some(read)) = (highest(|spot| spot.write), highest(|spot| spot.read)) else {
        return Err("it has no rows".to_owned());
    };
    // Some charts do not show the cells without reads. These cells cannot be measured.
    let idle = rows.iter().any(|(spot, _)| spot.read == 0);
    let first_read = usize::from(!idle && read > 0);
    let shape = Shape { writes: write + 1, reads: read + 1, first_read };
    let mut cells = vec![Cell::default(); shape.writes * shape.reads];
    for (spot, cell) in rows {
        cells[spot.write * shape.reads + spot.read] = cell;
    }
    let mut grid = Grid { name, shape, cells };
    grid.fill_holes();
    Ok(grid)
}

/// The indexes of the columns.
struct Columns {
    write: usize,
    read: usize,
    admissible: Option<usize>,
    quantiles: [(usize, Option<usize>); 2],
}

/// No grid has more steps. The limit keeps a typing error from taking all memory.
const STEPS_MAX: usize = 1000;

impl Columns {
    fn of(header: &str) -> Result<Self, String> {
        let names: Vec<&str> = header.split(',').map(plain).collect();
        let find = |name: &str| names.iter().position(|one| one.eq_ignore_ascii_case(name));
        let need = |name: &str| find(name).ok_or(format!("it has no column {name}"));
        let quantile = |(value, clipped): (&str, &str)| -> Result<_, String> {
            Ok((need(value)?, find(clipped)))
        };
        Ok(Self {
            write: need("w_idx")?,
            read: need("r_idx")?,
            admissible: find("admissible"),
            quantiles: [quantile(QUANTILES[0])?, quantile(QUANTILES[1])?],
        })
    }

    fn row(&self, line: &str) -> Result<(Spot, Cell), String> {
        let fields: Vec<&str> = line.split(',').map(plain).collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        let step = |at: usize| match field(at).parse::<usize>() {
            Ok(step) if step < STEPS_MAX => Ok(step),
            _ => Err(format!("{:?} is no step from 0 to {}", field(at), STEPS_MAX - 1)),
        };
        let value = |at: usize| match field(at) {
            "" => Ok(None),
            text => match text.parse::<f64>() {
                Ok(value) if value > 0.0 && value.is_finite() => Ok(Some(value)),
                Ok(_) => Ok(None),
                Err(_) => Err(format!("{text:?} is no number of nanoseconds")),
            },
        };
        let truth = |text: &str| matches!(text, "1" | "1.0" | "true" | "True" | "yes");
        let [p50, p95] = self.quantiles;
        let response_time_ns = [value(p50.0)?, value(p95.0)?];
        let clipped = [p50.1, p95.1].map(|at| at.is_some_and(|at| truth(field(at))));
        // A map without this column has no figure where the disk did not carry the load.
        let admissible = match self.admissible {
            Some(at) => truth(field(at)),
            None => response_time_ns[0].is_some(),
        };
        let spot = Spot { write: step(self.write)?, read: step(self.read)? };
        Ok((spot, Cell { admissible, stored: true, response_time_ns, clipped }))
    }
}

/// A field without the spaces and quotation marks that some programs put around it.
fn plain(field: &str) -> &str {
    field.trim().trim_matches('"').trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "w_idx,r_idx,p50_ns,p95_ns,admissible,p95_clipped";

    fn parsed(rows: &[&str]) -> Result<Grid, String> {
        parse("a".to_owned(), &rows.join("\n"))
    }

    #[test]
    fn columns_are_found_by_their_names_in_any_order() {
        let header = "# a comment\nadmissible, P95_NS ,w_idx,\"r_idx\",p50_ns,p99_ns,p50_clipped";
        let grid = parsed(&[header, "", "1,250,0,0,100,,1", "0,,1,2,,,0"]).unwrap();
        assert_eq!(grid.shape, Shape { writes: 2, reads: 3, first_read: 0 });
        let cell = grid.at(Spot { write: 0, read: 0 });
        assert_eq!(cell.response_time_ns, [Some(100.0), Some(250.0)]);
        assert_eq!((cell.admissible, cell.clipped), (true, [true, false]));
        assert!(!grid.at(Spot { write: 1, read: 2 }).admissible);
        assert!(!grid.at(Spot { write: 1, read: 0 }).stored);
    }

    #[test]
    fn a_map_without_the_row_of_no_reads_begins_at_one() {
        let grid = parsed(&[HEADER, "0,1,100,200,1,0", "0,2,110,210,1,0"]).unwrap();
        assert_eq!(grid.shape, Shape { writes: 1, reads: 3, first_read: 1 });
    }

    #[test]
    fn without_a_column_for_it_cells_with_a_figure_were_carried() {
        let grid = parsed(&["w_idx,r_idx,p50_ns,p95_ns", "0,0,100,200", "0,1,,"]).unwrap();
        assert!(grid.at(Spot { write: 0, read: 0 }).admissible);
        assert!(!grid.at(Spot { write: 0, read: 1 }).admissible);
    }

    #[test]
    fn what_is_no_map_is_refused_with_the_reason() {
        for (rows, reason) in [
            (&[""][..], "it is empty"),
            (&[HEADER], "it has no rows"),
            (&["w_idx,p50_ns"], "it has no column r_idx"),
            (&[HEADER, "0,x,1,2,1,0"], "line 2: \"x\" is no step from 0 to 999"),
            (&[HEADER, "0,1,fast,2,1,0"], "line 2: \"fast\" is no number of nanoseconds"),
        ] {
            assert_eq!(parsed(rows).unwrap_err(), reason);
        }
    }

    #[test]
    fn what_a_file_has_lost_is_no_limit_of_the_disk() {
        let rows = ["0,0,100,200,1,0", "0,2,400,900,1,0", "1,0,,,0,0"];
        let grid = parsed(&[&[HEADER], rows.as_slice()].concat()).unwrap();
        let lost = grid.at(Spot { write: 0, read: 1 });
        assert!(lost.admissible && !lost.stored);
        assert_eq!(lost.response_time_ns.map(|ns| ns.map(f64::round)), [Some(200.0), Some(424.0)]);
        // The disk carried no cell with that much of both loads.
        assert!(!grid.at(Spot { write: 1, read: 1 }).admissible);
    }
}
