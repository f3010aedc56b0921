use super::*;
use proptest::prelude::*;

fn any_work() -> impl Strategy<Value = Work> {
    let rate = prop::option::of(1..=RATE.most);
    (0..KINDS.len(), any::<u64>(), rate).prop_map(|(place, number, rate)| {
        let (kind, _, unit) = KINDS[place];
        Work {
            kind,
            amount: 1 + number % unit.most,
            bytes_per_second: rate.filter(|_| kind == Kind::MemoryStreamRegulated),
        }
    })
}

proptest! {
    #[test]
    fn what_is_shown_reads_back(steps in prop::collection::vec(any_work(), 0..=STEPS_MAX)) {
        let recipe = Recipe(steps);
        prop_assert_eq!(recipe.to_string().parse(), Ok(recipe));
    }

    #[test]
    fn no_text_is_too_odd(text in ".{0,60}") {
        // Whatever is refused is refused in words.
        if let Err(error) = text.parse::<Recipe>() {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn no_amount_is_too_odd(kind in "(cpu|memory-stream-regulated|disk-random)", amount in "[0-9kmg@+: -]{0,24}") {
        if let Ok(recipe) = format!("{kind}:{amount}").parse::<Recipe>() {
            prop_assert_eq!(recipe.to_string().parse(), Ok(recipe));
        }
    }
}

#[test]
fn units_are_powers_of_two_and_steps_keep_their_order() {
    let step = |kind, amount, bytes_per_second| Work {
        kind,
        amount,
        bytes_per_second,
    };
    let recipe: Recipe = "cpu:20+memory-stream-regulated:64k@2g + disk-random:4K"
        .parse()
        .unwrap();
    assert_eq!(
        recipe.0,
        [
            step(Kind::Cpu, 20, None),
            step(Kind::MemoryStreamRegulated, 65536, Some(2 << 30)),
            step(Kind::DiskRandom, 4096, None),
        ]
    );
    assert_eq!("none".parse(), Ok(Recipe::default()));
}

#[test]
fn mistakes_say_what_is_possible() {
    for (text, part) in [
        ("", "an invalid kind of work"),
        (
            "gpu:1",
            "'gpu:1' is an invalid kind of work: expected none, or any of cpu:MICROSECONDS",
        ),
        ("cpu", "cpu takes an amount, such as 100, not ''"),
        ("cpu:-1", "not '-1'"),
        ("cpu:1k", "not '1k'"),
        ("cpu:0", "cpu takes 1 to 10000000 microseconds, not 0"),
        (
            "disk-random:99999999999999999999g",
            "disk-random takes 1 to",
        ),
        ("memory-stream-regulated:64k@", "such as 64k@1g, not ''"),
        ("memory-stream-regulated:64k@0", "bytes a second, not 0"),
        ("cpu:1+", "'' is an invalid kind of work"),
        ("cpu:1+none", "'none' is an invalid kind of work"),
        (&["cpu:1"; 17].join("+"), "at most 16"),
    ] {
        let message = text.parse::<Recipe>().unwrap_err().to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn kinds_stand_in_their_order() {
    for (place, (kind, ..)) in KINDS.into_iter().enumerate() {
        assert_eq!(kind as usize, place);
    }
}
