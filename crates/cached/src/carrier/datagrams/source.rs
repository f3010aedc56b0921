use super::queue::Queue;
use super::{Buffers, ForwardedDatagram, Socket};
use crate::engine::Storage;
use crate::session::Tools;
use std::os::fd::{AsFd, BorrowedFd};

/// Where datagrams come to a worker.
pub(crate) enum Source {
    /// The kernel's UDP.
    Socket(Socket),
    /// AF_XDP.
    Queue(Box<Queue>),
}

impl Source {
    /// Serve what has arrived; datagrams for other workers are handed to `forward`.
    pub fn serve<S: Storage>(
        &mut self,
        tools: &mut Tools<'_, S>,
        buffers: &mut Buffers,
        forward: impl FnMut(usize, ForwardedDatagram),
    ) {
        match self {
            Self::Socket(socket) => socket.serve(tools, buffers, forward),
            Self::Queue(queue) => queue.serve(tools, &mut buffers.replies, forward),
        }
    }
}

impl AsFd for Source {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Socket(socket) => socket.0.as_fd(),
            Self::Queue(queue) => queue.as_fd(),
        }
    }
}
