//! The lists that can be read.

use weir_sdk::prelude::*;

const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;

/// How long the vendor keeps events, in ms.
pub(crate) const EVENTS_KEPT: u64 = 30 * DAY;

/// Name, title, path.
const OBJECTS: [(&str, &str, &str); 12] = [
    (
        "balance_transactions",
        "Balance transactions",
        "/balance_transactions",
    ),
    ("charges", "Charges", "/charges"),
    ("customers", "Customers", "/customers"),
    ("disputes", "Disputes", "/disputes"),
    ("invoices", "Invoices", "/invoices"),
    ("payment_intents", "Payment intents", "/payment_intents"),
    ("payouts", "Payouts", "/payouts"),
    ("prices", "Prices", "/prices"),
    ("products", "Products", "/products"),
    ("refunds", "Refunds", "/refunds"),
    ("subscriptions", "Subscriptions", "/subscriptions"),
    ("transfers", "Transfers", "/transfers"),
];

pub(crate) fn all() -> Vec<Stream> {
    let list = |name, title| {
        Stream::new(name)
            .title(title)
            .key("/id")
            .required(&["id", "created"])
            .order(Order::Descending)
            .page_size(100)
            .granularity(1000)
    };
    let events = list("events", "Events")
        .retention(EVENTS_KEPT)
        // They become visible a little after they happen.
        .settle(5 * MINUTE)
        // Counts the webhooks that are still to be told, and falls by itself.
        .volatile("/pending_webhooks");
    let objects = OBJECTS
        .iter()
        .map(|(name, title, _)| list(name, title).settle(DAY));
    std::iter::once(events).chain(objects).collect()
}

pub(crate) fn path(stream: &str) -> Result<&'static str, Fault> {
    if stream == "events" {
        return Ok("/events");
    }
    OBJECTS
        .iter()
        .find(|(name, ..)| *name == stream)
        .map(|(.., path)| *path)
        .ok_or_else(|| Fault::no_stream(stream))
}
