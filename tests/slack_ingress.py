"""The incoming side wired to fakes, and payloads as Slack sends them. Imported by tests."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import JsonValue
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.response import BoltResponse

from bot.actions.catalog import ActionCatalog
from bot.actions.revise import Revisions
from bot.domain.channel import Channel, ChannelRule, channel_of
from bot.domain.chart_request import Charted, ChartRequest
from bot.domain.ids import (
    ChannelId,
    MessageTs,
    Person,
    Place,
    ProposalId,
    SessionId,
    TeamId,
    TurnId,
    UserId,
)
from bot.domain.proposal import Proposal, ProposalState, digest
from bot.domain.provider_status import ProviderStatus
from bot.domain.session import Ask
from bot.domain.tool_status import ToolReport
from bot.privacy.session_memory import Placeholders
from bot.slack.ingress.payloads import SlackIdentity
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.bolt_app import create_bolt
from bot.slack.listeners.ports import IngressPorts, IngressSettings
from bot.slack.roles.channel_access import ChannelAccess
from bot.slack.views.modals import REFUSED
from tests.fakes.card_wall import TRAITS
from tests.fakes.channel_names import FakeNames
from tests.fakes.feedback import MemoryFeedback
from tests.fakes.freezes import FakeFreezes, FakeSwitch
from tests.fakes.overview import FakeOverview
from tests.fakes.redactor import FakeRedactor
from tests.fakes.role_table import RoleTable
from tests.fakes.slack_web_api import FakeWebApi
from tests.fakes.stops import RecordingStops
from tests.fakes.stores import (
    Memory,
    MemoryAudit,
    MemoryAuditReader,
    MemoryLedger,
    MemoryProposals,
    MemorySessions,
)
from tests.fakes.whispers import Whispers
from tests.fakes.workflows import RecordingWorkflows
from tests.fixtures_actions import ROLLBACK
from tools.redactor import Redacted

TEAM, APP, BOT, CHANNEL = "T1", "A1", "UBOT", "C1"
NOW = datetime(2026, 4, 7, 14, 35, tzinfo=UTC)
IDENTITY = SlackIdentity(TeamId(TEAM), UserId(BOT), "BBOT", APP)
Payload = dict[str, JsonValue]


@dataclass
class Ingress:
    """One bot's incoming side."""

    settings: IngressSettings = field(default_factory=lambda: IngressSettings(IDENTITY))
    now: float = 1_000.0

    def __post_init__(self) -> None:
        self.memory = Memory()
        self.workflows = RecordingWorkflows()
        self.sessions = MemorySessions(self.memory)
        self.proposals = MemoryProposals(self.memory)
        self.ledger = MemoryLedger(self.memory)
        self.overview = FakeOverview()
        self.feedback = MemoryFeedback(self.memory, self.sessions)
        self.roles = RoleTable(responder={"U1", "U2"}, lead={"U1"})
        self.declared_roles: tuple[str, ...] = ()
        self.whispers = Whispers()
        self.stops = RecordingStops()
        self.api = FakeWebApi()
        self.names = FakeNames("incident-checkout")
        self.rules = [ChannelRule("incident-*", confirm=("responder",))]
        self.renamed: list[tuple[str, str]] = []
        self.reached: list[tuple[str, str]] = []
        self.freezes = FakeFreezes()
        self.revisions = Revisions(ActionCatalog((ROLLBACK,)), FakeRedactor(), TRAITS)
        self.switch = FakeSwitch()
        self.background = BackgroundTasks()
        self.providers: list[ProviderStatus] = []
        self.behind: list[str] = []
        self.tools = ToolReport((), ())
        self.forgotten: list[str] = []
        self.removed: list[str] = []
        self.pressed: list[tuple[str, str]] = []
        self.chart_requests: list[ChartRequest] = []
        self.charted: Charted | Exception = Charted("no chart")
        self.ports = IngressPorts(
            workflows=self.workflows,
            redactor=FakeRedactor(),
            placeholders=Placeholders(),
            sessions=self.sessions,
            proposals=self.proposals,
            roles=self.roles,
            action_roles=lambda _action: self.declared_roles,
            card_pressed=self._card_pressed,
            channel_now=self._channel_now,
            channel_renamed=self._channel_renamed,
            channel_reached=self._channel_reached,
            surface=self.whispers,
            stops=self.stops,
            audit=MemoryAudit(self.memory),
            audit_behind=self._audit_behind,
            audit_reader=MemoryAuditReader(self.memory),
            ledger=self.ledger,
            feedback=self.feedback,
            overview=self.overview,
            channel_access=ChannelAccess(self.api, TEAM, lambda: self.now),
            freezes=self.freezes,
            revisions=self.revisions,
            switch=self.switch,
            providers=self._providers,
            tools=lambda: self.tools,
            chart=self._chart,
            api=self.api,
        )

    async def _chart(self, request: ChartRequest) -> Charted:
        self.chart_requests.append(request)
        if isinstance(self.charted, Exception):
            raise self.charted
        return self.charted

    def app(self) -> AsyncApp:
        """A fresh Bolt app over the same ports."""
        return create_bolt(
            self.settings,
            self.ports,
            self.background,
            self.forgotten.append,
            self._removed,
            lambda: self.now,
        )

    async def _removed(self, why: str) -> None:
        self.removed.append(why)

    async def send(self, body: Payload, retry: int = 0) -> BoltResponse:
        """Deliver as Socket Mode does, and let the courtesies end."""
        response = await deliver(self.app(), body, retry)
        await self.background.drain(1.0)
        return response

    @property
    def private_texts(self) -> list[str]:
        shown = [view for view in self._views() if view["callback_id"] == REFUSED]
        return [*(view["blocks"][0]["text"]["text"] for view in shown), *self.whispers.texts]

    @property
    def forms(self) -> list[str]:
        """The forms that were opened, refusals left out."""
        return [each for view in self._views() if (each := str(view["callback_id"])) != REFUSED]

    def _views(self) -> list[Any]:
        api: Any = self.ports.api
        if isinstance(api.answers.get("views.open"), Exception):
            return []
        return [given["view"] for method, given in api.calls if method == "views.open"]

    async def session_at(self, thread_ts: str, channel: str = CHANNEL) -> Ask:
        """A session with a running turn in that thread."""
        place = Place(TeamId(TEAM), ChannelId(channel), MessageTs(thread_ts))
        ask = Ask(
            place,
            MessageTs(thread_ts or "50.5"),
            Person(TeamId(TEAM), UserId("U1")),
            Redacted("why?"),
        )
        await self.sessions.begin_turn(ask, "incident", NOW)
        return ask

    async def _card_pressed(self, proposal_id: ProposalId, ts: MessageTs) -> None:
        self.pressed.append((proposal_id, ts))

    async def _channel_now(self, place: Place) -> Channel:
        return channel_of(self.rules, await self.names.for_deciding(place))

    async def _channel_reached(self, team: TeamId, channel: str) -> None:
        self.reached.append((team, channel))

    async def _channel_renamed(self, team: TeamId, channel: str) -> None:
        self.renamed.append((team, channel))

    async def _audit_behind(self) -> list[str]:
        return self.behind

    async def _providers(self) -> list[ProviderStatus]:
        return self.providers


