//! Counting calls against quotas.

use std::collections::{HashMap, VecDeque};

use super::BucketView;
use crate::spec::{Counting, LimitSpec, QuotaCut};

/// The counters of all quotas of a vendor.
#[derive(Debug)]
pub(crate) struct Quotas {
    limits: Vec<LimitSpec>,
    cuts: Vec<QuotaCut>,
    start: i64,
    /// By quota, then, for quotas per token, by token.
    buckets: Vec<HashMap<String, Bucket>>,
}

/// One counter.
#[derive(Debug, Default)]
struct Bucket {
    /// Calls of the window, for fixed counting; the level, for leaky.
    used: f64,
    /// The window's beginning, or the moment for which the level holds.
    since: i64,
    /// Calls of the last window, for rolling counting.
    calls: VecDeque<i64>,
    /// Nothing is answered before.
    penalty_until: i64,
}

/// A call that a quota does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// Which quota.
    pub(crate) limit: usize,
    /// How long until it allows a call again.
    pub(crate) wait_ms: i64,
}

impl Quotas {
    pub(crate) fn new(limits: Vec<LimitSpec>, cuts: Vec<QuotaCut>, start: i64) -> Self {
        Quotas {
            buckets: limits.iter().map(|_| HashMap::new()).collect(),
            limits,
            cuts,
            start,
        }
    }

    pub(crate) fn limit(&self, index: usize) -> Option<&LimitSpec> {
        self.limits.get(index)
    }

    /// Takes one call from every quota, or from none.
    pub(crate) fn spend(&mut self, now: i64, token: &str) -> Result<(), Refused> {
        let mut refused: Option<Refused> = None;
        for index in 0..self.limits.len() {
            if let Some(wait_ms) = self.wait(index, now, token)
                && refused.as_ref().is_none_or(|other| other.wait_ms < wait_ms)
            {
                refused = Some(Refused {
                    limit: index,
                    wait_ms,
                });
            }
        }
        if let Some(mut refused) = refused {
            if let Some(wait_ms) = self.punish(refused.limit, now, token) {
                refused.wait_ms = refused.wait_ms.max(wait_ms);
            }
            return Err(refused);
        }
        self.change(now, token, 1.0);
        Ok(())
    }

    /// Gives one call back: it turned out to be free.
    pub(crate) fn refund(&mut self, now: i64, token: &str) {
        self.change(now, token, -1.0);
    }

    fn change(&mut self, now: i64, token: &str, calls: f64) {
        for index in 0..self.limits.len() {
            if let Some((_, bucket)) = self.bucket(index, now, token) {
                bucket.used = (bucket.used + calls).max(0.0);
                if calls > 0.0 {
                    bucket.calls.push_back(now);
                } else {
                    bucket.calls.pop_back();
                }
            }
        }
    }

    /// How long a quota refuses calls; none: it allows one now.
    fn wait(&mut self, index: usize, now: i64, token: &str) -> Option<i64> {
        let allowed = self.allowed(index, now);
        let (limit, bucket) = self.bucket(index, now, token)?;
        if bucket.penalty_until > now {
            return Some(bucket.penalty_until - now);
        }
        match limit.counting {
            Counting::Fixed => {
                (bucket.used >= allowed).then(|| bucket.since + limit.window_ms - now)
            }
            Counting::Rolling => {
                let over = (bucket.calls.len() as f64 - allowed + 1.0) as usize;
                let freed_by = bucket.calls.get(over.checked_sub(1)?)?;
                Some((freed_by + limit.window_ms - now).max(1))
            }
            Counting::Leaky => {
                let over = bucket.used + 1.0 - allowed;
                // A millionth of a call is rounding, not a call.
                (over > 1e-6).then(|| (over * limit.window_ms as f64 / allowed).ceil() as i64)
            }
        }
    }

    fn punish(&mut self, index: usize, now: i64, token: &str) -> Option<i64> {
        let (limit, bucket) = self.bucket(index, now, token)?;
        if limit.penalty_ms <= 0 {
            return None;
        }
        bucket.penalty_until = now + limit.penalty_ms;
        Some(limit.penalty_ms)
    }

    /// The quota's size at this moment.
    fn allowed(&self, index: usize, now: i64) -> f64 {
        let limit = self.limits.get(index).map_or(0, |limit| limit.limit) as f64;
        let since = now - self.start;
        self.cuts
            .iter()
            .filter(|cut| (cut.from_ms..cut.until_ms).contains(&since))
            .fold(limit, |limit, cut| (limit * cut.factor).floor().max(1.0))
    }

    /// A counter, brought up to date.
    fn bucket(&mut self, index: usize, now: i64, token: &str) -> Option<(&LimitSpec, &mut Bucket)> {
        let allowed = self.allowed(index, now);
        let limit = self.limits.get(index)?;
        let owner = if limit.per_token { token } else { "" };
        let buckets = self.buckets.get_mut(index)?;
        if !buckets.contains_key(owner) {
            buckets.insert(owner.to_owned(), Bucket::default());
        }
        let bucket = buckets.get_mut(owner)?;
        match limit.counting {
            Counting::Fixed => {
                let window = now.div_euclid(limit.window_ms) * limit.window_ms;
                if bucket.since != window {
                    bucket.since = window;
                    bucket.used = 0.0;
                }
                bucket.calls.clear();
            }
            Counting::Rolling => {
                while bucket
                    .calls
                    .front()
                    .is_some_and(|at| at + limit.window_ms <= now)
                {
                    bucket.calls.pop_front();
                }
            }
            Counting::Leaky => {
                let passed = (now - bucket.since).max(0) as f64;
                bucket.used = (bucket.used - passed * allowed / limit.window_ms as f64).max(0.0);
                bucket.since = now;
                bucket.calls.clear();
            }
        }
        Some((limit, bucket))
    }

