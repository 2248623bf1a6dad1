//! The threads that run connectors.
//!
//! A call is pure computation, so it gets a thread of its own and never one of the asynchronous runtime's: a
//! connector that loops occupies a worker until its time is up and delays nothing else. The queue is bounded;
//! whoever has something to run waits for its place.
//!
//! A simulation has no other work that a call could delay, and must be the same each time: it runs calls on its own
//! thread.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::{mpsc, oneshot};

/// Wasm frames and the host's share one stack, and overflowing it ends the process: wasm may use 512 KiB.
const STACK: usize = 2 << 20;

/// Jobs that may wait for each worker.
const QUEUE_PER_WORKER: usize = 16;

type Job = Box<dyn FnOnce() + Send>;

/// Why a job has no result.
#[derive(Debug, thiserror::Error)]
pub enum WorkerGone {
    /// The job panicked: a bug of the host, since a connector's faults are values. The worker goes on.
    #[error("the host failed inside a worker, which is a bug in weir: {0}")]
    Panicked(String),
    /// The workers have ended, together with their runtime.
    #[error("the workers have stopped")]
    Stopped,
}

/// A fixed number of threads with one bounded queue. Dropping it lets the running jobs end.
#[derive(Debug)]
pub struct Workers {
    /// None: the caller's own thread does the work.
    queue: Option<mpsc::Sender<Job>>,
    count: usize,
}

impl Workers {
    /// Starts `count` threads, at least one.
    ///
    /// # Errors
    ///
    /// The system grants no more threads.
    pub fn new(count: usize) -> std::io::Result<Self> {
        let count = count.max(1);
        let (queue, jobs) = mpsc::channel::<Job>(count.saturating_mul(QUEUE_PER_WORKER));
        let jobs = Arc::new(Mutex::new(jobs));
        for n in 0..count {
            let jobs = jobs.clone();
            thread::Builder::new()
                .name(format!("weir-wasm-{n}"))
                .stack_size(STACK)
                .spawn(move || work(&jobs))?;
        }
        Ok(Workers {
            queue: Some(queue),
            count,
        })
    }

    /// No threads: each job runs at once, on the thread that asks for it. That thread needs a stack of at least 1 MiB.
    pub fn inline() -> Self {
        Workers {
            queue: None,
            count: 1,
        }
    }

    /// How many jobs run at once.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Runs `job` on a worker. Dropping the future takes a waiting job back; one that runs goes on.
    ///
    /// # Errors
    ///
    /// The job panicked, or the workers have stopped.
    pub async fn run<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, WorkerGone> {
        let Some(queue) = &self.queue else {
            return caught(job);
        };
        let (reply, result) = oneshot::channel();
        let job = move || {
            if reply.is_closed() {
                return;
            }
            // Nobody waits any more: the result is dropped.
            let _ = reply.send(caught(job));
        };
        queue
            .send(Box::new(job))
            .await
            .map_err(|_| WorkerGone::Stopped)?;
        result.await.unwrap_or(Err(WorkerGone::Stopped))
    }
}

fn work(jobs: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        // The lock is held while waiting: the other workers wait for the lock instead of for the queue.
        let job = jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .blocking_recv();
        match job {
            Some(job) => job(),
            None => break,
        }
    }
}

fn caught<R>(job: impl FnOnce() -> R) -> Result<R, WorkerGone> {
    catch_unwind(AssertUnwindSafe(job))
        .map_err(|payload| WorkerGone::Panicked(panic_text(payload.as_ref())))
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}
