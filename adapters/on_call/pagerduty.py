"""The people on call by PagerDuty's schedules.

https://developer.pagerduty.com/api-reference/3a6b910f11050-list-all-of-the-on-calls; without
`since` and `until` it returns the current ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import httpx
import structlog
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from adapters.errors import BadAnswer
from adapters.http.client import DIRECT
from adapters.http.transport import Route
from adapters.on_call.port import checked
from adapters.on_call.reading import get_json, reading
from tools.outside_json import Entries, OutsideModel, Unread, shaped

_PAGE: Final = 100  # the most that PagerDuty gives at once
_MAX_PAGES: Final = 5


class _Named(OutsideModel):
    model_config = ConfigDict(
        frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True
    )

    id: str


class _User(_Named):
    email: str = ""  # a deleted user stays behind as a reference without one


class _Entry(OutsideModel):
    model_config = ConfigDict(
        frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True
    )

    user: _User
    schedule: _Named | None = None


class _Page(OutsideModel):
    model_config = ConfigDict(
        frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True
    )

    oncalls: Entries[_Entry] = Field(default_factory=list)
    more: bool


_PAGE_BODY: Final = TypeAdapter(_Page)
_log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PagerDutyOnCall:
    """Everyone on call in one of the schedules, by e-mail. `url` is the API's."""

    url: str
    schedules: tuple[str, ...]
    timeout_s: float
    token: str = field(default="", repr=False)
    route: Route = DIRECT

    async def people(self) -> frozenset[str]:
        """The people on call now. Raises AdapterError.

        An unreadable entry never adds a person. Without any readable entry it is an error, not an
        empty rota.
        """
        unread = Unread()
        async with reading(self.url, self.timeout_s, self.route) as client:
            entries = await self._entries(client, unread)
        if unread.count:
            _log.warning("on_call.unreadable_entries", count=unread.count)
        # A filter that PagerDuty did not understand would make everyone's rota ours.
        ours = [e for e in entries if e.schedule and e.schedule.id in self.schedules]
        if unread.count and not ours:
            raise BadAnswer(f"{unread.count} on-calls of PagerDuty cannot be read")
        emails = frozenset(e.user.email.strip() for e in ours if e.user.email)
        if ours and not emails:
            raise BadAnswer("PagerDuty returns no e-mail address of the on-call person")
        return checked(emails)

    async def _entries(self, client: httpx.AsyncClient, unread: Unread) -> list[_Entry]:
        entries: list[_Entry] = []
        for number in range(_MAX_PAGES):
            page = await self._page(client, number * _PAGE, unread)
            entries += page.oncalls
            if not page.more:
                return entries
        raise BadAnswer(f"PagerDuty lists more than {_MAX_PAGES * _PAGE} on-calls")

    async def _page(self, client: httpx.AsyncClient, offset: int, unread: Unread) -> _Page:
        headers = {
            "Accept": "application/vnd.pagerduty+json;version=2",
            # https://developer.pagerduty.com/docs/authentication
            "Authorization": f"Token token={self.token}",
        }
        params: dict[str, str | int | Sequence[str]] = {
            "schedule_ids[]": sorted(self.schedules),
            "include[]": "users",
            "limit": _PAGE,
            "offset": offset,
        }
        answer = await get_json(client, f"{self.url.rstrip('/')}/oncalls", headers, params)
        try:
            return shaped(_PAGE_BODY, answer, unread)
        except ValidationError as error:
            raise BadAnswer("PagerDuty's answer is not a list of on-calls") from error
