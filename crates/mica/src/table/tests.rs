use super::*;
use proptest::prelude::*;

proptest! {
    /// Slots do not touch each other, nor the link.
    #[test]
    fn a_bucket_is_twelve_slots(
        writes in prop::collection::vec((0..SLOTS, 0..=3_u8, any::<u32>()), 0..80),
        next in prop::option::of(8..10_usize),
    ) {
        let table = Table::new(8).expect("a small table");
        let mut model = [(0, 0); SLOTS];
        table.set_next(3, next);
        for (number, tag, position) in writes {
            let slot = Slot::new(3, number);
            if tag == 0 {
                table.clear(slot);
                model[number].0 = 0;
            } else {
                table.set(slot, tag, position);
                model[number] = (tag, position);
            }
        }
        for tag in 0..4 {
            let expected = (0..SLOTS).filter(|&slot| model[slot].0 == tag).fold(0, |mask, slot| mask | 1 << slot);
            prop_assert_eq!(table.matches(3, tag), (expected, next));
        }
        prop_assert_eq!((table.next(2), table.next(3), table.next(4)), (None, next, None));
        for (number, &(tag, position)) in model.iter().enumerate() {
            let slot = Slot::new(3, number);
            prop_assert_eq!(table.tag(slot), tag);
            prop_assert!(tag == 0 || table.position(slot) == position);
        }
        prop_assert_eq!(table.empty_slots(2), (ALL_SLOTS, None));
        prop_assert_eq!(table.empty_slots(4), (ALL_SLOTS, None));
    }
}
