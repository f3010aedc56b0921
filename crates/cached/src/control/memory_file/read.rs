use super::format::{
    BLOCK_HEADER_BYTES, BlockHeader, Damage, HEADER_BYTES, Header, Kind, Record, Rest,
};
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Seek, SeekFrom};

/// Reads items: first where they are, then what they are, so that those of several partitions come in about the order
/// in which they were stored, however many there were.
pub(super) struct Reader<R> {
    source: R,
    header: Header,
    blocks: Vec<Block>,
}

/// Where a block of items is.
struct Block {
    header: BlockHeader,
    /// Of its bytes.
    at: u64,
    /// How much of its partition lies up to its end, in parts of 2^32.
    share: u128,
}

impl<R: Read + Seek> Reader<R> {
    /// Look through a source: it is whole, as far as can be seen without reading the items.
    pub fn new(mut source: R) -> Result<Self, Damage> {
        let length = source.seek(SeekFrom::End(0))?;
        source.rewind()?;
        let header = Header::decode(&exactly(&mut source)?)?;
        let mut blocks = Vec::new();
        let mut at = HEADER_BYTES as u64;
        let mut items = 0_u64;
        loop {
            let block = BlockHeader::decode(&exactly::<BLOCK_HEADER_BYTES>(&mut source)?)?;
            at += BLOCK_HEADER_BYTES as u64;
            if block.kind == Kind::End {
                if u64::from(block.partition) << 32 | u64::from(block.items) != items {
                    return Err(Damage::Altered("end"));
                }
                break;
            }
            // Before memory is allocated for it.
            if u64::from(block.bytes) > length.saturating_sub(at) {
                return Err(Damage::Short);
            }
            items += u64::from(block.items);
            blocks.push(Block {
                header: block,
                at,
                share: 0,
            });
            at += u64::from(block.bytes);
            source.seek(SeekFrom::Start(at))?;
        }
        if at != length {
            return Err(Damage::Long);
        }
        in_order_of_writing(&mut blocks);
        Ok(Self {
            source,
            header,
            blocks,
        })
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes of all items.
    pub fn bytes(&self) -> u64 {
        let bytes = |block: &Block| u64::from(block.header.bytes);
        self.blocks.iter().map(bytes).sum()
    }

    /// Hand every item to `each`, the oldest first. Before each block, `progress` learns how many bytes it has.
    pub fn for_each(
        mut self,
        mut progress: impl FnMut(u64),
        mut each: impl FnMut(&Record<'_>),
    ) -> Result<(), Damage> {
        let altered = || Damage::Altered("content");
        let mut bytes = Vec::new();
        for Block { header, at, .. } in &self.blocks {
            progress(header.bytes.into());
            bytes.resize(header.bytes as usize, 0);
            self.source.seek(SeekFrom::Start(*at))?;
            self.source.read_exact(&mut bytes).map_err(short)?;
            if crc32fast::hash(&bytes) != header.checksum {
                return Err(altered());
            }
            let mut rest = Rest(&bytes);
            for _ in 0..header.items {
                each(&Record::take_from(&mut rest).ok_or_else(altered)?);
            }
            if !rest.0.is_empty() {
                return Err(altered());
            }
        }
        Ok(())
    }
}

/// Partitions fill at the same pace, as a hash chooses among them: what lies in the middle of one was written at about
/// the time of what lies in the middle of another.
fn in_order_of_writing(blocks: &mut [Block]) {
    let mut totals = HashMap::<u32, u64>::new();
    for Block { header, .. } in blocks.iter() {
        *totals.entry(header.partition).or_default() += u64::from(header.bytes);
    }
    let mut before = HashMap::<u32, u64>::new();
    for Block { header, share, .. } in blocks.iter_mut() {
        let before = before.entry(header.partition).or_default();
        *before += u64::from(header.bytes);
        let total = totals[&header.partition].max(1);
        *share = (u128::from(*before) << 32) / u128::from(total);
    }
    blocks.sort_by_key(|block| block.share);
}

fn exactly<const BYTES: usize>(source: &mut impl Read) -> Result<[u8; BYTES], Damage> {
    let mut bytes = [0; BYTES];
    source.read_exact(&mut bytes).map_err(short)?;
    Ok(bytes)
}

fn short(error: std::io::Error) -> Damage {
    match error.kind() {
        ErrorKind::UnexpectedEof => Damage::Short,
        _ => Damage::Read(error),
    }
}
