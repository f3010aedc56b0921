//! Sizes of keys and values in Facebook's pools USR, APP, VAR and SYS. The paper fits distributions to ETC alone; of the
//! others it draws the cumulative distributions (figure 2) and says a little. Each number here is marked: **said** by the
//! authors, in the paper or in their talk; **reported** by others of its text or figures, not checked against it;
//! **assumed** by us, so that there is a whole distribution, and values of less than 500 bytes hold at least 90 % of all
//! bytes (said of all pools but ETC). `docs/reference/workloads.md` has the table.

/// A share of all sizes, evenly between two bounds that belong to it, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    share: f64,
    least: usize,
    most: usize,
}

const fn piece(share: f64, least: usize, most: usize) -> Piece {
    Piece { share, least, most }
}

/// Said: 16 and 21 bytes and no others. Assumed: half of each.
pub(super) const USR_KEYS: &[Piece] = &[piece(0.5, 16, 16), piece(0.5, 21, 21)];
/// Said: virtually just 2 bytes.
pub(super) const USR_VALUES: &[Piece] = &[piece(1.0, 2, 2)];

/// Reported: 90 % have 31 bytes. Assumed: the others.
pub(super) const APP_KEYS: &[Piece] = &[piece(0.9, 31, 31), piece(0.1, 20, 45)];
/// Reported: about 270 bytes in more than 30 % of sets. Assumed: the others.
pub(super) const APP_VALUES: &[Piece] = &[
    piece(0.33, 265, 275),
    piece(0.64, 20, 499),
    piece(0.03, 500, 1000),
];

/// Said: 90 % have 31 bytes. Assumed: the others.
pub(super) const VAR_KEYS: &[Piece] = APP_KEYS;
/// Reported: small. Assumed: how small.
pub(super) const VAR_VALUES: &[Piece] = &[piece(0.9, 2, 99), piece(0.1, 100, 499)];

/// Reported: from about 20 to 45 bytes. Assumed: evenly.
pub(super) const SYS_KEYS: &[Piece] = &[piece(1.0, 20, 45)];
/// Reported: about 500 bytes in 70 %. Assumed: the others.
pub(super) const SYS_VALUES: &[Piece] = &[piece(0.7, 450, 499), piece(0.3, 10, 449)];

/// The size below which a share `unit` of all lies, by inversion of the cumulative distribution.
#[inline]
pub(super) fn quantile(pieces: &[Piece], unit: f64) -> usize {
    let mut below = 0.0;
    for piece in pieces {
        if unit < below + piece.share {
            let sizes = (piece.most - piece.least + 1) as f64;
            let offset = ((unit - below) / piece.share * sizes) as usize;
            return piece.most.min(piece.least + offset);
        }
        below += piece.share;
    }
    // The shares may add up to a little less than 1.
    pieces.last().map_or(0, |piece| piece.most)
}

/// The largest size of all.
pub(super) fn most(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.most).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
