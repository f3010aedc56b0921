use super::*;

/// Pearson's statistic of `counts` against `probabilities`, and the value that it exceeds once in about 30,000
/// honest samples (four standard deviations by the Wilson-Hilferty approximation).
pub(crate) fn chi_square(counts: &[u64], probabilities: &[f64]) -> (f64, f64) {
    assert_eq!(counts.len(), probabilities.len());
    let total: u64 = counts.iter().sum();
    let (mut statistic, mut cells) = (0.0, 0.0);
    let (mut rest_count, mut rest_expected) = (0.0, 0.0);
    for (&count, &probability) in counts.iter().zip(probabilities) {
        let expected = probability * total as f64;
        if expected < 10.0 {
            rest_count += count as f64;
            rest_expected += expected;
            continue;
        }
        statistic += (count as f64 - expected).powi(2) / expected;
        cells += 1.0;
    }
    if rest_expected >= 10.0 {
        statistic += (rest_count - rest_expected).powi(2) / rest_expected;
        cells += 1.0;
    } else {
        assert!(
            rest_count < rest_expected + 60.0,
            "{rest_count} in cells that expect {rest_expected}"
        );
    }
    let degrees: f64 = cells - 1.0;
    let scale = 2.0 / (9.0 * degrees);
    let critical = degrees * (1.0 - scale + 4.0 * scale.sqrt()).powi(3);
    (statistic, critical)
}

fn counts(config: &DistributionConfig, keys: u64, draws: u64) -> Vec<u64> {
    let mut chooser = Chooser::new(config, 7, 0, 1);
    let mut random = Random::new(7, [1, 2]);
    let mut counts = vec![0; keys as usize];
    for _ in 0..draws {
        counts[chooser.draw(&mut random, keys) as usize] += 1;
    }
    counts
}

fn zipf_probabilities(theta: f64, keys: u64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=keys).map(|rank| (rank as f64).powf(-theta)).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

#[test]
fn each_distribution_fits_its_exact_probabilities() {
    let keys = 1000;
    let uniform = vec![1.0 / keys as f64; keys as usize];
    let mut latest = zipf_probabilities(0.99, keys);
    latest.reverse();
    let hotspot: Vec<f64> = (0..keys)
        .map(|key| if key < 200 { 0.8 / 200.0 } else { 0.2 / 800.0 })
        .collect();
    let mut cases = vec![
        (DistributionConfig::Uniform {}, uniform),
        (DistributionConfig::Latest { theta: 0.99 }, latest),
        (
            DistributionConfig::Hotspot {
                hot_keys: 0.2,
                hot_operations: 0.8,
            },
            hotspot,
        ),
    ];
    for theta in [0.0, 0.01, 0.5, 0.99, 1.0, 1.000_001, 1.2, 3.0] {
        let config = DistributionConfig::Zipfian {
            theta,
            scrambled: false,
        };
        cases.push((config, zipf_probabilities(theta, keys)));
    }
    for (config, probabilities) in cases {
        let (statistic, critical) = chi_square(&counts(&config, keys, 2_000_000), &probabilities);
        assert!(statistic < critical, "{config:?}: {statistic} > {critical}");
    }
}

#[test]
fn scrambling_moves_ranks_but_keeps_probabilities() {
    let theta = 0.99;
    for keys in [1, 2, 3, 1000, 1024] {
        let config = DistributionConfig::Zipfian {
            theta,
            scrambled: true,
        };
        let mut found = counts(&config, keys, 1_000_000);
        if keys == 1000 {
            let hottest = found.iter().max();
            assert_ne!(found.first(), hottest, "rank 1 is still key 0");
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        let head = (keys as usize).min(20);
        for (count, probability) in found.iter().zip(zipf_probabilities(theta, keys)).take(head) {
            let expected = probability * 1e6;
            assert!(
                (*count as f64 - expected).abs() < 6.0 * expected.sqrt() + 1.0,
                "{count} {expected}"
            );
        }
    }
}

#[test]
fn one_key_and_huge_key_spaces_stay_in_bounds() {
    for config in [
        DistributionConfig::Uniform {},
        DistributionConfig::Zipfian {
            theta: 0.99,
            scrambled: true,
        },
        DistributionConfig::Zipfian {
            theta: 100.0,
            scrambled: false,
        },
        DistributionConfig::Latest { theta: 1.0 },
        DistributionConfig::Hotspot {
            hot_keys: 1e-9,
            hot_operations: 0.5,
        },
    ] {
        let mut chooser = Chooser::new(&config, 1, 0, 1);
        let mut random = Random::new(1, [0, 0]);
        for count in [1, 2, 1 << 40, 3, 1] {
            for _ in 0..2000 {
                assert!(chooser.draw(&mut random, count) < count, "{config:?}");
            }
        }
    }
}

#[test]
fn the_newest_key_is_the_likeliest_as_the_key_space_grows() {
    let mut chooser = Chooser::new(&DistributionConfig::Latest { theta: 0.99 }, 1, 0, 1);
    let mut random = Random::new(1, [0, 0]);
    let mut newest = 0;
    for count in 1000..3000 {
        newest += u64::from(chooser.draw(&mut random, count) == count - 1);
    }
    // One in H(1000..3000) = 7.7 to 8.9.
    assert!((190..300).contains(&newest), "{newest}");
}

#[test]
fn workers_share_a_sequence_without_gap_or_overlap() {
    let mut random = Random::new(1, [0, 0]);
    let mut seen = vec![0; 10];
    for worker in 0..3 {
        let mut chooser = Chooser::new(&DistributionConfig::Sequential {}, 1, worker, 3);
        for _ in worker..10 {
            if let Chooser::Sequential { next, .. } = chooser
                && next >= 10
            {
                break;
            }
            seen[chooser.draw(&mut random, 10) as usize] += 1;
        }
    }
    assert_eq!(seen, [1; 10]);
}