async def deliver(app: AsyncApp, body: Payload, retry: int = 0) -> BoltResponse:
    """One Socket Mode envelope's payload."""
    headers = {"x-slack-retry-num": str(retry)} if retry else {}
    return await app.async_dispatch(
        AsyncBoltRequest(mode="socket_mode", body=body, headers=dict(headers))
    )


def event(inner: Payload, **outer: JsonValue) -> Payload:
    """An event_callback."""
    return {
        "type": "event_callback",
        "team_id": TEAM,
        "api_app_id": APP,
        "event_id": "Ev1",
        "authorizations": [{"team_id": TEAM, "user_id": BOT, "is_bot": True}],
        "event": inner,
        **outer,
    }


def said(text: str, ts: str = "100.1", **fields: JsonValue) -> Payload:
    """A message in a channel."""
    return {
        "type": "message",
        "channel": CHANNEL,
        "channel_type": "channel",
        "user": "U1",
        "team": TEAM,
        "text": text,
        "ts": ts,
        **fields,
    }


def mention(text: str = f"<@{BOT}> why is checkout slow?", **fields: Any) -> Payload:
    """An app_mention, which has no channel_type."""
    inner = {**said(text, **fields), "type": "app_mention"}
    del inner["channel_type"]
    return event(inner)


def pressed(action_id: str, value: str, **fields: JsonValue) -> Payload:
    """A button in a thread."""
    return {
        "type": "block_actions",
        "api_app_id": APP,
        "team": {"id": TEAM},
        "user": {"id": "U1", "team_id": TEAM},
        "container": {
            "type": "message",
            "message_ts": "200.2",
            "channel_id": CHANNEL,
            "thread_ts": "100.1",
        },
        "channel": {"id": CHANNEL},
        "message": {"ts": "200.2", "thread_ts": "100.1"},
        "trigger_id": "trigger-1",
        "actions": [
            {
                "type": "button",
                "action_id": action_id,
                "block_id": "b",
                "value": value,
                "action_ts": "300.3",
            }
        ],
        **fields,
    }


def submitted(metadata: str, reason: str | None, user: str = "U1") -> Payload:
    """The reject form, sent."""
    return {
        "type": "view_submission",
        "api_app_id": APP,
        "team": {"id": TEAM},
        "user": {"id": user, "team_id": TEAM},
        "view": {
            "id": "V1",
            "type": "modal",
            "callback_id": "proposal:reject:reason",
            "private_metadata": metadata,
            "state": {
                "values": {"reason": {"text": {"type": "plain_text_input", "value": reason}}}
            },
        },
    }


def command(text: str, **fields: JsonValue) -> Payload:
    """A slash command."""
    return {
        "command": "/kortex",
        "text": text,
        "api_app_id": APP,
        "team_id": TEAM,
        "user_id": "U1",
        "channel_id": CHANNEL,
        "trigger_id": "trigger-2",
        **fields,
    }


def proposal(**changes: object) -> Proposal:
    pending = Proposal(
        id=ProposalId("p-1"),
        session_id=SessionId("s-1"),
        turn_id=TurnId("turn:T1:C1:100.1"),
        place=Place(TeamId(TEAM), ChannelId(CHANNEL), MessageTs("100.1")),
        asked_by=Person(TeamId(TEAM), UserId("U1")),
        action="rollback-deploy",
        product="checkout",
        params="{}",
        digest=digest("rollback-deploy", "checkout", "{}"),
        rationale="p95 rose with the deploy",
        model_blast_radius="one service",
        blast_radius="one service",
        reversible=True,
        untrusted_read=False,
        confirm_roles=("responder",),
        four_eyes=False,
        state=ProposalState.PENDING,
        created_at=NOW,
        expires_at=NOW + timedelta(minutes=10),
        card_ts=MessageTs("200.2"),
    )
    return replace(pending, **changes)  # type: ignore[arg-type]


def order_of_its_own(name: str, **changes: object) -> Proposal:
    """A proposal of that id, and like no other: of equal ones a channel has one open."""
    params = f'{{"version":"{name}"}}'
    own = digest("rollback-deploy", "checkout", params)
    return proposal(id=ProposalId(name), params=params, digest=own, **changes)
