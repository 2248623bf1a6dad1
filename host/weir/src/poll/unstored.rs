//! Polls that left nothing behind: not made, or not stored.

use std::time::Duration;

use weir_rules::model::Class;
use weir_rules::unit::{Last, Parked};

use super::{Outcome, Report};
use crate::host::Host;
use crate::schedule::StoreFails;
use crate::store::{
    Conclusion, PollRow, ReviewEntry, ReviewId, ReviewKind, StoreError, UnitKey, UnitRow,
};

pub(super) fn skipped(row: UnitRow, why: &str) -> Report {
    Report {
        unit: Some(row.key),
        message: Some(why.to_owned()),
        ..Report::default()
    }
}

pub(super) fn store_failed(host: &Host, key: Option<&UnitKey>, error: &StoreError) -> Report {
    let unit = key.map(tracing::field::display);
    host.meters.not_stored();
    let now = host.clock.monotonic();
    let StoreFails { is_news, pause } = host.scheduler.store_fails(error, now);
    if is_news {
        tracing::error!(unit, %error, "poll not stored; it is made again until it can be");
    } else {
        tracing::debug!(unit, %error, "poll not stored");
    }
    Report {
        unit: key.cloned(),
        outcome: Outcome::Failed,
        message: Some(error.to_string()),
        due: Some(host.clock.wall().saturating_add(ms(pause))),
        ..Report::default()
    }
}

/// A page did not get into the store. Where that is for the number of records, waiting does not mend it.
pub(super) async fn not_stored(host: &Host, row: PollRow, error: StoreError) -> Report {
    if !matches!(error, StoreError::TooManyRecords { .. }) {
        return store_failed(host, Some(&row.key), &error);
    }
    let now = host.clock.wall();
    let (class, code) = (Class::Permanent, "dedup.max".to_owned());
    let message = error.to_string();
    tracing::error!(unit = %row.key, message, "the unit is parked");
    let id = ReviewId {
        unit: row.unit,
        kind: ReviewKind::Parked,
        number: 0,
    };
    let entry = ReviewEntry {
        id,
        key: row.key.clone(),
        first: now,
        last: now,
        times: 1,
        class: Some(class),
        code: code.clone(),
        message: message.clone(),
        answer: None,
        record: None,
        dropped: false,
    };
    let report = Report {
        unit: Some(row.key.clone()),
        outcome: Outcome::Parked,
        class: Some(class),
        message: Some(message.clone()),
        ..Report::default()
    };
    let (unit, key) = (row.unit, row.key.clone());
    let row = PollRow {
        ended: now,
        outcome: Outcome::Parked.name().to_owned(),
        class: Some(class),
        code: Some(code.clone()),
        message: Some(message.clone()),
        why: message.clone(),
        ..row
    };
    let parked = host.store.update_unit(
        unit,
        Box::new(move |mut state| {
            state.last = Some(Last {
                ended: now,
                outcome: row.outcome.clone(),
                message: Some(message.clone()),
                unkept: None,
            });
            state.parked = Some(Parked {
                since: now,
                class,
                code,
                message,
                given_up: false,
            });
            Conclusion {
                state,
                due: Some(None),
                poll: Some(row),
                review: vec![(id, Some(Box::new(entry)))],
                ..Conclusion::default()
            }
        }),
    );
    match parked.await.unwrap_or(Err(StoreError::Closed)) {
        Ok(()) => report,
        Err(error) => store_failed(host, Some(&key), &error),
    }
}

pub(super) fn ms(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}
