use crate::random::{Random, to_unit};
use std::hint::select_unpredictable;

/// Draws ranks from 1 on, rank r with a probability exactly proportional to r^-theta, for any theta >= 0.
///
/// The ranks are divided into cells: the first ones alone, then runs of ranks, each 1/64 longer than what is before
/// it. A cell is drawn with a probability proportional to its length times the weight of its first rank (by the alias
/// method: Vose, "A Linear Algorithm for Generating Random Numbers with a Given Distribution", 1991), a rank of the
/// cell uniformly, and the rank is accepted with the ratio of its weight to that of the first. As weights hardly
/// differ within a cell, nearly all are accepted, and nearly always without computing a power. A key space of a
/// million keys has 700 cells, one of a trillion 1,600: they stay in the first-level cache.
#[derive(Debug, Clone)]
pub(crate) struct Zipfian {
    theta: f64,
    cells: Vec<Cell>,
    /// The first rank past all cells.
    end: u64,
    making: Making,
}

/// What the making of cells needs, kept so that a growing key space allocates nothing.
#[derive(Debug, Clone)]
struct Making {
    /// What each cell needs, in parts of an equal share.
    shares: Vec<f64>,
    /// Cells that need less than an equal share, and the others.
    small: Vec<usize>,
    large: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    start: u64,
    length: u64,
    /// A uniform 64-bit number below this means this cell, another one the alias.
    threshold: u64,
    alias: u32,
    /// A uniform 32-bit number below this accepts every rank of the cell.
    squeeze: u32,
}

/// A run is this fraction as long as all ranks before it.
const FRACTION: u64 = 64;
/// Enough for 2^40 ranks.
const MOST_CELLS: usize = 2000;

impl Zipfian {
    pub(crate) fn new(theta: f64) -> Self {
        Self {
            theta,
            cells: Vec::with_capacity(MOST_CELLS),
            end: 0,
            making: Making {
                shares: Vec::with_capacity(MOST_CELLS),
                small: Vec::with_capacity(MOST_CELLS),
                large: Vec::with_capacity(MOST_CELLS),
            },
        }
    }

    /// Draw a rank of 1 to `count`, which must not be 0. When `count` grows, the cells are made anew each time it has
    /// grown by 1/64, in some ten microseconds.
    #[inline]
    pub(crate) fn draw(&mut self, random: &mut Random, count: u64) -> u64 {
        if !self.covers(count) {
            self.make_cells(count);
        }
        loop {
            let (index, remainder) = split(random.next(), self.cells.len() as u64);
            let cell = &self.cells[index as usize];
            let itself = remainder < cell.threshold;
            let index = select_unpredictable(itself, index as usize, cell.alias as usize);
            let cell = &self.cells[index];
            let (offset, remainder) = split(random.next(), cell.length);
            let rank = cell.start + offset;
            let accepted = remainder >> 32 < u64::from(cell.squeeze)
                || to_unit(remainder) < self.ratio(cell.start, rank);
            // The last cell may reach beyond the last rank.
            if accepted && rank <= count {
                return rank;
            }
        }
    }

    /// Whether the cells are those of `count` ranks: `count` lies in the last one.
    #[inline]
    fn covers(&self, count: u64) -> bool {
        count < self.end && self.cells.last().is_some_and(|last| count >= last.start)
    }

    /// The weight of `rank` as a fraction of that of `first`.
    fn ratio(&self, first: u64, rank: u64) -> f64 {
        (first as f64 / rank as f64).powf(self.theta)
    }

    fn make_cells(&mut self, count: u64) {
        self.cells.clear();
        let mut start = 1;
        while start <= count {
            let length = (start / FRACTION).max(1);
            let least = self.ratio(start, start + length - 1);
            self.cells.push(Cell {
                start,
                length,
                threshold: u64::MAX,
                alias: 0,
                // Rounded down; saturates for a cell of one rank.
                squeeze: (least * 2_f64.powi(32)) as u32,
            });
            start += length;
        }
        self.end = start;
        self.make_aliases();
    }

    /// Vose's method: each cell has an equal share of the draws and gives what it does not need to one that needs more.
    fn make_aliases(&mut self) {
        let Making {
            shares,
            small,
            large,
        } = &mut self.making;
        shares.clear();
        shares.extend(self.cells.iter().map(|cell| weight(self.theta, cell)));
        let scale = shares.len() as f64 / shares.iter().sum::<f64>();
        shares.iter_mut().for_each(|share| *share *= scale);
        small.clear();
        large.clear();
        for (index, &share) in shares.iter().enumerate() {
            if share < 1.0 {
                &mut *small
            } else {
                &mut *large
            }
            .push(index);
        }
        while let Some(&taker) = large.last()
            && let Some(giver) = small.pop()
        {
            let cell = &mut self.cells[giver];
            cell.threshold = (shares[giver] * 2_f64.powi(64)) as u64;
            cell.alias = taker as u32;
            shares[taker] -= 1.0 - shares[giver];
            if shares[taker] < 1.0 {
                large.pop();
                small.push(taker);
            }
        }
        // What is left in either list needs an equal share, but for rounding.
        for &index in small.iter().chain(large.iter()) {
            self.cells[index].alias = index as u32;
        }
    }
}

/// The weight of a cell if all its ranks had that of the first.
fn weight(theta: f64, cell: &Cell) -> f64 {
    cell.length as f64 * (cell.start as f64).powf(-theta)
}

/// Divide a uniform 64-bit number into a uniform number below `bound` and what then remains uniform.
#[inline]
fn split(bits: u64, bound: u64) -> (u64, u64) {
    let product = u128::from(bits) * u128::from(bound);
    ((product >> 64) as u64, product as u64)
}

#[cfg(test)]
mod tests;
