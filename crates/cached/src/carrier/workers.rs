//! All workers of a server, each with what its options and access mode give it.

use super::datagrams::Source;
use super::epoll::{Epoll, WAKE};
use super::error::Error;
use super::inbox::Inbox;
use super::ring::{RingCarrier, ring};
use super::worker::{Post, Serve, Shared, Worker};
use crate::engine::Storage;
use crate::engine::storage::{Concurrent, Owned, SharedPartitions};
use crate::options::{Access, Transport};
use mica::{Hasher, Partition, Reader};
use net::{Poller, Ring, Waker};
use std::sync::Arc;

/// What a worker waits by.
enum Waiting {
    Epoll(Poller),
    IoUring(Box<Ring>),
}

pub(crate) type WorkerAndInbox = (Box<dyn Serve>, Inbox);

/// The workers that the options ask for, each with its inbox. Where all share the storage, each has all `partitions`;
/// elsewhere the first have the first ones. `sources` has what brings datagrams to each.
pub(crate) fn workers(
    shared: &Arc<Shared>,
    hasher: &Hasher,
    mut partitions: Vec<Partition>,
    sources: Vec<Vec<Source>>,
) -> Result<Vec<WorkerAndInbox>, Error> {
    let options = &shared.state.options;
    let workers = options.threads;
    let mut inboxes = Vec::with_capacity(workers);
    let mut posts = Vec::with_capacity(workers);
    for (index, sources) in sources.into_iter().enumerate() {
        let (waiting, waker) = waiting(options.transport)?;
        let waker = Arc::new(waker);
        let (inbox, messages) = Inbox::new(Arc::clone(&waker));
        inboxes.push(inbox);
        posts.push((index, waker, messages, waiting, sources));
    }
    let inboxes: Arc<[Inbox]> = inboxes.into();
    let posts = posts.into_iter();
    let posts = posts.map(|(index, waker, inbox, waiting, sources)| {
        let post = Post {
            index,
            waker,
            inbox,
            inboxes: Arc::clone(&inboxes),
            shared: Arc::clone(shared),
        };
        (post, waiting, sources)
    });
    if workers > 1 && options.parts() == 1 {
        let storage = SharedPartitions::new(hasher.clone(), partitions);
        let all = posts.map(|post| worker(post, storage.clone(), &inboxes));
        return Ok(all.zip(inboxes.iter().cloned()).collect());
    }
    let share = partitions.len() / workers;
    let readers: Arc<[Box<[Reader]>]> = partitions
        .chunks(share)
        .map(|own| own.iter().filter_map(Partition::reader).collect())
        .collect();
    let all = posts.map(|post| {
        let own = partitions.drain(..share).collect();
        let own = Owned::new(hasher.clone(), own, post.0.index, workers);
        if workers > 1 && options.access == Access::Crew {
            worker(post, Concurrent::new(own, Arc::clone(&readers)), &inboxes)
        } else {
            worker(post, own, &inboxes)
        }
    });
    Ok(all.zip(inboxes.iter().cloned()).collect())
}

/// What a worker is to wait by, and what wakes it.
fn waiting(transport: Transport) -> Result<(Waiting, Waker), Error> {
    let system = |what| move |error| Error::System(what, error);
    if transport == Transport::IoUring {
        let mut ring = ring()?;
        let waker = Waker::for_ring(&mut ring).map_err(system("make an eventfd"))?;
        return Ok((Waiting::IoUring(Box::new(ring)), waker));
    }
    let poller = Poller::new().map_err(system("make an epoll instance"))?;
    let waker = Waker::new(&poller, WAKE).map_err(system("make an eventfd"))?;
    Ok((Waiting::Epoll(poller), waker))
}

fn worker<S: Storage + Send + 'static>(
    (post, waiting, sources): (Post, Waiting, Vec<Source>),
    storage: S,
    inboxes: &Arc<[Inbox]>,
) -> Box<dyn Serve> {
    match waiting {
        Waiting::Epoll(poller) => {
            let carrier = Epoll::new(poller, sources, Arc::clone(inboxes));
            Box::new(Worker::new(post, storage, carrier))
        }
        Waiting::IoUring(ring) => Box::new(Worker::new(post, storage, RingCarrier::new(*ring))),
    }
}
