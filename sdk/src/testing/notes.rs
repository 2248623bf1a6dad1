//! A small connector to try things with.

use crate::prelude::*;

/// A connector for notes of a made-up API: what the examples of this documentation are about.
///
/// ```
/// use weir_sdk::testing::{Notes, Poll};
///
/// let first = Poll::new("notes", "null", 1_930_384_800_000).request::<Notes>(None)?;
/// assert_eq!(first.param("limit"), Some("100"));
/// # Ok::<(), weir_sdk::Fault>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Notes;

impl Connector for Notes {
    type Config = ();
    type Step = paging::Token;
    type Cursor = paging::Token;

    fn describe(_config: Option<&()>) -> Result<Descriptor, Fault> {
        Ok(Descriptor::new("notes", "Notes", "0.1.0")
            .origin(Origin::new("api", "https://notes.example.test").auth(AuthScheme::Bearer))
            .stream(Stream::new("notes").key("/id")))
    }

    fn build_request(task: &Task<Self>, step: Option<paging::Token>) -> Result<Request, Fault> {
        let request = Request::get("api", "/notes")
            .query_if("updated_since", task.window.since.map(time::rfc3339))
            .query("limit", task.page_size);
        Ok(match step {
            Some(token) => token.apply(request, "after"),
            None => request,
        })
    }

    fn read_response(
        _task: &Task<Self>,
        _step: Option<paging::Token>,
        response: &Response,
    ) -> Result<Page<Self>, Fault> {
        let text = response.success()?.text()?;
        let plan = Plan::new("/notes").field("/id").outside("/next");
        let listing = plan.read(text)?;
        let mut page = Page::new();
        for row in listing.rows() {
            page.push(row.identified(text, 0));
        }
        Ok(page.next_if(paging::Token::next(listing.outside(0))))
    }
}
