//! Protocols from the outside, each test file a module: one program, so that it is linked once.

mod memcached_client;
mod memcached_server;
mod resp;
