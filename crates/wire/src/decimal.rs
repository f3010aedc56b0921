//! Decimal numbers as they stand in the protocols.

/// Digits of the largest number.
pub(crate) const DIGITS_MAX: usize = 20;

/// Append `number` in decimal.
#[inline]
pub(crate) fn push(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0; DIGITS_MAX];
    let start = write(&mut digits, number);
    out.extend_from_slice(&digits[start..]);
}

/// Write `number` in decimal to the end of `digits`, and return where it starts.
#[inline]
pub(crate) fn write(digits: &mut [u8; DIGITS_MAX], number: u64) -> usize {
    write_before(digits, DIGITS_MAX, number)
}

/// Write `number` in decimal so that it ends before `end`, and return where it starts.
#[inline]
pub(crate) fn write_before(digits: &mut [u8], end: usize, mut number: u64) -> usize {
    let mut start = end;
    loop {
        start -= 1;
        // The remainder is below ten.
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return start;
        }
    }
}

/// Read `digits` as a decimal number: one to nineteen digits and nothing else.
#[inline]
pub(crate) fn parse(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &digit| {
        digit
            .is_ascii_digit()
            .then(|| number * 10 + u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests;
