"""Errors as a tracker groups them into issues, and how they are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class IssueQuery:
    """Issues of a product with an event in [start, end), aware; the latest onset first."""

    product: str
    start: datetime
    end: datetime
    by_count: bool = False  # those with the most events first
    limit: int = 20


@dataclass(frozen=True, slots=True)
class ErrorIssue:
    """One kind of error. `count` and `users` are those of the range, `first_seen` is of all time.

    None and empty are not known. `release` is the one of its first event.
    """

    title: str
    culprit: str
    level: str
    status: str
    project: str
    link: str
    count: int | None
    users: int | None
    first_seen: datetime | None
    last_seen: datetime | None
    release: str = ""


@dataclass(frozen=True, slots=True)
class IssuesFound:
    """`projects` are those read: without any, none was. `more`: there are more."""

    issues: Sequence[ErrorIssue]
    projects: Sequence[str]
    more: bool = False
    notes: Sequence[str] = ()


class ErrorIssues(Protocol):
    """A tracker of errors. Raises what capabilities raise (`tools.errors`)."""

    async def search(self, query: IssueQuery) -> IssuesFound:
        """Issues of any status. A product without a project has none, with a note."""
        ...

    async def discover(self, products: Sequence[str]) -> Sequence[str]:
        """Which of these have a project; the names of all projects when none is named."""
        ...
