use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn told(roster: &Roster, now: u32) -> BTreeMap<String, String> {
    let mut told = BTreeMap::new();
    roster.statistics(now, &mut |name, value| {
        let before = told.insert(name.to_owned(), value.to_string());
        assert_eq!(before, None, "{name} was told twice");
    });
    told
}

proptest! {
    /// Those who are there are told, as they are.
    #[test]
    fn a_roster_against_a_list(steps in prop::collection::vec((0..4_u8, any::<prop::sample::Index>()), 1..200)) {
        let roster = Arc::new(Roster::default());
        let local = Arc::new(Endpoint::Tcp(([127, 0, 0, 1], 11211).into()));
        let mut seated: Vec<(Seat, i32, u32, bool)> = Vec::new();
        for (now, (step, which)) in (10..).zip(steps) {
            let which = if seated.is_empty() { 0 } else { which.index(seated.len()) };
            match step {
                0 if !seated.is_empty() => drop(seated.swap_remove(which)),
                1 if !seated.is_empty() => {
                    seated[which].0.set_active(now);
                    seated[which].2 = now;
                }
                2 if !seated.is_empty() => {
                    seated[which].3 ^= true;
                    seated[which].0.set_writing(seated[which].3);
                }
                _ => {
                    let descriptor = now as i32;
                    let peer = Some(([10, 0, 0, 1], now as u16).into());
                    let client = Client { descriptor, peer, local: Arc::clone(&local) };
                    seated.push((roster.seat(client, now), descriptor, now, false));
                }
            }
        }
        let now = 1000;
        let mut expected = BTreeMap::new();
        for (seat, descriptor, active_at, is_writing) in &seated {
            prop_assert_eq!(seat.active_at(), *active_at);
            for (name, value) in [
                ("addr", format!("tcp:10.0.0.1:{descriptor}")),
                ("listen_addr", "tcp:127.0.0.1:11211".to_owned()),
                ("state", if *is_writing { "conn_mwrite" } else { "conn_read" }.to_owned()),
                ("secs_since_last_cmd", (now - active_at).to_string()),
            ] {
                expected.insert(format!("{descriptor}:{name}"), value);
            }
        }
        prop_assert_eq!(told(&roster, now), expected);
    }
}

#[test]
fn other_families_are_told_as_memcached_tells_them() {
    let roster = Arc::new(Roster::default());
    let seat = |descriptor, peer: Option<&str>, local| {
        let peer = peer.map(|peer| peer.parse().expect("an address"));
        let local = Arc::new(local);
        roster.seat(
            Client {
                descriptor,
                peer,
                local,
            },
            5,
        )
    };
    let _unix = seat(7, None, Endpoint::Unix("/run/cache".into()));
    let local = Endpoint::Tcp("[::]:11211".parse().expect("an address"));
    let _six = seat(8, Some("[::1]:99"), local);
    let told = told(&roster, 5);
    assert_eq!(told["7:addr"], "unix:/run/cache");
    assert_eq!(told["7:listen_addr"], "unix:/run/cache");
    assert_eq!(told["8:addr"], "tcp6:[::1]:99");
    assert_eq!(told["8:listen_addr"], "tcp6:[::]:11211");
}
