//! The file of accounts of the cache engine, and what clients give.

use cached::harness::admits;

/// Up to the first zero byte the file, behind it what a client gives: a client is admitted who gives name and password
/// of a line, and nobody else.
pub fn run(data: &[u8]) {
    let at = data
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(data.len());
    let (file, given) = (&data[..at], data.get(at + 1..).unwrap_or_default());
    let lines: Vec<&[u8]> = file
        .split(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.is_empty())
        .collect();
    let expected: Option<Vec<(&[u8], Vec<u8>)>> =
        lines.iter().map(|line| given_for(line)).collect();
    match (admits(file, given), expected) {
        (Ok(is_admitted), Some(expected)) => {
            assert_eq!(is_admitted, is_given(&expected, given));
            for (_, one) in expected.iter().take(8) {
                assert_eq!(admits(file, one), Ok(is_given(&expected, one)));
            }
        }
        (Err(mistake), expected) => {
            assert!(expected.is_none_or(|lines| lines.is_empty()), "{mistake}");
        }
        (Ok(_), None) => panic!("a line that is none was taken"),
    }
}

/// The name of a line `name:password`, and what must be given for it.
fn given_for(line: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let mut given = line.to_vec();
    given[colon] = b' ';
    (colon > 0).then_some((&line[..colon], given))
}

/// A name with a space is nobody's: what is given reads as a shorter name.
fn is_given(lines: &[(&[u8], Vec<u8>)], given: &[u8]) -> bool {
    lines
        .iter()
        .any(|(name, line)| line == given && !name.contains(&b' '))
}
