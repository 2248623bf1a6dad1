"""What an author of a connector in Python uses.

It is one file without dependencies; `weir new --lang python` writes it beside the connector. What the values mean is said
in docs/wit.md; their types are those that componentize-py makes of the contract (`wit_world.imports.types`).

A connector is a pure function: no clock (`task.now` is the time), no network, no state between calls.
"""

import json
import re
import traceback
from datetime import datetime, timezone

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import log as host_log
from wit_world.imports import types as t

# Deeper than any vendor's answer; the reader of JSON would run out of stack.
DEPTH = 200

_CLASS = {member.name.lower().replace("_", "-"): member for member in t.Class}
_SCOPE = {member.name.lower(): member for member in t.Scope}
_ORDER = {member.name.lower(): member for member in t.Order}
_CURSOR = {member.name.lower(): member for member in t.CursorKind}
_AUTH = {"none": t.AuthScheme_None_, "bearer": t.AuthScheme_Bearer, "basic": t.AuthScheme_Basic}
_SCOPES = {"rate-limited": "credential", "auth-expired": "connection", "auth-revoked": "connection"}


_MESSAGES = [
    ("message",), ("error", "message"), ("detail",), ("title",), ("error_description",), ("error",),
]


class Connector(exports.Connector):
    """Override `describe_for`, `slices` (if a stream has any), `request` and `read`.

    Config, steps and cursors arrive as values, and leave as JSON.
    """

    def describe_for(self, config):
        """What this connector is; `config` is none for listings."""
        raise NotImplementedError

    def slices(self, stream, config):
        """The slices of a stream that the config names, each polled by itself."""
        return []

    def request(self, task, step):
        """The poll's next call; `step` is none for its first."""
        raise NotImplementedError

    def read(self, task, step, response):
        """What the answer to that call means."""
        raise NotImplementedError

    # The contract's own functions.

    def describe(self, config):
        return _told(lambda: self.describe_for(None if config is None else json.loads(config)))

    def partitions(self, stream, config):
        return _told(lambda: self.slices(stream, json.loads(config)))

    def build_request(self, task, step):
        return _told(lambda: self.request(_task(task), _position("step", step)))

    def read_response(self, task, step, response):
        def call():
            page = self.read(_task(task), _position("step", step), Response(response))
            page.next = [json.dumps(place) for place in page.next]
            page.cursor = None if page.cursor is None else json.dumps(page.cursor)
            return page

        return _told(call)


class log:
    """To be heard in the host's log."""

    @staticmethod
    def debug(message):
        host_log.write(host_log.Level.DEBUG, str(message))

    @staticmethod
    def info(message):
        host_log.write(host_log.Level.INFO, str(message))

    @staticmethod
    def warn(message):
        host_log.write(host_log.Level.WARN, str(message))


def fault(kind, message, *, code="", scope=None, wait=None, page_size=None, limits=()):
    """What went wrong, by what will fix it; raise it. `wait` is in ms."""
    scope = _SCOPE[scope or _SCOPES.get(kind, "unit")]
    return Err(t.Fault(_CLASS[kind], scope, str(code), str(message), wait, page_size, list(limits), []))


def from_status(response):
    """What a status means by default. A connector maps what it knows better, and leaves the rest to this."""
    status = response.status
    spent = response.header("x-ratelimit-remaining") == "0" or response.header("ratelimit-remaining") == "0"
    says = re.search(r"rate.?limit|too many|throttl", response.body[:2000], re.IGNORECASE)
    if status == 202:
        kind = "pending"
    elif status == 401:
        kind = "auth-expired"
    elif status in (420, 429) or (status == 403 and (spent or says or response.header("retry-after"))):
        kind = "rate-limited"
    elif status == 410:
        kind = "position-lost"
    elif status in (304, 408, 409, 423, 425):
        kind = "temporary"
    elif status in (501, 505):
        kind = "permanent"
    elif 500 <= status < 600:
        kind = "temporary"
    elif 300 <= status < 500:
        kind = "permanent"
    else:
        kind = "unknown"
    told = (response.field(*path) for path in _MESSAGES)
    words = next((text for text in told if text), response.body[:600])
    said = " ".join(words.split())[:160]
    return fault(kind, f"HTTP {status}" + (f": {said}" if said else ""), code=status)


