"""Issues of Sentry: the requests, its documented answer, and hostile answers."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import orjson
import pytest

from adapters.errors import Refused
from adapters.http.client import http_client
from adapters.observe.sentry import Sentry
from tests.fakes.capabilities import fake_capabilities
from tests.fakes.tools import bench
from tools.core.get_errors import GetErrors
from tools.error_issues import IssueQuery
from tools.errors import CapabilityUnavailable, InvalidArguments, ToolError, UpstreamFailed
from tools.records import ToolOutcome

START = datetime(2018, 11, 6, 21, 0, tzinfo=UTC)
END = START + timedelta(hours=1)
BASE = "http://sentry.test/own"
ISSUES = "/own/api/0/organizations/acme/issues/"
PROJECTS = "/own/api/0/organizations/acme/projects/"
# As docs.sentry.io shows one of a list, and the same asked for by itself.
ISSUE: dict[str, Any] = {
    "annotations": [], "assignedTo": None, "count": "150", "culprit": "raven.scripts.runner in main",
    "firstSeen": "2018-11-06T21:19:55Z", "hasSeen": False, "id": "1", "isPublic": False,
    "lastSeen": "2018-11-06T21:19:55Z", "level": "error", "logger": None,
    "metadata": {"title": "This is an example Python exception"}, "numComments": 0,
    "permalink": "http://sentry.test/own/acme/pump-station/issues/1/",
    "project": {"id": "2", "name": "Pump Station", "slug": "pump-station"},
    "shortId": "PUMP-STATION-1", "stats": {"24h": [[1541455200, 473]]}, "status": "unresolved",
    "title": "This is an example Python exception", "type": "default", "userCount": 7,
}  # fmt: skip
WHOLE: dict[str, Any] = {
    **ISSUE,
    "count": "99150",
    "firstRelease": {"version": "17642328ead24b51867165985996d04b29310337", "ref": None},
}
LISTED = [{"id": "2", "slug": "pump-station"}, {"id": "3", "slug": "checkout"}]
HUGE = 1180591620717411303424  # 2 to the 70


@dataclass
class Server:
    issues: Any = field(default_factory=lambda: [ISSUE])
    whole: Any = field(default_factory=lambda: WHOLE)
    projects: Any = field(default_factory=lambda: LISTED)
    link: str = ""
    asked: list[httpx.URL] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url)
        path, headers = request.url.path, {"link": self.link}
        if path == PROJECTS:
            return _answer(self.projects, {})
        if path == ISSUES:
            return _answer(self.issues, headers)
        return _answer(self.whole, {})

    def sentry(self, **projects: tuple[str, ...]) -> Sentry:
        return made(self, projects)


def _answer(body: Any, headers: dict[str, str]) -> httpx.Response:
    return (
        body
        if isinstance(body, httpx.Response)
        else httpx.Response(200, json=body, headers=headers)
    )


def made(
    answer: Callable[[httpx.Request], httpx.Response], projects: dict[str, tuple[str, ...]]
) -> Sentry:
    transport = httpx.MockTransport(answer)
    return Sentry(httpx.AsyncClient(transport=transport, base_url=BASE), "acme", projects)


def asked_for(product: str = "pump-station", **more: Any) -> IssueQuery:
    return IssueQuery(product, START, END, **more)


async def test_the_documented_answer_is_read() -> None:
    found = await Server().sentry().search(asked_for())

    (issue,) = found.issues
    assert (issue.title, issue.culprit) == (ISSUE["title"], ISSUE["culprit"])
    assert (issue.level, issue.status, issue.count, issue.users) == ("error", "unresolved", 150, 7)
    assert issue.first_seen == issue.last_seen == datetime(2018, 11, 6, 21, 19, 55, tzinfo=UTC)
    assert issue.release == WHOLE["firstRelease"]["version"]
    assert (issue.project, issue.link) == ("pump-station", ISSUE["permalink"])
    assert (found.projects, found.more, found.notes) == (["pump-station"], False, [])


@pytest.mark.parametrize(("by_count", "sort"), [(False, "new"), (True, "freq")])
async def test_the_request_matches_the_documentation(by_count: bool, sort: str) -> None:
    server = Server()
    sentry = server.sentry(pumps=("pump-station", "checkout"))
    await sentry.search(asked_for("pumps", by_count=by_count, limit=5))
    await sentry.search(asked_for("pumps", by_count=by_count, limit=5))

    url = next(url for url in server.asked if url.path == ISSUES)
    assert url.params.get_list("project") == ["2", "3"]
    assert {key: url.params[key] for key in ("query", "start", "end", "sort", "limit")} == {
        "query": "issue.category:error", "start": "2018-11-06T21:00:00",
        "end": "2018-11-06T22:00:00", "sort": sort, "limit": "5",
    }  # fmt: skip
    assert sum(url.path == PROJECTS for url in server.asked) == 1  # remembered


@pytest.mark.parametrize(
    ("lifetime", "whole", "first"),
    [
        ({"firstSeen": "2017-01-01T00:00:00Z"}, WHOLE, "2017-01-01"),
        (None, {**WHOLE, "firstSeen": "2017-01-01T00:00:00Z"}, "2017-01-01"),
        (None, httpx.Response(503), None),
        ({"firstSeen": None}, {}, None),
    ],
    ids=["lifetime", "the issue itself", "unreachable says", "nothing in either"],
)
async def test_an_error_is_not_new_by_its_first_time_within_the_range(
    lifetime: Any, whole: Any, first: str | None
) -> None:
    server = Server(issues=[{**ISSUE, "lifetime": lifetime}], whole=whole)
    (issue,) = (await server.sentry().search(asked_for())).issues

    assert (issue.first_seen.date().isoformat() if issue.first_seen else None) == first


async def test_an_unreadable_release_is_reported_and_keeps_the_issues() -> None:
    found = await Server(whole=httpx.Response(429)).sentry().search(asked_for())

    assert [issue.release for issue in found.issues] == [""]
    assert found.notes == ["not every release could be read"]


async def test_a_product_without_a_project_is_not_searched_and_is_reported() -> None:
    server = Server()
    found = await server.sentry().search(asked_for("database"))

    assert (found.issues, found.projects) == ((), ())
    assert "no project of database" in found.notes[0]
    assert [url.path for url in server.asked] == [PROJECTS]


async def test_a_configured_project_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(UpstreamFailed, match="no project gone"):
        await Server().sentry(shop=("checkout", "gone")).search(asked_for("shop"))


@pytest.mark.parametrize("product", ["a/b", "*", "x" * 101, "pump:station"])
async def test_a_product_that_no_project_can_match_requests_nothing(product: str) -> None:
    assert (await Server().sentry().search(asked_for(product))).projects == ()


async def test_issues_of_another_project_are_never_shown() -> None:
    server = Server(
        issues=[ISSUE, {**ISSUE, "id": "8", "project": {"id": "9", "slug": "pump-station"}}]
    )
    found = await server.sentry().search(asked_for())

    assert len(found.issues) == 1
    assert found.notes == ["1 issues of other projects were left out"]


def following(cursor: str, results: str = "true") -> str:
    return (
        f'<{BASE}/x?cursor=0:0:1>; rel="previous"; results="false"; cursor="0:0:1", '
        f'<http://evil.test/?cursor={cursor}>; rel="next"; results="{results}"; cursor="{cursor}"'
    )


async def test_a_short_page_is_continued_only_by_its_cursor() -> None:
    asked: list[httpx.URL] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url)
        if request.url.path != ISSUES:
            return Server()(request)
        last = request.url.params.get("cursor") == "0:100:0"
        link = following("0:200:0", "false") if last else following("0:100:0")
        body = [{**ISSUE, "id": "2" if last else "1"}]
        return httpx.Response(200, json=body, headers={"link": link})

    found = await made(answer, {}).search(asked_for())

    assert [len(found.issues), found.more] == [2, False]
    assert {url.host for url in asked} == {"sentry.test"}


@pytest.mark.parametrize(
    ("cursors", "asked"),
    [(itertools.repeat("0:1:0"), 2), (map("0:{}:0".format, itertools.count()), 3)],
    ids=["one again and again", "always another"],
)
async def test_endless_pages_end(cursors: Iterator[str], asked: int) -> None:
    count = itertools.count()

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path != ISSUES:
            return Server()(request)
        next(count)
        return httpx.Response(200, json=[], headers={"link": following(next(cursors))})

    found = await made(answer, {}).search(asked_for())

    assert found.more
    assert next(count) == asked


async def test_a_huge_text_is_cut() -> None:
    row = {**ISSUE, "title": "x" * 5_000_000, "culprit": "\u202e" * 5_000_000}
    (issue,) = (await Server(issues=[row]).sentry().search(asked_for())).issues

    assert (len(issue.title), len(issue.culprit)) == (4000, 4000)


async def test_an_incomplete_list_of_projects_is_not_treated_as_complete() -> None:
    cursors = map("0:{}:0".format, itertools.count())
    with pytest.raises(UpstreamFailed, match="more than 2000 projects"):
        await made(
            lambda _: httpx.Response(200, json=LISTED, headers={"link": following(next(cursors))}),
            {},
        ).search(asked_for())


@pytest.mark.parametrize(
    ("value", "told"),
    [("150", 150), (150, 150), ("9" * 5000, None), (HUGE, None), ("-1", None), (True, None),
     ("\u0663", None), (1.5, None), (None, None), ({}, None)],
)  # fmt: skip
async def test_an_invalid_count_is_unknown(value: Any, told: int | None) -> None:
    found = await Server(issues=[{**ISSUE, "count": value}]).sentry().search(asked_for())

    assert [issue.count for issue in found.issues] == [told]


@pytest.mark.parametrize(
    ("link", "kept"),
    [
        ("http://sentry.test/x", True),
        ("http://evil.test/x", False),
        ("javascript:alert(1)", False),
        ("http://[", False),
        ("https://acme.sentry.io/x", False),
        (None, False),
    ],
)
async def test_a_link_opens_the_queried_sentry(link: Any, kept: bool) -> None:
    (issue,) = (
        await Server(issues=[{**ISSUE, "permalink": link}]).sentry().search(asked_for())
    ).issues

    assert bool(issue.link) is kept


ODD: list[Any] = [
    None, 1, "x", [], {}, {**ISSUE, "id": "../../1"}, {**ISSUE, "id": HUGE}, {**ISSUE, "project": None},
    {**ISSUE, "firstSeen": "0001-01-01T00:00:00+14:00"}, {**ISSUE, "lastSeen": 10**30},
    {**ISSUE, "lastSeen": "2018-11-06T21:19:55"},
]  # fmt: skip


async def test_an_odd_entry_hides_no_other_and_is_reported() -> None:
    found = await Server(issues=[*ODD, ISSUE]).sentry().search(asked_for())

    assert len(found.issues) == 1
    assert found.notes == [f"{len(ODD)} issues could not be read"]


BODIES: list[bytes] = [
    b"", b"null", b"{}", b"0", b'"text"', b"[1]", b"\xff\xfe\x00", b"[" * 1500,
    b'[{"id": "1", "title": "\\ud800"}]', b'{"detail": {"message": "no"}}', b"<html>sign in</html>",
    json.dumps([{**ISSUE, "title": HUGE, "culprit": [], "metadata": {"a": "b"}}]).encode(),
    b'[{"id": "1", "metadata": ' + b'{"a":' * 1500,
]  # fmt: skip


@pytest.mark.parametrize("part", [PROJECTS, ISSUES, f"{ISSUES}1/"])
async def test_any_answer_raises_only_known_errors(part: str) -> None:
    for status, body in itertools.product((200, 302, 400, 403, 503), BODIES):

        def answer(request: httpx.Request, s: int = status, b: bytes = body) -> httpx.Response:
            hit = request.url.path == part
            return httpx.Response(s, content=b) if hit else Server()(request)

        with suppress(ToolError):
            await made(answer, {}).search(asked_for())
        with suppress(ToolError):
            await made(answer, {}).discover([])


async def test_data_that_is_too_large_is_not_read() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(50):
            sent += 1
            yield b"[" + b" " * (1 << 20)

    server = Server(issues=httpx.Response(200, content=endless()))
    with pytest.raises(UpstreamFailed, match="answered more than"):
        await server.sentry().search(asked_for())
    assert sent < 40


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (httpx.Response(429, headers={"retry-after": "7"}, json={"detail": "slow down"}),
         "slow down; it asks to wait 7 s"),
        (httpx.Response(401, json={"detail": "Invalid token"}), "Invalid token"),
        (httpx.Response(404, json={"detail": "The requested resource does not exist"}), "not exist"),
    ],
)  # fmt: skip
async def test_a_refusal_is_reported_with_sentry_s_message(
    answer: httpx.Response, why: str
) -> None:
    with pytest.raises(UpstreamFailed, match=why):
        await Server(issues=answer).sentry().search(asked_for())
    with pytest.raises(UpstreamFailed, match=why):
        await Server(projects=answer).sentry().discover([])


async def test_an_empty_range_is_refused() -> None:
    with pytest.raises(InvalidArguments):
        await Server().sentry().search(IssueQuery("pump-station", END, START))


async def test_a_client_contacts_only_its_own_host() -> None:
    client = http_client(base_url="http://sentry.test", allowed_hosts=frozenset({"other.test"}))
    with pytest.raises(UpstreamFailed) as caught:
        await Sentry(client, "acme", {}).search(asked_for())
    await client.aclose()

    assert isinstance(caught.value.__cause__, Refused)


async def test_an_unreachable_server_is_unavailable() -> None:
    def unreachable(_request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(CapabilityUnavailable):
        await made(unreachable, {}).discover([])


async def test_a_cancelled_request_ends_at_once() -> None:
    asked = asyncio.Event()

    async def silent(_request: httpx.Request) -> httpx.Response:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    client = httpx.AsyncClient(transport=httpx.MockTransport(silent), base_url=BASE)
    task = asyncio.create_task(Sentry(client, "acme", {}).search(asked_for()))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 0.1)


async def ask(server: Server, **arguments: object) -> ToolOutcome:
    b = bench([GetErrors()], caps=fake_capabilities(errors=server.sentry()))
    given = {"product": "pump-station", "time_range": "2018-11-06T21:00:00Z/PT1H", **arguments}
    return await b.run(orjson.dumps(given).decode(), "core__get_errors")


async def test_the_tool_shows_an_issue_with_its_distinguishing_fields() -> None:
    hostile = {
        **ISSUE,
        "title": "\x1b[31mboom\u202e",
        "lifetime": {"firstSeen": ISSUE["firstSeen"]},
    }
    outcome = await ask(Server(issues=[hostile], link=following("0:100:0")), limit=1)
    body = orjson.loads(outcome.content)

    assert body["issues"] == [
        {
            "title": "boom", "culprit": ISSUE["culprit"], "level": "error", "status": "unresolved",
            "events": 150, "users": 7, "first_seen": "2018-11-06T21:19:55Z",
            "last_seen": "2018-11-06T21:19:55Z", "new": True, "project": "pump-station",
            "release": WHOLE["firstRelease"]["version"], "link": ISSUE["permalink"],
        }
    ]  # fmt: skip
    assert (body["projects"], body["truncated"]) == (["pump-station"], True)
    assert outcome.summary == "1+ kinds of errors of pump-station, 1 new"


async def test_the_tool_does_not_report_no_errors_for_an_unsearched_product() -> None:
    outcome = await ask(Server(), product="database")

    assert outcome.summary == "no error project of database"
    assert orjson.loads(outcome.content)["projects"] == []


async def test_the_tool_marks_only_known_old_errors_as_old() -> None:
    rows = [
        {**ISSUE, "id": "1", "lifetime": {"firstSeen": "2017-01-01T00:00:00Z"}},
        {**ISSUE, "id": "2"},
    ]
    outcome = await ask(Server(issues=rows, whole=httpx.Response(500)))

    assert [row.get("new") for row in orjson.loads(outcome.content)["issues"]] == [False, None]
    assert outcome.summary == "2 kinds of errors of pump-station"
