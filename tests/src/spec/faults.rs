//! What goes wrong, and when: by chance, by script, and in outages.

use serde::{Deserialize, Serialize};

/// All that goes wrong with a vendor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultPlan {
    /// By chance, on calls that would have been answered well.
    pub random: Vec<RandomFault>,
    /// On given calls or at given times. The first that fits is played.
    pub script: Vec<ScriptedFault>,
    /// Spans in which nothing works.
    pub outages: Vec<Outage>,
    /// Moments (ms since the start) at which every page and feed token given so far becomes unknown (410).
    pub lose_tokens_at_ms: Vec<i64>,
}

/// A fault that befalls some calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomFault {
    /// Of one call.
    pub probability: f64,
    /// What happens.
    pub fault: FaultKind,
    /// Only on this collection.
    #[serde(default)]
    pub collection: Option<String>,
    /// Not before, in ms since the start.
    #[serde(default)]
    pub from_ms: Option<i64>,
    /// Not from here on.
    #[serde(default)]
    pub until_ms: Option<i64>,
}

impl RandomFault {
    /// On all collections, at all times.
    pub fn new(probability: f64, fault: FaultKind) -> Self {
        RandomFault {
            probability,
            fault,
            collection: None,
            from_ms: None,
            until_ms: None,
        }
    }
}

/// A fault on given calls or at given times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedFault {
    /// Which calls.
    pub when: When,
    /// Only calls of this collection; they are counted by themselves.
    #[serde(default)]
    pub collection: Option<String>,
    /// What happens.
    pub fault: FaultKind,
}

/// Which calls a scripted fault befalls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum When {
    /// Calls number `from` to `to`, both included; the first is 1.
    Calls {
        /// First.
        from: u64,
        /// Last.
        to: u64,
    },
    /// Calls from `from_ms` until before `until_ms`, since the start.
    Between {
        /// From here.
        from_ms: i64,
        /// Until before here.
        until_ms: i64,
    },
}

/// A span in which every call meets the same fault, before credentials and quotas are looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Its beginning, in ms since the start.
    pub from_ms: i64,
    /// Its end.
    pub until_ms: i64,
    /// What every call meets.
    pub fault: FaultKind,
}

/// How an answer says when to come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitForm {
    /// Not at all.
    #[default]
    None,
    /// `Retry-After: 90`
    Seconds,
    /// `Retry-After: 89.997`
    Decimal,
    /// `Retry-After: Tue, 04 Mar 2031 10:01:30 GMT`
    HttpDate,
    /// `Retry-After: Tuesday, 04-Mar-31 10:01:30 GMT`
    Rfc850,
    /// `Retry-After: Tue Mar  4 10:01:30 2031`
    Asctime,
    /// `Retry-After: 2031-03-04T10:01:30Z`
    Rfc3339,
    /// `Retry-After-Ms: 90000`
    RetryAfterMs,
    /// `X-Ms-Retry-After-Ms: 90000`
    XMsRetryAfterMs,
    /// `X-Retry-After: 90`
    XRetryAfter,
    /// `X-RateLimit-Retry-After: 90`
    XRateLimitRetryAfter,
    /// `"retry_after_ms": 90000` in the body
    BodyMs,
    /// `"retry_after": 89.997` in the body
    BodySeconds,
    /// `Retry-After: 0`: no wait that could be kept
    Zero,
    /// `Retry-After: -1`
    Negative,
    /// `Retry-After: soon`
    Garbage,
    /// `Retry-After` with a date that has passed
    Past,
}

