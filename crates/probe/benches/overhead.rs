//! What sampling costs and how punctual it is, on this host: `cargo bench -p probe --bench overhead -- [SECONDS [SAMPLES_PER_SECOND...]]`.
//!
//! Follows its own process and, where it can be told, its own control group, as a run follows the system under test.

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use probe::{Host, Sampler};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench");
    let seconds: f64 = arguments.next().map_or(Ok(5.0), |text| text.parse())?;
    let mut rates = arguments
        .map(|text| text.parse())
        .collect::<Result<Vec<f64>, _>>()?;
    if rates.is_empty() {
        rates = vec![10.0, 100.0];
    }
    for rate in rates {
        measure(seconds, rate)?;
    }
    Ok(())
}

fn measure(seconds: f64, rate: f64) -> Result<(), Box<dyn Error>> {
    let host = Host {
        processes: vec![("system".to_owned(), std::process::id())],
        cgroups: vec![("system".to_owned(), "/".to_owned())],
        interval: Duration::from_secs_f64(1.0 / rate),
        ..Host::live()
    };
    let mut sampler = Sampler::new(&host)?;
    sampler.start()?;
    sleep(Duration::from_secs_f64(seconds));
    let summary = sampler.stop()?;
    let rows = sampler.drain();
    println!(
        "{rate} samples a second, {} columns: {} ticks, {} missed ({:.3} %), worst lateness {:.2} ms, \
         {:.3} % of a core, {:.0} us a tick, nice {}",
        sampler.columns().len(),
        summary.ticks,
        summary.missed_ticks,
        summary.missed_ticks as f64 / (summary.ticks + summary.missed_ticks) as f64 * 100.0,
        summary.worst_lateness_seconds * 1e3,
        summary.cpu_seconds / summary.wall_seconds * 100.0,
        summary.cpu_seconds / summary.ticks as f64 * 1e6,
        summary.nice,
    );
    assert_eq!(
        rows.timestamps.len() as u64 + summary.dropped_rows,
        summary.ticks
    );
    for probe in sampler.probes() {
        println!(
            "  {:<18} {:<9?} {:>6.1} us  {}",
            probe.name,
            probe.status,
            probe.seconds_per_read * 1e6,
            probe.reason
        );
    }
    Ok(())
}
