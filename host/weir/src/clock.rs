//! The clock seam: wall time for what is stored, monotonic time for what is waited.
//!
//! A wall clock jumps; a wait must not. So a stored due time is turned into a wait once, when it is read,
//! and the wait itself runs on the monotonic clock.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use weir_rules::model::Timestamp;

/// A boxed future, as the seams return them.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where time comes from.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the Unix epoch, by this machine's clock.
    fn wall(&self) -> Timestamp;
    /// Time since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;
    /// Ends when that much monotonic time has passed.
    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()>;
}

/// How long is slept at once: after a suspend whoever slept looks at the time again this much later at most.
const LOOK: Duration = Duration::from_secs(5);
/// Less than this, in ms, is the difference of two clocks that were not read at the same instant.
const NAP: u64 = 1_000;

/// The machine's own clocks. Time that the machine spends suspended counts as passed where the system tells of it
/// (Linux): what fell due meanwhile is due when it wakes.
#[derive(Debug)]
pub struct SystemClock {
    monotonic: Arc<Monotonic>,
}

#[derive(Debug)]
struct Monotonic {
    start: Instant,
    /// Time since the machine's start, suspends included.
    uptime: fn() -> Option<Duration>,
    up_at_start: Option<Duration>,
    /// How long the machine was suspended since the start, in ms.
    asleep: AtomicU64,
}

impl Monotonic {
    fn new(uptime: fn() -> Option<Duration>) -> Self {
        Monotonic {
            start: Instant::now(),
            uptime,
            up_at_start: uptime(),
            asleep: AtomicU64::new(0),
        }
    }

    fn now(&self) -> Duration {
        let asleep = Duration::from_millis(self.asleep.load(Ordering::Relaxed));
        self.start.elapsed().saturating_add(asleep)
    }

    /// Finds out whether the machine was suspended.
    fn look(&self) {
        let (Some(then), Some(up)) = (self.up_at_start, (self.uptime)()) else {
            return;
        };
        let asleep = up.saturating_sub(then).saturating_sub(self.start.elapsed());
        let asleep = u64::try_from(asleep.as_millis()).unwrap_or(u64::MAX);
        let known = self.asleep.load(Ordering::Relaxed);
        if asleep > known.saturating_add(NAP) {
            self.asleep.fetch_max(asleep, Ordering::Relaxed);
        }
    }
}

#[cfg(target_os = "linux")]
fn uptime() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(not(target_os = "linux"))]
fn uptime() -> Option<Duration> {
    None
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    pub fn new() -> Self {
        SystemClock {
            monotonic: Arc::new(Monotonic::new(uptime)),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| {
                i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
            })
    }

    fn monotonic(&self) -> Duration {
        self.monotonic.now()
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        let clock = self.monotonic.clone();
        let end = clock.now().saturating_add(wait);
        Box::pin(async move {
            loop {
                let left = end.saturating_sub(clock.now());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(LOOK)).await;
                clock.look();
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static UP: AtomicU64 = AtomicU64::new(1_000_000);

    fn fake() -> Option<Duration> {
        Some(Duration::from_millis(UP.load(Ordering::Relaxed)))
    }

    #[test]
    fn time_that_the_machine_slept_has_passed() {
        let clock = Monotonic::new(fake);
        let before = clock.now();
        UP.fetch_add(NAP / 2, Ordering::Relaxed);
        clock.look();
        assert!(clock.now() - before < Duration::from_secs(60), "no nap");
        let night = 8 * 3_600_000;
        UP.fetch_add(night, Ordering::Relaxed);
        clock.look();
        clock.look();
        let passed = clock.now() - before;
        let night = Duration::from_millis(night);
        assert!(passed >= night - Duration::from_secs(60), "{passed:?}");
        assert!(passed < night + Duration::from_secs(60), "once: {passed:?}");
    }

    #[test]
    fn a_system_that_tells_nothing_has_a_clock_too() {
        let clock = Monotonic::new(|| None);
        clock.look();
        assert!(clock.now() < Duration::from_secs(60));
    }

    #[tokio::test]
    async fn a_short_sleep_is_as_long_as_it_was_asked_for() {
        let clock = SystemClock::new();
        let before = clock.monotonic();
        clock.sleep(Duration::from_millis(20)).await;
        assert!(clock.monotonic() - before >= Duration::from_millis(20));
    }
}
