//! A clock that the test turns. Waits end when it is turned past them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use weir::clock::{BoxFuture, Clock};

/// Wall time and monotonic time; the test moves both together, or the wall clock alone.
pub struct TestClock {
    state: Mutex<State>,
}

struct State {
    monotonic: i64,
    /// Wall time minus monotonic time.
    offset: i64,
    sleepers: BTreeMap<(i64, u64), oneshot::Sender<()>>,
    count: u64,
}

impl TestClock {
    pub fn new(wall: i64) -> TestClock {
        TestClock {
            state: Mutex::new(State {
                monotonic: 1_000_000,
                offset: wall - 1_000_000,
                sleepers: BTreeMap::new(),
                count: 0,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn wall_now(&self) -> i64 {
        let state = self.lock();
        state.monotonic + state.offset
    }

    /// Time passes until the wall clock shows this.
    pub fn set(&self, wall: i64) {
        let ms = wall - self.wall_now();
        if ms > 0 {
            self.advance(ms);
        }
    }

    /// So many ms pass.
    pub fn advance(&self, ms: i64) {
        let mut state = self.lock();
        state.monotonic += ms;
        let now = state.monotonic;
        let later = state.sleepers.split_off(&(now + 1, 0));
        for (_, sleeper) in std::mem::replace(&mut state.sleepers, later) {
            let _ = sleeper.send(());
        }
    }

    /// Somebody sets the wall clock; no time passes.
    pub fn jump(&self, ms: i64) {
        self.lock().offset += ms;
    }

    /// When the next sleeper wakes, by the wall clock.
    pub fn next_wake(&self) -> Option<i64> {
        let mut state = self.lock();
        state.sleepers.retain(|_, sleeper| !sleeper.is_closed());
        let ((at, _), _) = state.sleepers.first_key_value()?;
        Some(at + state.offset)
    }

    fn sleeping(&self) -> usize {
        let mut state = self.lock();
        state.sleepers.retain(|_, sleeper| !sleeper.is_closed());
        state.sleepers.len()
    }

    /// The schedule has looked at what is due and gone to sleep.
    pub fn someone_sleeps(&self) -> bool {
        self.sleeping() > 0
    }

    /// Besides the schedule and its gauge, every poll in flight waits for time to pass.
    pub fn every_poll_sleeps(&self, polls: usize) -> bool {
        polls > 0 && self.sleeping() >= polls + 2
    }
}

impl Clock for TestClock {
    fn wall(&self) -> i64 {
        self.wall_now()
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.lock().monotonic.unsigned_abs())
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        let mut state = self.lock();
        let ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
        let at = state.monotonic.saturating_add(ms.max(1));
        state.count += 1;
        let (sender, receiver) = oneshot::channel();
        let key = (at, state.count);
        state.sleepers.insert(key, sender);
        Box::pin(async move {
            let _ = receiver.await;
        })
    }
}
