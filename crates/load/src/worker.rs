//! A worker: a thread with its own poller and its share of the connections.
use crate::config::ClientConfig;
use crate::connection::Connection;
use crate::data_set::DataSet;
use crate::datagrams::{Attached, Flow, Link, Queue, request_bytes_max};
use crate::tls::Tls;
use net::{Endpoint, Events, Interest, Poller, Waker};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The token of the waker; connections have their index.
pub(crate) const WAKER_TOKEN: u64 = u64::MAX;
/// Read at once, at most.
const SHARED_BUFFER_BYTES: usize = 256 << 10;

/// How the server is reached.
#[derive(Debug)]
pub(crate) enum Route {
    /// By connections: to the server, or to each of its workers where each has keys of its own.
    Streams(Vec<Endpoint>, Option<Tls>),
    /// By datagrams: the server's address, or that of each of its workers where each has keys of its own.
    /// And how many datagrams may be sent at once.
    Datagrams(Vec<SocketAddr>, usize),
    /// By datagrams over AF_XDP.
    Xdp(Box<Attached>),
}

impl Route {
    pub(crate) fn uses_datagrams(&self) -> bool {
        !matches!(self, Self::Streams(..))
    }
}

/// What a worker keeps from phase to phase.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) core: Option<usize>,
    pub(crate) poller: Poller,
    pub(crate) waker: Arc<Waker>,
    /// Those to each of the server's workers are behind one another.
    pub(crate) connections: Vec<Connection>,
    /// Instead of connections, where the server is reached by datagrams.
    pub(crate) flows: Vec<Flow>,
    pub(crate) events: Events,
    pub(crate) shared: Box<[u8]>,
    /// Connections with room for another request, in the order in which they are taken (open loop).
    pub(crate) ready: VecDeque<usize>,
    /// Connections with requests that have not been sent.
    pub(crate) dirty: Vec<usize>,
}

impl Worker {
    /// A worker with the connections of these numbers.
    pub(crate) fn new(
        index: usize,
        core: Option<usize>,
        config: &ClientConfig,
        data: &DataSet,
        route: &Route,
        numbers: impl IntoIterator<Item = usize>,
    ) -> Result<Self, crate::Error> {
        let poller = Poller::new().map_err(crate::Error::system("create a poller"))?;
        let waker =
            Waker::new(&poller, WAKER_TOKEN).map_err(crate::Error::system("create a waker"))?;
        let depth = (config.pipeline, config.multiget);
        let (mut connections, mut flows) = (Vec::new(), Vec::new());
        for number in numbers {
            match route {
                Route::Streams(endpoints, tls) => {
                    for endpoint in endpoints {
                        let token = connections.len() as u64;
                        let connection = Connection::open(
                            number,
                            endpoint,
                            tls.as_ref(),
                            depth,
                            &poller,
                            token,
                        )?;
                        connections.push(connection);
                    }
                }
                Route::Datagrams(addresses, datagrams_max) => {
                    let owner = number % addresses.len();
                    let link = Link::to(addresses[owner], *datagrams_max)?;
                    flows.push(Flow::new(link, owner, (config.pipeline, config.batch)));
                }
                Route::Xdp(attached) => {
                    let owner = number % attached.owners();
                    let longest = request_bytes_max(data);
                    let first = number - flows.len();
                    let queue = Queue::open(attached, (number, first), owner, longest)?;
                    let link = Link::Queue(Box::new(queue));
                    flows.push(Flow::new(link, owner, (config.pipeline, config.batch)));
                }
            }
        }
        for (token, flow) in (0..).zip(&flows) {
            poller
                .add(&flow.link, token, Interest::READ)
                .map_err(crate::Error::system("watch a socket"))?;
        }
        Ok(Self {
            index,
            core,
            waker: Arc::new(waker),
            events: Events::with_capacity(1024),
            shared: vec![0; SHARED_BUFFER_BYTES].into(),
            ready: VecDeque::with_capacity(connections.len()),
            dirty: Vec::with_capacity(connections.len()),
            connections,
            flows,
            poller,
        })
    }

    /// Replace connections that were left in the middle of something.
    pub(crate) fn renew(
        &mut self,
        config: &ClientConfig,
        route: &Route,
    ) -> Result<(), crate::Error> {
        let Route::Streams(endpoints, tls) = route else {
            return Ok(());
        };
        let depth = (config.pipeline, config.multiget);
        for (token, connection) in self.connections.iter_mut().enumerate() {
            if !connection.is_clean() {
                let number = connection.number;
                let endpoint = &endpoints[token % endpoints.len()];
                *connection = Connection::open(
                    number,
                    endpoint,
                    tls.as_ref(),
                    depth,
                    &self.poller,
                    token as u64,
                )?;
            }
        }
        Ok(())
    }

    /// Fetch what happened, after waiting for it at most `timeout`.
    pub(crate) fn poll(&mut self, timeout: Duration) -> io::Result<()> {
        self.poller.wait(&mut self.events, Some(timeout))?;
        Ok(())
    }
}