def descriptor(
    name, title, version, *, docs=None, config_schema='{"type":"object"}', origins=(), streams=(), pacing=None, extra=()
):
    """What this connector is."""
    return t.Descriptor(
        name, title, version, docs, config_schema, list(origins), list(streams), pacing or make_pacing(), list(extra)
    )


def make_pacing(
    *, min_interval=None, max_interval=None, unpublished_limits=False, concurrency=None, backoff_cap=None,
    not_modified_is_free=False, documented_limits=(),
):
    """How fast the vendor may be asked. Times are in ms."""
    return t.Pacing(
        min_interval, max_interval, unpublished_limits, concurrency, backoff_cap, not_modified_is_free,
        list(documented_limits),
    )


def origin(id, url, *schemes):
    """A place that it may talk to; schemes, best first: "none", "bearer", "basic", or values of the contract."""
    return t.Origin(id, url, [_AUTH[scheme]() if isinstance(scheme, str) else scheme for scheme in schemes])


def stream(
    name, *, title=None, key=(), schema=None, volatile=(), cursor="timestamp", order="unordered", page_size=100,
    result_cap=None, window_cap=None, retention=None, granularity=1, settle=None, parent=None, backfill=None, extra=(),
):
    """A stream with the commonest traits. Times are in ms."""
    if backfill is None:
        backfill = cursor != "snapshot"
    return t.Stream(
        name, title or name, list(key), schema, list(volatile), _CURSOR[cursor], _ORDER[order], page_size, result_cap,
        window_cap, retention, granularity, settle, parent, backfill, list(extra),
    )


def limit(
    *, bucket=None, scope="credential", quota_unit="requests", limit=None, remaining=None, used_percent=None, per=None,
    resets_in=None, restores=None, wait=None,
):
    """A limit of the default bucket, shared by all on the credential. Times are in ms."""
    return t.Limit(
        bucket, _SCOPE[scope], quota_unit, limit, remaining, used_percent, per, resets_in, restores, wait
    )


def get(origin, path, **query):
    """GET a path below an origin. Values of the query that are None are left out."""
    return _request(t.Method.GET, origin, t.Target_Path(path), query)


def follow(origin, link):
    """GET a whole URL that the vendor gave."""
    return _request(t.Method.GET, origin, t.Target_Link(link), {})


def _request(method, origin, target, query):
    pairs = [(name, str(value)) for name, value in query.items() if value is not None]
    return t.Request(method, origin, target, pairs, [], None, False, None, 1, None)


def page(records, *, next=(), cursor=None, total=None, truncated=False, poll_after=None, limits=(), extra=()):
    """What an answer held. Steps and cursor are values."""
    return t.Page(list(records), list(next), cursor, total, truncated, poll_after, list(limits), list(extra))


def record(row, id, *, updated_at=None, deleted=False):
    """A row of an answer as a record, passed on as the vendor wrote it."""
    return t.Record(id, updated_at, deleted, t.Data_Text(row.json))


class Row:
    """A value of an answer, with its exact text."""

    def __init__(self, json_text, value):
        self.json = json_text
        self.value = value

    def id(self, name):
        """A text or a number in a field, as text; "" where there is none: the host sets such a record aside."""
        value = self.value.get(name) if isinstance(self.value, dict) else None
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            return ""
        return str(value)

    def time(self, name):
        """A moment in a field, in ms: RFC 3339, or a number of seconds; None where there is none."""
        value = self.value.get(name) if isinstance(self.value, dict) else None
        if isinstance(value, bool) or value is None:
            return None
        if isinstance(value, (int, float)):
            return int(value * 1000) if abs(value) < 1e14 else None
        try:
            at = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
        except ValueError:
            return None
        if at.tzinfo is None:
            at = at.replace(tzinfo=timezone.utc)
        return (at - datetime(1970, 1, 1, tzinfo=timezone.utc)) // _MILLISECOND


