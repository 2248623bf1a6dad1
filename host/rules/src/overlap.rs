//! How far before the watermark a window begins: sized from how late records really become visible.
//!
//! Each record's lag is what passed between its own stamp and the moment it was first seen. The overlap is twice
//! the 99th percentile of the recent lags, between a floor and a ceiling; until enough lags are known it is
//! two minutes. A constant would lose records at a slow vendor and fetch too much from a quick one.
//!
//! The lags of backfills and first syncs are ages, not lags, and don't count; nor does the time during which
//! this host did not ask. A lag is measured by the vendor's clock alone ([`measured`]): the stamp is the vendor's, and the
//! moment of seeing it is our time put right by what the vendor's `Date` says. While that is not known, no lag counts for
//! less than what gives the overlap that is safe without a history.
//!
//! The history is two log-scaled histograms that take turns, so that a bad day is forgotten; counts are kept for buckets
//! in use alone, a few hundred bytes a unit. It is a histogram of our own since it is stored with every unit and written
//! with every page: a general sketch as a library keeps it (DDSketch: 672 to 2,172 bytes of JSON for histories that take
//! less than 600 here) is larger, has floating-point bounds, and an empty one does not come back from its JSON. Merging is
//! adding, as in those.

use serde::{Deserialize, Serialize};

use crate::model::{Duration, Reason, Timestamp};

/// The bounds of a unit's overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overlap {
    /// Never less, however quick the vendor: its writers' clocks differ. In ms.
    pub floor: Duration,
    /// What is used until there are `samples` lags, in ms.
    pub initial: Duration,
    /// Never more, in ms: what comes later is the settle pass's part.
    pub max: Duration,
    /// How many lags make a history.
    pub samples: u64,
}

impl Default for Overlap {
    fn default() -> Self {
        Overlap {
            floor: 30_000,
            initial: 120_000,
            max: 86_400_000,
            samples: 50,
        }
    }
}

/// Lags after which a histogram is full, once it is also [`TURN`] old.
const FULL: u64 = 1_000;
/// How long a histogram collects at least, in ms: one burst must not replace a week's history.
const TURN: i64 = 86_400_000;

/// A measured settle time is never shorter, in ms: second looks are to be rare.
const SETTLE_FLOOR: Duration = 3_600_000;

/// The recent lags of one unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lags {
    recent: Histogram,
    older: Histogram,
    recent_since: Option<Timestamp>,
}

/// Whether what a poll finds tells how late the vendor is.
///
/// A settle pass does: what it finds new was missed by every poll before. A backfill, a resync, a first
/// sync and a slice of a catch-up find old records for reasons of ours.
pub fn counts(reason: Reason, first_sync: bool, catching_up: bool) -> bool {
    match reason {
        Reason::Schedule | Reason::SyncNow => !first_sync && !catching_up,
        Reason::Settle => true,
        Reason::Backfill | Reason::Resync => false,
    }
}

/// What was measured, in the vendor's time.
///
/// `lags` are `seen - updated_at` with `seen` by our clock, `skew` is vendor minus host, all in ms. Without it each lag
/// counts for at least half of the overlap that is used without a history, after `away` has been taken off: a host whose
/// clock is slow would measure no lags at all, and choose an overlap that loses records.
pub fn measured(lags: &[i64], skew: Option<i64>, away: Duration, config: &Overlap) -> Vec<i64> {
    let safe = config.initial.div_ceil(2).saturating_add(away);
    let safe = i64::try_from(safe).unwrap_or(i64::MAX);
    let lag = |lag: &i64| match skew {
        Some(skew) => lag.saturating_add(skew),
        None => (*lag).max(safe),
    };
    lags.iter().map(lag).collect()
}

impl Lags {
    /// Takes in `seen - updated_at` of records that were new or changed, in ms.
    ///
    /// `away` is how much longer than its interval the unit was not asked (the host was down, the vendor made it
    /// wait); 0 in ordinary times. It is taken off each lag. A stamp ahead of our clock is a lag of 0.
    pub fn observe(&mut self, lags: &[i64], away: Duration, now: Timestamp) {
        if lags.is_empty() {
            return;
        }
        let since = *self.recent_since.get_or_insert(now);
        if self.recent.total() >= FULL && now.saturating_sub(since) >= TURN {
            self.older = std::mem::take(&mut self.recent);
            self.recent_since = Some(now);
        }
        for lag in lags {
            let lag = u64::try_from(*lag).unwrap_or(0).saturating_sub(away);
            self.recent.add(lag);
        }
    }

