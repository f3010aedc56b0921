use super::*;

#[test]
fn the_loopback_interface_is_known() {
    let loopback = Interface::by_name("lo").expect("every network namespace has one");
    assert_eq!(loopback.hardware_address, [0; 6]);
    assert!(loopback.mtu >= 1_280 && loopback.index >= 1, "{loopback:?}");
    assert_eq!((loopback.receive_queues, loopback.transmit_queues), (1, 1));
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    for name in ["", "no-such-one", "a-name-that-is-too-long", "a/b", "a\0b"] {
        let error = Interface::by_name(name).expect_err("no such interface");
        let said = format!("there is no network interface '{name}'");
        assert!(error.to_string().contains(&said), "{error}");
    }
}
