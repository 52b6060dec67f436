"""`kortex check` asks a tracker of errors for its projects, and for the issues of one product."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from bot.cli.check.observe import tracked
from bot.settings.error_tracker import ErrorsBackend
from tools.error_issues import IssueQuery, IssuesFound
from tools.errors import UpstreamFailed

NOW = datetime(2026, 4, 7, 14, 0, tzinfo=UTC)
SENTRY = ErrorsBackend(
    kind="sentry", url="https://sentry.io", organization="acme", projects={"shop": ("web",)}
)


@dataclass
class Tracker:
    """Implements `ErrorIssues` over a list of products."""

    products: Sequence[str]
    refuses: str = ""
    searched: list[str] = field(default_factory=list)

    async def search(self, query: IssueQuery) -> IssuesFound:
        self.searched.append(query.product)
        if self.refuses:
            raise UpstreamFailed(self.refuses, 403)
        return IssuesFound((), (query.product,))

    async def discover(self, products: Sequence[str]) -> Sequence[str]:
        return [one for one in products if one in self.products] if products else self.products


@pytest.mark.parametrize(
    ("backend", "has", "products", "ok", "words"),
    [
        (SENTRY, ["shop"], ["shop", "cart"], True, "1 of 2 products have a project; none of cart"),
        (SENTRY, [], ["cart"], False, "0 of 2 products have a project; none of shop, cart"),
        (ErrorsBackend(), ["a", "b"], [], True, "2 projects"),
        (ErrorsBackend(), [], [], False, "0 projects"),
    ],
)
async def test_the_products_with_a_project_are_listed(
    backend: ErrorsBackend, has: list[str], products: list[str], ok: bool, words: str
) -> None:
    tracker = Tracker(has)
    found = await tracked(backend, tracker, products, NOW)

    assert (found.ok, found.detail) == (ok, f"{backend.kind} answers; {words}")
    assert tracker.searched == has[:1]


async def test_a_token_that_may_not_read_issues_fails() -> None:
    found = await tracked(SENTRY, Tracker(["shop"], "no permission"), ["shop"], NOW)

    assert found.fails
    assert found.detail == "sentry: no permission"


async def test_without_a_tracker_nothing_fails() -> None:
    found = await tracked(ErrorsBackend(), None, ["shop"], NOW)

    assert (found.configured, found.fails) == (False, False)
