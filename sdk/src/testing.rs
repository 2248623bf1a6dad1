//! Trying a connector natively, as the host would call it.

use crate::bindings::exports::weir::connector::connector::Guest as Contract;
use crate::bindings::weir::connector::types as wit;
use crate::{Connector, Fault, Guest, Reason, Record, Request, Response, Timestamp, Window};

mod notes;

pub use notes::Notes;

/// A poll to try: through the contract's own functions, so that steps, cursors and config go through their JSON form.
///
/// ```
/// # use weir_sdk::prelude::*;
/// # use weir_sdk::testing::{Notes, Poll};
/// let poll = Poll::new("notes", "null", 1_930_384_800_000);
/// let request = poll.since(1_930_381_200_000).request::<Notes>(None)?;
/// assert_eq!(request.param("updated_since"), Some("2031-03-04T09:00:00Z"));
/// # Ok::<(), Fault>(())
/// ```
#[derive(Clone, Debug)]
pub struct Poll {
    task: wit::Task,
}

/// What a whole walk brought.
///
/// ```
/// # use weir_sdk::prelude::*;
/// # use weir_sdk::testing::{Notes, Poll};
/// let poll = Poll::new("notes", "null", 1_930_384_800_000);
/// let walk = poll.walk::<Notes>(|_| Response::new(200, r#"{"notes":[]}"#))?;
/// assert_eq!((walk.requests.len(), walk.records.len()), (1, 0));
/// # Ok::<(), Fault>(())
/// ```
#[derive(Debug, Default)]
pub struct Walk {
    /// All calls, in order.
    pub requests: Vec<Request>,
    /// All records with their JSON, in order.
    pub records: Vec<(Record, String)>,
    /// The cursor of the last page that had one, as JSON.
    pub cursor: Option<String>,
    /// Did a page say that the vendor holds back more?
    pub truncated: bool,
    /// The longest pause that a page asked for, in ms.
    pub poll_after: Option<u64>,
    /// The last total that a page told.
    pub total: Option<u64>,
}

impl Walk {
    /// The ids of the records, in order.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::{Notes, Poll};
    /// let poll = Poll::new("notes", "null", 1_930_384_800_000);
    /// let walk = poll.walk::<Notes>(|_| Response::new(200, r#"{"notes":[{"id":7}]}"#))?;
    /// assert_eq!(walk.ids(), ["7"]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn ids(&self) -> Vec<&str> {
        self.records
            .iter()
            .map(|(record, _)| record.id.as_str())
            .collect()
    }
}

impl Poll {
    /// A first poll of a stream, up to `now`; `config` is JSON text.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::{Notes, Poll};
    /// let poll = Poll::new("notes", "null", 1_930_384_800_000);
    /// assert!(poll.request::<Notes>(None)?.param("updated_since").is_none());
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn new(stream: &str, config: &str, now: Timestamp) -> Self {
        Poll {
            task: wit::Task {
                stream: stream.to_owned(),
                partition: None,
                parent: None,
                config: config.to_owned(),
                cursor: None,
                window: Window {
                    since: None,
                    until: now,
                },
                reason: Reason::Schedule,
                now,
                page_size: 100,
            },
        }
    }

    /// Of this slice.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::{Notes, Poll};
    /// let poll = Poll::new("notes", "null", 1_930_384_800_000);
    /// assert!(poll.partition("team").request::<Notes>(None).is_ok());
    /// ```
    pub fn partition(mut self, partition: &str) -> Self {
        self.task.partition = Some(partition.to_owned());
        self
    }

    /// From this moment on.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::{Notes, Poll};
    /// let poll = Poll::new("notes", "null", 1_930_384_800_000);
    /// let request = poll.since(1_930_381_200_000).request::<Notes>(None)?;
    /// assert_eq!(request.param("updated_since"), Some("2031-03-04T09:00:00Z"));
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn since(mut self, since: Timestamp) -> Self {
        self.task.window.since = Some(since);
        self
    }

    /// Up to this moment.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::{Notes, Poll};
    /// let poll = Poll::new("notes", "null", 1_930_384_800_000);
    /// assert!(poll.until(1_930_381_200_000).request::<Notes>(None).is_ok());
    /// ```
    pub fn until(mut self, until: Timestamp) -> Self {
        self.task.window.until = until;
        self
    }

