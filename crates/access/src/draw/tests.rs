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
