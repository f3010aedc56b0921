use super::*;

#[test]
fn the_alias_table_keeps_every_weight() {
    for (theta, count) in [
        (0.0, 1000),
        (0.5, 1),
        (0.99, 100_000),
        (1.0, 1 << 40),
        (3.0, 5000),
    ] {
        let mut zipfian = Zipfian::new(theta);
        zipfian.make_cells(count);
        let cells = &zipfian.cells;
        let mut probabilities = vec![0.0; cells.len()];
        for (index, cell) in cells.iter().enumerate() {
            let own = cell.threshold as f64 / 2_f64.powi(64) / cells.len() as f64;
            probabilities[index] += own;
            probabilities[cell.alias as usize] += 1.0 / cells.len() as f64 - own;
        }
        let sum: f64 = cells.iter().map(|cell| weight(theta, cell)).sum();
        for (cell, probability) in cells.iter().zip(probabilities) {
            let expected = weight(theta, cell) / sum;
            assert!(
                (probability - expected).abs() < 1e-12,
                "{theta} {count} {}",
                cell.start
            );
        }
    }
}

#[test]
fn cells_cover_every_rank_once() {
    let mut zipfian = Zipfian::new(0.99);
    for count in [1, 2, 127, 128, 129, 100_000, 1 << 40] {
        zipfian.make_cells(count);
        let mut next = 1;
        for cell in &zipfian.cells {
            assert_eq!(cell.start, next);
            next += cell.length;
        }
        assert!(zipfian.covers(count) && next == zipfian.end);
        assert!(zipfian.cells.len() <= MOST_CELLS);
    }
}
