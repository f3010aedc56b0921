use crate::Key;

/// Far enough ahead for memory to answer, near enough for the first-level cache to keep it.
const BUCKETS_AHEAD: usize = 24;
const ITEMS_AHEAD: usize = 12;

/// Do something with many keys, in order, with their buckets and items fetched ahead from `on`, so that memory answers
/// many at once: `work` is given each key with its number. The longer the burst, the less its beginning, which nothing
/// was fetched ahead for, matters.
#[inline]
pub fn burst<'k, T: ?Sized>(
    on: &mut T,
    keys: &[Key<'k>],
    prefetch_bucket: impl Fn(&T, Key<'k>),
    prefetch_item: impl Fn(&T, Key<'k>),
    mut work: impl FnMut(&mut T, usize, Key<'k>),
) {
    for &key in keys.iter().take(BUCKETS_AHEAD) {
        prefetch_bucket(on, key);
    }
    for &key in keys.iter().take(ITEMS_AHEAD) {
        prefetch_item(on, key);
    }
    for (number, &key) in keys.iter().enumerate() {
        if let Some(&key) = keys.get(number + BUCKETS_AHEAD) {
            prefetch_bucket(on, key);
        }
        if let Some(&key) = keys.get(number + ITEMS_AHEAD) {
            prefetch_item(on, key);
        }
        work(on, number, key);
    }
}
