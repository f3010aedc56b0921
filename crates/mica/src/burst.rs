use crate::Key;

/// Far enough ahead for memory to answer, near enough for the first-level cache to keep it.
const BUCKETS_AHEAD: usize = 24;
const ITEMS_AHEAD: usize = 12;
/// Items of buckets that are continued in others: one in ten or twenty.
const FURTHER_AHEAD: usize = 6;
const _: () = assert!(BUCKETS_AHEAD < 32 && FURTHER_AHEAD < ITEMS_AHEAD);

/// Do something with many keys, in order, with their buckets and items fetched ahead from `on`, so that memory answers
/// many at once: `work` is given each key with its number. `prefetch_item` says whether `prefetch_further` is to be asked as well. The longer the burst, the less its beginning, which nothing
/// was fetched ahead for, matters.
#[inline]
pub fn burst<'k, T: ?Sized>(
    on: &mut T,
    keys: &[Key<'k>],
    prefetch_bucket: impl Fn(&T, Key<'k>),
    prefetch_item: impl Fn(&T, Key<'k>) -> bool,
    prefetch_further: impl Fn(&T, Key<'k>),
    mut work: impl FnMut(&mut T, usize, Key<'k>),
) {
    // Bit by bit, of the keys that items are fetched for: which are to be asked for further.
    let mut further = 0_u32;
    for &key in keys.iter().take(BUCKETS_AHEAD) {
        prefetch_bucket(on, key);
    }
    for &key in keys.iter().take(ITEMS_AHEAD) {
        further = further << 1 | u32::from(prefetch_item(on, key));
    }
    for (number, &key) in keys.iter().enumerate() {
        if let Some(&key) = keys.get(number + BUCKETS_AHEAD) {
            prefetch_bucket(on, key);
        }
        further <<= 1;
        if let Some(&key) = keys.get(number + ITEMS_AHEAD) {
            further |= u32::from(prefetch_item(on, key));
        }
        if further & 1 << (ITEMS_AHEAD - FURTHER_AHEAD) != 0
            && let Some(&key) = keys.get(number + FURTHER_AHEAD)
        {
            prefetch_further(on, key);
        }
        work(on, number, key);
    }
}
