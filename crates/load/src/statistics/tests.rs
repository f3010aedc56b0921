use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn buckets_are_those_of_the_histogram_crate(value in any::<u64>(), shift in 22..64) {
        let value = value >> shift;
        let mut histogram = Histogram::new(GROUPING_POWER, MAX_VALUE_POWER).expect("valid");
        histogram.increment(value).expect("in range");
        let index = histogram.as_slice().iter().position(|&count| count == 1);
        prop_assert_eq!(index, Some(bucket(value)));
    }

    #[test]
    fn quantiles_are_within_a_bucket_of_the_exact_ones(mut values in prop::collection::vec(0_u64..1 << 40, 1..200)) {
        let latency = Latency::default();
        for &value in &values {
            latency.record(value);
        }
        let mut sum = LatencySum::new();
        sum.add(&latency);
        prop_assert_eq!(sum.total(), values.len() as u64);
        prop_assert_eq!(sum.sum, values.iter().sum::<u64>());
        values.sort_unstable();
        prop_assert_eq!(Some(&sum.max), values.last());
        let quantiles = [0.0, 0.5, 0.9, 0.99, 1.0];
        let found = sum.quantiles(&quantiles).expect("some");
        for (quantile, found) in quantiles.iter().zip(found) {
            let rank = (quantile * values.len() as f64).ceil().max(1.0) as usize - 1;
            let exact = values[rank] as f64 * 1e-9;
            prop_assert!(found >= exact * 0.999_999_999 && found <= exact * (1.0 + 1.0 / 128.0) + 1e-9, "{quantile}: {found} {exact}");
        }
    }
}

#[test]
fn extreme_latencies_are_kept() {
    let latency = Latency::default();
    latency.record(0);
    latency.record(u64::MAX >> 8);
    let mut sum = LatencySum::new();
    sum.add(&latency);
    assert_eq!(sum.total(), 2);
    assert_eq!(sum.counts.first(), Some(&1));
    assert_eq!(sum.counts.last(), Some(&1));
    assert_eq!(LatencySum::new().quantiles(&[0.5]), None);
}

#[test]
fn a_difference_holds_what_came_since() {
    let latency = Latency::default();
    latency.record(1000);
    let mut before = LatencySum::new();
    before.add(&latency);
    latency.record(2000);
    let mut after = LatencySum::new();
    after.add(&latency);
    let since = after.since(&before);
    assert_eq!((since.total(), since.sum), (1, 2000));
}
