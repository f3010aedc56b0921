use crate::random::Random;

/// Draws ranks from 1 on, rank r with a probability exactly proportional to r^-theta, for any theta >= 0 and without
/// tables: rejection-inversion (Hörmann and Derflinger, "Rejection-Inversion to Generate Variates from Monotone
/// Discrete Distributions", ACM TOMACS 6(3), 1996).
///
/// With h(x) = x^-theta and H its integral, x = H^-1(u) for uniform u has the density h, which is then corrected
/// to the step function of the ranks by rejecting few of the draws.
#[derive(Debug, Clone)]
pub(crate) struct Zipfian {
    theta: f64,
    /// 1 / (1 - theta).
    inverse_exponent: f64,
    /// Draws this close below their rank are accepted without evaluating `h`.
    shortcut: f64,
    /// H(1.5) - h(1): the lower end of u.
    lowest: f64,
    /// H(count + 0.5): the upper end of u.
    highest: f64,
    /// The number of ranks that `highest` is for.
    count: u64,
}

impl Zipfian {
    pub(crate) fn new(theta: f64) -> Self {
        let mut zipfian = Self {
            theta,
            inverse_exponent: (1.0 - theta).recip(),
            shortcut: 0.0,
            lowest: 0.0,
            highest: 0.0,
            count: 0,
        };
        zipfian.lowest = zipfian.integral(1.5) - 1.0;
        zipfian.shortcut = 2.0 - zipfian.inverse(zipfian.integral(2.5) - zipfian.density(2.0));
        zipfian
    }

    /// Draw a rank of 1 to `count`, which must not be 0.
    #[inline]
    pub(crate) fn draw(&mut self, random: &mut Random, count: u64) -> u64 {
        if self.theta == 0.0 {
            return 1 + random.below(count);
        }
        if count != self.count {
            self.count = count;
            self.highest = self.integral(count as f64 + 0.5);
        }
        loop {
            let u = self.highest + random.unit() * (self.lowest - self.highest);
            let x = self.inverse(u);
            // Saturates at 0, where rounding has pushed x below 1.
            let rank = ((x + 0.5) as u64).clamp(1, count);
            let k = rank as f64;
            if k - x <= self.shortcut || u >= self.integral(k + 0.5) - self.density(k) {
                return rank;
            }
        }
    }

    /// h(x) = x^-theta.
    fn density(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// H(x) = (x^(1 - theta) - 1) / (1 - theta), and ln x for theta = 1; smooth between the two.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        exp_minus_one_ratio((1.0 - self.theta) * log) * log
    }

    /// The inverse of H.
    #[inline]
    fn inverse(&self, u: f64) -> f64 {
        // Rounding may lead slightly below the least value, where the logarithm ends.
        let t = (u * (1.0 - self.theta)).max(-1.0);
        if t.abs() > 1e-8 {
            (t.ln_1p() * self.inverse_exponent).exp()
        } else {
            // ln(1 + t) / t near 0, where the exponent may be infinite.
            ((1.0 - t * (0.5 - t * (1.0 / 3.0 - 0.25 * t))) * u).exp()
        }
    }
}

/// (e^t - 1) / t, also near 0.
fn exp_minus_one_ratio(t: f64) -> f64 {
    if t.abs() > 1e-8 {
        t.exp_m1() / t
    } else {
        1.0 + t * 0.5 * (1.0 + t * (1.0 / 3.0) * (1.0 + 0.25 * t))
    }
}
