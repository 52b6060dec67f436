"""The request of a turn: the prompt, the history, and the permitted tools."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from pydantic import JsonValue

from adapters.llm.first_look.calls import look_calls
from adapters.llm.local_time import in_zone
from adapters.llm.messages import CompleteRequest, Message, Meta, Role, ToolSpec
from bot.chat import prompts
from bot.chat.attachments import PictureAt, files_note, no_picture_at, pictures_of
from bot.chat.evidence_need import needs_evidence
from bot.chat.history import as_turn
from bot.chat.tool_calls import Look, TurnTools
from bot.chat.turn_permissions import unread_notice
from bot.chat.window import IdentityCache
from bot.domain.channel import Channel, ChannelRule, Readers, products_elsewhere, rules_for
from bot.domain.ids import MessageTs, Person, Place, SessionId, TeamId
from bot.domain.roles import NO_ROLES, ConnectionRule, HeldRoles, connections_of
from bot.domain.session import Ask
from bot.domain.tenancy import TenantOf, scope_of, single_tenant
from bot.ports.platform import People, ZoneOf, by_id
from bot.ports.sessions import SessionStore
from tools.attached import AttachedFile
from tools.capabilities import CallContext
from tools.catalog import ToolDescription
from tools.products import Reading
from tools.redactor import Redactor

_TOLD: Final = {
    Readers.SHARED: "this channel is shared with another company: its people can read this answer",
    Readers.PENDING: (
        "this channel is about to be shared with another company: its people will be able to read this answer"
    ),
    Readers.UNKNOWN: (
        "I could not check whether this channel is shared with another company: assume that its "
        "people can read this answer"
    ),
}
_WHY: Final = {
    Readers.SHARED: "is shared with another company",
    Readers.PENDING: "is about to be shared with another company",
    Readers.UNKNOWN: "may be shared with another company, which I could not check",
}


def visibility_notice(readers: Readers) -> Sequence[str]:
    """One notice in a shared channel; none in an internal one."""
    return [_TOLD[readers]] if readers in _TOLD else []


def refusal_in(readers: Readers) -> str:
    """The answer where none is given in such channels; empty: it is one's own."""
    if readers not in _WHY:
        return ""
    return (
        f"I do not answer here: this channel {_WHY[readers]}, and `external_channels` forbids "
        "it. Ask in an internal channel or in a direct message."
    )


# The mark of foreign text in a prompt.
UNTRUSTED = '"untrusted":true'
# The tables of the backends that a channel chose by name: `adapters.llm.messages.Meta.tables`.
TablesOf = Callable[[Sequence[ChannelRule], str], tuple[tuple[str, str], ...]]
# The notes beside that question of that place.
Notes = Callable[[Place, Channel, str], Awaitable[Sequence[str]]]


def unnamed_tables(_rules: Sequence[ChannelRule], _channel: str) -> tuple[tuple[str, str], ...]:
    return ()


@dataclass(frozen=True, slots=True)
class TurnConfig:
    """What does not change between turns."""

    channels: Sequence[ChannelRule]
    max_tool_rounds: int
    max_tokens: int
    actions: Sequence[str]
    session_idle_ttl: timedelta = timedelta(hours=168)
    connections: Sequence[ConnectionRule] = ()
    first_look: bool = False  # whether a model begins with the computed picture
    refuses_shared: bool = False  # whether none is answered where another company reads
    tenant_of: TenantOf = single_tenant
    tables_of: TablesOf = unnamed_tables

    def rules_at(self, team: TeamId) -> Sequence[ChannelRule]:
        return rules_for(self.channels, self.tenant_of(team))

    @property
    def closed_notice(self) -> str:
        hours = round(self.session_idle_ttl.total_seconds() / 3600)
        silence = f"{hours // 24} days" if hours >= 48 else f"{hours or 1} h"
        return (
            f"this conversation was closed after {silence} without a message, so I start fresh "
            "without its earlier messages"
        )


@dataclass(frozen=True, slots=True)
class Opened:
    """The stored start of a turn, which a resumed turn reads again.

    Only `roles` are looked up each time.
    """

    session: SessionId
    channel_name: str
    answer_ts: MessageTs
    now: datetime
    notices: tuple[str, ...] = ()
    summary: str = ""
    summary_ts: str = ""
    roles: HeldRoles = NO_ROLES
    told: str = ""
    asks_name: bool = True  # False: begun by a release that did not
    looks_first: bool = False
    refusal: str = ""  # why none is answered here; empty: it is
    history_tokens: int = 0  # as `recall` has it
    is_new: bool = False  # the session, in which nothing was said before

    @classmethod
    def of(
        cls,
        kept: Sequence[JsonValue],
        ask: Ask,
        answer_ts: MessageTs,
        roles: HeldRoles,
        config: TurnConfig,
    ) -> "Opened":
        """Read the stored record. Earlier releases stored three values, or six to eleven."""
        anew, summary, summary_ts = kept[3:6] or (False, "", "")
        readers = Readers(str(kept[9])) if len(kept) > 9 else Readers.OWN
        return cls(
            session=SessionId(str(kept[0])),
            channel_name=str(kept[6]) if len(kept) > 6 else ask.channel_name,
            answer_ts=answer_ts,
            now=datetime.fromisoformat(str(kept[2])),
            notices=(
                *visibility_notice(readers),
                *([config.closed_notice] if anew is True else []),
                *([unread_notice(roles.unread)] if roles.unread else []),
            ),
            summary=str(summary),
            summary_ts=str(summary_ts),
            roles=roles,
            told=str(kept[7]) if len(kept) > 7 else "",
            asks_name=len(kept) > 6,
            looks_first=len(kept) > 8 and kept[8] is True,
            refusal=refusal_in(readers) if config.refuses_shared else "",
            history_tokens=int(str(kept[10])) if len(kept) > 10 else 0,
            is_new=len(kept) > 11 and kept[11] is True,
        )

    @property
    def look(self) -> Look | None:
        """The overview calls before the first round, or None."""
        return look_calls if self.looks_first else None


