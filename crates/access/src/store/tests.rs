use super::*;
use crate::measure::measure;
use mica::{Entry, Marks};

const ITEMS: u64 = 4000;
const PARTITIONS: usize = 4;

fn filled(access: Access, cores: usize) -> Store {
    Store::filled(ITEMS, cores, PARTITIONS, access).expect("room for a few items")
}

/// Of each partition: its log and its largest item; and what their indexes take.
fn partitions(store: &mut Store) -> (Vec<(usize, usize)>, usize) {
    let (mut found, mut index_bytes) = (Vec::new(), 0);
    store.storages.each(|one| {
        found.push((one.log_bytes(), one.item_bytes_max()));
        index_bytes += one.index_bytes();
    });
    (found, index_bytes)
}

#[test]
fn every_access_mode_has_partitions_of_the_same_number_and_size() {
    for cores in 1..=net::affinity::allowed_cores().len().min(2) {
        let mut stores = Access::MODES.map(|access| filled(access, cores));
        let [(first, index_bytes), others @ ..] = stores.each_mut().map(partitions);
        assert_eq!(first.len(), PARTITIONS);
        for (other, bytes) in others {
            assert_eq!(first, other, "{cores} cores");
            // An index grows with its items, and modes that route keys by owner spread them a little otherwise.
            assert!(bytes.abs_diff(index_bytes) < index_bytes / 10);
        }
        for store in &stores {
            assert_eq!(store.holds.lost, 0);
            let layout = store.holds.layout.expect("partitions");
            assert_eq!(layout.partitions, PARTITIONS);
            assert_eq!(layout.log_bytes, first[0].0);
        }
    }
}

#[test]
fn logs_are_as_long_with_any_number_of_cores() {
    assert_eq!(partitions_for(1, 8), 32);
    assert_eq!(partitions_for(8, 8), 32);
    assert_eq!(partitions_for(3, 8), 33);
    assert_eq!(log_bytes(16_000_000, 8), 58 << 20);
}

#[test]
fn reads_are_noted_at_the_clock_s_second_in_every_access_mode() {
    for access in Access::MODES {
        let mut store = filled(access, 1);
        let later = 1000;
        let unix = store.clock.unix_seconds(store.clock.now());
        store.clock = Clock::resume(unix - i64::from(later), later).expect("a later second");
        let now = store.clock.now();
        let ids: Vec<u64> = (0..ITEMS).collect();
        measure(&mut store, &ids, 0, 0.0).expect("one core");
        let noted = |partition: &mut Partition, key: Key<'_>| match partition.entry(key, now) {
            Entry::Occupied(entry) => {
                let item = entry.item();
                item.marks.has(Marks::FETCHED) && item.accessed_at >= later
            }
            Entry::Vacant(_) => panic!("an item that was stored"),
        };
        // Of the first burst, which is asked for however short the time is.
        for id in 0..8_u64 {
            let name = id.to_le_bytes();
            let key = store.hasher.key(&name);
            let is_noted = match &mut store.storages {
                Storages::Erew(all) => all[0].with(key, noted),
                Storages::Crew(all) => all[0].with(key, noted),
                Storages::Crcw(all) => all[0].with(key, noted),
                Storages::Papaya(_) | Storages::Masstree(_) => panic!("no partitions"),
            };
            assert!(is_noted, "{access:?}: {id}");
        }
    }
}

#[test]
fn partitions_that_cores_cannot_share_out_evenly_are_refused() {
    for partitions in [0, PARTITIONS_MAX + 1] {
        assert!(Store::filled(ITEMS, 1, partitions, Access::Erew).is_err());
    }
    if net::affinity::allowed_cores().len() > 1 {
        assert!(Store::filled(ITEMS, 2, 3, Access::Crew).is_err());
    }
}

#[test]
fn every_item_of_another_structure_is_found_while_all_cores_write() {
    let ids: Vec<u64> = (0..ITEMS).collect();
    for access in Access::PEERS {
        for cores in 1..=net::affinity::allowed_cores().len().min(2) {
            let mut store = Store::filled(ITEMS, cores, cores, access).expect("room");
            assert_eq!(store.holds.lost, 0, "{access:?}");
            assert!(store.holds.layout.is_none());
            for sets in [0, 50, 100] {
                let measured = measure(&mut store, &ids, sets, 0.02).expect("one core each");
                assert_eq!(measured.by_core.len(), cores);
                for work in measured.by_core {
                    assert!(
                        work.operations > 0 && work.missed == 0,
                        "{access:?}: {work:?}"
                    );
                }
            }
        }
    }
}
