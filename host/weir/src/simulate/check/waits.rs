//! The waits that vendors told, and who keeps them.
//!
//! A wait binds from the moment at which its answer arrives. One that the host had no time to store before it died is
//! forgotten with it. Over a restart the host has nothing but its wall clock: a wait that is over by that clock is over.

use weir_rules::model::Timestamp;

use super::super::{Called, Moment};
use super::trail::relative;
use super::{Wrong, promise};
use crate::store::UnitId;

/// All waits that bind someone.
#[derive(Default)]
pub(super) struct Waits {
    told: Vec<Told>,
}

struct Told {
    vendor: usize,
    caller: String,
    /// The collection that it concerns; none: all of the vendor's.
    collection: Option<usize>,
    /// When its answer arrives.
    known: Timestamp,
    until: Timestamp,
    /// The same by the wall clock of the time at which it was told.
    until_by_wall: Timestamp,
    /// The boot that heard it.
    boot: u32,
    /// The unit that was told it, as long as nothing of it has been stored.
    unsealed: Option<UnitId>,
    /// The clock was set since.
    jumped: bool,
}

impl Waits {
    /// Nobody calls who was told to wait.
    pub(super) fn is_kept(&mut self, call: &Called<'_>, boot: u32) -> Result<(), Wrong> {
        let now = call.at.world;
        self.told.retain(|told| told.until > now);
        let concerned = self.told.iter().find(|told| {
            told.vendor == call.vendor
                && told.caller == call.served.caller
                && (told.collection.is_none() || told.collection == call.served.collection)
                && told.known < now
                && !(told.jumped && told.boot != boot && call.at.wall >= told.until_by_wall)
        });
        let Some(told) = concerned else {
            return Ok(());
        };
        let whom = match told.collection {
            Some(_) => "the unit was",
            None => "everyone with its credential was",
        };
        let who = call.unit.map(|(_, key)| key.to_string());
        Err((
            promise::WAITS,
            format!(
                "{} called {} before a wait was over that {whom} told {} earlier{}",
                who.unwrap_or_default(),
                relative(told.until - now),
                relative(now - told.known),
                if told.boot == boot {
                    ""
                } else {
                    ", before a restart"
                },
            ),
        ))
    }

    pub(super) fn told(&mut self, call: &Called<'_>, boot: u32) {
        let Some(told) = call.served.told else {
            return;
        };
        let collection = if told.all {
            None
        } else {
            call.served.collection
        };
        // An answer that takes longer than its wait binds nobody.
        if told.until <= call.answered {
            return;
        }
        self.told.push(Told {
            vendor: call.vendor,
            caller: call.served.caller.clone(),
            collection,
            known: call.answered,
            until: told.until,
            until_by_wall: call.at.wall + (told.until - call.at.world),
            boot,
            unsealed: call.unit.map(|(id, _)| id),
            jumped: false,
        });
    }

    /// Something of the unit was stored.
    pub(super) fn sealed(&mut self, unit: UnitId, at: Moment) {
        for told in &mut self.told {
            if told.unsealed == Some(unit) && told.known <= at.world {
                told.unsealed = None;
            }
        }
    }

    pub(super) fn died(&mut self, at: Moment) {
        self.told
            .retain(|told| told.unsealed.is_none() && told.known <= at.world);
    }

    pub(super) fn restarted(&mut self) {}

    pub(super) fn jumped(&mut self, ms: i64) {
        if ms > 0 {
            for told in &mut self.told {
                told.jumped = true;
            }
        }
    }
}
