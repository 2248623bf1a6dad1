//! A shop with one list of orders, as most cases need it, and a vendor that keeps such a list.

use std::sync::Arc;

use percent_encoding::percent_decode_str;

use super::script::{Asked, Reply, Script};
use super::{NOW, Rig};

pub const S: i64 = 1_000;
pub const MIN: i64 = 60 * S;
pub const HOUR: i64 = 60 * MIN;

/// How the stream is polled where a case says nothing of it.
pub const USUAL: &str = r#"
interval = { min = "10s", max = "10m" }
overlap = { fixed = "5m" }
backoff = { base = "1s", cap = "1m" }
"#;

/// A window without an upper bound, pages by token.
pub const WINDOW: &str = r#"
window = { since = "since" }
paging = { style = "token", token = "/next", param = "token" }
"#;

/// Connection `shop` with the stream `orders`: `stream` is what the connector is told of it, `settings` what the host is.
pub fn config(stream: &str, settings: &str) -> String {
    named("shop", stream, settings)
}

/// The same under another name, at another vendor, with another key.
pub fn named(name: &str, stream: &str, settings: &str) -> String {
    format!(
        r#"
[connection.{name}]
connector = "rest"
auth = {{ bearer = "T0KEN-{name}-77" }}

[connection.{name}.config]
base_url = "https://{name}.example.test/v1"

[connection.{name}.config.streams.orders]
path = "/orders"
records = "/orders"
id = "/id"
updated_at = "/at"
{stream}

[connection.{name}.streams.orders]
{settings}
"#
    )
}

/// A host with that configuration whose script reads the same clock.
pub async fn open(config: &str, script: &Arc<Script>) -> Rig {
    let rig = Rig::new(config, script.clone()).await;
    script.on(&rig.clock);
    rig
}

/// The usual shop.
pub async fn shop(script: &Arc<Script>) -> Rig {
    open(&config(WINDOW, USUAL), script).await
}

/// Lets what is under way end, and polls the orders at that time.
pub async fn poll_at(rig: &Rig, time: &str) -> weir::poll::Report {
    rig.settle().await;
    rig.clock.set(ms(time));
    rig.poll("shop/orders").await
}

/// A time of the day of [`NOW`], or a whole stamp.
pub fn stamp(time: &str) -> String {
    if time.contains('-') {
        time.to_owned()
    } else {
        format!("2031-03-04T{time}Z")
    }
}

/// The same in ms.
pub fn ms(time: &str) -> i64 {
    let moment: jiff::Timestamp = stamp(time).parse().expect("a stamp");
    moment.as_millisecond()
}

/// A page of orders, `(id, time)`, with more members around the list: `"next":"t2"`.
pub fn page(orders: &[(&str, &str)], around: &str) -> Reply {
    let orders: Vec<String> = orders
        .iter()
        .map(|(id, at)| format!(r#"{{"id":"{id}","at":"{}"}}"#, stamp(at)))
        .collect();
    body(&orders.join(","), around)
}

/// The same with the records as text.
pub fn body(orders: &str, around: &str) -> Reply {
    let comma = if around.is_empty() { "" } else { "," };
    Reply::ok(format!(r#"{{"orders":[{orders}]{comma}{around}}}"#))
}

/// A page with nothing on it.
pub fn nothing() -> Reply {
    page(&[], "")
}

/// A parameter of what was asked.
pub fn param(asked: &Asked, name: &str) -> Option<String> {
    let (_, query) = asked.url.split_once('?')?;
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let value = percent_decode_str(value).decode_utf8().expect("UTF-8");
        (key == name).then(|| value.into_owned())
    })
}

/// When each call was made, in ms after [`NOW`].
pub fn calls(script: &Script) -> Vec<i64> {
    script.asked().iter().map(|asked| asked.at - NOW).collect()
}

/// The ids of everything in the outbox, sorted, each as often as it is there.
pub fn ids(rig: &Rig) -> Vec<String> {
    let mut ids: Vec<String> = rig.lines().into_iter().map(|line| line.id).collect();
    ids.sort();
    ids
}

/// One order as its vendor keeps it.
#[derive(Clone, Debug)]
pub struct Order {
    pub id: String,
    /// Its stamp, in ms.
    pub at: i64,
    /// From when on the vendor shows it, in ms.
    pub shown: i64,
}

/// An order that is shown from its stamp on.
pub fn order(id: &str, at: &str) -> Order {
    shown_later(id, at, at)
}

/// An order that becomes visible after its stamp.
pub fn shown_later(id: &str, at: &str, shown: &str) -> Order {
    Order {
        id: id.to_owned(),
        at: ms(at),
        shown: ms(shown),
    }
}

/// Those of the orders that the vendor shows now with `since <= at < until`, oldest first.
pub fn matching(orders: &[Order], now: i64, since: Option<i64>, until: Option<i64>) -> Vec<&Order> {
    let mut found: Vec<&Order> = orders
        .iter()
        .filter(|order| order.shown <= now)
        .filter(|order| since.is_none_or(|since| order.at >= since))
        .filter(|order| until.is_none_or(|until| order.at < until))
        .collect();
    found.sort_by_key(|order| (order.at, order.id.clone()));
    found
}

/// Those orders as a page.
pub fn listed(orders: &[&Order], around: &str) -> Reply {
    let text = |at| {
        let moment = jiff::Timestamp::from_millisecond(at).expect("in range");
        moment.to_string()
    };
    let orders: Vec<(&str, String)> = orders
        .iter()
        .map(|order| (order.id.as_str(), text(order.at)))
        .collect();
    let orders: Vec<(&str, &str)> = orders.iter().map(|(id, at)| (*id, at.as_str())).collect();
    page(&orders, around)
}

/// A vendor that answers `since` and `until` truly, all on one page.
pub fn keeper(orders: Vec<Order>) -> Arc<Script> {
    Script::by(move |asked| {
        let bound = |name| param(asked, name).map(|text| ms(&text));
        listed(
            &matching(&orders, asked.at, bound("since"), bound("until")),
            "",
        )
    })
}
