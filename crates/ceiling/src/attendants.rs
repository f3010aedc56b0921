//! Threads that take something of a core beside whatever else runs on it, until they are told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use crate::team::pin_to;
use crate::{Error, Result};

/// One thread a core, pinned, each with a `State` that others may read meanwhile.
#[derive(Debug)]
pub struct Attendants<State> {
    stop: Arc<AtomicBool>,
    states: Arc<Vec<State>>,
    threads: Vec<JoinHandle<()>>,
}

impl<State: Default + Send + Sync + 'static> Attendants<State> {
    /// Starts `NAME-CORE` for each of `cores`; returns when all of them are where they belong and `prepare` went well
    /// in each. `take` is what they do with what that returned, until its flag is raised.
    pub fn start<Own>(
        name: &str,
        cores: &[usize],
        prepare: impl Fn() -> Result<Own> + Clone + Send + 'static,
        take: impl Fn(Own, &State, &AtomicBool) + Clone + Send + 'static,
    ) -> Result<Self> {
        // Whatever fails, dropping it ends the threads that were started.
        let mut attendants = Self {
            stop: Arc::default(),
            states: Arc::new(cores.iter().map(|_| State::default()).collect()),
            threads: Vec::with_capacity(cores.len()),
        };
        let (ready, begun) = mpsc::channel();
        for (place, &core) in cores.iter().enumerate() {
            let (prepare, take, ready) = (prepare.clone(), take.clone(), ready.clone());
            let (stop, states) = (Arc::clone(&attendants.stop), Arc::clone(&attendants.states));
            let thread = thread::Builder::new()
                .name(format!("{name}-{core}"))
                .spawn(move || {
                    let (prepared, own) = match pin_to(core).and_then(|()| prepare()) {
                        Ok(own) => (Ok(()), Some(own)),
                        Err(error) => (Err(error), None),
                    };
                    // Whoever waits for the word may have gone because another thread failed.
                    let _ = ready.send(prepared);
                    // The channel ends, for who waits, when every thread has let go of it.
                    drop(ready);
                    if let Some(own) = own {
                        take(own, &states[place], &stop);
                    }
                })
                .map_err(Error::thread(core))?;
            attendants.threads.push(thread);
        }
        drop(ready);
        for prepared in begun {
            prepared?;
        }
        Ok(attendants)
    }
}

impl<State> Attendants<State> {
    /// One a core, in the order in which the cores were given.
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// Ends the threads. Idempotent.
    pub fn stop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended all the same.
            let _ = thread.join();
        }
    }
}

impl<State> Drop for Attendants<State> {
    fn drop(&mut self) {
        self.stop();
    }
}
