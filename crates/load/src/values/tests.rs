use super::*;
use crate::config::SizeConfig;
use proptest::prelude::*;

fn fixed(bytes: usize) -> Values {
    Values::new(Sizes::values(SizeConfig::Fixed { bytes }, 1), 1)
}

fn built(values: &Values, id: u64, version: u64) -> Vec<u8> {
    let mut out = Vec::new();
    values.push(&mut out, id, version);
    out
}

proptest! {
    #[test]
    fn a_value_is_recognised(bytes in 0_usize..300, id in any::<u64>(), version in any::<u64>()) {
        let values = fixed(bytes);
        let value = built(&values, id, version);
        prop_assert_eq!(value.len(), bytes);
        let expected = if bytes < 16 { 0 } else { version };
        prop_assert_eq!(values.check(id, &value), Ok(expected));
    }

    #[test]
    fn one_changed_byte_is_noticed(
        bytes in 1_usize..300,
        id in 0_u64..1000,
        version in any::<u64>(),
        index in any::<prop::sample::Index>(),
        change in 1_u8..,
    ) {
        let values = fixed(bytes);
        let mut value = built(&values, id, version);
        let at = index.index(bytes);
        value[at] ^= change;
        let noticed = match (values.check(id, &value), at) {
            (Err(WrongBytes::Differs { at: found }), _) => bytes < 16 && found == at,
            (Err(WrongBytes::Key { .. }), ..8) => true,
            (Err(WrongBytes::Torn { .. }), 8..) => true,
            // With little body or none, a changed version may be another valid one, which the ledger judges.
            (Ok(other), 8..16) => bytes < 24 && other != version,
            _ => false,
        };
        prop_assert!(noticed);
    }

    #[test]
    fn two_versions_mixed_are_noticed(id in any::<u64>(), one in 0_u64..1000, cut in 40_usize..960) {
        let values = fixed(1000);
        let old = built(&values, id, one);
        let new = built(&values, id, one + 1);
        prop_assume!(old[16..] != new[16..]);
        let torn = [&new[..cut], &old[cut..]].concat();
        let noticed = matches!(values.check(id, &torn), Err(WrongBytes::Torn { at, .. }) if at >= cut);
        prop_assert!(noticed);
    }
}

#[test]
fn wrong_values_say_how() {
    let values = fixed(100);
    let value = built(&values, 1, 1);
    let sentence = |id, value: &[u8]| values.check(id, value).expect_err("wrong").to_string();
    assert_eq!(
        sentence(1, &value[..99]),
        "has 99 bytes where 100 were written"
    );
    assert_eq!(sentence(2, &value), "is the value of the key with id 1");
    let mut torn = value.clone();
    torn[50] ^= 1;
    assert_eq!(
        sentence(1, &torn),
        "is torn: from byte 50 on it is not what was written as version 1"
    );
}