    /// Takes in another unit's lags: partitions of one stream lag alike.
    pub fn merge(&mut self, other: &Lags) {
        self.recent.merge(&other.recent);
        self.older.merge(&other.older);
        self.recent_since = self.recent_since.max(other.recent_since);
    }

    /// How many lags are known.
    pub fn count(&self) -> u64 {
        self.recent.total().saturating_add(self.older.total())
    }

    /// The lag that 99 of 100 records don't pass, in ms; rounded up by at most an eighth. None without history.
    pub fn p99(&self) -> Option<Duration> {
        quantile(&self.recent, &self.older, 99, 100)
    }

    /// The longest lag of the recent past, in ms; rounded up by at most an eighth.
    pub fn longest(&self) -> Option<Duration> {
        let last = |histogram: &Histogram| histogram.buckets.last().map(|(key, _)| *key);
        let longest = last(&self.recent).max(last(&self.older))?;
        Some(upper(longest).saturating_mul(1_000))
    }

    /// How late a record may become visible, as far as measured, in ms: twice the longest lag, where the overlap does not
    /// reach that far. None while there is no history, and where the overlap sees everything: then a second look finds
    /// nothing.
    pub fn settle(&self, overlap: Duration, config: &Overlap) -> Option<Duration> {
        let longest = self.longest().filter(|_| self.count() >= config.samples)?;
        (longest > overlap).then(|| longest.saturating_mul(2).max(SETTLE_FLOOR))
    }

    /// The overlap in ms.
    pub fn overlap(&self, config: &Overlap) -> Duration {
        let wanted = match self.p99() {
            Some(p99) if self.count() >= config.samples => p99.saturating_mul(2),
            _ => config.initial,
        };
        // A floor above the ceiling is a floor: losing nothing comes first.
        wanted.min(config.max).max(config.floor)
    }
}

/// Counts per bucket of seconds. Up to eight seconds each second has its own; above, each power of two has
/// eight, so a bucket's upper bound is at most an eighth above what was put in.
///
/// The key is integer arithmetic: the same lags give the same overlap on every machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct Histogram {
    /// (bucket, count), sorted by bucket, no count is 0.
    buckets: Vec<(u16, u32)>,
}

/// Lags above this are counted as this, in s: 30 days.
const LONGEST: u64 = 2_592_000;

impl Histogram {
    fn add(&mut self, lag: Duration) {
        self.add_many(bucket(lag.div_ceil(1_000).min(LONGEST)), 1);
    }

    fn add_many(&mut self, key: u16, count: u32) {
        match self.buckets.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => {
                if let Some((_, have)) = self.buckets.get_mut(at) {
                    *have = have.saturating_add(count);
                }
            }
            Err(at) => self.buckets.insert(at, (key, count)),
        }
    }

    fn merge(&mut self, other: &Histogram) {
        for (key, count) in &other.buckets {
            self.add_many(*key, *count);
        }
    }

    fn total(&self) -> u64 {
        self.buckets
            .iter()
            .map(|(_, count)| u64::from(*count))
            .sum()
    }
}

/// The upper bound in ms of the bucket in which the quantile `numerator / denominator` of both lies.
fn quantile(a: &Histogram, b: &Histogram, numerator: u64, denominator: u64) -> Option<Duration> {
    let total = a.total().saturating_add(b.total());
    let rank = total.saturating_mul(numerator).div_ceil(denominator);
    let (mut a, mut b) = (a.buckets.iter().peekable(), b.buckets.iter().peekable());
    let mut below = 0_u64;
    loop {
        let from_a = match (a.peek(), b.peek()) {
            (Some((one, _)), Some((other, _))) => one <= other,
            (one, _) => one.is_some(),
        };
        let (key, count) = if from_a { a.next() } else { b.next() }?;
        below = below.saturating_add(u64::from(*count));
        if below >= rank {
            return Some(upper(*key).saturating_mul(1_000));
        }
    }
}

/// Bits of a value that its bucket keeps besides the leading one.
const BITS: u32 = 3;