    /// For this reason.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::{Notes, Poll};
    /// let poll = Poll::new("notes", "null", 1_930_384_800_000);
    /// assert!(poll.reason(Reason::Backfill).request::<Notes>(None).is_ok());
    /// ```
    pub fn reason(mut self, reason: Reason) -> Self {
        self.task.reason = reason;
        self
    }

    /// With pages of this size.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::{Notes, Poll};
    /// let poll = Poll::new("notes", "null", 1_930_384_800_000);
    /// assert_eq!(poll.page_size(2).request::<Notes>(None)?.param("limit"), Some("2"));
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn page_size(mut self, size: u32) -> Self {
        self.task.page_size = size;
        self
    }

    /// With this cursor, as JSON.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::{Notes, Poll};
    /// let poll = Poll::new("notes", "null", 1_930_384_800_000);
    /// // Not a cursor of this connector: a lost position, and the host walks again.
    /// let fault = poll.cursor("7").request::<Notes>(None).unwrap_err();
    /// assert_eq!(fault.class, Class::PositionLost);
    /// ```
    pub fn cursor(mut self, cursor: &str) -> Self {
        self.task.cursor = Some(cursor.to_owned());
        self
    }

    /// The request of a step, the first when there is none.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::{Notes, Poll};
    /// let poll = Poll::new("notes", "null", 1_930_384_800_000);
    /// let second = poll.request::<Notes>(Some(r#"{"token":"p2"}"#))?;
    /// assert_eq!(second.param("after"), Some("p2"));
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn request<C: Connector>(&self, step: Option<&str>) -> Result<Request, Fault> {
        Guest::<C>::build_request(self.task.clone(), step.map(str::to_owned))
    }

    /// What one answer means.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::{Notes, Poll};
    /// let poll = Poll::new("notes", "null", 1_930_384_800_000);
    /// let page = poll.read::<Notes>(None, Response::new(200, r#"{"notes":[{"id":7}],"next":"p2"}"#))?;
    /// assert_eq!(page.next, [r#"{"token":"p2"}"#]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn read<C: Connector>(
        &self,
        step: Option<&str>,
        response: Response,
    ) -> Result<wit::Page, Fault> {
        Guest::<C>::read_response(self.task.clone(), step.map(str::to_owned), response)
    }

    /// Walks until no step is left; `answer` plays the vendor. Ends with a fault after 1,000 calls.
    ///
    /// ```
    /// # use weir_sdk::prelude::*;
    /// # use weir_sdk::testing::{Notes, Poll};
    /// let answer = |request: &Request| match request.param("after") {
    ///     None => Response::new(200, r#"{"notes":[{"id":7},{"id":9}],"next":"p2"}"#),
    ///     Some(_) => Response::new(200, r#"{"notes":[{"id":4}],"next":null}"#),
    /// };
    /// let poll = Poll::new("notes", "null", 1_930_384_800_000);
    /// let walk = poll.walk::<Notes>(answer)?;
    /// assert_eq!(walk.ids(), ["7", "9", "4"]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn walk<C: Connector>(
        &self,
        mut answer: impl FnMut(&Request) -> Response,
    ) -> Result<Walk, Fault> {
        let mut walk = Walk::default();
        let mut steps = std::collections::VecDeque::from([None::<String>]);
        while let Some(step) = steps.pop_front() {
            if walk.requests.len() >= 1000 {
                return Err(
                    Fault::unknown("the walk does not end: 1,000 calls so far").code("loop")
                );
            }
            let request = self.request::<C>(step.as_deref())?;
            let response = answer(&request);
            walk.requests.push(request);
            let text = response.lossy_text().into_owned();
            let page = self.read::<C>(step.as_deref(), response)?;
            for record in page.records {
                let json = record.json(&text).unwrap_or_default().to_owned();
                walk.records.push((record, json));
            }
            steps.extend(page.next.into_iter().map(Some));
            walk.cursor = page.cursor.or(walk.cursor);
            walk.truncated |= page.truncated;
            walk.poll_after = walk.poll_after.max(page.poll_after);
            walk.total = page.total.or(walk.total);
        }
        Ok(walk)
    }
}
