use super::{Masstree, Papaya, Request, Structure};

#[test]
fn a_key_that_was_not_stored_is_missed() {
    let both: [Box<dyn Structure>; 2] = [Box::new(Papaya::new(8)), Box::new(Masstree::new())];
    for structure in both {
        let asked = |is_set| Request { id: 7, is_set };
        assert_eq!(structure.carry_out(&[asked(false)]), 1);
        assert_eq!(
            structure.carry_out(&[asked(true), asked(false), asked(true)]),
            0
        );
        assert_eq!(structure.len(), 1);
    }
}
