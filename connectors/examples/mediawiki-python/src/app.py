"""MediaWiki: recent changes of a wiki, by its action API.

The listing runs oldest first from the window's start to its end. Where a page ends the wiki names what to send again, as an
object with one or more parameters: all of them go into the next call. Errors come with status 200, in the body.
"""

from pathlib import Path

import weir

# Read when the component is made: a connector has no files when it runs.
SCHEMA = (Path(__file__).parent / "config.schema.json").read_text()
DAY = 24 * 3_600_000


class Connector(weir.Connector):
    def describe_for(self, config):
        url = config["url"] if config else "https://wiki.example.test/w"
        return weir.descriptor(
            "mediawiki-python",
            "MediaWiki",
            "0.1.0",
            docs="https://www.mediawiki.org/wiki/API:Recentchanges",
            config_schema=SCHEMA,
            origins=[weir.origin("wiki", url.rstrip("/"), "bearer", "none")],
            # Etiquette: one call after the other.
            pacing=weir.make_pacing(concurrency=1),
            streams=[
                weir.stream(
                    "recentchanges",
                    title="Recent changes",
                    key=["/rcid"],
                    order="ascending",
                    page_size=500,
                    granularity=1000,
                    # What the big wikis keep; others keep longer.
                    retention=30 * DAY,
                    settle=10 * 60_000,
                )
            ],
        )

    def request(self, task, step):
        since = task.window.since
        query = {
            "action": "query",
            "format": "json",
            "formatversion": 2,
            "maxlag": 5,
            "list": "recentchanges",
            "rcdir": "newer",
            "rclimit": min(max(task.page_size, 1), 500),
            "rcstart": None if since is None else whole_seconds(since),
            "rcend": whole_seconds(task.window.until),
            "rcprop": "ids|title|timestamp|user|userid|comment|flags|sizes|tags|loginfo|redirect|sha1",
        }
        return weir.get("wiki", "/api.php", **(query | (step or {})))

    def read(self, task, step, response):
        answer = response.json()
        if isinstance(answer, dict) and isinstance(answer.get("error"), dict):
            raise meant(response)
        records = [
            weir.record(row, row.id("rcid"), updated_at=row.time("timestamp"))
            for row in response.rows("/query/recentchanges")
        ]
        again = answer.get("continue")
        return weir.page(records, next=[again] if isinstance(again, dict) else [])


def meant(response):
    """What an error in a good answer means, by its code."""
    code = response.field("error", "code") or "error"
    said = response.field("error", "info") or code
    if code in ("maxlag", "readonly"):
        # Its databases lag, or it is being looked after: the whole wiki is meant, and it passes.
        return weir.fault("temporary", said, code=code, scope="connection")
    if code == "ratelimited":
        return weir.fault("rate-limited", said, code=code)
    if code in ("assertuserfailed", "badtoken", "notloggedin") or code.startswith("mwoauth-"):
        return weir.fault("auth-expired", said, code=code)
    if code in ("readapidenied", "permissiondenied", "blocked"):
        return weir.fault("permanent", said, code=code, scope="connection")
    if code == "badcontinue":
        return weir.fault("position-lost", said, code=code)
    return weir.fault("unknown", said, code=code)


def whole_seconds(ms):
    """The wiki counts in whole seconds, both ends included."""
    return weir.rfc3339(ms // 1000 * 1000)
