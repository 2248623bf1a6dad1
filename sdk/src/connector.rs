//! The trait that a connector implements, and what carries it to the contract.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::exports::weir::connector::connector::Guest as Contract;
use crate::bindings::weir::connector::types as wit;
use crate::{Descriptor, Fault, Page, Reason, Request, Response, Timestamp, Window, codec, log};

/// What differs from vendor to vendor: which request comes next, and what an answer means.
///
/// A connector is a pure function of what it is given. It has no clock (`task.now` is the time), no network, no files and
/// no state between calls; the same input gives the same output.
///
/// ```
/// // A whole one stands at the top of this crate's documentation; this one is there to try things with.
/// # use weir_sdk::{Connector, testing::Notes};
/// let about = Notes::describe(None).unwrap();
/// assert_eq!(about.streams[0].name, "notes");
/// ```
pub trait Connector {
    /// The connection's `config` table. The host has checked it against the descriptor's schema.
    type Config: DeserializeOwned;
    /// A place inside one poll: the next page, the next slice. Kept by the host, so that a walk survives a crash.
    type Step: Serialize + DeserializeOwned;
    /// What is remembered from poll to poll, for vendors with a position of their own; `()` where the host's watermark
    /// is enough.
    type Cursor: Serialize + DeserializeOwned;

    /// Says what this connector is. Without a config: for listings. With one: for that connection.
    ///
    /// ```
    /// # use weir_sdk::{Connector, testing::Notes};
    /// assert_eq!(Notes::describe(None).unwrap().name, "notes");
    /// ```
    fn describe(config: Option<&Self::Config>) -> Result<Descriptor, Fault>;

    /// The slices of a stream that the config names, each polled by itself; empty when the stream is one.
    ///
    /// ```
    /// # use weir_sdk::{Connector, testing::Notes};
    /// assert!(Notes::partitions(&(), "notes").unwrap().is_empty());
    /// ```
    fn partitions(config: &Self::Config, stream: &str) -> Result<Vec<String>, Fault> {
        let _ = (config, stream);
        Ok(Vec::new())
    }

    /// Builds the poll's next call; `step` is none for its first.
    ///
    /// ```
    /// # use weir_sdk::testing::{Notes, Poll};
    /// let first = Poll::new("notes", "null", 0).request::<Notes>(None).unwrap();
    /// assert_eq!(first.param("after"), None);
    /// ```
    fn build_request(task: &Task<Self>, step: Option<Self::Step>) -> Result<Request, Fault>;

    /// Reads the answer to that call. Called for every status, 304 aside.
    ///
    /// ```
    /// # use weir_sdk::{Response, testing::{Notes, Poll}};
    /// let answer = Response::new(200, r#"{"notes":[{"id":7}]}"#);
    /// let page = Poll::new("notes", "null", 0).read::<Notes>(None, answer).unwrap();
    /// assert_eq!(page.records[0].id, "7");
    /// ```
    fn read_response(
        task: &Task<Self>,
        step: Option<Self::Step>,
        response: &Response,
    ) -> Result<Page<Self>, Fault>;
}

/// One poll of one unit.
///
/// ```
/// # use weir_sdk::prelude::*;
/// # use weir_sdk::testing::Notes;
/// fn first_page(task: &Task<Notes>) -> Request {
///     Request::get("api", "/notes").query_if("since", task.window.since).query("limit", task.page_size)
/// }
/// ```
pub struct Task<C: Connector + ?Sized> {
    /// Which of the descriptor's streams.
    pub stream: String,
    /// Which slice of it, if it has slices.
    pub partition: Option<String>,
    /// With a parent stream: that stream's record, as stored (JSON text).
    pub parent: Option<String>,
    /// The connection's config.
    pub config: C::Config,
    /// What this connector gave back last as the unit's cursor; none on a first poll.
    pub cursor: Option<C::Cursor>,
    /// Frozen for the whole poll.
    pub window: Window,
    /// Who asked for the poll.
    pub reason: Reason,
    /// The start of the poll, by the vendor's clock as far as it is known.
    pub now: Timestamp,
    /// How many records to ask for.
    pub page_size: u32,
}

impl<C: Connector + ?Sized> Task<C> {
    fn read(task: wit::Task) -> Result<Self, Fault> {
        Ok(Task {
            config: codec::read_config(&task.config)?,
            cursor: task
                .cursor
                .as_deref()
                .map(|cursor| codec::read_position("cursor", cursor))
                .transpose()?,
            stream: task.stream,
            partition: task.partition,
            parent: task.parent,
            window: task.window,
            reason: task.reason,
            now: task.now,
            page_size: task.page_size,
        })
    }
}

fn read_step<C: Connector + ?Sized>(step: Option<String>) -> Result<Option<C::Step>, Fault> {
    step.map(|step| codec::read_position("step", &step))
        .transpose()
}

/// Carries a [`Connector`] to the contract's functions. For [`export!`](crate::export) and for tests that want the
/// contract itself.
///
/// ```
/// use weir_sdk::{Guest, contract, testing::Notes};
///
/// let about = <Guest<Notes> as contract::Guest>::describe(None).unwrap();
/// assert_eq!(about.name, "notes");
/// ```
pub struct Guest<C>(PhantomData<C>);

impl<C: Connector> Contract for Guest<C> {
    fn describe(config: Option<String>) -> Result<Descriptor, Fault> {
        log::report_panics();
        let config: Option<C::Config> = config.as_deref().map(codec::read_config).transpose()?;
        C::describe(config.as_ref())
    }

    fn partitions(stream: String, config: String) -> Result<Vec<String>, Fault> {
        log::report_panics();
        C::partitions(&codec::read_config(&config)?, &stream)
    }

    fn build_request(task: wit::Task, step: Option<String>) -> Result<Request, Fault> {
        log::report_panics();
        C::build_request(&Task::<C>::read(task)?, read_step::<C>(step)?)
    }

    fn read_response(
        task: wit::Task,
        step: Option<String>,
        response: Response,
    ) -> Result<wit::Page, Fault> {
        log::report_panics();
        let page = C::read_response(&Task::<C>::read(task)?, read_step::<C>(step)?, &response)?;
        page.into_contract()
    }
}
