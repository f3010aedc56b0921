//! Threads that take something of a core beside whatever else runs on it, until they are told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use crate::team::pin_to;
use crate::{Error, Result};

/// One thread a core, pinned, each with a `State` that others may read meanwhile.
#[derive(Debug)]
pub(crate) struct Attendants<State> {
    stop: Arc<AtomicBool>,
    states: Arc<Vec<State>>,
    threads: Vec<JoinHandle<()>>,
}

impl<State: Default + Send + Sync + 'static> Attendants<State> {
    /// Starts `NAME-CORE` for each of `cores`; returns when all of them are where they belong and `prepare` went well
    /// in each. `take` is what they do, until its flag is raised.
    ///
    /// # Errors
    /// [`Error::Core`] when a core may not be used, [`Error::Thread`] when a thread cannot be started, and what
    /// `prepare` returns.
    pub fn start(
        name: &str,
        cores: &[usize],
        prepare: fn() -> Result<()>,
        take: fn(&State, &AtomicBool),
    ) -> Result<Self> {
        // Whatever fails, dropping it ends the threads that were started.
        let mut attendants = Self {
            stop: Arc::default(),
            states: Arc::new(cores.iter().map(|_| State::default()).collect()),
            threads: Vec::with_capacity(cores.len()),
        };
        let (ready, begun) = mpsc::channel();
        for (place, &core) in cores.iter().enumerate() {
            let (stop, states, ready) = (
                Arc::clone(&attendants.stop),
                Arc::clone(&attendants.states),
                ready.clone(),
            );
            let thread = thread::Builder::new()
                .name(format!("{name}-{core}"))
                .spawn(move || {
                    let prepared = pin_to(core).and_then(|()| prepare());
                    let is_prepared = prepared.is_ok();
                    // Whoever waits for the word may have gone because another thread failed.
                    let _ = ready.send(prepared);
                    // The channel ends, for who waits, when every thread has let go of it.
                    drop(ready);
                    if is_prepared {
                        take(&states[place], &stop);
                    }
                })
                .map_err(|source| Error::Thread { core, source })?;
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
