//! What is asked of a server, and in which proportions.
use crate::random::Random;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// What a workload asks for; one of them is what throughput and latency count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Get the value of a key, or of `multiget` keys.
    Read,
    /// Overwrite the value of a key.
    Update,
    /// Write the value of a key that is new; over a sequential distribution, of the next key in order.
    Insert,
    /// Get a key and then set it: one operation of two requests.
    ReadModifyWrite,
    /// Push an element to the head of a list.
    Lpush,
    /// Pop an element from the head of a list.
    Lpop,
    /// Add a member with a random score to a sorted set.
    Zadd,
    /// Get the member with the least score from a sorted set.
    Zrange,
    /// Add a member to a set.
    Sadd,
}

impl Operation {
    /// All of them, in order.
    pub const ALL: [Self; 9] = [
        Self::Read,
        Self::Update,
        Self::Insert,
        Self::ReadModifyWrite,
        Self::Lpush,
        Self::Lpop,
        Self::Zadd,
        Self::Zrange,
        Self::Sadd,
    ];

    /// Its name in configurations and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::ReadModifyWrite => "read_modify_write",
            Self::Lpush => "lpush",
            Self::Lpop => "lpop",
            Self::Zadd => "zadd",
            Self::Zrange => "zrange",
            Self::Sadd => "sadd",
        }
    }

    /// Whether it is a command on one of Redis's data structures.
    #[must_use]
    pub fn needs_redis(self) -> bool {
        matches!(
            self,
            Self::Lpush | Self::Lpop | Self::Zadd | Self::Zrange | Self::Sadd
        )
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Draws operations in given proportions.
#[derive(Debug, Clone)]
pub(crate) struct Mix {
    /// Each operation with the threshold below which a uniform 64-bit number means it, ascending.
    thresholds: Vec<(u64, Operation)>,
    last: Operation,
}

impl Mix {
    /// `shares` add up to 1, as the configuration has checked.
    pub(crate) fn new(shares: &BTreeMap<Operation, f64>) -> Self {
        let positive: Vec<(Operation, f64)> = shares
            .iter()
            .map(|(&operation, &share)| (operation, share))
            .filter(|&(_, share)| share > 0.0)
            .collect();
        let last = positive.last().map_or(Operation::Read, |&(last, _)| last);
        let mut sum = 0.0;
        let thresholds = positive
            .iter()
            .take(positive.len().saturating_sub(1))
            .map(|&(operation, share)| {
                sum += share;
                ((sum * 2_f64.powi(64)) as u64, operation)
            })
            .collect();
        Self { thresholds, last }
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> Operation {
        if self.thresholds.is_empty() {
            return self.last;
        }
        let number = random.next();
        self.thresholds
            .iter()
            .find(|&&(threshold, _)| number < threshold)
            .map_or(self.last, |&(_, operation)| operation)
    }
}

#[cfg(test)]
mod tests;
