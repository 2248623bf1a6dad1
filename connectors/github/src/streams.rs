//! The four listings: how each is asked for, and what it promises.

use weir_sdk::prelude::*;

use crate::GitHub;

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Issues,
    Events,
    Releases,
    Commits,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Issues, Kind::Events, Kind::Releases, Kind::Commits];

    fn name(self) -> &'static str {
        match self {
            Kind::Issues => "issues",
            Kind::Events => "events",
            Kind::Releases => "releases",
            Kind::Commits => "commits",
        }
    }

    pub(crate) fn of(stream: &str) -> Result<Kind, Fault> {
        Kind::ALL
            .into_iter()
            .find(|kind| kind.name() == stream)
            .ok_or_else(|| Fault::no_stream(stream))
    }

    /// Where a record's id stands.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Kind::Issues | Kind::Events | Kind::Releases => "/id",
            Kind::Commits => "/sha",
        }
    }

    /// Where the moment stands by which the listing is ordered.
    pub(crate) fn stamp(self) -> &'static str {
        match self {
            Kind::Issues => "/updated_at",
            Kind::Events | Kind::Releases => "/created_at",
            Kind::Commits => "/commit/committer/date",
        }
    }

    pub(crate) fn describe(self) -> Stream {
        let stream = Stream::new(self.name())
            .key(self.id())
            .required(match self {
                Kind::Issues => &["id", "updated_at"],
                Kind::Events | Kind::Releases => &["id", "created_at"],
                Kind::Commits => &["sha", "commit"],
            })
            .page_size(100)
            .granularity(1000);
        match self {
            Kind::Issues => stream
                .title("Issues and pull requests")
                .order(Order::Ascending)
                // Reactions don't move `updated_at`: whether one is seen would be chance.
                .volatile("/reactions"),
            // Documented: at most 300 events of at most 30 days, up to six hours late.
            Kind::Events => stream
                .title("Events")
                .order(Order::Descending)
                .result_cap(300)
                .retention(30 * DAY)
                .settle(6 * HOUR)
                .backfill(false),
            // No filter by time, and releases are edited without a stamp: read them all, at the price of a 304.
            Kind::Releases => stream
                .title("Releases")
                .cursor(CursorKind::Snapshot)
                .order(Order::Descending)
                .volatile("/reactions")
                .volatile("/assets/*/download_count"),
            // Ordered by the committer's clock, which may be days behind the push.
            Kind::Commits => stream
                .title("Commits")
                .order(Order::Descending)
                .settle(7 * DAY),
        }
    }

    pub(crate) fn first_page(
        self,
        task: &Task<GitHub>,
        since: Option<i64>,
    ) -> Result<Request, Fault> {
        let repo = task
            .partition
            .as_deref()
            .and_then(|repo| repo.split_once('/'));
        let (owner, name) = repo.ok_or_else(|| {
            let found = task.partition.as_deref().unwrap_or_default();
            Fault::permanent(format!("{found:?} is not a repository: write owner/name"))
                .code("partition")
        })?;
        let path = format!(
            "/repos/{}/{}/{}",
            url::segment(owner),
            url::segment(name),
            self.name()
        );
        let request = Request::get("api", path).query("per_page", task.page_size.clamp(1, 100));
        // The vendor counts in whole seconds, both ends included.
        let seconds = |at: i64| time::rfc3339(at.div_euclid(1000) * 1000);
        Ok(match self {
            Kind::Issues => request
                .query("state", "all")
                .query("sort", "updated")
                .query("direction", "asc")
                .query_if("since", since.map(seconds)),
            Kind::Commits => request
                .query_if("sha", task.config.branch.as_deref())
                .query_if("since", since.map(seconds))
                .query_if(
                    "until",
                    (task.reason == Reason::Backfill).then(|| seconds(task.window.until)),
                ),
            Kind::Events | Kind::Releases => request,
        })
    }
}
