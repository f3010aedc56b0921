use super::format::{BlockHeader, Header, Kind, Record};
use std::io::{self, Write};

/// A block is written once it has so many bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// Writes items. What is written is whole only after [`finish`](Self::finish).
pub(super) struct Writer<W> {
    sink: W,
    block_bytes: usize,
    partition: u32,
    items: u32,
    block: Vec<u8>,
    items_written: u64,
    bytes_written: u64,
}

impl<W: Write> Writer<W> {
    pub fn new(sink: W, header: &Header) -> io::Result<Self> {
        Self::with_blocks(sink, header, BLOCK_BYTES)
    }

    /// With blocks of another size.
    pub fn with_blocks(mut sink: W, header: &Header, block_bytes: usize) -> io::Result<Self> {
        sink.write_all(&header.encode())?;
        Ok(Self {
            sink,
            block_bytes,
            partition: 0,
            items: 0,
            block: Vec::new(),
            items_written: 0,
            bytes_written: 0,
        })
    }

    /// The next item of `partition`; they come partition by partition, oldest first.
    pub fn add(&mut self, partition: u32, record: &Record<'_>) -> io::Result<()> {
        let is_full = self.block.len() + record.bytes() > self.block_bytes;
        if self.items > 0 && (is_full || partition != self.partition) {
            self.write_block()?;
        }
        self.partition = partition;
        record.append_to(&mut self.block);
        self.items += 1;
        Ok(())
    }

    /// Bytes of items that were written.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Write what is left, and the end. Says how many items there are.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        if self.items > 0 {
            self.write_block()?;
        }
        let end = BlockHeader {
            kind: Kind::End,
            partition: (self.items_written >> 32) as u32,
            items: self.items_written as u32,
            bytes: 0,
            checksum: crc32fast::hash(&[]),
        };
        self.sink.write_all(&end.encode())?;
        Ok((self.sink, self.items_written))
    }

    fn write_block(&mut self) -> io::Result<()> {
        let header = BlockHeader {
            kind: Kind::Items,
            partition: self.partition,
            items: self.items,
            bytes: u32::try_from(self.block.len()).map_err(io::Error::other)?,
            checksum: crc32fast::hash(&self.block),
        };
        self.sink.write_all(&header.encode())?;
        self.sink.write_all(&self.block)?;
        self.items_written += u64::from(self.items);
        self.bytes_written += self.block.len() as u64;
        self.items = 0;
        self.block.clear();
        // The capacity for a large item is not kept for small ones.
        self.block.shrink_to(2 * self.block_bytes);
        Ok(())
    }
}
