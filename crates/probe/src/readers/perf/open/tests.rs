use super::*;

/// Events of the kernel itself (`PERF_TYPE_SOFTWARE`), which every machine has.
impl Event {
    pub(in crate::readers::perf) const TASK_CLOCK: Self = Self::software(1);
    pub(in crate::readers::perf) const PAGE_FAULTS: Self = Self::software(2);
    pub(in crate::readers::perf) const CONTEXT_SWITCHES: Self = Self::software(3);

    const fn software(config: u64) -> Self {
        Self {
            kind: 1,
            config,
            extension: 0,
        }
    }
}

#[test]
fn the_layout_is_the_kernels() {
    // include/uapi/linux/perf_event.h: PERF_ATTR_SIZE_VER1.
    assert_eq!(size_of::<Attributes>(), 72);
    assert_eq!(std::mem::offset_of!(Attributes, flags), 40);
    assert_eq!(std::mem::offset_of!(Attributes, config1), 56);
}

#[test]
fn raw_events_are_packed_as_perf_writes_them() {
    assert_eq!(Event::raw(0x44, 0x48).config, 0x4844);
}

/// Bits of include/uapi/linux/perf_event.h: disabled, inherit, exclude_kernel, exclude_hv.
#[test]
fn what_is_left_out_of_an_event_and_who_inherits_it() {
    let (cpu, thread) = (Target::Cpu(3), Target::Thread(7));
    for (target, user_only, leads, flags) in [
        (cpu, false, false, 0b100_0000),
        (cpu, false, true, 0b100_0001),
        (cpu, true, false, 0b110_0000),
        (cpu, true, true, 0b110_0001),
        (thread, false, false, 0b100_0010),
        (thread, false, true, 0b100_0011),
        (thread, true, true, 0b110_0011),
    ] {
        let event = Event::offcore(0xb7, 0x01, 0x3f_b800);
        let attributes = attributes(event, target, user_only, leads);
        assert_eq!(attributes.flags, flags, "{target:?} {user_only} {leads}");
        // Times for which it was enabled and running, and all of a group in one read.
        assert_eq!(attributes.read_format, 0b1011);
        assert_eq!((attributes.kind, attributes.size), (4, 72));
        assert_eq!((attributes.config, attributes.config1), (0x01b7, 0x3f_b800));
    }
}
