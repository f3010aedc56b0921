//! How bytes get there: non-blocking sockets and epoll.
