use super::*;
use crate::config::SizeConfig;
use crate::distribution::tests::chi_square;
use crate::sizes::Sizes;

const IDS: u64 = 500_000;

/// How many ids have each size.
fn counts(sizes: &Sizes) -> Vec<u64> {
    let mut counts = vec![0; sizes.most() + 1];
    (0..IDS).for_each(|id| counts[sizes.of(id)] += 1);
    counts
}

fn keys(config: SizeConfig) -> Vec<u64> {
    counts(&Sizes::keys(config, 3, 12))
}

fn values(config: SizeConfig) -> Vec<u64> {
    counts(&Sizes::values(config, 3))
}

/// The share of sizes in a range.
fn share(counts: &[u64], range: std::ops::RangeInclusive<usize>) -> f64 {
    counts[range].iter().sum::<u64>() as f64 / IDS as f64
}

#[test]
fn what_the_authors_said_of_sizes_holds() {
    let usr = keys(SizeConfig::Usr {});
    let different = |counts: &[u64]| (0..counts.len()).filter(|&size| counts[size] > 0).collect();
    let sizes: Vec<usize> = different(&usr);
    assert_eq!(sizes, [16, 21], "keys of USR");
    let sizes: Vec<usize> = different(&values(SizeConfig::Usr {}));
    assert_eq!(sizes, [2], "values of USR");
    assert!(share(&keys(SizeConfig::Var {}), 31..=31) > 0.9);
}

#[test]
fn small_values_hold_nearly_all_bytes() {
    for config in [
        SizeConfig::Usr {},
        SizeConfig::App {},
        SizeConfig::Var {},
        SizeConfig::Sys {},
    ] {
        let counts = values(config);
        let bytes = |most: usize| -> u64 {
            let sizes = counts.iter().enumerate().take(most);
            sizes.map(|(size, count)| size as u64 * count).sum()
        };
        let share = bytes(500) as f64 / bytes(usize::MAX) as f64;
        assert!(share >= 0.9, "{config:?}: {share}");
    }
}

#[test]
fn what_is_reported_of_app_and_sys_holds() {
    assert!(share(&keys(SizeConfig::App {}), 31..=31) > 0.9);
    assert!(share(&values(SizeConfig::App {}), 260..=280) > 0.3);
    let keys = keys(SizeConfig::Sys {});
    assert!((share(&keys, 20..=45) - 1.0).abs() < 1e-9);
    let values = values(SizeConfig::Sys {});
    assert!((share(&values, 450..=499) - 0.7).abs() < 0.005);
}

#[test]
fn sizes_are_even_within_a_piece_and_pieces_have_their_shares() {
    let pools = [
        USR_KEYS, USR_VALUES, APP_KEYS, APP_VALUES, VAR_KEYS, VAR_VALUES, SYS_KEYS, SYS_VALUES,
    ];
    for pieces in pools {
        let mut expected = vec![0.0; most(pieces) + 1];
        for piece in pieces {
            assert!(piece.least <= piece.most);
            let sizes = piece.most - piece.least + 1;
            for probability in &mut expected[piece.least..=piece.most] {
                *probability += piece.share / sizes as f64;
            }
        }
        let total: f64 = expected.iter().sum();
        assert!((total - 1.0).abs() < 1e-12, "{pieces:?}");
        let mut counts = vec![0; expected.len()];
        for step in 0..IDS {
            counts[quantile(pieces, crate::random::to_unit(crate::random::mix(step)))] += 1;
        }
        if pieces.len() > 1 || pieces[0].least < pieces[0].most {
            let (statistic, critical) = chi_square(&counts, &expected);
            assert!(statistic < critical, "{pieces:?}: {statistic} > {critical}");
        }
    }
}

#[test]
fn quantiles_stay_in_bounds_at_both_ends() {
    let last = 1.0 - f64::EPSILON / 2.0;
    for pieces in [APP_KEYS, APP_VALUES, SYS_VALUES] {
        assert_eq!(quantile(pieces, 0.0), pieces[0].least);
        assert_eq!(quantile(pieces, last), pieces[pieces.len() - 1].most);
    }
}

#[test]
fn keys_are_longer_where_they_would_not_be_unique() {
    let sizes = Sizes::keys(SizeConfig::Usr {}, 3, 18);
    assert!((0..100).all(|id| matches!(sizes.of(id), 18 | 21)));
    assert_eq!(sizes.most(), 21);
    assert_eq!(Sizes::keys(SizeConfig::Usr {}, 3, 24).most(), 24);
}