class Response:
    """An answer."""

    def __init__(self, given):
        self.status = given.status
        self.url = given.url
        self.headers = given.headers
        self._is_text = isinstance(given.body, t.Body_Text)
        self.body = given.body.value.removeprefix("\ufeff") if self._is_text else ""

    def header(self, name):
        """The first header of that name."""
        for header in self.headers:
            if header.name.lower() == name.lower():
                return header.value.strip()
        return None

    def json(self):
        """The body of a good answer; anything else is raised as the fault that it is."""
        if not 200 <= self.status < 300:
            raise from_status(self)
        if not self._is_text:
            raise fault("incomplete", "the answer is not UTF-8 text", code="encoding")
        try:
            return json.loads(_shallow(self.body))
        except ValueError as error:
            is_page = self.body.lstrip().startswith("<")
            what = "a web page, not JSON" if is_page else f"not JSON: {error}"
            raise fault("incomplete", f"the answer is {what}", code="json") from None

    def rows(self, pointer):
        """The elements of the array at a JSON pointer, each with its exact text."""
        value = self.json()
        for token in pointer.split("/")[1:]:
            value = value.get(token) if isinstance(value, dict) else None
        if not isinstance(value, list):
            raise fault("incomplete", f"there is no array at {pointer or 'the top'}", code="shape")
        texts = _elements(self.body, pointer)
        return [Row(text, item) for text, item in zip(texts, value)]

    def field(self, *path):
        """A text or a number in an answer of any status, as text; None where there is none: for the vendor's codes."""
        try:
            found = json.loads(_shallow(self.body))
        except ValueError:
            return None
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        if isinstance(found, bool) or not isinstance(found, (str, int)):
            return None
        return str(found)


def rfc3339(ms):
    """A moment for a query: `2031-03-04T10:00:00Z`, with a fraction only where there is one."""
    if ms is None:
        return None
    at = datetime(1970, 1, 1, tzinfo=timezone.utc) + ms * _MILLISECOND
    return at.isoformat(timespec="milliseconds" if ms % 1000 else "seconds").replace("+00:00", "Z")


def seconds(ms):
    """Whole seconds since the epoch."""
    return None if ms is None else ms // 1000


_MILLISECOND = datetime(1970, 1, 1, 0, 0, 0, 1000) - datetime(1970, 1, 1)
_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n]*")
_STRUCTURE = re.compile(r'["{}\[\]]')


def _shallow(text):
    depth = at = 0
    while match := _STRUCTURE.search(text, at):
        at = match.end()
        if match[0] == '"':
            end = text.find('"', at)
            while end > 0 and (end - len(text[at:end].rstrip("\\")) - at) % 2:
                end = text.find('"', end + 1)
            if end < 0:
                break
            at = end + 1
        elif match[0] in "{[":
            depth += 1
            if depth > DEPTH:
                raise ValueError(f"nested deeper than {DEPTH} levels")
        else:
            depth -= 1
    return text


def _elements(text, pointer):
    """The texts of the elements of an array in a text that has been checked. Of equal keys the last one counts."""
    start, _ = _value(text, 0)
    for token in pointer.split("/")[1:]:
        found = start
        for key, begin, _ in _members(text, start):
            if key == token:
                found = begin
        start = found
    at = _BLANK.match(text, start + 1).end()
    texts = []
    while text[at] != "]":
        begin, end = _value(text, at)
        texts.append(text[begin:end])
        at = _BLANK.match(text, end).end()
        if text[at] == ",":
            at = _BLANK.match(text, at + 1).end()
    return texts


def _members(text, start):
    at = _BLANK.match(text, start + 1).end()
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = _BLANK.match(text, at).end() + 1
        begin, end = _value(text, at)
        yield key, begin, end
        at = _BLANK.match(text, end).end()
        if text[at] == ",":
            at = _BLANK.match(text, at + 1).end()


def _value(text, at):
    begin = _BLANK.match(text, at).end()
    return begin, _DECODER.raw_decode(text, begin)[1]


class _Task:
    def __init__(self, given):
        self.stream = given.stream
        self.partition = given.partition
        self.parent = given.parent
        self.config = json.loads(given.config)
        self.cursor = _position("cursor", given.cursor)
        self.window = given.window
        self.reason = given.reason
        self.now = given.now
        self.page_size = given.page_size


def _task(given):
    return _Task(given)


def _position(what, text):
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise fault("position-lost", f"the stored {what} cannot be read: {error}", code="codec") from None


def _told(call):
    """A mistake in the connector is a fault that names it: a person looks at it, and the other units go on."""
    try:
        return call()
    except Err:
        raise
    except Exception:
        raise fault("unknown", "the connector failed: " + traceback.format_exc()[-800:], code="exception") from None
