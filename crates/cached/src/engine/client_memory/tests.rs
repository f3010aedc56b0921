use super::*;
use proptest::prelude::*;

fn workers(bytes_max: usize, count: usize) -> (Arc<ClientMemory>, Vec<Allowance>) {
    let memory = Arc::new(ClientMemory::new(bytes_max, count));
    let workers = (0..count).map(|_| Allowance::of(&memory)).collect();
    (memory, workers)
}

fn free(workers: &[Allowance]) -> usize {
    workers.iter().map(Allowance::free).sum()
}

#[test]
fn what_is_spent_is_refused_and_what_comes_back_is_had_again() {
    let (memory, workers) = workers(1000, 1);
    let worker = &workers[0];
    let (mut one, mut other) = (ClientBuffer::default(), ClientBuffer::default());
    assert_eq!(one.extend(&[1; 600], worker), Ok(()));
    assert_eq!(other.extend(&[2; 500], worker), Err(Spent));
    assert!(other.is_empty() && one.iter().all(|&byte| byte == 1));
    assert_eq!(other.extend(&[2; 400], worker), Ok(()));
    assert_eq!(one.extend(&[3; 1], worker), Err(Spent));
    assert_eq!(one.len(), 600);
    assert_eq!(memory.taken(), 1000);
    drop(one);
    assert_eq!(other.extend(&[2; 500], worker), Ok(()));
    assert_eq!(other.len(), 900);
    drop(other);
    assert_eq!(memory.taken(), free(&workers));
}

#[test]
fn a_long_buffer_goes_back_when_it_is_empty() {
    let (memory, workers) = workers(1 << 30, 1);
    let mut buffer = ClientBuffer::default();
    let read = buffer.fill(100_000, &workers[0], |room| {
        room[..50_000].fill(7);
        (50_000, "read")
    });
    assert_eq!(read, Ok("read"));
    assert_eq!((buffer.len(), buffer.capacity()), (50_000, 100_000));
    buffer.consume(49_999, &workers[0]);
    assert_eq!((&*buffer, buffer.capacity()), (&[7][..], 100_000));
    buffer.consume(1, &workers[0]);
    assert_eq!(buffer.capacity(), 0);
    assert_eq!(memory.taken(), free(&workers));
}

proptest! {
    /// Buffers that go from worker to worker never have more than the budget, and all of it is accounted for.
    #[test]
    fn the_budget_holds(
        bytes_max in prop_oneof![0..5000_usize, 100_000..2_000_000_usize],
        steps in prop::collection::vec((0..6_usize, 0..3_usize, 0..4_usize, 0..300_000_usize), 1..200),
    ) {
        let (memory, workers) = workers(bytes_max, 3);
        let mut buffers: Vec<_> = (0..6).map(|_| ClientBuffer::default()).collect();
        for (buffer, worker, what, bytes) in steps {
            let (one, worker) = (&mut buffers[buffer], &workers[worker]);
            let before = one.len();
            match what {
                0 => *one = ClientBuffer::default(),
                1 => one.consume(bytes.min(before), worker),
                2 => {
                    let extended = one.extend(&vec![1; bytes], worker);
                    prop_assert_eq!(one.len(), before + if extended.is_ok() { bytes } else { 0 });
                }
                _ => {
                    let filled = one.fill(bytes, worker, |room| (room.len() / 2, ()));
                    prop_assert_eq!(one.len(), before + if filled.is_ok() { bytes / 2 } else { 0 });
                }
            }
            let held: usize = buffers.iter().map(ClientBuffer::capacity).sum();
            prop_assert!(memory.taken() <= bytes_max);
            prop_assert_eq!(memory.taken(), held + free(&workers));
        }
        buffers.clear();
        prop_assert_eq!(memory.taken(), free(&workers));
        prop_assert!(memory.taken() <= bytes_max / 8);
    }
}
