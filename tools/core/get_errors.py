"""core__get_errors: the errors of a product as a tracker groups them, the new ones first."""

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field

from tools.capabilities import CallContext, Capabilities
from tools.contract import ToolInput, ToolOutput
from tools.core.arguments import Product, TimeRangeText
from tools.core.built_in import bound, entry_of, read_only
from tools.core.log_entry import head
from tools.error_issues import ErrorIssue, IssueQuery
from tools.output import clean_text
from tools.products import BY_PRODUCT
from tools.timerange import parse_time_range

MOST_ISSUES: Final = 50


class ErrorsInput(ToolInput):
    product: Product
    time_range: TimeRangeText
    sort: Annotated[
        Literal["new", "count"], Field(description="Latest first seen, or most events, first")
    ] = "new"
    limit: Annotated[int, Field(ge=1, le=MOST_ISSUES)] = 20


class IssueEntry(ToolOutput):
    """One issue. `events` and `users` are of the range, `release` is the one it came with.

    `new`: first seen within the range; absent where that is not known.
    """

    title: str
    culprit: str | None = None
    level: str
    status: str
    events: int | None = None
    users: int | None = None
    first_seen: str | None = None
    last_seen: str | None = None
    new: bool | None = None
    release: str | None = None
    project: str
    link: str | None = None


class ErrorsOutput(ToolOutput):
    """The issues in the order asked for; `projects` are those looked at."""

    range: str
    issues: list[IssueEntry]
    projects: list[str]
    truncated: bool
    notes: list[str] | None = None


class GetErrors:
    contract = read_only(
        "get_errors",
        "Errors of a product as Sentry groups them: title, where, events, users, first and last"
        " seen, release, link. Use for exceptions that began with the trouble.",
        (ErrorsInput, ErrorsOutput),
        "errors",
        BY_PRODUCT,
        "investigate",
    )

    async def execute(
        self, arguments: ErrorsInput, call: CallContext, caps: Capabilities
    ) -> ErrorsOutput:
        when = parse_time_range(arguments.time_range, call.now)
        start, end = when.interval.start, when.interval.end
        query = IssueQuery(
            arguments.product, start, end, arguments.sort == "count", arguments.limit
        )
        found = await bound(caps.errors, "errors").search(query)
        notes = [*map(clean_text, found.notes), *when.notes]
        return ErrorsOutput(
            range=when.text,
            issues=[_entry(one, start, end) for one in found.issues],
            projects=[clean_text(project) for project in found.projects],
            truncated=found.more,
            notes=notes or None,
        )

    def summarise(self, output: ErrorsOutput, arguments: ErrorsInput) -> str:
        if not output.projects:
            return f"no error project of {arguments.product}"
        number = len(output.issues)
        more = "+" if output.truncated else ""
        kinds = "kind" if number == 1 and not more else "kinds"
        new = sum(one.new is True for one in output.issues)
        begun = f", {new} new" if new else ""
        return f"{number or 'no'}{more} {kinds} of errors of {arguments.product}{begun}"


def _entry(one: ErrorIssue, start: datetime, end: datetime) -> IssueEntry:
    began = one.first_seen
    return entry_of(
        IssueEntry,
        one,
        title=head(one.title),
        culprit=head(one.culprit),
        events=one.count,
        new=start <= began < end if began else None,
    )
