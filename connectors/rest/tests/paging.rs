//! Every paging style against a small vendor: whatever the sizes, every record arrives, and once where the style can
//! promise that.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use rest::Rest;
use serde_json::{Value, json};
use weir_sdk::testing::{Poll, Walk};
use weir_sdk::{Request, Response, Target, time, url};

const BASE: &str = "https://api.example.test/v1";
/// 2031-03-04T10:00:00Z
const NOW: i64 = 1_930_384_800_000;

#[derive(Clone, Debug)]
struct Row {
    id: u64,
    /// Seconds before NOW.
    age: i64,
}

impl Row {
    fn at(&self) -> i64 {
        NOW - self.age * 1000
    }

    fn json(&self) -> Value {
        json!({"id": self.id, "updated_at": time::rfc3339(self.at())})
    }
}

/// Parameters of a call, wherever they stand.
fn params(request: &Request) -> BTreeMap<String, String> {
    let mut params: BTreeMap<String, String> = request.query.iter().cloned().collect();
    if let Target::Link(link) = &request.target {
        for name in ["page", "cursor"] {
            if let Some(value) = url::param(link, name) {
                params.insert(name.to_owned(), value.into_owned());
            }
        }
    }
    if let Some(weir_sdk::Body::Text(body)) = &request.body {
        let body: Value = serde_json::from_str(body).unwrap();
        for (name, value) in body.as_object().unwrap() {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            params.insert(name.clone(), text);
        }
    }
    params
}

fn number(params: &BTreeMap<String, String>, name: &str) -> Option<usize> {
    params.get(name).map(|value| value.parse().unwrap())
}

/// A vendor with these rows, oldest first, that never gives more than `cap` at once.
struct Vendor {
    rows: Vec<Row>,
    cap: usize,
    /// Pages of which nothing is left after filtering, where the style allows them.
    filtered: Vec<bool>,
}

impl Vendor {
    fn new(mut rows: Vec<Row>, cap: usize, filtered: Vec<bool>) -> Self {
        rows.sort_by_key(|row| (row.at(), row.id));
        Vendor {
            rows,
            cap,
            filtered,
        }
    }

    fn size(&self, params: &BTreeMap<String, String>) -> usize {
        number(params, "limit").unwrap_or(usize::MAX).min(self.cap)
    }

    fn listed(&self, rows: &[&Row], size: usize) -> (Vec<Value>, bool) {
        (
            rows.iter().take(size).map(|row| row.json()).collect(),
            rows.len() > size,
        )
    }

