//! An assembler for the few eBPF instructions that the program is made of (RFC 9669).
//!
//! A program is a list of [`Line`]s, which reads like a listing; [`assemble`] turns labels into distances.

/// A register of the virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Register {
    /// What a function answers, and the program.
    R0,
    /// The context at the start; the arguments of a function.
    R1,
    R2,
    R3,
    R4,
    R5,
    /// Survives the call of a function.
    R6,
}

/// One instruction as the kernel takes it, `struct bpf_insn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Instruction {
    code: u8,
    /// Destination and source, four bits each, in the order of the machine's bit fields.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// A line of a listing: an instruction, a jump to a label, or the place that a label names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line<L> {
    Plain(Instruction),
    Jump(Instruction, L),
    Label(L),
}

/// How many bytes are loaded: RFC 9669, section 5.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Size {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
}

/// When a jump is made, by the 32 bits of a register without a sign: RFC 9669, section 4.3.
#[derive(Debug, Clone, Copy)]
pub(crate) enum If {
    Equal = 0x10,
    Above = 0x20,
    AnyBit = 0x40,
    Different = 0x50,
    Below = 0xa0,
}

use Register::R0;

// Classes, sources and modes: RFC 9669, sections 3 to 5.
const LOAD: u8 = 0x01;
const JUMP: u8 = 0x05;
/// Compares the lower halves of registers, so that the immediate is not extended by its sign.
const JUMP_32: u8 = 0x06;
const ARITHMETIC_64: u8 = 0x07;
const ARITHMETIC_32: u8 = 0x04;
const REGISTER: u8 = 0x08;
const MEMORY: u8 = 0x60;
/// Eight bytes, as an immediate of two instructions.
const DOUBLE_WORD: u8 = 0x18;
/// The immediate is the descriptor of a map.
const MAP_DESCRIPTOR: u8 = 1;

const fn new(
    code: u8,
    destination: Register,
    source: u8,
    offset: i16,
    immediate: u32,
) -> Instruction {
    let destination = destination as u8;
    let registers = if cfg!(target_endian = "little") {
        source << 4 | destination
    } else {
        destination << 4 | source
    };
    Instruction {
        code,
        registers,
        offset,
        immediate: immediate.cast_signed(),
    }
}

/// `destination = source`
pub(crate) const fn copy<L>(destination: Register, source: Register) -> Line<L> {
    let code = ARITHMETIC_64 | REGISTER | 0xb0;
    Line::Plain(new(code, destination, source as u8, 0, 0))
}

/// `destination = value`
pub(crate) const fn set<L>(destination: Register, value: u32) -> Line<L> {
    Line::Plain(new(ARITHMETIC_32 | 0xb0, destination, 0, 0, value))
}

/// `destination += value`
pub(crate) const fn add<L>(destination: Register, value: u32) -> Line<L> {
    Line::Plain(new(ARITHMETIC_64, destination, 0, 0, value))
}

/// `destination &= value`
pub(crate) const fn and<L>(destination: Register, value: u32) -> Line<L> {
    Line::Plain(new(ARITHMETIC_32 | 0x50, destination, 0, 0, value))
}

/// The 16 bits of `register`, which come from a network, in the machine's order.
pub(crate) const fn half_from_network<L>(register: Register) -> Line<L> {
    let code = ARITHMETIC_32 | REGISTER | 0xd0;
    Line::Plain(new(code, register, 0, 0, 16))
}

/// `destination` = what lies at `address + offset`
pub(crate) const fn load<L>(
    size: Size,
    destination: Register,
    address: Register,
    offset: i16,
) -> Line<L> {
    let code = LOAD | MEMORY | size as u8;
    Line::Plain(new(code, destination, address as u8, offset, 0))
}

/// `destination` = the map with this descriptor: an instruction of double width.
pub(crate) const fn load_map<L>(destination: Register, descriptor: i32) -> [Line<L>; 2] {
    let immediate = descriptor.cast_unsigned();
    let first = new(DOUBLE_WORD, destination, MAP_DESCRIPTOR, 0, immediate);
    [Line::Plain(first), Line::Plain(new(0, R0, 0, 0, 0))]
}

/// Go on at `to`.
pub(crate) const fn jump<L>(to: L) -> Line<L> {
    Line::Jump(new(JUMP, R0, 0, 0, 0), to)
}

/// Go on at `to` if `register` compares so with `value`.
pub(crate) const fn jump_if<L>(register: Register, condition: If, value: u32, to: L) -> Line<L> {
    Line::Jump(new(JUMP_32 | condition as u8, register, 0, 0, value), to)
}

/// Go on at `to` if `register`, an address, lies beyond `limit`.
pub(crate) const fn jump_if_beyond<L>(register: Register, limit: Register, to: L) -> Line<L> {
    let code = JUMP | REGISTER | If::Above as u8;
    Line::Jump(new(code, register, limit as u8, 0, 0), to)
}

/// Call a function of the kernel's, by its number in `enum bpf_func_id`.
pub(crate) const fn call<L>(function: u32) -> Line<L> {
    Line::Plain(new(JUMP | 0x80, R0, 0, 0, function))
}

/// End with R0 as the verdict.
pub(crate) const fn exit<L>() -> Line<L> {
    Line::Plain(new(JUMP | 0x90, R0, 0, 0, 0))
}

/// The instructions of a listing, its jumps resolved. `None` when a label is missing or too far away, which is a mistake
/// in the listing.
pub(crate) fn assemble<L: Copy + PartialEq>(lines: &[Line<L>]) -> Option<Vec<Instruction>> {
    let is_instruction = |line: &Line<L>| !matches!(line, Line::Label(_));
    let position = |label: L| {
        let line = lines.iter().position(|line| *line == Line::Label(label))?;
        Some(
            lines[..line]
                .iter()
                .filter(|line| is_instruction(line))
                .count(),
        )
    };
    let mut instructions = Vec::with_capacity(lines.len());
    for line in lines {
        match *line {
            Line::Plain(instruction) => instructions.push(instruction),
            Line::Jump(instruction, label) => {
                // Counted from the instruction behind the jump.
                let (to, from) = (position(label)?, instructions.len() + 1);
                let distance = i64::try_from(to).ok()? - i64::try_from(from).ok()?;
                instructions.push(Instruction {
                    offset: distance.try_into().ok()?,
                    ..instruction
                });
            }
            Line::Label(_) => {}
        }
    }
    Some(instructions)
}

#[cfg(test)]
mod tests;
