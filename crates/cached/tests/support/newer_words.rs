//! What memcached answers otherwise since it has another parser (1.6.40) and reads numbers itself (1.6.45). Ours stays with
//! the older words: the newer ones refuse what clients were free to send (a space in front, `bget`, `+1`, `mn` with a bare
//! line feed), and two of them leave a client waiting (`delete noreply`, `ma` with `N` and `q`).

/// The first version with any of it.
pub const SINCE: [u32; 3] = [1, 6, 40];
const BLANK_LINES: [u32; 3] = [1, 6, 41];
const NUMBERS: [u32; 3] = [1, 6, 45];

/// One command, where `a` holds `hello` with flags 5, and `n` holds `10`.
pub struct Change {
    pub since: [u32; 3],
    pub command: &'static [u8],
    pub before: &'static [u8],
    pub after: &'static [u8],
}

const fn change(
    since: [u32; 3],
    command: &'static [u8],
    before: &'static [u8],
    after: &'static [u8],
) -> Change {
    Change {
        since,
        command,
        before,
        after,
    }
}

const ERROR: &[u8] = b"ERROR\r\n";
const BAD_LINE: &[u8] = b"CLIENT_ERROR bad command line format\r\n";
const BAD_LINE_THEN_ERROR: &[u8] = b"CLIENT_ERROR bad command line format\r\nERROR\r\n";
const HIT: &[u8] = b"VALUE a 5 5\r\nhello\r\nEND\r\n";
const BAD_DELTA: &[u8] = b"CLIENT_ERROR invalid numeric delta argument\r\n";
const BAD_FLAG: &[u8] = b"CLIENT_ERROR invalid or duplicate flag\r\n";

/// Each kind of change, by an example or two.
pub const CHANGES: &[Change] = &[
    // Lines without a command, and with spaces in front.
    change(BLANK_LINES, b"\r\n", ERROR, BAD_LINE),
    change(BLANK_LINES, b"x\r\n", ERROR, BAD_LINE),
    change(SINCE, b" get a\r\n", HIT, ERROR),
    change(SINCE, b"bget a\r\n", HIT, ERROR),
    change(SINCE, b"get a\0b\r\n", HIT, b"END\r\n"),
    // Words that are missing.
    change(SINCE, b"get\r\n", ERROR, BAD_LINE),
    change(SINCE, b"gat 0\r\n", b"END\r\n", BAD_LINE),
    change(SINCE, b"incr n\r\n", ERROR, BAD_LINE),
    change(SINCE, b"touch a\r\n", ERROR, BAD_LINE),
    change(SINCE, b"verbosity\r\n", ERROR, BAD_LINE),
    change(SINCE, b"mg\r\n", ERROR, BAD_LINE),
    change(
        SINCE,
        b"cas a 0 0 1\r\nx\r\n",
        b"ERROR\r\nERROR\r\n",
        BAD_LINE,
    ),
    // Words too many.
    change(SINCE, b"incr n 1 2 3\r\n", ERROR, b"11\r\n"),
    change(
        SINCE,
        b"set q 0 0 1 2 3\r\nx\r\n",
        b"ERROR\r\nERROR\r\n",
        b"STORED\r\n",
    ),
    change(SINCE, b"flush_all 0 0 0\r\n", ERROR, b"OK\r\n"),
    change(
        SINCE,
        b"delete q 1\r\n",
        b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n",
        b"NOT_FOUND\r\n",
    ),
    change(SINCE, b"delete noreply\r\n", b"NOT_FOUND\r\n", b""),
    // The value of a line that is refused was taken for a command.
    change(
        SINCE,
        b"set q x 0 5\r\nhello\r\n",
        BAD_LINE_THEN_ERROR,
        BAD_LINE,
    ),
    // Meta commands.
    change(
        SINCE,
        b"ma n M\r\n",
        BAD_FLAG,
        b"CLIENT_ERROR invalid mode for ma M token\r\n",
    ),
    change(
        SINCE,
        b"md q Z\r\n",
        BAD_FLAG,
        b"CLIENT_ERROR invalid flag\r\n",
    ),
    change(SINCE, b"ma q N0 q v\r\n", b"VA 1\r\n0\r\n", b""),
    // Administration.
    change(
        SINCE,
        b"shutdown\r\n",
        b"ERROR: shutdown not enabled\r\n",
        b"SERVER_ERROR: shutdown not enabled\r\n",
    ),
    change(SINCE, b"stats res\r\n", ERROR, b"RESET\r\n"),
    // Numbers have digits and nothing else.
    change(NUMBERS, b"incr n +1\r\n", b"11\r\n", BAD_DELTA),
    change(
        NUMBERS,
        b"touch a 4294967296\r\n",
        b"TOUCHED\r\n",
        b"CLIENT_ERROR invalid exptime argument\r\n",
    ),
    change(
        NUMBERS,
        b"mg a T+1\r\n",
        b"HD\r\n",
        b"CLIENT_ERROR bad token in command line format\r\n",
    ),
];

