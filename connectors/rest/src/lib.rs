//! Any JSON API, by configuration alone.
//!
//! A connection's `config` says where the API lives and what each of its streams is like: path, parameters, where the
//! records and their ids are, how the API pages, how it is asked for what changed, and what its errors mean. The README
//! beside this crate has all keys in one table.
//!
//! - `config`: the keys as they are written;
//! - `endpoint`: one stream, checked;
//! - `request`, `template`, `stamp`: the next call;
//! - `answer`, `errors`, `paging`, `step`: what came back, and where to go from there.

mod answer;
mod config;
mod describe;
mod endpoint;
mod errors;
mod paging;
mod request;
mod stamp;
mod step;
mod template;

use weir_sdk::{Connector, Descriptor, Fault, Page, Request, Response, Task};

use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::step::Step;

/// The connector.
pub struct Rest;

impl Connector for Rest {
    type Config = Config;
    type Step = Step;
    /// The vendor's own token or URL, for streams with a `sync` table.
    type Cursor = String;

    fn describe(config: Option<&Config>) -> Result<Descriptor, Fault> {
        describe::describe(config)
    }

    fn partitions(config: &Config, stream: &str) -> Result<Vec<String>, Fault> {
        Ok(Endpoint::of(config, stream)?.partitions)
    }

    fn build_request(task: &Task<Self>, step: Option<Step>) -> Result<Request, Fault> {
        request::build(
            &Endpoint::asked(&task.config, &task.stream)?,
            task,
            step.as_ref(),
        )
    }

    fn read_response(
        task: &Task<Self>,
        step: Option<Step>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        answer::read(
            &Endpoint::of(&task.config, &task.stream)?,
            task,
            step.as_ref(),
            response,
        )
    }
}

weir_sdk::export!(Rest);
