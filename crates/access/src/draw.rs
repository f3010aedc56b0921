//! Which keys are asked for, drawn beforehand: drawing is not what is measured.

use crate::Error;

/// Keys that are drawn; they are asked for again and again.
const DRAWN: usize = 1 << 22;
/// A multiplier that spreads the frequent keys over all of them.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Ids below `items` in the order of their use: uniform, or zipfian with exponent `theta` and the frequent ones spread
/// over all.
///
/// # Errors
/// [`Error::Request`] for a `theta` that is not between zero and one.
pub fn draw(items: u64, theta: Option<f64>) -> Result<Vec<u64>, Error> {
    let mut state = SPREAD;
    let mut random = move || {
        state = state.wrapping_add(SPREAD);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let Some(theta) = theta else {
        return Ok((0..DRAWN).map(|_| random() % items).collect());
    };
    if !(theta > 0.0 && theta < 1.0) {
        return Err(Error::Request(format!(
            "theta {theta}: keys can be drawn with an exponent above 0 and below 1"
        )));
    }
    // Gray et al., SIGMOD 1994, section 3.2.
    let zeta = |count: u64| {
        (1..=count)
            .map(|rank| (rank as f64).powf(-theta))
            .sum::<f64>()
    };
    let (all, two) = (zeta(items), zeta(2));
    let alpha = 1.0 / (1.0 - theta);
    let eta = (1.0 - (2.0 / items as f64).powf(1.0 - theta)) / (1.0 - two / all);
    let ids = (0..DRAWN).map(|_| {
        let uniform = (random() >> 11) as f64 / (1_u64 << 53) as f64;
        let rank = if uniform * all < 1.0 {
            0
        } else if uniform * all < two {
            1
        } else {
            (items as f64 * (eta * uniform - eta + 1.0).powf(alpha)) as u64
        };
        rank.min(items - 1).wrapping_mul(SPREAD) % items
    });
    Ok(ids.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn a_zipfian_draw_has_a_favourite_and_a_uniform_one_has_none() {
        let share = |theta| {
            let mut counts = HashMap::<u64, usize>::new();
            for id in draw(1000, theta).expect("a theta that can be") {
                assert!(id < 1000);
                *counts.entry(id).or_default() += 1;
            }
            *counts.values().max().expect("something was drawn") as f64 / DRAWN as f64
        };
        assert!(share(None) < 0.0012);
        // 1 / zeta(1000, 0.99) is 0.1291.
        assert!((share(Some(0.99)) - 0.129).abs() < 0.003);
    }

    #[test]
    fn an_exponent_beyond_the_method_is_refused() {
        for theta in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(draw(1000, Some(theta)).is_err());
        }
    }
}
