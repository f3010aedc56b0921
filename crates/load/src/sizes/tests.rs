use super::*;
use crate::distribution::tests::chi_square;

const IDS: u64 = 1_000_000;

fn etc_values() -> Sizes {
    Sizes::values(SizeConfig::Etc {}, 3)
}

/// How many ids have a size in each cell; cell i ends before `edges[i]`, the last has no end.
fn histogram(sizes: &Sizes, edges: &[f64]) -> Vec<u64> {
    let mut counts = vec![0; edges.len() + 1];
    for id in 0..IDS {
        let size = sizes.of(id) as f64;
        counts[edges.partition_point(|&edge| edge <= size)] += 1;
    }
    counts
}

#[test]
fn etc_keys_follow_the_generalised_extreme_value_distribution() {
    let sizes = Sizes::keys(SizeConfig::Etc {}, 3, 11);
    let below =
        |x: f64| (-(1.0 + 0.078_688 * (x - 30.7984) / 8.204_49).powf(-1.0 / 0.078_688)).exp();
    // Sizes are rounded, so a cell from 20 bytes on begins at 19.5.
    let edges: Vec<f64> = (14..100).map(f64::from).collect();
    let mut probabilities: Vec<f64> = edges.iter().map(|edge| below(edge - 0.5)).collect();
    probabilities.push(1.0);
    for index in (1..probabilities.len()).rev() {
        probabilities[index] -= probabilities[index - 1];
    }
    let (statistic, critical) = chi_square(&histogram(&sizes, &edges), &probabilities);
    assert!(statistic < critical, "{statistic} > {critical}");
}

#[test]
fn etc_values_follow_the_table_and_then_the_generalised_pareto_distribution() {
    let survival = |x: f64| (1.0 + 0.348_238 * x / 214.476_f64).powf(-1.0 / 0.348_238);
    let mut edges: Vec<f64> = (1..=15).map(f64::from).collect();
    edges.extend([
        20.0, 50.0, 100.0, 200.0, 300.0, 500.0, 1000.0, 2000.0, 5000.0, 20_000.0,
    ]);
    let short: f64 = SHORT_VALUES.iter().sum();
    let scale = (1.0 - short) / survival(15.0);
    let mut probabilities = SHORT_VALUES.to_vec();
    for pair in edges[14..].windows(2) {
        probabilities.push((survival(pair[0]) - survival(pair[1])) * scale);
    }
    probabilities.push(survival(20_000.0) * scale);
    let (statistic, critical) = chi_square(&histogram(&etc_values(), &edges), &probabilities);
    assert!(statistic < critical, "{statistic} > {critical}");
}

#[test]
fn sizes_stay_in_bounds_at_the_ends_of_the_distributions() {
    let last = 1.0 - f64::EPSILON / 2.0;
    assert_eq!(etc_value_bytes(0.0), 0);
    assert_eq!(etc_value_bytes(last), MAX_ETC_VALUE_BYTES);
    assert_eq!(Sizes::keys(SizeConfig::Etc {}, 1, 14).most(), 250);
    for unit in [0.0, last] {
        let sizes = etc_key_bytes(unit).clamp(14, MAX_KEY_BYTES);
        assert!((14..=250).contains(&sizes));
    }
}

#[test]
fn an_id_keeps_its_size_and_a_seed_changes_it() {
    let other = Sizes::values(SizeConfig::Etc {}, 4);
    assert!((0..100).all(|id| etc_values().of(id) == etc_values().of(id)));
    assert!((0..100).any(|id| etc_values().of(id) != other.of(id)));
}
