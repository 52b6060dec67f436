"""Parse Sentry's answers entry by entry: an invalid one is counted, and does not hide the rest."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final
from urllib.parse import urlsplit

import structlog
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    Field,
    JsonValue,
    TypeAdapter,
)

from tools.error_issues import ErrorIssue
from tools.errors import UpstreamFailed
from tools.outside_json import Entries, count_of, readable

_MOST_CHARS: Final = 4000  # of a text: twice the shown length, so that masks at the cut work
_log = structlog.stdlib.get_logger(__name__)
_HOSTED: Final = "sentry.io"  # each organisation and each region has a host below it


def _in_utc(at: datetime) -> datetime:
    try:
        return at.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("no instant between the years 1 and 9999") from error


def _plain(value: object) -> str:
    return value[:_MOST_CHARS] if isinstance(value, str) else ""


Number = Annotated[str, Field(pattern=r"^[0-9]{1,20}$")]
_Count = Annotated[int | None, BeforeValidator(count_of)]
_Instant = Annotated[AwareDatetime, AfterValidator(_in_utc)]
_Text = Annotated[str, BeforeValidator(_plain)]


class Project(BaseModel):
    id: Number
    slug: Annotated[str, Field(max_length=200)]


class _Lifetime(BaseModel):
    first: _Instant | None = Field(default=None, alias="firstSeen")


class Issue(BaseModel):
    """One of a list that was asked for with a range. `first` is within it, `lifetime` of all time."""

    id: Number
    project: Project
    title: _Text = ""
    culprit: _Text = ""
    level: _Text = ""
    status: _Text = ""
    link: _Text = Field(default="", alias="permalink")
    count: _Count = None
    users: _Count = Field(default=None, alias="userCount")
    first: _Instant | None = Field(default=None, alias="firstSeen")
    last: _Instant | None = Field(default=None, alias="lastSeen")
    lifetime: _Lifetime | None = None


class _Release(BaseModel):
    version: _Text = ""


class WholeIssue(BaseModel):
    """One that was asked for by itself, without a range: its times are of all time."""

    first: _Instant | None = Field(default=None, alias="firstSeen")
    release: _Release | None = Field(default=None, alias="firstRelease")


_PROJECTS: Final = TypeAdapter(Entries[Project])
_ISSUES: Final = TypeAdapter(Entries[Issue])


def projects_in(rows: Sequence[JsonValue]) -> Mapping[str, str]:
    found, odd = readable(_PROJECTS, rows)
    if odd:
        _log.warning("sentry.unreadable_projects", count=odd)
    return {one.slug: one.id for one in found}


def issues_in(
    rows: Sequence[JsonValue], projects: frozenset[str]
) -> tuple[Sequence[Issue], Sequence[str]]:
    """The issues of these projects (numbers), each once, and notes on the unreadable ones."""
    found, odd = readable(_ISSUES, rows)
    if odd and not found:
        raise UpstreamFailed(f"Sentry: none of the {odd} issues could be read")
    own = {one.id: one for one in found if one.project.id in projects}
    foreign = sum(one.project.id not in projects for one in found)
    notes = [
        *([f"{odd} issues could not be read"] if odd else []),
        *([f"{foreign} issues of other projects were left out"] if foreign else []),
    ]
    return list(own.values()), notes


def told(issue: Issue, whole: WholeIssue | None, start: datetime, host: str) -> ErrorIssue:
    """As tools know it. `whole` None was not asked for, or could not be read."""
    return ErrorIssue(
        title=issue.title,
        culprit=issue.culprit,
        level=issue.level,
        status=issue.status,
        project=issue.project.slug,
        link=issue.link if _leads_to(host, issue.link) else "",
        count=issue.count,
        users=issue.users,
        first_seen=_first_of_all(issue, whole, start),
        last_seen=issue.last,
        release=whole.release.version if whole and whole.release else "",
    )


def _first_of_all(issue: Issue, whole: WholeIssue | None, start: datetime) -> datetime | None:
    """The first time within the range is the first of all only where nothing says otherwise."""
    known = [
        at
        for at in (
            issue.lifetime.first if issue.lifetime else None,
            whole.first if whole else None,
            issue.first if issue.first and issue.first < start else None,
        )
        if at is not None
    ]
    return min(known, default=None)


def _leads_to(host: str, link: str) -> bool:
    try:
        parts = urlsplit(link)
        to = parts.hostname or ""
    except ValueError:
        return False
    is_hosted = _is_hosted(host) and _is_hosted(to) and parts.scheme == "https"
    return parts.scheme in {"http", "https"} and (to == host or is_hosted)


def _is_hosted(host: str) -> bool:
    return host == _HOSTED or host.endswith(f".{_HOSTED}")