def _specs(shown: Sequence[ToolDescription]) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(d.name, d.description, dict(d.input_schema)) for d in shown)


@dataclass(slots=True, eq=False, repr=False)
class TurnRequests:
    """Puts requests together; one instance for all turns."""

    config: TurnConfig
    sessions: SessionStore
    tools: TurnTools
    redactor: Redactor
    notes: Notes
    zone_of: ZoneOf
    picture_at: PictureAt = no_picture_at
    people: People = by_id
    _specs_of: IdentityCache[Sequence[ToolDescription], tuple[ToolSpec, ...]] = field(
        init=False, default_factory=lambda: IdentityCache(_specs)
    )

    def context(self, ask: Ask, channel: Channel, opened: Opened) -> CallContext:
        tenant = self.config.tenant_of(ask.place.team)
        return CallContext(
            actor=ask.asker.user,
            team=ask.asker.team,
            channel=channel.name,
            session_id=opened.session,
            session_name=channel.session_name,
            turn_id=ask.turn_id,
            tool_call_id="",
            purpose=channel.rule.toolset,
            now=opened.now,
            products=channel.rule.products,
            connection_ids=connections_of(self.config.connections, ask.asker.user, tenant),
            channel_id=scope_of(ask.place.channel, tenant),
            roles=opened.roles.held,
            reading=channel.rule.tools_read,
            elsewhere=products_elsewhere(self.config.rules_at(ask.place.team), channel.rule),
            files=ask.files,
            # Alerts of the thread come with the question, before any tool call.
            untrusted_read=UNTRUSTED in opened.told,
        )

    async def told(
        self,
        place: Place,
        channel: Channel,
        now: datetime,
        asker: Person,
        files: Sequence[AttachedFile] = (),
        question: str = "",
    ) -> str:
        """What a question is asked with. Raises StorageUnavailable."""
        notes, zone, people = await asyncio.gather(
            self.notes(place, channel, question),
            self.zone_of(asker),
            self.people(place, [asker.user]),
        )
        told = (in_zone(zone), *files_note(files), *notes)
        return self.redactor.redact(prompts.situation(now, told, people[asker.user]))

    async def _question(self, ask: Ask, opened: Opened) -> Message:
        # A turn of an earlier release has no time beside its question.
        told = opened.told or prompts.situation(opened.now, ())
        images = await pictures_of(ask.files, partial(self.picture_at, ask.place))
        return Message(Role.USER, text=ask.text, told=told, images=images)

    async def request(
        self, ask: Ask, channel: Channel, opened: Opened, context: CallContext
    ) -> CompleteRequest:
        """Everything that is sent, before it is made to fit anything. Raises StorageUnavailable."""
        # As the session was when the turn began: resumed after a crash, it reads the same again.
        earlier: Sequence[Message] = ()
        if not opened.is_new:
            earlier = await self.sessions.history(opened.session, ask.turn_id, opened.summary_ts)
        question = await self._question(ask, opened)
        messages = (*as_turn(opened.summary), *earlier, question)
        empty = CompleteRequest(system="", messages=messages, max_tokens=self.config.max_tokens)
        request = await self.renewed(empty, ask, channel, opened, context)
        return replace(request, require_tool=bool(request.tools) and needs_evidence(messages))

    async def renewed(
        self,
        request: CompleteRequest,
        ask: Ask,
        channel: Channel,
        opened: Opened,
        context: CallContext,
    ) -> CompleteRequest:
        """The same conversation under the channel's rule. Raises StorageUnavailable."""
        rule, rules = channel.rule, self.config.rules_at(ask.place.team)
        specs = self._specs_of(self.tools.visible(context))
        facts = prompts.PromptFacts(
            channel=channel.name,
            products=rule.products,
            actions=self.config.actions,
            purpose=rule.toolset,
            tools=tuple(spec.name for spec in specs),
        )
        system = self.redactor.redact(prompts.system_prompt(facts))
        stable = prompts.stable_part(facts)
        return replace(
            request,
            system=system,
            system_stable_chars=len(stable) if system.startswith(stable) else 0,
            tools=specs,
            meta=Meta(
                opened.session,
                ask.asker.user,
                rule.toolset,
                rule.products,
                opened.now,
                elsewhere=products_elsewhere(rules, rule),
                reads_all=rule.tools_read is Reading.ALL,
                tables=self.config.tables_of(rules, channel.name),
                actions=tuple(one.partition(":")[0] for one in self.config.actions),
            ),
        )
