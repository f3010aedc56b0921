//! Which CPU this is, and which of its events tell last-level cache misses and fills from DRAM.

use super::open::Event;

/// A CPU as `/proc/cpuinfo` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::readers) enum Model {
    Amd {
        family: u32,
        model: u32,
    },
    Intel {
        family: u32,
        model: u32,
    },
    /// By implementer and part of the main identification register.
    Arm {
        implementer: u32,
        part: u32,
    },
    #[default]
    Unknown,
}

/// A CPU, and whether a hypervisor says that it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::readers) struct Cpu {
    pub model: Model,
    pub guest: bool,
}

impl Cpu {
    /// Reads the first CPU of `/proc/cpuinfo`.
    pub(super) fn parse(cpuinfo: &str) -> Self {
        let value = |key: &str| {
            cpuinfo
                .lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.trim() == key)
                .map(|(_, v)| v.trim())
        };
        let number = |key: &str| {
            value(key).and_then(|text| match text.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            })
        };
        let guest =
            value("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
        let model = match value("vendor_id") {
            Some(vendor) => match (vendor, number("cpu family"), number("model")) {
                ("AuthenticAMD" | "HygonGenuine", Some(family), Some(model)) => {
                    Model::Amd { family, model }
                }
                ("GenuineIntel", Some(family), Some(model)) => Model::Intel { family, model },
                _ => Model::Unknown,
            },
            None => match (number("CPU implementer"), number("CPU part")) {
                (Some(implementer), Some(part)) => Model::Arm { implementer, part },
                _ => Model::Unknown,
            },
        };
        Self { model, guest }
    }
}

/// The events of a CPU that tell of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MemoryEvents {
    pub llc_misses: Option<Event>,
    pub dram_fills: Option<Event>,
    /// What the events do not see; empty where they see all reads.
    pub caveat: &'static str,
}

const AMD_CAVEAT: &str = "counts fills of the first-level data cache: not prefetches into the second level, nor writes back";
const AMD_DEMAND_CAVEAT: &str =
    "counts fills that an instruction waited for: not prefetches, nor writes back";
const INTEL_CAVEAT: &str = "counts reads of data and code: not writes back";
const ARM_CAVEAT: &str = "counts reads that the system-level cache missed: not writes back; some chips do not count them";

/// Numbers: AMD's processor programming references (`ls_any_fills_from_sys`, `ls_refills_from_sys`), Intel's perfmon
/// event lists (`OCR.READS_TO_CORE.DRAM`), Arm's Neoverse PMU guides (`LL_CACHE_MISS_RD`), as in the kernel's
/// tools/perf/pmu-events.
impl MemoryEvents {
    pub(super) fn of(model: Model) -> Self {
        let known = |llc_misses, dram_fills, caveat| Self {
            llc_misses: Some(llc_misses),
            dram_fills: Some(dram_fills),
            caveat,
        };
        match model {
            // Zen 4 and later also name memory behind CXL (0x80), which is outside of the last-level cache.
            Model::Amd {
                family: 0x19,
                model: 0x10..=0x1f | 0x60..=0xaf,
            }
            | Model::Amd { family: 0x1a, .. } => {
                known(Event::raw(0x44, 0xdc), Event::raw(0x44, 0x48), AMD_CAVEAT)
            }
            Model::Amd { family: 0x19, .. } => {
                known(Event::raw(0x44, 0x5c), Event::raw(0x44, 0x48), AMD_CAVEAT)
            }
            // Zen to Zen 2, and Hygon's. The kernel's own "cache misses" are those of the second level there. Hits in
            // a neighbour's cache (0x02) cannot be told from those in the own.
            Model::Amd {
                family: 0x17 | 0x18,
                ..
            } => known(
                Event::raw(0x43, 0x58),
                Event::raw(0x43, 0x48),
                AMD_DEMAND_CAVEAT,
            ),
            // Ice Lake servers.
            Model::Intel {
                family: 6,
                model: 0x6a | 0x6c,
            } => known(
                Event::CACHE_MISSES,
                Event::offcore(0xb7, 0x01, 0x73_c000_0477),
                INTEL_CAVEAT,
            ),
            // Sapphire Rapids and Emerald Rapids.
            Model::Intel {
                family: 6,
                model: 0x8f | 0xcf,
            } => known(
                Event::CACHE_MISSES,
                Event::offcore(0x2a, 0x01, 0x73_c000_4477),
                INTEL_CAVEAT,
            ),
            Model::Intel { .. } => Self {
                llc_misses: Some(Event::CACHE_MISSES),
                ..Self::default()
            },
            // Neoverse N1, V1, N2, V2, V3, N3. The kernel's own "cache misses" are those of the first level on Arm.
            Model::Arm {
                implementer: 0x41,
                part: 0xd0c | 0xd40 | 0xd49 | 0xd4f | 0xd84 | 0xd8e,
            } => known(Event::raw(0x37, 0), Event::raw(0x37, 0), ARM_CAVEAT),
            _ => Self::default(),
        }
    }
}

#[cfg(test)]
mod tests;
