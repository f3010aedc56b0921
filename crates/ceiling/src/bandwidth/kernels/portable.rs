//! The loops that any processor runs.

/// Words in a cache line of 64 bytes; where lines are longer, neighbours are read together all the same.
pub(super) const LINE_WORDS: usize = 8;
/// Lines in a page of 4 KiB, past which prefetchers do not run.
const PAGE_LINES: usize = 64;
/// Pages that are read side by side.
const LANES: usize = 8;
/// Lines of the pages that are read side by side.
pub(super) const BLOCK_LINES: usize = LANES * PAGE_LINES;

pub(super) type Line = [u64; LINE_WORDS];

/// Two lines of sums, so that additions seldom wait for each other; inlined where wider registers are allowed.
#[inline(always)]
pub(super) fn sum_portable(words: &[u64]) -> u64 {
    let (lines, rest) = words.as_chunks::<LINE_WORDS>();
    let (blocks, rest_lines) = lines.as_chunks::<BLOCK_LINES>();
    let mut sums: [Line; 2] = Default::default();
    let add = |sums: &mut Line, line: &Line| {
        for (sum, word) in sums.iter_mut().zip(line) {
            *sum = sum.wrapping_add(*word);
        }
    };
    for block in blocks {
        for line in 0..PAGE_LINES {
            for lane in 0..LANES {
                add(&mut sums[lane % 2], &block[lane * PAGE_LINES + line]);
            }
        }
    }
    for line in rest_lines {
        add(&mut sums[0], line);
    }
    sums.as_flattened()
        .iter()
        .chain(rest)
        .fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Copies line by line with `store`, in the order that reads fastest; inlined so that `store` may use wide registers.
#[inline(always)]
pub(super) fn copy_lines(
    source: &[u64],
    destination: &mut [u64],
    store: impl Fn(&mut Line, &Line),
) {
    assert_eq!(source.len(), destination.len(), "halves are equally long");
    let (lines, rest) = destination.as_chunks_mut::<LINE_WORDS>();
    let (source_lines, source_rest) = source.as_chunks::<LINE_WORDS>();
    let (blocks, rest_lines) = lines.as_chunks_mut::<BLOCK_LINES>();
    let (source_blocks, source_rest_lines) = source_lines.as_chunks::<BLOCK_LINES>();
    for (block, from) in blocks.iter_mut().zip(source_blocks) {
        for line in 0..PAGE_LINES {
            for lane in 0..LANES {
                let place = lane * PAGE_LINES + line;
                store(&mut block[place], &from[place]);
            }
        }
    }
    for (line, from) in rest_lines.iter_mut().zip(source_rest_lines) {
        store(line, from);
    }
    rest.copy_from_slice(source_rest);
}
