"""Issues of Sentry, through version 0 of its API, which sentry.io and self-hosted installations
share.

https://docs.sentry.io/api/events/list-an-organizations-issues/: projects are selected by number, so
https://docs.sentry.io/api/organizations/list-an-organizations-projects/ is read first. Without a
query only unresolved issues would come, and a resolved error may be the trouble. With a range,
counts and times cover that range; the release, and the first time if `lifetime` lacks it, come from
the issue itself (https://docs.sentry.io/api/events/retrieve-an-issue/).

Limits: 100 of a page, continued by the cursor in the header Link
(https://docs.sentry.io/api/pagination/); each caller may ask each endpoint only so often and so
many times at once, which the answers' headers say (https://docs.sentry.io/api/ratelimits/).
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import httpx
from pydantic import BaseModel, JsonValue, TypeAdapter

from adapters.observe.backend import Answer, Backend, read_body, refusal
from adapters.observe.remembered import Remembered
from adapters.observe.sentry_answer import Issue, WholeIssue, issues_in, projects_in, told
from tools.error_issues import IssueQuery, IssuesFound
from tools.errors import InvalidArguments, ToolError, UpstreamFailed

_PAGE: Final = 100  # the most that Sentry gives
_PAGES_OF_PROJECTS: Final = 20
_PAGES_OF_ISSUES: Final = 3  # Sentry leaves some out of a page after it was cut
_LOOKED_INTO: Final = 5  # issues whose release is read: a request each
_AT_ONCE: Final = 2  # of these
_REMEMBERED: Final = timedelta(minutes=5)
_ERRORS: Final = "issue.category:error"  # neither slow requests nor feedback
_SLUG: Final = re.compile(r"[a-z0-9_-]{1,100}")
_NEXT: Final = re.compile(
    r'rel="next";\s*results="true";\s*cursor="([0-9A-Za-z:._-]{1,100})"', re.ASCII
)
_LIST: Final = TypeAdapter(list[JsonValue])
_WHOLE: Final = TypeAdapter(WholeIssue)

Params = Mapping[str, str | Sequence[str]]


class _Refusal(BaseModel):
    detail: str


_REFUSAL: Final = TypeAdapter(_Refusal)


class Sentry:
    """Implements `ErrorIssues`. `projects` are slugs by product; else the product's name is one."""

    name = "Sentry"

    def __init__(
        self, client: httpx.AsyncClient, organization: str, projects: Mapping[str, Sequence[str]]
    ) -> None:
        self._backend = Backend(self.name, client)
        self._host = client.base_url.host
        self._path = f"/api/0/organizations/{organization}"
        self._projects = projects
        self._known: Remembered[Mapping[str, str]] = Remembered(_REMEMBERED, 1)

    async def discover(self, products: Sequence[str]) -> Sequence[str]:
        """By the projects that the token may see."""
        known = await self._known.get("", self._visible)
        if not products:
            return sorted(known)
        return [one for one in products if known.keys() & set(self._slugs(one))]

    async def search(self, query: IssueQuery) -> IssuesFound:
        """Raises UpstreamFailed where a project that is set for the product is not there."""
        if query.start >= query.end:
            raise InvalidArguments("the time range is empty")
        numbers = await self._numbers(query.product)
        if not numbers:
            words = f"Sentry has no project of {query.product} that Kortex may see"
            return IssuesFound((), (), notes=(words,))
        rows, more = await self._rows(
            "issues", _asked(query, numbers), query.limit, _PAGES_OF_ISSUES
        )
        found, notes = issues_in(rows, frozenset(numbers.values()))
        kept = found[: query.limit]
        wholes, failed = await self._wholes(kept[:_LOOKED_INTO])
        return IssuesFound(
            [told(one, wholes.get(one.id), query.start, self._host) for one in kept],
            sorted(numbers),
            more or len(found) > len(kept),
            [*notes, *(["not every release could be read"] if failed else [])],
        )

    def _slugs(self, product: str) -> Sequence[str]:
        own = product.lower()
        return self._projects.get(product) or ([own] if _SLUG.fullmatch(own) else [])

    async def _numbers(self, product: str) -> Mapping[str, str]:
        known = await self._known.get("", self._visible)
        slugs = self._slugs(product)
        missing = [slug for slug in slugs if slug not in known]
        if missing and product in self._projects:
            raise UpstreamFailed(f"Sentry shows Kortex no project {', '.join(missing)}")
        return {slug: known[slug] for slug in slugs if slug in known}

    async def _visible(self) -> Mapping[str, str]:
        """All of the organisation. Raises UpstreamFailed where they are too many to know them all."""
        most = _PAGE * _PAGES_OF_PROJECTS
        rows, more = await self._rows("projects", {}, most, _PAGES_OF_PROJECTS)
        if more:
            raise UpstreamFailed(f"Sentry: more than {most} projects")
        return projects_in(rows)

    async def _rows(
        self, what: str, params: Params, wanted: int, most_pages: int
    ) -> tuple[Sequence[JsonValue], bool]:
        """At least `wanted` where there are as many, and whether there are more."""
        rows: list[JsonValue] = []
        cursor = ""
        for _ in range(most_pages):
            given = {**params, "cursor": cursor} if cursor else params
            answer = await self._answer(f"{self._path}/{what}/", given)
            page = await read_body(answer, _LIST)
            if page is None:
                raise UpstreamFailed(f"Sentry: not a list of {what}", answer.status)
            rows += page[:_PAGE]
            follows = _NEXT.search(answer.link)
            if follows is None:
                return rows, len(page) > _PAGE
            if follows[1] == cursor:
                break
            cursor = follows[1]
            if len(rows) >= wanted:
                break
        return rows, True

    async def _wholes(self, issues: Sequence[Issue]) -> tuple[Mapping[str, WholeIssue], bool]:
        few = asyncio.Semaphore(_AT_ONCE)

        async def whole(issue: Issue) -> WholeIssue | None:
            async with few:
                try:
                    answer = await self._answer(f"{self._path}/issues/{issue.id}/", {})
                except ToolError:
                    return None
                return await read_body(answer, _WHOLE)

        async with asyncio.TaskGroup() as group:
            tasks = {issue.id: group.create_task(whole(issue)) for issue in issues}
        read = {number: found for number, task in tasks.items() if (found := task.result())}
        return read, len(read) < len(tasks)

    async def _answer(self, path: str, params: Params) -> Answer:
        answer = await self._backend.get(path, params)
        if not answer.ok:
            said = await read_body(answer, _REFUSAL)
            raise refusal(answer, said.detail if said else "")
        return answer


def _asked(query: IssueQuery, numbers: Mapping[str, str]) -> Params:
    return {
        "project": sorted(numbers.values()),
        "query": _ERRORS,
        "start": _instant(query.start),
        "end": _instant(query.end),
        "sort": "freq" if query.by_count else "new",
        "limit": str(min(query.limit, _PAGE)),
    }


def _instant(at: datetime) -> str:
    """In UTC without a zone, as its documentation writes them."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat()
