//! Virtual time: it stands until somebody moves it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weir_rules::model::Timestamp;

use super::Moment;
use crate::clock::{BoxFuture, Clock};

/// The world's time, and a machine's two clocks in it. Clones share it.
#[derive(Clone)]
pub struct SimClock {
    state: Arc<Mutex<State>>,
}

struct State {
    world: i64,
    /// Wall clock minus world.
    offset: i64,
    /// World minus monotonic clock: when the world began, and for how long the machine has slept.
    stood: i64,
    /// By when they wake on the monotonic clock, and by who came first.
    sleepers: BTreeMap<(i64, u64), Option<Waker>>,
    count: u64,
}

/// The monotonic clock does not begin at zero: nobody may take it for a duration.
const UPTIME: i64 = 3_600_000;

impl SimClock {
    /// Clocks that are right.
    pub fn new(world: Timestamp) -> SimClock {
        SimClock {
            state: Arc::new(Mutex::new(State {
                world,
                offset: 0,
                stood: world.saturating_sub(UPTIME),
                sleepers: BTreeMap::new(),
                count: 0,
            })),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now, on all clocks.
    pub fn now(&self) -> Moment {
        self.lock().now()
    }

    /// When the next sleeper wakes, by the world's time.
    pub fn next_wake(&self) -> Option<Timestamp> {
        let state = self.lock();
        let ((at, _), _) = state.sleepers.first_key_value()?;
        Some(at.saturating_add(state.stood))
    }

    /// Time passes until then; wakes whoever slept up to there. It never goes back.
    pub fn pass_until(&self, world: Timestamp) {
        let mut state = self.lock();
        state.world = state.world.max(world);
        let now = state.monotonic();
        let mut woken = Vec::new();
        while let Some(first) = state.sleepers.first_entry() {
            if first.key().0 > now {
                break;
            }
            woken.extend(first.remove());
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Somebody sets the wall clock.
    pub fn jump(&self, ms: i64) {
        let mut state = self.lock();
        state.offset = state.offset.saturating_add(ms);
    }

    /// The machine sleeps so long.
    pub fn suspend(&self, ms: u64) {
        let mut state = self.lock();
        state.world = state.world.saturating_add_unsigned(ms);
        state.stood = state.stood.saturating_add_unsigned(ms);
    }
}

impl State {
    fn monotonic(&self) -> i64 {
        self.world.saturating_sub(self.stood)
    }

    fn now(&self) -> Moment {
        Moment {
            world: self.world,
            wall: self.world.saturating_add(self.offset),
            monotonic: self.monotonic().unsigned_abs(),
        }
    }
}

impl Clock for SimClock {
    fn wall(&self) -> Timestamp {
        self.now().wall
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.now().monotonic)
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        let mut state = self.lock();
        let ms = i64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX);
        let at = state.monotonic().saturating_add(ms.max(1));
        state.count += 1;
        let key = (at, state.count);
        state.sleepers.insert(key, None);
        Box::pin(Nap {
            clock: self.clone(),
            key,
        })
    }
}

/// One sleep. It has its place from the beginning, and gives it back when it is dropped.
struct Nap {
    clock: SimClock,
    key: (i64, u64),
}

impl Future for Nap {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.clock.lock().sleepers.get_mut(&self.key) {
            Some(Some(waker)) if waker.will_wake(context.waker()) => Poll::Pending,
            Some(waker) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Nap {
    fn drop(&mut self) {
        self.clock.lock().sleepers.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_sleeps_wakes_in_order_and_time_stands_in_between() {
        let clock = SimClock::new(1_000);
        let woken = Arc::new(Mutex::new(Vec::new()));
        let mut sleepers = Vec::new();
        for (name, ms) in [("c", 30), ("a", 10), ("b", 10), ("now", 0)] {
            let (nap, woken) = (clock.sleep(Duration::from_millis(ms)), woken.clone());
            sleepers.push(tokio::spawn(async move {
                nap.await;
                woken.lock().unwrap().push(name);
            }));
        }
        tokio::task::yield_now().await;
        assert!(woken.lock().unwrap().is_empty());
        while let Some(next) = clock.next_wake() {
            clock.pass_until(next);
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(*woken.lock().unwrap(), ["now", "a", "b", "c"]);
        assert_eq!(clock.now().world, 1_030);
    }

    #[test]
    fn a_jump_moves_the_wall_clock_alone_and_a_sleep_the_world_alone() {
        let clock = SimClock::new(0);
        let before = clock.now();
        let nap = clock.sleep(Duration::from_millis(100));
        clock.jump(-5_000);
        assert_eq!(clock.now().wall, before.wall - 5_000);
        assert_eq!(clock.now().monotonic, before.monotonic);
        clock.suspend(60_000);
        let after = clock.now();
        assert_eq!(after.monotonic, before.monotonic, "it stood still");
        assert_eq!(after.world, before.world + 60_000);
        assert_eq!(after.wall, before.wall + 55_000);
        assert_eq!(clock.next_wake(), Some(60_100), "the whole wait is left");
        drop(nap);
        assert_eq!(clock.next_wake(), None);
    }
}
