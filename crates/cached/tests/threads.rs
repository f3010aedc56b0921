//! Several workers over shared partitions.

mod support;
use support::Server;

#[test]
fn no_increment_is_lost_between_workers() {
    let server = Server::start(&["-t", "3"]);
    let (clients, rounds, keys) = (6, 300, 5);
    let mut first = server.connect();
    for key in 0..keys {
        first.ask(format!("set n{key} 0 0 1\r\n0\r\n").as_bytes());
    }
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut client = server.connect();
                let burst: String = (0..keys)
                    .map(|key| format!("incr n{key} 1 noreply\r\n"))
                    .collect();
                for _ in 0..rounds {
                    client.ask(burst.as_bytes());
                }
            });
        }
    });
    let expected = format!("{}\r\n", clients * rounds);
    for key in 0..keys {
        assert_eq!(
            first.ask(format!("incr n{key} 0\r\n").as_bytes()),
            expected.as_bytes()
        );
    }
    assert_eq!(first.statistic("incr_hits"), clients * rounds * keys + keys);
}

#[test]
fn what_one_worker_stores_flushes_and_counts_the_others_see() {
    let server = Server::start(&["-t", "3"]);
    // Connections go to the workers in turn.
    let mut clients = [server.connect(), server.connect(), server.connect()];
    for (number, client) in clients.iter_mut().enumerate() {
        client.ask(format!("set k{number} 0 0 1\r\n{number}\r\n").as_bytes());
    }
    for client in &mut clients {
        assert_eq!(
            client.ask(b"get k0 k1 k2\r\n"),
            b"VALUE k0 0 1\r\n0\r\nVALUE k1 0 1\r\n1\r\nVALUE k2 0 1\r\n2\r\nEND\r\n"
        );
    }
    assert_eq!(clients[0].statistic("get_hits"), 9);
    assert_eq!(clients[1].statistic("curr_connections"), 3);
    clients[2].ask(b"flush_all\r\n");
    assert_eq!(clients[1].ask(b"get k0 k1 k2\r\n"), b"END\r\n");
    assert_eq!(clients[0].statistic("curr_items"), 0);
}