fn bucket(seconds: u64) -> u16 {
    let below = 1_u64 << BITS;
    if seconds < below {
        return u16::try_from(seconds).unwrap_or(0);
    }
    let shift = seconds.ilog2() - BITS;
    let key = u64::from(shift + 1) * below + (seconds >> shift) - below;
    u16::try_from(key).unwrap_or(u16::MAX)
}

/// The largest number of seconds in a bucket.
fn upper(key: u16) -> u64 {
    let below = 1_u64 << BITS;
    let key = u64::from(key);
    if key < below {
        return key;
    }
    let shift = (key / below - 1).min(u64::from(63 - BITS));
    let first = key % below + below;
    ((first + 1) << shift).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: i64 = 86_400_000;

    #[test]
    fn two_minutes_until_there_is_a_history() {
        let mut lags = Lags::default();
        assert_eq!(lags.overlap(&Overlap::default()), 120_000);
        lags.observe(&[1_000; 49], 0, 0);
        assert_eq!(lags.overlap(&Overlap::default()), 120_000);
        lags.observe(&[1_000], 0, 0);
        assert_eq!(lags.overlap(&Overlap::default()), 30_000, "the floor");
    }

    #[test]
    fn twice_the_99th_percentile() {
        let mut lags = Lags::default();
        lags.observe(&[2_000; 980], 0, 0);
        lags.observe(&[40_000; 20], 0, 0);
        let p99 = lags.p99().unwrap();
        assert!((40_000..=45_000).contains(&p99), "{p99}");
        assert_eq!(lags.overlap(&Overlap::default()), 2 * p99);
        // One in two hundred is beyond the percentile.
        let mut rare = Lags::default();
        rare.observe(&[2_000; 995], 0, 0);
        rare.observe(&[3_600_000; 5], 0, 0);
        assert_eq!(rare.p99(), Some(2_000));
    }

    #[test]
    fn backfills_first_syncs_and_catch_ups_do_not_count() {
        assert!(counts(Reason::Schedule, false, false));
        assert!(counts(Reason::SyncNow, false, false));
        assert!(counts(Reason::Settle, false, false));
        assert!(!counts(Reason::Schedule, true, false));
        assert!(!counts(Reason::Schedule, false, true));
        assert!(!counts(Reason::Backfill, false, false));
        assert!(!counts(Reason::Resync, false, false));
    }

    #[test]
    fn an_outage_of_ours_is_not_the_vendors_lag() {
        let mut lags = Lags::default();
        lags.observe(&[6 * 3_600_000 + 2_000; 100], 6 * 3_600_000, 0);
        assert_eq!(lags.p99(), Some(2_000));
    }

    #[test]
    fn a_stamp_ahead_of_our_clock_is_no_lag() {
        let mut lags = Lags::default();
        lags.observe(&[-5_000, i64::MIN], 0, 0);
        assert_eq!(lags.p99(), Some(0));
    }

    #[test]
    fn without_the_vendors_clock_no_lag_makes_the_overlap_smaller_than_without_a_history() {
        let config = Overlap::default();
        let mut lags = Lags::default();
        let measured = measured(&[-90_000, 0, 2_000, i64::MIN], None, 6 * 3_600_000, &config);
        for _ in 0..50 {
            lags.observe(&measured, 6 * 3_600_000, 0);
        }
        assert!((120_000..=135_000).contains(&lags.overlap(&config)));
    }

    #[test]
    fn a_bad_day_is_forgotten_but_not_for_one_burst() {
        let mut lags = Lags::default();
        lags.observe(&[600_000; 1_000], 0, 0);
        for hour in 1..=5 {
            lags.observe(&[1_000; 1_000], 0, hour * DAY / 24);
        }
        assert!(
            lags.p99() >= Some(600_000),
            "bursts within the day replace nothing"
        );
        for day in 1..=2 {
            lags.observe(&[1_000; 1_000], 0, day * DAY);
        }
        assert_eq!(lags.p99(), Some(1_000));
    }

    #[test]
    fn what_a_settle_pass_finds_enlarges_the_overlap() {
        let mut lags = Lags::default();
        lags.observe(&[1_000; 200], 0, 0);
        let before = lags.overlap(&Overlap::default());
        lags.observe(&[3_600_000; 5], 0, 0);
        assert!(lags.overlap(&Overlap::default()) > before);
    }

    #[test]
    fn a_second_look_is_worth_it_where_the_overlap_is_shorter_than_the_longest_lag() {
        let config = Overlap::default();
        let mut lags = Lags::default();
        lags.observe(&[1_000; 199], 0, 0);
        assert_eq!(lags.settle(lags.overlap(&config), &config), None);
        // One in two hundred does not move the overlap.
        lags.observe(&[3 * 3_600_000], 0, 0);
        assert_eq!(lags.overlap(&config), 30_000);
        let settle = lags.settle(30_000, &config).unwrap();
        assert!((6 * 3_600_000..8 * 3_600_000).contains(&settle), "{settle}");
        assert_eq!(Lags::default().settle(0, &config), None);
    }

    #[test]
    fn the_stored_form_is_small_and_bounded() {
        let mut usual = Lags::default();
        let lags: Vec<i64> = (0..100_000).map(|n| n % 60_000).collect();
        usual.observe(&lags, 0, 0);
        let text = serde_json::to_string(&usual).unwrap();
        assert!(text.len() < 600, "{} bytes: {text}", text.len());
        assert_eq!(serde_json::from_str::<Lags>(&text).unwrap(), usual);

        let mut worst = Lags::default();
        for turn in 0..3 {
            let lags: Vec<i64> = (0..3_000_000).map(|s| s * 1_000).collect();
            worst.observe(&lags, 0, turn * DAY);
        }
        let text = serde_json::to_string(&worst).unwrap();
        assert!(text.len() < 5_000, "{} bytes", text.len());
    }

    #[test]
    fn an_empty_history_reads_back() {
        let text = serde_json::to_string(&Lags::default()).unwrap();
        assert_eq!(
            serde_json::from_str::<Lags>(&text).unwrap(),
            Lags::default()
        );
        assert_eq!(serde_json::from_str::<Lags>("{}").unwrap(), Lags::default());
    }

    proptest! {
        #[test]
        fn the_overlap_is_the_same_whatever_our_clock_says(
            late in prop::collection::vec(0_i64..3_600_000, 50..200),
            skew in -86_400_000_i64..86_400_000,
            away in 0_u64..3_600_000,
        ) {
            let config = Overlap::default();
            let (mut right, mut skewed, mut unknown) = (Lags::default(), Lags::default(), Lags::default());
            right.observe(&late, away, 0);
            // The vendor's clock is ahead of ours by the skew: we see everything so much earlier.
            let by_ours: Vec<i64> = late.iter().map(|lag| lag - skew).collect();
            skewed.observe(&measured(&by_ours, Some(skew), away, &config), away, 0);
            prop_assert_eq!(&right, &skewed);
            unknown.observe(&measured(&by_ours, None, away, &config), away, 0);
            prop_assert!(unknown.overlap(&config) >= config.initial);
        }

        #[test]
        fn a_bucket_is_at_most_an_eighth_too_high(seconds in 0_u64..=LONGEST) {
            let got = upper(bucket(seconds));
            prop_assert!(got >= seconds);
            prop_assert!(got <= seconds + seconds / 8);
        }

        #[test]
        fn the_percentile_covers_99_of_100_lags(lags in prop::collection::vec(0_i64..10_000_000, 1..300)) {
            let mut sketch = Lags::default();
            sketch.observe(&lags, 0, 0);
            let p99 = sketch.p99().unwrap() as i64;
            let within = lags.iter().filter(|lag| **lag <= p99).count();
            prop_assert!(within * 100 >= lags.len() * 99);
        }

        #[test]
        fn merged_is_the_same_as_observed_together(
            a in prop::collection::vec(0_i64..10_000_000, 0..100),
            b in prop::collection::vec(0_i64..10_000_000, 0..100),
        ) {
            let (mut left, mut right, mut both) = (Lags::default(), Lags::default(), Lags::default());
            left.observe(&a, 0, 0);
            right.observe(&b, 0, 0);
            left.merge(&right);
            both.observe(&[a, b].concat(), 0, 0);
            prop_assert_eq!(left, both);
        }

        #[test]
        fn the_overlap_keeps_its_bounds(lags in prop::collection::vec(any::<i64>(), 0..200)) {
            let mut sketch = Lags::default();
            sketch.observe(&lags, 0, 0);
            let config = Overlap::default();
            let overlap = sketch.overlap(&config);
            prop_assert!(overlap >= config.floor && overlap <= config.max);
        }
    }
}