    /// What the answers tell of the quotas, one view per quota.
    pub(crate) fn views(&mut self, now: i64, token: &str) -> Vec<BucketView> {
        let mut views = Vec::with_capacity(self.limits.len());
        for index in 0..self.limits.len() {
            let allowed = self.allowed(index, now);
            let wait_ms = self.wait(index, now, token);
            let Some((limit, bucket)) = self.bucket(index, now, token) else {
                continue;
            };
            let used = match limit.counting {
                Counting::Fixed => bucket.used,
                Counting::Rolling => bucket.calls.len() as f64,
                Counting::Leaky => bucket.used.ceil(),
            };
            let resets_ms = match limit.counting {
                Counting::Fixed => bucket.since + limit.window_ms - now,
                Counting::Rolling => bucket
                    .calls
                    .front()
                    .map_or(0, |at| at + limit.window_ms - now),
                Counting::Leaky => (bucket.used * limit.window_ms as f64 / allowed).ceil() as i64,
            };
            views.push(BucketView {
                name: limit.name.clone(),
                dialects: limit.dialects.clone(),
                limit: allowed as u64,
                used: used as u64,
                window_ms: limit.window_ms,
                resets_ms: resets_ms.max(wait_ms.unwrap_or(0)),
                blocked_ms: wait_ms.unwrap_or(0),
            });
        }
        views
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quotas(counting: Counting, penalty_ms: i64) -> Quotas {
        let limit = LimitSpec {
            limit: 3,
            window_ms: 1000,
            counting,
            penalty_ms,
            ..LimitSpec::default()
        };
        Quotas::new(vec![limit], Vec::new(), 0)
    }

    #[test]
    fn a_fixed_window_begins_anew() {
        let mut quotas = quotas(Counting::Fixed, 0);
        for at in [100, 200, 300] {
            quotas.spend(at, "a").unwrap();
        }
        assert_eq!(quotas.spend(400, "a").unwrap_err().wait_ms, 600);
        quotas.spend(400, "b").unwrap();
        quotas.spend(1000, "a").unwrap();
        assert_eq!(quotas.views(1000, "a")[0].used, 1);
    }

    #[test]
    fn a_rolling_window_frees_call_by_call() {
        let mut quotas = quotas(Counting::Rolling, 0);
        for at in [100, 200, 300] {
            quotas.spend(at, "a").unwrap();
        }
        assert_eq!(quotas.spend(400, "a").unwrap_err().wait_ms, 700);
        quotas.spend(1100, "a").unwrap();
        assert_eq!(quotas.spend(1100, "a").unwrap_err().wait_ms, 100);
    }

    #[test]
    fn a_penalty_starts_anew_with_every_early_call() {
        let mut quotas = quotas(Counting::Fixed, 5000);
        for _ in 0..3 {
            quotas.spend(0, "a").unwrap();
        }
        assert_eq!(quotas.spend(0, "a").unwrap_err().wait_ms, 5000);
        assert_eq!(quotas.spend(4000, "a").unwrap_err().wait_ms, 5000);
        quotas.spend(9000, "a").unwrap();
    }

    #[test]
    fn a_cut_makes_every_quota_smaller_while_it_lasts() {
        let cut = QuotaCut {
            from_ms: 1000,
            until_ms: 2000,
            factor: 0.1,
        };
        let mut quotas = quotas(Counting::Fixed, 0);
        quotas.cuts.push(cut);
        assert_eq!(quotas.views(0, "a")[0].limit, 3);
        assert_eq!(quotas.views(1500, "a")[0].limit, 1);
        quotas.spend(1500, "a").unwrap();
        assert!(quotas.spend(1501, "a").is_err());
    }

    #[test]
    fn what_is_given_back_can_be_spent_again() {
        for counting in [Counting::Fixed, Counting::Rolling, Counting::Leaky] {
            let mut quotas = quotas(counting, 0);
            for _ in 0..3 {
                quotas.spend(0, "a").unwrap();
            }
            assert!(quotas.spend(0, "a").is_err());
            quotas.refund(0, "a");
            quotas.spend(0, "a").unwrap();
        }
    }

    proptest! {
        /// Whoever keeps every wait is let in at once when it ends, and never exceeds the quota.
        #[test]
        fn a_kept_wait_is_enough(gaps in proptest::collection::vec(0i64..700, 1..60), kind in 0..3) {
            let counting = [Counting::Fixed, Counting::Rolling, Counting::Leaky][kind as usize];
            let mut quotas = quotas(counting, 0);
            let mut now = 12_345;
            for gap in gaps {
                now += gap;
                if let Err(refused) = quotas.spend(now, "a") {
                    prop_assert!(refused.wait_ms > 0);
                    now += refused.wait_ms;
                    prop_assert_eq!(quotas.spend(now, "a"), Ok(()));
                }
            }
        }
    }
}
