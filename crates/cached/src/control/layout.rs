use super::error::Error;
use crate::options::{Access, Options};
use mica::{Config, Mode};

/// How many partitions to make, and how large each.
pub(crate) struct Layout {
    pub partitions: usize,
    pub config: Config,
}

/// One for one worker, unless that is longer than one can be, and so for each where they have their own. Else more
/// than workers, so that two of them rarely meet in one, but none so small that large items crowd it.
pub(crate) fn layout(options: &Options) -> Result<Layout, Error> {
    let bytes = options.memory_mebibytes << 20;
    let item_bytes_max = options.item_bytes_max.unwrap_or(1 << 20);
    let fewest = bytes.div_ceil(Config::LOG_BYTES_MAX);
    let partitions = match (options.threads, options.access) {
        (1, _) => fewest,
        (threads, Access::Erew | Access::Crew) => fewest.next_multiple_of(threads),
        (threads, Access::Crcw) => (4 * threads).min(bytes / (8 * item_bytes_max)).max(fewest),
    };
    let mut config = Config::for_log_bytes(bytes / partitions);
    config.has_readers = options.threads > 1 && options.access != Access::Erew;
    if !options.evicts {
        config.mode = Mode::Store;
    }
    let limit = match options.item_bytes_max {
        Some(_) => config.item_bytes_limit(),
        None => config.log_bytes / 2,
    };
    config = config.with_items_of(item_bytes_max.min(limit));
    match options.item_bytes_max {
        Some(item_bytes_max) if item_bytes_max > limit => Err(Error::ItemTooLarge {
            item_bytes_max,
            limit,
        }),
        _ => Ok(Layout { partitions, config }),
    }
}
