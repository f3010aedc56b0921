use mica::*;
#[test]
fn frag() {
    let mut state = 88172645463325252_u64;
    let mut rnd = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let cap: usize = 64 << 20;
    let h = Hasher::new(1);
    let value = vec![7u8; 9 << 20];
    for kind in 0..8 {
        for full in [90, 98] {
            let mut p = Partition::new(
                Config {
                    mode: Mode::Store,
                    item_bytes_max: 30 << 20,
                    ..Config::for_log_bytes(cap)
                },
                h.clone(),
            )
            .unwrap();
            let mut items: Vec<(u64, usize)> = Vec::new();
            let mut live = 0usize;
            let mut next = 0u64;
            let (mut worst, mut sum, mut refusals) = (1.0f64, 0.0, 0u64);
            let rounds = if kind >= 5 { 4_000u64 } else { 600_000 };
            let t = Cpu::now();
            let mut slow = 0f64;
            for steps in 0..rounds {
                let r = rnd();
                let u = (r >> 11) as f64 / (1u64 << 53) as f64;
                let bytes = match kind {
                    0 => 24 + (r >> 8) as usize % 1000,
                    1 => (16.0 * (4096.0f64).powf(u)) as usize + 24,
                    2 => {
                        if r % 20 == 0 {
                            10_000 + (r >> 8) as usize % 100_000
                        } else {
                            40 + (r >> 8) as usize % 200
                        }
                    }
                    3 => {
                        let phase = (steps * 8 / rounds) as u32;
                        let base = 64usize << phase;
                        base + (r >> 8) as usize % base
                    }
                    4 => {
                        let phase = (steps * 8 / rounds) as u32;
                        let base = 64usize << (7 - phase);
                        base + (r >> 8) as usize % base
                    }
                    5 => (1000.0 * (1024.0f64).powf(u)) as usize,
                    6 => {
                        if r % 200 == 0 {
                            2 << 20
                        } else {
                            1000 + (r >> 8) as usize % 20_000
                        }
                    }
                    _ => {
                        if r % 50 == 0 {
                            8 << 20
                        } else {
                            25_000 + (r >> 8) as usize % 50_000
                        }
                    }
                };
                let rounded = (bytes + 27 + 7) / 8 * 8;
                let drop_one = |items: &mut Vec<(u64, usize)>,
                                live: &mut usize,
                                p: &mut Partition,
                                at: usize| {
                    let (k, b) = items.swap_remove(at);
                    *live -= b;
                    if let Entry::Occupied(e) = p.entry(h.key(&k.to_le_bytes()), 1) {
                        e.remove()
                    } else {
                        panic!()
                    }
                };
                while live + rounded > cap / 100 * full && !items.is_empty() {
                    let at = rnd() as usize % items.len();
                    drop_one(&mut items, &mut live, &mut p, at);
                }
                loop {
                    let tt = Cpu::now();
                    let ok = p
                        .set(
                            h.key(&next.to_le_bytes()),
                            1,
                            &Contents::of(&value[..bytes]),
                        )
                        .is_ok();
                    slow = slow.max(tt.elapsed().as_secs_f64());
                    if ok {
                        items.push((next, rounded));
                        live += rounded;
                        next += 1;
                        break;
                    }
                    let use_ = (cap - p.free_bytes().unwrap()) as f64 / (cap - bytes) as f64;
                    refusals += 1;
                    sum += use_;
                    worst = worst.min(use_);
                    let at = rnd() as usize % items.len();
                    drop_one(&mut items, &mut live, &mut p, at);
                }
            }
            println!(
                "kind {kind} at {full} %: refusals {refusals}, worst {worst:.4}, mean {:.4}, items {}, {:.2} us/op, slowest {:.1} ms",
                sum / refusals as f64,
                items.len(),
                t.elapsed().as_secs_f64() * 1e6 / rounds as f64,
                slow * 1e3
            );
        }
    }
}
#[derive(Clone, Copy)]
struct Cpu(f64);
impl Cpu {
    fn now() -> Self {
        let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Self(t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9)
    }
    fn elapsed(self) -> std::time::Duration {
        std::time::Duration::from_secs_f64((Self::now().0 - self.0).max(0.0))
    }
}
