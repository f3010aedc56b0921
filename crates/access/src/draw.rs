//! Which keys are asked for, drawn beforehand: drawing is not what is measured.

use crate::Error;

/// Keys that are drawn; they are asked for again and again.
const DRAWN: usize = 1 << 22;
/// A multiplier that spreads the frequent keys over all of them.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a core asks for.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) is_set: bool,
}

/// What is stored under an id.
pub(crate) fn value_of(id: u64) -> [u8; 8] {
    (!id).to_le_bytes()
}

/// Ids below `items` in the order of their use: uniform, or zipfian with exponent `theta` and the frequent ones spread
/// over all. Refuses a `theta` that is not between zero and one.
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
mod tests;