    /// `(updated_at, id)` after the position, or from the window's start.
    fn keyset(&self, request: &Request) -> Response {
        let params = params(request);
        let from = params
            .get("updated_since")
            .map_or(i64::MIN, |text| time::parse_rfc3339(text).unwrap());
        let after = params.get("after_id").map(|id| id.parse::<u64>().unwrap());
        let rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| match after {
                Some(id) => (row.at(), row.id) > (from, id),
                None => row.at() >= from,
            })
            .collect();
        let (rows, _) = self.listed(&rows, self.size(&params));
        Response::new(200, json!({"rows": rows}).to_string())
    }

    /// Newest first, behind the record with this id.
    fn older(&self, request: &Request) -> Response {
        let params = params(request);
        let newest_first: Vec<&Row> = self.rows.iter().rev().collect();
        let start = match number(&params, "starting_after") {
            Some(id) => {
                newest_first
                    .iter()
                    .position(|row| row.id == id as u64)
                    .unwrap()
                    + 1
            }
            None => 0,
        };
        let (rows, more) = self.listed(&newest_first[start..], self.size(&params));
        Response::new(200, json!({"rows": rows, "has_more": more}).to_string())
    }

    /// By time alone, the bound included or not.
    fn by_time(&self, request: &Request, exclusive: bool) -> Response {
        let params = params(request);
        let from = params
            .get("updated_since")
            .map_or(i64::MIN, |text| time::parse_rfc3339(text).unwrap());
        let rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| row.at() > from || (!exclusive && row.at() == from))
            .collect();
        let (rows, _) = self.listed(&rows, self.size(&params));
        Response::new(200, json!({"rows": rows}).to_string())
    }

    /// Newest first, up to a time.
    fn before(&self, request: &Request, exclusive: bool) -> Response {
        let params = params(request);
        let until = time::parse_rfc3339(&params["until"]).unwrap();
        let rows: Vec<&Row> = self
            .rows
            .iter()
            .rev()
            .filter(|row| row.at() < until || (!exclusive && row.at() == until))
            .collect();
        let (rows, _) = self.listed(&rows, self.size(&params));
        Response::new(200, json!({"rows": rows}).to_string())
    }

    /// The pages that an opaque position leads through; some of them are empty.
    fn page_at(&self, position: usize, size: usize) -> (Vec<Value>, Option<usize>) {
        let mut pages: Vec<Vec<Value>> = Vec::new();
        let mut filtered = self.filtered.iter();
        for chunk in self.rows.chunks(size.max(1)) {
            if filtered.next() == Some(&true) {
                pages.push(Vec::new());
            }
            pages.push(chunk.iter().map(Row::json).collect());
        }
        let next = (position + 1 < pages.len()).then_some(position + 1);
        (pages.get(position).cloned().unwrap_or_default(), next)
    }

    fn token(&self, request: &Request, end: &Value) -> Response {
        let params = params(request);
        let position = params.get("cursor").map_or(0, |token| {
            token.strip_prefix("t-").unwrap().parse().unwrap()
        });
        let (rows, next) = self.page_at(position, self.size(&params));
        let token = next.map_or_else(|| end.clone(), |next| json!(format!("t-{next}")));
        let mut body = json!({"rows": rows, "meta": {}});
        if token != json!("absent") {
            body["meta"]["next"] = token;
        }
        Response::new(200, body.to_string())
    }

    fn token_header(&self, request: &Request) -> Response {
        let params = params(request);
        let (rows, next) = self.page_at(number(&params, "cursor").unwrap_or(0), self.size(&params));
        let next = next.map(|next| next.to_string()).unwrap_or_default();
        Response::new(200, json!({"rows": rows}).to_string()).with_header("X-Next-Page", &next)
    }

    fn numbered(&self, request: &Request, first: usize, total: bool) -> Response {
        let params = params(request);
        let size = self.size(&params);
        let page = number(&params, "page").unwrap() - first;
        let rows: Vec<Value> = self
            .rows
            .iter()
            .skip(page * size)
            .take(size)
            .map(Row::json)
            .collect();
        let mut body = json!({"rows": rows});
        if total {
            body["total"] = json!(self.rows.len());
        }
        Response::new(200, body.to_string())
    }

    fn offset(&self, request: &Request) -> Response {
        let params = params(request);
        let rows: Vec<Value> = self
            .rows
            .iter()
            .skip(number(&params, "offset").unwrap())
            .take(self.size(&params))
            .map(Row::json)
            .collect();
        Response::new(200, json!({"rows": rows}).to_string())
    }

    fn link(&self, request: &Request) -> Response {
        let params = params(request);
        let (rows, next) = self.page_at(number(&params, "page").unwrap_or(0), self.cap);
        let response = Response::new(200, json!({"rows": rows}).to_string())
            .with_url(&format!("{BASE}/rows?page=x"));
        let prev = format!("<{BASE}/rows?page=0>; rel=\"prev first\"");
        match next {
            Some(next) => response.with_header(
                "Link",
                &format!("{prev}, <{BASE}/rows?page={next}>; rel=\"last next\""),
            ),
            None => response.with_header("Link", &prev),
        }
    }

    fn next_url(&self, request: &Request, relative: bool) -> Response {
        let params = params(request);
        let (rows, next) = self.page_at(number(&params, "page").unwrap_or(0), self.cap);
        let next = next.map(|next| {
            if relative {
                format!("?page={next}")
            } else {
                format!("{BASE}/rows?page={next}")
            }
        });
        Response::new(200, json!({"rows": rows, "next": next}).to_string())
            .with_url(&format!("{BASE}/rows?page=x"))
    }
}

