//! Metrics of an account: one value a day, asked for in windows of at most thirty days.

use serde_json::json;
use weir_sdk::prelude::*;

use crate::{DAY, Instagram};

/// How far back the vendor answers, in ms.
const KEPT: u64 = 90 * DAY;

pub(crate) fn describe() -> Stream {
    Stream::new("account_insights")
        .title("Metrics of accounts")
        .key("/metric")
        .key("/end_time")
        .order(Order::Ascending)
        .page_size(100)
        .window_cap(30 * DAY)
        .retention(KEPT)
        .granularity(DAY)
        // A day's value is corrected for up to two days.
        .settle(2 * DAY)
}

pub(crate) fn request(task: &Task<Instagram>, account: &str) -> Result<Request, Fault> {
    let oldest = task.window.until.saturating_sub_unsigned(29 * DAY);
    let since = task.window.since.map_or(oldest, |since| since.max(oldest));
    Ok(Request::get("api", format!("/{account}/insights"))
        .query("metric", task.config.account_metrics.join(","))
        .query("period", "day")
        .query("since", since.div_euclid(1000))
        .query("until", task.window.until.div_euclid(1000)))
}

/// `data[]` holds the metrics, each with its `values[]`: a record is one value.
pub(crate) fn read(text: &str) -> Result<Page<Instagram>, Fault> {
    let mut page = Page::new();
    for metric in json::elements(text, "/data")? {
        let name = metric
            .at("/name")?
            .and_then(Raw::string)
            .ok_or_else(|| Fault::incomplete("a metric has no name").code("name"))?;
        let period = metric.at("/period")?.and_then(Raw::string);
        let Some(values) = metric.at("/values")? else {
            return Err(Fault::incomplete(format!("metric {name} has no values")).code("values"));
        };
        for value in json::elements(values.json(), "")? {
            let end = value
                .at("/end_time")?
                .and_then(Raw::string)
                .ok_or_else(|| {
                    Fault::incomplete(format!("a value of {name} has no end_time")).code("end_time")
                })?;
            let at = time::parse_rfc3339(&end);
            let number = value.at("/value")?.map_or("null", Raw::json);
            // The number stays as it was written.
            let data = format!(
                r#"{{"metric":{},"period":{},"end_time":{},"value":{number}}}"#,
                json!(name),
                json!(period),
                json!(end)
            );
            page.push(Record::made(data, format!("{name}/{end}")).updated_at(at));
        }
    }
    Ok(page)
}
