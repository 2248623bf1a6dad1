//! What a process costs: wall time, CPU time of all its threads, peak memory.

use std::process::{Child, Command};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use wait4::Wait4;

/// No run takes nearly so long; one that does is killed.
const AT_MOST: Duration = Duration::from_secs(300);

/// What one run has cost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
    /// The most memory that it had resident, in bytes.
    pub(super) peak: u64,
}

/// Runs a command to its end. Fails when it does.
pub(super) fn measure(mut command: Command) -> anyhow::Result<Cost> {
    let began = Instant::now();
    let child = command
        .spawn()
        .with_context(|| format!("cannot run {command:?}"))?;
    let guard = Guard::new(&child);
    let used = child.wait4()?;
    let wall = began.elapsed();
    drop(guard);
    if !used.status.success() {
        bail!("{command:?} ended with {} after {wall:.1?}", used.status);
    }
    Ok(Cost {
        wall,
        cpu: used.rusage.utime + used.rusage.stime,
        peak: used.rusage.maxrss,
    })
}

/// Kills a process that takes too long, unless dropped before.
struct Guard {
    ended: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Guard {
    fn new(child: &Child) -> Self {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let (ended, is_ended) = channel();
        let thread = std::thread::spawn(move || {
            if let (Err(RecvTimeoutError::Timeout), Some(pid)) =
                (is_ended.recv_timeout(AT_MOST), pid)
            {
                // It may have ended at this very moment.
                let _ = kill_process(pid, Signal::KILL);
            }
        });
        Guard {
            ended: Some(ended),
            thread: Some(thread),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.ended.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The median of each number; of the peaks, the highest.
pub(super) fn typical(costs: &[Cost]) -> Cost {
    Cost {
        wall: median(costs.iter().map(|cost| cost.wall)),
        cpu: median(costs.iter().map(|cost| cost.cpu)),
        peak: costs.iter().map(|cost| cost.peak).max().unwrap_or(0),
    }
}

/// The middle one; of an even number, the lower of the two.
pub(super) fn median<T: Ord + Copy + Default>(values: impl IntoIterator<Item = T>) -> T {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_unstable();
    let middle = values.len().saturating_sub(1) / 2;
    values.get(middle).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_not_the_mean() {
        assert_eq!(median([9, 1, 2]), 2);
        assert_eq!(median([4, 1, 2, 9]), 2);
        assert_eq!(median::<u8>([]), 0);
    }

    #[test]
    fn a_process_is_measured_and_its_failure_told() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]);
        let cost = measure(shell).unwrap();
        assert!(cost.cpu > Duration::ZERO && cost.wall >= cost.cpu / 2 && cost.peak > 100_000);
        let mut failing = Command::new("sh");
        failing.args(["-c", "exit 3"]);
        assert!(
            measure(failing)
                .unwrap_err()
                .to_string()
                .contains("exit status: 3")
        );
    }
}
