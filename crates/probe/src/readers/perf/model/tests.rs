use super::*;
use proptest::prelude::*;

#[test]
fn cpus_are_told_by_vendor_family_and_part() {
    let epyc = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763\n\
        flags\t\t: fpu vme hypervisor lahf_lm\n";
    assert_eq!(
        Cpu::parse(epyc),
        Cpu {
            model: Model::Amd {
                family: 25,
                model: 1
            },
            guest: true
        }
    );
    let graviton =
        "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
    assert_eq!(
        Cpu::parse(graviton),
        Cpu {
            model: Model::Arm {
                implementer: 0x41,
                part: 0xd0c
            },
            guest: false
        }
    );
    let xeon = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Xeon\nflags\t: fpu\n";
    assert_eq!(
        Cpu::parse(xeon),
        Cpu {
            model: Model::Intel {
                family: 6,
                model: 143
            },
            guest: false
        }
    );
    let other = xeon.replace("GenuineIntel", "CentaurHauls");
    assert_eq!(Cpu::parse(&other).model, Model::Unknown);
    assert_eq!(Cpu::parse(""), Cpu::default());
}

#[test]
fn memory_events_by_generation() {
    let zen3 = MemoryEvents::of(Model::Amd {
        family: 0x19,
        model: 0x01,
    });
    assert_eq!(zen3.dram_fills, Some(Event::raw(0x44, 0x48)));
    assert_eq!(zen3.llc_misses, Some(Event::raw(0x44, 0x5c)));
    let zen4 = MemoryEvents::of(Model::Amd {
        family: 0x19,
        model: 0x11,
    });
    assert_eq!(zen4.llc_misses, Some(Event::raw(0x44, 0xdc)));
    let neoverse = MemoryEvents::of(Model::Arm {
        implementer: 0x41,
        part: 0xd40,
    });
    assert_eq!(neoverse.llc_misses, neoverse.dram_fills);
    assert_eq!(
        MemoryEvents::of(Model::Intel {
            family: 6,
            model: 0x55
        })
        .dram_fills,
        None
    );
    assert_eq!(MemoryEvents::of(Model::Unknown).llc_misses, None);
}

proptest! {
    #[test]
    fn any_text_is_some_cpu(text: String, value in ".{0,20}") {
        Cpu::parse(&text);
        Cpu::parse(&format!("vendor_id: GenuineIntel\ncpu family: {value}\nmodel: {value}\n"));
    }
}
