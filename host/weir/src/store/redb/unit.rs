//! A unit's row: a head that the store itself works with, then the rules' state in JSON.

use weir_rules::model::Timestamp;
use weir_rules::unit::UnitState;

use super::trouble::{Outcome, Trouble};

const HEAD_LEN: usize = 1 + 8 + 4 + 4 + 8;

/// What the store needs to know of a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// When it is due.
    pub(super) due: Option<Timestamp>,
    /// Polls that are kept.
    pub(super) polls: u32,
    /// Records of an earlier epoch are forgotten.
    pub(super) epoch: u32,
    /// Records of this epoch, deleted ones included.
    pub(super) records: u64,
    /// The highest revision that was forgotten: records that come anew begin above it.
    pub(super) floor: u32,
}

/// The first byte of a row: the unit is due.
const DUE: u8 = 1;
/// The first byte of a row: a floor follows the head.
const FLOOR: u8 = 2;

impl Head {
    /// The whole row.
    pub(super) fn row(&self, state: &UnitState) -> Outcome<Vec<u8>> {
        let mut row = Vec::with_capacity(HEAD_LEN + 256);
        self.write(&mut row);
        serde_json::to_writer(&mut row, state)?;
        Ok(row)
    }

    /// The whole row again, with the JSON as it was.
    pub(super) fn before(&self, state: &[u8]) -> Vec<u8> {
        let mut row = Vec::with_capacity(HEAD_LEN + state.len());
        self.write(&mut row);
        row.extend_from_slice(state);
        row
    }

    fn write(&self, row: &mut Vec<u8>) {
        let due = if self.due.is_some() { DUE } else { 0 };
        row.push(due | if self.floor > 0 { FLOOR } else { 0 });
        row.extend_from_slice(&self.due.unwrap_or_default().to_be_bytes());
        row.extend_from_slice(&self.polls.to_be_bytes());
        row.extend_from_slice(&self.epoch.to_be_bytes());
        row.extend_from_slice(&self.records.to_be_bytes());
        if self.floor > 0 {
            row.extend_from_slice(&self.floor.to_be_bytes());
        }
    }

    /// The head of a row, and the JSON behind it.
    pub(super) fn split(row: &[u8]) -> Outcome<(Self, &[u8])> {
        Self::try_split(row).ok_or_else(|| Trouble::Row("a unit's row is too short".into()))
    }

    fn try_split(row: &[u8]) -> Option<(Self, &[u8])> {
        let ([flags], row) = row.split_first_chunk::<1>()?;
        let (due, row) = row.split_first_chunk()?;
        let (polls, row) = row.split_first_chunk()?;
        let (epoch, row) = row.split_first_chunk()?;
        let (records, row) = row.split_first_chunk()?;
        let (floor, state) = match flags & FLOOR {
            0 => (&[0; 4], row),
            _ => row.split_first_chunk()?,
        };
        let head = Head {
            due: (flags & DUE != 0).then(|| Timestamp::from_be_bytes(*due)),
            polls: u32::from_be_bytes(*polls),
            epoch: u32::from_be_bytes(*epoch),
            records: u64::from_be_bytes(*records),
            floor: u32::from_be_bytes(*floor),
        };
        Some((head, state))
    }
}
