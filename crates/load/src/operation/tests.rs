use super::*;

#[test]
fn operations_come_in_their_proportions() {
    let shares = [
        (Operation::Read, 0.7),
        (Operation::Update, 0.0),
        (Operation::Insert, 0.2),
        (Operation::Sadd, 0.1),
    ];
    let mix = Mix::new(&shares.into());
    let mut random = Random::new(1, [0, 0]);
    let mut counts = BTreeMap::<Operation, f64>::new();
    for _ in 0..100_000 {
        *counts.entry(mix.draw(&mut random)).or_default() += 1e-5;
    }
    for (operation, share) in shares {
        let found = counts.get(&operation).copied().unwrap_or_default();
        assert!((found - share).abs() < 0.006, "{operation}: {found}");
    }
}

#[test]
fn names_are_those_of_the_configuration() {
    for operation in Operation::ALL {
        let parsed: Operation =
            serde_json::from_value(operation.name().into()).expect("its own name");
        assert_eq!(parsed, operation);
    }
}
