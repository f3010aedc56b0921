//! Load by datagrams, in a closed loop: so many datagrams are on their way all the time, each with one request in
//! memcached's frame, or with many. What is not answered in time is lost, which counts as an error.

mod flow;
mod run;

pub(crate) use flow::{Flow, SLOTS_MAX};
pub(crate) use run::Run;
