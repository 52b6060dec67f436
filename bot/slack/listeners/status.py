"""The state now, for one person: `/kortex status`, `sessions`, `proposals`, parts of the tab.

Lines of channels that the person may not see are counted, not shown. So are lines that could not be
checked. Texts are safe mrkdwn.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol, TypeVar

from bot.domain.change import named
from bot.domain.ids import ALERTS, MessageTs, Person, Place
from bot.domain.overview import RecentConversation, RunningQuestion
from bot.domain.proposal import Proposal
from bot.domain.provider_status import ProviderStatus
from bot.ports.failures import StorageUnavailable
from bot.slack.listeners.admin_answers import freeze_state
from bot.slack.listeners.ports import IngressPorts
from bot.slack.roles.channel_access import VisibleChannels
from bot.slack.text.links import permalink
from bot.slack.text.mrkdwn import escape, escape_within, inline, visible

READ: Final = 60  # rows of each kind, of all channels
SHOWN: Final = 12  # lines of each kind
_NAME_CHARS: Final = 100
_PROVIDERS: Final = 10
_LOOK_S: Final = 2.0  # to look up which channels a person sees; a command has 2.5 s in all
NOT_READ: Final = "• not available now"


class _Placed(Protocol):
    @property
    def place(self) -> Place: ...


T = TypeVar("T", bound=_Placed)


@dataclass(slots=True, eq=False, repr=False)
class Status:
    """Reads for one person. Never raises for a store or a Slack that is away: the line says so."""

    ports: IngressPorts
    team: str
    site: str

    async def status(self, viewer: Person) -> str:
        """What runs, who waits, open cards, the freeze, providers that are down, a stalled audit sink."""
        running, cards, freeze, providers, audit = await asyncio.gather(
            self.under_way(viewer),
            self.open_cards(viewer),
            self.freeze(),
            self.providers_down(),
            self.audit_behind(),
        )
        return "\n".join(
            (
                *("*Under way*", *running, "*Open proposals*", *cards, freeze),
                *("*Models*", *providers, *audit),
            )
        )

    async def sessions(self, viewer: Person) -> str:
        """Conversations of places that the person sees, the newest first."""
        lines = await self._lines(
            viewer, self.ports.overview.talks, lambda row: row.asker, self._talk
        )
        return "\n".join(("*Conversations*, the newest first", *(lines or ["• none yet"])))

    async def proposals(self, viewer: Person) -> str:
        """Open proposals of places that the person sees."""
        return "\n".join(("*Open proposals*", *await self.open_cards(viewer)))

    async def under_way(self, viewer: Person) -> list[str]:
        """A line for each answer that grows or waits."""
        read = self.ports.overview.under_way
        lines = await self._lines(viewer, read, lambda row: row.asker or "", self._running)
        return lines or ["• no active or queued turns"]

    async def open_cards(self, viewer: Person) -> list[str]:
        """A line with its link for each card that can still be decided."""
        read = self.ports.overview.open_proposals
        lines = await self._lines(viewer, read, lambda row: row.asked_by.user, self._card)
        return lines or ["• none is open"]

    async def freeze(self) -> str:
        return await freeze_state(self.ports.switch)

    async def providers_down(self) -> list[str]:
        try:
            down = [one for one in await self.ports.providers() if _is_down(one)]
        except StorageUnavailable:
            return [NOT_READ]
        return [_provider(one) for one in down[:_PROVIDERS]] or ["• all are available"]

    async def audit_behind(self) -> list[str]:
        """Audit sinks that are stalled, under a heading; nothing where every sink takes its rows."""
        try:
            behind = await self.ports.audit_behind()
        except StorageUnavailable:
            behind = ["the database cannot be read now"]
        return ["*Audit delivery*", *(f"• {escape(each)}" for each in behind)] if behind else []

    async def _lines(
        self,
        viewer: Person,
        read: Callable[[int], Awaitable[Sequence[T]]],
        owner: Callable[[T], str],
        line: Callable[[T], str],
    ) -> list[str]:
        try:
            rows = await read(READ)
        except StorageUnavailable:
            return [NOT_READ]
        # Questions over HTTP or on the command line have no place here.
        here = [each for each in rows if each.place.team == self.team]
        owners: dict[str, str] = {each.place.channel: "" for each in here}
        owners |= {each.place.channel: owner(each) for each in here if owner(each)}
        visible = await self._visible(viewer, owners)
        seen = [each for each in here if each.place.channel in visible.seen]
        hidden = len(rows) - len(seen)
        more = [f"• and {len(seen) - SHOWN} more"] if len(seen) > SHOWN else []
        if hidden:
            unread = ", or that I could not check" if visible.unread else ""
            more.append(f"• {hidden} more in places that you are not in{unread}")
        return [*map(line, seen[:SHOWN]), *more]

    async def _visible(self, viewer: Person, owners: dict[str, str]) -> VisibleChannels:
        try:
            async with asyncio.timeout(_LOOK_S):
                return await self.ports.channel_access.of(viewer, owners, owners)
        except TimeoutError:
            return VisibleChannels(frozenset(), len(owners))

    def _running(self, row: RunningQuestion) -> str:
        link = self._link(row.place, row.place.thread_ts or row.ts, "its thread")
        if row.since is None:
            return f"• {_where(row.place)}: a question is queued, {link}"
        who = f" of {_name(row.asker)}" if row.asker else ""
        return f"• {_where(row.place)}: a question{who} since {_clock(row.since)}, {link}"

    def _card(self, row: Proposal) -> str:
        link = self._link(row.place, row.card_ts or row.place.thread_ts, "its card")
        roles = inline(", ".join(row.confirm_roles), _NAME_CHARS) or "nobody"
        return (
            f"• {_where(row.place)}: {inline(named(row), _NAME_CHARS)}, {link}, until "
            f"{_clock(row.expires_at)}; can decide: {roles}"
        )

    def _talk(self, row: RecentConversation) -> str:
        link = self._link(row.place, row.place.thread_ts, "its thread")
        count = f"{row.questions} question{'' if row.questions == 1 else 's'}"
        who = f", the last of {_name(row.asker)}" if row.asker else ""
        return f"• {_where(row.place)}: {link}, {count}{who}, {row.active_at:%Y-%m-%d} {_clock(row.active_at)}"

    def _link(self, place: Place, ts: MessageTs, label: str) -> str:
        found = permalink(self.site, place, ts)
        return f"<{found}|{label}>" if found else label


def _where(place: Place) -> str:
    # A channel's own token: permitted readers see its name, without a notification.
    return "a direct message" if place.channel.startswith("D") else f"<#{escape(place.channel)}>"


def _name(asker: str) -> str:
    return "an alert" if asker == ALERTS else f"<@{asker}>"


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%H:%M} UTC"


def _is_down(one: ProviderStatus) -> bool:
    return one.turn > 0 and not one.available


def _provider(one: ProviderStatus) -> str:
    """A missing key or address is the admins' business, who have `/kortex providers`."""
    told = escape_within(visible(one.reason), 200) if one.circuit == "open" else "not available"
    return f"• {escape_within(visible(one.name), 60)}: {told}"
