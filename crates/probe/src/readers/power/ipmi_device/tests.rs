use super::*;
use std::mem::offset_of;

#[test]
fn the_layout_is_the_kernels() {
    assert_eq!(size_of::<SystemInterfaceAddress>(), 8);
    assert_eq!((size_of::<Request>(), size_of::<Received>()), (40, 48));
    assert_eq!(offset_of!(Request, message), 24);
    assert_eq!(offset_of!(Received, message), 32);
    assert_eq!(offset_of!(Message, data), 8);
    // As ipmitool has them, on this kind of machine.
    assert_eq!((SEND_COMMAND, RECEIVE_AND_CUT), (0x8028_690d, 0xc030_690b));
}

#[test]
fn a_file_that_is_no_such_device_says_so() {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
        .unwrap();
    let mut device = Device { file, number: 0 };
    let error = device.ask(0x2c, 2, &[0xdc], &mut [0; 8]).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
}
