use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_record_is_read_as_it_was_written(
        keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..=255), 1..5),
        value in prop::collection::vec(any::<u8>(), 0..300),
        (flags, expires_at, accessed_at, cas) in any::<(u32, u32, u32, u64)>(),
        bits in 0..16_u8,
    ) {
        let marks = (0..).zip(MARKS).filter(|&(bit, _)| bits & 1 << bit != 0)
            .fold(Marks::default(), |marks, (_, mark)| marks.with(mark));
        let mut block = Vec::new();
        let records: Vec<_> = keys.iter()
            .map(|key| Record { key, value: &value, flags, expires_at, accessed_at, cas, marks })
            .collect();
        for record in &records {
            let before = block.len();
            record.append_to(&mut block);
            prop_assert_eq!(block.len() - before, record.bytes());
        }
        let mut rest = Rest(&block);
        for record in &records {
            prop_assert_eq!(Record::take_from(&mut rest), Some(*record));
        }
        prop_assert!(rest.0.is_empty());
        let mut cut = Rest(&block[..records[0].bytes() - 1]);
        prop_assert_eq!(Record::take_from(&mut cut), None);
    }

    #[test]
    fn headers_are_read_as_they_were_written_or_not_at_all(
        zero_unix: i64, written_at: u32, due in 0..u32::MAX, has_due: bool,
        (last_cas, hash_seed) in (0..CAS_MAX, any::<u64>()),
        numbers in any::<[u32; 4]>(), is_end: bool, at in any::<prop::sample::Index>(), with in 1..=255_u8,
    ) {
        let header = Header { zero_unix, written_at, flush_due: has_due.then_some(due), last_cas, hash_seed };
        let mut bytes = header.encode();
        prop_assert_eq!(Header::decode(&bytes).ok(), Some(header));
        bytes[at.index(HEADER_BYTES)] ^= with;
        prop_assert!(Header::decode(&bytes).is_err());
        let [partition, items, length, checksum] = numbers;
        let kind = if is_end { Kind::End } else { Kind::Items };
        let block = BlockHeader { kind, partition, items, bytes: length, checksum };
        let mut bytes = block.encode();
        prop_assert_eq!(BlockHeader::decode(&bytes).ok(), Some(block));
        bytes[at.index(BLOCK_HEADER_BYTES)] ^= with;
        prop_assert!(BlockHeader::decode(&bytes).is_err());
    }
}
