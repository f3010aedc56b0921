//! Everything, as a table for people.

use crate::Error;
use crate::arguments::Options;
use crate::draw::draw;
use crate::measure::{BURST, measure};
use crate::store::{Holds, Store, partitions_for};

/// Of 100 operations, how many write.
const SETS: [u64; 3] = [0, 50, 100];
const SKEWS: [Option<f64>; 2] = [None, Some(0.99)];

/// Measure and print, one block of cores and access mode after the other; its cells are taken in turn, round after
/// round, and each shows its median and its range.
pub fn print(options: &Options) -> Result<(), Error> {
    println!(
        "{} items of 8 + 8 bytes, {} s a cell and round, {} rounds, bursts of {BURST}",
        options.items, options.seconds, options.rounds
    );
    let drawn = SKEWS
        .iter()
        .map(|&skew| draw(options.items, skew))
        .collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::new();
    let counts = core_counts(options.cores);
    let most_cores = counts.iter().copied().max().unwrap_or(1);
    for cores in counts {
        let partitions = options
            .partitions
            .unwrap_or_else(|| partitions_for(cores, most_cores));
        for access in options.accesses() {
            let mut store = Store::filled(options.items, cores, partitions, access)?;
            eprintln!("{}: {}", access.label(), told(&store.holds));
            rows.extend(block(&mut store, &drawn, options)?);
        }
    }
    println!(
        "{:>8} {:>5}  {:<10} {:>5}  {:>9}  range (million operations/s)",
        "access", "cores", "keys", "sets", "median"
    );
    for row in rows {
        println!("{row}");
    }
    Ok(())
}

/// Powers of two up to the cores that there are, or the one that was asked for.
fn core_counts(only: Option<usize>) -> Vec<usize> {
    let usable = net::affinity::allowed_cores().len().max(1);
    match only {
        Some(cores) => vec![cores],
        None => std::iter::successors(Some(1), |count| Some(2 * count))
            .take_while(|&count| count <= usable)
            .collect(),
    }
}

/// What was filled.
fn told(holds: &Holds) -> String {
    let unknown = || "unknown".to_owned();
    let layout = holds.layout.map(|layout| {
        let mebibytes = layout.log_bytes >> 20;
        format!(
            "{} partitions, logs of {mebibytes} MiB, ",
            layout.partitions
        )
    });
    let huge = holds.huge_page_bytes.map(|bytes| (bytes >> 20).to_string());
    let overhead = holds.overhead_bytes.map(|bytes| format!("{bytes:.2}"));
    format!(
        "{}{} MiB in huge pages, {} items lost, {} bytes an item beside key and value",
        layout.unwrap_or_default(),
        huge.unwrap_or_else(unknown),
        holds.lost,
        overhead.unwrap_or_else(unknown),
    )
}

fn block(store: &mut Store, drawn: &[Vec<u64>], options: &Options) -> Result<Vec<String>, Error> {
    let cells: Vec<(usize, u64)> = (0..SKEWS.len())
        .flat_map(|skew| SETS.map(|sets| (skew, sets)))
        .collect();
    let mut rates = vec![Vec::new(); cells.len()];
    let mut missed = 0;
    for _ in 0..options.rounds {
        for (rates, &(skew, sets)) in rates.iter_mut().zip(&cells) {
            let measured = measure(store, &drawn[skew], sets, options.seconds)?;
            rates.push(measured.rate());
            missed += measured.by_core.iter().map(|work| work.missed).sum::<u64>();
        }
    }
    if missed > 0 {
        eprintln!(
            "{missed} lookups found no item: hits and writes had moved others to where it was"
        );
    }
    let row = |(&(skew, sets), rates): (&(usize, u64), &mut Vec<f64>)| {
        rates.sort_by(f64::total_cmp);
        let keys =
            SKEWS[skew].map_or_else(|| "uniform".to_owned(), |theta| format!("zipf {theta}"));
        let (least, most) = (rates[0] / 1e6, rates[rates.len() - 1] / 1e6);
        let median = rates[rates.len() / 2] / 1e6;
        format!(
            "{:>8} {:>5}  {keys:<10} {sets:>4} %  {median:>9.2}  {least:.2} to {most:.2}",
            store.access.label(),
            store.cores,
        )
    };
    Ok(cells.iter().zip(&mut rates).map(row).collect())
}
