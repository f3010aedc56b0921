//! The record of evicted items.

use super::Partition;
use crate::address::Address;
use crate::evicted::{Evicted, KEPT_MAX};
use crate::item::Header;

impl Partition {
    /// Keep note of each item that has to make room from now on, until it is [taken](Self::take_evicted); or no more.
    pub fn record_evictions(&mut self, is_on: bool) {
        if !is_on {
            self.record = None;
        } else if self.record.is_none() {
            self.record = Some(Box::default());
        }
        if let Some(large) = &mut self.large {
            large.record_evictions(is_on);
        }
    }

    /// Hand the items that had to make room since the last time to `each`. Returns how many more there were, which could
    /// not be kept.
    pub fn take_evicted(&mut self, mut each: impl FnMut(Evicted)) -> u64 {
        let large = self.large.as_mut();
        let records = [
            self.record.as_mut(),
            large.and_then(|large| large.record.as_mut()),
        ];
        let missed = records.into_iter().flatten().map(|record| {
            record.evicted.drain(..).for_each(&mut each);
            std::mem::take(&mut record.missed)
        });
        missed.sum()
    }

    /// Note the item at `address`, whose bytes are still there.
    #[cold]
    pub(super) fn record_eviction(&mut self, address: Address, header: &Header, now: u32) {
        let Some(record) = &mut self.record else {
            return;
        };
        if record.evicted.len() == KEPT_MAX {
            record.missed += 1;
            return;
        }
        let item = self.log.item(address, header, now);
        record.evicted.push(Evicted {
            key: self.log.key(address, header, header.bytes()).into(),
            value_bytes: item.value.len(),
            expires_at: item.expires_at,
            accessed_at: item.accessed_at,
            marks: item.marks,
        });
    }
}