/// What can go wrong with one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FaultKind {
    /// An answer of this status instead of the right one: 429, 503, 403 with a body, 401, 410, 500, 202 ...
    Status {
        /// The status.
        status: u16,
        /// The body; empty: a short JSON error.
        #[serde(default)]
        body: String,
        /// Its type; empty: JSON.
        #[serde(default)]
        content_type: String,
        /// How it says when to come back.
        #[serde(default)]
        wait: WaitForm,
        /// After how many ms.
        #[serde(default)]
        wait_ms: i64,
        /// More headers.
        #[serde(default)]
        headers: Vec<(String, String)>,
    },
    /// 200 with `{"ok":false,"error":..}`, or this body.
    ErrorIn200 {
        /// The body; empty: `{"ok":false,"error":"internal_error"}`.
        #[serde(default)]
        body: String,
    },
    /// 200 with a web page.
    Html200,
    /// 200 with nothing in it.
    Empty200,
    /// The right status and headers over a JSON that stops in the middle.
    Truncated,
    /// The connection ends in the middle of the body.
    CutShort,
    /// A gzip body that stops in the middle.
    CutGzip,
    /// 200 with records that lack their stamp.
    MissingFields,
    /// 200 with one record fewer than the page's own count says, and than the next page goes on behind. Without a
    /// count nobody can see it.
    MissingRecord,
    /// The connection is reset before anything is answered.
    Reset,
    /// The right answer, this many ms late.
    Slow {
        /// How late.
        ms: u64,
    },
    /// No answer, ever.
    Hang,
    /// A redirect. An empty target is the URL itself: it never ends.
    Redirect {
        /// 301, 302, 303, 307 or 308.
        status: u16,
        /// Where to.
        #[serde(default)]
        to: String,
    },
    /// 200 with a body of this many bytes, which nobody should read to its end.
    Huge {
        /// How many.
        bytes: u64,
    },
    /// The right answer with these headers in place of its own.
    Headers {
        /// Names and values.
        headers: Vec<(String, String)>,
    },
}

impl FaultKind {
    /// A bare status with a short JSON error.
    pub fn status(status: u16) -> Self {
        FaultKind::Status {
            status,
            body: String::new(),
            content_type: String::new(),
            wait: WaitForm::None,
            wait_ms: 0,
            headers: Vec::new(),
        }
    }

    /// 429 with a wait.
    pub fn too_many(wait: WaitForm, wait_ms: i64) -> Self {
        FaultKind::status(429).with_wait(wait, wait_ms)
    }

    /// 503 with a wait.
    pub fn unavailable(wait: WaitForm, wait_ms: i64) -> Self {
        FaultKind::status(503).with_wait(wait, wait_ms)
    }

    /// A status with a body of its own.
    pub fn with_body(status: u16, text: &str) -> Self {
        let mut fault = FaultKind::status(status);
        if let FaultKind::Status { body, .. } = &mut fault {
            *body = text.into();
        }
        fault
    }

    fn with_wait(mut self, form: WaitForm, ms: i64) -> Self {
        if let FaultKind::Status { wait, wait_ms, .. } = &mut self {
            *wait = form;
            *wait_ms = ms;
        }
        self
    }

    /// A short name for ledgers and logs: `429`, `hang`, `cut-gzip`.
    pub fn name(&self) -> String {
        match self {
            FaultKind::Status { status, .. } => status.to_string(),
            FaultKind::ErrorIn200 { .. } => "error-in-200".into(),
            FaultKind::Html200 => "html-200".into(),
            FaultKind::Empty200 => "empty-200".into(),
            FaultKind::Truncated => "truncated".into(),
            FaultKind::CutShort => "cut-short".into(),
            FaultKind::CutGzip => "cut-gzip".into(),
            FaultKind::MissingFields => "missing-fields".into(),
            FaultKind::MissingRecord => "missing-record".into(),
            FaultKind::Reset => "reset".into(),
            FaultKind::Slow { .. } => "slow".into(),
            FaultKind::Hang => "hang".into(),
            FaultKind::Redirect { status, .. } => format!("redirect-{status}"),
            FaultKind::Huge { .. } => "huge".into(),
            FaultKind::Headers { .. } => "headers".into(),
        }
    }
}
