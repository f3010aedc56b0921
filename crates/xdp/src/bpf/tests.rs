use super::*;
use crate::instruction::{Register, Size, assemble, exit, load};

#[test]
fn what_the_verifier_says_is_told() {
    // Reads the packet without having looked where it ends.
    let instructions = assemble::<()>(&[
        load(Size::Word, Register::R2, Register::R1, 0),
        load(Size::Byte, Register::R0, Register::R2, 0),
        exit(),
    ])
    .expect("no labels");
    let (error, log) = load_program(&instructions).expect_err("an unsafe program");
    if error.raw_os_error() == Some(libc::EPERM) || error.raw_os_error() == Some(libc::ENOSYS) {
        eprintln!("skipped: programs cannot be loaded here: {error}");
        return;
    }
    assert_eq!(error.raw_os_error(), Some(libc::EACCES), "{log}");
    assert!(log.contains("invalid access to packet"), "{log}");
}
