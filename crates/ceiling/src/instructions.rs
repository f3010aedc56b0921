//! Instructions per second: a loop whose instructions are counted by hand, on all cores at once.
//!
//! The mix suits wide cores: independent register additions, and one load from the first-level cache to every two
//! additions, so that neither the adders nor the load ports alone are the limit. Nothing waits for a result of the
//! same iteration, no instruction misses the first-level cache, and the one branch of a block is always taken.

use std::time::Duration;

pub use kernel::execute_mix;

use crate::Result;
use crate::team::{Rounds, run_together};

/// Blocks in one round of the throughput kernel: about 20 ms on a current core.
const BLOCKS_PER_ROUND: u64 = 2_000_000;
/// Blocks in one round of the clock kernel.
const CHAINS_PER_ROUND: u64 = 400_000;

/// What the instruction kernel measured.
#[derive(Debug)]
pub struct InstructionRate {
    /// Instructions of each round and its time, all cores together.
    pub rounds: Rounds<()>,
    /// Whether the instructions were counted (an assembly loop) or only estimated (a loop left to the compiler).
    pub exact: bool,
}

/// Runs the throughput kernel on all `cores` at once for `budget`. The amount is instructions.
pub fn measure_instruction_rate(cores: &[usize], budget: Duration) -> Result<InstructionRate> {
    let rounds = run_together(
        cores,
        budget,
        |_| Ok(()),
        |()| kernel::execute_mix(BLOCKS_PER_ROUND),
    )?;
    Ok(InstructionRate {
        rounds,
        exact: kernel::EXACT,
    })
}

/// Runs a chain of dependent additions on one core. The amount is additions, and every core that this runs on
/// completes one dependent register addition a cycle, so the rate is the core's clock in hertz.
///
/// `None` where the kernel is left to the compiler, which may shorten the chain.
pub fn measure_core_clock(core: usize, budget: Duration) -> Result<Option<Rounds<()>>> {
    if !kernel::EXACT {
        return Ok(None);
    }
    run_together(
        &[core],
        budget,
        |_| Ok(()),
        |()| kernel::execute_chain(CHAINS_PER_ROUND),
    )
    .map(Some)
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod kernel {
    use std::arch::asm;

    pub(super) const EXACT: bool = true;

    /// 16 times (4 additions + 2 loads), then the count down and the branch.
    const MIX_INSTRUCTIONS: u64 = 16 * 6 + 2;
    const CHAIN_ADDITIONS: u64 = 128;

    // What the loops are made of, as each processor's assembler writes it.
    #[cfg(target_arch = "x86_64")]
    macro_rules! instruction {
        (increase $register:literal) => {
            concat!("add {", $register, "}, 1")
        };
        (load $register:literal) => {
            concat!("mov {", $register, "}, qword ptr [{cell}]")
        };
        (add step) => {
            "add {sum}, {step}"
        };
        (again) => {
            "sub {count}, 1\njnz 2b"
        };
    }
    #[cfg(target_arch = "aarch64")]
    macro_rules! instruction {
        (increase $register:literal) => {
            concat!("add {", $register, "}, {", $register, "}, #1")
        };
        (load $register:literal) => {
            concat!("ldr {", $register, "}, [{cell}]")
        };
        (add step) => {
            "add {sum}, {sum}, {step}"
        };
        (again) => {
            "subs {count}, {count}, #1\nb.ne 2b"
        };
    }

    /// Executes `blocks` blocks of the throughput kernel on the calling thread; returns how many instructions that were.
    #[must_use]
    pub fn execute_mix(blocks: u64) -> u64 {
        let cell: u64 = 1;
        // SAFETY: the loop touches only the named registers and reads `cell`; `blocks.max(1)` makes it end.
        unsafe {
            asm!(
                ".p2align 6",
                "2:",
                ".rept 16",
                instruction!(increase "a"),
                instruction!(increase "b"),
                instruction!(load "e"),
                instruction!(increase "c"),
                instruction!(increase "d"),
                instruction!(load "f"),
                ".endr",
                instruction!(again),
                count = inout(reg) blocks.max(1) => _,
                cell = in(reg) &raw const cell,
                a = inout(reg) 0_u64 => _,
                b = inout(reg) 0_u64 => _,
                c = inout(reg) 0_u64 => _,
                d = inout(reg) 0_u64 => _,
                e = out(reg) _,
                f = out(reg) _,
                options(nostack, readonly),
            );
        }
        blocks.max(1) * MIX_INSTRUCTIONS
    }

    pub(super) fn execute_chain(blocks: u64) -> u64 {
        // Adding a register: some cores fold additions of constants away before they execute.
        // SAFETY: the loop touches only the named registers; `blocks.max(1)` makes it end.
        unsafe {
            asm!(
                ".p2align 6",
                "2:",
                ".rept 128",
                instruction!(add step),
                ".endr",
                instruction!(again),
                count = inout(reg) blocks.max(1) => _,
                sum = inout(reg) 0_u64 => _,
                step = in(reg) 3_u64,
                options(nostack, nomem),
            );
        }
        blocks.max(1) * CHAIN_ADDITIONS
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod kernel {
    use std::hint::black_box;

    pub(super) const EXACT: bool = false;

    /// An estimate: four multiply-add pairs, the count down and the branch.
    const MIX_INSTRUCTIONS: u64 = 4 * 2 + 2;

    /// As on the others, where the compiler makes the loop.
    #[must_use]
    pub fn execute_mix(blocks: u64) -> u64 {
        let mut sums = black_box([1_u64, 2, 3, 4]);
        for _ in 0..blocks {
            for sum in &mut sums {
                *sum = sum.wrapping_mul(3).wrapping_add(1);
            }
        }
        black_box(sums);
        blocks * MIX_INSTRUCTIONS
    }

    pub(super) fn execute_chain(_blocks: u64) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests;
