"""One conversation over one chat surface: turns, their tools, and decisions carried through."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from adapters.control_plane.orders import Executors
from adapters.control_plane.probe import HttpProbe
from bot.actions.catalog import OfferedOperations
from bot.actions.decide import Decide
from bot.actions.dispatch import Dispatch
from bot.actions.display import CALL_TIMEOUT_S, ProposalDisplay
from bot.actions.guards import GuardLine
from bot.actions.notes import proposal_notes
from bot.actions.propose import ProposalIntake
from bot.actions.target import Target, placed, rehearsed
from bot.alerts.words import note as alert_note
from bot.app import rules
from bot.app.backend_selection import Observed
from bot.app.build import Base
from bot.app.http_access import make_executors
from bot.app.operator_tools import policy_of
from bot.app.platforms import ChannelLookup, Directory
from bot.app.providers import installation_key
from bot.chat.display_names import NamesAt
from bot.chat.recap import Recaps
from bot.chat.tool_calls import Toolbox, TurnTools, record_calls
from bot.chat.turn import Turns
from bot.chat.turn_permissions import RolesOf, authority
from bot.domain.channel import UNKNOWN, Channel, ChannelNow
from bot.domain.ids import Person, Place, TeamId, session_at
from bot.domain.proposal import Proposal
from bot.domain.roles import NO_ROLES, HeldRoles
from bot.domain.tenancy import HOME
from bot.domain.tool_status import ToolHealth, ToolReport
from bot.ports.durability import Stops
from bot.ports.platform import ChatSurface, NameAt, People
from bot.reports.one_page import one_page
from bot.reports.tools import tool_report
from bot.settings.model import Settings
from bot.store.dossiers import Dossiers
from bot.upkeep.reload import Prepared
from tools.capabilities import CallContext, Capabilities
from tools.catalog import ToolCatalog
from tools.contract import AnyTool
from tools.core.all import core_tools
from tools.core.read_attachment import ATTACHMENTS, Attachments
from tools.cursor import CursorSigner
from tools.policy import EVERYBODY, ToolPolicy
from tools.runner import RunnerHooks, ToolRunner


class Toolboxes:
    """The toolbox of each channel's backends, rebuilt when the policy or the operator's tools
    change.

    Running calls keep theirs. Raises ConfigurationError at construction for a policy with unknown
    names.
    """

    def __init__(
        self, base: Base, proposal_intake: ProposalIntake, attachments: Attachments | None
    ) -> None:
        self._base = base
        self._proposal_intake = proposal_intake
        self._settings = base.settings
        files = {} if attachments is None else {ATTACHMENTS.name: attachments}
        self._more = {**base.own_adapters, **files}
        self._built_in = core_tools(CursorSigner(installation_key(base.settings)))
        self._own = (base.plugins, base.mcp)
        self._policy_version = 0
        self._made: dict[Observed, tuple[tuple[int, ...], Toolbox]] = {}
        policy_of(self._settings, self._own)

    def choose(self, call: CallContext) -> Toolbox:
        observed = self._observed(TeamId(call.team), call.channel)
        version = (self._policy_version, *(each.version for each in self._own))
        if observed not in self._made or self._made[observed][0] != version:
            policy = policy_of(self._settings, self._own)
            made = self._make(self._tools(), policy, self._bind(observed))
            self._made[observed] = version, made
        return self._made[observed][1]

    @property
    def roles_named(self) -> tuple[str, ...]:
        """The roles that the policy names, which a turn has to know of."""
        return tuple(name for name in self._settings.policy.roles if name != EVERYBODY)

    def report(self, health: Mapping[str, ToolHealth]) -> ToolReport:
        """For operators; of a channel that matches no recorded incident."""
        return tool_report(
            self._tools(),
            policy_of(self._settings, self._own),
            self._bind(self._observed(TeamId(""), UNKNOWN)),
            health,
            notes=[note for each in self._own for note in each.notes],
        )

    async def prepare(self, settings: Settings) -> Prepared:
        """The policy of other settings. Raises ConfigurationError."""
        policy_of(settings, self._own)

        def put_in_force() -> None:
            read = ("policy", "channels", "roles")
            now = {name: getattr(settings, name) for name in read}
            self._settings = self._settings.model_copy(update=now)
            self._policy_version += 1

        return Prepared(put_in_force)

    def _tools(self) -> list[AnyTool]:
        return [*self._built_in, *(tool for each in self._own for tool in each.tools)]

    def _observed(self, team: TeamId, channel: str) -> Observed:
        return self._base.observed_in(self._base.live_config.channels_at(team), channel)

    def _bind(self, observed: Observed) -> Capabilities:
        base = self._base
        known = observed.capabilities(
            base.clock, OfferedOperations(base.actions), self._proposal_intake
        )
        return replace(known, more=self._more)

    def _make(self, tools: Sequence[AnyTool], policy: ToolPolicy, caps: Capabilities) -> Toolbox:
        base, metrics = self._base, self._base.metrics
        catalog = ToolCatalog(tools, policy, caps)
        hooks = RunnerHooks(
            authority(policy), record_calls(base.budget.audit, metrics), metrics.tool_broke
        )
        timeouts = base.live_config.tool_timeouts
        runner = ToolRunner(
            catalog, policy, caps, base.redactor, base.clock, timeouts=timeouts, hooks=hooks
        )
        return Toolbox(catalog, runner)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What answers asks and carries decisions through, over one surface."""

    turns: Turns
    decide: Decide
    proposal_intake: ProposalIntake
    tools: TurnTools
    executors: Executors
    toolboxes: Toolboxes
    channel_now: ChannelNow
    roles_of: RolesOf
    display: ProposalDisplay


