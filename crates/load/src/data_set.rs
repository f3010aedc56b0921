//! The keys and values of a client, and what was written of them: shared by its workers, kept across phases.
use crate::Error;
use crate::config::ClientConfig;
use crate::key_space::KeySpace;
use crate::keys::{KeyFormat, KeyKind};
use crate::ledger::Ledger;
use crate::sizes::Sizes;
use crate::values::Values;
use wire::memcached::client::Attributes;

#[derive(Debug)]
pub(crate) struct DataSet {
    pub(crate) keys: KeyFormat,
    pub(crate) values: Values,
    /// What every item is given beside its value.
    pub(crate) attributes: Attributes,
    pub(crate) space: KeySpace,
    /// Absent when nothing is to be verified.
    pub(crate) ledger: Option<Ledger>,
}

impl DataSet {
    pub(crate) fn new(config: &ClientConfig) -> Result<Self, Error> {
        let ClientConfig { keys, seed, .. } = config;
        if config.verify {
            check_memory(keys.count)?;
        }
        Ok(Self {
            keys: KeyFormat::new(keys, *seed)?,
            values: Values::new(Sizes::values(config.values, *seed), *seed),
            attributes: config.attributes(),
            space: KeySpace::new(keys.count, config.connections * config.pipeline),
            ledger: config.verify.then(|| Ledger::new(keys.count)),
        })
    }

    /// The version to write to `id`.
    #[inline]
    pub(crate) fn begin_write(&self, id: u64) -> u64 {
        self.ledger
            .as_ref()
            .map_or(1, |ledger| ledger.begin_write(id))
    }

    /// The write of `id` was answered.
    #[inline]
    pub(crate) fn end_write(&self, id: u64, refused: bool) {
        match &self.ledger {
            Some(ledger) if refused => ledger.abandon_write(id),
            Some(ledger) => ledger.end_write(id),
            None => {}
        }
    }

    /// The write of `id` was given up before it was answered.
    pub(crate) fn lose_write(&self, id: u64) {
        if let Some(ledger) = &self.ledger {
            ledger.lose_write(id);
        }
    }

    /// Check what a read of key `id` saw, its flags as far as the answer tells them: one sentence when it is wrong.
    #[inline]
    pub(crate) fn check_value(
        &self,
        (id, floor): (u64, u64),
        flags: Option<u32>,
        value: &[u8],
    ) -> Result<(), String> {
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        let written = self.attributes.flags;
        if let Some(flags) = flags.filter(|&flags| flags != written) {
            let wrong = format_args!("has the flags {flags} where {written} were written");
            return Err(self.sentence(KeyKind::User, id, &wrong));
        }
        let version = self
            .values
            .check(id, value)
            .map_err(|wrong| self.sentence(KeyKind::User, id, &wrong))?;
        if self.values.has_version(id) {
            ledger
                .check(id, floor, version)
                .map_err(|wrong| self.sentence(KeyKind::User, id, &wrong))?;
        }
        Ok(())
    }

    /// Check an element of a list or a member of a sorted set: a sentence when it is wrong. Their versions are
    /// numbers below `variants`.
    pub(crate) fn check_element(
        &self,
        kind: KeyKind,
        id: u64,
        variants: u64,
        value: &[u8],
    ) -> Result<(), String> {
        if self.ledger.is_none() {
            return Ok(());
        }
        match self.values.check(id, value) {
            Ok(version) if version < variants => Ok(()),
            Ok(version) => {
                let wrong = format!("has version {version}, which was never written");
                Err(self.sentence(kind, id, &wrong))
            }
            Err(wrong) => Err(self.sentence(kind, id, &wrong)),
        }
    }

    #[cold]
    fn sentence(&self, kind: KeyKind, id: u64, wrong: &dyn std::fmt::Display) -> String {
        format!("the value of key {} {wrong}", self.keys.text(kind, id))
    }
}

/// Refuse more keys than this host has memory to remember the versions of.
fn check_memory(keys: u64) -> Result<(), Error> {
    let system = rustix::system::sysinfo();
    let half = system.totalram as u64 * u64::from(system.mem_unit) / 2;
    let needed = keys.saturating_mul(Ledger::BYTES_PER_KEY);
    if needed > half {
        return Err(Error::Config(format!(
            "to verify {keys} keys takes {needed} bytes of memory, more than half of this host's; lower keys.count or \
             do not verify"
        )));
    }
    Ok(())
}
