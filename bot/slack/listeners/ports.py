"""What the incoming side is given: its settings as plain values and the ports it calls."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from bot.actions.judge import ActionRoles
from bot.actions.revise import Revisions
from bot.domain.budget import BudgetLimits
from bot.domain.channel import ChannelNow, ChannelRule
from bot.domain.chart_request import ChartOf
from bot.domain.ids import ChannelId, MessageTs, ProposalId, TeamId
from bot.domain.provider_status import ProviderStatus
from bot.domain.tool_status import ToolReport
from bot.ports.audit_log import AuditLog, AuditReader
from bot.ports.durability import StopRequests, Workflows
from bot.ports.feedback import Feedback
from bot.ports.ledger import Ledger
from bot.ports.overview import Overview
from bot.ports.platform import PrivateSurface, RoleDirectory
from bot.ports.proposals import FreezeState, KillSwitch, ProposalStore
from bot.ports.sessions import SessionStore
from bot.privacy.session_memory import Placeholders
from bot.slack.api.calls import SlackCalls
from bot.slack.ingress.clicks import Click
from bot.slack.ingress.payloads import SlackIdentity, View
from bot.slack.roles.channel_access import ChannelAccess
from tools.redactor import Redactor

# A button on that message was pressed: it is the proposal's card, which is painted if it is not true.
CardPressed: TypeAlias = Callable[[ProposalId, MessageTs], Coroutine[object, object, None]]
ChannelRenamed: TypeAlias = Callable[[TeamId, str], Awaitable[None]]
# The channel can be written to again. Returns when that is on record.
ChannelReached: TypeAlias = Callable[[TeamId, ChannelId], Awaitable[None]]
ProvidersReport: TypeAlias = Callable[[], Awaitable[Sequence[ProviderStatus]]]


# Templates of addresses by family of signals, of a channel by its team and name.
EvidenceLinks: TypeAlias = Callable[[TeamId, str], Mapping[str, str]]

# What a press of a button or a choice from a menu does.
Pressed: TypeAlias = Callable[[Click], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Form:
    """What a submitted modal does. It returns the error to show at `error_block`, or ""."""

    error_block: str
    submit: Callable[[Click, View], Awaitable[str]]


# Under the 3 s in which Slack wants its answer
# (https://docs.slack.dev/apis/events-api: "respond within three seconds").
HANDLING_S: Final = 2.5


@dataclass(frozen=True, slots=True)
class IngressSettings:
    """Frozen values; reading the configuration is not done here."""

    identity: SlackIdentity
    signing_secret: str = field(default="", repr=False)
    follow_up: Literal["thread", "mention"] = "thread"
    admin_roles: Sequence[str] = ()
    channels: Sequence[ChannelRule] = ()
    budget: BudgetLimits = field(default_factory=BudgetLimits)
    asks_per_minute: int = 20  # per person; 0: no limit
    handling_timeout_s: float = HANDLING_S
    evidence_links: EvidenceLinks | None = None
    may_freeze: bool = True  # whether its admins may stop every action, everywhere


@dataclass(frozen=True, slots=True)
class IngressPorts:
    workflows: Workflows
    redactor: Redactor
    placeholders: Placeholders
    sessions: SessionStore
    proposals: ProposalStore
    roles: RoleDirectory
    action_roles: ActionRoles
    card_pressed: CardPressed
    channel_now: ChannelNow
    channel_renamed: ChannelRenamed
    channel_reached: ChannelReached
    surface: PrivateSurface
    stops: StopRequests
    audit: AuditLog
    audit_behind: Callable[[], Awaitable[Sequence[str]]]  # a line on each sink that is stalled
    audit_reader: AuditReader
    ledger: Ledger
    feedback: Feedback
    channel_access: ChannelAccess
    overview: Overview
    freezes: FreezeState
    revisions: Revisions
    switch: KillSwitch
    providers: ProvidersReport
    tools: Callable[[], ToolReport]
    chart: ChartOf
    api: SlackCalls