/// Whether `command` may be answered otherwise by a memcached with any of the changes.
pub fn is_changed(command: &[u8]) -> bool {
    let Some(end) = command.iter().position(|&byte| byte == b'\n') else {
        return true;
    };
    let line = command[..end]
        .strip_suffix(b"\r")
        .unwrap_or(&command[..end]);
    let words: Vec<&[u8]> = line
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty())
        .collect();
    if line.starts_with(b" ") || line.contains(&0) || line.len() < 2 {
        return true;
    }
    let word = |place: usize| words.get(place).copied().unwrap_or_default();
    let fits_key = word(1).len() <= 250;
    let is_quiet = words.last() == Some(&&b"noreply"[..]);
    // As long as it was said to be.
    let has_block =
        |place| number::<usize>(word(place)) == Some((command.len() - end).wrapping_sub(3));
    !match words[0] {
        b"get" | b"gets" => words.len() > 1 && words.iter().all(|key| key.len() <= 250),
        b"gat" | b"gats" => {
            words.len() > 2
                && number::<i32>(word(1)).is_some()
                && words.iter().all(|key| key.len() <= 250)
        }
        b"set" | b"add" | b"replace" | b"append" | b"prepend" => {
            (5..=6).contains(&words.len()) && fits_key && stores(&words) && has_block(4)
        }
        b"cas" => {
            (6..=7).contains(&words.len())
                && fits_key
                && stores(&words)
                && is_cas(word(5))
                && has_block(4)
        }
        b"incr" | b"decr" => (3..=4).contains(&words.len()) && number::<u64>(word(2)).is_some(),
        b"touch" => (3..=4).contains(&words.len()) && number::<i32>(word(2)).is_some(),
        b"delete" => match words.len() {
            2 => !is_quiet,
            3 => is_quiet || word(2) == b"0",
            4 => is_quiet && word(2) == b"0",
            _ => false,
        },
        b"mg" => words.len() > 1 && fits_key && words[2..].iter().all(|flag| is_plain(flag)),
        b"ms" => {
            words.len() > 2
                && fits_key
                && words[3..].iter().all(|flag| is_plain(flag))
                && has_block(2)
        }
        b"md" => words.len() > 1 && fits_key && has_no_mistake(&words),
        b"ma" => {
            let has = |flag| words[2..].iter().any(|word| word[0] == flag);
            words.len() > 1
                && fits_key
                && words[2..].iter().all(|flag| is_plain(flag))
                && !(has(b'N') && has(b'q'))
        }
        b"verbosity" => {
            (2..=3).contains(&words.len()) && (is_quiet || number::<u32>(word(1)).is_some())
        }
        b"flush_all" => words.len() < 4,
        b"bget" | b"shutdown" => false,
        b"stats" => !b"reset".starts_with(word(1)) || word(1) == b"reset" || words.len() == 1,
        _ => true,
    }
}

/// Digits, for what needs no sign.
fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(word).ok()?;
    (!text.starts_with('+') && text != "-").then(|| text.parse().ok())?
}

/// One that is told, or a place among those that were.
fn is_cas(word: &[u8]) -> bool {
    word.starts_with(b"{") || number::<u64>(word).is_some()
}

/// Flags, expiration time and length of a line that stores.
fn stores(words: &[&[u8]]) -> bool {
    number::<u32>(words[2]).is_some() && number::<i32>(words[3]).is_some()
}

/// Whether a flag of a meta command is read alike, be it a mistake or not.
fn is_plain(flag: &[u8]) -> bool {
    let token = &flag[1..];
    match flag[0] {
        b'T' | b'N' | b'R' => number::<i32>(token).is_some(),
        b'F' => number::<u32>(token).is_some(),
        b'D' | b'J' => number::<u64>(token).is_some(),
        b'C' => is_cas(token),
        b'M' => token.len() == 1,
        first => first.is_ascii_alphabetic(),
    }
}

/// Whether nothing in an `md` is refused: each mistake has other words now.
fn has_no_mistake(words: &[&[u8]]) -> bool {
    let flags = &words[2..];
    let is_once = |flag: &&[u8]| flags.iter().filter(|other| other[0] == flag[0]).count() == 1;
    flags.len() <= 16
        && flags
            .iter()
            .all(|flag| is_plain(flag) && is_once(flag) && !matches!(flag[0], b'Z' | b'b'))
}