fn config(stream: Value) -> String {
    let mut keys = json!({
        "path": "/rows", "records": "/rows", "id": "/id", "updated_at": "/updated_at", "page_size_param": "limit",
    });
    for (key, value) in stream.as_object().unwrap() {
        keys[key] = value.clone();
    }
    json!({"base_url": BASE, "streams": {"rows": keys}}).to_string()
}

fn walk(config: &str, size: u32, answer: impl FnMut(&Request) -> Response) -> Walk {
    Poll::new("rows", config, NOW)
        .page_size(size)
        .walk::<Rest>(answer)
        .unwrap()
}

/// Every row arrived exactly once, and nothing was said to be missing.
fn whole(walk: &Walk, rows: &[Row]) -> Result<(), TestCaseError> {
    let mut got: Vec<&str> = walk.ids();
    got.sort_unstable();
    let mut all: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
    all.sort_unstable();
    prop_assert_eq!(got, all);
    prop_assert!(!walk.truncated);
    Ok(())
}

/// Every row arrived, some of them more than once.
fn covered(walk: &Walk, rows: &[Row]) -> Result<(), TestCaseError> {
    let mut got: Vec<&str> = walk.ids();
    got.sort_unstable();
    got.dedup();
    let mut all: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
    all.sort_unstable();
    prop_assert_eq!(got, all);
    Ok(())
}

