use super::*;
use proptest::prelude::*;

fn any_work() -> impl Strategy<Value = Work> {
    let microseconds = 1..=MICROSECONDS_MAX;
    let bytes = 1..=BYTES_MAX;
    prop_oneof![
        microseconds
            .clone()
            .prop_map(|microseconds| Work::Cpu { microseconds }),
        bytes.clone().prop_map(|bytes| Work::MemoryStream { bytes }),
        (bytes.clone(), prop::option::of(1..=RATE_MAX)).prop_map(|(bytes, bytes_per_second)| {
            Work::MemoryStreamRegulated {
                bytes,
                bytes_per_second,
            }
        }),
        (1..=PAGES_MAX).prop_map(|pages| Work::PageTouch { pages }),
        bytes
            .clone()
            .prop_map(|bytes| Work::DiskSequential { bytes }),
        bytes.clone().prop_map(|bytes| Work::DiskRandom { bytes }),
        bytes.prop_map(|bytes| Work::DiskWrite { bytes }),
        microseconds
            .clone()
            .prop_map(|microseconds| Work::Lock { microseconds }),
        microseconds.prop_map(|microseconds| Work::Sleep { microseconds }),
    ]
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
    let recipe: Recipe = "cpu:20+memory-stream-regulated:64k@2g + disk-random:4K"
        .parse()
        .unwrap();
    assert_eq!(
        recipe.0,
        [
            Work::Cpu { microseconds: 20 },
            Work::MemoryStreamRegulated {
                bytes: 65536,
                bytes_per_second: Some(2 << 30)
            },
            Work::DiskRandom { bytes: 4096 },
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
