use super::*;
use crate::distribution::tests::chi_square;

fn arrivals(kind: ArrivalKind, rate: f64, worker: usize, workers: usize) -> Arrivals {
    let random = Random::new(5, [worker as u64, 0]);
    Arrivals::new(kind, rate, 1_000_000, (worker, workers), random)
}

#[test]
fn constant_arrivals_interleave_evenly() {
    let mut all = Vec::new();
    for worker in 0..3 {
        let mut arrivals = arrivals(ArrivalKind::Constant, 3e6, worker, 3);
        for _ in 0..1000 {
            all.push(arrivals.next());
            arrivals.advance();
        }
    }
    all.sort_unstable();
    for (index, &time) in all.iter().enumerate() {
        assert_eq!(
            time,
            1_000_000 + (index as f64 * 1000.0 / 3.0).round() as u64
        );
    }
}

#[test]
fn constant_arrivals_do_not_drift() {
    let mut arrivals = arrivals(ArrivalKind::Constant, 3.0, 0, 1);
    for _ in 0..3_000_000 {
        arrivals.advance();
    }
    assert_eq!(arrivals.next(), 1_000_000 + 1_000_000 * 1_000_000_000);
}

#[test]
fn poisson_arrivals_have_exponential_gaps_and_the_right_rate() {
    let mut arrivals = arrivals(ArrivalKind::Poisson, 1e5, 0, 2);
    let mean = 20_000.0;
    let draws = 400_000;
    let mut counts = vec![0; 41];
    let mut last = 1_000_000;
    for _ in 0..draws {
        let gap = (arrivals.next() - last) as f64;
        counts[((gap / mean * 10.0) as usize).min(40)] += 1;
        last = arrivals.next();
        arrivals.advance();
    }
    let survival = |cell: usize| (-(cell as f64) / 10.0).exp();
    let mut probabilities: Vec<f64> = (0..40)
        .map(|cell| survival(cell) - survival(cell + 1))
        .collect();
    probabilities.push(survival(40));
    let (statistic, critical) = chi_square(&counts, &probabilities);
    assert!(statistic < critical, "{statistic} > {critical}");
    let rate = f64::from(draws) / ((last - 1_000_000) as f64 * 1e-9);
    assert!((rate / 5e4 - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn what_was_not_sent_is_counted() {
    let mut arrivals = arrivals(ArrivalKind::Constant, 1e6, 0, 1);
    assert_eq!(arrivals.count_until(1_000_000), 0);
    assert_eq!(arrivals.count_until(1_000_001), 1);
    assert_eq!(arrivals.count_until(2_000_000), 999);
    assert_eq!(arrivals.next(), 2_000_000);
}

#[test]
fn of_more_than_can_be_counted_the_rest_is_what_is_expected() {
    // 4 million a second for 10 ms, of which this worker has half: 20,000.
    let end = 1_000_000 + 10_000_000;
    for (kind, deviation) in [(ArrivalKind::Constant, 1.0), (ArrivalKind::Poisson, 600.0)] {
        let at = || arrivals(kind, 4e6, 1, 2);
        let exact = at().count_until(end) as f64;
        assert!((exact - 20_000.0).abs() <= deviation, "{kind:?}: {exact}");
        for most in [0, 1, 1000, 19_000] {
            let told = at().count_one_by_one(end, most) as f64;
            assert!((told - 20_000.0).abs() <= deviation, "{kind:?}: {told}");
        }
        assert_eq!(at().count_one_by_one(end, exact as u64), exact as u64);
        assert_eq!(at().count_one_by_one(1_000_000, 0), 0);
    }
}
