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
