//! Forgetting the records that need not be known any longer.

use weir_rules::model::{CursorKind, Timestamp};

use super::Job;
use crate::connection::Stream;
use crate::host::Host;
use crate::store::{Conclusion, StoreError, UnitRow};

/// How often records are looked through that may be forgotten: this part of the time that they are kept, and never more
/// often than this many ms.
const SWEEPS_PER_RETAIN: u64 = 8;

const SWEEP_PAUSE: u64 = 3_600_000;

/// Records that are looked at in one transaction.
const SWEPT_AT_ONCE: usize = 10_000;

/// Forgets what `dedup.retain` does not ask to be kept, and no poll will read again: what lies so far before the newest
/// record that neither the overlap nor the settle pass reaches it.
pub(super) async fn sweep(host: &Host, job: &Job, stream: &Stream) {
    let Some(retain) = stream.dedup.retain else {
        return;
    };
    let Ok(Some(UnitRow { state, key, .. })) = host.store.unit(job.unit) else {
        return;
    };
    let now = host.clock.wall();
    let pause = (retain / SWEEPS_PER_RETAIN).max(SWEEP_PAUSE);
    let lately = |at: Timestamp| now < at.saturating_add_unsigned(pause) && at <= now;
    if !state.synced || state.swept.is_some_and(lately) {
        return;
    }
    let settings = &stream.settings;
    let newest = match settings.stream.cursor {
        CursorKind::Timestamp => state.watermark,
        CursorKind::Opaque => Some(now),
        CursorKind::Snapshot => None,
    };
    let Some(newest) = newest else { return };
    let read_again = state
        .overlap(settings)
        .saturating_mul(2)
        .saturating_add(settings.stream.settle.unwrap_or(0));
    let before = newest
        .min(now)
        .saturating_sub_unsigned(retain.max(read_again));
    let (mut after, mut forgotten) = (None, 0);
    loop {
        let slice = host
            .store
            .forget_older(job.unit, before, after, SWEPT_AT_ONCE);
        match slice.await.unwrap_or(Err(StoreError::Closed)) {
            Ok(swept) => {
                forgotten += swept.forgotten;
                after = swept.next;
            }
            // The next good poll tries again.
            Err(error) => return tracing::debug!(unit = %key, %error, "nothing was forgotten"),
        }
        host.scheduler.heartbeat(job, host.clock.monotonic());
        if after.is_none() || host.stop.stopped() {
            break;
        }
    }
    tracing::debug!(unit = %key, forgotten, "records that are not read again were forgotten");
    drop(host.store.update_unit(
        job.unit,
        Box::new(move |mut state| {
            state.swept = Some(now);
            Conclusion {
                state,
                ..Conclusion::default()
            }
        }),
    ));
}
