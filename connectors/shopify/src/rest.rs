//! Lists of the REST API: by the moment of change, oldest first.

use weir_sdk::prelude::*;

use crate::{At, Shopify};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Orders,
    Customers,
}

pub(crate) fn streams() -> Vec<Stream> {
    [(List::Orders, "Orders"), (List::Customers, "Customers")]
        .into_iter()
        .map(|(list, title)| {
            Stream::new(list.name())
                .title(title)
                .key("/id")
                .required(&["id", "updated_at"])
                .order(Order::Ascending)
                .page_size(250)
                .granularity(1000)
                // What a list shows is a copy that runs a little behind.
                .settle(5 * 60_000)
        })
        .collect()
}

impl List {
    pub(crate) fn of(stream: &str) -> Option<List> {
        [List::Orders, List::Customers]
            .into_iter()
            .find(|list| list.name() == stream)
    }

    fn name(self) -> &'static str {
        match self {
            List::Orders => "orders",
            List::Customers => "customers",
        }
    }

    pub(crate) fn first_page(self, task: &Task<Shopify>) -> Request {
        // The vendor counts in whole seconds, both ends included.
        let seconds = |at: i64| time::rfc3339(at.div_euclid(1000) * 1000);
        Request::get("admin", format!("/{}.json", self.name()))
            .query("limit", task.page_size.clamp(1, 250))
            .query("order", "updated_at asc")
            .query_if("status", (self == List::Orders).then_some("any"))
            .query_if("updated_at_min", task.window.since.map(seconds))
            .query("updated_at_max", seconds(task.window.until))
    }

    pub(crate) fn read(self, response: &Response) -> Result<Page<Shopify>, Fault> {
        let text = response.text()?;
        let plan = Plan::new(&format!("/{}", self.name()))
            .field("/id")
            .field("/updated_at");
        let listing = plan.read(text)?;
        let mut page = Page::with_capacity(listing.len());
        for row in listing.rows() {
            page.push(
                row.identified(text, 0)
                    .updated_at(row.time(1, time::Format::Rfc3339)),
            );
        }
        // The link holds the position and may be followed by nothing else: no filter is added to it.
        Ok(page.next_if(paging::NextUrl::from_link(response).map(At::Link)))
    }
}