/// Rows with many ties: ids are unique and beyond 2^53, times are not unique.
fn rows(most: usize) -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec(0_i64..12, 0..most).prop_map(|ages| {
        ages.into_iter()
            .enumerate()
            .map(|(index, age)| Row {
                id: 9_224_851_642_388_483 + index as u64 * 7,
                age,
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn keyset_by_time_and_id(rows in rows(40), size in 1_u32..9, cap in 1_usize..9) {
        let vendor = Vendor::new(rows.clone(), cap, vec![]);
        let config = config(json!({
            "order": "ascending", "window": {"since": "updated_since"},
            "paging": {"style": "keyset", "after_id": "after_id", "after_time": "updated_since"},
        }));
        whole(&walk(&config, size, |request| vendor.keyset(request)), &rows)?;
    }

    #[test]
    fn keyset_by_id_newest_first(rows in rows(40), size in 1_u32..9, cap in 1_usize..9) {
        let vendor = Vendor::new(rows.clone(), cap, vec![]);
        let config = config(json!({
            "order": "descending",
            "paging": {"style": "keyset", "after_id": "starting_after", "has_more": "/has_more"},
        }));
        whole(&walk(&config, size, |request| vendor.older(request)), &rows)?;
    }

    /// Groups of ties smaller than a page are never split for good, whether the bound is included or not.
    #[test]
    fn keyset_by_time_alone(ages in prop::collection::btree_map(0_i64..40, 1_usize..4, 0..20), size in 4_u32..9, exclusive: bool) {
        let rows: Vec<Row> = ages
            .iter()
            .flat_map(|(age, ties)| (0..*ties).map(move |tie| Row { id: (*age as u64) * 10 + tie as u64 + 1, age: *age }))
            .collect();
        let vendor = Vendor::new(rows.clone(), 100, vec![]);
        let config = config(json!({
            "order": "ascending", "window": {"since": "updated_since", "since_exclusive": exclusive},
            "paging": {"style": "keyset", "after_time": "updated_since"},
        }));
        let walk = walk(&config, size, |request| vendor.by_time(request, exclusive));
        covered(&walk, &rows)?;
        prop_assert!(!walk.truncated);
    }

    /// Groups of ties larger than a page arrive whole where the vendor gives larger pages, and where it does not the walk
    /// says that something is missing, and goes on behind them.
    #[test]
    fn keyset_by_time_alone_with_large_ties(
        ages in prop::collection::btree_map(0_i64..40, 1_usize..12, 0..12), size in 2_u32..5, cap in 1_usize..40,
        exclusive: bool,
    ) {
        let rows: Vec<Row> = ages
            .iter()
            .flat_map(|(age, ties)| (0..*ties).map(move |tie| Row { id: (*age as u64) * 20 + tie as u64 + 1, age: *age }))
            .collect();
        let cap = cap.max(size as usize);
        let vendor = Vendor::new(rows.clone(), cap, vec![]);
        let config = config(json!({
            "order": "ascending", "window": {"since": "updated_since", "since_exclusive": exclusive},
            "paging": {"style": "keyset", "after_time": "updated_since", "after_exclusive": exclusive},
        }));
        let walk = walk(&config, size, |request| vendor.by_time(request, exclusive));
        let largest = ages.values().copied().max().unwrap_or(0);
        if cap > largest && size as usize * 16 > largest {
            covered(&walk, &rows)?;
            // A page that is full of the newest time, to the record, can't be told from one that was cut.
            let newest = ages.values().next().copied().unwrap_or(0);
            prop_assert!(!walk.truncated || newest == size as usize || newest == size as usize * 4, "{:?}", walk.ids());
        }
        for (nth, (age, ties)) in ages.iter().enumerate() {
            let ids: std::collections::BTreeSet<&str> = walk.ids().into_iter().collect();
            let got = (0..*ties).filter(|tie| ids.contains((*age as u64 * 20 + *tie as u64 + 1).to_string().as_str()));
            let got = got.count();
            prop_assert!(got >= (*ties).min(size as usize), "{} of {} at {}", got, ties, age);
            // Nothing behind the newest one tells that it was cut by a limit that nobody knows.
            prop_assert!(got == *ties || walk.truncated || nth == 0, "{} of {} at {}", got, ties, age);
        }
        let pages = rows.len() / size as usize + 1;
        prop_assert!(walk.requests.len() <= 4 * pages + 4, "{} requests", walk.requests.len());
    }

    /// The same downwards, where the position takes the place of the upper bound.
    #[test]
    fn keyset_by_time_alone_newest_first(ages in prop::collection::btree_map(1_i64..40, 1_usize..4, 0..20), size in 4_u32..9, exclusive: bool) {
        let rows: Vec<Row> = ages
            .iter()
            .flat_map(|(age, ties)| (0..*ties).map(move |tie| Row { id: (*age as u64) * 10 + tie as u64 + 1, age: *age }))
            .collect();
        let vendor = Vendor::new(rows.clone(), 100, vec![]);
        let config = config(json!({
            "order": "descending", "window": {"since": "since", "until": "until"},
            "paging": {"style": "keyset", "after_time": "until", "after_exclusive": exclusive},
        }));
        let walk = walk(&config, size, |request| vendor.before(request, exclusive));
        covered(&walk, &rows)?;
        prop_assert!(!walk.truncated);
    }

    #[test]
    fn token_in_the_body(rows in rows(40), size in 1_u32..9, filtered: Vec<bool>, end in 0_usize..4) {
        let vendor = Vendor::new(rows.clone(), 100, filtered);
        let end = [json!(null), json!(""), json!("absent"), json!("done")][end].clone();
        let config = config(json!({
            "paging": {"style": "token", "token": "/meta/next", "param": "cursor", "token_end": ["done"]},
        }));
        whole(&walk(&config, size, |request| vendor.token(request, &end)), &rows)?;
    }

    #[test]
    fn token_in_the_body_of_a_post(rows in rows(40), size in 1_u32..9, filtered: Vec<bool>) {
        let vendor = Vendor::new(rows.clone(), 100, filtered);
        let config = config(json!({
            "method": "POST", "body": {"filter": "all"}, "page_size_param": "/limit",
            "paging": {"style": "token", "token": "/meta/next", "param": "/cursor"},
        }));
        whole(&walk(&config, size, |request| vendor.token(request, &json!(null))), &rows)?;
    }

    #[test]
    fn token_in_a_header(rows in rows(40), size in 1_u32..9, filtered: Vec<bool>) {
        let vendor = Vendor::new(rows.clone(), 100, filtered);
        let config = config(json!({
            "paging": {"style": "token", "token_header": "X-Next-Page", "param": "cursor"},
        }));
        whole(&walk(&config, size, |request| vendor.token_header(request)), &rows)?;
    }

    #[test]
    fn page_numbers(rows in rows(40), size in 1_u32..9, cap in 1_usize..9, first in 0_usize..2, total: bool) {
        let vendor = Vendor::new(rows.clone(), cap, vec![]);
        let mut keys = json!({"paging": {"style": "page", "param": "page", "first": first}});
        if total {
            keys["total"] = json!("/total");
        }
        whole(&walk(&config(keys), size, |request| vendor.numbered(request, first, total)), &rows)?;
    }

    #[test]
    fn offsets(rows in rows(40), size in 1_u32..9, cap in 1_usize..9) {
        let vendor = Vendor::new(rows.clone(), cap, vec![]);
        let config = config(json!({"paging": {"style": "offset", "param": "offset"}}));
        whole(&walk(&config, size, |request| vendor.offset(request)), &rows)?;
    }

    #[test]
    fn link_headers(rows in rows(40), cap in 1_usize..9, filtered: Vec<bool>) {
        let vendor = Vendor::new(rows.clone(), cap, filtered);
        let config = config(json!({"paging": {"style": "link"}}));
        whole(&walk(&config, 100, |request| vendor.link(request)), &rows)?;
    }

    #[test]
    fn urls_in_the_body(rows in rows(40), cap in 1_usize..9, filtered: Vec<bool>, relative: bool) {
        let vendor = Vendor::new(rows.clone(), cap, filtered);
        let config = config(json!({"paging": {"style": "next_url", "url": "/next"}}));
        whole(&walk(&config, 100, |request| vendor.next_url(request, relative)), &rows)?;
    }

    #[test]
    fn no_paging(rows in rows(40)) {
        let vendor = Vendor::new(rows.clone(), 1000, vec![]);
        let mut keys: Value = serde_json::from_str(&config(json!({}))).unwrap();
        keys["streams"]["rows"].as_object_mut().unwrap().remove("page_size_param");
        whole(&walk(&keys.to_string(), 100, |request| vendor.keyset(request)), &rows)?;
    }
}

fn rows_of(ids: &[u64]) -> Value {
    ids.iter()
        .map(|id| json!({"id": id, "updated_at": "2031-03-04T09:00:00Z"}))
        .collect()
}

/// Answers a walk from a list; the last answer is repeated.
fn played(answers: Vec<Value>) -> impl FnMut(&Request) -> Response {
    let mut answers = answers.into_iter();
    let mut last = json!(null);
    move |_| {
        last = answers.next().unwrap_or_else(|| last.clone());
        Response::new(200, last.to_string())
    }
}

#[test]
fn case_075_a_token_that_never_ends() {
    let config = config(json!({"paging": {"style": "token", "token": "/next", "param": "cursor"}}));
    let answers = vec![
        json!({"rows": rows_of(&[1, 2, 3]), "next": "c3"}),
        json!({"rows": rows_of(&[4, 5, 6]), "next": "c6"}),
        json!({"rows": rows_of(&[7]), "next": "c7"}),
        json!({"rows": [], "next": "c7"}),
    ];
    let walk = walk(&config, 3, played(answers));
    assert_eq!(walk.ids(), ["1", "2", "3", "4", "5", "6", "7"]);
    assert_eq!(walk.requests.len(), 4);
}

#[test]
fn a_token_that_repeats_over_records_goes_back_to_the_host() {
    // The host knows all steps of the walk and calls this a stall; ending here would call it complete.
    let config = config(json!({"paging": {"style": "token", "token": "/next", "param": "cursor"}}));
    let poll = Poll::new("rows", &config, NOW);
    let answer = Response::new(
        200,
        json!({"rows": rows_of(&[1]), "next": "c1"}).to_string(),
    );
    let page = poll
        .read::<Rest>(Some(r#"{"token":"c1"}"#), answer)
        .unwrap();
    assert_eq!(page.next, [r#"{"token":"c1"}"#]);
}

#[test]
fn case_077_more_ties_than_a_page_holds() {
    let g: Vec<Row> = (1..=6).map(|id| Row { id, age: 3600 }).collect();
    let mut rows = g;
    rows.push(Row { id: 7, age: 3599 });
    let vendor = Vendor::new(rows, 4, vec![]);
    // With the id all seven arrive.
    let by_id = config(json!({
        "order": "ascending", "window": {"since": "updated_since"},
        "paging": {"style": "keyset", "after_id": "after_id", "after_time": "updated_since"},
    }));
    let both = walk(&by_id, 4, |request| vendor.keyset(request));
    assert_eq!(both.ids(), ["1", "2", "3", "4", "5", "6", "7"]);
    assert!(!both.truncated);
    // Without it the walk passes over the group, finds what lies behind it, and says that something is missing.
    let by_time = config(json!({
        "order": "ascending", "window": {"since": "updated_since"},
        "paging": {"style": "keyset", "after_time": "updated_since"},
    }));
    let time = walk(&by_time, 4, |request| vendor.by_time(request, false));
    let mut ids = time.ids();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids, ["1", "2", "3", "4", "7"]);
    assert!(time.truncated);
    assert!(time.requests.len() <= 5, "{}", time.requests.len());
}

#[test]
fn a_vendor_that_refuses_a_larger_page_is_asked_for_what_lies_behind_the_ties() {
    let mut rows: Vec<Row> = (1..=6).map(|id| Row { id, age: 3600 }).collect();
    rows.push(Row { id: 7, age: 3599 });
    let vendor = Vendor::new(rows, 4, vec![]);
    let by_time = config(json!({
        "order": "ascending", "window": {"since": "updated_since"},
        "paging": {"style": "keyset", "after_time": "updated_since"},
    }));
    let walk = walk(&by_time, 4, |request| match request.param("limit") {
        Some("4") => vendor.by_time(request, false),
        _ => Response::new(422, r#"{"error":"limit must be at most 4"}"#),
    });
    assert_eq!(walk.ids(), ["1", "2", "3", "4", "7"]);
    assert!(walk.truncated);
}

#[test]
fn a_vendor_that_ignores_the_position_is_left_after_one_repeat() {
    let config = config(json!({"paging": {"style": "keyset", "after_id": "after_id"}}));
    let walk = walk(
        &config,
        3,
        played(vec![json!({"rows": rows_of(&[1, 2, 3])})]),
    );
    assert_eq!(walk.requests.len(), 2);
    assert!(walk.truncated);
}

#[test]
fn a_vendor_that_includes_the_position_ends_whole() {
    let config = config(json!({"paging": {"style": "keyset", "after_id": "from_id"}}));
    let answers = vec![
        json!({"rows": rows_of(&[1, 2, 3])}),
        json!({"rows": rows_of(&[3])}),
    ];
    let walk = walk(&config, 3, played(answers));
    assert_eq!(walk.requests.len(), 2);
    assert!(!walk.truncated);
}

#[test]
fn case_055_fine_stamps_go_back_as_written() {
    let config = config(json!({
        "order": "ascending", "window": {"since": "since"},
        "paging": {"style": "keyset", "after_time": "since", "after_exclusive": true},
    }));
    let stamps = [
        "2031-03-04T09:00:00.982238Z",
        "2031-03-04T09:00:00.982901Z",
        "2031-03-04T09:00:00.983000Z",
    ];
    let walk = walk(&config, 1, |request| {
        let since = request.param("since").unwrap_or_default().to_owned();
        let next = stamps
            .iter()
            .enumerate()
            .find(|(_, stamp)| **stamp > since.as_str());
        let rows: Vec<Value> = next
            .iter()
            .map(|(id, stamp)| json!({"id": format!("z{}", id + 1), "updated_at": stamp}))
            .collect();
        Response::new(200, json!({"rows": rows}).to_string())
    });
    assert_eq!(walk.ids(), ["z1", "z2", "z3"]);
    assert_eq!(walk.requests.len(), 4);
}

#[test]
fn case_079_an_empty_page_with_a_token_is_not_the_end() {
    let config = config(json!({"paging": {"style": "token", "token": "/next", "param": "cursor"}}));
    let answers = vec![
        json!({"rows": rows_of(&[1, 2]), "next": "t2"}),
        json!({"rows": [], "next": "t3"}),
        json!({"rows": rows_of(&[3, 4]), "next": null}),
    ];
    assert_eq!(
        walk(&config, 2, played(answers)).ids(),
        ["1", "2", "3", "4"]
    );
}

#[test]
fn case_081_a_capped_page_is_not_the_last() {
    let rows: Vec<Row> = (1..=2500).map(|id| Row { id, age: 5 }).collect();
    let vendor = Vendor::new(rows, 1000, vec![]);
    let config = config(json!({"paging": {"style": "offset", "param": "offset"}}));
    let walk = walk(&config, 5000, |request| vendor.offset(request));
    let offsets: Vec<_> = walk
        .requests
        .iter()
        .map(|request| request.param("offset").unwrap())
        .collect();
    assert_eq!(offsets, ["0", "1000", "2000", "2500"]);
    assert_eq!(walk.records.len(), 2500);
}

#[test]
fn a_promise_that_short_pages_end_saves_the_last_call() {
    let config =
        config(json!({"paging": {"style": "offset", "param": "offset", "short_page_ends": true}}));
    let walk = walk(
        &config,
        3,
        played(vec![
            json!({"rows": rows_of(&[1, 2, 3])}),
            json!({"rows": rows_of(&[4])}),
        ]),
    );
    assert_eq!((walk.requests.len(), walk.records.len()), (2, 4));
}

#[test]
fn the_vendors_own_end_signs_decide() {
    for (keys, sign) in [
        (
            json!({"style": "page", "param": "page", "has_more": "/more"}),
            json!({"more": false}),
        ),
        (
            json!({"style": "page", "param": "page", "is_last": "/last"}),
            json!({"last": true}),
        ),
        (
            json!({"style": "token", "token": "/next", "param": "c", "has_more": "/more"}),
            json!({"more": false, "next": "kept"}),
        ),
    ] {
        let mut answer = json!({"rows": rows_of(&[1, 2])});
        for (key, value) in sign.as_object().unwrap() {
            answer[key] = value.clone();
        }
        let walk = walk(&config(json!({"paging": keys})), 2, played(vec![answer]));
        assert_eq!(walk.requests.len(), 1, "{keys}");
        assert!(!walk.truncated);
    }
}

#[test]
fn more_without_a_way_to_it_is_truncated() {
    for keys in [
        json!({"style": "none", "has_more": "/more"}),
        json!({"style": "link", "has_more": "/more"}),
        json!({"style": "next_url", "url": "/next", "has_more": "/more"}),
        json!({"style": "token", "token": "/next", "param": "c", "has_more": "/more"}),
    ] {
        let walk = walk(
            &config(json!({"paging": keys})),
            2,
            played(vec![json!({"rows": rows_of(&[1]), "more": true})]),
        );
        assert!(walk.truncated, "{keys}");
        assert_eq!(walk.requests.len(), 1, "{keys}");
    }
}

#[test]
fn the_result_cap_ends_a_walk_as_truncated() {
    let config = config(
        json!({"result_cap": 4, "page_size": 2, "paging": {"style": "offset", "param": "offset"}}),
    );
    let rows: Vec<Row> = (1..=9).map(|id| Row { id, age: 5 }).collect();
    let vendor = Vendor::new(rows, 100, vec![]);
    let walk = walk(&config, 2, |request| vendor.offset(request));
    assert_eq!(
        (walk.requests.len(), walk.records.len(), walk.truncated),
        (2, 4, true)
    );
}

#[test]
fn an_exact_multiple_of_the_page_size() {
    let rows: Vec<Row> = (1..=6).map(|id| Row { id, age: 5 }).collect();
    let vendor = Vendor::new(rows.clone(), 100, vec![]);
    for keys in [
        json!({"paging": {"style": "page", "param": "page"}}),
        json!({"paging": {"style": "page", "param": "page"}, "total": "/total"}),
    ] {
        let total = keys.get("total").is_some();
        let walk = walk(&config(keys), 3, |request| {
            vendor.numbered(request, 1, total)
        });
        whole(&walk, &rows).unwrap();
        assert_eq!(walk.requests.len(), if total { 2 } else { 3 });
    }
}
