//! Measurements that were made in turns, compared.

use std::error::Error;

/// Time on a processor of all threads of a process so far, which the kernel counts in nanoseconds (`schedstat`).
pub fn processor_seconds(pid: u32) -> Result<f64, Box<dyn Error>> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        let spent = text.split_whitespace().next().unwrap_or_default();
        nanoseconds += spent.parse::<u64>()?;
    }
    Ok(nanoseconds as f64 / 1e9)
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

/// The median of the ratios of measurements that were made in one round, and its 95 % interval by order statistics, which
/// assumes no distribution (Conover 1999, section 3.2); of fewer than six, the smallest and the largest.
pub fn ratio(a: &[f64], b: &[f64]) -> String {
    let mut ratios: Vec<f64> = a.iter().zip(b).map(|(a, b)| a / b).collect();
    ratios.sort_by(f64::total_cmp);
    let count = ratios.len() as f64;
    let below = ((count / 2.0 - 0.98 * count.sqrt()) as usize).min(ratios.len() - 1);
    let (least, most) = (ratios[below], ratios[ratios.len() - 1 - below]);
    format!("{:.3} ({least:.3} to {most:.3})", median(&ratios))
}