def build_conversation(
    base: Base,
    surface: ChatSurface,
    stops: Stops,
    directory: Directory,
    *,
    card_call_s: float = CALL_TIMEOUT_S,
) -> Conversation:
    """Put together what answers asks on that surface; a try to show a card takes `card_call_s`."""
    live_config = base.live_config
    lookup = ChannelLookup(live_config.channels_at, directory.channels, base.stores.sessions)
    probe = HttpProbe(base.orders, rules.revealed(live_config.reading_tokens))
    target = Target(probe, base.redactor, surface.traits)
    display = ProposalDisplay(base.stores.cards, surface, call_timeout_s=card_call_s)
    proposal_intake = _proposal_intake(base, display, lookup, target)
    toolboxes = Toolboxes(base, proposal_intake, directory.attachments)
    tools = TurnTools(toolboxes.choose, base.clock)

    async def roles_of(place: Place, person: Person) -> HeldRoles:
        named = toolboxes.roles_named if person.is_somebody else ()
        return await directory.held_at(place, person, named) if named else NO_ROLES

    people = NamesAt(directory.name_at)
    turns = Turns(
        config=live_config.turn_config(base.settings),
        sessions=base.stores.sessions,
        channels=directory.channels,
        roles_of=roles_of,
        zone_of=directory.zone_of,
        readers_of=directory.readers_of,
        picture_at=directory.picture_at,
        surface=surface,
        undelivered=base.stores.undelivered,
        proposals_of=base.stores.proposals.of_session,
        budget=base.budget,
        tools=tools,
        stops=stops,
        clock=base.clock,
        redactor=base.redactor,
        placeholders=base.placeholders,
        notes=partial(_notes, base, people, directory),
        people=people,
        metrics=base.metrics,
        recaps=Recaps(directory.threads, Dossiers(base.stores.database), base.redactor, one_page),
    )
    executors = make_executors(rules.revealed(live_config.order_tokens), base.orders)
    decide = _decide(base, display, directory.name_at, executors, target, lookup.now)
    return Conversation(
        turns, decide, proposal_intake, tools, executors, toolboxes, lookup.now, roles_of, display
    )


async def _notes(
    base: Base, people: People, directory: Directory, place: Place, channel: Channel, question: str
) -> Sequence[str]:
    told = await proposal_notes(base.stores.proposals, session_at(place), place, channel, people)
    # Only home's alerts open threads; another workspace may use the same ids.
    asks = bool(base.live_config.alerts) and base.live_config.tenant_of(place.team) == HOME
    alerts = await base.stores.alerts.at(place) if asks else None
    return [
        *await directory.on_call_notes(place, question),
        *told,
        *([alert_note(alerts)] if alerts else []),
    ]


def _proposal_intake(
    base: Base, display: ProposalDisplay, lookup: ChannelLookup, target: Target
) -> ProposalIntake:
    return ProposalIntake(
        base.actions,
        base.stores.proposals,
        display,
        lookup.of_call,
        target,
        base.freezes,
        base.stores.watches,
        max_open=base.settings.proposals.max_open,
        on_state=base.metrics.proposal_became,
    )


def _decide(
    base: Base,
    display: ProposalDisplay,
    name_at: NameAt,
    executors: Executors,
    target: Target,
    channel_now: ChannelNow,
) -> Decide:
    proposals = base.stores.proposals
    dispatch = Dispatch(
        base.actions,
        proposals,
        executors,
        GuardLine(base.actions, proposals, base.stores.audit, target, base.freezes, channel_now),
        base.redactor,
        base.stores.watches,
        on_state=base.metrics.proposal_became,
    )

    async def rehearse(row: Proposal) -> Proposal:
        row = placed(row, await channel_now(row.place))
        return await rehearsed(target, base.actions.find(row.action, row.product), row)

    return Decide(
        proposals,
        base.stores.audit,
        display,
        dispatch,
        name_at,
        rehearse,
        watches=base.stores.watches,
        on_state=base.metrics.proposal_became,
    )
